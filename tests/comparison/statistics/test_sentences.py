import dataclasses

import pytest

from headstock.comparison.statistics.sentences import listed, significant
from headstock.comparison.statistics.sentences import sentence as wording
from headstock.comparison.statistics.verdicts import ArmResult, TaskResult, judge


def said(better, unit, solved_at, arms, look=1):
    arms = [ArmResult(name, False, dict(enumerate(values)), dict(enumerate(steps))) for name, values, steps in arms]
    return judge([TaskResult("words", "score", unit, better, solved_at, 600, 1e-3, arms)], look)[0]


def metric(softmax, uniform, unit="bits per byte", better="lower", look=1):
    return said(better, unit, None, [("softmax", softmax, ()), ("uniform", uniform, ())], look).sentence


def order(*columns):
    arms = zip(("softmax", "differential"), columns, strict=True)
    return said("higher", "", 0.9, [(name, [1.0 if s else 0.5 for s in steps], steps) for name, steps in arms]).sentence


BASE = [2.30, 2.31, 2.29, 2.33, 2.28, 2.32, 2.30, 2.31]
WORSE = [2.63, 2.65, 2.63, 2.64, 2.64, 2.65, 2.62, 2.66]
CLAIMED = said("lower", "bits per byte", None, [("softmax", BASE, ()), ("uniform", WORSE, ())])
STEPS = [400, 420, 380, 460, 440, 400, 420, 380]


READINGS = {
    "worse": (metric(BASE, WORSE), "uniform is worse than softmax by 0.32 to 0.35 bits per byte (8 seeds)."),
    "better": (metric(WORSE, BASE), "uniform is better than softmax by 0.32 to 0.35 bits per byte (8 seeds)."),
    "higher is better": (
        metric(BASE, WORSE, better="higher", unit=""),
        "uniform is better than softmax by 0.32 to 0.35 in score (8 seeds).",
    ),
    "a later look": (
        metric(BASE, WORSE, look=2),
        "uniform is worse than softmax by 0.30 to 0.37 bits per byte (8 seeds, look 2).",
    ),
    "not distinguishable": (
        metric(BASE, BASE[::-1]),
        "uniform and softmax are not distinguishable: a difference above 0.042 bits per byte would have been seen "
        "8 times in 10. 44 more seeds would see 0.021.",
    ),
    "no difference": (metric(BASE, BASE), "uniform and softmax show no difference in any of 8 seeds."),
    "too few seeds": (
        metric(BASE[:2], WORSE[:2]),
        "uniform and softmax are not compared: 2 seeds gave both a result, and a claim needs 3 or more.",
    ),
    "failed runs": (
        metric(BASE, [None, *WORSE[1:6], None, None]),
        "uniform is worse than softmax by 0.31 to 0.36 bits per byte (5 seeds). "
        "Seeds 0, 6 and 7 are left out: a run of each gave no number.",
    ),
    "every run failed": (
        metric(BASE, [None] * 8),
        "uniform and softmax are not compared: no seed gave both a result, and a claim needs 3 or more. "
        "Seeds 0, 1, 2, 3, 4, 5, 6 and 7 are left out: a run of each gave no number.",
    ),
    "fewer steps": (
        order(STEPS, [s - 60 - 10 * i for i, s in enumerate(STEPS)]),
        "differential needs 60 to 130 fewer steps than softmax (8 seeds).",
    ),
    "more steps": (
        order(STEPS, [s + 20 for s in STEPS]),
        "differential needs 20 more steps than softmax (8 seeds).",
    ),
    "one never came": (
        order([*STEPS[:7], None], [300] * 8),
        "differential needs at least 80 fewer steps than softmax (8 seeds).",
    ),
    "both solved": (
        order(STEPS, [300, 320, *STEPS[2:6], 500, 520]),
        "differential and softmax both solve the task; which of them needs fewer steps is not distinguishable "
        "(differential: 100 fewer to 140 more; 8 seeds). 21 more seeds would show an order if all of them agreed with "
        "most so far.",
    ),
    "at the same step": (
        order(STEPS, STEPS),
        "differential and softmax both solve the task, at the same step in each of 8 seeds.",
    ),
    "not solved": (
        order([*STEPS[:3], *[None] * 5], [*STEPS[:4], *[None] * 4]),
        "neither differential nor softmax solves the task in most of its seeds (4 and 3 of 8): they are not ranked.",
    ),
    "one of two solved": (
        order(STEPS, [*STEPS[:1], *[None] * 7]),
        "differential is worse than softmax by 0.2 to 0.6 in score (8 seeds). "
        "Solved by differential in 1 and by softmax in 8 of 8 seeds.",
    ),
}


@pytest.mark.parametrize("reading", READINGS)
def test_a_verdict_reads(reading):
    sentence, expected = READINGS[reading]
    assert sentence == f"On words, {expected}"


