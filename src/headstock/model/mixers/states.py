"""The shell of mixers whose past is a state of fixed size, and how they walk over tokens.

One function, three evaluations: with every weight in sight; token by token, as decoding does; and chunk by chunk,
each chunk's own tokens weighed in sight and all before them read from the state. A state starts anew where a document
begins, and padding leaves it as it is. It is kept in float32 or wider, and no key is kept.
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import torch
from torch import Tensor

from headstock.errors import UserError
from headstock.model.attention import shared_by_groups, wide
from headstock.model.cache import State
from headstock.model.config import ModelConfig
from headstock.model.dropout import dropout
from headstock.model.evaluations import note
from headstock.model.frame import Frame
from headstock.model.heads import Heads
from headstock.model.mixers.base import HeadMixer
from headstock.model.shapes import Mixed, Residual, Weights
from headstock.model.visibility import Visible

CHUNK = 64
"""Tokens a chunk."""

Step: TypeAlias = Callable[[State, int], tuple[Tensor, State]]
"""From the state before a token and the token's place to what it reads, (batch, …), and the state after it."""


@dataclass(frozen=True)
class Passage:
    """What a walk over the tokens being read must know of them: which are padding, and where documents begin."""

    real_bk: Tensor | None
    """bool (batch, key)"""
    document_bk: Tensor | None
    """int (batch, 1 + key): the document of the state before, then of each token; padding belongs to the last one."""

    @classmethod
    def of(cls, visible: Visible) -> "Passage":
        """Read it off what the tokens may see.

        Raises UserError where a document goes on after another: by then the state has left it.
        """
        if not visible.n_queries:  # nothing to walk over
            return cls(None, None)
        real_bk, document_bk = visible.real_bk, visible.document_bk
        first = visible.before + visible.n_keys - visible.n_queries
        if document_bk is not None:
            document_bk = _without_padding(document_bk, real_bk)
            _refuse_returning(document_bk)
            document_bk = torch.cat([document_bk[:, max(first - 1, 0), None], document_bk[:, first:]], dim=1)
        return cls(None if real_bk is None else real_bk[:, first:], document_bk)

    def walk(self, step: Step, start: State, n_tokens: int) -> tuple[Tensor, State]:
        """Go token by token, the recurrent evaluation; give what is read, (batch, token, …), and the state after all.

        Padding reads zeros.
        """
        state, outputs = start, []
        for token in range(n_tokens):
            if self.document_bk is not None:
                begins_b = self.document_bk[:, token + 1] != self.document_bk[:, token]
                state = _where(begins_b, tuple(torch.zeros_like(x) for x in state), state)
            output, after = step(state, token)
            if self.real_bk is not None:
                after = _where(self.real_bk[:, token], after, state)
            outputs.append(output)
            state = after
        z = torch.stack(outputs, dim=1)
        return z if self.real_bk is None else z * _like(self.real_bk, z), state


@dataclass(frozen=True)
class Chunk:
    """Tokens that stand side by side, after a state. Keys of padding are zeros, and whatever they write is nothing."""

    heads: Heads
    """What `prepare` made of them; `heads.visible` says what they see of each other."""
    document_bk: Tensor | None
    """As in Passage."""

    def of_state(self, x_bhkd: Tensor) -> Tensor:
        """Give x, (batch, head, key, d), where a token reads on in the document that the state is of; 0 elsewhere."""
        if self.document_bk is None:
            return x_bhkd
        return x_bhkd * (self.document_bk[:, 1:] == self.document_bk[:, :1])[:, None, :, None]

    def to_the_end(self, x_bhkd: Tensor) -> Tensor:
        """Give x, (batch, head, key, d), where a token's document is that of the last token; 0 elsewhere."""
        if self.document_bk is None:
            return x_bhkd
        return x_bhkd * (self.document_bk[:, 1:] == self.document_bk[:, -1:])[:, None, :, None]

    def kept(self, state: Tensor) -> Tensor:
        """Give a tensor of the state, (batch, …), or 0 where another document has begun by the chunk's end."""
        if self.document_bk is None:
            return state
        return state * _like(self.document_bk[:, -1] == self.document_bk[:, 0], state)

    @cached_property
    def real_so_far_bk(self) -> Tensor:
        """int (batch or 1, key): the chunk's tokens up to each, its own included, padding left out."""
        visible = self.heads.visible
        if visible.real_bk is None:
            return torch.arange(1, visible.n_keys + 1, device=visible.device)[None]
        return visible.real_bk.cumsum(-1)


