"""A comparison as an engine would give it, made up from fixed random numbers.

The verdicts are the real judge's, so that sentences, intervals and numbers belong together.
"""

import math
import random
from collections.abc import Sequence

from headstock.comparison.results import (
    ArmOnTask,
    Attention,
    CellResult,
    Comparison,
    Cost,
    TaskOutcome,
    Tuning,
)
from headstock.comparison.statistics.hypotheses import ArmResult, TaskResult, steps_to_solve
from headstock.comparison.statistics.reach import what_can_be_claimed
from headstock.comparison.statistics.verdicts import judge

STEPS, EVERY = 600, 25
WORDS = ["the", "crowd", "did", "not", "cross", "the", "river", "because", "it", "was", "too", "wide", ",", "so", "the"]
BYTES = list("er␣than␣the␣name␣of␣the␣module.↵↵The␣import␣statement␣combines␣t")


def crossing_cells(rng: random.Random, seeds: int, solves_at: float | None, seconds: float) -> list[CellResult]:
    """Runs that stay at half right until they solve the task, each around a step of its own; None: never."""
    cells = []
    for seed in range(seeds):
        turn = math.inf if solves_at is None else solves_at + rng.gauss(0, 35)
        ceiling = 0.46 + rng.gauss(0, 0.015) if solves_at is None else 1.0
        curve = []
        for step in range(EVERY, STEPS + 1, EVERY):
            rise = 0.0 if solves_at is None else 1 / (1 + math.exp(-(step - turn) / 28))
            early = min(1.0, step / 150)
            right = min(1.0, early * 0.44 + (ceiling - 0.44) * (early if solves_at is None else rise))
            right = 1.0 if right > 0.988 else max(0.0, right + rng.gauss(0, 0.006))
            loss = 0.02 - 2.6 * math.log(max(right, 0.02)) * 0.5
            row = {"step": float(step), "train_loss": loss * 1.1 + 0.5}
            curve.append(row | {"loss": loss, "perplexity": math.exp(loss), "accuracy": right})
        last = {name: curve[-1][name] for name in ("loss", "perplexity", "accuracy")}
        train = {"loss": last["loss"] * 0.9, "perplexity": math.exp(last["loss"] * 0.9), "accuracy": last["accuracy"]}
        steps = steps_to_solve([(int(row["step"]), row["accuracy"]) for row in curve], 0.99, "higher")
        cells.append(_cell("crossing", rng, seed, {"held-out": last, "train": train}, curve, steps, seconds))
    return cells


def text_cells(rng: random.Random, seeds: int, bits: float, seconds: float, luck: Sequence[float]) -> list[CellResult]:
    """Runs that fall towards so many bits per byte; `luck` is what a seed does to every arm alike."""
    cells = []
    for seed in range(seeds):
        end = bits + luck[seed] + rng.gauss(0, 0.006)
        curve = []
        for step in range(EVERY, 401, EVERY):
            value = end + (4.6 - end) * math.exp(-step / 70) - 0.02 * (step / 400 - 1)
            loss = value * math.log(2)
            scores = {"loss": loss, "perplexity": math.exp(loss), "accuracy": 0.62 - value / 10, "bits_per_byte": value}
            curve.append({"step": float(step), "train_loss": loss * 0.98, **scores})
        last = {name: curve[-1][name] for name in ("loss", "perplexity", "accuracy", "bits_per_byte")}
        train = {name: value * 0.985 for name, value in last.items()}
        cells.append(_cell("text", rng, seed, {"held-out": last, "train": train}, curve, None, seconds))
    return cells


def _cell(
    task: str,
    rng: random.Random,
    seed: int,
    metrics: dict[str, dict[str, float]],
    curve: list[dict[str, float]],
    steps: int | None,
    seconds: float,
) -> CellResult:
    folder = f"runs/{task}-{rng.getrandbits(48):012x}"
    taken = seconds * (1 + abs(rng.gauss(0, 0.04)))
    return CellResult(seed, 1e-3, "finished", None, folder, metrics, curve, steps, taken)


def attention(rng: random.Random, labels: list[str], kind: str, heads: int, right: bool) -> Attention:
    """Weights over the labels: even, softmax-like with a peak a head, or a difference with negative ones."""
    layers = []
    for layer in range(2):
        rows = []
        for head in range(heads):
            scores = [rng.gauss(0, 0.8) for _ in labels]
            scores[(7 * head + 3 * layer + 4) % len(labels)] += 4.0
            scores[len(labels) - 4 if layer else 1] += 2.5
            weights = _softmax([0.0] * len(labels) if kind == "uniform" else scores)
            if kind == "signed":
                noise = _softmax([rng.gauss(0, 0.6) for _ in labels])
                weights = [one - 0.6 * other for one, other in zip(weights, noise, strict=True)]
            rows.append(weights)
        layers.append(rows)
    target = "river" if labels is WORDS else "y"
    weights_are = "signed" if kind == "signed" else "normalised"
    return Attention(labels, len(labels) - 1, layers, weights_are, target if right else labels[1], target)


def _softmax(scores: list[float]) -> list[float]:
    powers = [math.exp(score) for score in scores]
    return [power / sum(powers) for power in powers]


ARMS = {
    # label: (floor, crossing solved at, bits on text, seconds a step, d_ff, FLOPs, kind of weights, heads, kernel)
    "softmax": (False, 310.0, 2.352, 0.0129, 256, 213_248, "normalised", 4, "fused (flash, CPU)"),
    "differential": (False, 170.0, 2.349, 0.0183, 255, 237_696, "signed", 2, "plain"),
    "uniform": (True, None, 2.711, 0.0081, 384, 196_608, "uniform", 4, "running mean"),
}


