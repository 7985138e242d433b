"""A study as plain text, at most 100 columns wide where names allow: verdicts first, then what they stand on."""

from collections.abc import Sequence

from headstock.pictures.labels import TERMINAL, elided_apart, showable, wrapped
from headstock.studies import writing as write
from headstock.studies.judging import Judgement
from headstock.studies.results import StudyResult

GAP = "  "
NAMES = 32
"""Letters of a row's name."""
MARKS = {True: "+ ", False: "! ", None: "? "}
"""By whether ours agrees."""


def as_text(result: StudyResult) -> str:
    """Give the verdicts and the figures they stand on; the same value always gives the same text, without colour."""
    study = result.study
    blocks = [
        wrapped([result.title, f"{write.capital(write.budget(result))}. {study.asks}"]),
        *(_claim(judgement) for judgement in result.judgements),
        wrapped([" ".join(write.basis(result))]),
        *("\n".join(_aligned(head, rows)) for head, rows in write.tables_of_rows(result)),
        wrapped([f"{write.SPREAD_IS}."], GAP),
        wrapped(write.failures(result), GAP, GAP * 2),
        _listed(write.remarks_heading(result), study.remarks),
        _listed(write.chosen_heading(result), study.choices),
        wrapped(result.notes),
    ]
    return showable("\n\n".join(block for block in blocks if block) + "\n")


def _claim(judgement: Judgement) -> str:
    mark = MARKS[judgement.agrees]
    lines = [wrapped([f"{judgement.verdict}: {judgement.claim.says}"], mark, GAP)]
    said = write.published(judgement)
    published = "" if said is None else f"; published {said}"
    beside = f"ours {write.ours(judgement)}{published}. {judgement.why}"
    return "\n".join([*lines, wrapped([beside], GAP * 2)])


def _listed(heading: str, sentences: Sequence[str]) -> str:
    return f"{heading}\n{wrapped(sentences, GAP + '- ', GAP * 2)}" if sentences else ""


def _aligned(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Set rows under their head, numbers to the right; figures that find no room stand in a table of their own."""
    names, *columns = zip(head, *rows, strict=True)
    short = elided_apart(names, NAMES)
    first = max(map(len, short))
    tables: list[list[tuple[str, ...]]] = [[]]
    for figure in _figures(columns):
        if tables[-1] and first + _wide([*tables[-1], *figure]) > TERMINAL - len(GAP):
            tables.append([])
        tables[-1] += figure
    lines = []
    for table in tables:
        widths = [max(map(len, column)) for column in table]
        for place, name in enumerate(short):
            numbers = (column[place].rjust(width) for column, width in zip(table, widths, strict=True))
            lines.append((GAP + GAP.join([name.ljust(first), *numbers])).rstrip())
        lines.append("")
    return lines[:-1]


def _figures(columns: Sequence[tuple[str, ...]]) -> list[list[tuple[str, ...]]]:
    """Give the columns of each figure: ours, and what was published beside it."""
    figures: list[list[tuple[str, ...]]] = []
    for column in columns:
        if column[0] == write.PUBLISHED and figures:
            figures[-1].append(column)
        else:
            figures.append([column])
    return figures


def _wide(columns: Sequence[tuple[str, ...]]) -> int:
    return sum(len(GAP) + max(map(len, column)) for column in columns)
