import itertools
import random
from fractions import Fraction
from functools import cache
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headstock import programs as p
from headstock.errors import UserError
from headstock.model.cache import Cache
from headstock.programs.compiled import Compiled
from tests.programs.cases import CASES, Case

REVERSE = p.aggregate(p.select(p.indices, p.length - 1 - p.indices), p.tokens, by="best")
HIST = p.width(p.select(p.tokens, p.tokens))


def compiled_for(case: Case) -> Compiled:
    """Give the model of a case's program, one for all cases of a program, a vocabulary and a mode."""

    def said(other: Case) -> tuple[Any, ...]:
        return other.made.name, other.causal, None if other.vocabulary is None else tuple(other.vocabulary)

    same = [place for place, other in enumerate(CASES) if said(other) == said(case)]
    return compiled_once(same[0], max(len(CASES[place].given) for place in same))


@cache
def compiled_once(first: int, longest: int) -> Compiled:
    case = CASES[first]
    return p.compile(case.program, vocab=case.vocabulary, max_length=longest, causal=case.causal)


def full_if_slow(case: Case) -> Any:
    return pytest.param(case, marks=pytest.mark.full if case.made.name.startswith("addition") else ())


@pytest.mark.parametrize("case", list(map(full_if_slow, CASES)), ids=str)
def test_a_model_computes_what_its_program_says(case: Case) -> None:
    answer = compiled_for(case)(case.given)
    assert answer == case.right
    assert [type(value) for value in answer] == [type(value) for value in case.right]


@pytest.mark.full
@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_case_is_exact_on_its_whole_domain(case: Case) -> None:
    tokens = len(case.vocabulary or case.made.vocabulary)
    longest = next((n for n in range(len(case.given), 0, -1) if tokens**n < 20_000), 1)
    compiled = p.compile(
        case.program, vocab=case.vocabulary, max_length=longest, causal=case.causal, prove="exhaustive"
    )
    assert compiled.certificate.exhaustive
    assert compiled.certificate.compared == compiled.domain.sequences


# What other compilers are known to get wrong


