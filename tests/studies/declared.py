"""What the tests of the studies share: the set-up that is published, and studies whose rows train nothing, judged."""

from headstock.studies.base import Opened, Study
from headstock.studies.judging import Judgement, judge
from headstock.studies.runs import RowResult, RowRun


def measured(study: Study, *, seeds: int = 1, rows: tuple[str, ...] = ()) -> list[RowResult]:
    """Measure the rows that train nothing, or those that are named."""
    found = []
    for row in study.rows:
        if row.variant or row.measure is None or (rows and row.name not in rows):
            continue
        runs = []
        for seed in range(seeds):
            given = row.measure(Opened(row.name, seed, "full"))
            runs.append(RowRun(seed, "finished", figures=given.figures, details=given.details))
        found.append(RowResult(row.name, row.says, "", "", 0, row.published, tuple(runs)))
    return found


def judged(study: Study, *, seeds: int = 1, rows: tuple[str, ...] = ()) -> dict[str, Judgement]:
    """Judge what the rows that train nothing can decide, by what the claims say."""
    found = judge(study, measured(study, seeds=seeds, rows=rows), as_published=True)
    return {judgement.claim.says: judgement for judgement in found}


def published(study: Study, figure: str = "perplexity") -> dict[str, str]:
    """Give a figure as it was published, by row."""
    return {row.name: row.published[figure] for row in study.rows if figure in row.published}
