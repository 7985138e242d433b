"""The whole model: a decoder-only Transformer whose every part a ModelConfig names. Read it from top to bottom.

Letters after a name are its axes: b batch, q the tokens being read, k those and all that a cache remembers, m model
width, v vocabulary.
"""

from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from headstock.errors import UserError
from headstock.model.cache import Cache
from headstock.model.config import ROTARY, ModelConfig, config_of
from headstock.model.dropout import DropoutDraws, dropout
from headstock.model.feedforward import feedforward
from headstock.model.frame import Frame
from headstock.model.hooked import Hooked
from headstock.model.hooks import UNHOOKED
from headstock.model.initialisation import initialise
from headstock.model.mixers import mixer_class
from headstock.model.norms import norm
from headstock.model.positions import (
    LearnedPositions,
    Rotation,
    SinusoidalPositions,
    alibi_slopes,
    refuse_past_table,
    refuse_past_xpos,
)
from headstock.model.shapes import Continued, Ids, Logits, Residual, Weights
from headstock.model.visibility import Visible


class Block(nn.Module):
    """A mixer, then a feed-forward; each with its norm before it or after it, added to its input or replacing it."""

    def __init__(self, config: ModelConfig, layer: int) -> None:
        super().__init__()
        self.layer = layer
        self.pre_norm = config.norm_placement == "pre"
        self.added = config.residual == "added"
        self.drop = config.dropout_residual
        self.mixer_norm = norm(config.norm, config.d_model, config.norm_eps)
        self.mixer = mixer_class(config.mixer)(config, layer)
        self.has_feedforward = config.feedforward != "none"
        if self.has_feedforward:
            self.feedforward_norm = norm(config.norm, config.d_model, config.norm_eps)
            self.feedforward = feedforward(config)

    def forward(self, x_bqm: Residual, frame: Frame) -> Residual:
        """Mix positions, then work on each alone."""
        hooks = frame.hooks.block(self.layer)
        x_bqm = hooks("hook_resid_pre", x_bqm)
        read_bqm = hooks("ln1.hook_normalized", self.mixer_norm(x_bqm)) if self.pre_norm else x_bqm
        mixed_bqm = hooks("hook_attn_out", self._dropped(self.mixer(read_bqm, frame), frame))
        x_bqm = self._join(x_bqm, mixed_bqm, self.mixer_norm)
        if self.has_feedforward:
            x_bqm = hooks("hook_resid_mid", x_bqm)
            read_bqm = hooks("ln2.hook_normalized", self.feedforward_norm(x_bqm)) if self.pre_norm else x_bqm
            worked_bqm = hooks("hook_mlp_out", self._dropped(self.feedforward(read_bqm, hooks), frame))
            x_bqm = self._join(x_bqm, worked_bqm, self.feedforward_norm)
        return hooks("hook_resid_post", x_bqm)

    def hook_names(self) -> list[str]:
        """Give the names of the block's inner values, in the order of the pass."""
        normed = self.pre_norm and not isinstance(self.mixer_norm, nn.Identity)
        names = ["hook_resid_pre", *(["ln1.hook_normalized"] if normed else [])]
        names += [*(f"attn.{name}" for name in self.mixer.hook_names()), "hook_attn_out"]
        if self.has_feedforward:
            names += ["hook_resid_mid", *(["ln2.hook_normalized"] if normed else [])]
            names += [*(f"mlp.{name}" for name in self.feedforward.hook_names), "hook_mlp_out"]
        return [*names, "hook_resid_post"]

    def _dropped(self, output_bqm: Tensor, frame: Frame) -> Tensor:
        return dropout(output_bqm, self.drop, frame.draws) if self.training and self.drop else output_bqm

    def _join(self, x_bqm: Tensor, output_bqm: Tensor, after: nn.Module) -> Tensor:
        joined = x_bqm + output_bqm if self.added else output_bqm
        return joined if self.pre_norm else after(joined)


