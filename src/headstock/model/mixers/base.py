"""The interface of every mixer, and the shells that they share.

A mixer answers "where do the weights of the average come from?". The shell owns the rest: projections, grouped
heads, positions, masks, cache, dropout, the choice of evaluation and the output map. A mixer of your own needs
`weigh` and nothing else; give `mix_fast` too and the shell uses it wherever the weights need not be seen. A mixer
whose past is a state of fixed size derives from `StateMixer`, in states.py.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from headstock.errors import UserError
from headstock.model.attention import dot_products, shared_by_groups, wide
from headstock.model.blockwise import by_blocks
from headstock.model.config import POSITIONS, ROTARY, TOPK_KEYS, ModelConfig
from headstock.model.dropout import dropout
from headstock.model.frame import Frame
from headstock.model.heads import Heads
from headstock.model.hooks import UNHOOKED, PassHooks
from headstock.model.norms import RMSNorm, norm
from headstock.model.shapes import (
    Keys,
    KeysPerQueryHead,
    Mixed,
    Queries,
    Residual,
    Scores,
    Values,
    VisibleTensor,
    Weights,
)
from headstock.model.visibility import Visible

WeightsAre = Literal["normalised", "signed", "unnormalised", "none"]
CROSS = "cross attention"
"""What `Mixer.refuses` calls reading another sequence's keys and values."""
KEYS_OF_SOME = {
    "k": "it chooses no keys",
    "lambda_init": "it has no λ_init",
    "lambda_scale": "it has no λ_init",
    "lambdas": "no λ of its own belongs to a layer or a head",
}
"""ModelConfig's keys that a mixer reads only where its `reads` names them, each with what the others lack."""
HEAD_NORM_EPS = 1e-5
"""Of the norm of a head's output, as the paper on differential attention has it."""


@dataclass(frozen=True, kw_only=True)
class HeadSizes:
    """How many heads of which width a mixer uses: queries are scored with keys, weights average values."""

    query_heads: int
    key_heads: int
    key_size: int
    """0 for a mixer that looks at no content: its scores are all 0, its keys cost nothing."""
    value_heads: int
    value_size: int
    output_heads: int
    gates: int = 0
    """Numbers that a token gives beside its query, key and value, by a map of their own without bias."""

    @classmethod
    def usual(cls, config: ModelConfig, *, key_size: int | None = None, gates: int = 0) -> "HeadSizes":
        """One map and one output a query head."""
        return cls(
            query_heads=config.n_heads,
            key_heads=config.n_kv_heads,
            key_size=config.d_head if key_size is None else key_size,
            value_heads=config.n_kv_heads,
            value_size=config.d_head,
            output_heads=config.n_heads,
            gates=gates,
        )


