"""Induction heads: found by where they look, and taken away to see what the model can no longer do."""

import random
from collections.abc import Iterable
from statistics import fmean

import torch

from headstock.instruments.ablation import ablated
from headstock.instruments.looking_back import head_scores, twice
from headstock.instruments.losses import loss_by_position, loss_on_repeats
from headstock.instruments.passes import undisturbed
from headstock.model.transformer import Transformer
from headstock.pictures.bars import bars
from headstock.pictures.grid import heat
from headstock.pictures.picture import Picture
from headstock.studies.base import Claim, Effort, Measured, Opened, Row, Study
from headstock.studies.chapter.shared import BLOCK, SETTINGS, SOURCE, STEPS, TEXT
from headstock.studies.figures import figure
from headstock.studies.results import StudyResult
from headstock.tasks.base import Task
from headstock.training.batch import Batch

ROWS_DRAWN = 64
"""Random sequences given twice that are read."""
DRAWS = 8
"""Choices of other heads that are taken away instead."""
Head = tuple[int, int]


def of_heads(opened: Opened) -> Measured:
    """Measure where every head looks, and what is lost without the heads that look where induction heads do.

    Found are the heads whose induction score is at least half the highest. What a context is worth is read on random
    sequences given twice: nats a token, the first time less the second. A head's output is replaced by its mean over
    those sequences, or over the held-out text, of which tokens that end a pair of tokens seen before are told from
    others. Others are as many heads again, or as many as are left, drawn.
    """
    model, task = opened.trained
    scores = head_scores(model, seed=opened.seed)
    best = float(scores.induction.max())
    every = scores.best("induction")
    found = [head for head in every if float(scores.induction[head]) >= best / 2]
    rest = [head for head in every if head not in found]
    draws = random.Random(opened.seed)
    sets = [draws.sample(rest, min(len(found), len(rest))) for _ in range(DRAWS)] if rest else []
    batch = _repeated(model, opened.seed)
    whole = _on_repeats(model, batch, [])
    without = _on_repeats(model, batch, found)
    others = [_on_repeats(model, batch, heads) for heads in sets]
    figures = {
        "induction": best,
        "chance": scores.chance["induction"],
        "previous": float(scores.previous.max()),
        "previous_in_first": float(scores.previous[0].max()),
        "found": float(len(found)),
        "gain": whole[0],
        "gain_without_found": without[0],
        "right_again": whole[1],
        "right_again_without_found": without[1],
    }
    if others:
        figures |= {
            "gain_without_others": fmean(gain for gain, _ in others),
            "right_again_without_others": fmean(right for _, right in others),
        }
    if task.name == "text":
        figures |= _on_text(model, task, found, sets)
    details = {
        "induction": scores.induction.tolist(),
        "previous": scores.previous.tolist(),
        "found": [list(head) for head in found],
    }
    return Measured(figures, details)


def _repeated(model: Transformer, seed: int) -> Batch:
    ids_bq = twice(model, seed=seed + 1, batch=ROWS_DRAWN)  # other ones than the heads were found on
    return Batch(ids_bq[:, :-1], ids_bq[:, 1:], torch.ones_like(ids_bq[:, 1:], dtype=torch.bool))


def _on_repeats(model: Transformer, batch: Batch, without: list[Head]) -> tuple[float, float]:
    """Give what the second time is better by, nats a token, and the share of its tokens that are right."""
    again = batch.inputs.shape[1] // 2 + 1  # the first position that has been seen together with what follows it
    with undisturbed(model), ablated(model, without, "mean", reference=batch.inputs):
        losses = loss_by_position(model, [batch]).mean
        right_bq = model(batch.inputs).argmax(-1) == batch.targets
    return float(losses[: again - 1].mean() - losses[again:].mean()), float(right_bq[:, again:].double().mean())


def _on_text(model: Transformer, task: Task, found: list[Head], sets: list[list[Head]]) -> dict[str, float]:
    batches = list(task.evaluation())
    reference = batches[0].inputs

    def losses(without: list[Head]) -> tuple[float, float]:
        with undisturbed(model), ablated(model, without, "mean", reference=reference):
            said = loss_on_repeats(model, batches)
        return said.repeated.mean, said.others.mean

    whole, less = losses([]), losses(found)
    instead = [losses(heads) for heads in sets]
    figures = {
        "loss_repeated": whole[0],
        "loss_other": whole[1],
        "rise_repeated": less[0] - whole[0],
        "rise_other": less[1] - whole[1],
    }
    if instead:
        figures["rise_repeated_without_others"] = fmean(repeated for repeated, _ in instead) - whole[0]
    return figures


def pictures(result: StudyResult) -> list[Picture]:
    """Give every head's induction score, and what is right with and without the heads found."""
    drawn = []
    for row in result.rows:
        details = result.details(row.name)
        if not details or len(details["induction"]) < 2:
            continue
        found = ", ".join(f"{layer}.{head}" for layer, head in sorted(map(tuple, details["found"])))
        best, chance = row.spread("induction"), row.spread("chance")
        none = best is not None and chance is not None and best.mean <= chance.mean
        drawn.append(
            heat(
                details["induction"],
                [f"layer {layer}" for layer in range(len(details["induction"]))],
                [f"head {head}" for head in range(len(details["induction"][0]))],
                title=f"{row.name}: no head is above a uniform average" if none else f"{row.name}: found are {found}",
                rows="layer",
                columns="head",
                unit="weight on the token after the same token",
                name=f"induction-{row.name}",
            )
        )
    gains = _gains(result.rows)
    if gains:
        drawn.append(
            bars(
                gains,
                unit="nats a token, the first time less the second",
                title="What a context is worth, with all heads and without some",
                name="gains",
            )
        )
    return drawn


