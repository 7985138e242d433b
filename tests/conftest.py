"""What every test stands on: one thread, fixed seeds, no network, and shapes in signatures checked at run time."""

import os
from collections.abc import Iterator

import hypothesis
import jaxtyping
import pytest
import torch

os.environ["HF_HUB_OFFLINE"] = "1"  # read when transformers is imported, by the oracles
jaxtyping.install_import_hook("headstock.model", "beartype.beartype")  # before anything imports it

torch.set_num_threads(1)

hypothesis.settings.register_profile("headstock", derandomize=True, deadline=None, max_examples=50, database=None)
hypothesis.settings.load_profile("headstock")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is too long for every day, unless -m says what to run, and what needs an absent device."""
    for item in items:
        if not config.getoption("-m") and item.get_closest_marker("full"):
            item.add_marker(pytest.mark.skip(reason="too long for every day: make test-full, or -m 'full or not full'"))
        if item.get_closest_marker("gpu") and not torch.cuda.is_available():
            item.add_marker(pytest.mark.skip(reason="needs a CUDA device"))


@pytest.fixture(autouse=True)
def _fixed_seed() -> None:
    torch.manual_seed(0)


@pytest.fixture
def unchecked() -> Iterator[None]:
    """Switch the run-time checks of shapes off, as for users, so that a refusal's own sentence is met."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
