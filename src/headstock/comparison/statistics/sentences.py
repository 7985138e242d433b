"""Verdicts in words: what was found, how sure it is, and what would have been seen or would help.

Only words are made here; every number comes from the verdict. Digits follow the interval: its ends are written, rounded
outwards, to the place where its width begins (whole numbers stay whole), and no end of a claim is written as zero.
"""

import math
from collections.abc import Callable, Mapping, Sequence

from headstock.comparison.statistics.hypotheses import Verdict
from headstock.comparison.statistics.power import FEWEST_SEEDS
from headstock.comparison.statistics.testing import OrderTest

Fixed = Mapping[str, float | None]
"""The value of each arm of a verdict that is a fixed model, scored and not trained; None where it gave no number."""


def sentence(verdict: Verdict, no_difference: bool, fixed: Fixed | None = None) -> str:
    """Put a verdict into words; `no_difference` says that the two arms agreed on every seed."""
    fixed = fixed or {}
    if len(fixed) == 2:
        said = _of_fixed_models(verdict, no_difference, fixed)
    elif verdict.test == "none":
        said = _nothing_tested(verdict, fixed)
    elif verdict.exploratory:
        said = _exploratory(verdict, no_difference)
    elif verdict.test == OrderTest.name:
        said = _order(verdict, no_difference)
    else:
        said = _metric(verdict, no_difference, fixed)
    return said + _left_out(verdict.dropped)


def _of_fixed_models(verdict: Verdict, no_difference: bool, fixed: Fixed) -> str:
    missing = [label for label, value in fixed.items() if value is None]
    if missing:
        return f"On {verdict.task}, {_both(verdict)} are not compared: {listed(missing)} gave no number."
    value, against = _apart(*(value for value in fixed.values() if value is not None), alike=no_difference)
    each = f"{verdict.arm} stands at {value} and {verdict.against} at {against}"
    if no_difference:
        each = f"{_both(verdict)} both stand at {value}"
    said = f"On {verdict.task}, {each} {_unit(verdict)}: fixed models, no seeds, so no interval."
    match verdict.solved:
        case None:
            return said
        case (1, 1):
            return f"{said} Both solve the task."
        case (0, 0):
            return f"{said} Neither solves the task."
        case arm, _:
            solves, not_so = (verdict.arm, verdict.against) if arm else (verdict.against, verdict.arm)
            return f"{said} {solves} solves the task and {not_so} does not."


def _apart(value: float, against: float, *, alike: bool) -> tuple[str, str]:
    """Write two numbers with four significant digits, or as many more as tell them apart."""
    for digits in range(4, 18):
        one, other = (f"{number:.{digits}g}".replace("-", "\N{MINUS SIGN}") for number in (value, against))
        if alike or one != other:
            break
    return one, other


def _nothing_tested(verdict: Verdict, fixed: Fixed) -> str:
    if verdict.kind == "not solved" and verdict.solved is not None and fixed:
        (model,) = fixed
        trained, solved, _ = _beside(verdict, model)
        return (
            f"On {verdict.task}, neither {trained}, in most of its seeds ({solved} of {verdict.pairs}), nor {model}, a "
            f"fixed model, solves the task: they are not ranked."
        )
    if verdict.kind == "not solved" and verdict.solved is not None:
        return (
            f"On {verdict.task}, neither {verdict.arm} nor {verdict.against} solves the task in most of its seeds "
            f"({verdict.solved[0]} and {verdict.solved[1]} of {verdict.pairs}): they are not ranked."
        )
    have = f"{_seeds(verdict.pairs)} gave both a result" if verdict.pairs else "no seed gave both a result"
    return f"On {verdict.task}, {_both(verdict)} are not compared: {have}, and a claim needs {FEWEST_SEEDS} or more."


def _exploratory(verdict: Verdict, no_difference: bool) -> str:
    estimate = verdict.estimate
    over = f"over {_seeds(verdict.pairs)}"
    if no_difference or estimate is None or estimate == 0:
        found = f"{_both(verdict)} came out alike {over}"
    elif verdict.kind == "both solved":
        found = (
            f"{_both(verdict)} both solve the task, {verdict.arm} with {abs(estimate):.0f} "
            f"{'fewer' if estimate < 0 else 'more'} steps in the median {over}"
        )
    else:
        found = (
            f"{verdict.arm} averaged {significant(abs(estimate))} {_unit(verdict)} "
            f"{'below' if estimate < 0 else 'above'} {verdict.against} {over}"
        )
    return f"Exploratory: on {verdict.task}, {found}; this plan can reach no claim."


def _metric(verdict: Verdict, no_difference: bool, fixed: Fixed) -> str:
    if verdict.claim and verdict.interval is not None:
        said = (
            f"On {verdict.task}, {verdict.arm} is {verdict.kind} than {verdict.against} by {_sizes(verdict.interval)} "
            f"{_unit(verdict)} ({_basis(verdict)})."
        )
    elif no_difference:
        said = f"On {verdict.task}, {_both(verdict)} show no difference in any of {_seeds(verdict.pairs)}."
    else:
        said = f"On {verdict.task}, {_both(verdict)} are not distinguishable{_what_would_be_seen(verdict)}"
    return said + _who_solved(verdict, fixed)


