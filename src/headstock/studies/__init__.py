"""Reference studies: declared rows beside published figures, rerun with one command."""
