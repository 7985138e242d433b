"""A program as a model: compiled, certified, and still knowing what each of its numbers means."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor

from headstock.errors import UserError
from headstock.model.transformer import Transformer
from headstock.programs.blueprint import Blueprint
from headstock.programs.compiler.certificate import Certificate
from headstock.programs.compiler.compiling import Built, built
from headstock.programs.compiler.domain import Domain
from headstock.programs.compiler.embedding import read_instead
from headstock.programs.compiler.quantities import Affine, Form
from headstock.programs.compiler.trying import certified
from headstock.programs.nodes import Expression
from headstock.programs.program import CAUSAL, Program, as_program
from headstock.programs.reading_out import Readout, refuse_dtype
from headstock.programs.values import Value

if TYPE_CHECKING:
    from headstock.programs.back_to_code import Lookup, Machine, WholeLookup
    from headstock.programs.explaining.explanation import Explanation
    from headstock.programs.saving.record import Record
    from headstock.programs.size import SizeReport


@dataclass(frozen=True)
class FoundNumbers:
    """What a model holds for one expression."""

    node: Expression
    """In its simple form, which the compiler gave heads and units to."""
    form: Form
    held: list[Tensor]
    """For each sequence float64 (position,): the code, as the model has it."""


@dataclass(eq=False, repr=False)
class Compiled:
    """A model whose weights compute a program, and what is known of it. Made by `compile`.

    c("dab") gives the program's values as the model computes them; c.model is a headstock Transformer like any other.
    """

    program: Program
    built: Built
    model: Transformer
    readout: Readout
    certificate: Certificate = field(init=False)

    def __repr__(self) -> str:
        return f"<Compiled {self.certificate}>"

    @property
    def domain(self) -> Domain:
        """What it may be given."""
        return self.built.domain

    @property
    def blueprint(self) -> Blueprint:
        """Its weights by name, to look at or to build upon."""
        return self.built.blueprint

    def __call__(self, sequence: str | Sequence[Any]) -> list[Value]:
        """Give the program's value at every position, as the model computes it.

        Raises UserError for a sequence outside the domain: a token it does not know, or too many of them.
        """
        return self.batch([sequence])[0]

    def batch(self, sequences: Sequence[str | Sequence[Any]]) -> list[list[Value]]:
        """Give the values of several sequences, of whatever lengths, read together."""
        refuse_dtype(self.program.name, self.domain, self.model)
        return self.readout.values_of(self.model, sequences)

    @cached_property
    def record(self) -> "Record":
        """All that is known of it besides its weights, as it was compiled."""
        from headstock.programs.saving.record import record_of

        return record_of(self)

    @property
    def is_certified(self) -> bool:
        """Whether its weights are still the very ones that were certified, and not trained since."""
        return self.record.is_certified(self.model)

    def explain(self, sequence: str | Sequence[Any]) -> "Explanation":
        """Explain one run: for each expression the program's value beside the model's, every head's weights, and which
        line each head, unit and column belongs to; of a model that was trained, what has moved.

        Raises UserError for a sequence outside the domain.
        """
        from headstock.programs.explaining.explaining import explained

        certified_weights = None if self.is_certified else self.blueprint.build(self.domain.torch_dtype).state_dict()
        return explained(self.record, self.model, sequence, program=self.program.output, certified=certified_weights)

    def size(self) -> "SizeReport":
        """Measure it: width, layers, heads, units, parameters, non-zeros, operations a token."""
        from headstock.programs.size import size_of

        return size_of(self.model, self.record.anatomy)

    def back_to_code(self, **choices: Any) -> "Machine | Lookup | WholeLookup":
        """Give the smallest machine or look-up that says what the model says at the last position, as code.

        choices: those of `back_to_code.extract`; alphabet, names and start token are the program's own. Raises
        UserError where an output is a number, and as `extract` does.
        """
        from headstock.programs.back_to_code import extract

        if self.readout.numbers:
            raise UserError(
                f"{self.program.name} is read as a number and not as a token: give it fewer values, all of them whole, "
                f"or make words of them by p.map(str, ...)."
            )
        alphabet = range(len(self.domain.vocabulary))
        return extract(
            self.model, alphabet=list(alphabet), names=list(self.readout.names), start=self.readout.start, **choices
        )

    def save(self, folder: str | Path) -> None:
        """Write it into a folder, made if need be: model, vocabulary, program text and certificate.

        `headstock.load` gives its model back, `programs.load` all that a file can hold of it. Raises UserError where
        the folder cannot be written.
        """
        from headstock.programs.saving.saved import save

        save(self.record, self.model, folder)

    def numbers(self, sequences: Sequence[str | Sequence[Any]]) -> Iterator[FoundNumbers]:
        """Give what the model holds for each expression, at the first moment that all of it is there."""
        read = self.readout.read(sequences)
        ids, real = self.readout.ids_of(read)
        schedule, skipped = self.built.schedule, int(self.readout.start is not None)
        residuals = self._residuals(ids, real)
        alive = set(schedule.quantities)
        for (node, _), form in self.built.lowering.forms.items():
            if form is None or not form.affine.time:
                continue  # held by the embedding, as it is written there
            affine = read_instead(form.affine, self.built.instead)
            if not set(affine.terms) <= alive:
                continue  # not needed after all
            held_bq = self._read(affine, residuals[affine.time])[:, skipped:]
            yield FoundNumbers(node, form, [held_q[: len(row)] for held_q, row in zip(held_bq, read, strict=True)])

    def _residuals(self, ids_bq: Tensor, real_bq: Tensor | None) -> dict[int, Tensor]:
        """Give the residual (batch, position, column) after each half-layer, from 1."""
        names = {}
        for layer in range(len(self.model.blocks)):
            after = f"blocks.{layer}.hook_resid_post"
            between = f"blocks.{layer}.hook_resid_mid"
            names[2 * layer + 1] = between if between in self.model.hook_names() else after
            names[2 * layer + 2] = after
        if not names:
            return {}
        with torch.no_grad():
            _, cache = self.model.run_with_cache(ids_bq, names=list(names.values()), real=real_bq)
        return {time: cache[name] for time, name in names.items()}

    def _read(self, affine: Affine, residual_bqm: Tensor) -> Tensor:
        total = torch.full(residual_bqm.shape[:2], float(affine.constant), dtype=torch.float64)
        for quantity, weight in affine.terms.items():
            column = self.built.allocation.column_of[quantity]
            total += float(weight) * residual_bqm[..., column].double()
        return total


def compile(
    program: Any,
    *,
    vocab: Any = None,
    max_length: int | None = None,
    causal: bool | None = None,
    dtype: Literal["float32", "float64", "bfloat16", "float16"] = "float32",
    prove: Literal["margins", "exhaustive"] = "margins",
) -> Compiled:
    """Compile a program into a model whose weights compute it exactly, or refuse.

    program: an expression, a Program, or a function that makes one: `p.zoo.sort`.
    vocab: the tokens that it may be given, a string or a list of words or whole numbers; the program's own where it
    has one. max_length: the most tokens; the program's own, or 10. causal: whether a position sees only what stands
    before it; the program's usual mode where not given.
    prove: "margins" bounds every error and tries some sequences, and all of them where that takes under half a second;
    "exhaustive" tries all, however long it takes.

    Raises UserError, with the author's line, where the program cannot be compiled for the domain with certainty.
    """
    made = as_program(program)
    causal = made.modes[0] == CAUSAL if causal is None else causal
    made.refuse_mode(causal)
    if vocab is None and not made.vocabulary:
        raise UserError(f"{made.name} can be given any tokens: say which, as in vocab='abc'.")
    if prove not in ("margins", "exhaustive"):
        raise UserError(f"prove is {prove!r}: choose 'margins' or 'exhaustive'.")
    domain = Domain.of(
        made.vocabulary if vocab is None else vocab,
        made.max_length if max_length is None else max_length,
        causal,
        dtype,
    )
    parts = built(made.output, domain)
    try:
        model = parts.blueprint.build(domain.torch_dtype)
    except UserError as error:
        raise UserError(f"{made.output.said} cannot be certified in {domain.dtype}: {error}") from None
    compiled = Compiled(made, parts, model, Readout.of(parts))
    compiled.certificate = certified(compiled, exhaustively=prove == "exhaustive")
    return compiled
