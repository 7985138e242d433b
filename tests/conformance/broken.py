"""Mixers that are each wrong in one way, in the order of the checks that find them; FAULTS says which."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from headstock.model.attention import (
    fused_attention,
    masked_logsumexp,
    masked_softmax,
    shared_by_groups,
    wide,
)
from headstock.model.mixers.base import ScoreMixer
from headstock.model.mixers.softmax import Softmax
from headstock.model.positions import Rotation


class Sound(ScoreMixer):
    """Softmax by `weigh` alone; nothing is wrong with it."""

    weights_are = "normalised"

    def weigh(self, scores_bhqk, visible_bhqk):
        return masked_softmax(scores_bhqk, visible_bhqk)


class Raises(Sound):
    """Fails whenever it is used."""

    def weigh(self, scores_bhqk, visible_bhqk):
        raise RuntimeError("no weights\ntoday")


# Causality


class PeeksAhead(Sound):
    """Its mask is off by one."""

    def weigh(self, scores_bhqk, visible_bhqk):
        return masked_softmax(scores_bhqk, visible_bhqk | F.pad(visible_bhqk[..., :-1], (1, 0)))


class LeaksByGradient(Sound):
    """What is hidden is worth 0 in value and not in its gradient."""

    def weigh(self, scores_bhqk, visible_bhqk):
        everything = scores_bhqk.softmax(-1)
        return masked_softmax(scores_bhqk, visible_bhqk) + (everything - everything.detach())


class ScalesByTheWhole(Sound):
    """Its scores depend on how long the whole is, not on how many keys a query sees."""

    def weights_of(self, heads):
        scores = self.score(heads.q_bhqd, self.key_for_each_query_head(heads.k_bhkd), heads.visible)
        return self.weigh(scores * (1 + 0.1 * heads.visible.n_keys), heads.visible.dense)


class SkipsAKey(Sound):
    """Never sees the key five places back."""

    sees_order = True
    refuses: ClassVar = {"causal": "it looks back"}

    def weights_of(self, heads):
        seen = heads.visible
        back = torch.arange(seen.n_keys - seen.n_queries, seen.n_keys)[:, None] - torch.arange(seen.n_keys)
        scores = self.score(heads.q_bhqd, self.key_for_each_query_head(heads.k_bhkd), seen)
        return self.weigh(scores, seen.dense & (back != 5))


# Evaluations


class DropsTheScale(Softmax):
    """Its fast evaluation forgets 1/√d."""

    def mix_fast(self, q_bhqd, k_bhkd, v_bhkd, visible):
        keys, values = (shared_by_groups(x, self.heads.query_heads) for x in (k_bhkd, v_bhkd))
        return fused_attention(q_bhqd, keys, values, visible, scale=1.0)


class ForgetsBetweenBlocks(Sound):
    """Its blocks, of which there are several in a long sequence only, see themselves alone."""

    def mix(self, heads):
        if heads.visible.n_queries < 512:
            return self.mix_plainly(heads)
        blocks = []
        for start in range(0, heads.visible.n_queries, 200):
            own = slice(start, min(start + 200, heads.visible.n_queries))
            block = heads.block(start, own.stop)
            whole = block.visible.dense.clone()
            whole[..., : max(0, whole.shape[-1] - (own.stop - start))] = False
            scores = self.score(block.q_bhqd, self.key_for_each_query_head(block.k_bhkd), block.visible)
            blocks.append(self._averaged(self.weigh(scores, whole), block))
        return torch.cat(blocks, dim=2)


class DropsTheOffset(Sound):
    """Counts places from the tokens being read, not from the first."""

    sees_order = True

    def score(self, q_bhqd, k_bhkd, visible):
        places = torch.arange(visible.n_queries)[:, None] - torch.arange(visible.n_keys)
        return super().score(q_bhqd, k_bhkd, visible) - 0.2 * places.abs()


class ForgetsThePast(Sound):
    """After a cache it sees the last four keys."""

    def read(self, x_bqm, frame):
        heads = super().read(x_bqm, frame)
        lost = heads.visible.n_keys - 4
        if frame.caches is None or heads.visible.n_queries > 1 or lost <= 0:
            return heads
        return replace(
            heads,
            k_bhkd=heads.k_bhkd[:, :, lost:],
            v_bhkd=heads.v_bhkd[:, :, lost:],
            visible=replace(heads.visible, n_keys=4, before=heads.visible.before + lost),
        )


class TopLeft(Sound):
    """Aligns the mask of a piece with the first key instead of the last."""

    def weights_of(self, heads):
        visible = heads.visible.dense
        if 1 < heads.visible.n_queries < heads.visible.n_keys and heads.visible.causal:
            visible = visible & torch.ones(visible.shape[-2:], dtype=torch.bool).tril()
        scores = self.score(heads.q_bhqd, self.key_for_each_query_head(heads.k_bhkd), heads.visible)
        return self.weigh(scores, visible)


class SeesPaddingLater(Sound):
    """A token decoded after a padded prompt sees the padding."""

    def weights_of(self, heads):
        seen = heads.visible
        if seen.n_queries < seen.n_keys and not seen.elsewhere and seen.document_bk is None and seen.n_queries < 3:
            heads = replace(heads, visible=replace(seen, real_bk=None))
        return super().weights_of(heads)


class ChangesItsState(Sound):
    """Counts what it has read, in place."""

    @classmethod
    def state_numbers(cls, config):
        return 1

    def read(self, x_bqm, frame):
        if frame.caches is not None:
            cache = frame.caches[self.layer]
            if not cache.state:
                cache.state = (torch.zeros(len(x_bqm), 1),)
            cache.state[0].add_(x_bqm.shape[1])
        return super().read(x_bqm, frame)


class NormsOverTheBatch(Sound):
    """In training it takes the batch's mean off."""

    def finish(self, z_bhqd, heads):
        return z_bhqd - z_bhqd.mean(0, keepdim=True) if self.training else z_bhqd


