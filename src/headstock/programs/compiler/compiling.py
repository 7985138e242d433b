"""The compiler, pass by pass: what a person wrote becomes a blueprint, or is refused with the line in the way."""

from dataclasses import dataclass, replace
from functools import lru_cache

from headstock.programs.blueprint import Blueprint
from headstock.programs.compiler.allocate import Allocation, allocated
from headstock.programs.compiler.domain import Domain
from headstock.programs.compiler.embedding import Instead, compacted, read_instead, rewired
from headstock.programs.compiler.emit import Outputs, emitted
from headstock.programs.compiler.infer import Values
from headstock.programs.compiler.lower import Lowering
from headstock.programs.compiler.naming import names_of
from headstock.programs.compiler.plan import Plan
from headstock.programs.compiler.quantities import Form
from headstock.programs.compiler.schedule import Schedule, scheduled
from headstock.programs.compiler.simplify import Simplifying
from headstock.programs.looking_ahead import refuse_length
from headstock.programs.nodes import Expression, too_deep


@dataclass(frozen=True)
class Built:
    """What the passes made, each of them still there to be looked at."""

    domain: Domain
    lowering: Lowering
    output: Form
    instead: Instead
    plan: Plan
    schedule: Schedule
    allocation: Allocation
    blueprint: Blueprint
    outputs: Outputs


@lru_cache(maxsize=4)
def built(program: Expression, domain: Domain) -> Built:
    """Compile an expression for a domain. Raises UserError, with the author's line, where that cannot be exact.

    What was made last is kept: a task of a program reads its vocabulary off what its compiled model is then made of.
    """
    try:
        return _built(program, domain)
    except RecursionError:
        raise too_deep(program) from None


def _built(program: Expression, domain: Domain) -> Built:
    if domain.causal:
        refuse_length(program)
    values = Values(domain)
    simplify = Simplifying(values, names_of(program))
    output = simplify(program)  # what is left is positions, tokens, functions, counts and choices
    lowering = Lowering(simplify, output)
    form = lowering.form(output)  # heads and units, with a bound on every error
    plan = lowering.plan
    instead = compacted(scheduled(plan, form.affine), domain)
    rewired(plan, instead)
    output_form = replace(form, affine=read_instead(form.affine, instead))
    schedule = scheduled(plan, output_form.affine)
    allocation = allocated(schedule, domain)
    blueprint, outputs = emitted(plan, schedule, allocation, output_form, domain, program.said)
    return Built(domain, lowering, form, instead, plan, schedule, allocation, blueprint, outputs)
