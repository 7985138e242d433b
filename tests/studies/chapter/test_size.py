import pytest
import torch

from headstock.model.transformer import Transformer
from headstock.studies.chapter.size import FAMILIES, STUDY
from tests.studies.declared import judged, published


def test_every_claim_on_sizes_is_reproduced_but_that_two_thirds_hold_at_every_scale() -> None:
    verdicts = {says: judgement.verdict for says, judgement in judged(STUDY).items()}
    assert {says for says, verdict in verdicts.items() if verdict != "reproduced"} == {
        "Two thirds of a block of Mistral 7B is its feed-forward."
    }
    assert verdicts["Two thirds of a block of Mistral 7B is its feed-forward."] == "not reproduced"


def test_gpt2_small_is_the_sum_that_is_printed() -> None:
    found = {says: judgement.estimate for says, judgement in judged(STUDY, rows=("gpt2",)).items()}
    parts = [found[says] for says in ("Its token embeddings hold 50,257 × 768.", "Its positions hold 1,024 × 768.",
             "Its twelve blocks hold twelve times that.", "Its last norm holds 2d.")]  # fmt: skip
    assert parts == [38_597_376, 786_432, 85_054_464, 1_536]
    assert sum(part for part in parts if part is not None) == 124_439_808
    assert published(STUDY, "total")["gpt2"] == "124,439,808"


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_built_holds_what_it_was_published_with(name: str) -> None:
    _, config, total = FAMILIES[name]
    with torch.device("meta"):
        model = Transformer(config)
    assert sum(parameter.numel() for parameter in model.parameters()) == total
