"""Linear functions: no units and no column of their own, for whatever reads one reads the sum that it is."""

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from headstock.programs.compiler.combining import Combining, Rows
from headstock.programs.compiler.quantities import Affine, Form
from headstock.programs.nodes import Expression, Map
from headstock.programs.values import Value

if TYPE_CHECKING:
    from headstock.programs.compiler.lower import Lowering


def linear(
    lowering: "Lowering", combining: Combining, node: Map, parts: tuple[Expression, ...], *, exact: bool
) -> Form | None:
    """Give a function as a sum of its parts; None where it is none, or a part has no form that will do."""
    codes = lowering.codes(node)
    if hasattr(node.function, "weights"):
        return _weighted(lowering, node, node.function.weights, codes, exact=exact)
    candidates: list[dict[Value, Fraction]] = [lowering.book.codes(lowering.values[part]) for part in parts]
    rows = [
        (tuple(codes_of[value] for codes_of, value in zip(candidates, given, strict=True)), codes[target])
        for given, target in combining.combinations(node, parts)
    ]
    weights = _solved(rows)
    if weights is None:
        return None
    affine = Affine({}, weights[-1])
    for weight, part, expected in zip(weights, parts, candidates, strict=False):
        if not weight:
            continue
        form = lowering.exact_form(part) if exact else lowering.form(part)
        if form is None or dict(form.codes) != expected:
            return None
        affine = affine.plus(form.affine.times(weight))
    return lowering.as_form(affine, codes)


def _weighted(
    lowering: "Lowering", node: Map, weights: tuple[Any, ...], codes: dict[Value, Fraction], *, exact: bool
) -> Form | None:
    """Give a sum whose weights are known, of however many parts."""
    affine = Affine()
    for weight, part in zip(weights, node.arguments, strict=True):
        form = lowering.exact_form(part) if exact else lowering.form(part)
        if form is None or any(value != code for value, code in form.codes.items()):
            return None
        affine = affine.plus(form.affine.times(Fraction(weight)))
    return lowering.as_form(affine, codes)


def _solved(rows: Rows) -> tuple[Fraction, ...] | None:
    """Give the weights and the constant of a linear function, exactly; None where it is not linear."""
    if not rows:
        return None
    count = len(rows[0][0])
    few = rows[:: max(1, len(rows) // 200)]
    matrix = np.array([[*map(float, given), 1.0] for given, _ in few])
    found = np.linalg.lstsq(matrix, np.array([float(target) for _, target in few]), rcond=None)[0]
    weights = tuple(Fraction(float(number)).limit_denominator(10_000) for number in found)
    assert len(weights) == count + 1
    for given, target in rows:
        total = sum((w * x for w, x in zip(weights, given, strict=False)), weights[-1])
        if total != target:
            return None
    return weights
