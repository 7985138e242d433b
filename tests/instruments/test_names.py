"""Every instrument is found under its public name, and says in a line what it gives."""

import importlib
import inspect
import pkgutil
import subprocess
import sys
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

import headstock as hs
from headstock.errors import UserError
from headstock.instruments import instrument_names

READING: dict[str, Callable[[hs.Transformer, Tensor], object]] = {
    **{
        name: getattr(hs.instruments, name)
        for name in (
            "activation_outliers",
            "attention_patterns",
            "gradient_reach",
            "head_redundancy",
            "head_scores",
            "head_sizes",
            "hull",
            "lambda_values",
            "lambdas_in_training",
            "logit_lens",
            "map_spectrum",
            "near_zero_weights",
            "residual_spectrum",
            "score_statistics",
        )
    },
    "attention_mass": lambda model, ids: hs.instruments.attention_mass(
        model, ids, ids.new_zeros(ids.shape[:1]), {"answer": ids == 0}
    ),
    "logit_attribution": lambda model, ids: hs.instruments.logit_attribution(model, ids, 0),
    "patch_heads": lambda model, ids: hs.instruments.patch_heads(model, ids, ids, (0, 1)),
    "patch_positions": lambda model, ids: hs.instruments.patch_positions(model, ids, ids, (0, 1)),
}
"""Every instrument that reads a batch of ids."""


@pytest.mark.parametrize("name", instrument_names())
def test_every_instrument_is_a_public_function_that_says_what_it_gives(name: str) -> None:
    instrument = getattr(hs.instruments, name)
    assert callable(instrument)
    first = inspect.getdoc(instrument).partition("\n")[0]  # type: ignore[union-attr]
    assert first.endswith(".")
    assert next(iter(inspect.signature(instrument).parameters)) == "model"
    assert name in dir(hs.instruments)


def test_no_instrument_is_called_like_a_module_beside_it() -> None:
    modules = {module.name for module in pkgutil.iter_modules(hs.instruments.__path__)}
    assert not modules & set(hs.instruments.__all__)


def test_what_is_public_is_listed_and_the_other_way_round() -> None:
    assert {*instrument_names(), "instrument_names"} == set(hs.instruments.__all__)


def test_a_name_that_is_no_instrument_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'attention_pattern'"):
        hs.instruments.attention_pattern  # noqa: B018


@pytest.mark.parametrize("shape", [(0, 5), (2, 0), (4,)], ids=str)
@pytest.mark.parametrize("name", sorted(READING))
def test_ids_without_a_token_and_ids_of_no_batch_are_refused(name: str, shape: tuple[int, ...]) -> None:
    model = hs.build("differential2", vocab_size=11, context=8, d_model=8, n_heads=2)
    with pytest.raises(UserError, match=r"hold no token|there is no token|integers of shape \(batch, time\)"):
        READING[name](model, torch.zeros(shape, dtype=torch.int64))


def test_naming_the_instruments_imports_nothing_heavy() -> None:
    code = (
        "import sys, headstock as hs; hs.instruments.instrument_names(); "
        "print([name for name in ('torch', 'numpy', 'matplotlib') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_an_instrument_refuses_in_the_same_words_wherever_it_is_imported_from() -> None:
    patterns = importlib.import_module("headstock.instruments.patterns")
    assert hs.instruments.attention_patterns is patterns.attention_patterns
    with pytest.raises(UserError, match="no weights"):
        hs.instruments.attention_patterns(hs.build("lstm", vocab_size=3, context=4), [[0]])