def arms_on(task: str, seeds: int, tuned: bool = False, looking: bool = True) -> list[ArmOnTask]:
    rng = random.Random(f"{task} {seeds}")
    luck = [rng.gauss(0, 0.01) for _ in range(seeds)]
    arms = []
    for label, (floor, solves_at, bits, seconds, d_ff, flops, kind, heads, kernel) in ARMS.items():
        labels = WORDS if task == "crossing" else BYTES
        cells = (
            crossing_cells(rng, seeds, solves_at, seconds)
            if task == "crossing"
            else text_cells(rng, seeds, bits, seconds * 2.1, luck)
        )
        timed = sorted(cell.seconds_per_step for cell in cells)[seeds // 2]
        cost = Cost(d_ff, 105_100 + d_ff, 100_000 + d_ff % 7, flops, 1024, timed, kernel)
        base = bits if task == "text" else 0.9 - 0.03 * heads
        sign = -1 if task == "crossing" else 1
        best = 3e-3 if label == "differential" else 1e-3
        values = [base + sign * 0.1 * abs(math.log10(rate / best)) ** 1.5 for rate in (3e-4, 1e-3, 3e-3, 1e-2)]
        tuning = Tuning([3e-4, 1e-3, 3e-3, 1e-2], [*values[:3], None if label == "uniform" else values[3]], best)
        arms.append(
            ArmOnTask(
                label=label,
                variant=f"{label}+learned,d_ff={d_ff},d_model=64,n_heads=4,n_layers=2",
                floor=floor,
                lr=1e-3,
                steps=STEPS if task == "crossing" else 400,
                cost=cost,
                cells=cells,
                attention=attention(rng, labels, kind, heads, label != "uniform") if looking else None,
                tuning=tuning if tuned else None,
            )
        )
    return arms


def crossing(arms: list[ArmOnTask]) -> TaskOutcome:
    return TaskOutcome(
        name="crossing",
        spec="crossing,held_out=0.2",
        title="crossing: which noun did the pronoun mean?",
        metric="accuracy",
        unit="share of held-out sentences",
        better="higher",
        solved_at=0.99,
        chance="50 % between the two nouns of the sentence; 2.8 % for one of 36 words at random.",
        content_hash="7b1c0e52" * 8,
        context=17,
        batch_size=32,
        arms=arms,
    )


def text(arms: list[ArmOnTask]) -> TaskOutcome:
    return TaskOutcome(
        name="text",
        spec="text,context=64,corpus=python-docs,held_out=0.1,tokenizer=byte",
        title="text: python-docs, tokenizer byte",
        metric="bits_per_byte",
        unit="bits per byte",
        better="lower",
        solved_at=None,
        chance="8.00 bits per byte for 256 tokens all alike; 4.65 for one who knows only how often each token comes.",
        content_hash="03ff9a41" * 8,
        context=64,
        batch_size=32,
        arms=arms,
    )


def comparison(tasks: list[TaskOutcome], seeds: int, look: int = 1) -> Comparison:
    """Judge the tasks and put everything together."""
    results = [
        TaskResult(
            task.name,
            task.metric,
            task.unit,
            task.better,
            task.solved_at,
            max(arm.steps for arm in task.arms),
            1e-3,
            [
                ArmResult(
                    arm.label,
                    arm.floor,
                    {cell.seed: cell.metrics.get("held-out", {}).get(task.metric) for cell in arm.cells},
                    {cell.seed: cell.steps_to_solve for cell in arm.cells},
                    fixed=not arm.trained,
                )
                for arm in task.arms
            ],
        )
        for task in tasks
        if task.arms
    ]
    arms = tasks[0].arms if tasks else []
    reach = what_can_be_claimed(
        [arm.label for arm in arms],
        [arm.label for arm in arms if arm.floor],
        {task.name: task.solved_at is not None for task in tasks},
        seeds,
        look,
        fixed=[arm.label for arm in arms if not arm.trained],
    )
    return Comparison(
        title="Is differential attention better than softmax, and is either better than a uniform average?",
        command="headstock compare softmax differential uniform --task crossing --task text --seeds 8 --steps 600",
        date="2025-11-02",
        look=look,
        seeds=seeds,
        match="params",
        matching=[
            "Non-embedding parameters were made equal by the feed-forward width: at most 0.02 % apart.",
            "FLOPs a token, bytes of a full cache and seconds a step still differ.",
        ],
        reach=list(reach.sentences),
        earlier_claims=[],
        exploratory=reach.exploratory,
        verdicts=judge(results, look),
        tasks=tasks,
        environment={
            "headstock": "0.1.0",
            "python": "3.11.7",
            "torch": "2.13.0",
            "machine": "Linux x86_64",
            "threads": 1,
            "seen": {"cores": 2, "GPU": None},
        },
        plan_hash="a94f61c3" * 8,
        folder="results/softmax-differential-uniform",
    )


def plain(seeds: int = 8, *, tuned: bool = False, looking: bool = True, look: int = 1) -> Comparison:
    """Three arms, two tasks, every run finished."""
    tasks = [crossing(arms_on("crossing", seeds, tuned, looking)), text(arms_on("text", seeds, tuned, looking))]
    return comparison(tasks, seeds, look)
