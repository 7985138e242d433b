"""A study as a short Markdown page, so that its folder reads on its own."""

from collections.abc import Sequence

from headstock.pictures.labels import showable
from headstock.studies import writing as write
from headstock.studies.judging import band
from headstock.studies.results import StudyResult


def as_markdown(result: StudyResult) -> str:
    """Give the page: verdicts, rows, where ours differs, what was chosen, how it was computed."""
    study = result.study
    says = {row.name: row.says for row in result.rows}
    blocks = [
        f"# {_text(result.title)}",
        _text(f"{study.asks} Published figures: {study.source}. {write.capital(write.budget(result))}, {result.date}."),
        *_claims(result),
        "## Rows",
        *(
            _table([head[0], "what it is", *head[1:]], [[row[0], says[row[0]], *row[1:]] for row in rows])
            for head, rows in write.tables_of_rows(result)
        ),
        write.of_the_rows(result),
        *_listed("", write.failures(result)),
        *_listed(f"## {write.remarks_heading(result)}", study.remarks),
        *_listed(f"## {write.chosen_heading(result)}", study.choices),
        "## How it was computed",
        f"```\n{result.command}\n```",
        "What is there is not computed again: the command computes what is missing, judges, and writes this page, "
        "`report.html` (the same with pictures) and `study.json` (every value).",
        *_listed("", result.notes),
        _table(["", ""], write.environment(result)),
    ]
    return showable("\n\n".join(block for block in blocks if block) + "\n")


def _claims(result: StudyResult) -> list[str]:
    if not result.judgements:
        return []
    rows = [
        [
            judgement.claim.says,
            f"{write.published(judgement) or write.UNPUBLISHED}; band: {band(judgement.claim)}",
            write.ours(judgement),
            f"**{judgement.verdict}**. {judgement.why}",
        ]
        for judgement in result.judgements
    ]
    return [
        "## Claims",
        _table(["claim", "published", "ours", "verdict"], rows),
        " ".join(write.basis(result)),
        *_listed("Why a band reaches from where to where:", _reasons(result)),
    ]


def _reasons(result: StudyResult) -> list[str]:
    """Give the reason of each band once."""
    said: dict[str, list[str]] = {}
    for place, judgement in enumerate(result.judgements, 1):
        said.setdefault(judgement.claim.because, []).append(str(place))
    return [
        f"claim{'s' if len(places) > 1 else ''} {', '.join(places)}: {because}"
        for because, places in said.items()
        if because
    ]


def _listed(heading: str, sentences: Sequence[str]) -> list[str]:
    if not sentences:
        return []
    return [*([heading] if heading else []), "\n".join(f"- {_text(sentence)}" for sentence in sentences)]


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return ""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines)


def _cell(text: str) -> str:
    return _text(" ".join(text.split())).replace("|", "\\|")


def _text(said: str) -> str:
    """Keep what looks like a tag from being one."""
    return said.replace("<", "&lt;")
