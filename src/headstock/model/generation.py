"""Continuing a sequence one token at a time, with the cache, greedily or by drawing."""

import math
from typing import Literal

import torch
from torch import Tensor

from headstock.errors import UserError
from headstock.model.cache import Cache
from headstock.model.shapes import Continued, Ids
from headstock.model.transformer import Transformer, refuse_input


@torch.no_grad()
def generate(
    model: Transformer,
    ids_bq: Ids,
    max_new_tokens: int,
    *,
    temperature: float = 0.0,
    top_k: int | None = None,
    top_p: float | None = None,
    stop_token: int | None = None,
    overflow: Literal["refuse", "slide"] = "refuse",
    seed: int = 0,
    real: Tensor | None = None,
    use_cache: bool = True,
) -> Continued:
    """Give ids followed by up to max_new_tokens more, (batch, time + new).

    temperature: 0 takes the likeliest token; above, draws from softmax(logits / temperature), seeded.
    top_k, top_p: draw from the k likeliest tokens, from the fewest likeliest that hold probability p (Holtzman et
    al., 2020), or from those that satisfy both.
    stop_token: a row that gave it is filled up with it; generation ends when every row has.
    overflow: what happens past the model's context: refuse before anything is generated, or slide, which reads the
    last `context` tokens anew for every token.
    real: bool (batch, time), False where ids is padding, so that prompts of different lengths share a batch.
    use_cache: False reads everything anew for every token, the plain form that the cache is tested against.

    Raises UserError for a choice outside its range, an empty prompt, or a context that would be passed.
    """
    _refuse(model, ids_bq, real, max_new_tokens, temperature, top_k, top_p, overflow)
    generator = torch.Generator(ids_bq.device).manual_seed(seed)
    context = model.config.context
    stopped = torch.zeros(ids_bq.shape[0], dtype=torch.bool, device=ids_bq.device)
    cache = Cache(model.config.n_layers) if use_cache else None
    unread = ids_bq
    was_training = model.training
    model.eval()
    try:
        for _ in range(max_new_tokens):
            if cache is not None and cache.length + unread.shape[1] > context:
                cache = None  # from here on the window slides, and every place in it is a new one
            if cache is None:
                logits_bv = _last_logits(model, *_window(ids_bq, real, context))
            else:
                logits_bv = _last_logits(model, unread, real if cache.length == 0 else None, cache)
            token_b = choose(logits_bv, temperature, top_k, top_p, generator)
            if stop_token is not None:
                token_b = torch.where(stopped, stop_token, token_b)
                stopped = stopped | (token_b == stop_token)
            unread = token_b[:, None]
            ids_bq = torch.cat([ids_bq, unread], dim=1)
            if real is not None:
                real = torch.cat([real, torch.ones_like(unread, dtype=torch.bool)], dim=1)
            if stop_token is not None and bool(stopped.all()):
                break
    finally:
        model.train(was_training)
    return ids_bq


def _window(ids_bq: Tensor, real: Tensor | None, context: int) -> tuple[Tensor, Tensor | None]:
    """Give each row's last `context` real tokens and which of them are real; padding goes to the left."""
    if real is None:
        return ids_bq[:, -context:], None
    order = real.int().argsort(dim=1, stable=True)[:, -context:]
    return ids_bq.gather(1, order), real.gather(1, order)


def _last_logits(model: Transformer, ids_bq: Tensor, real: Tensor | None, cache: Cache | None = None) -> Tensor:
    """Give the logits (batch, vocabulary) after each row's last real token; only there the unembedding runs."""
    hidden_bqm = model.hidden(ids_bq, cache=cache, real=real)
    if real is None:
        return model.logits(hidden_bqm[:, -1])
    places = torch.arange(real.shape[1], device=real.device)
    last_b = torch.where(real, places, 0).amax(1)
    return model.logits(hidden_bqm[torch.arange(len(last_b), device=real.device), last_b])


def choose(
    logits_bv: Tensor, temperature: float, top_k: int | None, top_p: float | None, generator: torch.Generator
) -> Tensor:
    """Choose one token a row, int64 (batch,)."""
    if temperature == 0:
        return logits_bv.argmax(-1)
    logits_bv = logits_bv.float()
    # The likeliest at 0 and no division by a number that float32 rounds to 0: never NaN, however small the temperature.
    logits_bv = (logits_bv - logits_bv.amax(-1, keepdim=True)) / max(temperature, 1e-30)
    if top_k is not None and top_k < logits_bv.shape[-1]:
        kept = logits_bv.topk(top_k, dim=-1)
        logits_bv = torch.full_like(logits_bv, -math.inf).scatter(-1, kept.indices, kept.values)
    if top_p is not None and top_p < 1:
        ranked, order = logits_bv.sort(dim=-1, descending=True)
        before = ranked.softmax(-1).cumsum(-1) - ranked.softmax(-1)
        ranked = ranked.masked_fill(before >= top_p, -math.inf)  # the token that reaches p is still in
        logits_bv = torch.full_like(logits_bv, -math.inf).scatter(-1, order, ranked)
    return torch.multinomial(logits_bv.softmax(-1), 1, generator=generator)[:, 0]


def _refuse(
    model: Transformer,
    ids_bq: Tensor,
    real: Tensor | None,
    max_new_tokens: int,
    temperature: float,
    top_k: int | None,
    top_p: float | None,
    overflow: str,
) -> None:
    refuse_input(ids_bq, real, None)
    prompt, context = ids_bq.shape[1], model.config.context
    if not model.config.causal:
        raise UserError("causal=false sees tokens that are not there yet: only a causal model can generate.")
    if ids_bq.numel() == 0 or (real is not None and not bool(real.any(1).all())):
        raise UserError("the prompt is empty: give at least one token to continue.")
    if max_new_tokens < 0:
        raise UserError(f"max_new_tokens is {max_new_tokens}: give 0 or more.")
    if not 0 <= temperature < math.inf:
        raise UserError(f"the temperature is {temperature}: give 0 for the likeliest token, or a positive number.")
    if top_k is not None and top_k < 1:
        raise UserError(f"top_k is {top_k}: give 1 or more tokens to choose from.")
    if top_p is not None and not 0 < top_p <= 1:
        raise UserError(f"top_p is {top_p}: give a probability above 0 and up to 1.")
    if temperature == 0 and (top_k is not None or top_p is not None):
        raise UserError("top_k and top_p choose among draws, but temperature=0 draws nothing: give a temperature.")
    if overflow not in ("refuse", "slide"):
        raise UserError(f"overflow is {overflow!r}: choose 'refuse' or 'slide'.")
    if overflow == "refuse" and max_new_tokens and prompt + max_new_tokens - 1 > context:
        raise UserError(
            f"{prompt} tokens and {max_new_tokens} more pass the model's context of {context}: ask for at most "
            f"{max(context - prompt + 1, 0)}, or choose overflow='slide', which sees the last {context} tokens only."
        )