class StateMixer(HeadMixer):
    """A mixer that sums the past up in a state, and reads its average from there.

    A mixer of your own gives `start`, `update` and `recall`, each for one token of all heads, and nothing else: the
    shell walks, starts anew at documents, skips padding, and keeps the state in the cache. Where the average is
    linear in the values, its weights follow: they are what it makes of values that are one-hot. Give `mix_chunk` too
    and whole sequences are mixed chunk by chunk; give `weights_of` and the weights need no walk.

    Grouped heads: there is one state a key head, and each of its query heads reads from it.
    """

    @abstractmethod
    def start(self, heads: Heads) -> State:
        """Give the state before any token: zeros, each (batch, …), in the dtype of heads."""

    @abstractmethod
    def update(self, state: State, k_bhd: Tensor, v_bhd: Tensor, *gates_bh: Tensor) -> State:
        """Write one token's key and value into a copy of the state. Its gates come last, if the mixer has any."""

    @abstractmethod
    def recall(self, state: State, q_bhd: Tensor) -> Tensor:
        """Give what one query a key head reads from the state, (batch, key head, d): the token's own write included."""

    def prepare(self, heads: Heads) -> Heads:
        """Do to queries, keys, values and gates what needs no other token; they are float32 or wider here."""
        return heads

    def mix_chunk(self, state: State, chunk: Chunk) -> tuple[Mixed, State] | None:
        """Give what the tokens read, (batch, query head, query, d), and the state after; or None for no such way."""
        return None

    def weights_of(self, heads: Heads) -> Weights:
        """Give the weights (batch, head, query, key): what the walk makes of one-hot values.

        Raises UserError where weights_are is "none", and where a walk would not see all that is to be seen.
        """
        if not heads.visible.causal:
            raise UserError(
                f"{type(self).__name__} walks from the first token to the last: give it a weights_of that sees all "
                f"keys at once, or refuse 'causal' and 'cross attention'."
            )
        self._refuse_without_weights()
        batch, groups, n_tokens, _ = heads.v_bhkd.shape
        one_hot = torch.eye(n_tokens, dtype=heads.v_bhkd.dtype, device=heads.v_bhkd.device)
        heads = replace(heads, v_bhkd=one_hot.expand(batch, groups, -1, -1))
        return self._token_by_token(self.start(heads), heads, Passage.of(heads.visible))[0]

    def mix_plainly(self, heads: Heads) -> Mixed:
        """Average with every weight in sight."""
        return self._averaged(self.weights_of(heads), heads)

    def mix_whole(self, heads: Heads) -> Mixed:
        """Average where no query is before another: causal=false, or another sequence is read."""
        return self.mix_plainly(heads)

    def weighing_hooks(self) -> tuple[str, ...]:
        """The weights, where there are any; between a state and what is read from it there are no scores."""
        return () if self.weights_are == "none" or type(self).forward is not StateMixer.forward else ("hook_pattern",)

    def __init__(self, config: ModelConfig, layer: int) -> None:
        super().__init__(config, layer)
        self.drop_weights = config.dropout_attention

    @classmethod
    def kept_numbers(cls, config: ModelConfig) -> int:
        """Nothing is kept a token."""
        return 0

    @classmethod
    def state_numbers(cls, config: ModelConfig) -> int:
        """A matrix a key head, from keys to values. A mixer with another state says so."""
        sizes = cls.sizes(config)
        return sizes.key_heads * sizes.key_size * sizes.value_size

    @classmethod
    def memory_is_linear(cls, config: ModelConfig) -> bool:
        """States, and weights within chunks, grow linearly."""
        return config.dropout_attention == 0

    def read(self, x_bqm: Residual, frame: Frame) -> Heads:
        """Give what `project` gives, prepared, in float32 or wider; no key of the past, whose place the state takes."""
        heads = self.project(x_bqm, frame)
        wide_heads = replace(heads, q_bhqd=wide(heads.q_bhqd), k_bhkd=wide(heads.k_bhkd), v_bhkd=wide(heads.v_bhkd))
        return self.prepare(wide_heads)

    def forward(self, x_bqm: Residual, frame: Frame) -> Residual:
        """Project, mix, map out."""
        heads = self.read(x_bqm, frame)
        dropping = self.training and self.drop_weights > 0
        if dropping and frame.caches is not None:
            raise UserError("dropout_attention drops weights, but a state that is read on from has none: call eval().")
        looking = self.looks_within(heads)
        if looking and frame.caches is not None:
            raise UserError(
                f"{type(self).__name__} keeps a state and not the keys of past tokens, so its hook_pattern shows whole "
                f"sequences alone: leave the cache out, in generate by use_cache=False."
            )
        passage = None if not heads.visible.causal else Passage.of(heads.visible)  # refuses in every evaluation alike
        if dropping:
            weights = heads.hooks("hook_pattern", self.weights_of(heads))
            z = self._averaged(dropout(weights, self.drop_weights, frame.draws), heads)
        elif looking:
            z = self._averaged(heads.hooks("hook_pattern", self.weights_of(heads)), heads)
        elif passage is None:
            z = self.mix_plainly(heads) if frame.plain else self.mix_whole(heads)
        elif frame.plain and frame.caches is None and self.weights_are != "none":
            z = self.mix_plainly(heads)
        else:
            z = self._mix_along(heads, passage, frame)
        return self.out(z.to(x_bqm.dtype), heads)

    def weights(self, x_bqm: Residual, frame: Frame) -> Weights:
        """Give the exact weights, in float32 or wider. For a whole sequence: a state keeps no keys to weigh."""
        self._refuse_without_weights()
        heads = self.read(x_bqm, frame)
        if heads.visible.causal:
            Passage.of(heads.visible)
        return self.weights_of(heads)

    def _mix_along(self, heads: Heads, passage: Passage, frame: Frame) -> Tensor:
        """Walk, from the cache's state if there is one, and leave the state there."""
        cache = None if frame.caches is None else frame.caches[self.layer]
        state = cache.state if cache is not None and cache.state else self.start(heads)
        if not heads.visible.n_queries:  # nothing to walk over
            return heads.v_bhkd.new_zeros(heads.v_bhkd.shape[0], self.heads.output_heads, 0, self.heads.value_size)
        mixed = None
        if not frame.plain and heads.visible.n_queries > 1:
            mixed = self._chunk_by_chunk(state, heads, passage)
        z, state = self._token_by_token(state, heads, passage) if mixed is None else mixed
        if cache is not None:
            cache.state = state
        return z

    def _token_by_token(self, state: State, heads: Heads, passage: Passage) -> tuple[Tensor, State]:
        note("recurrent")
        batch, groups, _, width = heads.k_bhkd.shape
        a_group = self.heads.query_heads // groups
        gates = () if heads.gates_bhk is None else (heads.gates_bhk,)

        def step(state: State, token: int) -> tuple[Tensor, State]:
            gates_now = (gates_bhk[:, :, token] for gates_bhk in gates)
            state = self.update(state, heads.k_bhkd[:, :, token], heads.v_bhkd[:, :, token], *gates_now)
            q_bghd = heads.q_bhqd[:, :, token].reshape(batch, groups, a_group, width)
            z = [self.recall(state, q_bhd) for q_bhd in q_bghd.unbind(2)]
            return torch.stack(z, dim=2).flatten(1, 2), state

        z_bqhd, state = passage.walk(step, state, heads.visible.n_queries)
        return z_bqhd.transpose(1, 2), state

    def _chunk_by_chunk(self, state: State, heads: Heads, passage: Passage) -> tuple[Tensor, State] | None:
        n_tokens, real_bk = heads.visible.n_queries, passage.real_bk
        if real_bk is not None:
            heads = replace(heads, k_bhkd=heads.k_bhkd * real_bk[:, None, :, None])
        whole = Visible(CHUNK, CHUNK, heads.visible.device)  # one for all chunks that nothing is hidden in
        outputs = []
        for first in range(0, n_tokens, CHUNK):
            last = min(first + CHUNK, n_tokens)
            visible = whole
            document_bk = None if passage.document_bk is None else passage.document_bk[:, first : last + 1]
            if last - first < CHUNK or real_bk is not None or document_bk is not None:
                visible = Visible(
                    last - first,
                    last - first,
                    heads.visible.device,
                    real_bk=None if real_bk is None else real_bk[:, first:last],
                    document_bk=None if document_bk is None else document_bk[:, 1:],
                )
            mixed = self.mix_chunk(state, Chunk(_tokens(heads, first, last, visible), document_bk))
            if mixed is None:
                return None
            z, state = mixed
            outputs.append(z)
        note("chunked")
        z = torch.cat(outputs, dim=2)
        return z if real_bk is None else z * real_bk[:, None, :, None], state

    def _averaged(self, weights_bhqk: Tensor, heads: Heads) -> Tensor:
        return weights_bhqk @ shared_by_groups(heads.v_bhkd, self.heads.output_heads)

    def _refuse_without_weights(self) -> None:
        if self.weights_are == "none":
            raise UserError(f"{type(self).__name__} has no weights to show: what it recalls is no average of values.")


