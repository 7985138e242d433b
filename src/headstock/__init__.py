"""Headstock: a workbench for transformer attention.

The public names, each imported when it is first used, so that `import headstock` costs little.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from headstock import instruments, tasks
    from headstock.checkpoints.native import load, save
    from headstock.comparison.compare import compare
    from headstock.comparison.results import Comparison
    from headstock.conformance.suite import check_mixer
    from headstock.errors import UserError
    from headstock.model.config import ModelConfig
    from headstock.model.transformer import Transformer, build
    from headstock.training.config import TrainingConfig

__all__ = [
    "Comparison",
    "ModelConfig",
    "TrainingConfig",
    "Transformer",
    "UserError",
    "__version__",
    "build",
    "check_mixer",
    "compare",
    "instruments",
    "load",
    "save",
    "tasks",
]

_HOME = {
    "Comparison": "headstock.comparison.results",
    "ModelConfig": "headstock.model.config",
    "TrainingConfig": "headstock.training.config",
    "Transformer": "headstock.model.transformer",
    "UserError": "headstock.errors",
    "build": "headstock.model.transformer",
    "check_mixer": "headstock.conformance.suite",
    "compare": "headstock.comparison.compare",
    "load": "headstock.checkpoints.native",
    "save": "headstock.checkpoints.native",
}


def __getattr__(name: str) -> Any:
    if name in ("instruments", "tasks"):
        return import_module(f"headstock.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'headstock' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return __all__
