"""What a uniform average is: blind to order, a matrix, a softmax of zeros under a mask; and why a mask is −∞."""

import math

import torch
from torch import Tensor

from headstock.model.transformer import Transformer, build
from headstock.pictures.grid import heat
from headstock.pictures.picture import Picture
from headstock.studies.base import Claim, Effort, Measured, Opened, Row, Study
from headstock.studies.chapter.shared import SOURCE
from headstock.studies.figures import figure
from headstock.studies.results import StudyResult

TIME, WIDTH = 64, 128
SHOWN = 6
"""Rows of the averaging matrix that the chapter prints."""
ROUNDING = 2.0**-21
"""Four steps of float32 at 1: sums of 64 numbers in another order differ by one or two."""


def averaging_matrix(time: int) -> Tensor:
    """Give the matrix (query, key) that averages each prefix: a lower triangle whose rows sum to 1."""
    triangle = torch.ones(time, time).tril()
    return triangle / triangle.sum(1, keepdim=True)


def of_order(opened: Opened) -> Measured:
    """Measure how much an average changes when its prefix is shuffled, as a product and in our uniform mixer."""
    draws = torch.Generator().manual_seed(opened.seed)
    x_qm = torch.randn(TIME, WIDTH, generator=draws)
    a_qk, shuffled = averaging_matrix(TIME), x_qm[torch.randperm(TIME, generator=draws)]
    ids_bq = torch.randint(WIDTH, (1, TIME), generator=draws)
    order = torch.cat([torch.randperm(TIME - 1, generator=draws), torch.tensor([TIME - 1])])
    changes = {}
    for name in ("uniform", "softmax"):
        model = build(f"{name}+none", vocab_size=WIDTH, context=TIME, n_layers=1, seed=opened.seed).eval()
        with torch.no_grad():
            changes[name] = _apart(model(ids_bq)[0, -1], model(ids_bq[:, order])[0, -1])
    return Measured(
        {
            "shuffled": _apart(a_qk[-1] @ x_qm, a_qk[-1] @ shuffled),
            "shuffled_uniform_model": changes["uniform"],
            "shuffled_softmax_model": changes["softmax"],
        }
    )


def of_forms(opened: Opened) -> Measured:
    """Measure how far a loop, a matrix product, a softmax of zeros and our uniform mixer's weights are apart."""
    x_qm = torch.randn(TIME, WIDTH, generator=torch.Generator().manual_seed(opened.seed))
    loop_qm = torch.stack([x_qm[: t + 1].mean(0) for t in range(TIME)])
    a_qk = averaging_matrix(TIME)
    visible_qk = torch.ones(TIME, TIME, dtype=torch.bool).tril()
    soft_qk = torch.zeros(TIME, TIME).masked_fill(~visible_qk, -math.inf).softmax(-1)
    model = build("uniform+none", vocab_size=2, context=TIME, n_layers=1, n_heads=1)
    weights_qk = model.weights(torch.zeros(1, TIME, dtype=torch.int64))[0][0, 0].detach()
    return Measured(
        {
            "loop_matmul": _apart(loop_qm, a_qk @ x_qm),
            "loop_softmax": _apart(loop_qm, soft_qk @ x_qm),
            "uniform_weights": _apart(weights_qk, a_qk),
            "row_sums": _apart(a_qk.sum(1), torch.ones(TIME)),
            "above_diagonal": float(a_qk.triu(1).abs().max()),
        },
        {"matrix": a_qk[:SHOWN, :SHOWN].tolist()},
    )


def of_masks(opened: Opened) -> Measured:
    """Measure the weight on what comes later: masked by −∞ and by −1e9, with ordinary scores and far lower ones."""
    scores_qk = torch.randn(TIME, TIME, generator=torch.Generator().manual_seed(opened.seed))
    later_qk = torch.ones(TIME, TIME, dtype=torch.bool).triu(1)
    found = {}
    for size, shift in (("ordinary", 0.0), ("low", -2e9)):
        for name, value in (("infinity", -math.inf), ("constant", -1e9)):
            weights_qk = (scores_qk + shift).masked_fill(later_qk, value).softmax(-1)
            found[f"{name}_{size}"] = float(weights_qk[later_qk].max())
    return Measured(found)


def of_content(opened: Opened) -> Measured:
    """Measure how much the weights of a trained-size table, and of softmax, change from one text to another."""
    draws = torch.Generator().manual_seed(opened.seed)
    ids_bq = torch.randint(WIDTH, (2, TIME), generator=draws)
    return Measured(
        {
            name: _between_rows(build(name, vocab_size=WIDTH, context=TIME, n_layers=1, seed=opened.seed), ids_bq)
            for name in ("table", "softmax")
        }
    )


