"""The size report counts what is there."""

from headstock.model.accounting import flops_per_token
from tests.programs.some_compiled import compiled_mean, compiled_sort


def test_a_size_is_counted_from_the_model_itself() -> None:
    for compiled in (compiled_sort(), compiled_mean()):
        size, layers = compiled.size(), compiled.blueprint.layers
        weights = list(compiled.model.parameters())
        assert size.parameters == sum(weight.numel() for weight in weights)
        assert size.nonzero == sum(int((weight != 0).sum()) for weight in weights)
        assert (size.parameters, size.nonzero) == (compiled.blueprint.size().slots, compiled.blueprint.size().nonzero)
        assert size.heads == sum(len(layer.heads) for layer in layers)
        assert size.units == sum(len(layer.units) for layer in layers)
        assert (size.width, size.layers) == (len(compiled.blueprint.columns), len(layers))
        assert size.flops_per_token == flops_per_token(compiled.model.config)


def test_a_table_tells_every_measure() -> None:
    size = compiled_sort().size()
    lines = size.table().splitlines()
    assert len(lines) == 7
    assert f"{size.parameters:,}" in size.table()
    assert f"{size.flops_per_token:,}" in lines[-1]
