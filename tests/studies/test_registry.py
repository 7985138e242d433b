"""Studies are found by name, one's own by file; what is not there is told in a sentence."""

import subprocess
import sys
from pathlib import Path

import pytest

from headstock import studies
from headstock.errors import UserError
from tests.studies.toy import STUDY

HERE = Path(__file__).parent


def test_a_study_of_ones_own_is_named_by_its_file_or_module() -> None:
    assert studies.study(f"{HERE / 'toy.py'}:STUDY").name == "toy"
    assert studies.study("tests.studies.toy:STUDY") is STUDY


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("lader", "there is no study 'lader': did you mean 'ladder'"),
        (":STUDY", "':STUDY' names no study: write FILE.py:NAME"),
        ("nowhere.py:STUDY", "there is no file nowhere.py"),
        ("nowhere_at_all:STUDY", "cannot import nowhere_at_all: No module named"),
        (f"{HERE / 'toy.py'}", "names a file and no study in it: write"),
        (f"{HERE / 'toy.py'}:STUD", "holds no study 'STUD': did you mean 'STUDY'"),
        (f"{HERE / 'test_judging.py'}:STUDY", "holds no study 'STUDY': it has no study at all"),
    ],
)
def test_what_is_no_study_is_told_in_a_sentence(name: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        studies.study(name)


@pytest.mark.parametrize("relative", [False, True])
def test_a_file_that_fails_is_told_with_its_line(
    relative: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.py").write_text("x = 1\nraise ValueError('not today')\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=r"mine\.py cannot be imported at line 2: ValueError: not today"):
        studies.study(f"{'.' if relative else tmp_path}/mine.py:STUDY")


def test_naming_the_studies_imports_nothing_heavy() -> None:
    code = "import sys; from headstock import studies; studies.study_names(); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
