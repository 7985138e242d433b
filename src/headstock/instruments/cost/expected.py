"""What a pass through a block has to hold at once, by formula: no more than its tensors' shapes.

A pass is a row of stages. Each works in some memory and, where gradients are wanted, leaves some behind until the
backward pass comes back to it; the peak is at the stage where what has been left and what is worked in come to most.
Counted is what the plain formula of each stage needs, float32: an implementation holds copies, masks and the room of
its kernels beside. Inputs, parameters and their gradients are not counted, nor are the two norms' statistics.

Knows nothing of what a mixer of its own does besides weighing and averaging, such as a norm of each head.
"""

from typing import Literal, get_args

import torch

from headstock.errors import UserError, near_name
from headstock.instruments.cost.result import Part, Pass
from headstock.model.blockwise import BLOCK, SHORTEST
from headstock.model.config import ModelConfig
from headstock.model.mixers import mixer_class
from headstock.model.mixers.base import ScoreMixer
from headstock.model.visibility import hides_most

OF_SCORES, OF_STATES = 3, 2
"""Maps that are stored at once: scores, masked scores and weights; without a mask's copy, scores and weights."""
KEPT = 1
"""Maps that are left for the backward pass at the least: the weights."""
OF_PENALTIES = 2
"""ALiBi's penalties where a fused kernel adds them to its scores: as they are, and as the mask that it is given."""


def stored_once(config: ModelConfig, length: int, batch: int = 1) -> int | None:
    """Give the bytes of every weight of every map of one block, float32; None where a mixer's weights are none."""
    kind = mixer_class(config.mixer)
    if kind.weights_are == "none":
        return None
    return batch * kind.sizes(config).query_heads * length**2 * torch.float32.itemsize


def maps_at_once(config: ModelConfig) -> int:
    """Give how many maps as large as all weights are held at once where they are stored."""
    return OF_SCORES if issubclass(mixer_class(config.mixer), ScoreMixer) else OF_STATES


def memory_is_linear(config: ModelConfig, step: Pass) -> bool:
    """Say whether a pass stores no map of all weights; dropout stores them in training alone."""
    if step == "forward":
        config = config.model_copy(update={"dropout_attention": 0.0})
    return mixer_class(config.mixer).memory_is_linear(config)


def expected_bytes(
    config: ModelConfig, length: int, part: Part, step: Pass, *, batch: int = 1, plain: bool = False
) -> int:
    """Give what has to be held at once beyond inputs, parameters and their gradients, for a mixer with heads.

    plain: every weight is stored; where not, as the mixer's fast evaluation does without padding.
    Raises UserError for a part or a pass that there is not.
    """
    for given, known in ((part, get_args(Part)), (step, get_args(Pass))):
        if given not in known:
            raise UserError(f"there is no {given!r} to foresee: {near_name(str(given), known)}")
    stages = _Stages(config, length, batch, step, plain)
    numbers = {
        "block": stages.block,
        "projections": stages.projections,
        "mixing": stages.mixing,
        "feedforward": stages.feedforward,
    }[part]()
    return numbers * torch.float32.itemsize


