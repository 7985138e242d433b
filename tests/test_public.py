import importlib
import pkgutil
import subprocess
import sys
from types import ModuleType

import pytest

import headstock as hs
from headstock.errors import UserError, near_name
from headstock.settings import Settings


@pytest.mark.parametrize("name", hs.__all__)
def test_every_public_name_is_there(name):
    assert getattr(hs, name) is not None
    assert name in dir(hs)


def test_no_public_name_equals_a_submodules_unless_it_is_that_submodule():
    submodules = {module.name for module in pkgutil.iter_modules(hs.__path__)}
    for name in submodules & set(hs.__all__):
        assert getattr(hs, name) is importlib.import_module(f"headstock.{name}")
        assert isinstance(getattr(hs, name), ModuleType)


def test_a_name_that_is_not_public_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'biuld'"):
        hs.biuld  # noqa: B018


def test_importing_headstock_imports_nothing_heavy():
    heavy = "torch", "numpy", "pydantic", "scipy", "matplotlib", "rich", "cyclopts"
    code = f"import headstock, sys; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_near_name_is_suggested_and_without_one_all_are_named():
    assert near_name("sofmax", ["softmax", "uniform"]) == "did you mean 'softmax'?"
    assert near_name("xyz", ["softmax", "uniform"]) == "choose one of softmax, uniform."


class _Shape(Settings):
    width: int = 3


class _Task(Settings):
    length: int


def test_a_misspelt_key_is_named_before_the_one_that_is_missing_for_it():
    with pytest.raises(UserError, match="did you mean 'length'"):
        _Task(lenght=3)


def test_settings_are_values_frozen_hashable_and_complete():
    assert _Shape() == _Shape(width=3)
    assert hash(_Shape()) == hash(_Shape(width=3))
    with pytest.raises(Exception, match="frozen"):
        _Shape().width = 4


@pytest.mark.parametrize(
    ("values", "said"), [({"wdith": 3}, "did you mean 'width'"), ({"width": "x"}, "width='x' cannot be used")]
)
def test_settings_refuse_in_one_sentence(values, said):
    with pytest.raises(UserError, match=said) as refused:
        _Shape(**values)
    assert "\n" not in str(refused.value)
