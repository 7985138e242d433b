"""What hooks that nobody uses cost: a forward pass as it is, beside the same one without a call to a hook in it.

    python benchmarks/hooks.py
    python benchmarks/hooks.py --variant differential+alibi --turns 400

The other side is the same package read a second time under another name, every call that shows a value to hooks taken
out of its source; both models have the same numbers and give the same logits, bit for bit. Each turn times one after
the other, in alternating order, so that whatever else the machine does falls on both; a ratio is taken within a turn.
Printed is its median, and in brackets a 95 % interval of that median (by ranks).
"""

import argparse
import ast
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import math
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from headstock import model as as_it_is
from headstock.model.transformer import build
from headstock.training.run import processor_name

HERE, THERE = "headstock.model", "headstock_without_hooks"
THEIR_OWN = ("hooks", "hooked", "hook_functions", "activations")
"""The modules that hooks are, which stay whole: a pass does not enter them."""
SIZES = {
    "2 layers, width 64, 16 tokens": {"n_layers": 2, "d_model": 64, "length": 16},
    "12 layers, width 64, 16 tokens": {"n_layers": 12, "d_model": 64, "length": 16},
    "12 layers, width 256, 128 tokens": {"n_layers": 12, "d_model": 256, "length": 128},
}


class WithoutHooks(ast.NodeTransformer):
    """Puts in place of each call that shows a value that value, and False where it is asked whether somebody waits."""

    def __init__(self) -> None:
        self.taken_out = 0

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        function = node.func
        instead: ast.expr | None = None
        if _are_hooks(function):
            instead = node.args[1]
        elif isinstance(function, ast.Attribute) and _are_hooks(function.value):
            instead = {
                "by_position": lambda: node.args[1],
                "projected": lambda: ast.Tuple(node.args, ast.Load()),
                "scores": lambda: ast.Tuple(
                    [node.args[1], ast.Attribute(node.args[2], "dense", ast.Load())], ast.Load()
                ),
                "wants": lambda: ast.Constant(value=False),
                "block": lambda: ast.Constant(value=None),
                "attn": lambda: ast.Constant(value=None),
                "refuse_unreached": lambda: ast.Constant(value=None),
            }[function.attr]()
        elif isinstance(function, ast.Attribute) and function.attr in ("looks_within", "for_pass"):
            instead = ast.Constant(value=False)
        if instead is None:
            return node
        self.taken_out += 1
        return ast.copy_location(instead, node)


def _dense(visible: ast.expr) -> ast.expr:
    return ast.Attribute(visible, "dense", ast.Load())


def _are_hooks(node: ast.expr) -> bool:
    name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    return name == "hooks"


class Rewriting(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the package's modules under the other name, and reads them without hooks."""

    def __init__(self) -> None:
        self.root = Path(as_it_is.__path__[0])
        self.taken_out = 0

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname.split(".")[0] != THERE:
            return None
        place = self.root.joinpath(*fullname.split(".")[1:])
        file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
        return importlib.util.spec_from_file_location(
            fullname, file, loader=self, submodule_search_locations=[str(place)] if place.is_dir() else None
        )

    def exec_module(self, module: ModuleType) -> None:
        assert module.__file__ is not None
        tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8").replace(HERE, THERE))
        if module.__name__.rpartition(".")[2] not in THEIR_OWN:
            rewriting = WithoutHooks()
            tree = ast.fix_missing_locations(rewriting.visit(tree))
            self.taken_out += rewriting.taken_out
        exec(compile(tree, module.__file__, "exec"), module.__dict__)


def both(variant: str, **shape: Any) -> tuple[nn.Module, nn.Module]:
    """Give the model as it is and the one without hooks, with the same numbers."""
    with_hooks = build(variant, **shape).eval()
    without = importlib.import_module(f"{THERE}.transformer").build(variant, **shape).eval()
    without.load_state_dict(with_hooks.state_dict())
    return with_hooks, without


def seconds(model: nn.Module, ids: Tensor, repeats: int) -> float:
    began = time.thread_time()
    for _ in range(repeats):
        model(ids)
    return time.thread_time() - began


def measure(variant: str, name: str, turns: int) -> None:
    shape = dict(SIZES[name])
    length = shape.pop("length")
    models = both(variant, vocab_size=256, context=length, n_heads=4, **shape)
    ids = torch.randint(256, (1, length), generator=torch.Generator().manual_seed(0))
    assert torch.equal(models[0](ids), models[1](ids))
    repeats = max(1, round(0.01 / min(seconds(models[0], ids, 1) for _ in range(5))))
    ratios, took = [], []
    for turn in range(turns):
        first = turn % 2
        times = {place: seconds(models[place], ids, repeats) for place in (first, 1 - first)}
        ratios.append(times[0] / times[1])
        took.append(1e3 * times[1] / repeats)
    ratios.sort()
    rank = max(0, math.floor(turns / 2 - 0.98 * math.sqrt(turns)))
    middle, low, high = ratios[turns // 2], ratios[rank], ratios[turns - 1 - rank]
    said = f"{middle:.4f} ({low:.4f} to {high:.4f})"
    print(f"{name:36} {said:30} {min(took):8.3f} ms a pass without", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--variant", default="softmax+rope")
    parser.add_argument("--turns", type=int, default=401)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    rewriting = Rewriting()
    sys.meta_path.insert(0, rewriting)
    both(asked.variant, vocab_size=2, context=2, n_heads=4)
    print(f"{processor_name()}, one thread, torch {torch.__version__}, {asked.variant}, {asked.turns} turns")
    print(f"a pass with hooks that nobody uses, over one without the {rewriting.taken_out} calls in its source")
    with torch.no_grad():
        for name in SIZES:
            measure(asked.variant, name, asked.turns)


if __name__ == "__main__":
    main()
