"""Whether ours agrees with what was published: for each claim an interval of ours, held against the claim's band.

An interval inside the band: reproduced. One wholly outside it: not reproduced. Any other: not decidable. A claim that
nobody published is upheld or not. Intervals are Bonferroni's: each claim's is as wide as makes all of a study's claims
hold together 95 times in 100.

    several seeds   Student's t interval of the claim's value, which is worked out of one seed's figures at a time
    pooled seeds    where the study says that its rows scatter alike: the spread of all rows together, of which a part
                    is what a seed does to all of them (scatter.py); a claim with two seeds more than all rows have
                    stands on its own
    one seed        where the study says so, figures may be off by relative standard deviations that are assumed, each
                    by itself and all of them together
    exact           figures that follow from formulas: no interval, every seed's value has to lie in the band, and no
                    share in the correction

Knows nothing of how a row is run.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from statistics import NormalDist, fmean, stdev
from typing import Any, Literal

from headstock.pictures.numbers import count, outwards, small
from headstock.studies.base import Claim, Study
from headstock.studies.figures import Ours
from headstock.studies.runs import DIVERGED, RowResult, RowRun, with_plain_numbers
from headstock.studies.scatter import assumed_deviation, mean_squares, pooled_reach, slopes

ALPHA = 0.05
"""How often, at most, any of a study's intervals may miss."""

COUNTED = "parameters"
"""The figure of a trained row that no seed moves."""

Verdict = Literal["reproduced", "not reproduced", "upheld", "not upheld", "not decidable"]
OF_ITS_OWN: Mapping[Verdict, Verdict] = {"reproduced": "upheld", "not reproduced": "not upheld"}
"""What is said of a claim that nobody published."""
Basis = Literal["exact", "seeds", "pooled seeds", "assumed spread", "none"]


@dataclass(frozen=True)
class Judgement:
    """What is said of one claim."""

    claim: Claim
    values: Mapping[int, float]
    """Ours by seed."""
    estimate: float | None
    """Their mean."""
    low: float | None
    high: float | None
    """The interval's ends, which may be infinite; None where there is no interval."""
    basis: Basis
    level: float
    """Of the study's intervals, each by itself, such as 0.996."""
    verdict: Verdict
    why: str
    """One sentence."""

    @property
    def agrees(self) -> bool | None:
        """Whether ours lies in the band; None where that is not decidable."""
        return None if self.verdict == "not decidable" else self.verdict in ("reproduced", "upheld")

    def to_dict(self) -> dict[str, Any]:
        """Give everything in JSON's terms."""
        claim = self.claim
        said = {
            "says": claim.says,
            "published": claim.published,
            "because": claim.because,
            "at_least": claim.at_least,
            "at_most": claim.at_most,
            "strict": claim.strict,
            "unit": claim.unit,
            "full_only": claim.full_only,
            "reads": sorted(map(list, claim.ours.reads())),
            "values": {str(seed): value for seed, value in self.values.items()},
            "estimate": self.estimate,
            "low": self.low,
            "high": self.high,
            "basis": self.basis,
            "level": self.level,
            "verdict": self.verdict,
            "why": self.why,
        }
        found: dict[str, Any] = with_plain_numbers(said)
        return found


def one_seed_decides(study: Study, claim: Claim) -> bool:
    """Say whether one seed of its rows gives a claim an interval, or needs none."""
    if _is_exact(study, claim):
        return True
    return study.spread is not None and (not study.spread_of or _names(claim) <= set(study.spread_of))


def judge(study: Study, rows: Sequence[RowResult], *, as_published: bool) -> list[Judgement]:
    """Judge every claim; `as_published` says whether the rows had the document's own budget."""
    by_name = {row.name: row for row in rows}
    ruled_out = [_ruled_out(claim, by_name, as_published) for claim in study.claims]
    uncertain = [why is None and not _is_exact(study, c) for why, c in zip(ruled_out, study.claims, strict=True)]
    level = 1 - ALPHA / max(1, sum(uncertain))
    return [_judged(study, c, by_name, why, level) for why, c in zip(ruled_out, study.claims, strict=True)]


def _is_exact(study: Study, claim: Claim) -> bool:
    return study.exact or claim.exact or {name for _, name in claim.ours.reads()} == {COUNTED}


def _ruled_out(claim: Claim, rows: Mapping[str, RowResult], as_published: bool) -> str | None:
    """Say why the budget cannot decide a claim, whatever comes out; None where it can."""
    absent = sorted({row for row, _ in claim.ours.reads()} - set(rows))
    if absent:
        return f"At this budget {absent[0]} is not run."
    if claim.full_only and not as_published:
        return "What was published is of the whole training, which this budget does not give."
    return None


