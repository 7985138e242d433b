"""How large what each head gives is: the average of values, what is left of it after its norm, and what is written."""

from dataclasses import dataclass

import torch
from torch import Tensor

from headstock.errors import UserError, near_name
from headstock.instruments.passes import lists, look, refuse_nothing, weights_are
from headstock.instruments.replacing import HEAD_OUTPUT, refuse_without_heads
from headstock.instruments.tables import cells, head_labels, layer_labels
from headstock.instruments.weights_and_values import VALUES, look_at_averages
from headstock.model.attention import wide
from headstock.model.transformer import Transformer
from headstock.pictures.grid import heat
from headstock.pictures.lines import lines
from headstock.pictures.picture import Picture

_RESULT = "attn.hook_result"
_SAID = {
    "average": "the average of values",
    "output": "what the output map reads",
    "written": "what is written into the residual",
}
_SHORT = {"average": "average of values", "output": "to the output map", "written": "to the residual"}


@dataclass(frozen=True)
class OutputSizes:
    """Root mean squares, float64 (layer, head), over real tokens and the numbers of each."""

    average: Tensor | None
    """Of Σ w v, a head's average of values before its norm, gate and constant, where it has them; None for a mixer that
    is no average, or does not show it."""
    output: Tensor
    """Of hook_z, which the output map reads; the same as `average` where a head does nothing more."""
    written: Tensor
    """Of hook_result, what a head adds to the residual."""
    tokens: int

    def draw(self, what: str | None = None) -> Picture:
        """Draw all of them by layer, heads together; or one, such as "output", for every head.

        Raises UserError for what there is not.
        """
        if what is not None:
            return self._drawn_heads(what)
        known = {said: values for name, said in _SHORT.items() if (values := getattr(self, name)) is not None}
        layers = list(range(len(self.output)))
        low, high = float(self.output.min()), float(self.output.max())
        return lines(
            {said: (layers, values.square().mean(1).sqrt().tolist()) for said, values in known.items()},
            x="layer",
            y="root mean square",
            title=f"Heads give the output map values of size {low:.3g} to {high:.3g}",
            bands={said: (values.amin(1).tolist(), values.amax(1).tolist()) for said, values in known.items()},
            band="from the smallest head to the largest",
            name="head-sizes",
        )

    def _drawn_heads(self, what: str) -> Picture:
        values = getattr(self, what) if what in _SAID else None
        if values is None:
            known = [name for name in _SAID if getattr(self, name) is not None]
            raise UserError(f"there is no size of {what!r} here: {near_name(what, known)}")
        low, high = float(values.min()), float(values.max())
        return heat(
            cells(values),
            layer_labels(values.shape[0]),
            head_labels(values.shape[1]),
            title=f"Size of {_SAID[what]}: {low:.3g} to {high:.3g}",
            rows="layer",
            columns="head",
            unit="root mean square",
            name=f"head-sizes-{what}",
        )

    def _repr_html_(self) -> str:
        return self.draw()._repr_html_()


def head_sizes(
    model: Transformer, ids: Tensor, *, real: Tensor | None = None, documents: Tensor | None = None
) -> OutputSizes:
    """Give the size of what each head gives: before its norm, to the output map, and to the residual.

    ids: (batch, time). real and documents: as `Transformer.forward` takes them; padding is left out. Why a differential
    pair has a norm of its own (Ye et al., "Differential Transformer", 2024): a sparser map gives larger averages, and
    heads differ. Raises UserError for a mixer without heads, and for ids without a real token.
    """
    refuse_nothing(ids, real, documents)
    refuse_without_heads(model)
    tokens_bq = torch.ones(ids.shape, dtype=torch.bool, device=ids.device) if real is None else real
    if not bool(tokens_bq.any()):
        raise UserError("there is no real token to read, so heads give nothing: give ids of which some are real.")
    averages, outputs, written = [], [], []

    def size(x_bqhd: Tensor) -> Tensor:
        return x_bqhd[tokens_bq].double().square().mean((0, 2)).sqrt().cpu()

    def average(w_bhqk: Tensor, v_bhkd: Tensor, _: int) -> None:
        averages.append(size((wide(w_bhqk) @ wide(v_bhkd)).transpose(1, 2)))

    at = {HEAD_OUTPUT: lambda z, _: outputs.append(size(z)), _RESULT: lambda x, _: written.append(size(x))}
    if weights_are(model) != "none" and lists(model, VALUES):
        look_at_averages(model, ids, average, at, real=real, documents=documents)
    else:
        look(model, ids, at, real=real, documents=documents)
    return OutputSizes(
        torch.stack(averages) if averages else None, torch.stack(outputs), torch.stack(written), int(tokens_bq.sum())
    )
