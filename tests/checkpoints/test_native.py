"""Saved and loaded, a model is the same to the last bit; anything else is refused, and nothing old is lost."""

import json
import resource
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from headstock.checkpoints import native
from headstock.checkpoints.native import load, save
from headstock.errors import UserError
from headstock.model.transformer import Transformer, build
from tests.model.cases import SIZES, Case, every_case, some_ids

DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16]


class Words:
    """A vocabulary that keeps itself."""

    def __init__(self, content: str) -> None:
        self.content = content

    def save(self, folder: Path) -> None:
        (folder / "tokenizer.json").write_text(self.content)


@pytest.fixture
def saved(tmp_path: Path) -> tuple[Transformer, Path]:
    model = Case("softmax", "softmax").model(torch.float32)
    save(model, tmp_path / "model", tokenizer=Words("old"))
    return model, tmp_path / "model"


@contextmanager
def no_file_longer_than(n_bytes: int) -> Iterator[None]:
    """Refuse, as a full disk does, to write more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def edit_config(folder: Path, **changes: Any) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | changes))


@every_case
def test_a_loaded_model_gives_the_saved_ones_logits_bit_for_bit(case: Case, tmp_path: Path) -> None:
    for dtype in (torch.float32, torch.bfloat16):
        model = case.model(dtype)
        save(model, tmp_path / str(dtype))
        loaded = load(tmp_path / str(dtype))
        assert loaded.config == model.config
        assert not loaded.training
        assert torch.equal(loaded(some_ids()), model(some_ids()))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_number_comes_back_in_its_dtype(dtype: torch.dtype, tmp_path: Path) -> None:
    model = Case("differential", "differential+sinusoidal").model(dtype)
    save(model, tmp_path)
    loaded = dict(load(tmp_path).named_parameters())
    for name, parameter in model.named_parameters():
        assert loaded[name].dtype == dtype
        assert loaded[name].requires_grad
        assert torch.equal(loaded[name], parameter), name


def test_a_model_is_a_folder_that_anyone_can_read(saved: tuple[Transformer, Path]) -> None:
    model, folder = saved
    assert set(contents(folder)) == {"config.json", "model.safetensors", "tokenizer.json"}
    config = json.loads((folder / "config.json").read_text())
    assert (config["format"], config["version"], config["dtype"]) == ("headstock-model", 1, "float32")
    assert config["model"] == model.config.model_dump()
    assert torch.equal(load_file(folder / "model.safetensors")["embed.weight"], model.embed.weight)


def test_loading_moves_no_global_generator(saved: tuple[Transformer, Path]) -> None:
    state = torch.get_rng_state()
    load(saved[1])
    assert torch.equal(torch.get_rng_state(), state)


def test_saving_again_replaces_the_old_model(saved: tuple[Transformer, Path]) -> None:
    _, folder = saved
    other = Case("uniform", "uniform+none").model(torch.float64)
    save(other, folder, tokenizer=Words("new"))
    assert torch.equal(load(folder)(some_ids()), other(some_ids()))
    assert (folder / "tokenizer.json").read_text() == "new"
    assert set(contents(folder)) == {"config.json", "model.safetensors", "tokenizer.json"}


@pytest.mark.parametrize("room", [0, 100, 2_000], ids=lambda room: f"{room}-bytes")
def test_a_full_disk_is_said_and_leaves_the_old_model_whole(saved: tuple[Transformer, Path], room: int) -> None:
    model, folder = saved
    before = contents(folder)
    other = build("softmax1+rope", **SIZES)
    with (
        no_file_longer_than(room),
        pytest.raises(UserError, match=r"could not be written: .*free some space"),
    ):
        save(other, folder, tokenizer=Words("new"))
    assert contents(folder) == before
    assert torch.equal(load(folder)(some_ids()), model(some_ids()))


@pytest.mark.parametrize("where", ["save_file", "as_json"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()], ids=["disk", "ctrl-c"])
def test_a_save_that_breaks_off_anywhere_leaves_the_old_model_whole(
    saved: tuple[Transformer, Path], monkeypatch: pytest.MonkeyPatch, where: str, error: BaseException
) -> None:
    def broken(*_: object) -> None:
        raise error

    model, folder = saved
    before = contents(folder)
    monkeypatch.setattr(native, where, broken)
    with pytest.raises((UserError, KeyboardInterrupt)) as caught:
        save(build("softmax1", **SIZES), folder, tokenizer=Words("new"))
    assert isinstance(caught.value, UserError) is isinstance(error, OSError)
    assert contents(folder) == before
    assert torch.equal(load(folder)(some_ids()), model(some_ids()))


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    for folder in (tmp_path / "file", tmp_path / "file" / "model"):
        with pytest.raises(UserError, match="could not be written"):
            save(build("softmax", **SIZES), folder)
    assert (tmp_path / "file").read_text() == "in the way"


def test_a_model_of_two_dtypes_is_refused_before_anything_is_written(saved: tuple[Transformer, Path]) -> None:
    _, folder = saved
    before = contents(folder)
    mixed = build("softmax", **SIZES)
    mixed.blocks[0].mixer.double()
    with pytest.raises(UserError, match="the model's numbers are float32 and float64: convert all of them to one"):
        save(mixed, folder)
    assert contents(folder) == before


def test_weights_of_another_model_of_the_same_shapes_are_refused(
    saved: tuple[Transformer, Path], tmp_path: Path
) -> None:
    _, folder = saved
    save(Case("softmax1", "softmax1").model(torch.float32), tmp_path / "other")
    shutil.copy(tmp_path / "other" / "model.safetensors", folder)
    with pytest.raises(UserError, match=r"model\.safetensors was not saved together with its config\.json"):
        load(folder)


def truncate(folder: Path) -> None:
    whole = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(whole[: len(whole) // 2])


def rewrite(folder: Path, change: Any) -> None:
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors")


DAMAGES = {
    "truncated-weights": (truncate, r"model\.safetensors is damaged: .*; restore it from a copy\."),
    "empty-weights": (lambda f: (f / "model.safetensors").write_bytes(b""), r"model\.safetensors is damaged"),
    "noise-for-weights": (lambda f: (f / "model.safetensors").write_bytes(b"\xff" * 99), "is damaged"),
    "no-weights": (lambda f: (f / "model.safetensors").unlink(), r"has a config but no model\.safetensors"),
    "no-config": (lambda f: (f / "config.json").unlink(), r"config\.json does not exist: it should be the config of"),
    "no-folder": (shutil.rmtree, r"config\.json does not exist"),
    "empty-config": (lambda f: (f / "config.json").write_text(""), r"config\.json is damaged and cannot be read as"),
    "binary-config": (lambda f: (f / "config.json").write_bytes(b"\xff\xfe"), r"config\.json is damaged"),
    "half-a-config": (lambda f: (f / "config.json").write_text('{"format": '), r"config\.json is damaged"),
    "a-list-for-a-config": (lambda f: (f / "config.json").write_text("[]"), "holds no Headstock model"),
    "another-tools-config": (lambda f: (f / "config.json").write_text('{"model_type": "gpt2"}'), "holds no Headstock"),
    "another-version": (lambda f: edit_config(f, version=2), "is written in version 2 .* reads version 1"),
    "no-dtype": (lambda f: edit_config(f, dtype=None), r"config\.json is damaged: it needs a dtype and a model"),
    "a-function-for-a-dtype": (lambda f: edit_config(f, dtype="load"), r"config\.json is damaged"),
    "a-list-for-a-dtype": (lambda f: edit_config(f, dtype=[]), r"config\.json is damaged"),
    "no-model": (lambda f: edit_config(f, model=None), r"config\.json is damaged"),
    "an-unknown-key": (lambda f: edit_config(f, model=SIZES | {"n_head": 3}), "did you mean 'n_heads'"),
    "another-dtype": (lambda f: edit_config(f, dtype="float64"), r"is float32 .* instead of float64"),
    "another-width": (
        lambda f: rewrite(f, lambda x: x.update({"embed.weight": torch.zeros(17, 8)})),
        r"embed\.weight is float32 \(17, 8\) instead of float32 \(17, 16\)",
    ),
    "a-missing-tensor": (lambda f: rewrite(f, lambda x: x.pop("embed.weight")), r"embed\.weight is missing instead of"),
    "a-tensor-too-many": (
        lambda f: rewrite(f, lambda x: x.update(extra=torch.zeros(3))),
        r"extra is float32 \(3,\) instead of absent",
    ),
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_is_no_whole_model_is_refused_and_left_alone(saved: tuple[Transformer, Path], damage: str) -> None:
    _, folder = saved
    spoil, sentence = DAMAGES[damage]
    spoil(folder)
    before = contents(folder) if folder.exists() else None
    with pytest.raises(UserError, match=sentence):
        load(folder)
    assert (contents(folder) if folder.exists() else None) == before
