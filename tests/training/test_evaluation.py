import math

import pytest
import torch

from headstock.model.transformer import build
from headstock.training import evaluation
from headstock.training.evaluation import evaluate
from tests.training.sources import Counting


@pytest.fixture
def model():
    return build("softmax,dropout_residual=0.5", vocab_size=11, context=6)


@pytest.mark.parametrize("size", [1, 2, 5, 64])
@pytest.mark.parametrize("scored", [None, (3,)])
def test_a_score_does_not_depend_on_the_batch_size_it_is_computed_with(model, size, scored, monkeypatch):
    source = Counting(scored=scored)
    expected = evaluate(model, source)
    monkeypatch.setattr(evaluation, "CHUNK_NUMBERS", 7)
    assert evaluate(model, source, size=size) == pytest.approx(expected, rel=1e-6)


def test_evaluating_is_deterministic_though_the_model_drops_and_leaves_its_mode_alone(model):
    model.train()
    assert evaluate(model, Counting()) == evaluate(model, Counting())
    assert model.training


def test_the_metrics_are_those_of_a_hand_count(model):
    source = Counting(scored=(1, 4))
    source.bytes_per_token = torch.arange(11, dtype=torch.float64) + 1
    model.eval()
    nats, right, count, text_bytes = 0.0, 0, 0, 0.0
    for batch in source.evaluation(size=1):
        log_p = model(batch.inputs).detach().log_softmax(-1)[0]
        for place in (1, 4):
            target = int(batch.targets[0, place])
            nats -= float(log_p[place, target])
            right += int(log_p[place].argmax()) == target
            count += 1
            text_bytes += target + 1
    found = evaluate(model, source)
    assert found["loss"] == pytest.approx(nats / count, rel=1e-5)
    assert found["perplexity"] == pytest.approx(math.exp(nats / count), rel=1e-5)
    assert found["accuracy"] == right / count
    assert found["bits_per_byte"] == pytest.approx(nats / math.log(2) / text_bytes, rel=1e-5)


def test_bits_per_byte_are_given_for_text_alone(model):
    assert "bits_per_byte" not in evaluate(model, Counting())
