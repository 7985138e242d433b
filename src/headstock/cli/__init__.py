"""The `headstock` command: one file a command, each thin.

Nothing here imports torch, numpy or pydantic before a command runs, so that --help is quick. Exit statuses: 0 done;
1 done, and what was found is no success (a failed run, a failed check); 2 bad input, told in one sentence on standard
error; 130 stopped by Ctrl-C; 141 nobody reads what is printed.
"""

import os
import sys
from collections.abc import Callable, Sequence
from io import TextIOWrapper

from cyclopts import App, CycloptsError

from headstock import __version__
from headstock.cli.catalogue import list_what_there_is
from headstock.cli.check import check
from headstock.cli.compare import compare
from headstock.cli.compile_program import compile_program
from headstock.cli.complaints import sentence, unwritable
from headstock.cli.cost import cost
from headstock.cli.diagnose import doctor
from headstock.cli.evaluate import evaluate
from headstock.cli.generate import generate
from headstock.cli.inspect import inspect
from headstock.cli.options import invocation
from headstock.cli.run_program import run_program
from headstock.cli.runs import runs
from headstock.cli.show import show
from headstock.cli.study import study
from headstock.cli.train import train
from headstock.errors import UserError

BAD_INPUT = 2
STOPPED = 130
NOBODY_READS = 141

EXAMPLES = {
    "compare": "headstock compare softmax differential uniform --task text",
    "study": "headstock study ladder --budget quick",
    "train": "headstock train differential+rope --task text,context=128 --set d_model=128 --out runs/mine",
    "eval": "headstock eval runs/mine --split held-out",
    "generate": 'headstock generate runs/mine "The yield statement" --tokens 40 --temperature 0.8',
    "inspect": 'headstock inspect runs/mine "The yield statement" -o maps.html',
    "compile": "headstock compile sort --vocab abcd --max-length 20 -o compiled/sort",
    "run": "headstock run compiled/sort dab",
    "check": "headstock check softmax+rope",
    "cost": "headstock cost softmax differential linear --lengths 256,512,1024",
    "list": "headstock list variants",
    "show": "headstock show text,corpus=python-docs",
    "runs": "headstock runs runs",
    "doctor": "headstock doctor",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, `sys.argv`'s where none is given; give the exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a λ is no reason to fail where the terminal knows none
    invocation.set(words)
    try:
        status = _app()(words, exit_on_error=False, print_error=False)
        sys.stdout.flush()
        return int(status or 0)
    except CycloptsError as error:
        return _complain(sentence(error))
    except UserError as error:
        return _complain(str(error))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python complains when it ends
        return NOBODY_READS
    except OSError as error:
        return _complain(unwritable(error))
    except KeyboardInterrupt:
        _complain(_stopped(words))
        return STOPPED


def _app() -> App:
    app = App(
        name="headstock",
        help="A workbench for transformer attention: train, compare and open ways of attending.",
        help_epilogue="Begin with: headstock compare softmax differential uniform",
        version=__version__,
        result_action="return_value",
        suppress_keyboard_interrupt=False,
    )
    commands: dict[str, Callable[..., int]] = {
        "compare": compare,
        "study": study,
        "train": train,
        "eval": evaluate,
        "generate": generate,
        "inspect": inspect,
        "compile": compile_program,
        "run": run_program,
        "check": check,
        "cost": cost,
        "list": list_what_there_is,
        "show": show,
        "runs": runs,
        "doctor": doctor,
    }
    for name, command in commands.items():
        app.command(command, name=name, help_epilogue=f"Example: {EXAMPLES[name]}")
    return app


def _complain(said: str) -> int:
    """Print one sentence, on one line, to standard error."""
    print(f"headstock: {' '.join(said.split())}", file=sys.stderr)
    return BAD_INPUT


def _stopped(words: list[str]) -> str:
    if words[:1] not in (["compare"], ["study"], ["train"]) or "--dry-run" in words:
        return "stopped."
    same = "the same command without --fresh" if "--fresh" in words else "the same command"
    return f"stopped, with what is done kept: {same} goes on from here."
