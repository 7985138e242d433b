"""What was not asked for is not kept, and nothing grows with the calls made."""

import gc
import subprocess
import sys

import pytest
import torch
from torch import Tensor

from headstock.instruments.memory import held_bytes, peak_bytes
from headstock.model.hooks import HookPoint
from headstock.model.transformer import Transformer, build
from tests.model.hooking import moved, zeroed

IDS = torch.arange(64)[None] % 50
NAME = "blocks.5.attn.hook_pattern"


@pytest.fixture(scope="module")
def deep() -> Transformer:
    return build("softmax+rope", vocab_size=50, context=64, d_model=32, n_heads=4, n_layers=12).eval()


def tensors() -> int:
    gc.collect()
    return sum(issubclass(type(thing), Tensor) for thing in gc.get_objects())


@pytest.mark.parametrize("name", [NAME, "blocks.11.hook_resid_post", "blocks.2.attn.hook_q"])
def test_run_with_cache_keeps_what_was_asked_for_and_nothing_else(deep: Transformer, name: str) -> None:
    with torch.no_grad():
        logits, cache = deep.run_with_cache(IDS, name)
        assert list(cache) == [name]
        assert cache.n_bytes == cache[name].numel() * 4
        assert held_bytes(lambda: deep.run_with_cache(IDS, name)) == cache.n_bytes + logits.numel() * 4
        # scores hidden and shown, weights, and what is worked on beside them, of one layer: never of twelve
        assert peak_bytes(lambda: deep.run_with_cache(IDS, name)) <= peak_bytes(lambda: deep(IDS)) + 8 * 4 * 64 * 64 * 4


def test_values_and_gradients_that_are_kept_hold_no_graph(deep: Transformer) -> None:
    logits, cache = deep.run_with_cache(IDS, NAME)
    assert logits.requires_grad
    assert not cache[NAME].requires_grad
    logits, cache = deep.run_with_cache(IDS, NAME, gradients_of=lambda logits: logits.sum())
    assert not any(x.requires_grad for x in (logits, cache[NAME], cache.gradients[NAME]))


def test_ten_calls_leave_memory_flat(deep: Transformer) -> None:
    def call() -> None:
        deep.run_with_cache(IDS, NAME)
        deep.run_with_cache(IDS, NAME, gradients_of=lambda logits: logits.sum())
        deep.run_with_hooks(IDS, [(NAME, moved)], backward=[(NAME, zeroed)]).sum().backward()

    call()
    deep.zero_grad()
    before = tensors()
    for _ in range(10):
        call()
        deep.zero_grad()
    assert tensors() == before

    def ten() -> None:
        with torch.no_grad():
            for _ in range(10):
                deep.run_with_cache(IDS)

    assert held_bytes(ten) == 0


def test_values_that_pass_by_are_let_go_while_the_model_runs(deep: Transformer) -> None:
    """A pass that only looks at every pattern holds one layer's at a time."""
    patterns = [name for name in deep.hook_names() if name.endswith("pattern")]
    one = 4 * 64 * 64 * 4

    def look(value: Tensor, hook: HookPoint) -> None: ...

    with torch.no_grad():
        looked = peak_bytes(lambda: deep.run_with_hooks(IDS, [(patterns, look)]))
        kept = peak_bytes(lambda: deep.run_with_cache(IDS, patterns))
    assert kept - looked >= 6 * one


COMPILED = """
import sys
import torch
import headstock as hs

model = hs.build("softmax+rope", vocab_size=17, context=12, d_model=16, n_layers=2, n_heads=4).eval()
ids = torch.randint(17, (3, 9))
compiled = torch.compile(model, backend=sys.argv[1])
logits = model(ids)
torch.testing.assert_close(compiled(ids), logits)
for name in ("hook_embed", "blocks.0.attn.hook_pattern", "blocks.1.attn.hook_attn_scores"):
    seen = []
    with model.hooks([(name, lambda value, hook: value / 2)]):
        changed = compiled(ids)
        torch.testing.assert_close(changed, model(ids))
        assert not torch.allclose(changed, logits), name
    look = [(name, lambda value, hook: seen.append(hook.name))]
    with model.hooks(look, backward=look):
        compiled(ids).sum().backward()
    assert seen == [name, name]
    torch.testing.assert_close(compiled(ids), logits)
"""


@pytest.mark.full
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_functions_are_called_in_a_compiled_model_too(backend: str) -> None:
    """In a program of its own, without the run-time checks of shapes, which torch.compile cannot read."""
    done = subprocess.run([sys.executable, "-c", COMPILED, backend], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