def _tokens(heads: Heads, first: int, last: int, visible: Visible) -> Heads:
    """Give the tokens from first to last alone; visible: what they see of each other."""
    here = slice(first, last)
    return replace(
        heads,
        q_bhqd=heads.q_bhqd[:, :, here],
        k_bhkd=heads.k_bhkd[:, :, here],
        v_bhkd=heads.v_bhkd[:, :, here],
        gates_bhk=None if heads.gates_bhk is None else heads.gates_bhk[:, :, here],
        visible=visible,
        x_bqm=heads.x_bqm[:, here],
    )


def _without_padding(document_bk: Tensor, real_bk: Tensor | None) -> Tensor:
    """Give each padding token the document of the last real token before it, or of the first one."""
    if real_bk is None:
        return document_bk
    places = torch.arange(real_bk.shape[1], device=real_bk.device)
    last_real = (places * real_bk).cummax(dim=1).values
    first_real = real_bk.int().argmax(dim=1, keepdim=True)
    return document_bk.gather(1, torch.maximum(last_real, first_real))


def _refuse_returning(document_bk: Tensor) -> None:
    ordered = document_bk.sort(dim=1).values
    begins, different = ((x[:, 1:] != x[:, :-1]).sum(1) for x in (document_bk, ordered))
    if bool((begins > different).any()):
        raise UserError(
            "a document goes on after another has begun, but a mixer with a state has forgotten it by then: give the "
            "tokens of a document side by side, or each part a number of its own."
        )


def _where(chosen_b: Tensor, these: State, others: State) -> State:
    return tuple(torch.where(_like(chosen_b, a), a, b) for a, b in zip(these, others, strict=True))


def _like(chosen: Tensor, x: Tensor) -> Tensor:
    """Give `chosen` as many axes as x has."""
    return chosen.view(*chosen.shape, *(1,) * (x.ndim - chosen.ndim))
