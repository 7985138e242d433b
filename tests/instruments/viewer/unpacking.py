"""The page's data read back, by code of its own."""

import base64
import json
import re
import zlib
from html.parser import HTMLParser
from typing import Any

import numpy as np
import numpy.typing as npt

from headstock.instruments.viewer.encoding import EncodedMap

Map = npt.NDArray[np.float64]


def weights_of(one: EncodedMap, width: int, length: int) -> Map:
    """Give the map (query, key) that a packed one stands for."""
    return unpacked(one.packed, one.scale, one.triangle, one.signed, width, length)


def unpacked(packed: str, scale: float, triangle: bool, signed: bool, width: int, length: int) -> Map:
    """Do so from what the page holds."""
    raw = zlib.decompress(base64.b64decode(packed))
    codes = np.frombuffer(raw, np.uint8).astype(np.int64)
    if width == 2:
        high, low = codes.reshape(2, -1)
        codes = high * 256 + low
    steps = 256**width - 2
    values = (codes - steps // 2) / (steps // 2) if signed else codes / steps
    weights = scale * np.sign(values) * values**2
    weights[codes == 256**width - 1] = np.nan
    if not triangle:
        return weights.reshape(-1, length)
    square = np.zeros((length, length))
    square[np.tril_indices(length)] = weights
    return square


def meta_of(page: str) -> dict[str, Any]:
    """Give what the first view of a page tells its script."""
    found = re.search(r'<script type="application/json" class="hs-meta">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return dict(json.loads(found[1]))


class Tags(HTMLParser):
    """Every tag with its attributes, and the text outside scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._silent = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        self._silent = tag in ("script", "style")

    def handle_endtag(self, tag: str) -> None:
        self._silent = False

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self.text += data
