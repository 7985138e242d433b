"""One function, three evaluations: with the weights in sight, token by token, and chunk by chunk."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from headstock.errors import UserError
from headstock.model.accounting import cache_bytes
from headstock.model.cache import Cache
from headstock.model.frame import Frame
from headstock.model.heads import Heads
from headstock.model.mixers import mixer_class, states
from headstock.model.mixers.linear import Linear
from headstock.model.mixers.states import Passage, StateMixer
from headstock.model.transformer import Transformer, build
from headstock.model.visibility import Visible
from tests.model.cases import SIZES, Case, close, some_ids, stirred

CPU = torch.device("cpu")
VARIANTS = [
    "linear+none", "linear,n_kv_heads=2", "delta+rope", "delta+rope-interleaved,n_kv_heads=2",
    "retention+xpos", "retention,n_kv_heads=1", "lstm",
]  # fmt: skip
every_variant = pytest.mark.parametrize("variant", VARIANTS)
LONG = {"context": 40, "n_layers": 1}


class Sum(StateMixer):
    """The sum of all values so far, by the three methods that a mixer must give."""

    weights_are = "unnormalised"

    def start(self, heads: Heads) -> tuple[Tensor]:
        return (heads.v_bhkd.new_zeros(*heads.v_bhkd.shape[:2], heads.v_bhkd.shape[-1]),)

    def update(self, state: tuple[Tensor], k_bhd: Tensor, v_bhd: Tensor) -> tuple[Tensor]:
        return (state[0] + v_bhd,)

    def recall(self, state: tuple[Tensor], q_bhd: Tensor) -> Tensor:
        return state[0]

    @classmethod
    def state_numbers(cls, config: Any) -> int:
        return config.n_kv_heads * config.d_head


class FastWeights(Linear):
    """Linear attention by the three methods alone, as a user would write it."""

    mix_chunk = StateMixer.mix_chunk
    mix_whole = StateMixer.mix_whole
    weights_of = StateMixer.weights_of


def mine(kind: type[StateMixer]) -> str:
    return f"{__name__}:{kind.__name__}"


def read_in_pieces(model: Transformer, ids: Tensor, sizes: list[int], **reading: Tensor) -> Tensor:
    cache = Cache(model.config.n_layers)
    said = {key: x.split(sizes, 1) for key, x in reading.items()}
    pieces = [
        model(piece, cache=cache, **{key: parts[i] for key, parts in said.items()})
        for i, piece in enumerate(ids.split(sizes, 1))
    ]
    return torch.cat(pieces, dim=1)


def readings(draw: st.DrawFn, batch: int, time: int) -> dict[str, Tensor]:
    """Any padding and any documents that stand side by side."""
    reading = {}
    if draw(st.booleans()):
        flags = st.lists(st.booleans(), min_size=batch * time, max_size=batch * time)
        reading["real"] = torch.tensor(draw(flags)).view(batch, time)
    if draw(st.booleans()):
        begins = st.lists(st.sampled_from([0, 0, 0, 1]), min_size=batch * time, max_size=batch * time)
        reading["documents"] = torch.tensor(draw(begins)).view(batch, time).cumsum(1) % 1000
    return reading


@st.composite
def passages(draw: st.DrawFn) -> tuple[str, int, int, list[int], dict[str, Tensor]]:
    """A variant, a chunk's size, a length, pieces that make it up, and what is said of the tokens."""
    pieces = draw(st.lists(st.integers(1, 9), min_size=1, max_size=5))
    time = min(sum(pieces), LONG["context"])
    return draw(st.sampled_from(VARIANTS)), draw(st.integers(1, 7)), time, pieces, readings(draw, 2, time)


@settings(max_examples=60)
@given(passages())
def test_chunked_recurrent_and_quadratic_agree_in_outputs_and_gradients_at_any_split(
    passage: tuple[str, int, int, list[int], dict[str, Tensor]],
) -> None:
    variant, chunk, time, pieces, reading = passage
    model, ids = Case(variant, variant).model(**LONG), some_ids(batch=2, time=time)
    real = reading.get("real", torch.ones_like(ids, dtype=torch.bool))
    ways = {
        "quadratic": (True, lambda: model(ids, **reading)),
        "recurrent": (True, lambda: model(ids, cache=Cache(1), **reading)),
        "chunked": (False, lambda: model(ids, **reading)),
        "in pieces": (False, lambda: read_in_pieces(model, ids, pieces, **reading)),
    }
    seen: dict[str, list[Tensor]] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(states, "CHUNK", chunk)
        for way, (model.plain, read) in ways.items():
            logits = read()[real]
            numbers = list(model.parameters())
            gradients = torch.autograd.grad(logits.tanh().sum(), numbers, materialize_grads=True)
            seen[way] = [logits.detach(), *gradients]
    for way in ("recurrent", "chunked", "in pieces"):
        for actual, expected in zip(seen[way], seen["quadratic"], strict=True):
            close(actual, expected)


@every_variant
def test_a_state_is_as_large_as_the_formula_says_whatever_the_length(variant: str) -> None:
    for dtype, wide in (
        (torch.bfloat16, torch.float32),
        (torch.float32, torch.float32),
        (torch.float64, torch.float64),
    ):
        case = Case(variant, variant)
        model = case.model(dtype)
        for time in (1, 9):
            cache = Cache(2)
            with torch.no_grad():
                model(some_ids(time=time), cache=cache)
            assert (
                cache.n_bytes == 3 * cache_bytes(case.config(), time, dtype) == 3 * cache_bytes(case.config(), 1, dtype)
            )
            assert all(x.dtype == wide for block in cache.blocks for x in block.state)
            assert all(block.kept == () for block in cache.blocks)