class Mixer(nn.Module, ABC):
    """Mixes positions: (batch, query, model) → the same shape."""

    weights_are: ClassVar[WeightsAre]
    """normalised: rows sum to 1. signed: some are negative. unnormalised: rows sum to anything. none: no average."""
    is_floor: ClassVar[bool] = False
    """A comparison holds every other arm against a floor too: who is not above it has learnt nothing of use."""
    sees_order: ClassVar[bool] = False
    """Whether it can tell one order of the keys from another without any position."""
    numbers_heads: ClassVar[bool] = False
    """Whether what a key head does follows from its number, as a decay fixed for each: then none copies another."""
    mixes_heads: ClassVar[bool] = False
    """Whether one head's maps move another head's output, as where heads talk to each other."""
    refuses: ClassVar[Mapping[str, str]] = {}
    """Positions, ModelConfig's keys, or "cross attention", that mean nothing here, each with its reason."""
    reads: ClassVar[frozenset[str]] = frozenset()
    """Those of `KEYS_OF_SOME` that this mixer reads."""
    tried_with: ClassVar[Mapping[str, Any]] = {}
    """ModelConfig's keys with which `headstock check` tries it where they are not given: sizes that its fast evaluation
    begins at, where small ones would pass it by."""
    norms_heads: ClassVar[bool] = False
    """Whether its formula has a norm of each head's output, which head_norm=none leaves out; it sees to that itself."""

    @classmethod
    def check(cls, config: ModelConfig) -> None:
        """Raise UserError where the config asks for what this mixer cannot be."""
        if config.position in cls.refuses:
            other = next(position for position in ("learned", "none", *POSITIONS) if position not in cls.refuses)
            raise UserError(
                f"{config.mixer} cannot use {config.position}: {cls.refuses[config.position]}; "
                f"choose another position, such as {config.mixer}+{other}."
            )
        for key, value in config.chosen.items():
            if key in cls.refuses and key not in POSITIONS:
                raise UserError(
                    f"{config.mixer} cannot use {_written(key, value)}: {cls.refuses[key]}; leave {key} out."
                )
            if key in KEYS_OF_SOME and key not in cls.reads:
                raise UserError(
                    f"{config.mixer} has no use for {_written(key, value)}: {KEYS_OF_SOME[key]}; leave {key} out."
                )
        if config.k is None and "k" in cls.reads:
            raise UserError(
                f"{config.mixer} needs to know how many keys it averages: give a number, such as k={TOPK_KEYS}."
            )

    def __init__(self, config: ModelConfig, layer: int) -> None:
        super().__init__()
        self.check(config)
        self.layer = layer

    @abstractmethod
    def forward(self, x_bqm: Residual, frame: Frame) -> Residual:
        """Mix."""

    @abstractmethod
    def weights(self, x_bqm: Residual, frame: Frame) -> Weights:
        """Give the exact weights (batch, head, query, key) of the average that `forward` takes of x.

        Raises UserError where weights_are is "none".
        """

    @classmethod
    def weights_under(cls, config: ModelConfig) -> WeightsAre:
        """Say what the weights are under a config, whose choices may leave of signed ones none below 0."""
        return cls.weights_are

    @classmethod
    def subtracts_maps(cls, config: ModelConfig) -> bool:
        """Whether each head subtracts a map from another and shows them as hook_pattern_2 and hook_pattern_1."""
        return False

    def hook_names(self) -> list[str]:
        """Give the names of the inner values that `forward` shows to `frame.hooks.attn(self.layer)`, in order."""
        return []

    def initialise(self, generator: torch.Generator) -> None:
        """Fill the parameters that are this mixer's own, not the shell's, drawing from the generator."""

    @classmethod
    def own_parameters(cls, config: ModelConfig) -> int:
        """Count the numbers one layer trains beyond the shell's maps."""
        return 0

    @classmethod
    def adds_head_norm(cls, config: ModelConfig) -> bool:
        """Whether a norm of each head's output is asked for that its formula does not have."""
        return config.head_norm == "rmsnorm" and not cls.norms_heads

    @classmethod
    def own_flops(cls, config: ModelConfig) -> int:
        """Count the operations one layer spends on a token in projections that are not the shell's."""
        return 0

    @classmethod
    def mixing_flops(cls, config: ModelConfig, length: int) -> int:
        """Count the operations of scoring and averaging, one layer, one query among `length` keys, done plainly."""
        sizes = cls.sizes(config)
        return 2 * length * (sizes.query_heads * sizes.key_size + sizes.output_heads * sizes.value_size)

    @classmethod
    def kept_numbers(cls, config: ModelConfig) -> int:
        """Count the numbers that one layer's cache keeps a token, in the model's dtype."""
        sizes = cls.sizes(config)
        return sizes.key_heads * sizes.key_size + sizes.value_heads * sizes.value_size

    @classmethod
    def state_numbers(cls, config: ModelConfig) -> int:
        """Count the numbers that one layer's cache keeps whatever the length, in float32 or wider."""
        return 0

    @classmethod
    def memory_is_linear(cls, config: ModelConfig) -> bool:
        """Whether training without padding needs memory that grows linearly with the length."""
        return False

    @classmethod
    def sizes(cls, config: ModelConfig) -> HeadSizes:
        """Say how many heads there are and how wide, from which the formulas of `accounting` follow."""
        return HeadSizes.usual(config)


