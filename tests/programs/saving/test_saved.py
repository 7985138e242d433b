"""A folder holds all that a file can hold of a compiled program, and nothing that was changed is taken for it."""

import json
from pathlib import Path

import pytest
import torch

import headstock as hs
from headstock import programs as p
from headstock.checkpoints import native
from headstock.errors import UserError
from headstock.programs.compiled import Compiled
from tests.programs.some_compiled import (
    compiled_adder,
    compiled_flag,
    compiled_mean,
    compiled_repeat,
    compiled_sort,
    trained,
)

ALL = [compiled_sort, compiled_mean, compiled_flag, compiled_repeat, compiled_adder]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    compiled_sort().save(tmp_path / "sort")
    return tmp_path / "sort"


@pytest.mark.parametrize("make", ALL, ids=lambda make: make.__name__)
def test_what_was_saved_is_what_is_loaded(make, tmp_path: Path) -> None:
    compiled: Compiled = make()
    compiled.save(tmp_path / "model")
    loaded = p.load(tmp_path / "model")
    assert loaded.record == compiled.record
    assert loaded.is_certified
    assert str(loaded.certificate) == str(compiled.certificate)
    assert loaded.size() == compiled.size()
    sequences = [compiled.domain.vocabulary[:2], compiled.domain.vocabulary[-1:]]
    assert loaded.batch(sequences) == compiled.batch(sequences)


@pytest.mark.parametrize("make", ALL, ids=lambda make: make.__name__)
def test_headstock_loads_the_model_with_no_converter(make, tmp_path: Path) -> None:
    compiled: Compiled = make()
    compiled.save(tmp_path)
    model = hs.load(tmp_path)
    held = compiled.model.state_dict()
    assert {name: torch.equal(weight, held[name]) for name, weight in model.state_dict().items()} == dict.fromkeys(
        held, True
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "config.json",
        "model.safetensors",
        "program.json",
        "tokenizer.json",
    ]


def test_values_come_back_in_their_own_types(tmp_path: Path) -> None:
    compiled_flag().save(tmp_path)
    values = [p.load(tmp_path)([word])[0] for word in ("yes", "one", "word", "none")]
    assert [(type(value), value) for value in values] == [(bool, True), (int, 2), (str, "1"), (type(None), None)]


def test_the_lines_of_the_program_are_kept_as_they_are_written(folder: Path) -> None:
    source = p.load(folder).record.source
    file = Path(p.zoo.__file__).parent / "ordering.py"
    lines = file.read_text(encoding="utf-8").splitlines()
    assert {line.file for line in source} == {"ordering.py"}
    assert [line.text for line in source] == [lines[line.number - 1].rstrip() for line in source]
    assert any("def sort()" in line.text for line in source)


def test_a_model_that_was_trained_since_runs_and_is_not_certified_any_more(folder: Path) -> None:
    model = hs.load(folder)
    model.load_state_dict(trained(compiled_sort()))
    hs.save(model, folder)
    loaded = p.load(folder)
    assert not loaded.is_certified
    assert "not certified any more" in str(loaded)
    assert len(loaded("ab")) == 2
    loaded.save(folder.parent / "again")
    assert not p.load(folder.parent / "again").is_certified


def test_a_compiled_model_trained_before_it_was_saved_is_not_certified(tmp_path: Path) -> None:
    compiled = p.compile(p.zoo.copy, vocab="ab", max_length=2)
    assert compiled.is_certified
    with torch.no_grad():
        compiled.model.embed.weight[0] += 0.01
    assert not compiled.is_certified
    compiled.save(tmp_path)
    assert not p.load(tmp_path).is_certified


def test_another_dtype_than_the_certified_one_is_refused(folder: Path) -> None:
    with pytest.raises(UserError, match=r"compiled for float32.*compile it again with dtype='bfloat16'"):
        p.load(folder, dtype="bfloat16")
    with pytest.raises(UserError, match="unknown dtype"):
        p.load(folder, dtype="float31")
    assert p.load(folder, dtype="float32")("ba") == ["a", "b"]
    hs.save(hs.load(folder).bfloat16(), folder)
    with pytest.raises(UserError, match="the weights of sort are bfloat16, and it was compiled for float32"):
        p.load(folder)


