"""One block that is told where a token stands in six ways, trained at 64 tokens and read at 64, 128 and 256."""

import math

import torch
from torch import Tensor

from headstock.instruments.losses import loss_by_position
from headstock.instruments.passes import undisturbed
from headstock.model.transformer import Transformer, build, build_from
from headstock.pictures.lines import lines
from headstock.pictures.picture import Picture
from headstock.studies.base import Claim, Effort, Measured, Opened, Row, Study
from headstock.studies.chapter.shared import BLOCK, OPTIMISER, SCATTER, SETTINGS, SOURCE, START, STEPS, TOKENIZER
from headstock.studies.figures import figure
from headstock.studies.results import StudyResult
from headstock.tasks import get
from headstock.tasks.base import Task

TRAINED = 64
LENGTHS = (64, 128, 256)
ROUNDING = 2e-5
"""Of logits of a few units in float32 that two orders of the same sums give."""


def at_lengths(opened: Opened) -> Measured:
    """Measure the held-out perplexity in windows of 64, 128 and 256 tokens that do not overlap, each token once.

    Beside it, that in windows of 256 of which a query sees its last 64 tokens only: a longer window helps already
    because fewer tokens stand at its beginning, with little before them.
    """
    model, task = opened.trained
    figures, details = {}, {}
    for length in LENGTHS:
        found = loss_by_position(model, _read_at(task, length).evaluation())
        figures[f"perplexity_{length}"] = math.exp(min(found.overall, 700.0))
        details[str(length)] = found.mean.tolist()
    near = build_from(model.config.model_copy(update={"window": TRAINED}))
    near.load_state_dict(model.state_dict())
    found = loss_by_position(near, _read_at(task, LENGTHS[-1]).evaluation())
    figures["perplexity_256_window_64"] = math.exp(min(found.overall, 700.0))
    return Measured(figures, {"loss_by_position": details})


def _read_at(task: Task, length: int) -> Task:
    return get(task.name, **{**task.options(), "context": length})


def without_positions(opened: Opened) -> Measured:
    """Measure what reordering the input does to a model that is told no positions."""
    draws = torch.Generator().manual_seed(opened.seed)
    ids_bq = torch.randint(256, (1, TRAINED), generator=draws)
    order = torch.randperm(TRAINED, generator=draws)
    past = torch.cat([torch.randperm(TRAINED - 1, generator=draws), torch.tensor([TRAINED - 1])])
    blind = build("softmax+none,causal=false", vocab_size=256, context=TRAINED, n_layers=2, seed=opened.seed)
    figures = {"permuted": _apart(_logits(blind, ids_bq)[order], _logits(blind, ids_bq[:, order]))}
    for n_layers in (1, 2):
        model = build("softmax+none", vocab_size=256, context=TRAINED, n_layers=n_layers, seed=opened.seed)
        figures[f"shuffled_past_{n_layers}"] = _apart(_logits(model, ids_bq)[-1], _logits(model, ids_bq[:, past])[-1])
    return Measured(figures)


@torch.no_grad()
def _logits(model: Transformer, ids_bq: Tensor) -> Tensor:
    with undisturbed(model):
        logits_bqv: Tensor = model(ids_bq)
    return logits_bqv[0]


def _apart(one: Tensor, other: Tensor) -> float:
    return float((one - other).abs().max())


def pictures(result: StudyResult) -> list[Picture]:
    """Give perplexity by length, and the loss by position in windows of 256."""
    names = [row.name for row in result.rows if row.variant]
    found = {name: [result.row(name).spread(f"perplexity_{length}") for length in LENGTHS] for name in names}
    series = {
        name: (list(LENGTHS), [spread.mean for spread in spreads if spread is not None])
        for name, spreads in found.items()
        if all(spread is not None for spread in spreads)
    }
    if not series:
        return []
    grown = {name: values[-1] / values[0] for name, (_, values) in series.items()}
    best = min(grown, key=grown.__getitem__)
    drawn = [
        lines(
            series,
            x="tokens in a window",
            y="held-out perplexity, by factors",
            title=f"From 64 to 256 tokens {best} goes {'down' if grown[best] < 1 else 'up'} by a factor of "
            f"{grown[best]:.3f}",
            log_x=True,
            log_y=True,
            caption="Trained at 64 tokens. Windows do not overlap, and every token counts once.",
            name="perplexity-by-length",
        )
    ]
    by_position = {
        name: (list(range(LENGTHS[-1])), _smoothed(details["loss_by_position"][str(LENGTHS[-1])]))
        for name in names
        if (details := result.details(name))
    }
    if by_position:
        drawn.append(
            lines(
                by_position,
                x="position in a window of 256",
                y="nats per token",
                title="Where in a longer window each of them loses",
                zero=False,
                caption="Held-out loss, mean of eight neighbouring positions; trained on positions 0 to 63.",
                name="loss-by-position",
            )
        )
    return drawn


def _smoothed(values: list[float | None], over: int = 8) -> list[float]:
    """Give the means of so many neighbours, for each alike; a value that is none stays none."""
    means = []
    for place in range(len(values)):
        group = values[place - place % over : place - place % over + over]
        known = [value for value in group if value is not None]
        means.append(sum(known) / len(known) if known else math.nan)
    return means


