"""Every instrument is found under its public name, and says in a line what it gives."""

import importlib
import inspect
import pkgutil
import subprocess
import sys

import pytest

import headstock as hs
from headstock.errors import UserError
from headstock.instruments import instrument_names


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
