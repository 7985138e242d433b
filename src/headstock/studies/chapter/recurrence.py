"""How far back a gradient reaches in a recurrent state and in an average."""

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from headstock.instruments.reach import gradient_reach, norms_of
from headstock.model.config import ModelConfig
from headstock.model.transformer import Transformer, build, build_from
from headstock.pictures.lines import lines
from headstock.pictures.picture import Picture
from headstock.studies.base import Claim, Effort, Measured, Opened, Row, Study
from headstock.studies.chapter.shared import BLOCK, OPTIMISER, SETTINGS, SOURCE, START, TOKENIZER, WIDTH
from headstock.studies.figures import figure
from headstock.studies.results import StudyResult
from headstock.tasks import parse

TASK = "text,corpus=shakespeare,tokenizer=bpe:1024,context=512"
FROM, TO = 5, 500
"""The tokens that the chapter names, counted from 1."""
UPDATES = TO - FROM
READ, PROBES = 4, 8
HUNDREDTH = 0.01
LSTM, SOFTMAX = f"lstm+none,{BLOCK}", f"softmax+rope,{BLOCK}"


def after_training(opened: Opened) -> Measured:
    """Measure how far the gradient of a trained model's logits reaches on held-out text."""
    model, task = opened.trained
    again = build_from(model.config)
    again.load_state_dict(model.state_dict())
    return _reach(again, next(iter(task.evaluation(size=READ))).inputs[:READ, :TO], opened.seed)


def before_training(variant: str, opened: Opened) -> Measured:
    """Measure the same of a model that was only drawn, on the same text."""
    task = parse(TASK)
    sizes: dict[str, Any] = {key: value for key, value in SETTINGS.items() if key in ModelConfig.model_fields}
    model = build(variant, seed=opened.seed, vocab_size=task.vocab_size, context=task.context, **sizes)
    return _reach(model, next(iter(task.evaluation(size=READ))).inputs[:READ, :TO], opened.seed)


