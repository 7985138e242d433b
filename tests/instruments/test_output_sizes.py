"""Sizes are root mean squares of what heads average, hand over and write."""

import pytest
import torch
from torch import Tensor

from headstock.errors import UserError
from headstock.instruments.output_sizes import head_sizes
from headstock.model.mixers import mixer_class
from headstock.model.norms import RMSNorm
from tests.model.cases import ONE_A_MIXER, Case, close, every_mixer, some_ids


def rms(x_bqhd: Tensor) -> Tensor:
    return x_bqhd.detach().square().mean((0, 1, 3)).sqrt()


@every_mixer
def test_sizes_are_those_of_the_values_that_hooks_show(case: Case) -> None:
    model, ids = case.model(), some_ids()
    found = head_sizes(model, ids)
    _, cache = model.run_with_cache(ids)
    for layer in (0, 1):
        close(found.output[layer], rms(cache["z", layer]))
        close(found.written[layer], rms(cache["result", layer]))
    assert found.tokens == ids.numel()
    assert (found.average is None) == (mixer_class(case.variant).weights_are == "none")
    if found.average is not None:
        w, v = cache["pattern", 1], cache["v", 1]
        v = v.repeat_interleave(w.shape[1] // v.shape[2], 2)
        close(found.average[1], rms(torch.einsum("bhqk,bkhd->bqhd", w, v)))


@pytest.mark.parametrize("variant", ["softmax", "softmax,n_kv_heads=2", "softmax1", "differential2", "linear"])
def test_a_head_without_a_norm_hands_over_what_it_averages(variant: str) -> None:
    found = head_sizes(Case("", variant).model(), some_ids())
    assert found.average is not None
    close(found.average, found.output)


def test_a_pairs_norm_brings_all_to_one_size() -> None:
    model, ids = Case("", "differential").model(), some_ids()
    with torch.no_grad():
        for layer, block in enumerate(model.blocks):
            block.mixer.value.weight[:8] *= 100  # the first pair's values
            norms = [part for part in block.mixer.modules() if isinstance(part, RMSNorm)]
            for one in norms:
                one.weight.fill_(1.0)
            assert len(norms) == 1, layer
    found = head_sizes(model, ids)
    assert found.average is not None
    assert (found.average[:, 0] > 20 * found.average[:, 1]).all()
    constant = torch.tensor([block.mixer.lambda_init for block in model.blocks], dtype=torch.float64)
    close(found.output, (1 - constant)[:, None].expand(2, 2), 1e-3)


@pytest.mark.parametrize("case", ONE_A_MIXER, ids=str)
def test_padding_counts_for_nothing(case: Case) -> None:
    model, ids = case.model(), some_ids(1)
    real = torch.tensor([[False] * 2 + [True] * 7])
    padded, alone = head_sizes(model, ids, real=real), head_sizes(model, ids[:, 2:])
    for what in ("average", "output", "written"):
        if getattr(alone, what) is not None:
            close(getattr(padded, what), getattr(alone, what), 1e-9)


def test_sizes_draw_themselves_and_refuse_what_is_not_there() -> None:
    found = head_sizes(Case("", "differential").model(), some_ids())
    said = {"average of values", "to the output map", "to the residual"}
    assert {row[0] for row in found.draw().table.rows} == said
    assert found.draw("written").title.startswith("Size of what is written into the residual: ")
    assert "<svg" in found._repr_html_()
    lstm = head_sizes(Case("", "lstm").model(), some_ids())
    assert len(lstm.draw().table.rows) == 4
    for one, what in ((found, "writen"), (lstm, "average")):
        with pytest.raises(UserError, match=f"no size of '{what}'"):
            one.draw(what)
    with pytest.raises(UserError, match="no real token"):
        head_sizes(Case("", "softmax").model(), some_ids(1), real=torch.zeros(1, 9, dtype=torch.bool))
