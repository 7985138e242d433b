"""The example of a mixer of one's own: short, right, and compared by the command that its first lines give."""

import inspect
from pathlib import Path

import pytest
import torch

import headstock as hs
from headstock.cli import main
from headstock.model.accounting import parameters
from headstock.model.mixers import mixer_class
from headstock.model.transformer import Transformer
from tests.model.cases import SIZES, TIME, close, some_ids, stirred

ROOT = Path(__file__).parents[2]
MY_MIXER = f"{ROOT / 'examples' / 'my_mixer.py'}:MyMixer"


def models(*mixers: str) -> list[Transformer]:
    return [stirred(hs.build(mixer, **SIZES)).eval() for mixer in mixers]


def test_it_is_under_forty_lines() -> None:
    assert len((ROOT / "examples" / "my_mixer.py").read_text(encoding="utf-8").splitlines()) < 40


def test_it_conforms() -> None:
    report = hs.check_mixer(f"{MY_MIXER}+alibi")
    assert report.passed, report.table()


@pytest.mark.full
def test_it_conforms_at_every_position() -> None:
    report = hs.check_mixer(MY_MIXER)
    assert report.passed, report.table()


def test_it_can_be_compared_by_the_command_in_its_first_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    said = inspect.getdoc(inspect.getmodule(mixer_class(MY_MIXER)))
    command = next(line.split()[1:] for line in said.splitlines() if line.strip().startswith("headstock compare"))
    assert main([*command, "--steps", "2", "--seeds", "2", "--jobs", "1", "--out", "compared"]) == 0
    assert "MyMixer" in capsys.readouterr().out
    assert (tmp_path / "compared" / "report.html").exists()


@pytest.mark.parametrize(("a", "other"), [(-60.0, "softmax"), (60.0, "uniform")])
def test_its_ends_are_softmax_and_the_plain_average(a: float, other: str) -> None:
    mine, same = models(MY_MIXER, other)
    same.load_state_dict({name: mine.state_dict()[name] for name in same.state_dict()})
    with torch.no_grad():
        for block in mine.blocks:
            block.mixer.a.fill_(a)
    close(mine(some_ids()), same(some_ids()))


def test_no_visible_key_weighs_less_than_the_averages_share() -> None:
    (mine,) = models(MY_MIXER)
    floor = torch.sigmoid(mine.blocks[0].mixer.a)[:, None, None] / torch.arange(1, TIME + 1)[:, None]
    weights, seen = mine.weights(some_ids())[0], torch.ones(TIME, TIME, dtype=torch.bool).tril()
    assert (weights[..., seen] >= floor.expand(-1, -1, TIME)[..., seen]).all()
    assert weights[..., ~seen].count_nonzero() == 0
    close(weights.sum(-1), torch.ones_like(weights[..., 0]))


def test_its_numbers_are_counted_and_trained() -> None:
    (mine,) = models(MY_MIXER)
    assert parameters(mine.config).total == sum(p.numel() for p in mine.parameters())
    mine(some_ids()).square().sum().backward()
    assert all(block.mixer.a.grad.count_nonzero() == SIZES["n_heads"] for block in mine.blocks)
