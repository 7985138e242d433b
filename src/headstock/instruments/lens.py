"""What a model would say if it stopped at each depth: the logit lens."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from headstock.errors import UserError
from headstock.instruments.passes import refuse_nothing, undisturbed
from headstock.instruments.patterns import places_after
from headstock.instruments.tables import cells, position_labels, shown_positions
from headstock.model.attention import wide
from headstock.model.hook_functions import HookPoint
from headstock.model.transformer import Transformer
from headstock.pictures.grid import heat
from headstock.pictures.picture import Picture

NO_TARGET = -1


@dataclass(frozen=True)
class LogitLens:
    """The unembedding applied to the residual at every depth, the last of which is the model's own answer."""

    depths: tuple[str, ...]
    """ "embedding", then "resid_mid 0", "resid_post 0", and so on; no resid_mid without a feed-forward."""
    targets: Tensor
    """int64 (batch, time): the token asked about at each position, −1 where there is none."""
    probability: Tensor
    """float32 or wider (depth, batch, time), of the target; not a number where there is none."""
    rank: Tensor
    """int64 (depth, batch, time): tokens more likely than the target, so 0 is the likeliest; −1 where there is none."""
    top_tokens: Tensor
    """int64 (depth, batch, time, top): the likeliest tokens, the first one first."""
    top_probability: Tensor
    """float32 or wider, of these."""
    logits: Tensor | None
    """(depth, batch, time, vocabulary), in the model's dtype; None where not asked for."""

    def draw(self, row: int = 0, *, labels: Sequence[str] | None = None, first: int = 0) -> Picture:
        """Draw the target's probability on one row of the batch, depths down and positions across, the last on top.

        labels: what the tokens are called, one a position. first: where to begin, for no more than 128 positions fit.
        """
        if not 0 <= row < self.rank.shape[1]:
            raise UserError(f"there is no row {row}: choose from 0 to {self.rank.shape[1] - 1}.")
        places = shown_positions(self.rank.shape[2], first)
        shown = position_labels(self.rank.shape[2], labels)[places]
        right = (self.rank[:, row, places] == 0).double()
        asked = self.targets[row, places] != NO_TARGET
        title = "What the model would say at each depth"
        if bool(asked.any()):
            shares = right[:, asked].mean(1)
            title = (
                f"The target is the likeliest token at {shares[0]:.0%} of positions at first, {shares[-1]:.0%} at last"
            )
        return heat(
            cells(self.probability[:, row, places].flip(0)),
            self.depths[::-1],
            shown,
            title=title,
            rows="depth",
            columns="position",
            unit="probability of the target",
            missing="no target",
            name="logit-lens",
        )

    def _repr_html_(self) -> str:
        return self.draw()._repr_html_()


def logit_lens(
    model: Transformer,
    ids: Tensor,
    *,
    targets: Tensor | None = None,
    top: int = 5,
    keep_logits: bool = False,
    real: Tensor | None = None,
    documents: Tensor | None = None,
) -> LogitLens:
    """Unembed the residual at every depth: after the embedding, after each mixer and after each feed-forward.

    Each passes through the final norm as the last one does, with its own statistics. A model without a final norm has
    none here either: post-norm, all depths but the embedding have left a norm already, and the embedding is read as
    it is. The last depth's logits are the model's, bit for bit, unless a function waits in the final norm, which the
    pass alone asks. Where sub-layers replace their input each depth is what the last of them gave.

    ids: (batch, time). targets: the tokens to ask about, int (batch, time), −1 for none; the next real token of the
    same document where not given. top: how many of the likeliest tokens to keep. keep_logits: keep all, depth · batch ·
    time · vocabulary numbers; else those of one depth are alive at a time. real and documents as
    `Transformer.forward` takes them. Source: nostalgebraist, "interpreting GPT: the logit lens" (2020).

    Raises UserError for targets of another shape or outside the vocabulary, and for ids without a token.
    """
    refuse_nothing(ids, real, documents)
    if isinstance(top, bool) or not (isinstance(top, int) and top >= 1):
        raise UserError(f"top is {top!r}: keep one token or more.")
    asked = _next_tokens(ids, real, documents) if targets is None else _refused(targets, ids, model.config.vocab_size)
    device = model.embed.weight.device
    ids = ids.to(device)
    real, documents = (None if x is None else x.to(device) for x in (real, documents))
    depths = _Depths(model, asked.to(device), min(top, model.config.vocab_size), keep_logits)
    residuals = ("blocks.0.hook_resid_pre", "hook_resid_mid", "hook_resid_post")
    names = [name for name in model.hook_names() if name.endswith(residuals)]
    with undisturbed(model), model.hooks([(names, depths.add)] if names else []):
        logits_bqv = model(ids, real=real, documents=documents)
    if not names:  # without blocks the embedding is all there is
        depths.read("embedding", logits_bqv)
    return depths.lens(asked.cpu())


