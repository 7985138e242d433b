"""Every command and snippet of the README and docs/ runs as it stands, commands at miniature budgets.

A snippet whose first line is a comment with a file's name is that file. It lies where the page's commands and other
snippets run; where the repository has it already, the page shows what it says.

What a page shows after `>>>`, in a block of `pycon`, is what Python answers. Lines below a command are what it prints,
of which "..." stands for any lines.

The README's two set-up commands are left to .ci/run: they make an environment of their own.
"""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
SHAKESPEARE = next(
    (
        str(place)
        for place in (os.environ.get("HEADSTOCK_DATA", ""), ROOT / ".." / "shared" / "data")
        if place and Path(place, "tinyshakespeare.txt").exists()
    ),
    None,
)
LEFT_TO_CI = ("make ",)
FILE = re.compile(r"# (\S+\.py)\n+(.*)", re.DOTALL)
MINIATURE = {
    ("headstock", "compare"): ["--steps", "3", "--seeds", "2"],
    ("headstock", "study"): ["--steps", "3", "--seeds", "2"],
    ("headstock", "train"): ["--steps", "3"],
    ("headstock", "cost"): ["--lengths", "8,16,24", "--seconds", "0.1", "--set", "d_model=16"],
    ("python", "benchmarks/training.py"): ["--turns", "1", "--steps", "1"],
    ("python", "benchmarks/verdicts.py"): ["--families", "20"],
    ("python", "benchmarks/hooks.py"): ["--turns", "3"],
    ("python", "benchmarks/initialisation.py"): ["--seeds", "1", "--steps", "3"],
    ("python", "benchmarks/pooled_seeds.py"): ["--draws", "20"],
    ("python", "benchmarks/recall.py"): ["--seeds", "1", "--steps", "3"],
    ("python", "benchmarks/differential.py"): ["--turns", "2", "--repeats", "1"],
    ("python", "benchmarks/programs.py"): ["--lengths", "5", "--turns", "1"],
    ("python", "examples/encoder_decoder.py"): ["--steps", "3"],
}
"""Options put behind a command, replacing its own of the same name."""


def _blocks(page: Path, language: str) -> list[str]:
    text = page.read_text(encoding="utf-8")
    found = re.findall(rf"^( *)```{language}\n(.*?)^ *```$", text, re.MULTILINE | re.DOTALL)
    return [re.sub(rf"^{indent}", "", block, flags=re.MULTILINE) for indent, block in found]


def _snippets(page: Path) -> list[str]:
    return [block for block in _blocks(page, "python") if not FILE.match(block)]


def _files(page: Path) -> dict[str, str]:
    return {found[1]: found[2] for block in _blocks(page, "python") if (found := FILE.match(block))}


def _lay_out(page: Path, folder: Path) -> None:
    """Put what a page speaks of into a folder: the repository's programs, and the page's own files."""
    for name in ("benchmarks", "examples"):
        if (ROOT / name).is_dir():
            (folder / name).symlink_to(ROOT / name)
    for name, text in _files(page).items():
        if not (ROOT / name).exists():
            (folder / name).write_text(f"# {name}\n{text}", encoding="utf-8")  # lines counted as the page counts them


def _commands(page: Path) -> list[tuple[str, str]]:
    """Give each command of a page, and what the page shows it to print, which may be nothing."""
    found: list[tuple[str, list[str]]] = []
    for block in _blocks(page, "console"):
        for line in block.replace("\\\n", " ").splitlines():
            if line.startswith("$ "):
                found.append((line.removeprefix("$ "), []))
            else:
                found[-1][1].append(line)
    return [(command, "\n".join(shown).strip("\n")) for command, shown in found]


def _prints(printed: str, shown: str) -> bool:
    """Whether what is shown stands in what was printed, its parts in this order."""
    at = 0
    for part in re.split(r"^ *\.\.\.\n?", shown, flags=re.MULTILINE):
        at = printed.find(part.strip("\n"), at)
        if at < 0:
            return False
        at += len(part.strip("\n"))
    return True


def _in_miniature(command: str) -> list[str]:
    words = shlex.split(command, comments=True)
    small = MINIATURE.get((words[0], words[1] if len(words) > 1 else ""), [])
    for option, value in zip(small[::2], small[1::2], strict=True):
        if option in words:
            words[words.index(option) + 1] = value
        else:
            words += [option, value]
    return words


def _name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def _environment() -> dict[str, str]:
    beside_python = str(Path(sys.executable).parent)
    data = {"HEADSTOCK_DATA": SHAKESPEARE} if SHAKESPEARE else {}
    return {**os.environ, **data, "PATH": f"{beside_python}{os.pathsep}{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_the_snippets_of_a_page_run_one_after_the_other(page, tmp_path):
    snippets = _snippets(page)
    if not snippets:
        pytest.skip("the page has no Python in it")
    _lay_out(page, tmp_path)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", "\n".join(snippets)],
        cwd=tmp_path,
        env=_environment(),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_the_commands_of_a_page_run_one_after_the_other(page, tmp_path):
    commands = [(command, shown) for command, shown in _commands(page) if not command.startswith(LEFT_TO_CI)]
    if not commands:
        pytest.skip("the page has no commands but those of .ci/run")
    if any("shakespeare" in command for command, _ in commands) and SHAKESPEARE is None:
        pytest.skip("tinyshakespeare.txt is not here: set HEADSTOCK_DATA to its folder")
    _lay_out(page, tmp_path)
    for command, shown in commands:
        done = subprocess.run(
            _in_miniature(command), cwd=tmp_path, env=_environment(), capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        assert _prints(done.stdout, shown), f"{command}\n{done.stdout}"


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_what_is_typed_at_a_prompt_answers_as_it_is_shown(page, tmp_path):
    typed = _blocks(page, "pycon")
    if not typed:
        pytest.skip("the page types nothing at a prompt")
    _lay_out(page, tmp_path)
    (tmp_path / "typed.txt").write_text("\n".join(typed), encoding="utf-8")
    done = subprocess.run(
        [
            sys.executable,
            "-W",
            "error",
            "-m",
            "doctest",
            *("-o", "ELLIPSIS"),
            *("-o", "NORMALIZE_WHITESPACE"),
            "typed.txt",
        ],
        cwd=tmp_path,
        env=_environment(),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_a_file_of_the_repository_is_shown_as_it_is(page):
    shown = {name: text for name, text in _files(page).items() if (ROOT / name).exists()}
    assert not [name for name, text in shown.items() if text not in (ROOT / name).read_text(encoding="utf-8")]


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_every_link_to_a_file_leads_to_one(page):
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8"))
    missing = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert not missing
