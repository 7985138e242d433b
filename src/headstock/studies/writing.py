"""The sentences and numbers that a study's table, README and report share."""

import math
from collections.abc import Iterable, Sequence

from headstock.pictures.numbers import ABSENT, count, outwards, places_for, plus_minus, small
from headstock.pictures.spreads import Spread, finite
from headstock.studies.judging import Judgement
from headstock.studies.results import StudyResult
from headstock.studies.runs import RowResult, reasons
from headstock.studies.scatter import mean_squares

SPREAD_IS = "± is the standard deviation from seed to seed"


def finding(result: StudyResult) -> str:
    """Put all verdicts in a line: "9 of 12 claims reproduced, 1 not reproduced, 2 not decidable at this budget".

    Claims that nobody published are counted for themselves.
    """
    published = [judgement for judgement in result.judgements if judgement.claim.published is not None]
    own = [judgement for judgement in result.judgements if judgement.claim.published is None]
    said = [_counted(published, "published claim" if own else "claim", "reproduced")] if published else []
    said += [_counted(own, "own claim", "upheld")] if own else []
    return f"{result.study.title}: {'; '.join(said) or 'figures without claims'}"


def _counted(judgements: Sequence[Judgement], kind: str, done: str) -> str:
    total = len(judgements)
    agree, differ, open_ = (sum(judgement.agrees is so for judgement in judgements) for so in (True, False, None))
    if agree == total:
        return f"the one {kind} is {done}" if total == 1 else f"all {total} {kind}s {done}"
    others = [f"{differ} not {done}"] if differ else []
    others += [f"{open_} not decidable at this budget"] if open_ else []
    return ", ".join([f"{agree} of {count(total, kind)} {done}", *others])


def budget(result: StudyResult) -> str:
    """Say how much was done: "quick budget, at most 40 steps, 3 seeds, of some rows 8"."""
    steps = "" if result.steps is None else f", at most {count(result.steps, 'step')}"
    counts = sorted({len(row.runs) for row in result.rows} or {result.seeds})
    most = result.seeds if result.seeds in counts else counts[0]
    others = [number for number in counts if number != most]
    some = f", of some rows {' or '.join(map(str, others))}" if others else ""
    return f"{result.budget} budget{steps}, {count(most, 'seed')}{some}"


def remarks_heading(result: StudyResult) -> str:
    """Head the study's remarks, whose figures are those of its full budget and no other run's."""
    what = "Where ours differs, and why"
    whole = result.budget == "full" and result.steps is None
    return what if whole else f"{what}, as the full budget showed it: its figures, not this run's"


def chosen_heading(result: StudyResult) -> str:
    """Head what the study chose itself, which speaks of the full budget."""
    what = "what the document leaves open or two cores forbid"
    return f"Chosen here: {what}" if result.budget == "full" else f"Chosen here for the full budget: {what}"


def of_the_rows(result: StudyResult) -> str:
    """Say what the numbers of the tables of rows are."""
    said = f"Means over the seeds that are there; {SPREAD_IS}."
    trained = any(row.variant for row in result.rows)
    return said + " Figures are of the held-out split unless they say train." * trained


def ours(judgement: Judgement) -> str:
    """Write ours with its interval: "3.21 (2.9 to 3.5) points"."""
    said = number(judgement.estimate)
    low, high = judgement.low, judgement.high
    if low is not None and high is not None and low < high and math.isfinite(low) and math.isfinite(high):
        said += f" ({' to '.join(outwards(low, high, judgement.claim.edges))})"
    return f"{said} {judgement.claim.unit}".strip() if judgement.estimate is not None else ABSENT


UNPUBLISHED = "nobody published it"


def published(judgement: Judgement) -> str | None:
    """Write what was published, if anything, with its unit where it ends with a number and says the unit nowhere."""
    said, unit = judgement.claim.published, judgement.claim.unit
    if said is None:
        return None
    return f"{said} {unit}" if unit and unit not in said and said[-1:].isdigit() else said


def number(value: float | None) -> str:
    """Write a number of any size; one that is not finite by its name."""
    if value is not None and math.isinf(value):
        return "infinite" if value > 0 else "−infinite"
    if value is not None and finite(value) is None:
        return "no number"
    if value is not None and value == round(value) and 1000 <= abs(value) < 1e15:
        return f"{value:,.0f}".replace("-", "−")
    return small(value)


def figure_words(name: str) -> str:
    """Give a figure's name as a person writes it."""
    return name.replace("_", " ")


def figures_shown(result: StudyResult) -> list[str]:
    """Give the figures of the tables of rows: the study's, those published beside a row, all of a row that has none."""
    named = [*result.study.figures, *(name for row in result.rows for name in row.published)]
    for row in result.rows:
        own = {name: None for run in row.runs for name in run.figures}
        named += [] if set(named) & {*own, *row.published} else own
    there = {name for row in result.rows for run in row.runs for name in run.figures}
    there |= {name for row in result.rows for name in row.published}
    return [name for name in dict.fromkeys(named) if name in there]


def spread_in_words(row: RowResult, figure: str, places: int | None) -> str:
    """Write a row's figure, mean ± standard deviation; that a run diverged, where no run has it for that reason."""
    values = row.values(figure)
    if not values:
        return "diverged" if any(run.diverged for run in row.runs) else ABSENT
    spread: Spread | None = row.spread(figure)
    if spread is None:
        return number(next(iter(values.values())))
    of_a_formula = spread.lowest == spread.highest and (not row.variant or figure == "parameters")
    return number(spread.mean) if of_a_formula or places is None else plus_minus(spread, places)


