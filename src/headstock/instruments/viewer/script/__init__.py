"""The parts of the script of the page, put together by `page`."""
