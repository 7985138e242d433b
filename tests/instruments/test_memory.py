"""The peak is the sum that one can do by hand: of tensors that live at once, also inside kernels and backwards."""

import gc
import subprocess
import sys
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from headstock.instruments.memory import peak_bytes

N = 1000
ONE = 4 * N
"""Bytes of a float32 tensor of N."""
X = torch.ones(N)


def tensors(count: int) -> list[Tensor]:
    return [torch.empty(N) for _ in range(count)]


def freed_before_the_next() -> None:
    for _ in range(5):
        torch.empty(N)


def two_then_one() -> Tensor:
    a = torch.empty(N)
    b = torch.empty(2 * N)
    del a
    c = torch.empty(N)
    del b
    return c


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (lambda: None, 0),
        (lambda: X[1:].view(3, -1), 0),
        (lambda: tensors(1), ONE),
        (lambda: tensors(3), 3 * ONE),
        (freed_before_the_next, ONE),
        (two_then_one, 3 * ONE),
        (lambda: X.exp().exp().exp(), 2 * ONE),
        (lambda: X.clone().exp_(), ONE),
        (lambda: torch.empty(N, dtype=torch.float64), 2 * ONE),
    ],
)
def test_what_lives_at_once_is_added_up(run: Callable[[], object], expected: int) -> None:
    assert peak_bytes(run) == expected


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 500), st.booleans()), max_size=20))
def test_any_order_of_taking_and_letting_go_is_followed(moves: list[tuple[int, bool]]) -> None:
    held: list[Tensor] = []
    expected = [0]

    def run() -> None:
        for size, takes in moves:
            if takes:
                held.append(torch.empty(size, dtype=torch.uint8))
            elif held:
                held.pop(0)
            expected.append(sum(x.numel() for x in held))

    assert peak_bytes(run) == max(expected)


def test_a_buffer_inside_a_kernel_counts() -> None:
    """Beside its output and a sum a query, the fused kernel takes work space and lets it go."""
    q = torch.ones(1, 2, 256, 16)
    held = q.numel() * 4 + 2 * 256 * 4

    def run() -> Tensor:
        return F.scaled_dot_product_attention(q, q, q, is_causal=True)

    assert peak_bytes(run) > held


def test_backward_counts_what_forward_kept() -> None:
    """exp keeps its output, the sum nothing; backwards there are its output, its gradient and the one of x."""
    x = torch.ones(N, requires_grad=True)

    def run() -> None:
        y = x.exp()
        y.backward(X)

    assert peak_bytes(run) == 2 * ONE
    assert x.grad is not None


def test_every_weight_of_attention_is_held_at_once_and_a_fused_kernel_holds_none() -> None:
    q = torch.randn(1, 4, 512, 16, requires_grad=True)
    weights = 4 * 512 * 512 * 4

    def plain() -> None:
        ((q @ q.transpose(-1, -2)).softmax(-1) @ q).sum().backward()

    def fused() -> None:
        F.scaled_dot_product_attention(q, q, q).sum().backward()

    assert peak_bytes(plain) >= 2 * weights
    assert peak_bytes(fused) < weights


def test_the_count_is_the_same_every_time_whatever_was_freed_meanwhile() -> None:
    q = torch.randn(1, 2, 700, 16, requires_grad=True)

    def run() -> None:
        q.grad = None
        F.scaled_dot_product_attention(q, q, q, is_causal=True).sum().backward()

    counts = set()
    for others in range(5):
        counts.add(peak_bytes(run))
        tensors(others)
    assert len(counts) == 1


def test_what_was_held_before_is_not_counted_nor_taken_off() -> None:
    held = tensors(4)

    def run() -> None:
        held.clear()
        held.append(torch.empty(N))

    assert peak_bytes(run) == ONE


def test_a_failure_inside_is_told_and_leaves_collection_as_it_was() -> None:
    with pytest.raises(ZeroDivisionError):
        peak_bytes(lambda: 1 / 0)
    assert gc.isenabled()
    assert peak_bytes(lambda: tensors(2)) == 2 * ONE


def test_nothing_is_written_meanwhile() -> None:
    program = (
        "import os, torch; from headstock.instruments.memory import peak_bytes\n"
        "before = dict(os.environ); assert peak_bytes(lambda: torch.ones(3)) == 12; assert os.environ == before"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")