def seeds_in_words(row: RowResult) -> str:
    """Write how many seeds a row has: "3", or "1 of 3"."""
    finished, asked = len(row.finished), len(row.runs)
    return str(finished) if finished == asked else f"{finished} of {asked}"


def basis(result: StudyResult) -> list[str]:
    """Say what the intervals stand on and what they were corrected for, a sentence each."""
    kinds = {judgement.basis for judgement in result.judgements}
    said: list[str] = []
    if "exact" in kinds:
        said.append(
            "Where no seed moves ours by more than rounding there is no interval: it has to lie in the band with every "
            "seed, and what stands in brackets is the least and the most."
        )
    if kinds & {"seeds", "pooled seeds", "assumed spread"}:
        level = result.judgements[0].level
        together = round(0.05 / (1 - level))
        percent = f"{100 * level:.4g} %"
        if together > 1:
            said.append(
                f"Each interval is of {percent}, so that all {together} that are uncertain hold together 95 times in "
                f"100 (Bonferroni)."
            )
        else:
            said.append(f"The interval is of {percent}.")
    if "pooled seeds" in kinds:
        said.append(
            "Rows are taken to scatter alike from seed to seed, in shares of their figures: what a seed does to all of "
            "them, and what it does to each by itself, is worked out of all rows together, and each of the two has a "
            "Student's t of its own."
        )
        pooled = [judgement.claim for judgement in result.judgements if judgement.basis == "pooled seeds"]
        said += _scatter_of(result, sorted({name for claim in pooled for _, name in claim.ours.reads()}))
    if "seeds" in kinds:
        which = (
            "a claim has two seeds more than all rows have, or yet more"
            if "pooled seeds" in kinds
            else "there are several seeds"
        )
        said.append(f"Where {which}, it is Student's t of the claim's value seed by seed.")
    if "assumed spread" in kinds:
        spread = f"{100 * (result.study.spread or 0):.3g} %"
        alike = f", and all alike by {100 * result.study.spread_alike:.3g} %" if result.study.spread_alike else ""
        because = result.study.spread_because.strip().rstrip(".")
        said.append(
            f"Where there is one seed, its spread is assumed and not measured: every figure may differ from seed to "
            f"seed by {spread} of itself (standard deviation), each by itself{alike}"
            + (f"; {because}." if because else ".")
        )
    return said


def _scatter_of(result: StudyResult, names: Iterable[str]) -> list[str]:
    """Say how much each figure scatters, of single rows too, by which a reader sees whether rows do scatter alike."""
    said = []
    for name in names:
        if (squares := mean_squares(result.rows, name)) is not None:
            each = [100 * math.sqrt(rest) for rest in squares.rest_of_rows]
            said.append(
                f"Of {figure_words(name)} a seed moves all rows by {100 * squares.alike:.2g} % (standard deviation) "
                f"and each by {100 * squares.apart:.2g} %, of single rows {min(each):.2g} to {max(each):.2g} %."
            )
    return said


def failures(result: StudyResult) -> list[str]:
    """Say which rows have no figures with which seeds, and why."""
    said = []
    for row in result.rows:
        for reason, seeds in reasons(row.runs).items():
            named = ("seed " if len(seeds) == 1 else "seeds ") + ", ".join(map(str, seeds))
            said.append(f"{row.name}, {named}: {reason}.")
    return said


PUBLISHED = "published"
"""What heads a column of figures as they were published."""


def capital(sentence: str) -> str:
    """Begin a sentence with a capital."""
    return sentence[:1].upper() + sentence[1:]


def environment(result: StudyResult) -> list[tuple[str, str]]:
    """Give where it was computed, by what it is; several values where runs had several."""
    return [(key, ", ".join(values)) for key, values in result.environment.items()]


def tables_of_rows(result: StudyResult) -> list[tuple[list[str], list[Sequence[str]]]]:
    """Give the tables of rows as text, each its head, and for each row ours beside what was published.

    Rows that are trained stand in one table, others with those that they share a figure with.
    """
    return [_table_of(figures, rows) for figures, rows in _groups(result)]


def _groups(result: StudyResult) -> list[tuple[list[str], list[RowResult]]]:
    """Give the figures of each table, and its rows."""
    shown = figures_shown(result)
    groups: list[tuple[set[str], list[RowResult]]] = []
    for row in result.rows:
        known = {name for name in shown if row.values(name) or name in row.published}
        for figures, rows in groups:
            both_trained = row.variant and any(other.variant for other in rows)
            if both_trained or not known or known & figures:
                figures |= known
                rows.append(row)
                break
        else:
            groups.append((known, [row]))
    return [([name for name in shown if name in figures], rows) for figures, rows in groups]


def _table_of(figures: Sequence[str], rows: Sequence[RowResult]) -> tuple[list[str], list[Sequence[str]]]:
    places = {name: _places([row.spread(name) for row in rows]) for name in figures}
    with_published = {name for row in rows for name in row.published}
    head = ["row"]
    for name in figures:
        head += [f"{figure_words(name)}, ours", PUBLISHED] if name in with_published else [figure_words(name)]
    lines: list[Sequence[str]] = []
    for row in rows:
        cells = [row.name]
        for name in figures:
            cells.append(spread_in_words(row, name, places[name]))
            if name in with_published:
                cells.append(row.published.get(name, ""))
        lines.append([*cells, seeds_in_words(row)])
    return [*head, "seeds"], lines


def _places(spreads: Sequence[Spread | None]) -> int | None:
    """Give the decimals of a column; None where single values of thousands and of units share it, each by itself."""
    known = [spread for spread in spreads if spread is not None and spread.mean]
    sizes = [abs(spread.mean) for spread in known]
    single = all(spread.deviation is None for spread in known)
    return None if known and single and max(sizes) >= 1000 and min(sizes) < 10 else places_for(spreads)
