"""Queries of one sequence, keys and values of another: every law of mixing that does not speak of places."""

import pytest
import torch
from torch import Tensor, nn

from headstock.errors import UserError
from headstock.model.config import config_of
from headstock.model.frame import Frame
from headstock.model.mixers import mixer_class, mixer_names
from headstock.model.mixers.base import CROSS, Mixer
from tests.model.cases import SIZES, both_paths, close, stirred

QUERIES, KEYS, BATCH, WIDTH = 5, 7, 3, 16
LOOK_ACROSS = [mixer for mixer in mixer_names() if CROSS not in mixer_class(mixer).refuses]
VARIANTS = [
    *LOOK_ACROSS,
    "softmax+rope",
    "softmax+alibi,n_kv_heads=2",
    "softmax1,n_kv_heads=1",
    "differential,n_heads=8,n_kv_heads=4",
    "softmax,query_key=shared,qkv_bias=true",
    "softmax,query_key=identity,value_map=identity",
    "softmax,qk_norm=layernorm,causal=false",
    "softmax1,soft_cap=0.5,window=2",
]
every_variant = pytest.mark.parametrize("variant", VARIANTS)
every_mixer = pytest.mark.parametrize("mixer", LOOK_ACROSS)


def mixer_of(variant: str) -> Mixer:
    config = config_of(variant, **SIZES)
    return stirred(mixer_class(config.mixer)(config, 0)).eval()


def sequences(n_queries: int = QUERIES, n_keys: int = KEYS) -> tuple[Tensor, Tensor]:
    x, memory = (torch.randn(BATCH, time, WIDTH, dtype=torch.float64) for time in (n_queries, n_keys))
    return x.requires_grad_(), memory.requires_grad_()


def padded(side: str) -> Tensor:
    places, length = torch.arange(KEYS), torch.tensor([KEYS, 4, 1])[:, None]
    return places < length if side == "right" else places >= KEYS - length


@both_paths
@pytest.mark.parametrize("is_padded", [False, True], ids=["whole", "padded"])
@pytest.mark.parametrize(("n_queries", "n_keys"), [(5, 7), (7, 5), (6, 6), (1, 9)])
def test_softmax_is_torchs_attention_of_one_sequence_to_another(
    n_queries: int, n_keys: int, is_padded: bool, plain: bool
) -> None:
    ours = mixer_of("softmax,qkv_bias=true,output_bias=true")
    theirs = nn.MultiheadAttention(WIDTH, SIZES["n_heads"], batch_first=True, dtype=torch.float64)
    with torch.no_grad():
        for kind in ("weight", "bias"):
            maps = [getattr(part, kind) for part in (ours.query, ours.key, ours.value)]
            getattr(theirs, f"in_proj_{kind}").copy_(torch.cat(maps))
    theirs.out_proj.load_state_dict(ours.output.state_dict())
    x, memory = sequences(n_queries, n_keys)
    real = torch.arange(n_keys) < torch.tensor([n_keys, 3, 1])[:, None] if is_padded else None
    expected, maps = theirs(
        x, memory, memory, key_padding_mask=None if real is None else ~real, average_attn_weights=False
    )
    frame = Frame.across(memory, n_queries, real_bk=real, plain=plain)
    close(ours(x, frame), expected)
    close(ours.weights(x, frame), maps)


@pytest.mark.parametrize("real", [None, padded("left"), padded("right")], ids=["whole", "padded-left", "padded-right"])
@every_variant
def test_fast_evaluation_equals_plain_in_outputs_and_gradients(variant: str, real: Tensor | None) -> None:
    mixer, (x, memory) = mixer_of(variant), sequences()
    results = []
    for plain in (False, True):
        mixed = mixer(x, Frame.across(memory, QUERIES, real_bk=real, plain=plain))
        gradients = torch.autograd.grad(mixed.square().sum(), [x, memory, *mixer.parameters()], allow_unused=True)
        results.append([mixed, *gradients])
    for fast, plain_one in zip(*results, strict=True):
        assert (fast is None) == (plain_one is None)
        if fast is not None:
            close(fast, plain_one)


@both_paths
@pytest.mark.parametrize("side", ["left", "right"])
@every_variant
def test_a_padded_memory_is_a_shorter_memory(variant: str, side: str, plain: bool) -> None:
    mixer, (x, memory), real = mixer_of(variant), sequences(), padded(side)
    together = mixer(x, Frame.across(memory, QUERIES, real_bk=real, plain=plain))
    for row in range(BATCH):
        alone = Frame.across(memory[row : row + 1, real[row]], QUERIES, plain=plain)
        close(together[row], mixer(x[row : row + 1], alone)[0])


