import pytest

from headstock.comparison.matching import TOLERANCE
from headstock.errors import UserError
from headstock.model.accounting import flops_per_token, parameters
from headstock.model.config import config_of
from headstock.studies.differential.paper import SETTINGS, equal

VARIANTS = ("softmax", "differential", "differential2")


@pytest.mark.parametrize("position", ["rope", "none", "alibi"])
def test_arms_hold_as_many_parameters_and_nothing_but_the_feedforward_differs(position: str) -> None:
    made = equal([f"{mixer}+{position}" for mixer in VARIANTS])
    configs = [config_of(variant, vocab_size=300, context=40, **SETTINGS) for variant in made.values()]
    counts = [parameters(config).non_embedding for config in configs]
    assert max(counts) / min(counts) - 1 < 2 * TOLERANCE
    for key in ("d_model", "n_heads", "d_head", "n_layers", "norm", "feedforward", "position"):
        assert len({getattr(config, key) for config in configs}) == 1
    assert configs[0].position == position


def test_arms_cost_as_much_a_token_where_that_is_asked_for() -> None:
    configs = [config_of(v, vocab_size=300, context=128, **SETTINGS) for v in equal(VARIANTS, "flops").values()]
    costs = [flops_per_token(config) for config in configs]
    assert max(costs) / min(costs) - 1 < 2 * TOLERANCE
    assert configs[2].d_ff < config_of(equal(VARIANTS)["differential2"], vocab_size=300, context=128, **SETTINGS).d_ff


def test_what_no_width_makes_equal_is_refused() -> None:
    with pytest.raises(UserError, match="no width of its feed-forward makes them equal"):
        equal(["softmax,feedforward=none", "differential2,feedforward=none"])
