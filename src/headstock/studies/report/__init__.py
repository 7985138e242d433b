"""A study as one HTML page that opens offline anywhere: no script, no request, light or dark as its reader likes.

finding → verdict and interval of each claim → rows beside published figures → the study's own pictures → learning
→ where ours differs → choices → how it was computed
"""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from jinja2 import Template
from markupsafe import Markup

from headstock.checkpoints.files import write_atomically
from headstock.pictures.axes import swatch
from headstock.pictures.labels import showable
from headstock.pictures.pages import style, templates
from headstock.pictures.picture import Picture, Table
from headstock.studies import writing as write
from headstock.studies.judging import Judgement, band
from headstock.studies.report.curves import learning_curves, looks_of_rows
from headstock.studies.report.strips import strip
from headstock.studies.results import StudyResult

__all__ = ["as_fragment", "as_html", "pictures_of", "write_report"]

CLASSES = {True: "hs-claim", False: "hs-against", None: "hs-no-claim"}
"""By whether ours agrees."""


@dataclass(frozen=True)
class ClaimPart:
    """What the page shows of one claim."""

    judgement: Judgement
    css: str
    strip: Markup | None
    ours: str
    published: str | None
    band: str


@dataclass(frozen=True)
class Line:
    """One row of a table of rows; `cells` are ours, published, for each figure, then seeds."""

    name: str
    says: str
    swatch: Markup
    cells: list[str]


def as_html(result: StudyResult) -> str:
    """Give the whole page; the same result always gives the same page."""
    return _rendered(result, whole=True)


def as_fragment(result: StudyResult) -> str:
    """Give the report as one element, for a page that is already there, such as a notebook's."""
    return _rendered(result, whole=False)


def write_report(result: StudyResult, path: Path) -> Path:
    """Write the page to a file, in folders made where they are missing; give its path.

    Raises UserError where it cannot be written; a report that was there is then still whole.
    """
    page = as_html(result)
    write_atomically(path, lambda beside: beside.write_text(page, encoding="utf-8"))
    return path


def pictures_of(result: StudyResult) -> tuple[list[Picture], str]:
    """Give the study's own pictures; none, and a sentence on why, where its code fails in drawing them."""
    if result.study.pictures is None:
        return [], ""
    try:
        return list(result.study.pictures(result)), ""
    except (Exception, SystemExit) as error:
        return [], f"The study's own pictures could not be drawn: {type(error).__name__}: {error}".rstrip(": .") + "."


def _rendered(result: StudyResult, *, whole: bool) -> str:
    looks = looks_of_rows(result)
    says = {row.name: row.says for row in result.rows}
    learning = learning_curves(result, looks)
    drawn = {row.name for row in result.rows if learning and row.variant}
    tables = [
        (
            head,
            [
                Line(name, says[name], swatch(looks[name]) if name in drawn else Markup(), list(cells))
                for name, *cells in rows
            ],
        )
        for head, rows in write.tables_of_rows(result)
    ]
    own, _ = pictures_of(result)
    page = _template().render(
        whole=whole,
        css=style("headstock.comparison.report", __package__),
        result=result,
        kicker=_kicker(result),
        claims=[_claim(judgement) for judgement in result.judgements],
        basis=write.basis(result),
        tables=tables,
        of_the_rows=write.of_the_rows(result),
        failures=write.failures(result),
        differs=write.remarks_heading(result),
        chosen=write.chosen_heading(result),
        runs=_runs(result),
        own=own,
        learning=learning,
        sources=[(picture.name, picture.source) for picture in (*own, *learning) if picture.source],
        environment=write.environment(result),
    )
    return showable(page.strip() + "\n")


@cache
def _template() -> Template:
    environment = templates()
    environment.filters.update(kept=_kept_together, breakable=_breakable)
    return environment.get_template(f"{__package__}/page.html.j2")


def _kicker(result: StudyResult) -> str:
    return " · ".join(["Headstock study", result.study.name, write.budget(result), result.date])


def _claim(judgement: Judgement) -> ClaimPart:
    return ClaimPart(
        judgement=judgement,
        css=CLASSES[judgement.agrees],
        strip=strip(judgement),
        ours=write.ours(judgement),
        published=write.published(judgement),
        band=band(judgement.claim),
    )


def _runs(result: StudyResult) -> Table:
    """Give every run with every figure of it that the table of rows shows."""
    figures = write.figures_shown(result)
    head = ["row", "seed", "status", *map(write.figure_words, figures), "folder"]
    rows = [
        [
            row.name,
            str(run.seed),
            run.status + (f": {run.reason}" if run.reason else ""),
            *(write.number(run.figures.get(name)) for name in figures),
            run.folder,
        ]
        for row in result.rows
        for run in row.runs
    ]
    return Table(head, rows)


def _kept_together(sentence: str) -> str:
    """Keep a number and its % on one line."""
    return sentence.replace(" %", "\N{NO-BREAK SPACE}%")


def _breakable(label: str) -> Markup:
    """Let a long label break after its joints, and before its parts."""
    return Markup("<wbr>").join(part for part in re.split(r"(?<=[-/:+,])", label) if part)
