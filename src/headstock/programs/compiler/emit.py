"""The plan as a blueprint: columns with names, layers of heads and units, an embedding, and logits to read it by."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from headstock.errors import UserError
from headstock.programs.blueprint import Blueprint, Head, Layer, Reading, Unit
from headstock.programs.compiler.allocate import Allocation
from headstock.programs.compiler.domain import Domain
from headstock.programs.compiler.plan import Decision, Plan
from headstock.programs.compiler.quantities import Affine, Form, Quantity
from headstock.programs.compiler.schedule import Schedule
from headstock.programs.values import Value, is_number, shown

START = "<start>"
NUMBER = "<number>"
MOST_CLASSES = 1_000
"""Different values of an output that get a token each; of more numbers, one logit is the number."""
SURE = 16
"""How far the logit of the right token lies above the others, at least: a probability of all but 1 in ten million."""


@dataclass(frozen=True)
class Outputs:
    """How the model's logits are read."""

    kind: Literal["tokens", "number"]
    """The likeliest token names the value; or the logit of the last token is the number."""
    names: tuple[str, ...]
    """What each token id is shown as."""
    of_id: Mapping[int, Value]
    """The value that each token id stands for as an output."""
    numbers: tuple[Value, ...]
    """For a number: all that it can be, in order."""


def emitted(
    plan: Plan, schedule: Schedule, allocation: Allocation, form: Form, domain: Domain, said: str
) -> tuple[Blueprint, Outputs]:
    """Write the model down. Raises UserError where the output's values cannot be told apart."""
    names = column_names(allocation)
    place = {quantity: names[column] for quantity, column in allocation.column_of.items()}
    outputs, logits = _logits(form, place, domain, plan, said)
    start = plan.start
    marks = dict.fromkeys([place[start]], 1.0) if start is not None and start in place else {}
    tokens: list[dict[str, float]] = [
        {
            place[quantity]: float(quantity.of_token[token])
            for quantity in schedule.quantities
            if quantity.of_token is not None and quantity.of_token[token]
        }
        for token in domain.vocabulary
    ]
    if start is not None:
        tokens.append(marks)
    tokens += [{} for _ in range(len(outputs.names) - len(tokens))]
    layers = tuple(_layer(layer, plan, schedule, allocation, place) for layer in range(1, schedule.n_layers + 1))
    blueprint = Blueprint(
        columns=names,
        vocabulary=outputs.names,
        context=domain.max_length + (start is not None),
        tokens=tuple(tokens),
        places=_places(schedule, place, domain, with_start=start is not None),
        layers=layers,
        logits=logits,
        causal=domain.causal,
    )
    return blueprint, outputs


def column_names(allocation: Allocation) -> tuple[str, ...]:
    """Name each column after what stands in it, one after the other; two of a name are numbered."""
    names: list[str] = []
    for held in allocation.holds:
        name = ", then ".join(dict.fromkeys(quantity.name for quantity in held))
        twice = 2
        unique = name
        while unique in names:
            unique = f"{name} {twice}"
            twice += 1
        names.append(unique)
    return tuple(names) if names else ("nothing",)


def _places(
    schedule: Schedule, place: Mapping[Quantity, str], domain: Domain, *, with_start: bool
) -> tuple[dict[str, float], ...] | None:
    told = [(quantity, quantity.of_index) for quantity in schedule.quantities if quantity.of_index is not None]
    if not told:
        return None
    first: list[dict[str, float]] = [{}] if with_start else []
    return (
        *first,
        *(
            {place[quantity]: float(held[index]) for quantity, held in told if held[index]}
            for index in range(domain.max_length)
        ),
    )


def _reading(affine: Affine, place: Mapping[Quantity, str]) -> Reading:
    columns: dict[str, float] = {}
    for quantity, weight in affine.terms.items():
        columns[place[quantity]] = columns.get(place[quantity], 0.0) + float(weight)
    return Reading(columns, float(affine.constant))


def _layer(layer: int, plan: Plan, schedule: Schedule, allocation: Allocation, place: Mapping[Quantity, str]) -> Layer:
    heads = tuple(
        Head(
            name=f"{head.name}: {head.kind}",
            looks_for=tuple(_reading(dimension.query, place) for dimension in head.dimensions),
            offers=tuple(_reading(dimension.key, place) for dimension in head.dimensions),
            carries=tuple(_reading(read, place) for read, _ in head.carried),
            writes=tuple({place[made]: 1.0} for _, made in head.carried),
        )
        for head in schedule.heads
        if head.time == 2 * layer - 1
    )
    units = [
        Unit(
            _reading(unit.reads, place), {place[made]: float(weight) for made, weight in unit.writes.items()}, unit.name
        )
        for unit in schedule.units
        if unit.time == 2 * layer
    ]
    for old in allocation.clearing.get(2 * layer, []):
        units += _clearing(old, place[old])
    kept = set(schedule.quantities)
    adds: dict[str, float] = {}
    for made, constant in plan.adds.items():
        if made in kept and made.time == 2 * layer and constant:
            adds[place[made]] = adds.get(place[made], 0.0) + float(constant)
    return Layer(heads, tuple(units), adds)