def _gains(rows: Iterable[object]) -> dict[str, float]:
    from headstock.studies.runs import RowResult

    found = {}
    for row in rows:
        assert isinstance(row, RowResult)
        for name, words in (
            ("gain", "all heads"),
            ("gain_without_found", "without those found"),
            ("gain_without_others", "without as many others"),
        ):
            spread = row.spread(name)
            if spread is not None:
                found[f"{row.name}: {words}"] = spread.mean
    return found


ATTENTION_ALONE = "softmax,feedforward=none"
LONG = {**SETTINGS, **STEPS}

STUDY = Study(
    name="induction",
    title="Induction heads",
    asks="Do two blocks learn to look at what followed the last time, which one block cannot, and is it those heads "
    "that the gain from a context comes through?",
    source=f"{SOURCE}: what a head does, after Elhage et al. (2021) and Olsson et al. (2022)",
    rows=(
        Row("repeats-one-block", "random sequences that come again: one block, attention alone",
            f"{ATTENTION_ALONE},n_layers=1", measure=of_heads),
        Row("repeats-two-blocks", "the same: two blocks, attention alone", f"{ATTENTION_ALONE},n_layers=2",
            measure=of_heads),
        Row("repeats-four-blocks", "the same: four blocks, attention alone", f"{ATTENTION_ALONE},n_layers=4",
            measure=of_heads),
        Row("text-one-block", "text: one whole block", f"softmax,{BLOCK}", task=TEXT, settings=LONG, measure=of_heads),
        Row("text-two-blocks", "text: two whole blocks", f"softmax,{BLOCK},n_layers=2", task=TEXT, settings=LONG,
            measure=of_heads),
    ),
    claims=(
        Claim("One block cannot say what comes next.", figure("repeats-one-block", "accuracy"), "needs two layers",
              "twice what one of the tokens shown is right by chance, 1/16", at_most=0.125),
        Claim("Two can.", figure("repeats-two-blocks", "accuracy"), "[A][B] … [A] → [B]",
              "solved but for one in ten", 0.9),
        Claim("A head of theirs looks at what followed the last time.", figure("repeats-two-blocks", "induction"),
              "induction heads", "ten times what a uniform average puts there, or more", 0.21, 1.0),
        Claim("None of one block's does.", figure("repeats-one-block", "induction"), "composition across layers",
              "three times what a uniform average puts there", at_most=0.065),
        Claim("A head of the first block looks at the token before.",
              figure("repeats-two-blocks", "previous_in_first"), "a previous-token head feeds it",
              "twice what a uniform average puts there, or more", 0.12, 1.0),
        Claim("Without the heads found what comes next is not known any more.",
              figure("repeats-four-blocks", "right_again_without_found"), "behind much of in-context learning",
              "twice what one of the tokens shown is right by chance, 1/16", at_most=0.125),
        Claim("Without as many others most of it still is.",
              figure("repeats-four-blocks", "right_again_without_others")
              - figure("repeats-four-blocks", "right_again_without_found"), "behind much of in-context learning",
              "three tenths of the tokens or more", 0.3),
        Claim("On text too, taking them away costs pairs seen before more than other tokens.",
              figure("text-two-blocks", "rise_repeated") - figure("text-two-blocks", "rise_other"),
              "behind much of in-context learning", "the sign is the claim", at_least=0.0, strict=True),
        Claim("And more than taking away as many others.",
              figure("text-two-blocks", "rise_repeated") - figure("text-two-blocks", "rise_repeated_without_others"),
              "behind much of in-context learning", "the sign is the claim", at_least=0.0, strict=True),
    ),
    efforts={
        "quick": Effort(
            4,
            {"steps": 800, "batch_size": 32, "evaluate_every": 100},
            rows=("repeats-one-block", "repeats-two-blocks", "repeats-four-blocks"),
            minutes=4,
        ),
        "full": Effort(1, {"steps": 2000, "batch_size": 32, "evaluate_every": 200}, minutes=45),
    },
    task="repeats",
    figures=("accuracy", "induction", "found", "gain", "gain_without_found", "gain_without_others"),
    choices=(
        "The chapter names induction heads and measures nothing. Ours: rows of one random sequence that comes again "
        "and again, of a length that differs from row to row, so that no position tells; models of the width "
        "64, attention "
        "alone; and the ladder's one and two blocks on text.",
        "Found are heads whose induction score is at least half the highest; a head is taken away by its mean output.",
        "The rows on text are the ladder's runs; the others have the defaults of this program, start and "
        "optimiser too.",
    ),
    remarks=(
        "Of two blocks all four heads of the second are found and as many others are the four of the first, which look"
        " at the token before and feed them: without either the gain is gone. Four blocks have bystanders, and there "
        "the two can be told apart.",
        "On text neither the ladder's block nor its two have an induction head after 3,000 steps: their highest scores"
        " are .001 and .013, where a uniform average puts .014, and sequences given twice are no easier the second "
        "time. They do have heads that look at the token before (.86 and .91). So the last two claims take away a head"
        " that is none, and say nothing of induction, however many seeds there were.",
    ),
    spread=0.03,
    spread_because="scores and accuracies of seeds at quick differ by about as much",
    spread_of=(
        "accuracy", "induction", "previous_in_first", "right_again_without_found", "right_again_without_others"
    ),
    pictures=pictures,
)  # fmt: skip
