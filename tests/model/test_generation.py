"""Generation: what the cache must not change, what each choice draws from, where it ends and what it refuses."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from headstock.errors import UserError
from headstock.model.generation import choose
from headstock.model.transformer import Transformer
from tests.model.cases import CONTEXT, VOCAB, Case, every_case, every_mixer, some_ids

PROMPT = 4


def prompts(batch: int = 3, time: int = PROMPT) -> Tensor:
    return some_ids(batch, time, seed=2)


def likeliest_by_hand(model: Transformer, row: Tensor, new: int) -> Tensor:
    """Read the last `context` tokens of one row anew for every token."""
    with torch.no_grad():
        for _ in range(new):
            row = torch.cat([row, model(row[None, -model.config.context :])[0, -1].argmax()[None]])
    return row


def drawn(logits: Tensor, temperature: float, top_k: int | None, top_p: float | None, draws: int = 4000) -> Tensor:
    """Give how often each token is drawn."""
    generator = torch.Generator().manual_seed(0)
    chosen = choose(logits.expand(draws, -1), temperature, top_k, top_p, generator)
    return chosen.bincount(minlength=len(logits)) / draws


@every_case
def test_greedy_decoding_with_a_cache_equals_reading_again(case: Case) -> None:
    model = case.model()
    cached = model.generate(prompts(), CONTEXT - PROMPT + 1)
    assert torch.equal(cached, model.generate(prompts(), CONTEXT - PROMPT + 1, use_cache=False))
    assert torch.equal(cached[1], likeliest_by_hand(model, prompts()[1], CONTEXT - PROMPT + 1))
    assert torch.equal(cached[:, :PROMPT], prompts())


@pytest.mark.parametrize("use_cache", [True, False], ids=["cached", "uncached"])
@every_mixer
def test_sliding_equals_reading_the_last_tokens_again_by_hand(case: Case, use_cache: bool) -> None:
    model = case.model()
    out = model.generate(prompts(), 2 * CONTEXT, overflow="slide", use_cache=use_cache)
    for row, prompt in zip(out, prompts(), strict=True):
        assert torch.equal(row, likeliest_by_hand(model, prompt, 2 * CONTEXT))


def test_a_prompt_longer_than_the_context_can_slide() -> None:
    model, prompt = Case("softmax", "softmax").model(), prompts(time=CONTEXT + 3)
    assert torch.equal(model.generate(prompt, 3, overflow="slide")[0], likeliest_by_hand(model, prompt[0], 3))


@pytest.mark.parametrize("new", [CONTEXT - PROMPT + 1, CONTEXT + 2], ids=["within", "sliding"])
@pytest.mark.parametrize("use_cache", [True, False], ids=["cached", "uncached"])
@pytest.mark.parametrize("side", ["left", "right"])
@every_mixer
def test_padded_prompts_in_a_batch_equal_single_prompts(case: Case, side: str, use_cache: bool, new: int) -> None:
    model = case.model()
    singles = [prompts()[0], prompts()[1, :1], prompts()[2, :3]]
    real = torch.zeros(3, PROMPT, dtype=torch.bool)
    batch = torch.zeros(3, PROMPT, dtype=torch.int64)
    for row, prompt in enumerate(singles):
        here = slice(None, len(prompt)) if side == "right" else slice(PROMPT - len(prompt), None)
        real[row, here], batch[row, here] = True, prompt
    out = model.generate(batch, new, overflow="slide", real=real, use_cache=use_cache)
    for row, prompt in enumerate(singles):
        assert torch.equal(out[row, PROMPT:], likeliest_by_hand(model, prompt, new)[len(prompt) :])


def test_draws_follow_from_the_seed_and_touch_no_other_generator() -> None:
    model = Case("softmax", "softmax").model()
    state = torch.get_rng_state()
    first = model.generate(prompts(), 8, temperature=1.5, seed=3)
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(99)
    assert torch.equal(model.generate(prompts(), 8, temperature=1.5, seed=3), first)
    assert torch.equal(model.generate(prompts(), 8, temperature=1.5, seed=3, use_cache=False), first)
    assert not torch.equal(model.generate(prompts(), 8, temperature=1.5, seed=4), first)


def test_tokens_are_drawn_as_often_as_softmax_says() -> None:
    logits = torch.tensor([2.0, 0.0, 1.0, -1.0, 0.5])
    for temperature in (0.5, 1.0, 2.0):
        expected = (logits / temperature).softmax(-1)
        assert (drawn(logits, temperature, None, None) - expected).abs().max() < 0.03


def test_top_k_draws_from_the_k_likeliest_in_their_proportion() -> None:
    logits = torch.tensor([2.0, 0.0, 1.0, -1.0, 0.5])
    frequency = drawn(logits, 1.0, 2, None)
    assert frequency[[1, 3, 4]].tolist() == [0, 0, 0]
    assert frequency[0].item() == pytest.approx(1 / (1 + math.exp(-1)), abs=0.03)
    assert (drawn(logits, 1.0, 99, None) > 0).all()


def test_top_p_draws_from_the_fewest_likeliest_that_hold_p() -> None:
    logits = torch.tensor([0.15, 0.5, 0.05, 0.3]).log()
    for top_p, kept in ((0.4, {1}), (0.51, {1, 3}), (0.79, {1, 3}), (0.9, {0, 1, 3}), (1.0, {0, 1, 2, 3})):
        assert set(drawn(logits, 1.0, None, top_p).nonzero().flatten().tolist()) == kept, top_p
    assert set(drawn(logits, 1.0, 3, 0.97).nonzero().flatten().tolist()) == {0, 1, 3}


@given(
    logits=st.lists(st.floats(-8, 8, width=32), min_size=2, max_size=12, unique=True),
    top_k=st.integers(1, 12),
    top_p=st.floats(0.01, 1.0),
    temperature=st.floats(0.1, 5.0),
)
def test_every_draw_lies_in_both_restrictions(
    logits: list[float], top_k: int, top_p: float, temperature: float
) -> None:
    row = torch.tensor(logits, dtype=torch.float64)
    ranked = row.argsort(descending=True)[:top_k]
    probabilities = (row[ranked] / temperature).softmax(-1)
    before = torch.cat([torch.zeros(1), probabilities.cumsum(0)[:-1]])
    allowed = set(ranked[before < top_p + 1e-6].tolist())
    certain = set(ranked[(before < top_p - 1e-6) & (probabilities > 0.05)].tolist())
    seen = set(drawn(row.float(), temperature, top_k, top_p, draws=400).nonzero().flatten().tolist())
    assert certain <= seen <= allowed


@pytest.mark.parametrize("temperature", [1e-3, 1e-40, 5e-324])
def test_a_temperature_near_zero_takes_the_likeliest(temperature: float) -> None:
    logits = torch.tensor([300.0, 301.0, -1e4, 299.0])
    assert drawn(logits, temperature, None, None).tolist() == [0, 1, 0, 0]
    assert drawn(logits, temperature, 3, 0.5).tolist() == [0, 1, 0, 0]


def test_a_stopped_row_is_filled_with_the_stop_token_and_all_stopped_ends_it() -> None:
    model = Case("softmax", "softmax").model()
    several = prompts(batch=8)
    free = model.generate(several, 8)[:, PROMPT:]
    met = torch.stack([(free == token).any(1) for token in range(VOCAB)])
    stop = next(token for token in range(VOCAB) if met[token].any() and not met[token].all())
    out = model.generate(several, 8, stop_token=stop)[:, PROMPT:]
    assert out.shape == free.shape
    for stopped, went_on in zip(out.tolist(), free.tolist(), strict=True):
        length = went_on.index(stop) if stop in went_on else 8
        assert stopped == went_on[:length] + [stop] * (8 - length)
    row = int(met[stop].nonzero()[0])
    alone = model.generate(several[row : row + 1], 8, stop_token=stop)[0, PROMPT:].tolist()
    assert alone == free[row].tolist()[: free[row].tolist().index(stop) + 1]


def test_generation_reads_in_evaluation_mode_and_gives_the_mode_back() -> None:
    model = Case("softmax", "softmax,dropout_attention=0.5,dropout_residual=0.5,dropout_embedding=0.5").model()
    expected = model.generate(prompts(), 6)
    model.train()
    assert torch.equal(model.generate(prompts(), 6), expected)
    assert model.training
    with pytest.raises(UserError):
        model.generate(prompts(), 99)
    assert model.training


def test_nothing_asked_gives_the_prompt_back() -> None:
    model = Case("softmax", "softmax").model()
    assert torch.equal(model.generate(prompts(), 0), prompts())


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"max_new_tokens": 10}, r"4 tokens and 10 more pass .* context of 12: ask for at most 9, or .*'slide'"),
        ({"max_new_tokens": -1}, "max_new_tokens is -1: give 0 or more"),
        ({"temperature": -0.5}, "the temperature is -0.5"),
        ({"temperature": math.nan}, "the temperature is nan"),
        ({"temperature": math.inf}, "the temperature is inf"),
        ({"top_k": 0, "temperature": 1.0}, "top_k is 0"),
        ({"top_p": 0.0, "temperature": 1.0}, "top_p is 0"),
        ({"top_p": 1.5, "temperature": 1.0}, "top_p is 1.5"),
        ({"top_k": 3}, "temperature=0 draws nothing"),
        ({"overflow": "wrap"}, "overflow is 'wrap': choose 'refuse' or 'slide'"),
        ({"ids_bq": torch.zeros(2, 0, dtype=torch.int64)}, "the prompt is empty"),
        ({"ids_bq": torch.zeros(0, 2, dtype=torch.int64)}, "the prompt is empty"),
        ({"ids_bq": torch.zeros(4, dtype=torch.int64)}, r"ids are int64 of shape \(4,\)"),
        ({"real": torch.tensor([[True] * 4, [False] * 4])}, "the prompt is empty"),
        ({"real": torch.ones(2, 4, dtype=torch.int64)}, r"real is int64 of shape \(2, 4\): give a bool"),
    ],
    ids=lambda value: ",".join(value) if isinstance(value, dict) else "",
)
def test_what_cannot_be_generated_is_refused_in_a_sentence(asked: dict[str, object], sentence: str) -> None:
    model = Case("softmax", "softmax").model()
    with pytest.raises(UserError, match=sentence):
        model.generate(**{"ids_bq": prompts(2), "max_new_tokens": 3, **asked})


def test_as_many_tokens_as_the_refusal_names_can_be_generated() -> None:
    model = Case("softmax", "softmax").model()
    assert model.generate(prompts(), CONTEXT - PROMPT + 1).shape == (3, CONTEXT + 1)
    assert int(model.generate(prompts(), 9).max()) < VOCAB