def test_a_model_turned_into_another_dtype_in_place_does_not_answer() -> None:
    compiled = p.compile(p.zoo.copy, vocab="ab", max_length=2)
    compiled.model.to(torch.bfloat16)
    for read in (compiled, compiled.explain):
        with pytest.raises(UserError, match="the weights of copy are bfloat16"):
            read("ab")


def test_a_folder_without_a_program_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no folder"):
        p.load(tmp_path / "nowhere")
    hs.save(compiled_sort().model, tmp_path)
    with pytest.raises(UserError, match=r"holds no compiled program: program.json is not in it"):
        p.load(tmp_path)


def test_another_model_beside_the_record_is_refused(folder: Path) -> None:
    hs.save(hs.build("softmax", vocab_size=5, context=4, d_model=8, n_layers=1, n_heads=2), folder)
    with pytest.raises(UserError, match=r"holds another model than its program\.json tells of"):
        p.load(folder)


def _without(*path: str):
    def change(held):
        for key in path[:-1]:
            held = held[key]
        del held[path[-1]]

    return change


def _with(value, *path):
    def change(held):
        for key in path[:-1]:
            held = held[key]
        held[path[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (_without("names"), "'names' is missing"),
        (_without("certificate", "decisions"), "'decisions' is missing"),
        (_without("anatomy", "heads"), "'heads' is missing"),
        (_with(["b", "a", "c", "<start>", "None"], "names"), "its names are not those of its vocabulary"),
        (_with(1, "start"), "token ids that it has no name for"),
        (_with([0, 1, 2, 99], "outputs", "ids"), "token ids that it has no name for"),
        (_with([0, 1], "outputs", "ids"), "is damaged"),
        (_with({"bogus": 1}, "end"), "is no value of a program"),
        (_with("high", "certificate", "measured_error"), "is no number"),
        (_with("other", "format"), "is of another kind"),
        (_with(99, "version"), "is written in version 99 of the format and this Headstock reads version 1"),
    ],
)
def test_a_damaged_record_is_refused_in_a_sentence(folder: Path, change, part: str) -> None:
    path = folder / "program.json"
    held = json.loads(path.read_text(encoding="utf-8"))
    change(held)
    path.write_text(json.dumps(held), encoding="utf-8")
    with pytest.raises(UserError, match=part) as caught:
        p.load(folder)
    assert "\n" not in str(caught.value)


def test_half_a_record_is_refused(folder: Path) -> None:
    path = folder / "program.json"
    path.write_text(path.read_text(encoding="utf-8")[:500], encoding="utf-8")
    with pytest.raises(UserError, match="is damaged and cannot be read"):
        p.load(folder)


def test_an_error_leaves_the_folder_as_it_was(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(native, "save_file", fail)
    with pytest.raises(UserError, match="No space left"):
        compiled_mean().save(folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_an_output_that_no_file_can_hold_is_refused(tmp_path: Path) -> None:
    odd = p.lookup({"a": frozenset("x"), "b": None}, p.tokens)
    compiled = p.compile(odd, vocab="ab", max_length=2)
    assert compiled("a") == [frozenset("x")]
    with pytest.raises(UserError, match="cannot be written to a file"):
        compiled.save(tmp_path / "odd")
    assert not (tmp_path / "odd" / "model.safetensors").exists()


def test_a_process_killed_while_one_program_replaces_another_leaves_nothing_that_loads_as_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed before each of the moves by which files reach their places, one after the other."""
    by_3, by_5 = (p.compile(p.zoo.caesar(by), vocab="abcdefghijklmnopqrstuvwxyz", max_length=2) for by in (3, 5))
    move, waiting = Path.replace, [""]

    def killed(self: Path, target: Path) -> Path:
        if self.name == waiting[0]:
            raise SystemExit
        return move(self, target)

    def found() -> str:
        try:
            loaded = p.load(tmp_path)
        except UserError as refusal:
            return str(refusal)
        assert loaded.is_certified
        return "".join(loaded("ab"))

    monkeypatch.setattr(Path, "replace", killed)
    for file in ("config.json", "model.safetensors", "program.json"):
        waiting[0] = ""
        by_3.save(tmp_path)
        assert found() == "de"
        waiting[0] = file
        with pytest.raises(SystemExit):
            by_5.save(tmp_path)
        assert "was being saved when its process was stopped" in found()
    waiting[0] = ""
    by_5.save(tmp_path)
    assert found() == "fg"
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(".part")]
