"""A hook that cannot fire, or gives what cannot be gone on with, is refused in a sentence that says what to do."""

import re
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from headstock.errors import UserError
from headstock.model.hooks import HookPoint
from headstock.model.transformer import Transformer, build
from tests.model.cases import SIZES, Case, some_ids
from tests.model.hooking import everything, read

IDS = some_ids()
EMBED = "hook_embed"


@pytest.fixture
def model() -> Transformer:
    return Case("softmax", "softmax").model()


@pytest.fixture
def deep() -> Transformer:
    return build("differential+rope", **{**SIZES, "n_layers": 12})


@pytest.mark.parametrize(
    ("wrong", "near"),
    [
        ("blocks.0.attn.hook_patern", "blocks.0.attn.hook_pattern"),
        ("blocks.3.hook_pattern", "blocks.3.attn.hook_pattern"),
        ("blocks.3.attn.pattern", "blocks.3.attn.hook_pattern"),
        ("pattern", "blocks.0.attn.hook_pattern"),
        ("attn.hook_z", "blocks.0.attn.hook_z"),
        ("blocks.2.attn.hook_attn_scores", "blocks.2.attn.hook_attn_scores_1"),
        ("blocks.4.hook_scores", "blocks.4.attn.hook_attn_scores_1"),
        ("blocks.12.hook_resid_post", "blocks.0.hook_resid_post"),
        ("embed", "hook_embed"),
        ("ln_final.hook_scale", "ln_final.hook_normalized"),
        ("blocks.11.hook_resid_pos", "blocks.11.hook_resid_post"),
    ],
)
def test_an_unknown_name_suggests_the_near_one(deep: Transformer, wrong: str, near: str) -> None:
    sentence = f"has no {re.escape(repr(wrong))}: did you mean '{near}'"
    for run in (
        lambda: deep.run_with_hooks(IDS, [(wrong, read)]),
        lambda: deep.run_with_cache(IDS, [EMBED, wrong]),
        lambda: deep.add_hook(wrong, read),
    ):
        with pytest.raises(UserError, match=sentence):
            run()
    assert near in deep.hook_names()


def test_a_name_like_no_other_is_answered_by_where_the_names_are(deep: Transformer) -> None:
    with pytest.raises(UserError, match=r"has no 'qqqq': see model.hook_names\(\)\.$"):
        deep.run_with_cache(IDS, "qqqq")


def named_otherwise(value: Tensor, *, where: HookPoint) -> None: ...


def by_position_only(value: Tensor, hook: HookPoint, /) -> None: ...


def of_three(value: Tensor, head: int, hook: HookPoint) -> None: ...


@pytest.mark.parametrize(
    ("hook", "sentence"),
    [
        ((EMBED, lambda value: value), "cannot be called as function(value, hook), where hook.name is"),
        ((EMBED, lambda: None), "cannot be called as function(value, hook)"),
        ((EMBED, of_three), "'of_three' cannot be called as function(value, hook)"),
        ((EMBED, named_otherwise), "'named_otherwise' cannot be called as function(value, hook)"),
        ((EMBED, lambda value, layer=1: None), "cannot be called as function(value, hook)"),
        ((EMBED, torch.nn.Tanh()), "'Tanh' cannot be called as function(value, hook)"),
        ((EMBED, 3), "3 is no function: a hook is called as function(value, hook)."),
        ((EMBED, torch.zeros(2)), "is no function"),
        ((lambda name: "query" in name, read), "the predicate fits none of the"),
        (([], read), "a function waits for no name of softmax"),
        (((), read), "a function waits for no name of softmax"),
        ((3, read), "3 names nothing: give a name, a list of names, or a function"),
        ((None, read), "None names nothing"),
        ((re.compile("pattern"), read), "such as re.compile(...).search."),
        (EMBED, "'hook_embed' is no hook: give pairs of a name and a function."),
        (read, "is no hook: give pairs of a name and a function."),
        ((EMBED, read, "fwd"), "is no hook: give pairs of a name and a function."),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_what_is_no_hook_is_refused_before_anything_runs(model: Transformer, hook: Any, sentence: str) -> None:
    for direction in ("forward", "backward"):
        with pytest.raises(UserError, match=re.escape(sentence)):
            model.run_with_hooks(IDS, **{direction: [hook]})


@pytest.mark.usefixtures("unchecked")
def test_what_is_no_list_of_hooks_is_refused(model: Transformer) -> None:
    for direction in ("forward", "backward"):
        with pytest.raises(UserError, match="None holds no hooks: give a list of pairs"):
            model.run_with_hooks(IDS, **{direction: None})


@pytest.mark.parametrize(
    "function", [by_position_only, partial(of_three, head=2), lambda value, *rest: None, lambda value, **rest: None]
)
def test_what_can_be_called_with_a_value_and_a_hook_point_is_a_function(model: Transformer, function: Any) -> None:
    if function.__class__ is not partial and function.__code__.co_flags & 8:  # **rest takes no second position
        with pytest.raises(UserError, match="cannot be called"):
            model.run_with_hooks(IDS, [(EMBED, function)])
    else:
        model.run_with_hooks(IDS, [(EMBED, function)])


def test_a_compiled_expression_names_by_its_search(model: Transformer) -> None:
    _, cache = model.run_with_cache(IDS, re.compile(r"\.1\.attn\.hook_[qk]$").search)
    assert list(cache) == ["blocks.1.attn.hook_q", "blocks.1.attn.hook_k"]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (0, "the function on hook_embed gave int: give a tensor of shape (3, 9, 16), or None"),
        ((torch.zeros(3, 9, 16),), "the function on hook_embed gave tuple"),
        (torch.zeros(16), "the function on hook_embed gave a tensor of shape (16,), but the value has (3, 9, 16)"),
        (torch.zeros(1, 9, 16), "gave a tensor of shape (1, 9, 16), but the value has (3, 9, 16): give one of that"),
        (torch.zeros(3, 9, 16, device="meta"), "gave a tensor on meta, but the value is on cpu: give one there."),
        (torch.zeros(3, 9, 16, dtype=torch.complex64), "the function on hook_embed gave complex numbers: give real"),
    ],
)
@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_what_a_value_cannot_be_replaced_by_is_refused(
    model: Transformer, direction: str, given: Any, sentence: str
) -> None:
    def give(value: Tensor, hook: HookPoint) -> Any:
        return given

    with pytest.raises(UserError, match=re.escape(sentence)):  # noqa: SIM117
        with model.hooks(**{direction: [(EMBED, give)]}):
            model(IDS).sum().backward()


