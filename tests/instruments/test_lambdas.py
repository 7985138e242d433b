"""λ is what the mixer subtracts with: by layer in version 1, by token and head in version 2."""

import pytest
import torch

from headstock.errors import UserError
from headstock.instruments.lambdas import lambda_values
from headstock.model.transformer import build
from tests.model.cases import BATCH, TIME, VOCAB, Case, close, some_ids

V1, V2 = Case("differential", "differential"), Case("differential2", "differential2")
SIZES = {"vocab_size": VOCAB, "context": TIME, "d_model": 16, "n_heads": 4}


def test_the_first_versions_is_one_a_layer_with_and_without_a_text() -> None:
    model = V1.model()
    expected = torch.stack([block.mixer.lambda_now() for block in model.blocks]).detach()
    for found in (lambda_values(model), lambda_values(model, some_ids())):
        close(found.by_layer, expected)
        assert found.initial is not None
        assert found.initial.tolist() == pytest.approx([0.2, 0.8 - 0.6 * 0.7408182206817179])
        assert (found.by_head, found.by_token, found.quantiles) == (None, None, None)


def test_where_each_pair_has_its_own_the_layers_is_their_mean() -> None:
    model = Case("a head", "differential,lambdas=head").model()
    expected = torch.stack([block.mixer.lambda_now() for block in model.blocks]).detach()
    assert expected.shape == (2, 2)
    for found in (lambda_values(model), lambda_values(model, some_ids())):
        assert found.by_head is not None
        close(found.by_head, expected)
        close(found.by_layer, expected.mean(1))


@pytest.mark.parametrize("fixed_at", [0.0, 0.3])
def test_a_fixed_one_is_its_constant(fixed_at: float) -> None:
    model = Case("fixed", f"differential,lambdas=fixed,lambda_init={fixed_at}").model()
    for found in (lambda_values(model), lambda_values(model, some_ids())):
        assert found.by_layer.tolist() == [fixed_at, fixed_at]
        assert found.initial is not None
        assert found.initial.tolist() == [fixed_at, fixed_at]


def test_it_starts_near_its_constant() -> None:
    found = lambda_values(build("differential", **SIZES, n_layers=4))
    assert found.initial is not None
    assert (found.by_layer - found.initial).abs().max() < 0.2
    assert (found.by_layer != found.initial).all()


def test_with_a_text_it_is_what_the_functions_that_wait_make_of_it() -> None:
    model = V1.model()
    with model.hooks([("blocks.1.attn.hook_lambda", lambda value, _: torch.zeros_like(value))]):
        assert lambda_values(model, some_ids()).by_layer[1] == 0
        assert lambda_values(model).by_layer[1] != 0


def test_the_second_versions_is_one_a_token_and_head() -> None:
    model, ids = V2.model(), some_ids()
    found = lambda_values(model, ids)
    _, cache = model.run_with_cache(ids)
    expected = cache.stack("lambda")
    assert found.by_token is not None
    assert found.by_head is not None
    assert found.quantiles is not None
    assert found.by_token.shape == (2, BATCH, TIME, 4)
    close(found.by_token, expected)
    close(found.by_layer, expected.mean((1, 2, 3)))
    close(found.by_head, expected.mean((1, 2)))
    close(found.quantiles[1, 2, 2], expected[1, :, :, 2].flatten().quantile(0.5))
    close(found.quantiles[0, 3, 4], expected[0, :, :, 3].flatten().quantile(0.95))
    assert (found.quantiles.diff(dim=-1) >= 0).all()
    assert found.initial is None


def test_padding_has_none() -> None:
    model, ids = V2.model(), some_ids(1)
    real = torch.tensor([[True] * 6 + [False] * 3])
    padded, alone = lambda_values(model, ids, real=real), lambda_values(model, ids[:, :6])
    for name in ("by_layer", "by_head", "quantiles"):
        close(getattr(padded, name), getattr(alone, name))
    assert padded.by_token is not None
    assert padded.by_token[:, :, 6:].isnan().all()


def test_they_draw_themselves() -> None:
    first, second = lambda_values(V1.model()).draw(), lambda_values(V2.model(), some_ids()).draw()
    assert {row[0] for row in first.table.rows} == {"λ", "λ_init"}
    assert "Band: 5 to 95 % of tokens and heads." in second.caption
    assert second.title.startswith("λ by layer: 0.")
    assert "<svg" in lambda_values(V1.model())._repr_html_()


@pytest.mark.parametrize("variant", ["softmax", "lstm", "differential,n_layers=0"])
def test_who_subtracts_nothing_is_refused(variant: str) -> None:
    with pytest.raises(UserError, match="no λ"):
        lambda_values(build(variant, **SIZES), some_ids())


def test_without_blocks_there_is_no_lambda_whatever_the_mixer() -> None:
    with pytest.raises(UserError, match="has no blocks, so there is no λ"):
        lambda_values(build("differential,n_layers=0", **SIZES), some_ids())


def test_the_second_version_needs_a_text() -> None:
    with pytest.raises(UserError, match="no real token"):
        lambda_values(V2.model(), some_ids(), real=torch.zeros(BATCH, TIME, dtype=torch.bool))
    with pytest.raises(UserError, match="give ids to read"):
        lambda_values(V2.model())
