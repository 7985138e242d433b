"""A reader sees the old file or the new one, never half of one, and no trace of a write that failed."""

import math
import os
from pathlib import Path

import pytest

from headstock.checkpoints.files import read_json, write_atomically, write_json, written_together
from headstock.errors import UserError


def test_json_comes_back_as_it_was(tmp_path: Path) -> None:
    value = {"λ": [1, 2.5, None, True], "nested": {"text": "Ω"}}
    write_json(tmp_path / "new" / "folder" / "value.json", value)
    assert read_json(tmp_path / "new" / "folder" / "value.json", "a value") == value
    assert "λ" in (tmp_path / "new" / "folder" / "value.json").read_text(encoding="utf-8")


def test_a_number_that_json_cannot_hold_is_refused_and_the_old_file_stands(tmp_path: Path) -> None:
    write_json(tmp_path / "value.json", 1)
    with pytest.raises(ValueError, match="JSON compliant"):
        write_json(tmp_path / "value.json", math.nan)
    assert read_json(tmp_path / "value.json", "a value") == 1


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt(), ZeroDivisionError()])
def test_a_write_that_fails_half_way_leaves_the_old_file_and_no_other(tmp_path: Path, error: BaseException) -> None:
    def half(beside: Path) -> None:
        beside.write_text("ha")
        raise error

    path = tmp_path / "text"
    path.write_text("old")
    expected = UserError if isinstance(error, OSError) else type(error)
    with pytest.raises(expected):
        write_atomically(path, half)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["text"]


def test_the_old_file_stands_while_the_new_one_is_written(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("old")
    seen: list[str] = []
    write_atomically(path, lambda beside: (beside.write_text("new"), seen.append(path.read_text())))
    assert seen == ["old"]
    assert path.read_text() == "new"


def test_files_written_together_come_together_or_not_at_all(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text("old")

    def half(of: Path) -> None:
        with written_together(of) as beside:
            (beside / "a").write_text("new")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        half(tmp_path)
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == {"a": "old", "b": "old"}
    with written_together(tmp_path) as beside:
        (beside / "a").write_text("new")
        assert (tmp_path / "a").read_text() == "old"
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == {"a": "new", "b": "old"}


def test_a_file_in_the_place_of_a_folder_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UserError, match="could not be written"):
        write_json(tmp_path / "file" / "value.json", 1)
    assert (tmp_path / "file").read_text() == "in the way"
    with pytest.raises(UserError, match=r"value\.json is damaged"):
        read_json(tmp_path / "file" / "value.json", "a value")
