"""The vocabulary of a compiled model without the model: what a program's tokens and values are called, id by id.

Which values an output can have, and whether a start token is needed, follows from the compiler's passes; so they are
run, which takes less than a second, and what is spared are the weights and the trials.
"""

from headstock.errors import UserError
from headstock.programs.compiler.compiling import built
from headstock.programs.compiler.domain import Domain
from headstock.programs.program import Program
from headstock.programs.reading_out import Readout


def readout_for(program: Program, domain: Domain) -> Readout:
    """Give how a model of the program is read, the same as `compile` gives it.

    Raises UserError where the program cannot be compiled for the domain.
    """
    program.refuse_mode(domain.causal)
    return Readout.of(built(program.output, domain))


def refuse_numbers(program: Program, readout: Readout) -> None:
    """Raise UserError for an output that is a number in one logit, which no other token competes with."""
    if readout.numbers:
        raise UserError(
            f"{program.name} gives {len(readout.numbers):,} different numbers, which a model says as one logit and not "
            f"as a token: choose a program of fewer and whole values, or a shorter length."
        )
