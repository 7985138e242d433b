import pytest
import torch

from headstock import tasks
from headstock.model.transformer import Transformer, build
from headstock.studies.base import Measured, Opened
from headstock.studies.chapter.crossing import STUDY, answers, circuit
from headstock.tasks.crossing import ADJECTIVES, DECIDING
from headstock.training.config import TrainingConfig
from headstock.training.evaluation import evaluate
from headstock.training.loop import train
from tests.studies.declared import published

TASK = tasks.get("crossing")


def tiny(variant: str, seed: int = 0) -> Transformer:
    return build(variant, seed=seed, vocab_size=TASK.vocab_size, context=TASK.context, d_model=32, n_heads=2)


@pytest.fixture(scope="module")
def solved() -> Transformer:
    """Give two blocks that have learnt the task."""
    model = build("softmax", vocab_size=TASK.vocab_size, context=TASK.context, d_model=64, init="torch")
    train(model, TASK, TrainingConfig(steps=600, evaluate_every=600))
    return model


@pytest.fixture(scope="module")
def logits_before(solved: Transformer) -> torch.Tensor:
    with torch.no_grad():
        return solved(next(iter(TASK.evaluation())).inputs)  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def measured(solved: Transformer, logits_before: torch.Tensor) -> Measured:
    """Give what the study measures of them."""
    return circuit(Opened("", 0, "full", solved, TASK))


def test_the_published_figures_stand_letter_for_letter() -> None:
    assert published(STUDY, "right") == {
        "average": "27.9 %", "average-block": "27.9 %", "one-block": "92.7 %", "two-blocks": "100 %",
        "leaky-average": "100.0 %", "leaky-one-block": "91.7 %",
    }  # fmt: skip
    assert published(STUDY, "first_noun_in_first") == {"two-blocks": "0.70"}
    assert published(STUDY, "adjective_in_second") == {"two-blocks": "1.00"}
    assert published(STUDY, "second_noun_in_second") == {"two-blocks": "0.49"}


def test_what_is_right_is_the_tasks_own_figure() -> None:
    model = tiny("softmax")
    train(model, TASK, TrainingConfig(steps=60, evaluate_every=60))
    found = answers(Opened("", 0, "full", model, TASK)).figures
    assert found["right"] == pytest.approx(evaluate(model, TASK)["accuracy"])
    assert found["right"] == pytest.approx((found["right_crosser"] + found["right_crossed"]) / 2)
    assert 0 < found["right"] + found["wrong_noun"] <= 1


def test_a_uniform_average_has_the_same_map_for_every_adjective() -> None:
    found = circuit(Opened("", 0, "full", tiny("uniform"), TASK))
    assert found.figures["first_noun_in_first"] == pytest.approx(1 / (DECIDING + 1))
    assert found.figures["first_noun_in_first_moves"] == pytest.approx(0, abs=1e-6)
    assert found.figures["second_moves"] == pytest.approx(0, abs=1e-6)
    assert len(found.details["maps"][0]) == len(ADJECTIVES)


def test_two_blocks_that_solve_it_need_both(measured: Measured) -> None:
    found = measured.figures
    assert found["right"] > 0.95
    assert found["right_without_first"] < 0.75
    assert found["right_without_second"] < 0.75
    assert found["second_moves"] > 2 * found["first_noun_in_first_moves"]


def test_what_a_block_gives_is_needed_somewhere_and_not_where_nothing_is_known_yet(measured: Measured) -> None:
    places = measured.details["without_place"]
    assert [len(of_layer) for of_layer in places] == [DECIDING + 1] * 2
    assert min(min(both) for both in places[1]) < 0.75
    assert min(places[1][1]) > 0.95


def test_measuring_leaves_the_model_as_it_was(
    solved: Transformer, logits_before: torch.Tensor, measured: Measured
) -> None:
    with torch.no_grad():
        assert torch.equal(solved(next(iter(TASK.evaluation())).inputs), logits_before)