class Remembers(Sound):
    """Keeps a running mean while it evaluates."""

    def __init__(self, config, layer):
        super().__init__(config, layer)
        self.register_buffer("mean", torch.zeros(()))

    def finish(self, z_bhqd, heads):
        self.mean.lerp_(z_bhqd.detach().mean().to(self.mean.dtype), 0.1)
        return z_bhqd


class DropsInEvaluation(Sound):
    """Drops weights when it does not train."""

    def weigh(self, scores_bhqk, visible_bhqk):
        weights = masked_softmax(scores_bhqk, visible_bhqk)
        return weights if self.training else F.dropout(weights, self.drop_weights)


class DropsAsTorchDoes(Sound):
    """Drops weights by torch's generator, whatever draws it is given."""

    def __init__(self, config, layer):
        super().__init__(config, layer)
        self.drop_weights, self.drop = 0.0, config.dropout_attention

    def weigh(self, scores_bhqk, visible_bhqk):
        return F.dropout(masked_softmax(scores_bhqk, visible_bhqk), self.drop, self.training)


# Masks


class CountsPadding(Sound):
    """Sharpens its scores with a query's place, padding and other documents counted."""

    def weights_of(self, heads):
        seen = heads.visible
        place = seen.before + seen.n_keys - seen.n_queries + torch.arange(seen.n_queries)
        scores = self.score(heads.q_bhqd, self.key_for_each_query_head(heads.k_bhkd), seen)
        return self.weigh(scores * (1 + 0.1 * place[:, None]), seen.dense)


class DocumentsMeet(Sound):
    """Leaves the mask between documents out."""

    def weights_of(self, heads):
        return super().weights_of(replace(heads, visible=replace(heads.visible, document_bk=None)))


class HidesByAConstant(Sound):
    """Hides with −1e9, so that a row that sees nothing averages what is hidden."""

    def weigh(self, scores_bhqk, visible_bhqk):
        return scores_bhqk.masked_fill(~visible_bhqk, -1e9).softmax(-1)


class NothingIsNoNumber(Sound):
    """Hides with −inf, so that a row that sees nothing is NaN."""

    def weigh(self, scores_bhqk, visible_bhqk):
        return scores_bhqk.masked_fill(~visible_bhqk, -torch.inf).softmax(-1)


class WindowOffByOne(Sound):
    """Shows W + 1 keys."""

    def weights_of(self, heads):
        window = heads.visible.window
        wider = replace(heads.visible, window=None if window is None else window + 1)
        return super().weights_of(replace(heads, visible=wider))

    def mix(self, heads):
        return self.mix_plainly(heads)

    @classmethod
    def memory_is_linear(cls, config):
        return False


class FastWithoutWindow(Softmax):
    """Its fast evaluation knows no window."""

    def mix_fast(self, q_bhqd, k_bhkd, v_bhkd, visible):
        return super().mix_fast(q_bhqd, k_bhkd, v_bhkd, replace(visible, window=None))


