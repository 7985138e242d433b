"""A mixer of the user's own: found by file or module, held to the same paths, and refused with what to mend."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from headstock.errors import UserError
from headstock.model.accounting import parameters
from headstock.model.cache import Cache
from headstock.model.config import POSITIONS
from headstock.model.mixers import mixer_class, mixer_source
from headstock.model.mixers.softmax import Softmax
from headstock.model.transformer import build
from tests.model.cases import SIZES, TIME, close, some_ids, stirred

WEIGH_ONLY = '''
from headstock.model.attention import masked_softmax
from headstock.model.mixers.base import ScoreMixer

class Mine(ScoreMixer):
    """Softmax again, by `weigh` alone."""

    weights_are = "normalised"

    def weigh(self, scores_bhqk, visible_bhqk):
        return masked_softmax(scores_bhqk, visible_bhqk)
'''


def declaring(line: str) -> str:
    return f"{WEIGH_ONLY}\n    {line}\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    sys.modules.pop("mine", None)


def refusal(reference: str) -> str:
    with pytest.raises(UserError) as caught:
        mixer_class(reference)
    return str(caught.value)


@pytest.mark.parametrize("reference", ["./mine.py:Mine", "mine:Mine"], ids=["file", "module"])
@pytest.mark.parametrize("position", ["learned", "rope", "alibi"])
def test_a_mixer_that_gives_weigh_alone_is_a_whole_mixer(here: Path, reference: str, position: str) -> None:
    (here / "mine.py").write_text(WEIGH_ONLY)
    mine, softmax = (
        stirred(build(f"{mixer}+{position},n_kv_heads=2", **SIZES)).eval() for mixer in (reference, "softmax")
    )
    ids, cache = some_ids(), Cache(2)
    close(mine(ids), softmax(ids))
    close(torch.cat([mine(ids[:, :4], cache=cache), mine(ids[:, 4:], cache=cache)], dim=1), softmax(ids))
    real = torch.arange(TIME).expand(3, -1) >= 2
    close(mine(ids, real=real), softmax(ids, real=real))
    assert parameters(mine.config).total == sum(p.numel() for p in mine.parameters())
    assert mine.config.variant.startswith(reference)
    assert mixer_source(reference) == WEIGH_ONLY


def test_our_own_mixers_have_a_name_and_no_source_to_record() -> None:
    assert mixer_class("softmax") is mixer_class("headstock.model.mixers.softmax:Softmax") is Softmax
    assert mixer_source("softmax") is None


def test_a_file_is_one_class_until_it_is_edited(here: Path) -> None:
    file = here / "mine.py"
    file.write_text(WEIGH_ONLY)
    first = mixer_class("mine.py:Mine")
    assert mixer_class(f"{file}:Mine") is first
    file.write_text(WEIGH_ONLY + "\n    edited = True\n")
    os.utime(file, ns=(1, 1))
    assert mixer_class("mine.py:Mine").edited


@pytest.mark.parametrize(
    ("content", "reference", "sentence"),
    [
        (None, "mine.py:Mine", "there is no file mine.py: a mixer of your own is named as file.py:Class."),
        (WEIGH_ONLY, "mine.py:Mien", "mine.py has no class 'Mien': did you mean 'Mine'?"),
        (WEIGH_ONLY, "mine.py:", "mine.py: is half a name"),
        (WEIGH_ONLY, "mine.py", "mine.py names a file and no class in it: write mine.py:Class."),
        ("", "mine.py:Mine", "mine.py has no class 'Mine': it has no mixer at all."),
        (WEIGH_ONLY, "mine.py:Miner", "mine.py has no class 'Miner': did you mean 'Mine'?"),
        (WEIGH_ONLY, "mine.py:masked_softmax", "mine.py:masked_softmax is no mixer: derive it from"),
        ("class Mine: pass", "mine.py:Mine", "mine.py:Mine is no mixer: derive it from"),
        (WEIGH_ONLY.replace("weigh(", "wiegh("), "mine.py:Mine", "mine.py:Mine is unfinished: give it weigh."),
        ("def (", "mine.py:Mine", "mine.py cannot be read as Python: SyntaxError"),
        ("1 / 0", "mine.py:Mine", "mine.py cannot be imported at line 1: ZeroDivisionError: division by zero."),
        ("import no_such_package", "mine.py:Mine", "ModuleNotFoundError: No module named 'no_such_package'"),
        (None, "no_such_package.mine:Mine", "cannot import no_such_package.mine: No module named 'no_such_package'"),
        ("\nimport sys\nsys.exit(0)", "mine.py:Mine", "mine.py cannot be imported at line 3: SystemExit: 0."),
        ("raise SystemExit", "mine:Mine", "mine cannot be imported: SystemExit."),
        (declaring("refuses = ['rope']"), "mine.py:Mine", "mine.py:Mine has a refuses without reasons: write a dict"),
        (declaring("refuses = {'ropee': 'no'}"), "mine.py:Mine", "refuses 'ropee', which there is not: did you mean"),
        (declaring(f"refuses = dict.fromkeys({POSITIONS}, 'no')"), "mine.py:Mine", "refuses every position: leave one"),
        (None, ":Mine", ":Mine is half a name: a mixer of your own is named as file.py:Class or module:Class."),
        ("def (", "mine:Mine", "mine cannot be imported: SyntaxError"),
        (None, "__main__:Mine", "a mixer defined in __main__ cannot be found again by other processes"),
    ],
)
def test_a_mixer_that_cannot_be_used_is_refused_with_what_to_mend(
    here: Path, content: str | None, reference: str, sentence: str
) -> None:
    if content is not None:
        (here / "mine.py").write_text(content)
    assert sentence in refusal(reference)
    assert refusal(reference) == refusal(reference)  # the second time no half-made module is found


def test_a_mixer_that_breaks_while_it_is_read_can_be_mended_and_read_again(here: Path) -> None:
    (here / "mine.py").write_text("def (")
    refusal("mine.py:Mine")
    (here / "mine.py").write_text(WEIGH_ONLY)
    assert mixer_class("mine.py:Mine").__name__ == "Mine"


def test_numbers_that_a_users_mixer_draws_for_itself_follow_from_the_seed(here: Path) -> None:
    (here / "mine.py").write_text(
        WEIGH_ONLY
        + """
    def __init__(self, config, layer):
        super().__init__(config, layer)
        import torch
        self.own = torch.nn.Parameter(torch.randn(3))
"""
    )
    one, same, other = (build("mine.py:Mine", **SIZES, seed=seed).blocks[0].mixer.own for seed in (1, 1, 2))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
