"""`headstock show`: the data card of a task."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from headstock.cli.layout import columns, filled, print_json
from headstock.cli.options import AsJson

if TYPE_CHECKING:
    from headstock.tasks.base import DataCard


def show(
    task: Annotated[str, Parameter(help="NAME[,key=value...], as `headstock list tasks` names them.")],
    /,
    *,
    as_json: AsJson = False,
) -> int:
    """Show a task's data card: a worked example, the level of chance, what counts as solved, and what it is made of."""
    from headstock.tasks import parse

    made = parse(task)
    card = made.card()
    if as_json:
        print_json({"spec": made.spec, **asdict(card)})
    else:
        print(_laid_out(made.spec, card))
    return 0


def _laid_out(spec: str, card: "DataCard") -> str:
    metric = card.primary
    parts = [
        card.title,
        filled(card.what_is_asked),
        "Example\n" + "\n".join(f"  {line}" for line in card.example.splitlines()),
        columns(
            [
                ["metric", f"{metric.name.replace('_', ' ')}, {metric.better} is better ({metric.unit})"],
                ["chance", card.chance],
                ["solved", card.solved],
                ["held out", card.held_out],
            ]
        ),
        "Data\n" + columns([[name, value] for name, value in card.facts.items()], indent="  "),
        columns([["source", card.source], ["content hash", card.content_hash], ["in full", spec]]),
    ]
    return "\n\n".join(parts)
