"""Block by block = all at once, in averages and gradients, and no tensor ever holds a number a query and key."""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from headstock.errors import UserError
from headstock.model import blockwise, differencing
from headstock.model.blockwise import by_blocks
from headstock.model.differencing import FEWEST
from headstock.model.evaluations import listening
from headstock.model.heads import Heads
from headstock.model.mixers import differential2
from headstock.model.mixers.base import ScoreMixer
from headstock.model.transformer import build
from headstock.model.visibility import Visible
from tests.model.cases import close, stirred

BATCH, WIDTH, HEADS, DEVICE = 2, 24, 8, torch.device("cpu")
LENGTHS = [1, 63, 64, 65, 130, 600]


def mixer_of(variant: str, dtype: torch.dtype = torch.float64) -> ScoreMixer:
    model = build(variant, vocab_size=3, context=8, n_layers=1, d_model=WIDTH, n_heads=HEADS)
    mixer = stirred(model, dtype).blocks[0].mixer
    assert isinstance(mixer, ScoreMixer)
    return mixer


def heads_of(mixer: ScoreMixer, visible: Visible, dtype: torch.dtype = torch.float64, batch: int = BATCH) -> Heads:
    """Random heads; slopes, where any are asked for, as many as the mixer's queries."""
    sizes = mixer.heads

    def some(*shape: int) -> Tensor:
        return torch.randn(batch, *shape, dtype=dtype, requires_grad=True)

    if visible.slopes_h is not None:
        per_pair = torch.linspace(0.1, 1.0, sizes.output_heads, dtype=dtype)
        visible = replace(visible, slopes_h=per_pair.repeat_interleave(sizes.query_heads // sizes.output_heads))
    gates = some(sizes.gates, visible.n_queries) if sizes.gates else None
    return Heads(
        some(sizes.query_heads, visible.n_queries, sizes.key_size),
        some(sizes.key_heads, visible.n_keys, sizes.key_size),
        some(sizes.value_heads, visible.n_keys, sizes.value_size),
        gates,
        visible,
        torch.zeros(batch, visible.n_queries, WIDTH, dtype=dtype),
    )


def what_is_seen(kind: str, n_queries: int) -> Visible:
    """Each kind of mask; the first row of padding is padding alone."""
    n_keys = n_queries + (70 if kind == "cached" else 0)
    places = torch.arange(n_keys)
    real = torch.stack([places < 0, places >= n_keys // 3])
    documents = torch.stack([places // 50, places * 3 // n_keys])
    asked: dict[str, dict[str, Any]] = {
        "causal": {},
        "cached": {},
        "window": {"window": 20},
        "alibi": {"slopes_h": torch.ones(1)},
        "padded": {"real_bk": real},
        "packed": {"document_bk": documents},
        "all at once": {
            "real_bk": real, "document_bk": documents, "window": 20, "slopes_h": torch.ones(1),
        },
        "bidirectional": {"causal": False},
        "bidirectional-padded": {"causal": False, "real_bk": real},
    }  # fmt: skip
    return Visible(n_queries, n_keys, DEVICE, **asked[kind])


KINDS = [
    "causal", "cached", "window", "alibi", "padded", "packed", "all at once", "bidirectional", "bidirectional-padded",
]  # fmt: skip


def averages_and_gradients(mixer: ScoreMixer, heads: Heads, fast: bool) -> list[Tensor]:
    z = mixer.mix(heads) if fast else mixer.mix_plainly(heads)
    inputs = [x for x in (heads.q_bhqd, heads.k_bhkd, heads.v_bhkd, heads.gates_bhk) if x is not None]
    own = [p for name, p in mixer.named_parameters() if name.startswith("lambda") or name.startswith("sink")]
    upstream = torch.randn(z.shape, generator=torch.Generator().manual_seed(5), dtype=torch.float64).to(z.dtype)
    return [z.detach(), *torch.autograd.grad(z, [*inputs, *own], upstream)]


@pytest.mark.parametrize("at_once", [2**19, 3000], ids=["roomy", "tight"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_queries", LENGTHS)
@pytest.mark.parametrize("n_kv_heads", [8, 4, 2])
def test_differencing_equals_the_plain_formula(
    n_kv_heads: int, n_queries: int, kind: str, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if n_queries == 600 and (n_kv_heads != 4 or at_once == 3000):
        return  # one long one a kind says what there is to say
    monkeypatch.setattr(differencing, "AT_ONCE", at_once)
    mixer = mixer_of(f"differential,n_kv_heads={n_kv_heads}")
    heads = heads_of(mixer, what_is_seen(kind, n_queries))
    with listening() as heard:
        fast = averages_and_gradients(mixer, heads, fast=True)
    assert heard == ({"blockwise"} if n_queries >= FEWEST else set())
    for ours, plain in zip(fast, averages_and_gradients(mixer, heads, fast=False), strict=True):
        assert ours.isfinite().all()
        close(ours, plain, atol=1e-9)


@pytest.fixture
def walked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have version 2 subtract maps block by block however short the sequence is, and narrow the heads."""
    monkeypatch.setattr(differential2, "SHORTEST", 1)
    monkeypatch.setattr(differential2, "NARROWEST", 1)


@pytest.mark.parametrize("at_once", [2**19, 3000], ids=["roomy", "tight"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_queries", [1, 63, 65, 130])
@pytest.mark.parametrize("n_kv_heads", [8, 2])
@pytest.mark.usefixtures("walked")
def test_differencing_of_shared_keys_equals_the_plain_formula(
    n_kv_heads: int, n_queries: int, kind: str, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(differencing, "AT_ONCE", at_once)
    mixer = mixer_of(f"differential2,n_kv_heads={n_kv_heads}")
    heads = heads_of(mixer, what_is_seen(kind, n_queries))
    with listening() as heard:
        fast = averages_and_gradients(mixer, heads, fast=True)
    assert heard == {"blockwise"}
    for ours, plain in zip(fast, averages_and_gradients(mixer, heads, fast=False), strict=True):
        assert ours.isfinite().all()
        close(ours, plain, atol=1e-9)


@pytest.mark.parametrize(
    ("dtype", "n_queries", "width", "said"),
    [
        (torch.float32, 256, 32, {"blockwise"}),
        (torch.float64, 256, 32, {"blockwise"}),
        (torch.float32, 255, 32, set()),
        (torch.float32, 256, 31, set()),
        (torch.bfloat16, 256, 32, set()),
    ],
)
def test_version_2_subtracts_maps_first_where_sequences_are_long_and_heads_wide(
    dtype: torch.dtype, n_queries: int, width: int, said: set[str]
) -> None:
    mixer = mixer_of(f"differential2,n_heads=2,d_head={width}", dtype)
    heads = heads_of(mixer, what_is_seen("causal", n_queries), dtype)
    with listening() as heard, torch.no_grad():
        mixer.mix(heads)
    assert heard == said


def test_version_2_leaves_distances_without_a_direction_to_the_fused_call() -> None:
    mixer = mixer_of("differential2,n_heads=2,d_head=32", torch.float64)
    visible = replace(what_is_seen("bidirectional", 256), slopes_h=torch.ones(1))
    heads = heads_of(mixer, visible)
    with listening() as heard:
        fast = averages_and_gradients(mixer, heads, fast=True)
    assert "blockwise" not in heard
    for ours, plain in zip(fast, averages_and_gradients(mixer, heads, fast=False), strict=True):
        close(ours, plain, atol=1e-9)


@pytest.mark.parametrize("kind", ["causal", "all at once"])
@pytest.mark.parametrize("block", [8, 2], ids=["maps kept", "maps computed anew"])
@pytest.mark.parametrize("key_heads", [2, 1], ids=["own keys", "shared keys"])
@pytest.mark.parametrize("shares", [(), (2,), (2, 2, 6)], ids=["one share", "a share a pair", "a share a query"])
def test_differencing_has_the_gradient_of_its_finite_differences(
    shares: tuple[int, ...], key_heads: int, kind: str, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(differencing, "BLOCK", block)
    visible = what_is_seen(kind, 6)
    if visible.slopes_h is not None:
        visible = replace(visible, slopes_h=torch.tensor([0.3, 0.3, 0.7, 0.7]), window=3)
    shapes = ((2, 4, 6, 3), (2, key_heads, 6, 3), (2, 1, 6, 4), shares)
    q, k, v, less = (torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes)
    torch.autograd.gradcheck(lambda *x: differencing.differencing(*x, visible), (q, k, v, less))


@pytest.mark.parametrize("at_once", [2**19, 3000], ids=["roomy", "tight"])
@pytest.mark.parametrize("kind", ["causal", "all at once"])
@pytest.mark.parametrize("n_kv_heads", [8, 4])
def test_differencing_with_a_share_a_pair_equals_the_plain_formula(
    n_kv_heads: int, kind: str, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(differencing, "AT_ONCE", at_once)
    mixer = mixer_of(f"differential,lambdas=head,n_kv_heads={n_kv_heads}")
    heads = heads_of(mixer, what_is_seen(kind, 130))
    with listening() as heard:
        fast = averages_and_gradients(mixer, heads, fast=True)
    assert heard == {"blockwise"}
    for ours, plain in zip(fast, averages_and_gradients(mixer, heads, fast=False), strict=True):
        close(ours, plain, atol=1e-9)


def test_differencing_refuses_a_second_derivative() -> None:
    q, k, v = (torch.randn(1, h, 5, 4, requires_grad=True) for h in (2, 2, 1))
    z = differencing.differencing(q, k, v, torch.tensor(0.3), Visible(5, 5, DEVICE))
    with pytest.raises(UserError, match="no second derivative: leave create_graph out"):
        torch.autograd.grad(z.square().sum(), q, create_graph=True)


@pytest.mark.parametrize("own", [True, False], ids=["own keys", "shared keys"])
def test_a_score_past_all_numbers_is_not_seen_by_who_does_not_see_it(own: bool) -> None:
    q, k, v = torch.randn(1, 2, 70, 4) * 1e10, torch.randn(1, 1 + own, 70, 4), torch.randn(1, 1, 70, 4)
    k[:, :, 69] *= 1e30
    z = differencing.differencing(q, k, v, torch.rand(1, 1, 70), Visible(70, 70, DEVICE))
    assert z[:, :, :69].isfinite().all()


@pytest.mark.parametrize("mixer", ["differential", "differential2"])
def test_no_rows_give_no_averages(mixer: str) -> None:
    heads = heads_of(mixer_of(f"{mixer},n_heads=2,d_head=32"), what_is_seen("causal", 256), batch=0)
    assert mixer_of(f"{mixer},n_heads=2,d_head=32").mix(heads).shape[0] == 0


@pytest.mark.parametrize("variant", ["differential", "differential2"])
@pytest.mark.parametrize("broken", ["q_bhqd", "k_bhkd", "v_bhkd"])
@pytest.mark.parametrize("kind", ["causal", "alibi", "packed"])
@pytest.mark.usefixtures("walked")
def test_a_broken_number_shows_to_those_who_see_it_alone(variant: str, broken: str, kind: str) -> None:
    mixer = mixer_of(variant)
    heads = heads_of(mixer, what_is_seen(kind, 70))
    with torch.no_grad():
        getattr(heads, broken)[:, :, 20] = math.nan
        fast, plain = mixer.mix(heads).isnan(), mixer.mix_plainly(heads).isnan()
    assert torch.equal(fast, plain)
    assert plain.any()


@pytest.mark.parametrize("variant", ["differential", "differential2"])
@pytest.mark.usefixtures("walked")
def test_differencing_gives_the_same_bits_with_and_without_gradients_and_again(variant: str) -> None:
    mixer = mixer_of(variant, torch.float32)
    heads = heads_of(mixer, what_is_seen("causal", 200), torch.float32)
    with torch.no_grad():
        alone = mixer.mix(heads)
    first, again = (averages_and_gradients(mixer, heads, fast=True) for _ in range(2))
    assert torch.equal(alone, first[0])
    assert all(map(torch.equal, first, again))


@pytest.mark.parametrize("kind", ["causal", "padded"])
def test_differencing_in_bfloat16_is_as_near_the_truth_as_the_plain_formula(kind: str) -> None:
    mixer, half = mixer_of("differential"), mixer_of("differential", torch.bfloat16)
    heads = heads_of(half, what_is_seen(kind, 130), torch.bfloat16)
    exact = {name: getattr(heads, name).detach().double().requires_grad_() for name in ("q_bhqd", "k_bhkd", "v_bhkd")}
    for vector in ("lambda_q1", "lambda_k1", "lambda_q2", "lambda_k2"):
        getattr(mixer, vector).data = getattr(half, vector).data.double()
    truth = averages_and_gradients(mixer, replace(heads, **exact), fast=False)
    fast, plain = (averages_and_gradients(half, heads, fast) for fast in (True, False))
    for ours, formula, right in zip(fast, plain, truth, strict=True):
        assert ours.dtype == torch.bfloat16
        assert (ours - right).norm() <= 1.05 * (formula - right).norm() + 1e-12


ROW_WISE = {
    "softmax1": "softmax1,soft_cap=2.0,n_kv_heads=4",
    "differential": "differential,soft_cap=2.0,n_kv_heads=4",
    "differential2": "differential2,soft_cap=2.0,n_kv_heads=4",
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("variant", ROW_WISE)
def test_blocks_with_gates_and_caps_equal_all_at_once(variant: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blockwise, "SHORTEST", 1)
    monkeypatch.setattr(blockwise, "BLOCK", 32)
    mixer = mixer_of(ROW_WISE[variant])
    heads = heads_of(mixer, what_is_seen(kind, 75))
    with listening() as heard:
        blocks = averages_and_gradients(mixer, heads, fast=True)
    assert heard == (set() if kind.startswith("bidirectional") else {"blockwise"})
    for ours, plain in zip(blocks, averages_and_gradients(mixer, heads, fast=False), strict=True):
        close(ours, plain, atol=1e-9)


@pytest.mark.parametrize("n_queries", [256, 300])
@pytest.mark.parametrize("kind", ["window", "window-cached", "window-packed", "window-alibi"])
@pytest.mark.parametrize("variant", ["softmax,n_kv_heads=2", "softmax1", "sink", "differential", "differential2"])
def test_a_window_over_a_long_sequence_equals_the_plain_formula(variant: str, kind: str, n_queries: int) -> None:
    mixer = mixer_of(variant)
    visible = what_is_seen("window", n_queries + (45 if kind == "window-cached" else 0))
    visible = replace(visible, n_queries=n_queries)
    if kind == "window-packed":
        visible = replace(visible, document_bk=what_is_seen("packed", n_queries).document_bk)
    if kind == "window-alibi":
        visible = replace(visible, slopes_h=torch.ones(1))
    heads = heads_of(mixer, visible)
    with listening() as heard:
        fast = averages_and_gradients(mixer, heads, fast=True)
    assert heard == {"blockwise"}
    for ours, plain in zip(fast, averages_and_gradients(mixer, heads, fast=False), strict=True):
        close(ours, plain, atol=1e-9)


class Largest(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes how many numbers the largest tensor has that an operation gave, copies and views of it too."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.numbers = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = func(*args, **(kwargs or {}))
        for x in given if isinstance(given, (tuple, list)) else [given]:
            if isinstance(x, Tensor):
                self.numbers = max(self.numbers, x.untyped_storage().nbytes() // x.element_size())
        return given


LINEAR = [
    ("differential", "causal"), ("differential", "alibi"), ("differential", "window"), ("differential", "padded"),
    ("differential", "packed"), ("softmax1,soft_cap=2.0", "causal"), ("differential2,soft_cap=2.0", "causal"),
    ("softmax", "window"), ("softmax1", "window"), ("sink", "window"), ("differential2", "window"),
    ("differential2", "causal"), ("differential2", "alibi"), ("differential2", "padded"), ("differential2", "packed"),
]  # fmt: skip


@pytest.mark.parametrize(("variant", "kind"), LINEAR, ids=lambda x: str(x))
@pytest.mark.usefixtures("walked")
def test_no_tensor_holds_a_number_a_query_and_key(variant: str, kind: str) -> None:
    n_queries = 2048
    mixer = mixer_of(f"{variant},n_heads=2,d_head=2", torch.float32)
    heads = heads_of(
        mixer, what_is_seen(kind, n_queries), torch.float32, batch=2 if kind in ("padded", "packed") else 1
    )
    with Largest() as forward:
        z = mixer.mix(heads)
    with Largest() as backward:
        z.sum().backward()
    assert 0 < max(forward.numbers, backward.numbers) < n_queries * n_queries / 2
    with Largest() as plainly:
        mixer.mix_plainly(heads)
    assert plainly.numbers >= n_queries * n_queries


def test_a_short_sequence_is_averaged_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    mixer = mixer_of("softmax1")
    for n_queries, said in ((blockwise.SHORTEST - 1, set()), (blockwise.SHORTEST, {"blockwise"})):
        with listening() as heard, torch.no_grad():
            by_blocks(mixer.mix_plainly, heads_of(mixer, what_is_seen("causal", n_queries), batch=1))
        assert heard == said