def _judged(
    study: Study, claim: Claim, rows: Mapping[str, RowResult], ruled_out: str | None, level: float
) -> Judgement:
    values, lacking, diverged = _values(claim, rows)
    estimate = _mean(list(values.values()))
    basis: Basis = "none"
    low = high = None
    with suppress(OverflowError):  # figures near the largest float have no spread
        basis, low, high = _interval(study, claim, rows, values, level)

    def said(verdict: Verdict, why: str) -> Judgement:
        named = verdict if claim.published is not None else OF_ITS_OWN.get(verdict, verdict)
        return Judgement(claim, values, estimate, low, high, basis, level, named, why)

    if ruled_out is not None:
        return said("not decidable", ruled_out)
    if diverged is not None:
        return said("not decidable", f"{diverged}, and that is no figure.")
    if not values:
        return said("not decidable", f"{lacking or 'Nothing was run'}.")
    if any(math.isnan(value) for value in values.values()):
        return said(
            "not decidable",
            "Ours is no number: a figure in it is none, or zero or infinity stands where it cannot be worked out.",
        )
    if low is None or high is None:
        return said("not decidable", _without_interval(values))
    verdict = _verdict(low, high, claim)
    if verdict == "not decidable" and basis == "exact" and low < high:
        return said(verdict, f"Seeds disagree: ours is {_ends(low, high, claim)}, and the band is {band(claim)}.")
    return said(verdict, _sentence(claim, low, high, verdict, basis, len(values)))


def _values(claim: Claim, rows: Mapping[str, RowResult]) -> tuple[dict[int, float], str | None, str | None]:
    """Give ours by seed; the first reason why a seed has none; the first run that diverged, where that is no answer."""
    read = sorted({row for row, _ in claim.ours.reads()})
    runs = {name: {run.seed: run for run in rows[name].runs} for name in read if name in rows}
    values: dict[int, float] = {}
    lacking = diverged = None
    for seed in sorted({seed for by_seed in runs.values() for seed in by_seed}):
        of_seed = {name: by_seed[seed] for name, by_seed in runs.items() if seed in by_seed}
        for name, run in of_seed.items():
            if run.status != "finished" and not (run.diverged and claim.divergence_counts):
                lacking = lacking or f"{name}, seed {seed}: {(run.reason or 'not run yet').rstrip('.')}"
                if run.diverged:
                    diverged = diverged or f"{name} failed with seed {seed}: {(run.reason or '').rstrip('.')}"
        figures = {name: _figures(run, claim) for name, run in of_seed.items()}
        try:
            values[seed] = _worked_out(claim.ours, figures)
        except KeyError:
            missing = [f"{row} has no figure {name!r}" for row, name in sorted(claim.ours.reads())
                       if row in figures and name not in figures[row]]  # fmt: skip
            lacking = lacking or f"With seed {seed}, {(missing or ['a row was not run'])[0]}"
    return values, lacking, diverged


def _figures(run: RowRun, claim: Claim) -> Mapping[str, float]:
    return {**run.figures, **DIVERGED} if run.diverged and claim.divergence_counts else run.figures


def _worked_out(ours: Ours, figures: Mapping[str, Mapping[str, float]]) -> float:
    """Give a claim's value; NaN where it is undefined."""
    try:
        return float(ours.of(figures))
    except (ZeroDivisionError, ValueError):
        return math.nan
    except OverflowError:
        return math.inf


def _mean(values: list[float]) -> float | None:
    if not values:
        return None
    if len(set(values)) == 1:
        return values[0]
    try:
        return fmean(values)
    except (OverflowError, ValueError):  # infinities of either sign
        return math.nan


