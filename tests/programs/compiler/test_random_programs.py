import random
import re
from itertools import islice
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from headstock import programs as p
from headstock.errors import UserError
from headstock.programs.compiled import Compiled
from headstock.programs.compiler.certificate import every_sequence
from tests.programs.random_programs import Drawn, drawn_by, programs

ITS_LINE = re.compile(r"\(\w+\.py:\d+\)")
often = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much])


def compiled_or_refused(drawn: Drawn, dtype: Any) -> Compiled | None:
    """Give the model, or None where it is refused with a sentence that says where and is no fault of the compiler."""
    try:
        return p.compile(
            drawn.output, vocab=drawn.vocabulary, max_length=drawn.max_length, causal=drawn.causal, dtype=dtype
        )
    except UserError as refusal:
        said = str(refusal)
        assert "fault of the compiler" not in said, f"{drawn}: {said}"
        assert ITS_LINE.search(said) or "declare" in said, f"{drawn}: {said}"
        return None


def hold_to_its_program(drawn: Drawn, dtype: Any) -> bool:
    """Compare a model with its program on short sequences and on random ones; say whether there is a model."""
    compiled = compiled_or_refused(drawn, dtype)
    if compiled is None:
        return False
    draws = random.Random(0)
    sequences = [list(sequence) for sequence in islice(every_sequence(compiled.domain), 40)]
    lengths = [draws.randint(1, drawn.max_length) for _ in range(20)]
    sequences += [[draws.choice(drawn.vocabulary) for _ in range(length)] for length in lengths]
    right = [p.interpret(drawn.output, sequence, causal=drawn.causal) for sequence in sequences]
    assert compiled.batch(sequences) == right, drawn
    assert compiled.certificate.measured_error <= compiled.certificate.largest_error, drawn
    return True


@settings(often, max_examples=20)
@given(drawn=programs())
def test_a_random_program_is_what_its_model_computes_or_is_refused_with_its_line(drawn: Drawn) -> None:
    hold_to_its_program(drawn, "float32")


@pytest.mark.parametrize("dtype", ["float64", "bfloat16", "float16"])
@settings(often, max_examples=8)
@given(drawn=programs(deepest=2, longest=4))
def test_a_random_program_is_exact_or_refused_in_every_dtype(dtype: str, drawn: Drawn) -> None:
    hold_to_its_program(drawn, dtype)


def test_most_random_programs_can_be_compiled() -> None:
    drawn = [drawn_by(random.Random(seed).choice, deepest=2, longest=4) for seed in range(25)]
    assert sum(compiled_or_refused(one, "float32") is not None for one in drawn) > 18


@pytest.mark.full
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
@pytest.mark.parametrize("deepest", [1, 2, 3, 4])
def test_thousands_of_random_programs_are_exact_or_refused(dtype: str, deepest: int) -> None:
    held = [hold_to_its_program(drawn_by(random.Random(f"{deepest} {n}").choice, deepest), dtype) for n in range(600)]
    assert sum(held) > (300 if dtype.startswith("float") and dtype != "float16" else 60)
