"""Nothing that comes later moves anything that came before, by values and by gradients, on every path."""

import pytest
import torch

from headstock.model.visibility import Visible
from tests.model.cases import CASES, TIME, VOCAB, Case, both_paths, cells, close, every_case, some_ids


@both_paths
@every_case
def test_the_future_moves_no_logit_of_the_past(case: Case, plain: bool) -> None:
    model, ids = case.model(torch.float32), some_ids()
    model.plain = plain
    with torch.no_grad():
        before = model(ids)
        for now in (0, 3, TIME - 2):
            other = ids.clone()
            other[:, now + 1 :] = (ids[:, now + 1 :] + 5) % VOCAB
            after = model(other)
            close(after[:, : now + 1], before[:, : now + 1], atol=1e-6)
            assert not torch.equal(after[:, now + 1 :], before[:, now + 1 :])


@both_paths
@every_case
def test_the_past_has_no_gradient_into_the_future(case: Case, plain: bool) -> None:
    model, now = case.model(), 4
    model.plain = plain
    embedded = []
    with model.embed.register_forward_hook(lambda _, __, output: embedded.append(output) or output.retain_grad()):
        model(some_ids())[:, now].square().sum().backward()
    assert embedded[0].grad[:, now + 1 :].count_nonzero() == 0
    assert embedded[0].grad[:, now].count_nonzero() > 0


@pytest.mark.parametrize("case", cells([c for c in CASES if c.config().n_layers and not c.config().window]))
def test_every_visible_key_is_seen(case: Case) -> None:
    embedded = []
    model = case.model()
    with model.embed.register_forward_hook(lambda _, __, output: embedded.append(output) or output.retain_grad()):
        model(some_ids())[:, -1].square().sum().backward()
    assert (embedded[0].grad.abs().sum(-1) > 0).all()


def test_fewer_queries_than_keys_stand_at_the_end() -> None:
    visible = Visible(2, 5, torch.device("cpu")).dense[0, 0]
    assert visible.tolist() == [[True, True, True, True, False], [True] * 5]


def test_an_extra_key_in_front_is_seen_by_all_and_has_no_place_in_time() -> None:
    real = torch.tensor([[False, True, True]])
    visible = Visible(3, 3, torch.device("cpu"), real_bk=real, slopes_h=torch.ones(1)).with_leading_key()
    assert visible.dense[0, 0].tolist() == [
        [True, False, False, False],
        [True, False, True, False],
        [True, False, True, True],
    ]
    assert visible.key_positions.tolist() == [[0, 0, 1]]
    assert visible.penalty_bhqk[0, 0].tolist() == [[0, 0, 0, -1], [0, 0, 0, -1], [0, -1, -1, 0]]


def test_positions_are_counted_within_a_document_and_without_padding() -> None:
    documents = torch.tensor([[4, 4, 4, 9, 9, 9, 9]])
    real = torch.tensor([[True, False, True, True, True, False, True]])
    device = torch.device("cpu")
    assert Visible(7, 7, device, document_bk=documents).key_positions.tolist() == [[0, 1, 2, 0, 1, 2, 3]]
    assert Visible(7, 7, device, real_bk=real).key_positions.tolist() == [[0, 0, 1, 2, 3, 3, 4]]
    both = Visible(7, 7, device, real_bk=real, document_bk=documents)
    assert both.key_positions[real].tolist() == [0, 1, 0, 1, 2]
    assert Visible(2, 7, device, document_bk=documents).query_positions.tolist() == [[2, 3]]
