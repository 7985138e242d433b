"""Which parts of a model a logit is made of: direct logit attribution, whose parts sum to the logit."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from headstock.errors import UserError
from headstock.instruments.passes import undisturbed
from headstock.instruments.tables import cells, head_labels, layer_labels
from headstock.model.hook_functions import HookPoint
from headstock.model.norms import RMSNorm
from headstock.model.transformer import Block, Transformer, refuse_input
from headstock.pictures.bars import bars
from headstock.pictures.grid import heat
from headstock.pictures.numbers import small
from headstock.pictures.picture import Picture

MOST_BARS = 16


@dataclass(frozen=True)
class LogitAttribution:
    """What each part of the model adds to a logit, or to the difference of two, at one position of each row."""

    parts: tuple[str, ...]
    """In the order of the pass: "embedding", "position", "block 0 head 0", …, "block 0 attention bias",
    "block 0 feed-forward", the biases of norms, "unembedding bias"."""
    values: Tensor
    """float64 (part, row), in logits."""
    total: Tensor
    """float64 (row,): the logit or the difference, as the model gives it."""
    heads: tuple[tuple[int, int], ...]
    """(layer, head) of those parts that are heads, in their order."""

    @property
    def remainder(self) -> Tensor:
        """float64 (row,): total less the sum of all parts; rounding in the model's dtype, where nothing was changed."""
        return self.total - self.values.sum(0)

    def of(self, part: str) -> Tensor:
        """float64 (row,). Raises UserError for a part that there is not."""
        if part not in self.parts:
            raise UserError(f"there is no part {part!r}: the parts are {', '.join(self.parts)}.")
        return self.values[self.parts.index(part)]

    def by_head(self) -> Tensor:
        """float64 (layer, head, row); not a number where a layer's heads reach the logit through nothing direct.

        Raises UserError where no part is a head.
        """
        if not self.heads:
            raise UserError("no part is a head: the mixer does not show what its heads give.")
        n_layers, n_heads = (max(axis) + 1 for axis in zip(*self.heads, strict=True))
        found = torch.full((n_layers, n_heads, len(self.total)), torch.nan, dtype=torch.float64)
        for layer, head in self.heads:
            found[layer, head] = self.of(_head(layer, head))
        return found

    def draw(self) -> Picture:
        """Draw the parts that matter most, means over rows, in the order of the pass; what is left is one bar."""
        means = self.values.mean(1)
        most = set(means.abs().argsort(descending=True)[:MOST_BARS].tolist())
        shown = {part: float(means[place]) for place, part in enumerate(self.parts) if place in most}
        if len(shown) < len(self.parts):
            others = sum(float(mean) for place, mean in enumerate(means) if place not in most)
            shown[f"{len(self.parts) - len(shown)} other parts"] = others
        first = self.parts[int(means.abs().argmax())]
        rows = f", mean of {len(self.total)} rows" if len(self.total) > 1 else ""
        return bars(
            shown,
            unit="logits",
            title=f"What the logit is made of: most of all {first}",
            caption=f"All parts sum to {small(float(self.total.mean()))}{rows}.",
            name="logit-attribution",
        )

    def draw_heads(self) -> Picture:
        """Draw what each head adds, means over rows, layers down and heads across."""
        values = self.by_head().mean(2)
        return heat(
            cells(values),
            layer_labels(len(values)),
            head_labels(values.shape[1]),
            title="What each head adds to the logit",
            rows="layer",
            columns="head",
            unit="logits",
            signed=True,
            missing="nothing direct",
            name="logit-attribution-heads",
        )

    def _repr_html_(self) -> str:
        return self.draw()._repr_html_()


