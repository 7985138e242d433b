"""The encoder–decoder of the 2017 paper, made of Headstock's parts, learns to write strings backwards."""

import importlib.util
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from headstock.errors import UserError
from headstock.model.initialisation import initialise

ROOT = Path(__file__).parents[2]
FILE = ROOT / "examples" / "encoder_decoder.py"
_spec = importlib.util.spec_from_file_location("encoder_decoder", FILE)
example = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(example)


def model_of(mixer: str = "softmax") -> torch.nn.Module:
    model = example.EncoderDecoder(mixer)
    initialise(model, "fan-in", n_layers=2, seed=0)
    return model


def ran(*options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, FILE, *options], capture_output=True, text=True, timeout=600)


def test_strings_survive_the_way_to_ids_and_back() -> None:
    draws = random.Random(0)
    strings = [example.some_string(draws) for _ in range(50)]
    assert {len(string) for string in strings} == set(range(example.SHORTEST, example.LONGEST + 1))
    assert example.read(example.as_ids(strings)) == strings


@pytest.mark.parametrize("mixer", ["softmax", "differential", "uniform", f"{ROOT}/examples/my_mixer.py:MyMixer"])
def test_the_loss_falls(mixer: str, capsys: pytest.CaptureFixture[str]) -> None:
    losses = [example.train(model_of(mixer), steps, random.Random(0), set()) for steps in (1, 30)]
    assert losses[1] < losses[0] - 0.2
    assert f"step    30   loss {losses[1]:.4f}" in capsys.readouterr().out


def test_shapes_are_those_of_the_answer() -> None:
    model, source = model_of(), example.as_ids(["abcde", "hgfedcbahgfe"])
    memory = model.encode(source)
    assert memory.shape == (2, 13, 64)
    assert model.decode(source[:, :4], memory, source).shape == (2, 4, 11)
    assert model.write(source).shape == (2, 13)


@torch.no_grad()
def test_a_string_is_answered_alike_whatever_pads_it_and_whatever_it_is_read_with() -> None:
    model = model_of()
    together = example.as_ids(["abcde", "hgfedcbahgfe"])
    alone = together[:1, :6]
    logits = model.decode(together, model.encode(together), together)[:1, :6]
    torch.testing.assert_close(logits, model.decode(alone, model.encode(alone), alone), rtol=0, atol=1e-5)


@torch.no_grad()
def test_the_decoder_sees_all_of_the_source_and_nothing_of_what_it_has_yet_to_write() -> None:
    model, source = model_of(), example.as_ids(["abcdefgh"])
    answer, later = torch.tensor([[1, 3, 4, 5]]), torch.tensor([[1, 3, 4, 9]])
    before = model.decode(answer, model.encode(source), source)
    assert torch.equal(model.decode(later, model.encode(source), source)[:, :3], before[:, :3])
    for place in range(8):
        other = source.clone()
        other[0, place] = 3 + (source[0, place] - 2) % 8
        assert not torch.allclose(model.decode(answer, model.encode(other), other)[:, 0], before[:, 0], atol=1e-6)


def test_it_runs_in_miniature_and_says_how_many_it_got_right() -> None:
    done = ran("--steps", "2")
    assert done.returncode == 0, done.stderr
    assert re.search(r"\d+ of \d+ held-out strings written backwards without a mistake: [\d.]+%\n$", done.stdout)


def test_a_mixer_that_cannot_look_across_is_refused_in_a_sentence() -> None:
    with pytest.raises(UserError, match="cannot read another sequence"):
        example.train(model_of("table"), 1, random.Random(0), set())
    done = ran("--mixer", "sofmax")
    assert done.returncode == 1
    assert done.stderr == "unknown mixer 'sofmax': did you mean 'softmax'?\n"


@pytest.mark.full
def test_it_learns_to_write_held_out_strings_backwards() -> None:
    done = ran()
    assert float(re.search(r"([\d.]+)%\n$", done.stdout)[1]) >= 99, done.stdout


@pytest.mark.parametrize("steps", ["0", "-3"])
def test_no_steps_at_all_are_refused_in_a_sentence(steps: str) -> None:
    done = ran(f"--steps={steps}")
    assert done.returncode == 2
    assert done.stderr.endswith(f"error: --steps is {steps}: give 1 or more.\n")
