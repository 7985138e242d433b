"""With causal=false every token sees every other: the same laws hold, and what needs a past is refused."""

import pytest
import torch
from torch import Tensor, nn

from headstock.errors import UserError
from headstock.model.cache import Cache
from headstock.model.causality import refuse_looking_ahead
from headstock.model.config import POSITIONS, config_of
from headstock.model.frame import Frame
from headstock.model.kernels import kernel_that_ran
from headstock.model.mixers import mixer_class, mixer_names
from headstock.model.mixers.linear import Linear
from headstock.model.mixers.states import StateMixer
from headstock.model.transformer import Block, build
from headstock.model.visibility import Visible
from tests.model.cases import BATCH, SIZES, TIME, Case, both_paths, close, some_ids, stirred
from tests.model.test_paths_agree import DOCUMENTS, READINGS, padded

LOOK_BOTH_WAYS = [mixer for mixer in mixer_names() if "causal" not in mixer_class(mixer).refuses]
LOOK_BACK_ALONE = [mixer for mixer in mixer_names() if mixer not in LOOK_BOTH_WAYS]
CASES = [
    *(
        Case(f"{mixer}-{position}", f"{mixer}+{position},causal=false")
        for mixer in LOOK_BOTH_WAYS
        for position in POSITIONS
        if position not in mixer_class(mixer).refuses and position != "xpos"
    ),
    Case("grouped-heads", "softmax+rope,n_kv_heads=2,causal=false"),
    Case("grouped-differential", "differential+alibi,n_heads=8,n_kv_heads=4,causal=false"),
    Case("shared-query-key", "softmax,query_key=shared,causal=false"),
    Case("token-as-query-key-and-value", "softmax,query_key=identity,value_map=identity,causal=false"),
    Case("soft-cap", "softmax+alibi,soft_cap=0.5,causal=false"),
    Case("qk-norm", "softmax1+rope,qk_norm=rmsnorm,causal=false"),
    Case("post-norm", "softmax,norm_placement=post,causal=false"),
]
every_case = pytest.mark.parametrize("case", CASES, ids=str)
every_mixer = pytest.mark.parametrize("mixer", LOOK_BOTH_WAYS)
without_order = [mixer for mixer in LOOK_BOTH_WAYS if not mixer_class(mixer).sees_order]
SHUFFLED = torch.tensor([4, 7, 0, 8, 2, 6, 1, 3, 5])


@both_paths
@pytest.mark.parametrize("mixer", without_order)
def test_without_positions_a_shuffled_sequence_gives_shuffled_logits(mixer: str, plain: bool) -> None:
    ids = some_ids()
    for position, is_equivariant in (("none", True), ("learned", False)):
        model = Case(mixer, f"{mixer}+{position},causal=false").model()
        model.plain = plain
        with torch.no_grad():
            gap = (model(ids[:, SHUFFLED]) - model(ids)[:, SHUFFLED]).abs().max()
        assert (gap < 1e-10) == is_equivariant


@every_case
def test_the_first_token_sees_the_last(case: Case) -> None:
    model, ids = case.model(), some_ids()
    other = ids.clone()
    other[:, 1:] = (other[:, 1:] + 1) % model.config.vocab_size
    with torch.no_grad():
        for block in model.weights(ids):
            assert block[:, :, 0, 1:].count_nonzero() > 0
        assert not torch.allclose(model(other)[:, 0], model(ids)[:, 0])


@pytest.mark.parametrize("reading", READINGS)
@every_case
def test_fast_evaluation_equals_plain_in_logits_and_gradients(case: Case, reading: str) -> None:
    model, ids = case.model(), some_ids()
    real = READINGS[reading].get("real", torch.ones_like(ids, dtype=torch.bool))
    results = []
    for model.plain in (False, True):
        model.zero_grad()
        logits = model(ids, **READINGS[reading])
        logits[real].square().mean().backward()
        results.append([logits.detach(), *(p.grad for p in model.parameters())])
    for fast, plain in zip(*results, strict=True):
        close(fast, plain)