class FastLooksBack(Softmax):
    """Its fast evaluation is causal whatever it is told."""

    def mix_fast(self, q_bhqd, k_bhkd, v_bhkd, visible):
        return super().mix_fast(q_bhqd, k_bhkd, v_bhkd, replace(visible, causal=not visible.elsewhere))


class ReadsItselfAlone(Sound):
    """Takes keys and values from its own sequence, whatever is to be read."""

    def project(self, x_bqm, frame):
        return super().project(x_bqm, replace(frame, memory_bkm=None))


# Claims


class SumsToLess(Sound):
    """Says that its rows sum to 1, which they do not."""

    def weigh(self, scores_bhqk, visible_bhqk):
        softmax = masked_softmax(scores_bhqk, visible_bhqk)
        return softmax * torch.sigmoid(masked_logsumexp(scores_bhqk, visible_bhqk))


class SignedInName(Sound):
    """Says that its weights are signed, which they are not."""

    weights_are = "signed"


class NarrowSoftmax(Sound):
    """Takes its softmax in the model's dtype."""

    def weights_of(self, heads):
        scores = self.score(heads.q_bhqd, self.key_for_each_query_head(heads.k_bhkd), heads.visible)
        return wide(self.weigh(scores.to(heads.q_bhqd.dtype), heads.visible.dense))


class ShowsOtherWeights(Sound):
    """Shows weights that it does not average by."""

    def weights(self, x_bqm, frame):
        shown = super().weights(x_bqm, frame)
        return masked_softmax(torch.zeros_like(shown), frame.visible.dense)


class SeesOrderInSecret(Sound):
    """Weighs by distance and does not say that it sees order."""

    refuses: ClassVar = {"cross attention": "another sequence is at no distance"}

    def score(self, q_bhqd, k_bhkd, visible):
        distance = visible.query_positions[..., :, None] - visible.key_positions[..., None, :]
        penalty = 0.2 * distance.abs()
        return super().score(q_bhqd, k_bhkd, visible) - (penalty if penalty.ndim == 2 else penalty[:, None])


class TurnsQueriesAlone(Sound):
    """Rotates its queries and not its keys."""

    def project(self, x_bqm, frame):
        heads = super().project(x_bqm, replace(frame, rotation=None))
        return heads if frame.rotation is None else replace(heads, q_bhqd=frame.rotation.of_queries(heads.q_bhqd))


class FastWithoutCap(Softmax):
    """Its fast evaluation knows no soft cap."""

    def mix(self, heads):
        return self.mix_fast(heads.q_bhqd, heads.k_bhkd, heads.v_bhkd, heads.visible)


class TurnsHeads(Sound):
    """Rotates along the heads instead of along time."""

    def project(self, x_bqm, frame):
        heads = super().project(x_bqm, replace(frame, rotation=None))
        if frame.rotation is None:
            return heads
        config_width = heads.q_bhqd.shape[-1]

        def turned(x_bhkd):
            by_head = Rotation.at(torch.arange(x_bhkd.shape[1]), config_width, x_bhkd.dtype, layout="rope")
            return by_head.of_queries(x_bhkd.transpose(1, 2)).transpose(1, 2)

        return replace(heads, q_bhqd=turned(heads.q_bhqd), k_bhkd=turned(heads.k_bhkd))


