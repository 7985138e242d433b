"""Whether a study is well written, said before anything of it is run: its author may be writing it just now."""

import math
import re
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

from headstock.errors import UserError, near_name
from headstock.studies.base import Claim, Effort, Row, Study
from headstock.studies.figures import Ours
from headstock.studies.runs import TRAINED

MOST_SEEDS = 10_000

LISTS: Mapping[str, type] = {
    "rows": Row,
    "claims": Claim,
    "figures": str,
    "choices": str,
    "remarks": str,
    "spread_of": str,
}
"""The fields of a study that hold several of a kind."""


def refuse_badly_written(study: Study) -> None:
    """Raise UserError for a study that contradicts itself or holds something of another kind than it should."""
    _refuse_other_kinds(study)
    names = [row.name for row in study.rows]
    if not names:
        raise UserError(f"{study.name} has no rows: give it one.")
    for what, name in [("study", study.name), *(("row", name) for name in names)]:
        if not re.fullmatch(r"[A-Za-z0-9]+(-[A-Za-z0-9]+)*", name):
            raise UserError(f"a {what} is named {name!r}: use letters, digits and single hyphens.")
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UserError(f"{study.name} has two rows named {twice}: rename one.")
    for row in study.rows:
        _refuse_row(study, row)
    for budget, effort in study.efforts.items():
        _refuse_effort(f"{study.name}, budget {budget}", effort)
    if study.spread is not None and not 0 < study.spread < 1:
        raise UserError(f"{study.name} assumes a spread of {study.spread}: give a share of a figure, such as 0.01.")
    if not 0 <= study.spread_alike < 1 or (study.spread_alike and study.spread is None):
        raise UserError(
            f"{study.name} assumes a spread_alike of {study.spread_alike} beside a spread of {study.spread}: give "
            f"shares of a figure, such as 0.01, and no spread_alike without a spread."
        )
    for claim in study.claims:
        _refuse_claim(study, claim)
    _refuse_unknown_rows(study, names)
    _refuse_unknown_figures(study)


def _refuse_other_kinds(study: Study) -> None:
    for field, kind in LISTS.items():
        held = getattr(study, field)
        if isinstance(held, str) or not isinstance(held, Sequence):
            raise UserError(
                f"{study.name}: {field} is one {type(held).__name__} and no tuple: put a comma after it, as in (…,)."
            )
        for odd in (one for one in held if not isinstance(one, kind)):
            raise UserError(f"{study.name}: {odd!r} is among its {field}: give {kind.__name__} alone.")
    for odd in (effort for effort in study.efforts.values() if not isinstance(effort, Effort)):
        raise UserError(f"{study.name}: {odd!r} is among its efforts: give Effort(seeds, ...) for each budget.")


def _refuse_row(study: Study, row: Row) -> None:
    where = f"{study.name}: the row {row.name}"
    if not row.variant and row.measure is None:
        raise UserError(f"{where} has neither a variant nor a measure: give it one.")
    if row.variant and not (row.task or study.task):
        raise UserError(f"{where} is trained on no task: give it or the study one.")
    if row.settings and not row.variant:
        raise UserError(f"{where} has settings and trains nothing that reads them: give it a variant, or none.")
    if not (_is_number(row.steps_share) and 0 < row.steps_share < math.inf):
        raise UserError(f"{where} trains {row.steps_share} of the steps: give a share above 0, such as 0.5.")
    for name, said in row.published.items():
        if not isinstance(said, str):
            raise UserError(f"{where} has {name} published as {said!r}: write it as it was printed, {str(said)!r}.")


def _refuse_effort(where: str, effort: Effort) -> None:
    for what, seeds in [("it", effort.seeds), *effort.seeds_of.items()]:
        if not isinstance(seeds, int) or isinstance(seeds, bool) or not 1 <= seeds <= MOST_SEEDS:
            raise UserError(f"{where} gives {what} {seeds!r} seeds: give a whole number from 1 to {MOST_SEEDS:,}.")


def _refuse_claim(study: Study, claim: Claim) -> None:
    where = f"{study.name}: the claim {claim.says!r}"
    if not isinstance(claim.ours, Ours):
        raise UserError(f"{where} has {claim.ours!r} as ours: make it of figure(row, name).")
    published: Any = claim.published
    if not (published is None or isinstance(published, str)):
        raise UserError(f"{where} was published as {published!r}: write it as it was printed, {str(published)!r}.")
    ends = (claim.at_least, claim.at_most)
    if not all(map(_is_number, ends)) or not claim.at_least <= claim.at_most or not any(map(math.isfinite, ends)):
        raise UserError(f"{where} has no band: give it at_least, at_most or both, as numbers in that order.")


def _refuse_unknown_rows(study: Study, names: Sequence[str]) -> None:
    read: Mapping[str, str] = {row: f"claim {c.says!r}" for c in study.claims for row, _ in c.ours.reads()}
    asked = {
        row: f"budget {budget}" for budget, effort in study.efforts.items() for row in (*effort.rows, *effort.seeds_of)
    }
    for row, where in {**read, **asked}.items():
        if row not in names:
            raise UserError(
                f"{study.name}: the {where} names a row {row!r}, which there is not: {near_name(row, names)}"
            )


def _refuse_unknown_figures(study: Study) -> None:
    """Raise UserError for a figure that no training gives, of a row that measures nothing beside."""
    unmeasured = {row.name for row in study.rows if row.measure is None}
    for claim in study.claims:
        for row, name in sorted(claim.ours.reads()):
            if row in unmeasured and name not in TRAINED:
                raise UserError(
                    f"{study.name}: the claim {claim.says!r} reads {name!r} of {row}, which has the figures of its "
                    f"training alone: {near_name(name, TRAINED)}"
                )


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