def plain_recurrence(opened: Opened) -> Measured:
    """Measure the reach of the state of a recurrence h = tanh(W x + U h) as torch draws it, on N(0, 1) inputs."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(opened.seed)
        recurrence = nn.RNN(WIDTH, WIDTH, batch_first=True).double()
        x_bqm = torch.randn(READ, TO, WIDTH, dtype=torch.float64, requires_grad=True)
        signs_bm = torch.randint(2, (PROBES, READ, WIDTH)).double() * 2 - 1
    states_bqm, _ = recurrence(x_bqm)
    sums = [(states_bqm[:, -1] * probe_bm).sum() for probe_bm in signs_bm]
    norms_bq, _ = norms_of([torch.autograd.grad(each, x_bqm, retain_graph=True)[0] for each in sums])
    return _figures(norms_bq.log().mean(0).exp().flip(0))


def _reach(model: Transformer, ids_bq: Tensor, seed: int) -> Measured:
    # In float64, for what is left after hundreds of steps float32 cannot hold.
    return _figures(gradient_reach(model.double(), ids_bq, probes=PROBES, seed=seed).by_distance)


def _figures(by_distance: Tensor) -> Measured:
    """Give how many factors of ten are lost at some distances from what the token before does, and where two are."""
    left = (by_distance / by_distance[1]).double()
    small = (left[1:] < HUNDREDTH).nonzero()
    return Measured(
        {
            "decades_lost_in_50": -float(left[50].log10()),
            "decades_lost_in_100": -float(left[100].log10()),
            "decades_lost_in_495": -float(left[UPDATES].log10()),
            "reaches": float(small[0]) if len(small) else float(len(left) - 1),
        },
        {"left": left.tolist()},
    )


def pictures(result: StudyResult) -> list[Picture]:
    """Give what is left of the gradient by distance."""
    series = {}
    for row in result.rows:
        details = result.details(row.name)
        if details:
            left = [value if value else None for value in details["left"][1:]]
            series[row.name] = (list(range(1, len(left) + 1)), [float("nan") if v is None else v for v in left])
    if not series:
        return []
    said = "How far a gradient reaches"
    lstm, softmax = (result.row(name).spread("decades_lost_in_495") for name in ("lstm", "softmax"))
    if lstm is not None and softmax is not None:
        said = (
            f"{UPDATES} tokens back the gradient has lost {lstm.mean:.0f} factors of ten in the state and "
            f"{softmax.mean:.1f} in the average"
        )
    return [
        lines(
            series,
            x="tokens back",
            y="gradient, as a part of the token before's",
            title=said,
            log_y=True,
            caption="d logits / d embedding on held-out text (of the plain recurrence: d state / d input).",
            name="gradient-reach",
        )
    ]


STUDY = Study(
    name="recurrence",
    title="How far back a gradient reaches",
    asks="Token 5 says something to token 500: what is left of its gradient in a recurrent state after 495 "
    "updates, and "
    "what in an average, which reaches every token in one step?",
    source=f"{SOURCE}: what came before",
    rows=(
        Row("lstm", "a recurrent state, trained", LSTM, measure=after_training,
            published={"reaches": "hundreds of steps"}),
        Row("softmax", "an average, trained", SOFTMAX, measure=after_training),
        Row("start-lstm", "a recurrent state, as it is drawn", measure=partial(before_training, LSTM)),
        Row("start-softmax", "an average, as it is drawn", measure=partial(before_training, SOFTMAX)),
        Row("start-plain", "h = tanh(W x + U h), as it is drawn", measure=plain_recurrence,
            published={"reaches": "tens of steps"}),
    ),
    claims=(
        Claim("In a plain recurrence the gradient vanishes.", figure("start-plain", "decades_lost_in_495"),
              "vanishes or explodes", "nine factors of ten or more are lost", 9.0),
        Claim("So it does in the state of an LSTM.", figure("start-lstm", "decades_lost_in_495"),
              "must survive 495 updates", "nine factors of ten or more are lost", 9.0),
        Claim("Training leaves it so.", figure("lstm", "decades_lost_in_495"), "must survive 495 updates",
              "six factors of ten or more are lost", 6.0),
        Claim("An LSTM reaches farther than a plain recurrence.",
              figure("start-lstm", "reaches") / figure("start-plain", "reaches"), "from tens of steps to hundreds",
              "twice as far, or more", 2.0),
        Claim("A trained LSTM reaches hundreds of steps.", figure("lstm", "reaches"), "hundreds",
              "a hundred or more until a hundredth is left", 100.0, full_only=True),
        Claim("In an average token 5 reaches token 500 as the token before does.",
              figure("start-softmax", "decades_lost_in_495"), "every token in one step",
              "half to twice, in factors of ten",
              -0.3, 0.3),
        Claim("And training leaves a path to it.", figure("softmax", "decades_lost_in_495"), "every token in one step",
              "three factors of ten or fewer are lost", at_most=3.0),
    ),
    efforts={
        "quick": Effort(3, {"steps": 150, "batch_size": 4, "evaluate_every": 50}, minutes=1),
        "full": Effort(1, {"steps": 2000, "batch_size": 16, "evaluate_every": 250},
                       seeds_of=dict.fromkeys(("start-lstm", "start-softmax", "start-plain"), 8), minutes=16),
    },
    task=TASK,
    settings=SETTINGS,
    figures=("decades_lost_in_50", "decades_lost_in_100", "decades_lost_in_495", "reaches", "perplexity"),
    choices=(
        "Nothing was measured in the chapter. Ours: one block each, its mixer an LSTM or softmax with RoPE, "
        "2,000 steps "
        "of 16 rows of 512 tokens.",
        "The measure is ours: the norm of d logits(token 500) / d embedding, as a part of what the token "
        "before does; a "
        "gradient reaches as far as a hundredth of that.",
        "The LSTM's forget gates start open (a bias of 1), as is usual.",
        TOKENIZER,
        START,
        OPTIMISER,
    ),
    remarks=(
        "What the chapter gives a plain recurrence, tens of steps, is less here: as torch draws it, it falls below a "
        "hundredth after 6 with each of eight seeds.",
        "The trained LSTM falls below a hundredth after 30 tokens and is near 1e-5 after 100: on this text one block, "
        "trained for 2,000 steps, has little use for what is farther back. The hundreds of the chapter are what an "
        "LSTM can be made to hold, not what this one was asked to.",
        "Training makes the path of the average longer to come by: at the start every token back counts alike, and "
        "after it some three to four factors of ten less than the token before, for its weights are no longer even; "
        "the state has lost twenty by then.",
    ),
    spread=0.1,
    spread_because="sizes over hundreds of steps are products; a tenth is a guess that no claim's order of magnitude "
    "hangs on",
    pictures=pictures,
)  # fmt: skip