def logit_attribution(
    model: Transformer,
    ids: Tensor,
    targets: int | Sequence[int] | Tensor,
    *,
    position: int | Sequence[int] | Tensor = -1,
    against: int | Sequence[int] | Tensor | None = None,
    real: Tensor | None = None,
    documents: Tensor | None = None,
) -> LogitAttribution:
    """Give each part's own share of a target's logit, or of its logit less another's, that is read off it directly.

    ids: (batch, time). targets, against: a token id, or one a row. position: whose logits, counted from the end where
    negative, or one a row; with padding on the right a row's last token stands earlier.

    The residual is a sum, and a norm is linear once its statistics are known; so each part is taken through every
    norm between it and the logits with the statistics of that row and position as they are, no weight folded into
    another and nothing centred but by the norm itself. The parts then sum to the logit, in float64 to 1e-9. What a
    part does by way of later heads and feed-forwards belongs to those. Where sub-layers replace their input, only
    the last ones are direct. A logit has a share that all logits of the row have in common; `against` takes it out.
    Source: direct logit attribution as in Elhage et al., "A Mathematical Framework for Transformer Circuits" (2021),
    and Wang et al., "Interpretability in the Wild" (2022).

    Raises UserError for a token or position that is not there, and where numbers are not one a row.
    """
    refuse_input(ids, real, documents)
    if not ids.numel():
        raise UserError("there is no token to read, so no logit: give ids of one row or more.")
    device, (rows, time) = model.embed.weight.device, ids.shape
    ids = ids.to(device)
    real, documents = (None if x is None else x.to(device) for x in (real, documents))
    with undisturbed(model):
        gathered = _Gathered(model, _one_a_row(position, rows, -time, time - 1, "position").to(device) % time)
        with gathered.listening():
            logits_bqv = model(ids, real=real, documents=documents)
        logits_bv = gathered.here(logits_bqv)
        reading = _read(model, targets, logits_bv)
        if against is not None:
            reading = reading.less(_read(model, against, logits_bv))
        stream = _through(model, gathered)
        values = {part: (x_bm * reading.weight_bm).sum(-1) for part, x_bm in stream.parts.items()}
        if reading.bias_b is not None:
            values["unembedding bias"] = reading.bias_b
    shares, total_b = torch.stack(list(values.values())).detach().cpu(), reading.total_b.detach().cpu()
    heads = tuple(pair for pair in gathered.heads if _head(*pair) in values)
    return LogitAttribution(tuple(values), shares, total_b, heads)


def _head(layer: int, head: int) -> str:
    return f"block {layer} head {head}"


@dataclass
class _Reading:
    """What is read off the residual of each row, in float64."""

    weight_bm: Tensor
    bias_b: Tensor | None
    total_b: Tensor

    def less(self, other: "_Reading") -> "_Reading":
        bias_b = None if self.bias_b is None or other.bias_b is None else self.bias_b - other.bias_b
        return _Reading(self.weight_bm - other.weight_bm, bias_b, self.total_b - other.total_b)


def _read(model: Transformer, tokens: int | Sequence[int] | Tensor, logits_bv: Tensor) -> _Reading:
    """Give what reads the tokens' logits off, their biases and the logits themselves."""
    tokens_b = _one_a_row(tokens, len(logits_bv), 0, logits_bv.shape[1] - 1, "token").to(logits_bv.device)
    weight_vm = model.embed.weight if model.unembed is None else model.unembed.weight
    bias_v = None if model.unembed is None else model.unembed.bias
    bias_b = None if bias_v is None else bias_v[tokens_b].double()
    return _Reading(weight_vm[tokens_b].double(), bias_b, logits_bv.gather(1, tokens_b[:, None])[:, 0])


def _one_a_row(given: int | Sequence[int] | Tensor, rows: int, low: int, high: int, what: str) -> Tensor:
    try:
        numbers = torch.as_tensor(given)
    except (TypeError, ValueError, RuntimeError):
        raise UserError(f"give one {what}, an integer, or one for each of the {rows} rows, not {given!r}.") from None
    if numbers.dtype not in (torch.int64, torch.int32) or numbers.shape not in ((), (rows,)):
        raise UserError(f"give one {what}, an integer, or one for each of the {rows} rows, not {given}.")
    if numbers.numel() and not (low <= int(numbers.min()) and int(numbers.max()) <= high):
        raise UserError(f"there is no {what} {given}: choose from {low} to {high}.")
    return numbers.long().expand(rows)