def _clearing(old: Quantity, column: str) -> list[Unit]:
    """Take a number away: a unit for what is above 0 of it, and one for what is below."""
    lowest = min(float(old.low), float(old.start)) - old.error
    highest = max(float(old.high), float(old.start)) + old.error
    name = f"clears {old.name}"
    above = [Unit(Reading({column: 1.0}), {column: -1.0}, name)] if highest > 0 else []
    below = [Unit(Reading({column: -1.0}), {column: 1.0}, name)] if lowest < 0 else []
    return above + below


# Logits


def _logits(
    form: Form, place: Mapping[Quantity, str], domain: Domain, plan: Plan, said: str
) -> tuple[Outputs, tuple[Reading, ...]]:
    names = [shown(token) for token in domain.vocabulary]
    names += [_apart(START, names)] if plan.start is not None else []
    values = list(form.codes)
    error = form.affine.error(domain)
    whole = all(isinstance(value, int) or not is_number(value) for value in values)
    if (whole or not all(map(is_number, values))) and len(values) <= MOST_CLASSES:
        margin = _margin_of_logits(form, error, domain)
        if margin > 1 or not all(map(is_number, values)):
            if margin <= 1:
                raise UserError(
                    f"{said} cannot be certified in {domain.dtype}: its values cannot be told apart in the logits; "
                    f"declare a smaller max_length{domain.wider}."
                )
            plan.decisions.append(Decision(said, "the largest logit", error, margin))
            return _as_tokens(form, place, domain, names)
    if not all(map(is_number, values)):
        raise UserError(
            f"{said} gives {len(values):,} different values, some of which are no numbers: that is more than a "
            f"vocabulary of {MOST_CLASSES}; give numbers alone, by a default where nothing is selected, or fewer."
        )
    numbers = tuple(sorted(form.codes, key=form.codes.__getitem__))
    codes = [form.codes[number] for number in numbers]
    room = min((b - a for a, b in itertools.pairwise(codes)), default=Fraction(1))
    if 2 * error >= room:
        raise UserError(
            f"{said} cannot be certified in {domain.dtype}: its values lie as near as {float(room):.1e}, and rounding "
            f"can move them by {error:.1e}; declare a smaller max_length{domain.wider}."
        )
    plan.decisions.append(
        Decision(said, "one logit is the number", error, float(room) / (2 * error) if error else float("inf"))
    )
    empty = tuple(Reading({}) for _ in names)
    return Outputs("number", (*names, _apart(NUMBER, names)), {}, numbers), (*empty, _reading(form.affine, place))


def _apart(name: str, names: list[str]) -> str:
    """Give a name that no other token has."""
    while name in names:
        name += "'"
    return name


def _centre(form: Form) -> Fraction:
    return Fraction(int((min(form.codes.values()) + max(form.codes.values())) / 2))


def _scale(room: Fraction) -> Fraction:
    """Give what logits are multiplied by, so that the right one is well above the others."""
    scale = Fraction(SURE)
    while scale * room * room < SURE:
        scale *= 2
    return scale


def _margin_of_logits(form: Form, error: float, domain: Domain) -> float:
    """Give the smallest lead of the right logit over what rounding and noise can take from it."""
    codes = sorted(form.codes.values())
    room = min((b - a for a, b in itertools.pairwise(codes)), default=Fraction(1))
    reach = max(abs(code - _centre(form)) for code in codes)
    size = float(reach) * (2 * float(form.affine.largest) + 3 * float(reach) + 2 * abs(float(_centre(form))))
    if float(_scale(room)) * size > domain.largest:
        return 0.0  # a weight that the dtype cannot hold
    rounding = 0.0
    grid = form.affine.grid
    if error or grid is None or grid < domain.smallest or size / min(float(grid), 1.0) > domain.whole / 4:
        rounding = 2 * (len(form.affine.terms) + 3) * domain.rounding * size
    lost = 2 * float(room) * error + rounding
    return float(room * room) / lost if lost else float("inf")


def _as_tokens(
    form: Form, place: Mapping[Quantity, str], domain: Domain, names: list[str]
) -> tuple[Outputs, tuple[Reading, ...]]:
    """Give each value's token a logit, the nearer the code the higher: 2·c·y − c², for y counted from the centre."""
    centre = _centre(form)
    codes = sorted(form.codes.values())
    room = min((b - a for a, b in itertools.pairwise(codes)), default=Fraction(1))
    scale = _scale(room)
    y = form.affine.shifted(-centre)
    of_id: dict[int, Value] = {}
    readings: list[Reading] = [Reading({}, float(-2 * scale * room * room)) for _ in names]
    known = {token: place_of for place_of, token in enumerate(domain.vocabulary) if not isinstance(token, bool)}
    for value, code in form.codes.items():
        c = code - centre
        reading = _reading(y.times(2 * c).shifted(-c * c).times(scale), place)
        same = known.get(value) if not isinstance(value, bool) else None
        if same is not None:
            readings[same] = reading
            of_id[same] = value
            continue
        name = _apart(shown(value), names)
        of_id[len(names)] = value
        names.append(name)
        readings.append(reading)
    return Outputs("tokens", tuple(names), of_id, ()), tuple(readings)
