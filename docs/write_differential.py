"""Writes docs/results/differential.md from the studies' own answers: every verdict, with the runs it stands on."""

import json
import math
from pathlib import Path
from typing import Any

from headstock.pictures.numbers import outwards, small
from headstock.studies import study_names
from headstock.studies.differential.paper import UNCHECKED

RESULTS = Path(__file__).with_name("results")
PAGE = RESULTS / "differential.md"
COMPARED = "needle-and-mqar"
"""The comparison that the page shows beside the studies."""
EQUAL = {"params": "parameters", "flops": "FLOPs a token", "time": "time"}
MARKS = {"reproduced": "yes", "upheld": "yes", "not reproduced": "no", "not upheld": "no", "not decidable": "open"}

INTRODUCTION = """\
# Differential attention, examined

What subtracting two softmax maps buys, at which size, on which task and at which price: every verdict of the studies,
written by `make differential` from the studies' own answers; a test fails where this page is out of date. Each verdict
leads to the runs that it stands on: their seeds, curves and figures lie beside the study's page, and
`headstock study NAME --budget full` computes them again.

**Version 1** is [`differential`](../mixers.md#differential), of "Differential Transformer" (Ye et al., 2024, arXiv
2410.05258), whose figures stand under *published*. **Version 2** is [`differential2`](../mixers.md#differential2), of
"Differential Transformer V2" (Ye et al., 2026). A claim without a published figure is this workbench's own, or was
asked by readers of the paper.

**yes**: the whole interval of ours lies where the claim says. **no**: all of it lies elsewhere. **open**: it reaches
over the edge, so that nothing is claimed. Intervals of a study hold together 95 times in 100. All arms of the studies
have RMSNorm and SwiGLU, and RoPE where nothing else is said, are equal in what the claim says, and are paired by seed.
Equal time is a ratio of steps: 1.11 (version 1) and 1.21 (version 2) times softmax's seconds a step, measured before
([performance.md](../performance.md#what-a-block-costs-as-the-sequence-grows)).
"""

NOT_HERE = """\
## What cannot be decided at this size

The paper's whole gain in language modelling at 1.4B parameters is 0.025 nats a token. The models here have a quarter of
a million parameters and a megabyte of text: an interval that leaves zero out says something of them and of nothing
larger. Three claims of the paper are not tried here, for no model of this size can do at all what they ask:

- **Mathematical reasoning.** What can be seen at any size is carrying: a model that `headstock train --task addition`
  made is scored by the number of carries, with its probes. Problems in words need a model that was trained on them.
- **Summaries without hallucination.** `headstock train --task distract` makes a model whose answers are counted against
  the number of irrelevant passages; a larger model would be asked the same of passages of text.
- **Answers without hallucination.** The same, and `headstock inspect DIR TEXT` shows where an answer was looked for.

`hs.load(DIR)` opens a larger model in the same way, and every instrument reads it. The studies train their own models:
one at another size is a study with other settings ([studies.md](../studies.md#a-study-of-your-own)).
"""


def answers() -> dict[str, dict[str, Any]]:
    """Give what each study of differential attention has answered, by name, in the order they are listed."""
    found = {}
    for name in study_names():
        file = RESULTS / name / "study.json"
        if (name.startswith("diff-") or name == "do-the-maps-differ") and file.exists():
            found[name] = json.loads(file.read_text(encoding="utf-8"))
    return found


def page() -> str:
    """Give the whole page."""
    known = answers()
    compared = RESULTS / COMPARED / "comparison.json"
    parts = [INTRODUCTION, _overview(known), *(_section(name, answer) for name, answer in known.items())]
    if compared.exists():
        parts.append(_comparison(json.loads(compared.read_text(encoding="utf-8"))))
    parts.append(NOT_HERE)
    return "\n".join(parts)


