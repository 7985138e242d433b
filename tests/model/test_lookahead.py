import pytest
import torch

from headstock.errors import UserError
from headstock.model.causality import refuse_looking_ahead
from headstock.model.mixers import mixer_class, mixer_names
from headstock.model.transformer import build
from tests.comparison.here import MIXERS

SHAPE = {"vocab_size": 9, "context": 12, "d_model": 16, "n_heads": 2}


@pytest.mark.parametrize("mixer", mixer_names())
def test_no_mixer_of_ours_looks_ahead_though_it_drops(mixer):
    drops = {f"dropout_{place}": 0.5 for place in ("attention", "residual")}
    model = build(
        mixer, **SHAPE, **{key: p for key, p in drops.items() if key not in mixer_class(mixer).refuses}
    ).train()
    refuse_looking_ahead(model, torch.randint(9, (2, 12)))
    assert model.training


def test_a_mixer_that_looks_ahead_is_refused_by_name():
    with pytest.raises(UserError, match="Peeks looks ahead"):
        refuse_looking_ahead(build(f"{MIXERS}:Peeks", **SHAPE), torch.randint(9, (2, 12)))


@pytest.mark.parametrize(("vocab_size", "length"), [(1, 5), (9, 1)])
def test_where_there_is_nothing_to_look_at_nothing_is_refused(vocab_size, length):
    model = build(f"{MIXERS}:Peeks", **{**SHAPE, "vocab_size": vocab_size})
    refuse_looking_ahead(model, torch.zeros(1, length, dtype=torch.int64))