@both_paths
@every_variant
def test_gradients_reach_both_sequences_and_no_padding(variant: str, plain: bool) -> None:
    mixer, (x, memory), real = mixer_of(variant), sequences(), padded("right")
    mixer(x, Frame.across(memory, QUERIES, real_bk=real, plain=plain)).square().sum().backward()
    assert memory.grad[~real].count_nonzero() == 0
    assert all(row.count_nonzero() > 0 for row in memory.grad)
    if mixer.heads.key_size:  # else queries say nothing
        assert x.grad[0].count_nonzero() > 0


@both_paths
@every_variant
def test_a_memory_of_padding_alone_gives_zeros_and_finite_gradients(variant: str, plain: bool) -> None:
    mixer, (x, memory) = mixer_of(variant), sequences()
    real = torch.tensor([[True], [False], [True]]).expand(-1, KEYS)
    mixed = mixer(x, Frame.across(memory, QUERIES, real_bk=real, plain=plain))
    assert mixed[1].count_nonzero() == 0
    assert mixed[0].count_nonzero() > 0
    mixed.square().sum().backward()
    used = [p.grad for p in (x, memory, *mixer.parameters()) if p.grad is not None]
    assert all(gradient.isfinite().all() for gradient in used)


@pytest.mark.parametrize(
    "variant", [v for v in VARIANTS if mixer_class(v.split(",")[0].split("+")[0]).weights_are != "none"]
)
def test_the_weights_are_those_of_each_query_over_the_memory(variant: str) -> None:
    mixer, (x, memory), real = mixer_of(variant), sequences(), padded("left")
    weights = mixer.weights(x, Frame.across(memory, QUERIES, real_bk=real))
    assert weights.shape == (BATCH, mixer.heads.output_heads, QUERIES, KEYS)
    assert weights.masked_select(~real[:, None, None]).count_nonzero() == 0
    if mixer.weights_are == "normalised":
        close(weights.sum(-1), torch.ones_like(weights[..., 0]))


@pytest.mark.parametrize("mixer", [m for m in LOOK_ACROSS if not mixer_class(m).sees_order])
def test_a_memory_in_another_order_is_the_same_memory(mixer: str) -> None:
    mixing, (x, memory), order = mixer_of(mixer), sequences(), torch.randperm(KEYS)
    close(mixing(x, Frame.across(memory[:, order], QUERIES)), mixing(x, Frame.across(memory, QUERIES)))


@every_mixer
def test_each_query_reads_alone(mixer: str) -> None:
    mixing, (x, memory) = mixer_of(mixer), sequences()
    together = mixing(x, Frame.across(memory, QUERIES))
    for query in range(QUERIES):
        close(mixing(x[:, [query]], Frame.across(memory, 1)), together[:, [query]])


@both_paths
def test_grouped_heads_equal_heads_repeated(plain: bool) -> None:
    grouped, whole = mixer_of("softmax,n_kv_heads=2"), mixer_of("softmax")
    whole.query.load_state_dict(grouped.query.state_dict())
    whole.output.load_state_dict(grouped.output.state_dict())
    for part in ("key", "value"):
        by_head = getattr(grouped, part).weight.detach().view(2, 4, WIDTH)
        getattr(whole, part).load_state_dict({"weight": by_head.repeat_interleave(2, dim=0).flatten(0, 1)})
    x, memory = sequences()
    frame = Frame.across(memory, QUERIES, plain=plain)
    close(grouped(x, frame), whole(x, frame))


@both_paths
def test_one_map_for_queries_and_keys_maps_both_sequences(plain: bool) -> None:
    shared, apart = mixer_of("softmax,query_key=shared"), mixer_of("softmax")
    apart.load_state_dict({**shared.state_dict(), "key.weight": shared.query.weight})
    x, memory = sequences()
    frame = Frame.across(memory, QUERIES, plain=plain)
    close(shared(x, frame), apart(x, frame))


@pytest.mark.parametrize("mixer", [m for m in mixer_names() if m not in LOOK_ACROSS])
def test_a_mixer_that_cannot_look_across_says_why(mixer: str) -> None:
    mixing, (x, memory) = mixer_of(mixer), sequences()
    with pytest.raises(UserError) as caught:
        mixing(x, Frame.across(memory, QUERIES))
    assert str(caught.value).endswith(f"cannot read another sequence: {mixing.refuses[CROSS]}.")


@both_paths
@pytest.mark.parametrize(("batch", "n_queries", "n_keys"), [(3, 5, 0), (3, 30, 0), (0, 30, 7), (3, 0, 7)])
@every_mixer
def test_nothing_to_read_or_nobody_who_reads_gives_zeros(
    mixer: str, batch: int, n_queries: int, n_keys: int, plain: bool
) -> None:
    ours = mixer_of(mixer)
    x, memory = (sequence[:batch] for sequence in sequences(n_queries, n_keys))
    for real in (None, torch.ones(batch, n_keys, dtype=torch.bool)):
        z = ours(x, Frame.across(memory, n_queries, real_bk=real, plain=plain))
        assert z.shape == x.shape
        if not n_keys:
            assert z.count_nonzero() == 0
        z.sum().backward()