WAYS: tuple[tuple[str, str, str, dict[str, str]], ...] = (
    ("learned", "learned", "a trained vector a position, added to the token", {}),
    ("sinusoidal", "sinusoidal", "sines and cosines, added to the token", {}),
    ("rope", "rope", "queries and keys turned by an angle that grows with the position", {}),
    ("alibi", "alibi", "a penalty on the score that grows with the distance",
     {"perplexity_64": "44.95", "perplexity_256": "42.49"}),
    ("xpos", "xpos", "as rope, and the score falls with the distance", {}),
    ("none", "none", "nothing: the causal mask alone", {}),
)  # fmt: skip


STUDY = Study(
    name="positions",
    title="Ways to say where a token stands, past the length of training",
    asks="What does a model that is told no positions see, and which of the ways to tell it goes on working in windows "
    "longer than it was trained on?",
    source=f"{SOURCE}: positions",
    rows=(
        *(
            Row(name, says, f"softmax+{position},{BLOCK}", measure=at_lengths, published=published)
            for name, position, says, published in WAYS
        ),
        Row("blind", "nothing trained: what reordering does without positions", measure=without_positions),
    ),
    claims=(
        Claim("Without positions and mask, reordering the input reorders the output.", figure("blind", "permuted"),
              "permutation-equivariant", "rounding of float32, through two blocks", at_most=ROUNDING, exact=True),
        Claim("Under the mask, one block sees its past as a bag.", figure("blind", "shuffled_past_1"),
              "inside a prefix all orders look alike", "rounding of float32, through a block", at_most=ROUNDING,
              exact=True),
        *(
            Claim(f"At the length of training, trained vectors are better than {name}.",
                  figure("learned", "perplexity_64") / figure(name, "perplexity_64"), "best at the trained length",
                  "ours over theirs is below one", at_most=1.0, full_only=True)
            for name in ("sinusoidal", "rope", "alibi")
        ),
        Claim("At four times that length trained vectors fall off a cliff.",
              figure("learned", "perplexity_256") / figure("learned", "perplexity_64"), "fall off a cliff",
              "a cliff: half as bad again, or worse", 1.5),
        Claim("Sines and cosines do not go on working either.",
              figure("sinusoidal", "perplexity_256") / figure("sinusoidal", "perplexity_64"), "does not extrapolate",
              "a twentieth worse, or more", 1.05),
        Claim("RoPE gets worse.", figure("rope", "perplexity_256") / figure("rope", "perplexity_64"), "it degrades",
              "worse at all", 1.0),
        Claim("But less than sines and cosines.",
              figure("rope", "perplexity_256") / figure("rope", "perplexity_64")
              / (figure("sinusoidal", "perplexity_256") / figure("sinusoidal", "perplexity_64")),
              "but gently", "which is larger is the claim", at_most=1.0, strict=True),
        Claim("ALiBi gets better.", figure("alibi", "perplexity_256") / figure("alibi", "perplexity_64"),
              "44.95 → 42.49, or 0.945", "four points in a hundred on either side", 0.905, 0.985,
              unit="times"),
        Claim("ALiBi ends at 44.95 in windows of 64.", figure("alibi", "perplexity_64"), "44.95",
              "a tenth on either side: blocks, steps and batch are ours", 40.5, 49.4, full_only=True),
        Claim("What ALiBi gains is more than what it gains where it sees no farther than in training.",
              figure("alibi", "perplexity_256_window_64") / figure("alibi", "perplexity_256"),
              "each head goes on doing what it was trained to do", "which is larger is the claim",
              at_least=1.0, strict=True),
    ),
    efforts={
        "quick": Effort(4, {"steps": 400, "batch_size": 16, "evaluate_every": 100}, minutes=4),
        "full": Effort(1, STEPS, minutes=20),
    },
    task="text,corpus=shakespeare,tokenizer=bpe:1024,context=64",
    settings={**SETTINGS, "context": 256},
    figures=("perplexity_64", "perplexity_128", "perplexity_256", "perplexity_256_window_64"),
    choices=(
        "Blocks, steps and batch are not said: one block of four heads, 3,000 steps of 64 rows.",
        "The table of trained positions has 256 rows, of which training reaches 64; the others are as they were drawn.",
        "xPos and no positions at all are added; a fourth reading, windows of 256 in which a query sees 64 tokens, "
        "tells what a longer window gives from what it gives because fewer tokens stand at its beginning.",
        TOKENIZER,
        START,
        OPTIMISER,
    ),
    remarks=(
        "ALiBi ends in windows of 64 where the chapter's does (44.99 and 44.95), and gains less from windows of 256: "
        "43.7 where that has 42.49. Of what it gains nearly all is there too where a query still sees 64 tokens "
        "(43.9): fewer tokens stand near the beginning of a window. Whether the rest is anything one seed does not "
        "tell.",
        "RoPE and xPos in windows of 256 are better than in windows of 64 where a query sees 64 tokens (41.7 and 43.0; "
        "42.5 and 43.9), and far worse where it sees all (69.6 and 90.7): it is distances that training never had "
        "which break them. xPos, made for longer windows, breaks further than RoPE.",
        "Without any positions a longer window costs little (54.5, 56.6, 58.8), and at 256 it is better than all but "
        "ALiBi.",
    ),
    **SCATTER,
    pictures=pictures,
)  # fmt: skip
