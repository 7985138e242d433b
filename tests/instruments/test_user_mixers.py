"""A mixer of the user's own is measured as far as it shows itself, and refused in a sentence beyond."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from headstock.errors import UserError
from headstock.instruments.ablation import ablate_heads, ablated
from headstock.instruments.attribution import logit_attribution
from headstock.instruments.composition import composition_scores
from headstock.instruments.lens import logit_lens
from headstock.instruments.looking_back import head_scores
from headstock.instruments.patching import patch_heads, patch_positions
from headstock.instruments.redundancy import head_redundancy
from headstock.model.transformer import Transformer
from tests.model.cases import Case, close, some_ids

OWN = '''
from headstock.model.attention import masked_softmax
from headstock.model.mixers.base import Mixer, ScoreMixer

class Shifted(Mixer):
    """Gives each token the one before it."""

    weights_are = "none"

    def forward(self, x_bqm, frame):
        return x_bqm.roll(1, 1)

    def weights(self, x_bqm, frame):
        raise NotImplementedError

class OwnForward(ScoreMixer):
    """Weighs in a forward of its own, which shows no weights; asked for them, it gives them."""

    weights_are = "normalised"

    def weigh(self, scores_bhqk, visible_bhqk):
        return masked_softmax(scores_bhqk, visible_bhqk)

    def forward(self, x_bqm, frame):
        heads = self.read(x_bqm, frame)
        return self.out(self._averaged(self.weights_of(heads), heads), heads)
'''


@pytest.fixture
def own(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "own_mixers.py").write_text(OWN)
    return str(tmp_path / "own_mixers.py")


def model_of(own: str, name: str) -> Transformer:
    return Case("", f"{own}:{name}").model()


def test_a_mixer_without_heads_is_one_part_of_a_logit(own: str) -> None:
    found = logit_attribution(model_of(own, "Shifted"), some_ids(), 3)
    assert "block 0 attention" in found.parts
    close(found.values.sum(0), found.total, 1e-9)
    with pytest.raises(UserError, match="no part is a head"):
        found.by_head()


def test_a_mixer_without_heads_is_read_at_every_depth_and_position(own: str) -> None:
    model, ids = model_of(own, "Shifted"), some_ids()
    assert len(logit_lens(model, ids).depths) == 5
    other = (ids + 1) % 17
    assert patch_positions(model, ids, other, (1, 2), site="attn_out").effect.isfinite().all()


@pytest.mark.parametrize(
    ("measure", "said"),
    [
        (lambda model, ids: head_scores(model, ids), "no weights"),
        (lambda model, ids: ablate_heads(model, []), "hook_z"),
        (lambda model, ids: ablated(model, [(0, 0)]).__enter__(), "hook_z"),
        (lambda model, ids: patch_heads(model, ids, ids + 1, (1, 2)), r"blocks\.0\.attn\.hook_z"),
        (lambda model, ids: head_redundancy(model, ids), "hook_z"),
        (lambda model, ids: composition_scores(model), "no maps"),
    ],
)
def test_what_needs_heads_is_refused_of_a_mixer_without(own: str, measure, said: str) -> None:
    with pytest.raises(UserError, match=said):
        measure(model_of(own, "Shifted"), some_ids() % 16)


def test_weights_that_are_not_shown_on_the_way_are_asked_for(own: str) -> None:
    mine, ours = model_of(own, "OwnForward"), Case("", "softmax").model()
    mine.load_state_dict(ours.state_dict())
    ids = some_ids() % 4
    torch.testing.assert_close(head_scores(mine, ids).induction, head_scores(ours, ids).induction)
    close(composition_scores(mine).v[1, :, 0], composition_scores(ours).v[1, :, 0])
    alike, expected = (head_redundancy(model, ids).cosine for model in (mine, ours))
    assert alike is not None
    assert expected is not None
    close(alike, expected)
