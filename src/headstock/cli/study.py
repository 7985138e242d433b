"""`headstock study`: a reference study, ours beside what was published."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from headstock.cli.catalogue import list_what_there_is
from headstock.cli.layout import columns, filled, print_json, results_alone
from headstock.cli.options import AsJson, Flag, Whole, command_again, device_named
from headstock.cli.progress import ComparisonProgress
from headstock.errors import UserError

if TYPE_CHECKING:
    from headstock.studies.forecast import Foreseen
    from headstock.studies.results import StudyResult


def study(
    name: Annotated[
        str | None,
        Parameter(help="A study's name, or your own: FILE.py:NAME or PACKAGE.MODULE:NAME [default: list the studies]."),
    ] = None,
    /,
    *,
    budget: Annotated[
        Literal["quick", "full"],
        Parameter(help="quick: minutes on two cores. full: what the document gave it, or its claims want."),
    ] = "quick",
    seeds: Annotated[Whole | None, Parameter(help="Runs of every row [default: the budget's].")] = None,
    steps: Annotated[
        Whole | None, Parameter(help="The most training steps of any row [default: the budget's own].")
    ] = None,
    jobs: Annotated[Whole | None, Parameter(help="Runs at a time [default: one a core].")] = None,
    device: Annotated[
        str | None,
        Parameter(help="cpu, cuda, or auto: cuda where there is a GPU, else cpu [default: the folder's, else cpu]."),
    ] = None,
    out: Annotated[Path | None, Parameter(help="Folder of the study [default: runs/study-NAME-BUDGET].")] = None,
    fresh: Annotated[bool, Flag, Parameter(help="Put what the folder holds aside, and start anew.")] = False,
    dry_run: Annotated[
        bool, Flag, Parameter(help="Print the rows, what is there already and what could be decided; write nothing.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Rerun a study: every row is trained or measured, and every claim judged beside what was published.

    A claim is reproduced, not reproduced, or not decidable at this budget: answers all alike. A study that was stopped,
    in whatever way, goes on by the same command. Exit status 1 says that a run failed.
    """
    if name is None:
        asked = {"--seeds": seeds, "--steps": steps, "--jobs": jobs, "--device": device, "--out": out}
        flags = {"--budget": budget != "quick", "--fresh": fresh, "--dry-run": dry_run}
        given = [option for option, value in asked.items() if value is not None]
        given += [option for option, value in flags.items() if value]
        if given:
            raise UserError(f"{given[0]} is given without a study: name one; `headstock list studies` shows them.")
        return list_what_there_is("studies", as_json=as_json)
    from headstock.studies import study as study_named

    with results_alone():
        chosen = study_named(name)
    named = None if device is None else device_named(device)
    if jobs is not None and jobs < 1:
        raise UserError(f"--jobs is {jobs}: give 1 or more.")
    if dry_run:
        from headstock.studies.forecast import foreseen

        plan = foreseen(chosen, budget, out=out, seeds=seeds, steps=steps, device=named, fresh=fresh)
        if as_json:
            print_json(plan.to_dict())
        else:
            print(_plan(plan))
        return 0

    from headstock.studies.running import run_study

    with ComparisonProgress() as watch, results_alone():
        result = run_study(
            chosen,
            budget,
            out=out,
            seeds=seeds,
            steps=steps,
            device=named,
            jobs=jobs,
            fresh=fresh,
            command=command_again(),
            watch=watch,
            say=watch.shows.say,
        )
    if as_json:
        print_json(result.to_dict())
    else:
        print(result.table())
        print(f"Report: {Path(result.folder) / 'report.html'}")
    return _failed_runs(result)


def _failed_runs(result: "StudyResult") -> int:
    """Say how many runs failed; give the exit status."""
    failed, total = result.failed, sum(len(row.runs) for row in result.rows)
    if not failed:
        return 0
    said = " ".join((failed[0][1].reason or "").split())
    print(f"headstock: {len(failed)} of {total} runs failed, the first because {said}", file=sys.stderr)
    return 1


def _plan(plan: "Foreseen") -> str:
    rows = [["row", "steps", "parameters", "there", "what it is"]]
    rows += [
        [
            row.name,
            f"{row.steps:,}" if row.steps else "",
            f"{row.parameters:,}" if row.parameters else "",
            f"{row.there} of {row.seeds}",
            row.says,
        ]
        for row in plan.rows
    ]
    blocks = [
        filled(f"{plan.title}. {plan.asks}"),
        columns(rows, indent="  ", numbers=[1, 2, 3]),
        filled(plan.said),
        "\n".join(filled(said, "  - ", "    ") for said in plan.undecidable),
    ]
    return "\n\n".join(block for block in blocks if block)