class Transformer(Hooked):
    """Token ids in, logits of the next token out. Made by `build`, which also draws its numbers.

    Raises UserError where the config's parts do not fit its mixer.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        mixer_class(config.mixer).check(config)  # said even where no block would ask
        self.config = config
        self.plain = False
        """Take every mixer's plain evaluation, the slow truth that the fast ones are held to."""
        self.embed = nn.Embedding(config.vocab_size, config.d_model)
        self.position: nn.Module | None = None
        if config.position == "learned":
            self.position = LearnedPositions(config.context, config.d_model)
        elif config.position == "sinusoidal":
            self.position = SinusoidalPositions(config.d_model, like=self.embed.weight)
        self.blocks = nn.ModuleList(Block(config, layer) for layer in range(config.n_layers))
        self.final_norm = norm(config.norm if config.final_norm else "none", config.d_model, config.norm_eps)
        self.unembed = None if config.tied else nn.Linear(config.d_model, config.vocab_size, config.unembed_bias)

    def forward(
        self,
        ids_bq: Ids,
        *,
        cache: Cache | None = None,
        real: Tensor | None = None,
        documents: Tensor | None = None,
        draws: DropoutDraws | None = None,
    ) -> Logits:
        """Logits (batch, time, vocabulary) of the token after each.

        cache: read on after what it remembers, and remember these tokens too.
        real: bool (batch, time), False for padding on either side. Rows of padding give logits without meaning.
        documents: int (batch, time); tokens of different documents packed in one row do not see each other.
        draws: what dropout draws from while training; torch's generator where not given.

        Raises UserError for ids that are no tokens and for a sequence past the end of a learned table.
        """
        return self.logits(self.hidden(ids_bq, cache=cache, real=real, documents=documents, draws=draws))

    def hidden(
        self,
        ids_bq: Ids,
        *,
        cache: Cache | None = None,
        real: Tensor | None = None,
        documents: Tensor | None = None,
        draws: DropoutDraws | None = None,
    ) -> Residual:
        """Give the residual after the last block and the final norm: all of `forward` but the unembedding."""
        refuse_input(ids_bq, real, documents)
        if cache is not None and not self.config.causal:
            raise UserError("causal=false reads a sequence whole, so nothing can follow it: leave the cache out.")
        with nullcontext() if cache is None else cache.reading():
            frame = self._frame(ids_bq, cache, real, documents, draws)
            x_bqm = self._embedded(ids_bq, frame)
            for block in self.blocks:
                x_bqm = block(x_bqm, frame)
            x_bqm = frame.hooks("ln_final.hook_normalized", self.final_norm(x_bqm))
            frame.hooks.refuse_unreached()
            if cache is not None and self.config.window is not None:
                cache.forget_past(self.config.window)
        return x_bqm

    def logits(self, x_bqm: Tensor) -> Tensor:
        """Unembed: (…, model) → (…, vocabulary)."""
        if self.unembed is None:
            return nn.functional.linear(x_bqm, self.embed.weight)
        return self.unembed(x_bqm)  # type: ignore[no-any-return]

    def weights(self, ids_bq: Ids, *, real: Tensor | None = None, documents: Tensor | None = None) -> list[Weights]:
        """Give each block's exact weights (batch, head, query, key) while reading ids."""
        names = [f"blocks.{layer}.attn.hook_pattern" for layer in range(len(self.blocks))]
        if set(names) <= set(self.hook_names()):
            with self.collecting(names) as found:
                self.hidden(ids_bq, real=real, documents=documents)
            return [found[name] for name in names]
        # Mixers whose forward is their own say their weights beside it, of what they read in the pass.
        mixers = [block.mixer for block in self.blocks if isinstance(block, Block)]
        read: list[tuple[Tensor, Frame]] = []
        watching = [mixer.register_forward_pre_hook(lambda _, given: read.append(given)) for mixer in mixers]
        try:
            self.hidden(ids_bq, real=real, documents=documents)
        finally:
            for handle in watching:
                handle.remove()
        return [
            mixer.weights(x_bqm, replace(frame, hooks=UNHOOKED))
            for mixer, (x_bqm, frame) in zip(mixers, read, strict=True)
        ]

    def generate(self, ids_bq: Ids, max_new_tokens: int, **choices: Any) -> Continued:
        """Continue ids by up to max_new_tokens tokens: see `headstock.model.generation.generate`."""
        from headstock.model.generation import generate

        return generate(self, ids_bq, max_new_tokens, **choices)

    @property
    def described(self) -> str:
        """Its variant."""
        return self.config.variant

    def hook_names(self) -> list[str]:
        """Give the name of every inner value that can be read and replaced, in the order of the pass."""
        names = ["hook_embed", *([] if self.position is None else ["hook_pos_embed"])]
        for block in self.blocks:
            assert isinstance(block, Block)
            names += [f"blocks.{block.layer}.{name}" for name in block.hook_names()]
        return names if isinstance(self.final_norm, nn.Identity) else [*names, "ln_final.hook_normalized"]

    def _embedded(self, ids_bq: Tensor, frame: Frame) -> Tensor:
        try:
            x_bqm: Tensor = self.embed(ids_bq)
        except IndexError:
            raise UserError(
                f"ids go from {int(ids_bq.min())} to {int(ids_bq.max())} but the vocabulary has "
                f"{self.config.vocab_size} tokens: give ids from 0 to {self.config.vocab_size - 1}."
            ) from None
        x_bqm = frame.hooks("hook_embed", x_bqm)
        if self.position is not None:
            places_qm = self.position(frame.visible.query_positions)
            if frame.hooks.wants("hook_pos_embed"):
                places_qm = frame.hooks("hook_pos_embed", places_qm.expand_as(x_bqm))
            x_bqm = x_bqm + places_qm
        if self.training and self.config.dropout_embedding:
            x_bqm = dropout(x_bqm, self.config.dropout_embedding, frame.draws)
        return x_bqm

    def _frame(
        self,
        ids_bq: Tensor,
        cache: Cache | None,
        real: Tensor | None,
        documents: Tensor | None,
        draws: DropoutDraws | None,
    ) -> Frame:
        """Decide once what all blocks share."""
        config, dtype, device = self.config, self.embed.weight.dtype, ids_bq.device
        n_keys = ids_bq.shape[1]
        if cache is not None:
            cache.serve(config, ids_bq.shape[0], dtype)
            real, documents = cache.extend_reading(real, documents, ids_bq)
            n_keys = cache.length - cache.forgotten
        visible = Visible(
            ids_bq.shape[1],
            n_keys,
            device,
            causal=config.causal,
            real_bk=real,
            document_bk=documents,
            slopes_h=self._slopes(device, dtype) if config.position == "alibi" else None,
            window=config.window,
            before=0 if cache is None else cache.forgotten,
        )
        if config.position == "learned":
            refuse_past_table(visible, config.context, "the learned positions")
        elif config.position == "xpos":
            refuse_past_xpos(visible, dtype)
        rotation = None
        if config.position in ROTARY:
            rotation = Rotation.at(visible.query_positions, config.d_head, dtype, layout=config.position)
        blocks = None if cache is None else cache.blocks
        return Frame(visible, rotation, blocks, draws, self.plain, hooks=self.hook_stack.for_pass())

    def _slopes(self, device: torch.device, dtype: torch.dtype) -> Tensor:
        """Give ALiBi's slope a query head; maps that end in one output have one slope."""
        sizes = mixer_class(self.config.mixer).sizes(self.config)
        exact = torch.float64 if dtype == torch.float64 else torch.float32
        slopes = alibi_slopes(sizes.output_heads).repeat_interleave(sizes.query_heads // sizes.output_heads)
        return slopes.to(device, exact)


_NUMBERS = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
"""What documents may be numbered in: torch neither sorts nor gathers all other integers."""


def refuse_input(ids_bq: Tensor, real: Tensor | None, documents: Tensor | None) -> None:
    """Raise UserError where ids are no integers (batch, time), or real or documents do not say one thing of each."""
    for name, given in (("ids", ids_bq), ("real", real), ("documents", documents)):
        if not isinstance(given, Tensor | None):
            raise UserError(f"{name} must be a tensor, not {type(given).__name__}: give torch.tensor({name}).")
    if ids_bq.ndim != 2 or ids_bq.dtype not in (torch.int64, torch.int32):
        raise UserError(f"ids are {_described(ids_bq)}: give integers of shape (batch, time).")
    if real is not None and (real.dtype != torch.bool or real.shape != ids_bq.shape):
        raise UserError(f"real is {_described(real)}: give a bool for each id, of shape {tuple(ids_bq.shape)}.")
    if documents is not None and (documents.dtype not in _NUMBERS or documents.shape != ids_bq.shape):
        raise UserError(
            f"documents are {_described(documents)}: give an integer for each id, of shape {tuple(ids_bq.shape)}."
        )


def _described(tensor: Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} of shape {tuple(tensor.shape)}"


def build(variant: str, *, seed: int = 0, **overrides: Any) -> Transformer:
    """Give the model of a variant (`softmax+rope,n_heads=8`), its numbers drawn from the seed.

    Overrides are ModelConfig's fields; vocab_size and context are needed. Where both name a key, the variant's own
    value holds. Raises UserError for anything that cannot be built.
    """
    return build_from(config_of(variant, **overrides), seed=seed)


def build_from(config: ModelConfig, *, seed: int = 0) -> Transformer:
    """Give the model of a config, its numbers drawn from the seed; torch's own generators are left as they were."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)  # for what a user's mixer draws in its own __init__
        model = Transformer(config)
    initialise(model, config.init, config.n_layers, seed)
    return model
