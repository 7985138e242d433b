"""How far back a gradient reaches: how much the logits at one position change with each token before it."""

import math
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass

import torch
from torch import Tensor

from headstock.errors import UserError
from headstock.instruments.passes import kept, refuse_inference, refuse_nothing, undisturbed
from headstock.model.transformer import Transformer
from headstock.pictures.lines import lines
from headstock.pictures.picture import Picture

PROBES = 32


@dataclass(frozen=True)
class GradientReach:
    """The size of d logits(position) / d embedding(position − distance), by distance in real tokens."""

    norms: Tensor
    """(batch, distance): Frobenius norm of that Jacobian (vocabulary × model); not a number before a row begins."""
    standard_error: Tensor
    """(batch, distance): of each norm, for the probes are drawn; 0 where the norm is exact."""
    from_position: tuple[int, ...]
    """One a row: where the logits are read, counted in real tokens."""

    @property
    def by_distance(self) -> Tensor:
        """(distance,): the rows' geometric mean, as sizes that differ by powers of ten ask for; 0 where one is 0."""
        return self.norms.log().nanmean(0).exp()

    @property
    def relative(self) -> Tensor:
        """(distance,): the same of each row's norms as parts of what its position's own token does."""
        return (self.norms.log() - self.norms[:, :1].log()).nanmean(0).exp()

    def draw(self) -> Picture:
        """Draw the norm over distance, on a logarithmic axis."""
        far = len(self.relative) - 1
        left = float(self.relative[-1])
        return lines(
            {"": (list(range(far + 1)), self.by_distance.tolist())},
            x="tokens back",
            y="norm of d logits / d embedding",
            title=f"{far} tokens back, {left:.2g} of the gradient at the token itself is left",
            log_y=True,
            name="gradient-reach",
        )

    def _repr_html_(self) -> str:
        return self.draw()._repr_html_()


def gradient_reach(
    model: Transformer,
    ids: Tensor,
    *,
    from_position: int = -1,
    real: Tensor | None = None,
    probes: int = PROBES,
    seed: int = 0,
) -> GradientReach:
    """Give how much the logits at a position change with each embedding up to it.

    ids: (batch, time). What is measured is the Frobenius norm of the Jacobian. from_position: in real tokens of a row,
    a negative one counted from its end. Exact where the vocabulary has no more tokens than probes; else the squared
    norm is the mean square of so many random sums of the logits, signs drawn from the seed (Hutchinson, 1990), and its
    error is given. A gradient through the steps of a recurrence is a product of as many Jacobians: Bengio et al.,
    "Learning Long-Term Dependencies with Gradient Descent is Difficult" (1994).

    Worked out in float64, for which a model of narrower numbers is copied: through 500 steps of an LSTM a gradient
    falls below what float32 has numbers for.

    Raises UserError for a position that a row does not have, for ids without a token, in torch.inference_mode(), and
    for a model that reads both ways, whose tokens are no steps back.
    """
    refuse_inference()
    refuse_nothing(ids, real)
    if not model.config.causal:
        raise UserError("causal=false reads both ways, so a token before is no step back: give a causal model.")
    if probes < 2:
        raise UserError(f"probes={probes} give no error: draw two or more.")
    everywhere = torch.ones(ids.shape, dtype=torch.bool) if real is None else real.cpu()
    places = [row.nonzero().flatten() for row in everywhere]
    for row in places:
        if not -len(row) <= from_position < len(row):
            raise UserError(f"there is no position {from_position} in a row of {len(row)} tokens: choose another.")
    chosen = torch.stack([row[from_position] for row in places]).to(ids.device)
    wide_model = in_float64(model)
    with undisturbed(wide_model, gradients=True), wide_model.collecting(["hook_embed"], with_gradients=True) as found:
        x_bm = wide_model.hidden(ids, real=real)[torch.arange(len(ids), device=ids.device), chosen]
        logits_bv = wide_model.logits(x_bm)
        gradients = [
            torch.autograd.grad(logits_bv, found["hook_embed"], direction, retain_graph=True)[0]
            for direction in _directions(logits_bv, probes, seed)
        ]
    norms_bq, errors_bq = map(kept, norms_of(gradients, exact=logits_bv.shape[1] <= probes))
    return _by_distance(norms_bq, errors_bq, places, from_position)


def norms_of(gradients: Sequence[Tensor], *, exact: bool = False) -> tuple[Tensor, Tensor]:
    """Give the norm of a Jacobian at each token (batch, time) and its standard error, to first order.

    gradients: (batch, time, model) each, of one output after another where that is exact, else of random sums of all.
    """
    # Squares of what is below 1e-162 are 0 even in float64, so they are taken of shares of the largest.
    largest_bq = torch.stack([gradient_bqm.abs().amax(-1) for gradient_bqm in gradients]).amax(0)
    scale_bq1 = largest_bq.where(largest_bq > 0, 1.0)[..., None]
    squares_pbq = torch.stack([(gradient_bqm / scale_bq1).square().sum(-1) for gradient_bqm in gradients])
    shares_bq = (squares_pbq.sum(0) if exact else squares_pbq.mean(0)).sqrt()
    error_bq = torch.zeros_like(shares_bq) if exact else squares_pbq.std(0) / math.sqrt(len(gradients))
    of_root_bq = torch.where(shares_bq > 0, error_bq / (2 * shares_bq), 0.0)
    return largest_bq * shares_bq, largest_bq * of_root_bq


def in_float64(model: Transformer) -> Transformer:
    """Give the model itself where its numbers are float64, else a copy whose are; who waits in it waits there too."""
    if model.embed.weight.dtype == torch.float64:
        return model
    copied = deepcopy(model).double()
    copied.hook_stack = model.hook_stack
    return copied


def _directions(logits_bv: Tensor, probes: int, seed: int) -> list[Tensor]:
    """Give each logit alone, or random signs for all."""
    size = logits_bv.shape[1]
    if size <= probes:
        each = torch.eye(size).to(logits_bv)
    else:
        generator = torch.Generator().manual_seed(seed)
        each = (2 * torch.randint(2, (probes, size), generator=generator) - 1).to(logits_bv)
    return [direction.expand_as(logits_bv) for direction in each]


def _by_distance(norms_bq: Tensor, errors_bq: Tensor, places: list[Tensor], from_position: int) -> GradientReach:
    stands = [from_position % len(row) for row in places]
    norms = norms_bq.new_full((len(places), max(stands) + 1), math.nan)
    errors = norms.clone()
    for b, (row, stand) in enumerate(zip(places, stands, strict=True)):
        back = row[: stand + 1].flip(0)
        norms[b, : stand + 1] = norms_bq[b, back]
        errors[b, : stand + 1] = errors_bq[b, back]
    return GradientReach(norms, errors, tuple(stands))