class HeadMixer(Mixer):
    """The shell of mixers with heads: maps of queries, keys, values and gates, positions, cache, and the output map."""

    keeps_gates: ClassVar[bool] = False
    """Whether the gates of past tokens are needed later, and so are cached with the keys."""

    def __init__(self, config: ModelConfig, layer: int) -> None:
        super().__init__(config, layer)
        sizes = self.heads = self.sizes(config)
        self.scale_scores = config.scale_scores
        self.score_scale: float | None = None
        """What q·k is multiplied by, for a mixer that does so itself; 1/√d where not said."""
        self.turns = config.position in ROTARY
        width, bias = config.d_model, config.qkv_bias
        self.query = self.key = self.value = self.gate = self.output = None
        self.query_norm = self.key_norm = None
        if sizes.key_size and config.query_key != "identity":
            self.query = nn.Linear(width, sizes.query_heads * sizes.key_size, bias)
            if config.query_key == "learned":
                self.key = nn.Linear(width, sizes.key_heads * sizes.key_size, bias)
        if config.value_map == "learned":
            self.value = nn.Linear(width, sizes.value_heads * sizes.value_size, bias)
        if sizes.gates:
            self.gate = nn.Linear(width, sizes.gates, bias=False)
        if sizes.key_size and config.qk_norm != "none":
            self.query_norm = norm(config.qk_norm, sizes.key_size, config.norm_eps)
            self.key_norm = norm(config.qk_norm, sizes.key_size, config.norm_eps)
        self.is_head_normed = self.adds_head_norm(config)
        if self.is_head_normed:
            self.head_norm = RMSNorm(sizes.value_size, HEAD_NORM_EPS)
        if config.output_map:
            self.output = nn.Linear(sizes.output_heads * sizes.value_size, width, config.output_bias)

    @classmethod
    def kept_numbers(cls, config: ModelConfig) -> int:
        """Keys, values, and gates where they are kept."""
        return super().kept_numbers(config) + (cls.sizes(config).gates if cls.keeps_gates else 0)

    def finish(self, z_bhqd: Mixed, heads: Heads) -> Mixed:
        """What is done to each head's average before the output map."""
        return z_bhqd

    def out(self, z_bhqd: Mixed, heads: Heads) -> Residual:
        """Norm each head where asked to, finish, put the heads side by side, and map them into the residual."""
        if self.is_head_normed:
            z_bhqd = self.head_norm(z_bhqd)
        return into_residual(self.finish(z_bhqd, heads).transpose(1, 2), self.output, heads.hooks)

    def hook_names(self) -> list[str]:
        """Give what is projected, what weighing shows, and what each head gives."""
        names = ["hook_q", "hook_k"] if self.heads.key_size else []
        names += ["hook_v"]
        if self.heads.key_size and self.turns:
            names += ["hook_rot_q", "hook_rot_k"]
        if self.gate is not None:
            names += ["hook_gate"]
        return [*names, *self.weighing_hooks(), "hook_z", "hook_result"]

    def weighing_hooks(self) -> tuple[str, ...]:
        """Give the names of what only weighing in plain sight has; asking for one moves a pass to it."""
        return ()

    def looks_within(self, heads: Heads) -> bool:
        """Whether somebody waits for a value that only weighing in plain sight has."""
        return heads.hooks is not UNHOOKED and heads.hooks.wants(*self.weighing_hooks())

    def project(self, x_bqm: Residual, frame: Frame) -> Heads:
        """Give queries, keys, values and gates of the tokens being read, turned but not yet remembered."""
        sizes, hooks = self.heads, frame.hooks.attn(self.layer)
        source_bkm = x_bqm
        if frame.memory_bkm is not None:
            if CROSS in self.refuses:
                raise UserError(f"{type(self).__name__} cannot read another sequence: {self.refuses[CROSS]}.")
            source_bkm = frame.memory_bkm
        if sizes.key_size:
            q_flat = x_bqm if self.query is None else self.query(x_bqm)
            if self.key is not None:
                k_flat = self.key(source_bkm)
            elif frame.memory_bkm is None:
                k_flat = q_flat
            else:
                k_flat = source_bkm if self.query is None else self.query(source_bkm)
        else:
            q_flat, k_flat = x_bqm[..., :0], source_bkm[..., :0]
        v_flat = source_bkm if self.value is None else self.value(source_bkm)
        q = _split(q_flat, sizes.query_heads, sizes.key_size)
        k = _split(k_flat, sizes.key_heads, sizes.key_size)
        v = _split(v_flat, sizes.value_heads, sizes.value_size)
        if self.query_norm is not None and self.key_norm is not None:
            q, k = self.query_norm(q), self.key_norm(k)
        q, k, v = hooks.projected(q, k, v)
        if frame.rotation is not None:
            q = hooks.by_position("hook_rot_q", frame.rotation.of_queries(q))
            k = hooks.by_position("hook_rot_k", frame.rotation.of_keys(k))
        if not self.scale_scores and self.score_scale is None:
            q = q * math.sqrt(sizes.key_size)  # which this mixer's evaluations divide by
        gates = None
        if self.gate is not None:
            read_bqm = source_bkm if self.keeps_gates else x_bqm
            gates = hooks("hook_gate", wide(self.gate(read_bqm))).transpose(1, 2)
        return Heads(q, k, v, gates, frame.visible, x_bqm, self.keeps_gates, hooks)

    def read(self, x_bqm: Residual, frame: Frame) -> Heads:
        """Give what `project` gives, and the keys, values and kept gates of all that the cache remembers."""
        heads = self.project(x_bqm, frame)
        if frame.caches is None:
            return heads
        cache = frame.caches[self.layer]
        if not self.keeps_gates or heads.gates_bhk is None:
            k, v = cache.extend(heads.k_bhkd, heads.v_bhkd)
            return replace(heads, k_bhkd=k, v_bhkd=v)
        narrow = heads.gates_bhk.to(heads.k_bhkd.dtype)  # which the map gave them in
        k, v, gates = cache.extend(heads.k_bhkd, heads.v_bhkd, narrow)
        return replace(heads, k_bhkd=k, v_bhkd=v, gates_bhk=wide(gates))