@both_paths
@pytest.mark.parametrize("side", ["left", "right"])
@every_case
def test_a_padded_row_equals_the_row_alone(case: Case, side: str, plain: bool) -> None:
    model, ids, real = case.model(), some_ids(), padded(side)
    model.plain = plain
    with torch.no_grad():
        together = model(ids, real=real)
        for row in range(BATCH):
            close(together[row, real[row]], model(ids[row : row + 1, real[row]])[0])


@every_case
def test_packed_documents_equal_separate_ones(case: Case) -> None:
    model, ids = case.model(), some_ids()
    with torch.no_grad():
        packed = model(ids, documents=DOCUMENTS)
        for row in range(BATCH):
            for document in DOCUMENTS[row].unique():
                here = DOCUMENTS[row] == document
                close(packed[row, here], model(ids[row : row + 1, here])[0])


@both_paths
@every_mixer
def test_a_row_of_padding_alone_gives_zeros_and_finite_gradients(mixer: str, plain: bool) -> None:
    mixing = Case(mixer, f"{mixer},causal=false").model().blocks[0].mixer
    x = torch.randn(2, TIME, 16, dtype=torch.float64, requires_grad=True)
    real = torch.tensor([[True], [False]]).expand(-1, TIME)
    mixed = mixing(x, Frame(Visible(TIME, TIME, x.device, causal=False, real_bk=real), plain=plain))
    assert mixed[1].count_nonzero() == 0
    assert mixed[0].count_nonzero() > 0
    mixed.square().sum().backward()
    assert x.grad.isfinite().all()
    assert all(p.grad.isfinite().all() for p in mixing.parameters() if p.grad is not None)


@both_paths
@pytest.mark.parametrize("pre_norm", [False, True], ids=["post-norm", "pre-norm"])
@pytest.mark.parametrize("is_padded", [False, True], ids=["whole", "padded"])
def test_a_block_is_torchs_encoder_layer(is_padded: bool, pre_norm: bool, plain: bool) -> None:
    variant = f"softmax,qkv_bias=true,output_bias=true,causal=false,norm_placement={'pre' if pre_norm else 'post'}"
    ours = stirred(Block(config_of(variant, **SIZES), 0))
    theirs = nn.TransformerEncoderLayer(
        16, 4, 64, dropout=0.0, activation="gelu", norm_first=pre_norm, batch_first=True, dtype=torch.float64
    )
    mixing, feedforward = ours.mixer, ours.feedforward
    with torch.no_grad():
        for kind in ("weight", "bias"):
            maps = [getattr(part, kind) for part in (mixing.query, mixing.key, mixing.value)]
            getattr(theirs.self_attn, f"in_proj_{kind}").copy_(torch.cat(maps))
    for their_part, our_part in (
        (theirs.self_attn.out_proj, mixing.output),
        (theirs.linear1, feedforward.into),
        (theirs.linear2, feedforward.out),
        (theirs.norm1, ours.mixer_norm),
        (theirs.norm2, ours.feedforward_norm),
    ):
        their_part.load_state_dict(our_part.state_dict())
    x = torch.randn(BATCH, TIME, 16, dtype=torch.float64)
    real = padded("right") if is_padded else torch.ones(BATCH, TIME, dtype=torch.bool)
    visible = Visible(TIME, TIME, x.device, causal=False, real_bk=real if is_padded else None)
    expected = theirs(x, src_key_padding_mask=~real)
    close(ours(x, Frame(visible, plain=plain))[real], expected[real])


