"""What a study found: everything that the table, the README, the report and `--json` are made from."""

from collections import Counter
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from headstock.studies.base import Budget, Study
from headstock.studies.judging import OF_ITS_OWN, Judgement, Verdict
from headstock.studies.runs import RowResult, RowRun, with_plain_numbers

VERDICTS: tuple[Verdict, ...] = ("reproduced", "not reproduced", "upheld", "not upheld", "not decidable")


@dataclass(frozen=True)
class StudyResult:
    """The answer of `headstock study`: a verdict a claim, and all that they stand on."""

    study: Study
    budget: Budget
    steps: int | None
    """The most steps that a row trained, where the budget's own were not taken."""
    seeds: int
    rows: tuple[RowResult, ...]
    judgements: tuple[Judgement, ...]
    notes: tuple[str, ...]
    """What happened on the way that a reader should know, a sentence each."""
    environment: dict[str, list[str]]
    """Where it was computed: every value that runs had, by what it is."""
    command: str
    """What reproduces it."""
    date: str
    """Of the last call that computed a figure."""
    folder: str

    def row(self, name: str) -> RowResult:
        """Give a row by its name; raises KeyError for one that this budget does not have."""
        return {row.name: row for row in self.rows}[name]

    def details(self, row: str, seed: int | None = None) -> dict[str, Any] | None:
        """Give what a row measured beside its figures, of its first seed where none is named; None where nothing is."""
        for run in self.row(row).finished if row in {row.name for row in self.rows} else []:
            if run.details and seed in (None, run.seed):
                return dict(run.details)
        return None

    @property
    def counts(self) -> dict[Verdict, int]:
        """How many claims have each verdict; those of claims that nobody published where the study has such claims."""
        counted = Counter(judgement.verdict for judgement in self.judgements)
        has_own = any(judgement.claim.published is None for judgement in self.judgements)
        return {verdict: counted[verdict] for verdict in VERDICTS if has_own or verdict not in OF_ITS_OWN.values()}

    @property
    def title(self) -> str:
        """The finding in a line."""
        from headstock.studies.writing import finding

        return finding(self)

    @property
    def failed(self) -> list[tuple[RowResult, RowRun]]:
        """The runs that failed, but for those whose failing is the answer that a claim asks for."""
        asked = {row for j in self.judgements if j.claim.divergence_counts for row, _ in j.claim.ours.reads()}
        return [
            (row, run)
            for row in self.rows
            for run in row.runs
            if run.status == "failed" and not (run.diverged and row.name in asked)
        ]

    def without_folder(self) -> "StudyResult":
        """Give it as it is kept, where the folder is known by where it lies."""
        return replace(self, folder="")

    def to_dict(self) -> dict[str, Any]:
        """Give everything as JSON's values."""
        study = self.study
        said = {
            "study": study.name,
            "title": study.title,
            "finding": self.title,
            "asks": study.asks,
            "source": study.source,
            "budget": self.budget,
            "steps": self.steps,
            "seeds": self.seeds,
            "verdicts": self.counts,
            "claims": [judgement.to_dict() for judgement in self.judgements],
            "rows": [asdict(row) for row in self.rows],
            "choices": list(study.choices),
            "remarks": list(study.remarks),
            "notes": list(self.notes),
            "exact": study.exact,
            "spread": study.spread,
            "spread_alike": study.spread_alike,
            "spread_because": study.spread_because,
            "environment": self.environment,
            "command": self.command,
            "date": self.date,
            "folder": self.folder,
        }
        found: dict[str, Any] = with_plain_numbers(said)
        return found

    def table(self) -> str:
        """Give the verdicts and the figures they stand on, as text for a terminal."""
        from headstock.studies.table import as_text

        return as_text(self)

    def report(self, path: str | Path) -> Path:
        """Write the report, one HTML file that opens anywhere; give its path."""
        from headstock.studies.report import write_report

        return write_report(self, Path(path))

    def _repr_html_(self) -> str:
        from headstock.studies.report import as_fragment

        return as_fragment(self)
