"""Help is there for every command, quick, and in plain letters; what the parser cannot read is told in one sentence."""

import json
import shlex
import subprocess
import sys

import pytest

from headstock import __version__
from headstock.cli import EXAMPLES, NOBODY_READS, _app
from tests.cli.conftest import Headstock


@pytest.mark.parametrize("command", EXAMPLES)
def test_every_command_explains_itself_with_an_example(headstock: Headstock, command: str) -> None:
    said = headstock(command, "--help")
    assert said.status == 0
    assert f"Example: headstock {command}" in " ".join(said.out.split())


@pytest.mark.parametrize("command", EXAMPLES)
def test_every_example_is_a_command_that_can_be_read(command: str) -> None:
    words = shlex.split(EXAMPLES[command])
    assert words[:2] == ["headstock", command]
    _app().parse_args(words[1:], exit_on_error=False, print_error=False)


def test_help_imports_nothing_that_takes_long() -> None:
    program = (
        "import sys, json; from headstock.cli import main, EXAMPLES\n"
        "statuses = [main(['--help']), *(main([command, '--help']) for command in EXAMPLES), main(['--version'])]\n"
        "heavy = {'torch', 'numpy', 'pydantic', 'scipy', 'matplotlib', 'jinja2', 'tokenizers', 'safetensors'}\n"
        "print(json.dumps([statuses, sorted(heavy & set(sys.modules))]), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    statuses, imported = json.loads(done.stderr)
    assert set(statuses) == {0}
    assert imported == []
    assert "\x1b" not in done.stdout


def test_the_version_is_the_packages(headstock: Headstock) -> None:
    assert headstock("--version").out.strip() == __version__


def test_without_a_command_help_is_shown(headstock: Headstock) -> None:
    said = headstock()
    assert said.status == 0
    assert "Usage: headstock" in said.out


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ("compar softmax", "there is no command 'compar': did you mean 'compare'?"),
        ("--verison", "there is no option '--verison': did you mean '--version'?"),
        ("compare softmax uniform --sed 3", "headstock compare has no option --sed: did you mean '--seeds'?"),
        ("compare softmax uniform --sed=3", "has no option --sed: did you mean '--seeds'?"),
        ("compare softmax uniform --budget quik", "--budget cannot be 'quik': did you mean 'quick'?"),
        ("compare softmax uniform --match parms", "--match cannot be 'parms': did you mean 'params'?"),
        ("compare softmax uniform --seeds many", "--seeds cannot be 'many': give a whole number."),
        ("compare softmax uniform --seeds 1.5", "--seeds cannot be '1.5': give a whole number."),
        ("compare softmax uniform --steps 1e3", "--steps cannot be '1e3': give a whole number."),
        ("compare softmax uniform --seeds 99999999999999999999", "give a whole number."),
        ("compare softmax uniform --lr fast", "--lr cannot be 'fast': give a number."),
        ("compare softmax uniform --seeds", "--seeds needs a value: see headstock compare --help."),
        ("compare softmax uniform --seeds 3 --seeds 4", "--seeds is given twice: give it once."),
        ("compare softmax uniform --fresh=perhaps", "--fresh cannot be 'perhaps'"),
        ("show", "headstock show needs TASK: see headstock show --help."),
        ("eval", "headstock eval needs DIR"),
        ("show crossing text", "headstock show has no use for 'text'"),
        ("list variant", "WHAT cannot be 'variant': did you mean 'variants'?"),
        ("doctor now", "headstock doctor has no use for 'now'"),
        ("train softmax --task text --task crossing", "--task is given twice"),
        ("eval runs/x --split test", "--split cannot be 'test': choose one of held-out, train."),
    ],
)
def test_what_cannot_be_read_is_told_in_one_sentence(headstock: Headstock, words: str, part: str) -> None:
    assert part in headstock(*words.split()).complaint


def test_a_closed_pipe_is_silent() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "headstock", "list"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == NOBODY_READS
