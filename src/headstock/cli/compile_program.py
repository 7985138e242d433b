"""`headstock compile`: make a program into a model whose weights compute it exactly, or refuse."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from headstock.cli.advice import advice_in_options
from headstock.cli.layout import print_json, results_alone
from headstock.cli.options import AsJson, Flag, Whole
from headstock.errors import UserError

if TYPE_CHECKING:
    from headstock.programs.compiled import Compiled


def compile_program(
    program: Annotated[
        str, Parameter(name="PROGRAM", help="A name of `headstock list programs`, such as shift,by=2, or FILE.py:NAME.")
    ],
    /,
    *,
    out: Annotated[Path, Parameter(name=["--out", "-o"], help="Folder for the model, new or its own from before.")],
    vocab: Annotated[
        str | None,
        Parameter(
            help="What it may be given: abcd is four characters, 1,2,3 whole numbers, red,green words [default: the "
            "program's own]."
        ),
    ] = None,
    max_length: Annotated[Whole | None, Parameter(help="The most tokens [default: the program's own].")] = None,
    causal: Annotated[bool, Flag, Parameter(help="A position sees itself and what stands before it.")] = False,
    bidirectional: Annotated[bool, Flag, Parameter(help="A position sees all of the sequence.")] = False,
    dtype: Annotated[
        Literal["float32", "float64", "bfloat16", "float16"], Parameter(help="The numbers to be exact in.")
    ] = "float32",
    prove: Annotated[
        Literal["margins", "exhaustive"],
        Parameter(help="exhaustive compares every sequence, however long that takes."),
    ] = "margins",
    as_json: AsJson = False,
) -> int:
    """Compile a program into a model, and print what was proved of it and how large it is.

    What cannot be proved is refused, with the line that is in the way.
    """
    from headstock.programs.compiled import compile
    from headstock.programs.named import program_named

    if causal and bidirectional:
        raise UserError("--causal and --bidirectional are two modes: give one of them.")
    _refuse_file(out)
    with results_alone():
        made = program_named(program)
        tokens = None if vocab is None else vocabulary_of(vocab)
        with advice_in_options():
            compiled = compile(
                made,
                vocab=tokens,
                max_length=max_length,
                causal=True if causal else False if bidirectional else None,
                dtype=dtype,
                prove=prove,
            )
    is_there = _refuse_others(out, compiled)
    if not is_there:
        compiled.save(out)
    if as_json:
        print_json(_as_values(compiled, out))
    else:
        print(f"{compiled.certificate}\n\n{compiled.size().table()}\n")
        print(f"{'It is there already' if is_there else 'Saved'}: {out}")
    return 0


def vocabulary_of(written: str) -> list[str | int]:
    """Give the tokens that --vocab writes. Raises UserError for an empty one."""
    from headstock.programs.typed import typed_vocabulary

    tokens = typed_vocabulary(written)
    if tokens is None:
        raise UserError(
            f"--vocab {written!r} has an empty word: write words by commas, as in 1,2,3, and no comma among "
            f"characters; a program in a file can declare any vocabulary of its own."
        )
    return tokens


def _refuse_file(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder} is a file: choose a folder for the model.")


def _refuse_others(folder: Path, compiled: "Compiled") -> bool:
    """Say whether this very model is there already. Raises UserError where anything else is."""
    from headstock.checkpoints.files import is_left_behind
    from headstock.programs.saving.saved import load
    from headstock.programs.saving.vocabulary import holds_program

    if not folder.is_dir() or all(is_left_behind(path) for path in folder.iterdir()):
        return False
    if not holds_program(folder):
        raise UserError(f"{folder} holds something else: choose another folder, or empty this one first.")
    held = load(folder)
    if held.record != compiled.record:
        raise UserError(
            f"{folder} holds {held.record.program} compiled otherwise or from other lines: choose another folder, or "
            f"delete this one first."
        )
    if not held.is_certified:
        raise UserError(
            f"{folder} holds this program with weights that were changed since: choose another folder, or delete this "
            f"one first."
        )
    return True


def _as_values(compiled: "Compiled", folder: Path) -> dict[str, Any]:
    certificate, domain = compiled.certificate, compiled.domain
    margin = certificate.smallest_margin
    return {
        "program": compiled.program.name,
        "folder": str(folder),
        "domain": {
            "vocabulary": list(domain.vocabulary),
            "max_length": domain.max_length,
            "causal": domain.causal,
            "dtype": domain.dtype,
        },
        "certificate": {
            "decisions": len(certificate.decisions),
            "largest_error": certificate.largest_error,
            "smallest_margin": None if margin == float("inf") else margin,
            "tightest": certificate.tightest,
            "exhaustive": certificate.exhaustive,
            "compared": certificate.compared,
            "trials": certificate.trials,
            "measured_error": certificate.measured_error,
        },
        "size": asdict(compiled.size()),
    }