def test_a_value_of_another_precision_is_gone_on_with_in_the_models_own(model: Transformer) -> None:
    _, cache = model.float().run_with_cache(IDS)
    logits = model.run_with_hooks(IDS, [(EMBED, lambda value, hook: cache[hook.name].double())])
    assert logits.dtype == torch.float32


OWN = '''
from headstock.model.attention import masked_softmax
from headstock.model.mixers.base import Mixer, ScoreMixer

class Still(Mixer):
    """Mixes nothing."""

    weights_are = "none"

    def forward(self, x_bqm, frame):
        return x_bqm

    def weights(self, x_bqm, frame):
        raise NotImplementedError

class Silent(Still):
    """Lists what it never shows."""

    def hook_names(self):
        return ["hook_secret"]

class Open(Still):
    """Shows what it lists."""

    def hook_names(self):
        return ["hook_open"]

    def forward(self, x_bqm, frame):
        return frame.hooks.attn(self.layer)("hook_open", 2 * x_bqm)

class OwnForward(ScoreMixer):
    """Weighs in a forward of its own, and never comes to scores that can be shown."""

    weights_are = "normalised"

    def weigh(self, scores_bhqk, visible_bhqk):
        return masked_softmax(scores_bhqk, visible_bhqk)

    def forward(self, x_bqm, frame):
        heads = self.read(x_bqm, frame)
        return self.out(self._averaged(self.weights_of(heads), heads), heads)
'''


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "own.py").write_text(OWN)
    yield tmp_path
    sys.modules.pop("own", None)


def inside(model: Transformer) -> list[str]:
    return [name.removeprefix("blocks.0.attn.") for name in model.hook_names() if name.startswith("blocks.0.attn.")]


@pytest.mark.usefixtures("here")
def test_a_plain_mixer_of_ones_own_lists_nothing_inside_and_is_hooked_all_around() -> None:
    model = build("own.py:Still", **SIZES)
    assert inside(model) == []
    _, cache = everything(model)
    assert list(cache) == model.hook_names()
    assert torch.equal(cache["attn_out", 0], cache["ln1.normalized", 0])


@pytest.mark.usefixtures("here")
def test_a_mixer_of_ones_own_shows_what_it_lists_or_asking_for_it_is_refused() -> None:
    shown, silent = (build(f"own.py:{name}", **SIZES) for name in ("Open", "Silent"))
    assert inside(shown) == ["hook_open"]
    _, cache = everything(shown)
    assert torch.equal(cache["open", 1], 2 * cache["ln1.normalized", 1])
    assert inside(silent) == ["hook_secret"]
    name = "blocks.1.attn.hook_secret"
    for run in (
        lambda: silent.run_with_hooks(IDS, [(name, read)]),
        lambda: silent.run_with_cache(IDS, name),
        lambda: silent.run_with_hooks(IDS, backward=[(name, read)]),
        lambda: silent.run_with_hooks(IDS, [(EMBED, read), (name, read)]),
    ):
        with pytest.raises(UserError, match=f"{name} was not reached, so the function that waits for it was never"):
            run()
    silent.run_with_hooks(IDS, [(EMBED, read)])


@pytest.mark.usefixtures("here")
def test_a_mixer_with_a_forward_of_its_own_lists_no_scores_and_says_its_weights_of_what_it_read() -> None:
    model = build("own.py:OwnForward", **SIZES)
    assert inside(model) == ["hook_q", "hook_k", "hook_v", "hook_z", "hook_result"]
    softmax = build("softmax", **SIZES)
    softmax.load_state_dict(model.state_dict())

    def change(value: Tensor, hook: HookPoint) -> None:
        value[:, :3] = 0

    hook = [("blocks.1.hook_resid_pre", change)]
    with model.hooks(hook), softmax.hooks(hook):
        for own, ours in zip(model.weights(IDS), softmax.weights(IDS), strict=True):
            torch.testing.assert_close(own, ours)


def test_a_copy_that_was_reshaped_in_place_is_refused_too() -> None:
    model, ids = Case("", "softmax").model(), some_ids()

    def cut(x: Tensor, hook: HookPoint) -> None:
        x.data = x.data[:1]

    def grown(x: Tensor, hook: HookPoint) -> None:
        x.unsqueeze_(0)

    for function in (cut, grown):
        with pytest.raises(UserError, match="the value has"):
            model.run_with_hooks(ids, [("hook_embed", function)])
