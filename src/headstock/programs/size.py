"""How large a compiled model is, and what a token costs it."""

from dataclasses import dataclass

from headstock.model.accounting import flops_per_token, parameters
from headstock.model.transformer import Transformer
from headstock.programs.explaining.anatomy import Anatomy


@dataclass(frozen=True)
class SizeReport:
    """A model's measures. Heads and units are those that the program needs; the others of a layer are empty."""

    width: int
    """Columns of the residual."""
    layers: int
    heads: int
    """In all layers together."""
    d_head: int
    units: int
    """Feed-forward units in all layers together."""
    parameters: int
    nonzero: int
    """Parameters that are not 0."""
    flops_per_token: int
    """Operations of the forward pass, a token, at full length; empty heads and units included."""

    def table(self) -> str:
        """Give the measures under one another."""
        rows = [
            ("width", f"{self.width:,}"),
            ("layers", f"{self.layers:,}"),
            ("heads", f"{self.heads:,} of size {self.d_head}"),
            ("feed-forward units", f"{self.units:,}"),
            ("parameters", f"{self.parameters:,}"),
            ("non-zeros", f"{self.nonzero:,} ({self.nonzero / self.parameters:.1%})"),
            ("FLOPs a token", f"{self.flops_per_token:,}"),
        ]
        return "\n".join(f"{name:<20}{figure}" for name, figure in rows)

    def __str__(self) -> str:
        return self.table()


def size_of(model: Transformer, anatomy: Anatomy) -> SizeReport:
    """Measure a compiled model as it stands; training fills zeros."""
    config = model.config
    return SizeReport(
        width=config.d_model,
        layers=config.n_layers,
        heads=len(anatomy.heads),
        d_head=config.d_head,
        units=sum(part.count for part in anatomy.units),
        parameters=parameters(config).total,
        nonzero=sum(int(weight.count_nonzero()) for weight in model.parameters()),
        flops_per_token=flops_per_token(config),
    )
