import math

import pytest
import torch
from hypothesis import given, settings

from headstock import programs as p
from headstock.errors import UserError
from headstock.programs.compiled import Compiled
from headstock.programs.compiler import trying
from headstock.programs.compiler.domain import Domain
from tests.programs.random_programs import Drawn, programs

HIST = p.width(p.select(p.tokens, p.tokens))


@settings(max_examples=15)
@given(drawn=programs(deepest=3, longest=4))
def test_no_measured_error_is_larger_than_its_bound_and_every_margin_is_enough(drawn: Drawn) -> None:
    try:
        compiled = p.compile(drawn.output, vocab=drawn.vocabulary, max_length=drawn.max_length, causal=drawn.causal)
    except UserError:
        return
    certificate = compiled.certificate
    assert certificate.measured_error <= certificate.largest_error
    assert certificate.smallest_margin >= 1


def test_a_small_domain_is_compared_whole_where_that_is_asked_for() -> None:
    certificate = p.compile(HIST, vocab="abc", max_length=5, prove="exhaustive").certificate
    assert certificate.exhaustive
    assert certificate.compared == 3 + 9 + 27 + 81 + 243
    assert "compared on all 363 sequences" in str(certificate)
    assert "over 'abc', up to 5 tokens, bidirectional, float32" in str(certificate)


def test_a_large_domain_is_tried_at_random_and_says_so() -> None:
    compiled = p.compile(HIST, vocab="abcd", max_length=30, causal=True)
    assert not compiled.certificate.exhaustive
    assert compiled.certificate.compared == len(trying.drawn_sequences(compiled.domain))
    assert "sequences drawn at random" in str(compiled.certificate)
    with pytest.raises(UserError, match=r"has about 10\^18 sequences, more than the 2,000,000"):
        trying.certified(compiled, exhaustively=True)


def test_where_nothing_is_noisy_the_certificate_says_so() -> None:
    certificate = p.compile(p.lookup({"a": 1, "b": 2}, p.tokens), vocab="ab", max_length=3).certificate
    assert math.isinf(certificate.smallest_margin)
    assert "nothing is noisy" in str(certificate)


def test_the_tightest_place_is_named_by_its_line() -> None:
    wide = p.width(p.select(p.tokens, p.tokens))
    certificate = p.compile(wide, vocab="ab", max_length=6).certificate
    assert certificate.tightest.startswith("wide (test_certificate.py:")
    assert certificate.smallest_margin == min(decision.margin for decision in certificate.decisions)


def spoilt(compiled: Compiled, parameter: str) -> Compiled:
    weights = dict(compiled.model.named_parameters())[parameter]
    with torch.no_grad():
        weights *= -0.5
    return compiled


@pytest.mark.parametrize("parameter", ["embed.weight", "blocks.0.mixer.value.weight", "unembed.weight"])
def test_a_model_whose_weights_were_changed_is_not_certified(parameter: str) -> None:
    compiled = p.compile(HIST, vocab="abc", max_length=5)
    trying.certified(compiled)
    with pytest.raises(UserError, match=r"is not certified: .*fault of the compiler, so please report it"):
        trying.certified(spoilt(compiled, parameter))


def test_sequences_to_try_are_the_same_every_time_and_in_the_domain() -> None:
    domain = Domain.of("abc", 7, True, "float32")
    drawn = trying.drawn_sequences(domain)
    assert drawn == trying.drawn_sequences(domain)
    assert {len(sequence) for sequence in drawn} == set(range(1, 8))
    for sequence in drawn:
        domain.refuse(list(sequence))