class ScoreMixer(HeadMixer):
    """A mixer whose weights come from scores of queries and keys.

    Each row of weights follows from that row of scores alone: so a query can be answered after a cache, and a long
    sequence block by block, without all weights ever being stored.
    """

    weights_are: ClassVar[WeightsAre] = "unnormalised"  # which promises nothing; a mixer that knows more says so

    def __init__(self, config: ModelConfig, layer: int) -> None:
        super().__init__(config, layer)
        self.soft_cap = config.soft_cap
        self.drop_weights = config.dropout_attention

    @abstractmethod
    def weigh(self, scores_bhqk: Scores, visible_bhqk: VisibleTensor) -> Weights:
        """Turn scores into weights; hidden keys, where visible is False, must weigh exactly 0."""

    def score(self, q_bhqd: Queries, k_bhkd: Keys, visible: Visible) -> Scores:
        """Score each key for each query: q·k/√d, capped where a soft cap is asked for, less ALiBi's penalty."""
        return dot_products(q_bhqd, k_bhkd, visible, self.soft_cap, self.score_scale)

    def scores_of(self, heads: Heads) -> Scores:
        """Score each key for each query of one forward pass. A mixer whose gates move scores overrides this."""
        return self.score(heads.q_bhqd, self.key_for_each_query_head(heads.k_bhkd), heads.visible)

    def weights_of(self, heads: Heads) -> Weights:
        """Give the weights, plainly: what `weigh` makes of the scores. A mixer whose gates move weights overrides."""
        return self.weigh(*heads.hooks.scores("hook_attn_scores", self.scores_of(heads), heads.visible))

    def weighing_hooks(self) -> tuple[str, ...]:
        """Scores and weights; no scores where a mixer has a `weights_of` of its own."""
        if type(self).forward is not ScoreMixer.forward:
            return ()
        scored = type(self).weights_of is ScoreMixer.weights_of
        return ("hook_attn_scores", "hook_pattern") if scored else ("hook_pattern",)

    def mix_fast(self, q_bhqd: Queries, k_bhkd: Keys, v_bhkd: Values, visible: Visible) -> Mixed | None:
        """Average without storing the weights, or give None where there is no such way.

        Not asked where scores are capped, which no fused kernel does.
        """
        return None

    def mix(self, heads: Heads) -> Mixed:
        """Average by the fastest way there is. A mixer that needs its gates for that overrides this."""
        if self.soft_cap is None:
            z = self.mix_fast(heads.q_bhqd, heads.k_bhkd, heads.v_bhkd, heads.visible)
            if z is not None:
                return z
        return by_blocks(self.mix_plainly, heads)

    def mix_plainly(self, heads: Heads) -> Mixed:
        """Average with every weight in sight."""
        return self._averaged(self.weights_of(heads), heads)

    def forward(self, x_bqm: Residual, frame: Frame) -> Residual:
        """Project, mix, map out."""
        heads = self.read(x_bqm, frame)
        if self.training and self.drop_weights > 0:
            weights = heads.hooks("hook_pattern", self.weights_of(heads))
            z = self._averaged(dropout(weights, self.drop_weights, frame.draws), heads)
        elif self.looks_within(heads):
            z = self._averaged(heads.hooks("hook_pattern", self.weights_of(heads)), heads)
        else:
            z = self.mix_plainly(heads) if frame.plain else self.mix(heads)
        return self.out(z, heads)

    def weights(self, x_bqm: Residual, frame: Frame) -> Weights:
        """Give the exact weights, in float32 or wider."""
        return self.weights_of(self.read(x_bqm, frame))

    def key_for_each_query_head(self, k_bhkd: Keys) -> KeysPerQueryHead:
        """Repeat grouped keys."""
        return shared_by_groups(k_bhkd, self.heads.query_heads)

    def _averaged(self, weights_bhqk: Tensor, heads: Heads) -> Tensor:
        wanted = (len(heads.q_bhqd), self.heads.output_heads, heads.q_bhqd.shape[2], heads.k_bhkd.shape[2])
        given = getattr(weights_bhqk, "shape", None)  # of a user's mixer: another one might be spread without a word
        if given != wanted:
            said = type(weights_bhqk).__name__ if given is None else f"weights of shape {tuple(given)}"
            raise UserError(f"{type(self).__name__} gives {said} instead of (batch, head, query, key), {wanted}.")
        return weights_bhqk.to(heads.v_bhkd.dtype) @ shared_by_groups(heads.v_bhkd, self.heads.output_heads)

    @classmethod
    def memory_is_linear(cls, config: ModelConfig) -> bool:
        """Fused or, if causal, by blocks, no weight is stored; but the fused kernel wants all of ALiBi's penalties."""
        return config.dropout_attention == 0 and (
            config.position != "alibi" if cls.has_fast_way(config) else config.causal
        )

    @classmethod
    def has_fast_way(cls, config: ModelConfig) -> bool:
        """Whether it averages by a way of its own, such as a fused kernel, and not by blocks."""
        overridden = cls.mix_fast is not ScoreMixer.mix_fast or cls.mix is not ScoreMixer.mix
        return overridden and config.soft_cap is None


def into_residual(z_bqhd: Tensor, output: nn.Linear | None, hooks: PassHooks) -> Residual:
    """Put heads side by side and map them into the residual; where each head's part is asked for, add those up."""
    z_bqhd = hooks("hook_z", z_bqhd)
    merged_bqe = z_bqhd.flatten(2)
    if not hooks.wants("hook_result"):
        return merged_bqe if output is None else output(merged_bqe)
    weight_me = torch.eye(merged_bqe.shape[-1]).to(merged_bqe) if output is None else output.weight
    weight_mhd = weight_me.view(-1, *z_bqhd.shape[2:])
    x_bqm: Tensor = hooks("hook_result", torch.einsum("bqhd,mhd->bqhm", z_bqhd, weight_mhd)).sum(2)
    return x_bqm if output is None or output.bias is None else x_bqm + output.bias


def _written(key: str, value: object) -> str:
    return f"{key}={str(value).lower() if isinstance(value, bool) else value}"


def _split(x_bqe: Tensor, heads: int, size: int) -> Tensor:
    """(batch, query, heads·size) → (batch, head, query, size)"""
    return x_bqe.view(*x_bqe.shape[:2], heads, size).transpose(1, 2)