class _Stages:
    """Numbers, not bytes, that the stages of one block hold."""

    def __init__(self, config: ModelConfig, length: int, batch: int, step: Pass, plain: bool) -> None:
        self.training = step == "training"
        kind = mixer_class(config.mixer)
        sizes = kind.sizes(config)
        tokens = batch * length
        self.residual = tokens * config.d_model
        self.queries = tokens * sizes.query_heads * sizes.key_size
        self.keys = tokens * sizes.key_heads * sizes.key_size
        self.values = tokens * sizes.value_heads * sizes.value_size
        self.gates = tokens * sizes.gates
        self.averages = tokens * sizes.output_heads * sizes.value_size
        self.has_output_map = config.output_map
        # A token that is its own query, key or value is not held again; one map of queries and keys gives one tensor.
        mapped = [
            (self.queries, config.query_key != "identity"),
            (self.keys, config.query_key == "learned"),
            (self.values, config.value_map == "learned"),
            (self.gates, True),
        ]
        self.projected = sum(numbers for numbers, is_mapped in mapped if is_mapped)
        widths = [numbers // tokens for numbers, is_mapped in mapped if is_mapped]
        widths += [self.averages // tokens] if config.output_map else []
        self.widest_map = config.d_model * max(widths, default=0)
        self.own = kind.own_parameters(config)
        self.normed = self.residual if config.norm != "none" else 0
        self.inner = tokens * config.d_ff if config.feedforward != "none" else 0
        self.gated = config.feedforward == "swiglu"
        self.inner_map = config.d_model * config.d_ff if config.feedforward != "none" else 0
        maps = batch * sizes.query_heads
        a_map = maps * length**2
        way = _way(config, length, step, plain)
        stored = a_map if way == "stored" else 0
        penalties = sizes.query_heads * length**2 if way == "penalties" else 0  # the same for every row of the batch
        self.kept = KEPT * stored + penalties
        # A fused kernel may write averages side by side; others give them by head, to be copied.
        sides = 1 if _is_fused(config) and way != "stored" else 2
        self.with_averages = stored + OF_PENALTIES * penalties + sides * self.averages
        of_a_block = maps * _largest_block(length, config.window) if way == "blocks" else 0
        self.at_once = maps_at_once(config) * (stored + of_a_block) + OF_PENALTIES * penalties

    @property
    def heads(self) -> int:
        """What mixing reads."""
        return self.queries + self.keys + self.values + self.gates

    @property
    def left(self) -> int:
        """What mixing leaves for the backward pass beside what it read."""
        return self.averages + self.kept

    def mixing(self) -> int:
        """Maps, then averages; for the backward pass the gradients of all that was read."""
        mixed = max(self.at_once, self.with_averages)
        return max(mixed, self.left + self.heads + self.own) if self.training else mixed

    def projections(self) -> int:
        """All that is given; for the backward pass the gradients of all that was read, and of one map."""
        given = self.projected + (self.residual if self.has_output_map else 0)
        if not self.training:
            return given
        return given + self.residual + (self.averages if self.has_output_map else 0) + self.widest_map

    def feedforward(self) -> int:
        """Both sides of the function between the maps; for the backward pass the gradients of one side, too."""
        if not self.training:
            return max((3 if self.gated else 2) * self.inner, self.inner + self.residual)
        first = (5 if self.gated else 3) * self.inner + self.inner_map
        return self.residual + max(first, 6 * self.inner if self.gated else 0)

    def block(self) -> int:
        """The fullest stage; in training with all that those before it have left."""
        before = self.normed + self.projected
        mixing = before + self.mixing()
        if not self.training:
            return max(mixing, self.residual + self.normed + self.feedforward() if self.inner else 0)
        after = before + self.left
        if self.inner:
            after += self.residual + self.normed + self.feedforward()
        else:
            after += self.residual + self.widest_map
        return max(mixing, after)


def _way(config: ModelConfig, length: int, step: Pass, plain: bool) -> Literal["stored", "penalties", "blocks", "free"]:
    """Say what of all pairs of tokens is in memory at once: every weight, ALiBi's penalties, or a block's weights.

    "free": none of them, or mixing goes a way of its own, of which no more is known here.
    """
    kind = mixer_class(config.mixer)
    if plain or (step == "training" and config.dropout_attention):
        return "stored"
    if not issubclass(kind, ScoreMixer):
        return "free" if memory_is_linear(config, step) else "stored"
    if memory_is_linear(config, step):
        if _is_fused(config):
            return "free"
        return "blocks" if length >= SHORTEST else "stored"
    for_its_penalties = memory_is_linear(config.model_copy(update={"position": "none"}), step)
    if config.position != "alibi" or not (_is_fused(config) and for_its_penalties):
        return "stored"
    return "free" if hides_most(config.window, length) or kind.subtracts_maps(config) else "penalties"


def _is_fused(config: ModelConfig) -> bool:
    """Say whether a mixer of scores averages by a way of its own, not by blocks."""
    kind = mixer_class(config.mixer)
    return issubclass(kind, ScoreMixer) and kind.has_fast_way(config)


def _largest_block(length: int, window: int | None) -> int:
    """Give the weights of one map in the block that has most of them: the last whole one, or the rest after it."""
    whole = length // BLOCK * BLOCK
    rest = length - whole
    seen = length if window is None else window - 1
    return max(BLOCK * min(whole, seen + BLOCK), rest * min(length, seen + rest))