def _what_would_be_seen(verdict: Verdict) -> str:
    if verdict.seen is None or verdict.more_seeds is None or verdict.more_seeds_see is None:
        return "."
    return (
        f": a difference above {significant(verdict.seen)} {_unit(verdict)} would have been seen 8 times in 10. "
        f"{verdict.more_seeds} more {_noun(verdict.more_seeds)} would see {significant(verdict.more_seeds_see)}."
    )


def _order(verdict: Verdict, no_difference: bool) -> str:
    if verdict.claim and verdict.interval is not None:
        low, high = verdict.interval
        fewer = high is not None and high < 0
        near, far = (high, low) if fewer else (low, high)
        count = f"at least {_whole(near)}" if far is None else _whole(near)
        if far is not None and far != near:
            count += f" to {_whole(far)}"
        return (
            f"On {verdict.task}, {verdict.arm} needs {count} {'fewer' if fewer else 'more'} steps "
            f"than {verdict.against} ({_basis(verdict)})."
        )
    both = f"On {verdict.task}, {_both(verdict)} both solve the task"
    if no_difference:
        return f"{both}, at the same step in each of {_seeds(verdict.pairs)}."
    said = (
        f"{both}; which of them needs fewer steps is not distinguishable ({_steps_between(verdict)}{_basis(verdict)})."
    )
    if verdict.more_seeds:
        more = verdict.more_seeds
        they = "it" if more == 1 else "all of them"
        said += f" {more} more {_noun(more)} would show an order if {they} agreed with most so far."
    return said


def _steps_between(verdict: Verdict) -> str:
    """Give the interval of an order that is not claimed, "differential: 20 fewer to 60 more; ", or nothing."""
    low, high = verdict.interval or (None, None)
    if low is None and high is None:
        return ""
    if low is None:
        between = f"at most {_whole(high)} more"
    elif high is None:
        between = f"at most {_whole(low)} fewer"
    elif low == high == 0:
        between = "0 more"
    elif high == 0:
        between = f"0 to {_whole(low)} fewer"
    else:
        between = f"{'0' if low == 0 else _whole(low) + ' fewer'} to {_whole(high)} more"
    return f"{verdict.arm}: {between}; "


def _basis(verdict: Verdict) -> str:
    parts = [_seeds(verdict.pairs)]
    if verdict.look > 1:
        parts.append(f"look {verdict.look}")
    if verdict.tests > 1:
        parts.append(f"corrected for {verdict.tests} tests")
    return ", ".join(parts)


def _who_solved(verdict: Verdict, fixed: Fixed) -> str:
    if verdict.solved is None:
        return ""
    for model in fixed:
        trained, solved, by_model = _beside(verdict, model)
        does = "solves it" if by_model else "does not"
        return f" Solved by {trained} in {solved} of {_seeds(verdict.pairs)}; {model}, a fixed model, {does}."
    arm, against = verdict.solved
    return f" Solved by {verdict.arm} in {arm} and by {verdict.against} in {against} of {_seeds(verdict.pairs)}."


def _beside(verdict: Verdict, model: str) -> tuple[str, int, int]:
    """Give the trained arm beside a fixed model, and how many of the pairs it and the model solved."""
    arm, against = verdict.solved or (0, 0)
    return (verdict.against, against, arm) if model == verdict.arm else (verdict.arm, arm, against)


def _left_out(dropped: Sequence[int]) -> str:
    if not dropped:
        return ""
    named = listed([str(seed) for seed in dropped])
    if len(dropped) == 1:
        return f" Seed {named} is left out: a run of it gave no number."
    return f" Seeds {named} are left out: a run of each gave no number."


def _sizes(interval: tuple[float | None, float | None]) -> str:
    """Give "0.31 to 0.36", the sizes between which a claimed difference lies, or "up to 0.36"."""
    near, far = sorted(abs(end) for end in interval if end is not None)
    decimals = max(0, -math.floor(math.log10((far - near) / 2)))
    for places in range(decimals, decimals + 3):
        if (lesser := _rounded(near, places, math.floor)) > 0:
            return f"{lesser:.{places}f} to {_rounded(far, places, math.ceil):.{places}f}"
    return f"up to {_rounded(far, decimals, math.ceil):.{decimals}f}"


def _rounded(size: float, places: int, towards: Callable[[float], int]) -> float:
    """Round down or up, but leave alone what is that round already."""
    scaled = size * 10**places
    nearest = round(scaled)
    return float((nearest if math.isclose(scaled, nearest, rel_tol=1e-9) else towards(scaled)) / 10**places)


def significant(value: float, digits: int = 2) -> str:
    """Write a positive number with two significant digits, in plain notation where that can be read."""
    rounded = float(f"{value:.{digits - 1}e}")
    if rounded != 0 and not 1e-6 < rounded < 1e9:
        return f"{value:.{digits - 1}e}"
    place = math.floor(math.log10(rounded)) if rounded else 0
    return f"{rounded:.{max(0, digits - 1 - place)}f}"


def listed(words: Sequence[str]) -> str:
    """Give "a", "a and b", "a, b and c"."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _both(verdict: Verdict) -> str:
    return f"{verdict.arm} and {verdict.against}"


def _unit(verdict: Verdict) -> str:
    return verdict.interval_unit or f"in {verdict.metric}"


def _whole(steps: float | None) -> str:
    return "any number" if steps is None else f"{abs(steps):.0f}"


def _noun(count: int) -> str:
    return "seed" if count == 1 else "seeds"


def _seeds(count: int) -> str:
    return f"{count} {_noun(count)}"
