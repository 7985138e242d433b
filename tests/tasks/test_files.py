from pathlib import Path

import pytest

from headstock.tasks.files import cache_folder, remembered


def test_the_cache_lies_where_the_user_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADSTOCK_CACHE", "/some/where")
    assert cache_folder() == Path("/some/where")


@pytest.mark.parametrize(
    ("xdg", "folder"),
    [("/x/cache", "/x/cache/headstock"), ("relative", "/h/.cache/headstock"), ("", "/h/.cache/headstock")],
)
def test_the_cache_follows_the_xdg_rule_otherwise(monkeypatch: pytest.MonkeyPatch, xdg: str, folder: str) -> None:
    monkeypatch.delenv("HEADSTOCK_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", xdg)
    monkeypatch.setenv("HOME", "/h")
    assert cache_folder() == Path(folder)


def test_what_is_remembered_is_made_once_and_made_again_when_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADSTOCK_CACHE", str(tmp_path))
    made = []

    def make() -> bytes:
        made.append(1)
        return b"first line\nsecond"

    assert remembered("a/b", make) == remembered("a/b", make) == b"first line\nsecond"
    assert len(made) == 1
    entry = tmp_path / "a" / "b"
    whole = entry.read_bytes()
    for damaged in (whole[:-1], whole.replace(b"second", b"Second"), b""):
        entry.write_bytes(damaged)
        assert remembered("a/b", make) == b"first line\nsecond"
        assert entry.read_bytes() == whole
    assert len(made) == 4


def test_a_cache_that_cannot_be_written_costs_no_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("HEADSTOCK_CACHE", str(tmp_path / "file"))
    assert remembered("entry", lambda: b"made") == b"made"
