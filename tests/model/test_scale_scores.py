"""With scale_scores=false scores are q·k: on every path, by the formula, and never in vain."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from headstock.conformance.suite import check_mixer
from headstock.errors import UserError
from headstock.model import blockwise
from headstock.model.attention import dot_products, masked_softmax
from headstock.model.cache import Cache
from headstock.model.mixers import mixer_class, mixer_names
from headstock.model.transformer import build
from headstock.model.visibility import Visible
from tests.model.cases import SIZES, TIME, Case, close, some_ids

ACCEPTING = [mixer for mixer in mixer_names() if "scale_scores" not in mixer_class(mixer).refuses]
REFUSING = {
    "uniform": "all its scores are 0",
    "table": "its scores are no dot products but learned as they are",
    "linear": "it has no score to divide",
    "delta": "it has no score to divide",
    "retention": "its norm would undo it",
    "lstm": "it has no scores",
}
every_accepting = pytest.mark.parametrize("mixer", ACCEPTING)


def test_each_mixer_accepts_it_or_refuses_it_with_its_reason() -> None:
    assert set(mixer_names()) == {*ACCEPTING, *REFUSING}
    for mixer, reason in REFUSING.items():
        with pytest.raises(UserError, match=f"{mixer} cannot use scale_scores=false: {reason}; leave scale_scores out"):
            build(mixer, **SIZES, scale_scores=False)
        build(mixer, **SIZES, scale_scores=True)


@pytest.mark.parametrize("position", ["rope", "alibi"])
@pytest.mark.parametrize("blocks", [False, True], ids=["at-once", "in-blocks"])
@every_accepting
def test_paths_agree_without_the_division(
    mixer: str, blocks: bool, position: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if position in mixer_class(mixer).refuses:
        position = "none"
    model, ids = Case(mixer, f"{mixer}+{position},scale_scores=false").model(), some_ids()
    if blocks:
        monkeypatch.setattr(blockwise, "SHORTEST", 2)
        monkeypatch.setattr(blockwise, "BLOCK", 4)
    real = torch.arange(TIME) >= torch.tensor([[0], [4], [8]])
    results = []
    with torch.no_grad():
        for model.plain in (False, True):
            results.append(torch.cat([model(ids)[real], model(ids, real=real)[real]]))
        cache, model.plain = Cache(2), False
        cached = torch.cat([model(piece, cache=cache) for piece in ids.split([4, 1, 4], dim=1)], dim=1)
    close(*results)
    close(cached[real], results[0][: int(real.sum())])


@every_accepting
def test_it_is_felt_and_is_the_same_as_queries_that_are_longer_by_the_root_of_their_width(mixer: str) -> None:
    ids = some_ids()
    free = Case(mixer, f"{mixer}+none,scale_scores=false,d_head=6").model()
    scaled = Case(mixer, f"{mixer}+none,d_head=6").model()
    with torch.no_grad():
        assert (free(ids) - scaled(ids)).abs().max() > 1e-4
        for block in scaled.blocks:
            block.mixer.query.weight.mul_(math.sqrt(6))
        close(free(ids), scaled(ids))


@pytest.mark.parametrize("cap", [None, 0.7])
def test_the_weights_of_softmax_are_those_of_the_formula(cap: float | None) -> None:
    said = "" if cap is None else f",soft_cap={cap}"
    model = Case("free", f"softmax+none,scale_scores=false,n_layers=1{said}").model()
    ids, mixer = some_ids(), model.blocks[0].mixer
    with torch.no_grad():
        x = model.blocks[0].mixer_norm(model.embed(ids))
        q, k = (part(x).unflatten(-1, (4, -1)).transpose(1, 2) for part in (mixer.query, mixer.key))
        scores = q @ k.mT
        scores = scores if cap is None else cap * (scores / cap).tanh()
        expected = masked_softmax(scores, torch.ones(TIME, TIME, dtype=torch.bool).tril()[None, None])
        close(model.weights(ids)[0], expected)


def test_a_norm_of_queries_does_not_undo_it() -> None:
    ids = some_ids()
    free, scaled = (
        Case("normed", f"softmax,qk_norm=rmsnorm,scale_scores={said}").model()(ids) for said in ("false", "true")
    )
    assert (free - scaled).abs().max() > 1e-4


@given(width=st.sampled_from([1, 4, 16, 64, 256]), seed=st.integers(0, 9))
def test_the_variance_of_scores_grows_with_the_head_unless_it_is_divided(width: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    q, k = torch.randn(2, 4, 8, 64, width, dtype=torch.float64, generator=generator)
    scaled = dot_products(q, k, Visible(64, 64, q.device))
    free = dot_products(q * math.sqrt(width), k, Visible(64, 64, q.device))  # as the shell hands them over
    assert scaled.var() == pytest.approx(1, rel=0.25)
    assert free.var() == pytest.approx(width, rel=0.25)


def test_conformance_tries_the_choice_on_who_accepts_it_and_names_who_refuses_it() -> None:
    def found(variant: str) -> str:
        (outcome,) = (
            o for o in check_mixer(variant, only=["choices are read"]).outcomes if o.check == "choices are read"
        )
        return outcome.found

    assert "scale_scores" in found("softmax+rope").split("refused:")[0]
    assert "scale_scores" in found("linear+none").split("refused:")[1]