def _interval(
    study: Study, claim: Claim, rows: Mapping[str, RowResult], by_seed: Mapping[int, float], level: float
) -> tuple[Basis, float | None, float | None]:
    """Give the interval and what it stands on."""
    values = list(by_seed.values())
    if not values or any(math.isnan(value) for value in values):
        return "none", None, None
    if _is_exact(study, claim):
        return "exact", min(values), max(values)
    if len(values) == 1:
        if study.spread is None or not one_seed_decides(study, claim):
            return "none", None, None
        (seed,) = by_seed
        figures = {row.name: _figures(run, claim) for row in rows.values() for run in row.runs if run.seed == seed}
        if not all(figures[row][name] for row, name in claim.ours.reads()):  # a share of zero says nothing
            return "none", None, None
        slope = slopes(claim.ours, figures, _names(claim), step=study.spread) if math.isfinite(values[0]) else {}
        off = assumed_deviation(slope.values(), study.spread, study.spread_alike)
        reach = NormalDist().inv_cdf((1 + level) / 2) * off
        return "assumed spread", *_around(values[0], reach)
    if any(math.isinf(value) for value in values):
        if len(set(values)) == 1:  # diverged with every seed
            return "seeds", values[0], values[0]
        return "none", None, None
    if study.pooled:
        found = {name: mean_squares(rows.values(), name) for name in _names(claim)}
        squares = {name: one for name, one in found.items() if one is not None and len(values) < one.n_seeds + 2}
        means = _mean_figures(rows, by_seed)
        if len(squares) == len(found) and all(means[row][name] > 0 for row, name in claim.ours.reads()):
            reach = pooled_reach(slopes(claim.ours, means, squares), squares, len(values), level)
            return "pooled seeds", *_around(fmean(values), reach)
    from scipy.stats import t

    off = stdev(values) / math.sqrt(len(values))
    return "seeds", *_around(fmean(values), float(t.ppf((1 + level) / 2, len(values) - 1)) * off if off else 0.0)


def _around(value: float, reach: float) -> tuple[float, float]:
    return (value, value) if math.isinf(value) else (value - reach, value + reach)


def _names(claim: Claim) -> set[str]:
    """Give the names of the figures that a claim reads and that seeds move."""
    return {name for _, name in claim.ours.reads()} - {COUNTED}


def _mean_figures(rows: Mapping[str, RowResult], seeds: Iterable[int]) -> dict[str, dict[str, float]]:
    """Give each row's mean figures over seeds."""
    means: dict[str, dict[str, float]] = {}
    for name, row in rows.items():
        given = [run.figures for run in row.runs if run.seed in set(seeds) and run.figures]
        shared = set.intersection(*(set(figures) for figures in given)) if given else set()
        means[name] = {figure: fmean(figures[figure] for figures in given) for figure in shared}
    return means


def _verdict(low: float, high: float, claim: Claim) -> Verdict:
    if claim.strict and low == high and low in (claim.at_least, claim.at_most):
        return "not decidable"
    if claim.at_least <= low and high <= claim.at_most:
        return "reproduced"
    if high < claim.at_least or low > claim.at_most:
        return "not reproduced"
    return "not decidable"


ONE_SEED = "One seed says nothing of how far another would be from it: run more with --seeds."


def _without_interval(values: Mapping[int, float]) -> str:
    if len(values) == 1:
        return ONE_SEED
    return "Some seeds diverged and others did not, so that no interval stands behind their mean."


def _sentence(claim: Claim, low: float, high: float, verdict: Verdict, basis: Basis, seeds: int) -> str:
    what = f"Ours, {_ends(low, high, claim)},"
    if verdict == "reproduced":
        return f"{what} lies inside the band, {band(claim)}."
    if verdict == "not reproduced":
        return f"{what} lies {'below' if high < claim.at_least else 'above'} the band, {band(claim)}."
    if low == high:
        return f"{what} is neither side of the edge of the band, {band(claim)}, with any seed."
    more = (
        "seeds of its own would say more than an assumed spread"
        if basis == "assumed spread"
        else "more seeds would narrow it"
    )
    said = "with the spread that is assumed" if basis == "assumed spread" else f"on {count(seeds, 'seed')}"
    return f"{what} {said}, reaches over the edge of the band, {band(claim)}; {more}."


def band(claim: Claim) -> str:
    """Write a claim's band: "2 to 4", "at least 2", "exactly 7"."""
    if claim.at_least == claim.at_most:
        return f"exactly {_exactly(claim.at_least)}"
    if math.isinf(claim.at_least) and math.isinf(claim.at_most):
        return "any number"
    if math.isinf(claim.at_most):
        return f"{'above' if claim.strict else 'at least'} {_exactly(claim.at_least)}"
    if math.isinf(claim.at_least):
        return f"{'below' if claim.strict else 'at most'} {_exactly(claim.at_most)}"
    return f"{_exactly(claim.at_least)} to {_exactly(claim.at_most)}"


def _exactly(value: float) -> str:
    written = f"{value:,.0f}" if value == round(value) and abs(value) < 1e15 else f"{value:.6g}"
    return written.replace("-", "−")


def _ends(low: float, high: float, claim: Claim) -> str:
    if math.isinf(low) or math.isinf(high):
        return ("infinite" if low > 0 else "−infinite") if low == high else "without end"
    if low == high:
        return _exactly(low) if low == round(low) else small(low)
    return " to ".join(outwards(low, high, claim.edges))