def _overview(known: dict[str, dict[str, Any]]) -> str:
    """Count the verdicts of each study: of what was published, and of claims of our own."""
    lines = [
        "| study | asks | published claims: yes | no | open | own claims: yes | no | open |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for name, answer in known.items():
        counts = []
        for own in (False, True):
            marks = [MARKS[c["verdict"]] for c in answer["claims"] if (c["published"] is None) is own]
            counts += [str(marks.count(mark)) for mark in ("yes", "no", "open")]
        lines.append(f"| [{name}](#{name}) | {answer['asks']} | {' | '.join(counts)} |")
    return "\n".join(lines) + "\n"


def _section(name: str, answer: dict[str, Any]) -> str:
    lines = [
        f"## {name}",
        "",
        f"{answer['asks']} {_seeds(answer)}; {answer['date']}; {_machine(answer)}. "
        f"[Rows and pictures]({name}/README.md).",
        "",
        "| claim | published | ours | verdict | runs |",
        "|---|---|---|---|---|",
    ]
    folders = {row["name"]: _places(row) for row in answer["rows"]}
    lines += [
        f"| {claim['says']} | {claim['published'] or '—'} | {_ours(claim)} | **{MARKS[claim['verdict']]}** | "
        f"{_runs(name, claim, folders)} |"
        for claim in answer["claims"]
    ]
    lines += ["", *(f"- {said}" for said in [*answer["remarks"], *_unchecked(answer)])]
    return "\n".join(lines).rstrip() + "\n"


def _unchecked(answer: dict[str, Any]) -> list[str]:
    """Give what a study says of figures that were not checked against the paper."""
    return [choice for choice in answer["choices"] if choice == UNCHECKED]


def _comparison(answer: dict[str, Any]) -> str:
    lines = [
        "## Retrieval, compared",
        "",
        f"Is `needle` solved, is `mqar`, and by whom? {answer['seeds']} seeds, equal "
        f"{EQUAL[answer['match']]}; {answer['date']}; {_machine(answer)}. Otherwise `headstock compare`'s defaults: "
        f"learned positions, LayerNorm, GELU; verdicts corrected by Holm's method "
        f"([statistics.md](../statistics.md)). [The whole report]({COMPARED}/report.html).",
        "",
        "```text",
        answer["command"],
        "```",
    ]
    for task in answer["tasks"]:
        lines += [
            "",
            f"| {task['name']} | solved | steps to solve | {task['metric']} | runs |",
            "|---|---:|---|---:|---|",
        ]
        lines += [_arm(task, arm) for arm in task["arms"]]
    lines += ["", *(f"- {verdict['sentence']}" for verdict in answer["verdicts"])]
    return "\n".join(lines) + "\n"


def _arm(task: dict[str, Any], arm: dict[str, Any]) -> str:
    """Give an arm's line: a seed that did not solve the task is behind all steps that it had."""
    cells = [cell for cell in arm["cells"] if cell["status"] == "finished"]
    steps = sorted(cell["steps_to_solve"] or math.inf for cell in cells)
    said = [f"> {arm['steps']:,}" if step == math.inf else f"{step:,}" for step in (steps[0], steps[-1])]
    values = [cell["metrics"]["held-out"][task["metric"]] for cell in cells]
    return (
        f"| {arm['label']} | {sum(step < math.inf for step in steps)} of {len(cells)} | "
        f"{' to '.join(dict.fromkeys(said))} | {min(values):.3f} to {max(values):.3f} | "
        f"[seed 0]({COMPARED}/{cells[0]['folder']}) |"
    )


def _seeds(answer: dict[str, Any]) -> str:
    return f"{answer['budget'].capitalize()} budget, {answer['seeds']} seed{'s' if answer['seeds'] > 1 else ''}"


def _machine(answer: dict[str, Any]) -> str:
    """Give the processor, or each of several, and what computed."""
    environment = answer["environment"]
    names = environment.get("processor", [])
    return ", ".join([*([names] if isinstance(names, str) else names), *_listed(environment.get("torch"), "torch")])


def _listed(versions: Any, of: str) -> list[str]:
    return [f"{of} {version}" for version in (versions if isinstance(versions, list) else [versions]) if version]


def _places(row: dict[str, Any]) -> list[str]:
    """Give where each run of a row lies; of one that trains nothing, what was measured."""
    return [run["folder"] or f"rows/{row['name']}-seed{run['seed']}.json" for run in row["runs"]]


def _ours(claim: dict[str, Any]) -> str:
    ends = [claim["estimate"], claim["low"], claim["high"]]
    if not all(isinstance(end, int | float) for end in ends):
        return "—" if claim["estimate"] is None else str(claim["estimate"])
    estimate, low, high = ends
    unit = f" {claim['unit']}" if claim["unit"] else ""
    if low == high:
        return f"{small(estimate)}{unit}"
    edges = [claim[end] for end in ("at_least", "at_most") if isinstance(claim[end], int | float)]
    return f"{small(estimate)}{unit}, {' to '.join(outwards(low, high, edges))}"


def _runs(name: str, claim: dict[str, Any], folders: dict[str, list[str]]) -> str:
    rows = sorted({row for row, _ in claim["reads"]})
    shown = [f"[{row}]({name}/{folders[row][0]})" if folders.get(row) else row for row in rows[:4]]
    more = [f"[{len(rows) - 4} more]({name}/README.md#rows)"] if len(rows) > 4 else []
    return ", ".join(shown + more)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE}")
