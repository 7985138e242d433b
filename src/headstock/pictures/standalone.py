"""A drawing as an SVG file of its own, for a viewer that knows neither the page nor CSS variables.

Every mark has its light colour as an attribute, which any viewer shows; a style sets the dark one where that is liked.
"""

import re

from headstock.pictures.palette import in_both_schemes

FONT = "system-ui, 'Segoe UI', Roboto, 'Helvetica Neue', 'Liberation Sans', Arial, sans-serif"
EDGE = 12
"""Pixels of ground on every side."""
_COLOUR = re.compile(r"(fill|stroke):(?:rgb\()?var\(--([\w-]+)\)\)?;?")


def standing_alone(drawing: str) -> str:
    """Give a drawing that `svg.drawn` made as the text of an SVG file, with ground behind it."""
    width, height = map(float, re.findall(r'viewBox="0 0 (\S+) (\S+)"', drawing)[0])
    used: set[tuple[str, str]] = {("fill", "ground"), ("fill", "ink")}

    def coloured(found: re.Match[str]) -> str:
        pairs = _COLOUR.findall(found[1])
        used.update(pairs)
        rest = _COLOUR.sub("", found[1])
        colours = "".join(f' {of}="{in_both_schemes(name)[0]}"' for of, name in pairs)
        classes = f' class="{" ".join(f"{of}-{name}" for of, name in pairs)}"' if pairs else ""
        return f'style="{rest}"{colours}{classes}'

    opening, _, inner = drawing.removesuffix("</svg>").partition(">")
    heard = opening.removeprefix('<svg class="hs-picture" ').partition(" viewBox=")[0]
    titled = found[0] if (found := re.match(r"<title>.*?</title>", inner, re.DOTALL)) else ""
    inner = re.sub(r'style="([^"]*)"', coloured, inner[len(titled) :])
    box = (-EDGE, -EDGE, width + 2 * EDGE, height + 2 * EDGE)
    dark = "".join(f".{of}-{name}{{{of}:{in_both_schemes(name)[1]}}}" for of, name in sorted(used))
    ground, ink = in_both_schemes("ground")[0], in_both_schemes("ink")[0]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {heard} width="{box[2]:g}" height="{box[3]:g}" '
        f'viewBox="{box[0]:g} {box[1]:g} {box[2]:g} {box[3]:g}" font-family="{FONT}" fill="{ink}" class="fill-ink">'
        f"{titled}<style>svg{{color-scheme:light dark;font-variant-numeric:tabular-nums}}path{{stroke-linejoin:round}}"
        f"@media (prefers-color-scheme:dark){{{dark}}}</style>"
        f'<rect x="{box[0]:g}" y="{box[1]:g}" width="{box[2]:g}" height="{box[3]:g}" fill="{ground}" '
        f'class="fill-ground"/>{inner}</svg>\n'
    )