@pytest.mark.parametrize(
    ("low", "high", "written"),
    [
        (0.31, 0.36, "0.31 to 0.36"),
        (0.004, 0.05, "0.004 to 0.050"),
        (1e-7, 0.05, "up to 0.05"),
        (1204.2, 1303.9, "1204 to 1304"),
    ],
)
def test_digits_follow_the_width_of_the_interval_and_no_claim_is_written_as_zero(low, high, written):
    for interval in ((low, high), (-high, -low)):
        verdict = dataclasses.replace(CLAIMED, interval=interval)
        assert f" by {written} bits per byte " in wording(verdict, no_difference=False)


def exploratory(values_a, values_b, solved_at=None, steps_a=(), steps_b=()):
    arms = [(str(i), [float(i)] * 3, ()) for i in range(6)]
    return said("higher", "points", solved_at, [("a", values_a, steps_a), ("b", values_b, steps_b), *arms]).sentence


@pytest.mark.parametrize(
    ("sentence", "found"),
    [
        (exploratory([1.0, 1.1, 1.2], [0.9, 0.9, 1.2]), "b averaged 0.10 points below a over 3 seeds"),
        (exploratory([1.0] * 3, [1.5] * 3), "b averaged 0.50 points above a over 3 seeds"),
        (exploratory([1.0] * 3, [1.0] * 3), "b and a came out alike over 3 seeds"),
        (
            exploratory([1.0] * 3, [1.0] * 3, 0.9, [100] * 3, [60, 80, 90]),
            "b and a both solve the task, b with 20 fewer steps in the median over 3 seeds",
        ),
    ],
)
def test_an_exploratory_verdict_says_what_was_measured_and_claims_nothing(sentence, found):
    assert sentence == f"Exploratory: on words, {found}; this plan can reach no claim."


def test_the_number_of_tests_is_said_where_there_are_several():
    arms = [("softmax", BASE, ()), ("uniform", WORSE, ()), ("linear", WORSE, ())]
    assert said("lower", "bits per byte", None, arms).sentence.endswith("(8 seeds, corrected for 2 tests).")


@pytest.mark.parametrize(
    ("value", "written"),
    [(0.02134, "0.021"), (0.0999, "0.10"), (1.0, "1.0"), (12.3, "12"), (12345, "12000"), (1e-9, "1.0e-09"), (0, "0.0")],
)
def test_numbers_have_two_significant_digits(value, written):
    assert significant(value) == written


def test_words_are_listed():
    assert [listed("a"), listed("ab"), listed("abc")] == ["a", "a and b", "a, b and c"]


def beside_fixed(trained, value, against=None, solved_at=0.9, resolution=1e-3):
    arms = [ArmResult("program", False, dict.fromkeys(range(8), value), fixed=True)]
    if against is None:
        arms.append(ArmResult("softmax", False, dict(enumerate(trained))))
    else:
        arms.append(ArmResult("other", False, dict.fromkeys(range(8), against), fixed=True))
    return judge([TaskResult("words", "score", "points", "higher", solved_at, 600, resolution, arms)], 1)[0].sentence


NOISY = [0.95, 0.96, 0.94, 0.97, 0.95, 0.96, 0.93, 0.98]
FIXED_READINGS = {
    "worse": (
        beside_fixed(NOISY, 1.0),
        "softmax is worse than program by 0.03 to 0.06 points (8 seeds). "
        "Solved by softmax in 8 of 8 seeds; program, a fixed model, solves it.",
    ),
    "better": (
        beside_fixed(NOISY, 0.5),
        "softmax is better than program by 0.44 to 0.47 points (8 seeds). "
        "Solved by softmax in 8 of 8 seeds; program, a fixed model, does not.",
    ),
    "not solved": (
        beside_fixed([*NOISY[:3], *[0.5] * 5], 0.6),
        "neither softmax, in most of its seeds (3 of 8), nor program, a fixed model, solves the task: they are not "
        "ranked.",
    ),
    "two": (
        beside_fixed((), 1.0, 0.95),
        "other stands at 0.95 and program at 1 points: fixed models, no seeds, so no interval. Both solve the task.",
    ),
    "two, one solves": (
        beside_fixed((), 1.0, -0.25),
        "other stands at −0.25 and program at 1 points: fixed models, no seeds, so no interval. program solves the "
        "task and other does not.",
    ),
    "two, neither solves": (
        beside_fixed((), 0.25, 0.25),
        "other and program both stand at 0.25 points: fixed models, no seeds, so no interval. Neither solves the task.",
    ),
    "two, close": (
        beside_fixed((), 0.912341, 0.912342, solved_at=None, resolution=1e-7),
        "other stands at 0.912342 and program at 0.912341 points: fixed models, no seeds, so no interval.",
    ),
    "two, one of them without a number": (
        beside_fixed((), 1.0, float("nan")),
        "other and program are not compared: other gave no number.",
    ),
}


@pytest.mark.parametrize("reading", FIXED_READINGS)
def test_a_verdict_on_a_fixed_model_reads(reading):
    sentence, expected = FIXED_READINGS[reading]
    assert sentence == f"On words, {expected}"