@pytest.mark.parametrize("position", ["none", "rope", "alibi"])
@every_mixer
def test_a_long_sequence_is_mixed_alike_fast_and_plain(mixer: str, position: str) -> None:
    if position in mixer_class(mixer).refuses:
        position = "learned"
    variant = f"{mixer}+{position},causal=false,context=540"
    model, ids = Case(mixer, variant).model(torch.float32), some_ids(batch=2, time=540)
    real = torch.arange(540).expand(2, -1) >= torch.tensor([[0], [400]])
    with torch.no_grad():
        fast = model(ids, real=real)[real]
        model.plain = True
        close(fast, model(ids, real=real)[real], atol=1e-4)


@pytest.mark.parametrize("variant", ["softmax", "softmax+alibi", "softmax1+rope", "differential2"])
def test_a_fused_mixer_stays_fused(variant: str) -> None:
    assert kernel_that_ran(build(f"{variant},causal=false", **SIZES), some_ids()) == "fused (flash, CPU)"


def test_a_distance_ahead_costs_what_a_distance_back_does() -> None:
    visible = Visible(3, 3, torch.device("cpu"), causal=False, slopes_h=torch.ones(1))
    assert visible.penalty_bhqk[0, 0].tolist() == [[0, -1, -2], [-1, 0, -1], [-2, -1, 0]]


def refusal(variant: str) -> str:
    with pytest.raises(UserError) as caught:
        build(variant, **SIZES)
    return str(caught.value)


@pytest.mark.parametrize("mixer", LOOK_BACK_ALONE)
def test_a_mixer_that_can_only_look_back_says_why(mixer: str) -> None:
    reason = mixer_class(mixer).refuses["causal"]
    assert refusal(f"{mixer},causal=false") == f"{mixer} cannot use causal=false: {reason}; leave causal out."


def test_what_is_defined_by_looking_back_is_refused() -> None:
    assert "a window looks back" in refusal("softmax,window=4,causal=false")
    assert "xpos lets a score fall with the distance back" in refusal("softmax+xpos,causal=false")


class Walks(Linear):
    """Leaves its weights to the walk, which is what a state mixer does that says no more."""

    weights_of = StateMixer.weights_of
    mix_whole = StateMixer.mix_whole


@pytest.mark.parametrize("is_across", [False, True], ids=["both-ways", "across"])
def test_a_walk_from_the_first_token_to_the_last_is_not_taken_for_seeing_all(is_across: bool) -> None:
    mixing, x = Walks(config_of("linear", **SIZES), 0), torch.randn(BATCH, TIME, 16)
    frame = Frame.across(x, TIME) if is_across else Frame(Visible(TIME, TIME, x.device, causal=False))
    for call in (mixing, mixing.weights):
        with pytest.raises(UserError, match="Walks walks from the first token to the last: give it a weights_of"):
            call(x, frame)


def test_a_cache_and_generation_need_a_causal_model() -> None:
    model, ids = build("softmax,causal=false", **SIZES), some_ids()
    with pytest.raises(UserError, match="causal=false reads a sequence whole, so nothing can follow it"):
        model(ids, cache=Cache(2))
    with pytest.raises(UserError, match="only a causal model can generate"):
        model.generate(ids, max_new_tokens=1)


@every_mixer
def test_foretelling_what_is_seen_is_no_training(mixer: str) -> None:
    model, ids = build(f"{mixer},causal=false", **SIZES), some_ids()
    with pytest.raises(UserError, match="causal=false sees the very tokens that it would be asked to foretell"):
        refuse_looking_ahead(model, ids)


def logits_of_real(model: nn.Module, ids: Tensor, real: Tensor) -> Tensor:
    return model(ids, real=real)[real]


@every_mixer
def test_another_token_of_padding_changes_nothing(mixer: str) -> None:
    model, ids, real = Case(mixer, f"{mixer},causal=false").model(), some_ids(), padded("left")
    with torch.no_grad():
        other = ids.masked_fill(~real, 0)
        assert not torch.equal(other, ids)
        close(logits_of_real(model, other, real), logits_of_real(model, ids, real), atol=0)