class RepeatsGroups(Sound):
    """Gives heads 0 1 2 3 of two groups the keys 0 1 0 1."""

    def key_for_each_query_head(self, k_bhkd):
        return k_bhkd.repeat(1, self.heads.query_heads // k_bhkd.shape[1], 1, 1)


class NormsOverAllHeads(Sound):
    """One root mean square for all heads."""

    def finish(self, z_bhqd, heads):
        return z_bhqd / (z_bhqd.square().mean((1, 3), keepdim=True) + 1e-5).sqrt()


# Inner values


class ListsInVain(Sound):
    """Lists a value that nobody is ever shown."""

    def hook_names(self):
        return [*super().hook_names(), "hook_nothing"]


class ThrowsAway(Sound):
    """Shows its averages and goes on with what it had."""

    def hook_names(self):
        return [*super().hook_names(), "hook_average"]

    def out(self, z_bhqd, heads):
        heads.hooks("hook_average", z_bhqd)
        return super().out(z_bhqd, heads)


# Numbers


class RoundsScores(Sound):
    """Loses digits of its scores in a float32 model."""

    def weigh(self, scores_bhqk, visible_bhqk):
        if scores_bhqk.dtype == torch.float32:
            scores_bhqk = scores_bhqk + (scores_bhqk.bfloat16().float() - scores_bhqk) * 0.05
        return masked_softmax(scores_bhqk, visible_bhqk)


class NarrowTables(Sound):
    """Counts the places that it rotates by in the model's dtype: bfloat16 has no 257."""

    def project(self, x_bqm, frame):
        if frame.rotation is None or frame.visible.elsewhere:
            return super().project(x_bqm, frame)
        places = frame.visible.query_positions.to(x_bqm.dtype).to(torch.float64)
        rotation = Rotation.at(places, self.heads.key_size, torch.float64, layout="rope")
        exact = torch.promote_types(x_bqm.dtype, torch.float32)
        return super().project(
            x_bqm, replace(frame, rotation=Rotation(rotation.cos.to(exact), rotation.sin.to(exact), True))
        )


class Overflows(Sound):
    """Takes exponentials without taking the maximum off first."""

    def weigh(self, scores_bhqk, visible_bhqk):
        powers = scores_bhqk.exp().masked_fill(~visible_bhqk, 0.0)
        return powers / powers.sum(-1, keepdim=True).clamp(min=1e-30)


class DetachesKeys(Sound):
    """Sends no gradient to its keys."""

    def key_for_each_query_head(self, k_bhkd):
        return super().key_for_each_query_head(k_bhkd).detach()


# Formulas


class UncountedNumbers(Sound):
    """Trains a number that it does not own up to."""

    def __init__(self, config, layer):
        super().__init__(config, layer)
        self.sharpness = nn.Parameter(torch.ones(()))

    def weigh(self, scores_bhqk, visible_bhqk):
        return masked_softmax(self.sharpness * scores_bhqk, visible_bhqk)


class UncountedOperations(Sound):
    """Says that it scores at half the price."""

    @classmethod
    def mixing_flops(cls, config, length):
        return super().mixing_flops(config, length) // 2


class UncountedBytes(Sound):
    """Says that its cache keeps no values."""

    @classmethod
    def kept_numbers(cls, config):
        return super().kept_numbers(config) // 2


class StoresSquares(Sound):
    """Stores every weight and says that its memory is linear."""

    def mix(self, heads):
        return self.mix_plainly(heads)


# Keeping


class KeepsNumbersToItself(Sound):
    """Draws a number that is not saved."""

    def __init__(self, config, layer):
        super().__init__(config, layer)
        drawn = torch.randn((), generator=torch.Generator().manual_seed(torch.initial_seed()))
        self.register_buffer("sharpness", drawn.abs(), persistent=False)

    def weigh(self, scores_bhqk, visible_bhqk):
        return masked_softmax((1 + self.sharpness) * scores_bhqk, visible_bhqk)


class DrawsElsewhere(Sound):
    """Draws where no seed reaches."""

    def __init__(self, config, layer):
        super().__init__(config, layer)
        self.sharpness = nn.Parameter(torch.ones(()))

    @classmethod
    def own_parameters(cls, config):
        return 1

    def initialise(self, generator):
        self.sharpness.fill_(1 + np.random.default_rng().uniform())

    def weigh(self, scores_bhqk, visible_bhqk):
        return masked_softmax(self.sharpness * scores_bhqk, visible_bhqk)


@dataclass(frozen=True)
class Fault:
    """A broken mixer, the check that is named for what is wrong with it, and what else that makes go wrong."""

    kind: type[ScoreMixer]
    check: str
    also: tuple[str, ...] = ()
    because: str = ""
    """Why the others cannot but fail."""

    def __str__(self) -> str:
        return self.kind.__name__


BLOCKS, CACHED, PIECES = "fast = plain over blocks", "cached = whole", "in pieces = whole"
LOOKING, WRITTEN = "looking moves nothing", "what is written is used"
DECODED, TWICE = "padded rows decode on", "a cache can be read on twice"
LEFT, RIGHT, PACKED, APART = (
    "padded left = single",
    "padded right = single",
    "packed = separate",
    "documents stay apart",
)
BOTH, ANOTHER, HIDDEN = "both directions", "another sequence", "hidden keys weigh 0"
WINDOW = "a window shows its keys"

FAULTS = [
    Fault(Raises, "it reads"),
    Fault(
        PeeksAhead,
        "the future moves nothing",
        (
            *("the future gets no gradient", "a beginning reads the same", BLOCKS, CACHED, PIECES, DECODED, TWICE),
            *(RIGHT, PACKED, APART, BOTH, ANOTHER, HIDDEN),
        ),
        "where there is a key behind the last one that may be seen, whatever it is, it is seen",
    ),
    Fault(
        LeaksByGradient,
        "the future gets no gradient",
        (BLOCKS, APART, WINDOW, "gradients = differences"),
        "these look at gradients",
    ),
    Fault(
        ScalesByTheWhole,
        "a beginning reads the same",
        (BLOCKS, CACHED, PIECES, DECODED, TWICE, LEFT, RIGHT, PACKED, BOTH, ANOTHER, "bfloat16 is near float64"),
        "each compares readings of different lengths; and long ones have large scores",
    ),
    Fault(SkipsAKey, "all in sight is seen", (DECODED,), "after padding the key five back is another"),
    Fault(
        DropsTheScale,
        "fast = plain",
        (BLOCKS, BOTH, ANOTHER, "choices are read"),
        "each holds the fast evaluation against the plain one",
    ),
    Fault(ForgetsBetweenBlocks, BLOCKS, ("memory is linear",), "its blocks are long and not computed anew"),
    Fault(
        DropsTheOffset,
        CACHED,
        (BLOCKS, PIECES, DECODED, TWICE, ANOTHER),
        "each reads a part of the tokens; another sequence's padding shifts its places",
    ),
    Fault(ForgetsThePast, CACHED, (DECODED, TWICE), "each decodes token by token"),
    Fault(TopLeft, PIECES, (BLOCKS,), "a block is a piece"),
    Fault(SeesPaddingLater, DECODED),
    Fault(ChangesItsState, TWICE),
    Fault(NormsOverTheBatch, "a row is free of its batch", ("dropout follows its draws",), "it reads rows one by one"),
    Fault(Remembers, "reading leaves no trace"),
    Fault(DropsInEvaluation, "evaluation drops nothing"),
    Fault(DropsAsTorchDoes, "dropout follows its draws"),
    Fault(CountsPadding, LEFT, (DECODED, PACKED, BOTH, ANOTHER), "other documents and sequences are counted too"),
    Fault(DocumentsMeet, PACKED, (APART, BOTH, HIDDEN), "each packs documents"),
    Fault(HidesByAConstant, "empty rows are zeros", (HIDDEN,), "what such a row averages is hidden"),
    Fault(
        NothingIsNoNumber,
        "empty rows are zeros",
        (
            *("fast = plain", DECODED, LEFT, RIGHT, BOTH, "weights are as declared", HIDDEN),
            *("output = weights × values", LOOKING, "extreme scores stay finite", "gradients = differences"),
        ),
        "NaN of a padded row spreads in the next block",
    ),
    Fault(WindowOffByOne, WINDOW),
    Fault(FastWithoutWindow, WINDOW, (BLOCKS,), "it reads with a window too"),
    Fault(FastLooksBack, BOTH),
    Fault(ReadsItselfAlone, ANOTHER),
    Fault(SumsToLess, "weights are as declared"),
    Fault(SignedInName, "weights are as declared"),
    Fault(NarrowSoftmax, "weights are as declared"),
    Fault(ShowsOtherWeights, "output = weights × values"),
    Fault(SeesOrderInSecret, "a shuffled prefix"),
    Fault(TurnsQueriesAlone, "a shift changes nothing", (LOOKING, WRITTEN), "a rotation of its own is shown to nobody"),
    Fault(FastWithoutCap, "choices are read"),
    Fault(
        TurnsHeads,
        "choices are read",
        ("grouped = expanded", LOOKING, WRITTEN),
        "query and key heads turn differently, and a rotation of its own is shown to nobody",
    ),
    Fault(RepeatsGroups, "grouped = expanded"),
    Fault(NormsOverAllHeads, "heads stand alone"),
    Fault(ListsInVain, LOOKING, (WRITTEN,), "it waits for what is listed, too"),
    Fault(ThrowsAway, WRITTEN),
    Fault(RoundsScores, "float32 is near float64"),
    Fault(NarrowTables, "bfloat16 is near float64"),
    Fault(Overflows, "extreme scores stay finite", (HIDDEN,), "NaN is no 0"),
    Fault(DetachesKeys, "gradients = differences"),
    Fault(UncountedNumbers, "parameters = formula"),
    Fault(UncountedOperations, "operations = formula"),
    Fault(UncountedBytes, "cache bytes = formula"),
    Fault(StoresSquares, "memory is linear"),
    Fault(KeepsNumbersToItself, "saved = loaded"),
    Fault(DrawsElsewhere, "one seed, one model", ("evaluation drops nothing",), "it builds two models of one seed"),
]
