from typing import Any

import numpy as np
import pytest

from headstock.errors import UserError
from headstock.programs.compiler.certificate import every_sequence
from headstock.programs.compiler.domain import DTYPES, Domain


@pytest.mark.parametrize(
    ("vocabulary", "max_length", "dtype", "said"),
    [
        ("", 3, "float32", "the vocabulary is empty"),
        ("aba", 3, "float32", "has 'a' twice"),
        ([1, None], 3, "float32", "has None: tokens are words or whole numbers"),
        ([1, (2, 3)], 3, "float32", r"has \(2, 3\): tokens are words"),
        ([True], 3, "float32", "has True: tokens are words or whole numbers, so give one in its place"),
        ([1, 0.5], 3, "float32", "gives 0.5, and a program is exact"),
        ([1, "1"], 3, "float32", "look the same"),
        ("ab", 0, "float32", "max_length is 0: give 1 or more"),
        ("ab", 3, "float31", "unknown dtype 'float31': did you mean 'float32'"),
    ],
)
def test_a_domain_that_is_none_is_refused(vocabulary: Any, max_length: int, dtype: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        Domain.of(vocabulary, max_length, False, dtype)


def test_the_sequences_of_a_domain_are_counted_as_they_are_gone_through() -> None:
    domain = Domain.of("abc", 4, True, "float32")
    every = list(every_sequence(domain))
    assert len(every) == len(set(every)) == domain.sequences == 3 + 9 + 27 + 81
    for sequence in every:
        domain.refuse(list(sequence))


def test_a_token_that_is_nearly_known_is_pointed_out() -> None:
    domain = Domain.of(["left", "right"], 4, True, "float32")
    with pytest.raises(UserError, match=r"'rigth' is not in the program's vocabulary: did you mean 'right'"):
        domain.refuse(["left", "rigth"])
    with pytest.raises(UserError, match=r"has 5 tokens.*1 to 4.*larger max_length"):
        domain.refuse(["left"] * 5)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_below_the_needed_gap_a_weight_is_exactly_zero_and_no_gap_much_smaller_would_do(dtype: str) -> None:
    domain = Domain.of("a", 1, False, dtype)
    kind = np.dtype(dtype).type
    assert np.exp(kind(-domain.needed_gap - 0.01)) == 0
    assert np.exp(kind(-domain.needed_gap + 1)) > 0
    assert domain.gap >= domain.needed_gap
    assert domain.gap & (domain.gap - 1) == 0


@pytest.mark.parametrize("dtype", list(DTYPES))
def test_whole_numbers_are_exact_as_far_as_a_domain_says(dtype: str) -> None:
    import torch

    domain = Domain.of("a", 1, False, dtype)
    edge = torch.tensor([domain.whole - 1, domain.whole, domain.whole + 1], dtype=domain.torch_dtype).double()
    assert edge.tolist()[:2] == [domain.whole - 1, domain.whole]
    assert edge.tolist()[2] != domain.whole + 1
