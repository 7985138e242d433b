"""`headstock runs`: what was run."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from headstock.cli.layout import columns, print_json
from headstock.cli.options import AsJson

if TYPE_CHECKING:
    from headstock.comparison.index import Found


def runs(
    folder: Annotated[Path, Parameter(name="DIR", help="Where to look.")] = Path("runs"),
    /,
    *,
    as_json: AsJson = False,
) -> int:
    """List the comparisons and runs below a folder, the newest first.

    Figures are held-out means of each task's primary metric. What is read is remembered in an index in the cache,
    which may be deleted: the folders themselves hold everything.
    """
    from headstock.comparison.index import found_below

    found = found_below(folder)
    if as_json:
        print_json([asdict(one) for one in found])
    elif not found:
        print(f"No run and no comparison lies below {folder}.")
    else:
        print("\n\n".join(_entry(one) for one in found))
    return 0


def _entry(one: "Found") -> str:
    rows = [[f"  {one.kind}", one.title], [f"  {one.status}", f"{one.date}  {one.detail}".rstrip()]]
    for task, arms in one.figures.items():
        said = ", ".join(f"{arm} {value:.4g}" for arm, value in arms.items())
        rows.append([f"  {task}", f"{one.metrics[task].replace('_', ' ')}: {said}"])
    return f"{one.folder}\n{columns(rows)}"
