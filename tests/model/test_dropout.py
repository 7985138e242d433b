"""Dropout: none in evaluation, drawn from (seed, step, row) alone, in its three places, and right on average."""

import pytest
import torch
from torch import Tensor

from headstock.model.dropout import DropoutDraws, dropout
from headstock.model.mixers import mixer_class
from headstock.model.transformer import Transformer
from tests.model.cases import ONE_A_MIXER, TIME, VOCAB, Case, close, every_mixer, some_ids

PLACES = ("attention", "residual", "embedding")
CPU = torch.device("cpu")
ALL_BUT_CERTAIN = 1 - 1e-12  # with a seed, as certain as 1, which a config refuses


class Noted(DropoutDraws):
    """Draws that remember the shapes they were asked for."""

    def __init__(self, seed: int, step: int, rows: range) -> None:
        super().__init__(seed, step, rows, CPU)
        self.shapes: list[tuple[int, ...]] = []

    def keep(self, like: Tensor, p: float) -> Tensor:
        self.shapes.append(tuple(like.shape))
        return super().keep(like, p)


def places(case: Case) -> tuple[str, ...]:
    """Where this case's mixer lets dropout act."""
    return tuple(p for p in PLACES if f"dropout_{p}" not in mixer_class(case.config().mixer).refuses)


def dropping(case: Case, p: float, *places: str) -> Transformer:
    return case.model(**{f"dropout_{place}": p for place in places}).train()


def draws(rows: range = range(3), seed: int = 0, step: int = 0) -> DropoutDraws:
    return DropoutDraws(seed, step, rows, CPU)


@every_mixer
def test_evaluation_drops_nothing(case: Case) -> None:
    model = dropping(case, 0.5, *places(case)).eval()
    assert torch.equal(model(some_ids()), case.model()(some_ids()))
    assert torch.equal(model(some_ids(), draws=draws()), model(some_ids()))


@every_mixer
def test_a_batch_cut_in_pieces_drops_what_the_whole_drops(case: Case) -> None:
    model, ids = dropping(case, 0.4, *places(case)), some_ids(batch=6)
    whole = model(ids, draws=draws(range(10, 16)))
    for cut in (1, 2, 4):
        first = model(ids[:cut], draws=draws(range(10, 10 + cut)))
        rest = model(ids[cut:], draws=draws(range(10 + cut, 16)))
        close(torch.cat([first, rest]), whole)


@every_mixer
def test_draws_follow_from_seed_step_and_row(case: Case) -> None:
    model, ids = dropping(case, 0.4, *places(case)), some_ids(batch=1).expand(3, -1)
    state = torch.get_rng_state()
    once = model(ids, draws=draws())
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(7)
    assert torch.equal(model(ids, draws=draws()), once)
    for other in (draws(seed=1), draws(step=1), draws(range(1, 4))):
        assert not torch.equal(model(ids, draws=other), once)
    assert not torch.equal(once[0], once[1])  # the rows hold the same tokens
    close(model(ids, draws=draws(range(1, 4)))[:2], once[1:])


@pytest.mark.parametrize(
    ("case", "place"), [pytest.param(case, p, id=f"{case}-{p}") for case in ONE_A_MIXER for p in places(case)]
)
def test_dropout_acts_in_each_of_its_places_with_and_without_draws(case: Case, place: str) -> None:
    model = dropping(case, 0.5, place)
    undropped = case.model()(some_ids())
    assert not torch.allclose(model(some_ids(), draws=draws()), undropped)
    assert not torch.allclose(model(some_ids()), undropped)


@pytest.mark.parametrize("with_draws", [True, False], ids=["draws", "torch's-generator"])
@every_mixer
def test_everything_dropped_leaves_what_the_place_does_not_touch(case: Case, with_draws: bool) -> None:
    ids, chosen = some_ids(), draws() if with_draws else None
    residual = dropping(case, ALL_BUT_CERTAIN, "residual")
    untouched = residual.embed(ids) + residual.position(torch.arange(TIME))
    close(residual(ids, draws=chosen), residual.logits(residual.final_norm(untouched)))

    embedding = dropping(case, ALL_BUT_CERTAIN, "embedding")
    close(embedding(ids, draws=chosen), embedding((ids + 3) % VOCAB, draws=chosen))  # no token is told from another

    if "attention" not in places(case):
        return
    attention = dropping(case, ALL_BUT_CERTAIN, "attention")
    seen: list[Tensor] = []
    with attention.blocks[0].mixer.register_forward_hook(lambda _, __, output: seen.append(output)):
        attention(ids, draws=chosen)
    assert seen[0].count_nonzero() == 0


@pytest.mark.parametrize(("variant", "maps"), [("softmax", 4), ("differential", 2), ("uniform", 4)])
def test_attention_dropout_is_one_mask_on_the_weights_of_each_output_head(variant: str, maps: int) -> None:
    model, noted = dropping(Case(variant, variant), 0.3, "attention"), Noted(0, 0, range(3))
    model(some_ids(), draws=noted)
    assert noted.shapes == [(3, maps, TIME, TIME)] * 2


@pytest.mark.parametrize("with_draws", [True, False], ids=["draws", "torch's-generator"])
@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_dropout_keeps_the_expected_value(p: float, with_draws: bool) -> None:
    kept = dropout(torch.ones(4, 50_000), p, draws(range(4)) if with_draws else None)
    assert kept.unique().tolist() == pytest.approx([0, 1 / (1 - p)])
    sigma = (p / (1 - p) / kept.numel()) ** 0.5
    assert abs(kept.mean().item() - 1) < 4 * sigma


def test_rows_and_draws_must_be_as_many() -> None:
    with pytest.raises(ValueError, match="zip"):
        draws(range(2)).keep(torch.ones(3, 4), 0.5)
