"""How much of its weight each arm puts on the answer, and how much on what distracts: a small table."""

from headstock.comparison.report.tables import ArmRow, ArmTable, Cell, Group, role
from headstock.comparison.results import SpanMass, TaskOutcome
from headstock.comparison.statistics.sentences import listed
from headstock.pictures import numbers
from headstock.pictures.palette import ArmLook
from headstock.pictures.spreads import spread_of

PLACES = 3


def mass_table(task: TaskOutcome, looks: dict[str, ArmLook]) -> ArmTable | None:
    """Give each arm's attention mass by span, None where there is none.

    Where weights are no probabilities, their signed sum stands beside each share, and last what a row adds up to.
    """
    found = [(place, arm, arm.mass) for place, arm in enumerate(task.arms) if arm.mass is not None]
    if not found:
        return None
    names = list(dict.fromkeys(span.span for _, _, mass in found for span in mass.spans))
    plain = all(mass.weights_are == "normalised" for _, _, mass in found)
    groups = [Group("share of |weight| on", names)]
    groups += [] if plain else [Group("weights of a row", ["add up to"])]
    rows = []
    for place, arm, mass in found:
        by_name = {span.span: span for span in mass.spans}
        cells = [_share(by_name.get(name), with_sum=mass.weights_are != "normalised") for name in names]
        if not plain:
            sums = [span.sum for span in mass.spans if span.sum is not None]
            cells.append(Cell(numbers.fixed(sum(sums), PLACES) if sums else numbers.ABSENT))
        rows.append(ArmRow(arm.label, looks[arm.label], role(place, arm), cells))
    return ArmTable(groups, rows)


def mass_note(task: TaskOutcome) -> str:
    """Say what the table averages, and what a uniform average would give; empty where there is no table."""
    masses = [arm.mass for arm in task.arms if arm.mass is not None]
    if not masses:
        return ""
    even = listed([f"{numbers.fixed(span.uniform, PLACES)} on {span.span}" for span in masses[0].spans])
    rows = numbers.count(masses[0].rows, "held-out row")
    said = [f"Read from the position that is asked, averaged over heads, layers and {rows}; ± over seeds."]
    if any(mass.weights_are != "normalised" for mass in masses):
        said.append("Small figures: the sum of the weights there, in which negative ones subtract.")
    said.append(f"A uniform average would put {even}.")
    if lacking := [arm.label for arm in task.arms if arm.mass is None]:
        said.append(f"No weights could be read of {listed(lacking)}.")
    said += [
        f"{numbers.count(arm.mass.lacking, 'model')} of {arm.label} could not be read, being deleted."
        for arm in task.arms
        if arm.mass is not None and arm.mass.lacking
    ]
    return " ".join(said)


def _share(span: SpanMass | None, *, with_sum: bool) -> Cell:
    if span is None:
        return Cell(numbers.ABSENT)
    beside = f"Σ {numbers.fixed(span.sum, PLACES)}" if with_sum else ""
    return Cell(numbers.plus_minus(spread_of(span.shares), PLACES), beside)
