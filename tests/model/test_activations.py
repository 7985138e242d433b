"""What was kept is found by its full name or a short one, never by a guess between two."""

import re

import pytest
import torch

from headstock.errors import UserError
from headstock.model.activations import Activations, NotKept
from headstock.model.transformer import build
from tests.model.cases import SIZES, some_ids

MODEL = build("softmax", **{**SIZES, "n_layers": 3})
with torch.no_grad():
    LOGITS, CACHE = MODEL.run_with_cache(some_ids())


@pytest.mark.parametrize(
    ("asked", "full"),
    [
        ("hook_embed", "hook_embed"),
        ("embed", "hook_embed"),
        ("pos_embed", "hook_pos_embed"),
        ("ln_final.normalized", "ln_final.hook_normalized"),
        (("pattern", 0), "blocks.0.attn.hook_pattern"),
        (("pattern", 1, "attn"), "blocks.1.attn.hook_pattern"),
        (("attn.pattern", 1), "blocks.1.attn.hook_pattern"),
        (("hook_pattern", 1), "blocks.1.attn.hook_pattern"),
        (("resid_post", -1), "blocks.2.hook_resid_post"),
        (("post", -3), "blocks.0.mlp.hook_post"),
        (("attn_out", 0), "blocks.0.hook_attn_out"),
        (("mlp_out", 0), "blocks.0.hook_mlp_out"),
        (("ln1.normalized", 2), "blocks.2.ln1.hook_normalized"),
        (("normalized", 2, "ln2"), "blocks.2.ln2.hook_normalized"),
        (("k", 2), "blocks.2.attn.hook_k"),
    ],
)
def test_a_short_name_finds_the_value_of_the_full_one(asked: str | tuple[str, int], full: str) -> None:
    assert CACHE[asked] is CACHE[full]
    assert asked in CACHE
    assert MODEL.hook_names()[list(CACHE).index(full)] == full


@pytest.mark.parametrize("name", [(), ("pattern",), ("pattern", "0"), (0, "pattern"), ("pattern", 0, 1)], ids=str)
@pytest.mark.usefixtures("unchecked")
def test_a_tuple_that_is_no_name_and_layer_is_refused(name: tuple[object, ...]) -> None:
    for ask in (lambda: CACHE[name], lambda: CACHE.get(name), lambda: name in CACHE):  # type: ignore[index, call-overload]
        with pytest.raises(UserError, match=r"names no value: give a short name and its layer"):
            ask()


def test_a_short_name_of_two_values_is_refused_and_so_is_a_stack_of_them() -> None:
    sentence = re.escape("'normalized' may be that of ln1 or of ln2: say which, as in cache['ln1.normalized', 0].")
    for ask in (lambda: CACHE["normalized", 0], lambda: CACHE.stack("normalized"), lambda: ("normalized", 1) in CACHE):
        with pytest.raises(UserError, match=sentence):
            ask()
    assert CACHE.stack("ln2.normalized").shape == (3, 3, 9, 16)


def test_a_value_that_was_not_kept_is_told_from_one_that_there_is_not() -> None:
    _, cache = MODEL.run_with_cache(some_ids(), ["blocks.0.hook_resid_post", "blocks.1.hook_resid_post"])
    assert ("resid_post", -1) not in cache
    assert 3 not in cache
    for asked, sentence in (
        (("resid_post", -1), "blocks.2.hook_resid_post was not kept by run_with_cache: ask for it among its names."),
        ("blocks.0.attn.hook_z", "blocks.0.attn.hook_z was not kept by run_with_cache"),
        (("resid_post", 3), "the model has no 'blocks.3.resid_post': did you mean 'blocks.0.hook_resid_post'?"),
        (("scores", 1), "the model has no 'blocks.1.scores': did you mean 'blocks.1.attn.hook_attn_scores'?"),
    ):
        with pytest.raises(NotKept, match=re.escape(sentence)):
            cache[asked]
    with pytest.raises(KeyError):
        cache["nowhere"]
    assert cache.get("nowhere") is None
    assert torch.equal(cache.stack("resid_post"), torch.stack([*cache.values()]))
    with pytest.raises(NotKept, match=r"no layer's 'z' was kept by run_with_cache"):
        cache.stack("z")


def test_layers_of_more_than_one_digit_are_told_apart() -> None:
    model = build("uniform", **{**SIZES, "n_layers": 12})
    _, cache = model.run_with_cache(some_ids(), lambda name: name.endswith("hook_resid_post"))
    assert list(cache) == [f"blocks.{layer}.hook_resid_post" for layer in range(12)]
    assert cache["resid_post", -1] is cache["resid_post", 11]
    assert cache["resid_post", 1] is cache["blocks.1.hook_resid_post"]
    assert cache.stack("resid_post").shape == (12, 3, 9, 16)


def test_bytes_are_counted_once_where_two_names_share_them() -> None:
    x = torch.zeros(4, 5)
    assert Activations({"a": x, "b": x.T, "c": torch.zeros(3)}).n_bytes == 4 * 23
    assert repr(Activations({"a": x})) == "1 values, 0.0 MiB\n  a [4, 5]"
    assert len(Activations({})) == Activations({}).n_bytes == 0
