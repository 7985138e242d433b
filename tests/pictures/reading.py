"""Reading drawings back: their texts and where those stand, and their strokes by colour."""

import re
from html import unescape
from xml.etree import ElementTree


def texts(drawing):
    """Every text of a drawing with its place, in pixels from the upper left."""
    found = []
    for node in ElementTree.fromstring(drawing).iter():
        if node.tag.rpartition("}")[2] == "text":
            moved = re.search(r"translate\(([\d.e-]+)[ ,]+([\d.e-]+)\)", node.attrib.get("transform", ""))
            x, y = moved.groups() if moved else (node.attrib["x"], node.attrib["y"])
            found.append((unescape(node.text or ""), float(x), float(y)))
    return found


def words(drawing):
    return [text for text, _, _ in texts(drawing)]


def strokes(drawing, colour):
    """Every stroke in a colour: (points, opacity)."""
    found = []
    for outline, style in re.findall(r'<path d="([^"]*)" style="([^"]*)"', drawing):
        if f"stroke:{colour}" not in style:
            continue
        points = [(float(x), float(y)) for x, y in re.findall(r"[ML] (\S+) (\S+)", outline)]
        opacity = re.search(r"(?<!fill-)opacity:([\d.]+)", style)
        found.append((points, float(opacity[1]) if opacity else 1.0))
    return found