def pictures(result: StudyResult) -> list[Picture]:
    """Give the averaging matrix's first rows."""
    found = result.details("forms")
    if not found:
        return []
    places = [str(place) for place in range(SHOWN)]
    return [
        heat(
            found["matrix"],
            places,
            places,
            title="An average of what came before is a lower triangle whose rows sum to 1",
            rows="query",
            columns="key",
            unit="weight",
            name="averaging-matrix",
        )
    ]


def _between_rows(model: Transformer, ids_bq: Tensor) -> float:
    one_bhqk = model.weights(ids_bq)[0].detach()
    return _apart(one_bhqk[0], one_bhqk[1])


def _apart(one: Tensor, other: Tensor) -> float:
    return float((one - other).abs().max())


STUDY = Study(
    name="averages",
    title="What a uniform average is",
    asks="Is an average of the past blind to its order, and is it a matrix product and a softmax of zeros? What "
    "masks the future, and what can a fixed table of weights not do?",
    source=f"{SOURCE}: the average, its three forms, and the mask",
    rows=(
        Row("order", "the same tokens, shuffled", measure=of_order,
            published={"shuffled": "2.9802322387695312e-08"}),
        Row("forms", "a loop, a matrix product, a softmax of zeros", measure=of_forms,
            published={"loop_matmul": "5.960464477539063e-08", "loop_softmax": "5.960464477539063e-08"}),
        Row("masks", "weight on what comes later, by what masks it", measure=of_masks),
        Row("content", "weights on two texts: how far apart", measure=of_content),
    ),
    claims=(
        Claim("Shuffling the tokens leaves their average as it was.", figure("order", "shuffled"),
              "2.9802322387695312e-08", "rounding of float32: four steps at 1", at_most=ROUNDING),
        Claim("One block of our uniform average cannot tell a shuffled past either.",
              figure("order", "shuffled_uniform_model"), "as predicted", "rounding of float32, passed through a block",
              at_most=8 * ROUNDING),
        Claim("Nor can one block of softmax without positions: under the mask its past is a bag.",
              figure("order", "shuffled_softmax_model"), "inside a prefix all orders look alike",
              "rounding of float32, passed through a block", at_most=8 * ROUNDING),
        Claim("A loop over prefixes is a product with a lower triangle.", figure("forms", "loop_matmul"),
              "5.960464477539063e-08", "rounding of float32: four steps at 1", at_most=ROUNDING),
        Claim("It is a softmax of zeros masked by −∞.", figure("forms", "loop_softmax"), "5.960464477539063e-08",
              "rounding of float32: four steps at 1", at_most=ROUNDING),
        Claim("The rows of that matrix sum to 1.", figure("forms", "row_sums"), "1",
              "rounding of float32: four steps at 1", at_most=ROUNDING),
        Claim("Nothing stands above its diagonal.", figure("forms", "above_diagonal"), "0", "zeros are exact", 0.0,
              0.0),
        Claim("The weights of our uniform mixer are that matrix.", figure("forms", "uniform_weights"),
              "the same matrix",
              "rounding of float32: four steps at 1", at_most=ROUNDING),
        Claim("Behind a mask of −∞ nothing weighs anything, however low the scores.", figure("masks", "infinity_low"),
              "exactly zero", "zeros are exact", 0.0, 0.0),
        Claim("Behind a mask of −1e9 it does as soon as scores are lower than that.", figure("masks", "constant_low"),
              "whether the constant is large enough is left to you", "one key later takes half of a row or more",
              at_least=0.5),
        Claim("A table of weights is the same for every text.", figure("content", "table"),
              "the same for every sentence",
              "no text enters", 0.0, 0.0),
        Claim("Weights by dot product are not.", figure("content", "softmax"),
              "depend on what stands at both positions",
              "a hundred times what rounding gives", at_least=100 * ROUNDING),
    ),
    efforts={"quick": Effort(3, minutes=0.1), "full": Effort(3, minutes=0.1)},
    figures=("shuffled", "loop_matmul", "loop_softmax"),
    choices=(f"Lengths and widths are not said: {TIME} tokens, {WIDTH} numbers each, N(0, 1).",),
    remarks=(
        "Differences are of the size of float32's rounding and so depend on the numbers drawn and on the processor: "
        "that ours are not the chapter's digits says nothing.",
    ),
    exact=True,
    pictures=pictures,
)  # fmt: skip
