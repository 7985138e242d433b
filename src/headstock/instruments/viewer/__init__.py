"""Every map of a model on one text, on a page that needs no network and no library: drawn on canvases by its script.

    inspecting (a model and a text → a view) → encoding (maps → letters) → page (a view → HTML)

`page.html.j2` is the page, `script/` what draws, `style.css` what is added to the look of any page. Nothing in it has
an id, its style reaches nothing outside it, and each script serves its own element, so any number of views can share a
notebook.
"""

from headstock.instruments.viewer.inspecting import inspected
from headstock.instruments.viewer.page import as_fragment, as_page
from headstock.instruments.viewer.view import View

__all__ = ["View", "as_fragment", "as_page", "inspected"]
