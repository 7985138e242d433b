"""Every instrument is found under its public name, and says in a line what it gives."""

import contextlib
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
from headstock.training.batch import Batch

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


READING_BATCHES: dict[str, Callable[[hs.Transformer, Batch], object]] = {
    **{
        name: lambda model, batch, name=name: getattr(hs.instruments, name)(model, [batch])  # type: ignore[misc]
        for name in ("ablate_heads", "loss_by_position", "loss_on_repeats", "quantisation")
    },
    "composition_scores": lambda model, _: hs.instruments.composition_scores(model),
    "gradient_norms": hs.instruments.gradient_norms,
}
"""The others, but for those that change a model, train it or ask a task of its own."""


@pytest.mark.parametrize("name", sorted({*READING, *READING_BATCHES} - {"lambdas_in_training"}))
def test_a_model_whose_weights_are_no_numbers_is_refused_with_the_name_of_the_first(name: str) -> None:
    model = hs.build("differential2", vocab_size=11, context=8, d_model=8, n_heads=2, n_layers=2)
    ids = torch.arange(12).view(2, 6) % 11
    batch = Batch(ids, ids.roll(-1, 1), torch.ones(2, 6, dtype=torch.bool))
    with torch.no_grad():
        model.blocks[1].mixer.query.weight[0, 0] = torch.nan
    with pytest.raises(UserError, match=r"blocks\.1\.mixer\.query\.weight holds 1 NaN or infinite of \d+ numbers"):
        READING[name](model, ids) if name in READING else READING_BATCHES[name](model, batch)


@pytest.mark.parametrize("part", ["mixer.query", "mixer.value", "mixer.out", "tokens", "mlp"])
@pytest.mark.parametrize("name", sorted({*READING, *READING_BATCHES} - {"lambdas_in_training"}))
def test_weights_too_large_for_their_sums_are_measured_or_refused_in_a_sentence(name: str, part: str) -> None:
    model = hs.build("differential2", vocab_size=11, context=8, d_model=8, n_heads=2, n_layers=2)
    ids = torch.arange(12).view(2, 6) % 11
    batch = Batch(ids, ids.roll(-1, 1), torch.ones(2, 6, dtype=torch.bool))
    with torch.no_grad():
        for parameter in (value for where, value in model.named_parameters() if part in where):
            parameter.mul_(1e38)
    # A figure that is NaN says so itself; an error in torch's or scipy's words would say nothing to anyone.
    with contextlib.suppress(UserError):
        found = READING[name](model, ids) if name in READING else READING_BATCHES[name](model, batch)
        if draw := getattr(found, "draw", None):
            draw()


@pytest.mark.parametrize(
    ("name", "where"),
    [
        ("hull", "the averages of layer 0"),
        ("map_spectrum", "the weights of layer 1"),
        ("residual_spectrum", "the residual at depth 1"),
    ],
)
def test_what_has_no_spectrum_and_no_hull_is_named_with_the_place_where_numbers_ended(name: str, where: str) -> None:
    model = hs.build("softmax", vocab_size=11, context=8, d_model=8, n_heads=2, n_layers=2)
    with torch.no_grad():
        model.blocks[0].mixer.value.weight.mul_(3e38)
    with pytest.raises(UserError, match=f"^{where}: [0-9,]+ of [0-9,]+ numbers are NaN or infinite"):
        READING[name](model, torch.arange(12).view(2, 6) % 11)


def test_large_weights_whose_sum_overflows_are_numbers_all_the_same() -> None:
    model = hs.build("softmax", vocab_size=11, context=8, d_model=8, n_heads=2)
    with torch.no_grad():
        model.unembed.bias = torch.nn.Parameter(torch.full((11,), 3e38))
    hs.instruments.attention_patterns(model, torch.zeros(1, 4, dtype=torch.int64))


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