@pytest.mark.parametrize("n", [11, 50])
def test_a_length_of_eleven_and_of_fifty_is_exact(n: int) -> None:
    compiled = p.compile(p.length, vocab="ab", max_length=n, causal=False)
    for length in (1, n // 2, n - 1, n):
        assert compiled("ab" * (length // 2) + "a" * (length % 2)) == [length] * length


@pytest.mark.parametrize("n", [11, 50])
def test_a_count_of_eleven_and_of_fifty_is_exact(n: int) -> None:
    compiled = p.compile(p.width(p.select(p.tokens, p.tokens)), vocab="ab", max_length=n, causal=False)
    draws = random.Random(0)
    texts = ["".join(draws.choice("ab") for _ in range(n)) for _ in range(20)]
    assert compiled.batch(texts) == [[text.count(letter) for letter in text] for text in texts]
    assert compiled("a" * n) == [n] * n


def test_a_program_that_looks_ahead_is_not_compiled_causally() -> None:
    with pytest.raises(
        UserError, match=r"looks ahead: it uses p.length, and a causal program cannot know .*causal=False"
    ):
        p.compile(REVERSE, vocab=[1, 2, 3], max_length=3, causal=True)
    ahead = p.aggregate(p.offset(1), p.tokens, by="best")
    with pytest.raises(
        UserError, match=r"ahead \(test_compiled.py:\d+\) reads position 1 from position 0 .*causal=False"
    ):
        p.compile(ahead, vocab="ab", max_length=3, causal=True)
    assert p.compile(REVERSE, vocab=[1, 2, 3], max_length=3, causal=False)([1, 2, 3]) == [3, 2, 1]
    assert p.compile(ahead, vocab="ab", max_length=3, causal=False)("aab") == ["a", "b", None]


@pytest.mark.parametrize("causal", [False, True])
def test_two_different_selectors_are_put_together_by_and(causal: bool) -> None:
    earlier_same = p.select(p.tokens, p.tokens) & p.before
    program = p.width(earlier_same)
    compiled = p.compile(program, vocab="abc", max_length=6, causal=causal)
    assert compiled("abaacb") == [0, 0, 1, 2, 0, 1]


def test_none_that_reaches_arithmetic_is_refused_unless_a_default_is_given() -> None:
    previous = p.aggregate(p.offset(-1), p.indices, by="best")
    with pytest.raises(UserError, match=r"\+ \(test_compiled.py:\d+\) fails on None, 1 .*give it a default"):
        p.compile(previous + 1, vocab="ab", max_length=4)
    defined = p.aggregate(p.offset(-1), p.indices, by="best", default=-5)
    assert p.compile(defined + 1, vocab="ab", max_length=4)("abab") == [-4, 1, 2, 3]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("by", ["mean", "sum", "max", "min", "best"])
def test_any_values_are_aggregated_in_every_way(by: Any, causal: bool) -> None:
    for values in (p.tokens, p.indices / 3 - p.tokens, p.tokens == 7):
        program = p.aggregate(p.select(p.tokens, p.tokens, "<") & p.up_to_here, values, by=by, default=-11)
        compiled = p.compile(program, vocab=[-2, 7, 5], max_length=3, causal=causal)
        texts = list(itertools.product([-2, 7, 5], repeat=3))
        assert compiled.batch(texts) == [p.interpret(program, text, causal=causal) for text in texts]


def test_names_change_no_weight_and_no_answer() -> None:
    def written(name: str) -> Compiled:
        seen = p.width(p.select(p.tokens, p.tokens)).named(name)
        return p.compile((seen * seen - seen).named(f"of {name}"), vocab="abc", max_length=5)

    one, other = written("histogram"), written("x")
    assert all(torch.equal(a, b) for a, b in zip(one.model.parameters(), other.model.parameters(), strict=True))
    assert one("aabac") == other("aabac") == p.interpret(one.program, "aabac", causal=one.domain.causal)


def test_the_unembedding_is_in_the_weights() -> None:
    compiled = p.compile(REVERSE, vocab="abc", max_length=4, causal=False)
    ids, _ = compiled.readout.ids_of([list("abcc")])
    likeliest = compiled.model(ids)[0].argmax(-1).tolist()
    assert [compiled.readout.names[token] for token in likeliest][-4:] == list("ccba")


@pytest.mark.parametrize("causal", [False, True])
def test_at_fifty_tokens_every_error_stays_within_the_bound_that_the_certificate_states(causal: bool) -> None:
    share = p.aggregate(p.up_to_here, p.tokens == "a")
    compiled = p.compile(share, vocab="ab", max_length=50, causal=causal)
    certificate = compiled.certificate
    assert certificate.measured_error <= certificate.largest_error < 1e-4
    assert certificate.smallest_margin > 1
    text = "ab" * 20 + "b" * 10
    assert compiled(text) == [Fraction(text[: at + 1].count("a"), at + 1) for at in range(50)]


def test_what_is_outside_the_domain_is_refused() -> None:
    compiled = p.compile(HIST, vocab="abc", max_length=3)
    with pytest.raises(UserError, match="'d' is not in the program's vocabulary"):
        compiled("abd")
    with pytest.raises(UserError, match="has 4 tokens, and the program is compiled for 1 to 3"):
        compiled("abca")
    with pytest.raises(UserError, match="has 0 tokens"):
        compiled("")


@pytest.mark.parametrize("dtype", ["float64", "bfloat16", "float16"])
def test_a_model_in_another_dtype_is_certified_for_it(dtype: Any) -> None:
    compiled = p.compile(HIST, vocab="abc", max_length=4, dtype=dtype)
    assert compiled.model.embed.weight.dtype == compiled.domain.torch_dtype
    assert dtype in str(compiled.certificate)
    texts = list(itertools.product("abc", repeat=4))
    assert compiled.batch(texts) == [p.interpret(HIST, text) for text in texts]


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_what_a_dtype_has_no_room_for_is_refused(dtype: Any) -> None:
    fine = p.indices * 1000 + p.width(p.select(p.tokens, p.tokens))
    with pytest.raises(UserError, match=f"cannot be certified in {dtype}.*declare a smaller max_length"):
        p.compile(fine, vocab="ab", max_length=40, dtype=dtype)
    assert p.compile(fine, vocab="ab", max_length=40)("aab") == [2, 1002, 2001]


def test_a_domain_must_be_said_and_the_way_of_proving_is_one_of_two() -> None:
    with pytest.raises(UserError, match="HIST can be given any tokens: say which, as in vocab='abc'"):
        p.compile(HIST)
    with pytest.raises(UserError, match="prove is 'all': choose 'margins' or 'exhaustive'"):
        p.compile(HIST, vocab="ab", prove="all")  # type: ignore[arg-type]


# All ways to run a model are one

MODELS = [
    (HIST, False),
    (HIST, True),
    (REVERSE, False),
    (p.aggregate(p.before, p.indices * p.indices, by="mean", default=0), True),
    (p.aggregate(p.select(p.tokens, p.tokens) & p.before, p.indices, by="best", ties="last", default=-1), True),
]


@cache
def model_of(number: int) -> Compiled:
    program, causal = MODELS[number]
    return p.compile(program, vocab="abc", max_length=8, causal=causal)


texts = st.lists(st.text("abc", min_size=1, max_size=8), min_size=1, max_size=6)


@settings(max_examples=6)
@given(number=st.sampled_from(range(len(MODELS))), texts=texts)
def test_the_plain_evaluation_of_a_model_gives_the_same_values(number: int, texts: list[str]) -> None:
    compiled = model_of(number)
    right = [p.interpret(compiled.program, text, causal=compiled.domain.causal) for text in texts]
    for plain in (False, True):
        compiled.model.plain = plain
        assert compiled.batch(texts) == right
    compiled.model.plain = False


@settings(max_examples=6)
@given(number=st.sampled_from(range(len(MODELS))), texts=texts)
def test_sequences_of_different_lengths_are_read_together_as_they_are_one_by_one(number: int, texts: list[str]) -> None:
    compiled = model_of(number)
    assert compiled.batch(texts) == [compiled(text) for text in texts]


@settings(max_examples=6)
@given(
    number=st.sampled_from([n for n, (_, causal) in enumerate(MODELS) if causal]),
    text=st.text("abc", min_size=1, max_size=8),
)
def test_a_causal_model_that_keeps_a_cache_gives_the_same_values(number: int, text: str) -> None:
    compiled = model_of(number)
    ids, _ = compiled.readout.ids_of([list(text)])
    cache = Cache(compiled.model.config.n_layers)
    with torch.no_grad():
        logits = torch.cat([compiled.model(ids[:, at : at + 1], cache=cache) for at in range(ids.shape[1])], 1)
    skipped = int(compiled.readout.start is not None)
    assert compiled.readout.understood(logits[0, skipped:]) == p.interpret(compiled.program, text, causal=True)


def test_no_sequences_give_no_values() -> None:
    assert model_of(0).batch([]) == []


def test_the_numbers_of_a_model_are_its_programs_values_under_their_codes() -> None:
    compiled = model_of(1)
    found = {type(one.node).__name__: one for one in compiled.numbers(["abaa", "c"])}
    held = found["Width"].held
    assert [round(number, 3) for number in held[0].tolist()] == [1, 1, 2, 3]
    assert [round(number, 3) for number in held[1].tolist()] == [1]