@every_variant
def test_padding_leaves_the_state_bit_for_bit(variant: str) -> None:
    model, cache = Case(variant, variant).model(), Cache(2)
    with torch.no_grad():
        model(some_ids(), cache=cache)
        before = [x for block in cache.blocks for x in block.state]
        copies = [x.clone() for x in before]
        model(some_ids(time=1, seed=3), cache=cache, real=torch.zeros(3, 1, dtype=torch.bool))
        for x, copy in zip((x for block in cache.blocks for x in block.state), copies, strict=True):
            assert torch.equal(x, copy)
        model(some_ids(time=2), cache=cache)
    for x, copy in zip(before, copies, strict=True):
        assert torch.equal(x, copy)  # never changed in place


@pytest.mark.parametrize("plain", [False, True])
@every_variant
def test_a_document_that_goes_on_after_another_is_refused_by_every_evaluation(variant: str, plain: bool) -> None:
    model = Case(variant, variant).model()
    model.plain = plain
    returning = torch.tensor([[0, 0, 1, 0]]).expand(3, -1)
    real = torch.tensor([[True, True, False, True]]).expand(3, -1)
    ids, sentence = some_ids(time=4), "a document goes on after another has begun"
    for reading in ({}, {"cache": Cache(2)}):
        with pytest.raises(UserError, match=sentence):
            model(ids, documents=returning, **reading)
        model(ids, documents=returning, real=real, **reading)  # what padding is said to be of is no document
    cache = Cache(2)
    model(ids[:, :3], documents=returning[:, :3], cache=cache)
    with pytest.raises(UserError, match=sentence):
        model(ids[:, 3:], documents=returning[:, 3:], cache=cache)
    assert cache.length == 3


@every_variant
def test_nothing_to_read_leaves_everything_as_it_was(variant: str) -> None:
    model, ids, cache = Case(variant, variant).model(), some_ids(), Cache(2)
    for model.plain in (False, True):
        assert model(ids[:, :0]).shape == (3, 0, 17)
    model(ids[:, :4], cache=cache)
    model(ids[:, :0], cache=cache)
    close(model(ids[:, 4:], cache=cache), model(ids)[:, 4:])


def test_numbers_of_padding_in_front_are_no_document() -> None:
    real, documents = torch.tensor([[False, True, False, True, False]]), torch.tensor([[7, 5, 5, 7, 5]])
    passage = Passage.of(Visible(5, 5, CPU, real_bk=real, document_bk=documents))
    assert passage.document_bk is not None
    assert passage.document_bk.tolist() == [[5, 5, 5, 5, 7, 7]]


def test_a_mixer_of_three_methods_is_a_whole_mixer() -> None:
    model, ids = stirred(build(f"{mine(Sum)}+none,n_kv_heads=2", **SIZES)), some_ids()
    expected = torch.ones(9, 9, dtype=torch.float64).tril()
    for weights in model.weights(ids):
        close(weights, expected.expand(3, 4, 9, 9))
    whole = model(ids)
    close(read_in_pieces(model, ids, [1, 5, 3]), whole)
    model.plain = True
    close(model(ids), whole)
    with torch.no_grad():
        cache = Cache(2)
        model(ids, cache=cache)
    assert cache.n_bytes == 3 * cache_bytes(model.config, 9, torch.float64)


@given(passages())
def test_weights_follow_from_one_hot_values_where_a_mixer_gives_no_formula(
    passage: tuple[str, int, int, list[int], dict[str, Tensor]],
) -> None:
    _, _, time, _, reading = passage
    ours = Case("linear", "linear,n_kv_heads=2").model(**LONG)
    theirs = build(f"{mine(FastWeights)},n_kv_heads=2", **SIZES | LONG).double().eval()
    theirs.load_state_dict(ours.state_dict())
    ids = some_ids(batch=2, time=time)
    for actual, expected in zip(theirs.weights(ids, **reading), ours.weights(ids, **reading), strict=True):
        close(actual, expected)
    real = reading.get("real", torch.ones_like(ids, dtype=torch.bool))
    close(theirs(ids, **reading)[real], ours(ids, **reading)[real])


def test_a_mixer_without_update_is_refused_by_what_it_lacks() -> None:
    with pytest.raises(UserError, match="is unfinished: give it recall, start, update"):
        mixer_class("headstock.model.mixers.states:StateMixer")


def test_dropping_weights_while_reading_on_from_a_state_is_refused() -> None:
    model = Case("linear", "linear,dropout_attention=0.5").model().train()
    with pytest.raises(UserError, match=r"a state that is read on from has none: call eval\(\)"):
        model(some_ids(), cache=Cache(2))


@pytest.mark.parametrize("variant", ["linear", "delta", "retention"])
def test_what_training_keeps_grows_in_a_line(variant: str) -> None:
    kept: list[int] = []
    mixer = Case(variant, variant).model(torch.float32, n_layers=1).blocks[0].mixer
    for time in (512, 1024, 2048):
        numbers: dict[int, int] = {}

        def keep(x: Tensor, numbers: dict[int, int] = numbers) -> Tensor:
            numbers[x.untyped_storage().data_ptr()] = x.untyped_storage().nbytes()
            return x

        x_bqm = torch.randn(1, time, 16, requires_grad=True)
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda x: x):
            z = mixer(x_bqm, Frame(Visible(time, time, CPU)))
        assert z.shape == x_bqm.shape
        kept.append(sum(numbers.values()))
    assert kept[2] / kept[1] < 2.05
    assert kept[1] / kept[0] < 2.05
    assert mixer_class(variant).memory_is_linear(Case(variant, variant).config())
    assert not mixer_class(variant).memory_is_linear(Case(variant, f"{variant},dropout_attention=0.1").config())