@dataclass
class _Gathered:
    """What each part gave at the positions asked for, float64 (row, model)."""

    model: Transformer
    position_b: Tensor
    values: dict[str, Tensor] = field(default_factory=dict)
    heads: list[tuple[int, int]] = field(default_factory=list)

    def here(self, x_bq: Tensor) -> Tensor:
        return x_bq[torch.arange(len(x_bq), device=x_bq.device), self.position_b].double()

    def listening(self) -> AbstractContextManager[Transformer]:
        wanted = ("hook_embed", "hook_pos_embed", "hook_attn_out", "hook_mlp_out", "attn.hook_result")
        return self.model.hooks([(lambda name: name.endswith(wanted), self._gather)])

    def _gather(self, value: Tensor, hook: HookPoint) -> None:
        self.values[hook.name] = self.here(value)


@dataclass
class _Stream:
    """The residual at one position as a sum of parts, float64 (row, model) each."""

    parts: dict[str, Tensor]

    def join(self, parts: dict[str, Tensor], *, added: bool) -> None:
        self.parts = {**self.parts, **parts} if added else parts

    def norm(self, norm: nn.Module, called: str) -> None:
        """Take each part through a norm with the statistics of their sum; its bias is a part of its own."""
        if isinstance(norm, nn.Identity):
            return
        total_bm = torch.stack(list(self.parts.values())).sum(0)
        if isinstance(norm, RMSNorm):
            weight_m = norm.weight.double()
            scale_b1 = (total_bm.square().mean(-1, keepdim=True) + norm.eps).rsqrt()
            self.parts = {part: x_bm * scale_b1 * weight_m for part, x_bm in self.parts.items()}
            return
        assert isinstance(norm, nn.LayerNorm)
        weight_m = norm.weight.double()
        scale_b1 = (total_bm.var(-1, correction=0, keepdim=True) + norm.eps).rsqrt()
        self.parts = {
            part: (x_bm - x_bm.mean(-1, keepdim=True)) * scale_b1 * weight_m for part, x_bm in self.parts.items()
        }
        self.parts[f"{called} bias"] = norm.bias.double().expand_as(total_bm)


def _through(model: Transformer, gathered: _Gathered) -> _Stream:
    """Follow the parts from the embedding to what is unembedded."""
    values = gathered.values
    stream = _Stream({"embedding": values["hook_embed"]})
    if "hook_pos_embed" in values:
        stream.join({"position": values["hook_pos_embed"]}, added=True)
    for layer, block in enumerate(model.blocks):
        assert isinstance(block, Block)
        stream.join(_mixed(layer, block, gathered), added=block.added)
        if not block.pre_norm:
            stream.norm(block.mixer_norm, f"block {layer} attention norm")
        if block.has_feedforward:
            worked = {f"block {layer} feed-forward": values[f"blocks.{layer}.hook_mlp_out"]}
            stream.join(worked, added=block.added)
            if not block.pre_norm:
                stream.norm(block.feedforward_norm, f"block {layer} feed-forward norm")
    stream.norm(model.final_norm, "final norm")
    return stream


def _mixed(layer: int, block: Block, gathered: _Gathered) -> dict[str, Tensor]:
    """Give what each head gave, and the bias of the output map; or all at once, of a mixer that shows no heads."""
    results_bhm = gathered.values.get(f"blocks.{layer}.attn.hook_result")
    mixed_bm = gathered.values[f"blocks.{layer}.hook_attn_out"]
    if results_bhm is None:
        return {f"block {layer} attention": mixed_bm}
    heads = range(results_bhm.shape[1])
    gathered.heads += [(layer, head) for head in heads]
    parts = {_head(layer, head): results_bhm[:, head] for head in heads}
    output = getattr(block.mixer, "output", None)
    if output is not None and output.bias is not None:
        parts[f"block {layer} attention bias"] = output.bias.double().expand_as(mixed_bm)
    return parts