def _next_tokens(ids: Tensor, real: Tensor | None, documents: Tensor | None) -> Tensor:
    places_bq = places_after(ids, real, documents)
    return ids.cpu().long().gather(1, places_bq.clamp(min=0)).masked_fill(places_bq < 0, NO_TARGET)


def _refused(targets: Tensor, ids: Tensor, vocabulary: int) -> Tensor:
    if not isinstance(targets, Tensor):
        raise UserError(f"targets must be a tensor, not {type(targets).__name__}: give torch.tensor(targets).")
    if targets.shape != ids.shape or targets.dtype not in (torch.int64, torch.int32):
        raise UserError(
            f"targets are {str(targets.dtype).removeprefix('torch.')} of shape {tuple(targets.shape)}: give an integer "
            f"for each id, of shape {tuple(ids.shape)}."
        )
    if targets.numel() and not (int(targets.min()) >= NO_TARGET and int(targets.max()) < vocabulary):
        raise UserError(
            f"targets go from {int(targets.min())} to {int(targets.max())}: give ids from 0 to {vocabulary - 1}, or −1 "
            f"for none."
        )
    return targets.long()


@dataclass
class _Depths:
    """What has been read so far; logits are let go at once."""

    model: Transformer
    asked_bq: Tensor
    top: int
    keep_logits: bool
    names: list[str] = field(default_factory=list)
    found: dict[str, list[Tensor]] = field(default_factory=dict)

    def add(self, x_bqm: Tensor, hook: HookPoint) -> None:
        value = hook.name.rpartition("hook_")[2]
        name = "embedding" if value == "resid_pre" else f"{value} {hook.layer()}"
        self.read(name, self.model.logits(self.model.final_norm(x_bqm)))

    def read(self, name: str, logits_bqv: Tensor) -> None:
        self.names.append(name)
        none_bq = self.asked_bq == NO_TARGET
        at_bq1 = self.asked_bq.clamp(min=0)[..., None]
        probability_bqv = wide(logits_bqv).softmax(-1)
        higher_bq = (logits_bqv > logits_bqv.gather(-1, at_bq1)).sum(-1)
        top_probability, top_tokens = probability_bqv.topk(self.top, -1)
        read = {
            "probability": probability_bqv.gather(-1, at_bq1)[..., 0].masked_fill(none_bq, torch.nan),
            "rank": higher_bq.masked_fill(none_bq, NO_TARGET),
            "top_tokens": top_tokens,
            "top_probability": top_probability,
            **({"logits": logits_bqv} if self.keep_logits else {}),
        }
        for what, value in read.items():
            self.found.setdefault(what, []).append(value.detach().cpu())

    def lens(self, asked_bq: Tensor) -> LogitLens:
        stacked = {what: torch.stack(values) for what, values in self.found.items()}
        logits = stacked.pop("logits", None)
        return LogitLens(tuple(self.names), asked_bq, logits=logits, **stacked)
