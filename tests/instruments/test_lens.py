"""The lens reads every depth as the model reads its last."""

import pytest
import torch
from torch import Tensor

from headstock.errors import UserError
from headstock.instruments.lens import logit_lens
from tests.model.cases import CHOICES, ONE_A_MIXER, Case, close, some_ids


@pytest.mark.parametrize("case", [*ONE_A_MIXER, *CHOICES], ids=str)
def test_the_last_depth_is_the_models_own_answer_bit_for_bit(case: Case) -> None:
    model, ids = case.model(torch.float32), some_ids()
    with torch.no_grad():
        logits = model(ids)
    lens = logit_lens(model, ids, keep_logits=True)
    assert lens.logits is not None
    assert torch.equal(lens.logits[-1], logits)
    config = case.config()
    a_block = 2 if config.feedforward != "none" else 1
    assert len(lens.depths) == 1 + a_block * config.n_layers
    assert lens.depths[-1] == (f"resid_post {config.n_layers - 1}" if config.n_layers else "embedding")


@pytest.mark.parametrize("variant", ["softmax", "softmax,norm_placement=post", "differential,norm=rmsnorm,tied=true"])
def test_each_depth_is_the_residual_there_normed_and_unembedded(variant: str) -> None:
    model, ids = Case("", variant).model(), some_ids()
    _, cache = model.run_with_cache(ids)
    lens = logit_lens(model, ids, top=3)
    residuals = [cache["resid_pre", 0]]
    residuals += [cache[name, layer] for layer in range(2) for name in ("resid_mid", "resid_post")]
    assert lens.depths == ("embedding", "resid_mid 0", "resid_post 0", "resid_mid 1", "resid_post 1")
    for depth, x in enumerate(residuals):
        p = model.logits(model.final_norm(x)).softmax(-1)
        for row in range(3):
            for position in range(8):
                target = int(ids[row, position + 1])
                assert lens.targets[row, position] == target
                close(lens.probability[depth, row, position], p[row, position, target])
                order = p[row, position].argsort(descending=True).tolist()
                assert order.index(target) == lens.rank[depth, row, position]
                assert lens.top_tokens[depth, row, position].tolist() == order[:3]
                close(lens.top_probability[depth, row, position], p[row, position, order[:3]])


def test_the_last_position_has_no_next_token_unless_it_is_said() -> None:
    model, ids = Case("", "softmax").model(), some_ids()
    lens = logit_lens(model, ids)
    assert lens.logits is None
    assert (lens.rank[:, :, -1] == -1).all()
    assert lens.probability[:, :, -1].isnan().all()
    assert not lens.probability[:, :, :-1].isnan().any()
    said = logit_lens(model, ids, targets=ids)
    assert torch.equal(said.targets, ids)
    assert not said.probability.isnan().any()


@pytest.mark.parametrize("left", [False, True])
def test_padded_rows_are_read_as_alone(left: bool) -> None:
    model, ids = Case("", "softmax").model(), some_ids(2)
    real = torch.ones_like(ids, dtype=torch.bool)
    kept = slice(4, 9) if left else slice(0, 5)
    real[1] = False
    real[1, kept] = True
    both, alone = logit_lens(model, ids, real=real), logit_lens(model, ids[1:, kept])
    torch.testing.assert_close(both.probability[:, 1, kept], alone.probability[:, 0], equal_nan=True)
    assert torch.equal(both.rank[:, 1, kept], alone.rank[:, 0])
    assert (both.rank[:, 1][:, ~real[1]] == -1).all()


def test_the_first_token_of_a_document_is_no_target_of_another() -> None:
    documents = torch.tensor([[0, 0, 0, 0, 1, 1, 1, 1, 1]] * 3)
    lens = logit_lens(Case("", "softmax").model(), some_ids(), documents=documents)
    assert (lens.targets[0] == -1).nonzero().flatten().tolist() == [3, 8]


@pytest.mark.parametrize(
    ("targets", "said"),
    [
        (torch.zeros(3, 4, dtype=torch.int64), "of shape"),
        (torch.zeros(3, 9), "an integer"),
        (torch.full((3, 9), 17), "from 0 to 16"),
        (torch.full((3, 9), -2), "−1 for none"),
    ],
)
def test_targets_that_are_none_are_refused(targets: Tensor, said: str) -> None:
    with pytest.raises(UserError, match=said):
        logit_lens(Case("", "softmax").model(), some_ids(), targets=targets)


@pytest.mark.parametrize("top", [0, True, 2.0])
def test_a_number_of_likeliest_tokens_that_is_none_is_refused(top: int) -> None:
    with pytest.raises(UserError, match=f"top is {top}: keep one token or more"):
        logit_lens(Case("", "softmax").model(), some_ids(), top=top)


def test_it_draws_one_row_with_its_tokens() -> None:
    lens = logit_lens(Case("", "softmax").model(), some_ids())
    picture = lens.draw(1, labels=list("abc defgh"))
    assert picture.table.head[1:5] == ["0 a", "1 b", "2 c", "3 ␣"]
    assert picture.table.rows[0][0] == "resid_post 1"
    assert "no target" in picture.caption
    assert "<svg" in lens._repr_html_()
    for refused in (lambda: lens.draw(3), lambda: lens.draw(labels=["a"]), lambda: lens.draw(first=9)):
        with pytest.raises(UserError, match=r"choose from|one a position"):
            refused()


def test_the_target_is_the_next_real_token_of_the_same_document() -> None:
    model = Case("", "softmax").model()
    ids, real = torch.tensor([[1, 2, 0, 3, 4]]), torch.tensor([[True, True, False, True, True]])
    assert logit_lens(model, ids, real=real).targets.tolist() == [[2, 3, -1, 4, -1]]
    documents = torch.tensor([[0, 1, 0, 1, 0]])
    assert logit_lens(model, ids, documents=documents).targets.tolist() == [[0, 3, 4, -1, -1]]


def test_the_title_is_of_the_positions_that_are_drawn() -> None:
    model = Case("", "softmax").model()
    lens = logit_lens(model, some_ids())
    title = lens.draw(first=3).title
    places = lens.targets[0, 3:] >= 0
    last = (lens.rank[-1, 0, 3:] == 0)[places].double().mean()
    assert title.endswith(f"{last:.0%} at last")
    flipped = logit_lens(model, some_ids(), targets=lens.top_tokens[-1, :, :, 0])
    wrong = flipped.targets.clone()
    wrong[:, :3] = (wrong[:, :3] + 1) % model.config.vocab_size
    mixed = logit_lens(model, some_ids(), targets=wrong)
    assert mixed.draw(first=3).title.endswith("100% at last")
    assert not mixed.draw().title.endswith("100% at last")
