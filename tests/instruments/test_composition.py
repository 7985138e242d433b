"""Heads that compose by construction score 1, heads that cannot score 0, and all others as the definition says."""

import math

import pytest
import torch
from torch import Tensor

from headstock.errors import UserError
from headstock.instruments.composition import KINDS, composition_scores
from headstock.model.attention import shared_by_groups
from headstock.model.transformer import Transformer, build
from tests.model.cases import ONE_A_MIXER, SIZES, Case, close

TWO_HEADS = {"vocab_size": 5, "context": 4, "d_model": 8, "n_heads": 2, "n_layers": 2}


def whole_maps(model: Transformer, layer: int) -> tuple[Tensor, Tensor, Tensor]:
    """Give W_Q, W_K a query head and W_O W_V an output head, of width × width, by what each does to unit vectors."""
    mixer, sizes, width = model.blocks[layer].mixer, model.blocks[layer].mixer.heads, model.config.d_model
    eye = torch.eye(width, dtype=torch.float64)

    def by_head(linear: torch.nn.Linear | None, heads: int, size: int) -> Tensor:
        out = eye if linear is None else eye @ linear.weight.T
        return out.view(width, heads, size).permute(1, 2, 0)

    q = by_head(mixer.query, sizes.query_heads, sizes.key_size)
    k = q if mixer.key is None else by_head(mixer.key, sizes.key_heads, sizes.key_size)
    pairs = 2 if model.config.mixer == "differential" else 1
    k = shared_by_groups(k[None], sizes.query_heads, together=pairs)[0]
    v = shared_by_groups(by_head(mixer.value, sizes.value_heads, sizes.value_size)[None], sizes.output_heads)[0]
    ov = []
    for head in range(sizes.output_heads):
        z = torch.zeros(width, sizes.output_heads, sizes.value_size, dtype=torch.float64)
        z[:, head] = v[head].T
        z = z.flatten(1)
        ov.append((z if mixer.output is None else z @ mixer.output.weight.T).T)
    return q, k, torch.stack(ov)


VARIANTS = [
    *(case.variant for case in ONE_A_MIXER if case.name not in ("uniform", "table", "lstm")),
    "softmax,n_kv_heads=2",
    "differential,n_heads=8,n_kv_heads=4",
    "differential2,n_kv_heads=2",
    "softmax,query_key=shared",
    "softmax,query_key=identity,value_map=identity",
    "softmax,output_map=false",
    "differential,query_key=identity,value_map=identity,output_map=false",
    "softmax,norm_placement=post,d_head=3",
]


@pytest.mark.parametrize("variant", VARIANTS)
@torch.no_grad()
def test_scores_are_the_definition_written_out(variant: str) -> None:
    model = Case("", variant).model(n_layers=3)
    found = composition_scores(model)
    maps = [whole_maps(model, layer) for layer in range(3)]
    for later in range(3):
        for earlier in range(3):
            for kind in KINDS:
                here = found.of(kind)[later, :, earlier]
                if earlier >= later:
                    assert here.isnan().all()
                    continue
                q, k, later_ov = maps[later]
                readers = {"q": k.mT @ q, "k": q.mT @ k, "v": later_ov}[kind]
                for reader, row in zip(readers, here, strict=True):
                    for ov, score in zip(maps[earlier][2], row, strict=True):
                        close(score, (reader @ ov).norm() / reader.norm() / ov.norm())


def test_a_head_reads_all_or_nothing_of_what_is_written_where_it_looks() -> None:
    model = build("softmax,value_map=identity,output_map=false", **TWO_HEADS)
    with torch.no_grad():
        model.blocks[1].mixer.query.weight[:, 4:] = 0  # all queries read what head 0 writes: numbers 0 to 3
        model.blocks[1].mixer.key.weight[:, :4] = 0  # all keys what head 1 writes
    found = composition_scores(model)
    assert found.q is not None
    assert found.k is not None
    assert (found.q[1, :, 0, 1] == 0).all()
    assert (found.k[1, :, 0, 0] == 0).all()
    assert (found.q[1, :, 0, 0] > 0.4).all()
    assert found.strongest("k", 1)[0][0] == (0, 1)
    close(found.v[1, :, 0], torch.eye(2, dtype=torch.float64) / 2)  # ‖I_4‖ / (‖I_4‖ ‖I_4‖)


def test_maps_turned_at_random_score_chance() -> None:
    generator = torch.Generator().manual_seed(0)
    model = build("softmax", **{**SIZES, "d_model": 32})
    before = composition_scores(model)
    squares: dict[str, list[Tensor]] = {kind: [] for kind in KINDS}
    output = model.blocks[0].mixer.output.weight
    was = output.detach().clone()
    for _ in range(60):
        turn, _ = torch.linalg.qr(torch.randn(32, 32, generator=generator))
        with torch.no_grad():
            output.copy_(turn @ was)
        found = composition_scores(model)
        for kind in KINDS:
            squares[kind].append(found.of(kind)[1, :, 0].square())
    assert before.chance == pytest.approx(1 / math.sqrt(32))
    for kind in KINDS:
        mean = torch.stack(squares[kind]).mean().sqrt().item()
        assert mean == pytest.approx(before.chance, rel=0.02)


def test_maps_of_a_fresh_model_score_near_chance() -> None:
    found = composition_scores(build("softmax", vocab_size=5, context=4, d_model=64, n_layers=2, n_heads=4))
    for kind in KINDS:
        assert found.of(kind)[1, :, 0].mean().item() == pytest.approx(found.chance, rel=0.05)


@pytest.mark.parametrize("mixer", ["uniform", "table"])
def test_without_queries_there_is_only_v_composition(mixer: str) -> None:
    found = composition_scores(Case("", mixer).model())
    assert found.v.shape == (2, 4, 2, 4)
    with pytest.raises(UserError, match="ask for v"):
        found.of("q")
    assert found._repr_html_().count("<svg") == 1


def test_pairs_have_two_maps_and_one_output() -> None:
    found = composition_scores(Case("", "differential").model())
    assert found.q is not None
    assert found.q.shape == (2, 4, 2, 2)
    assert found.v.shape == (2, 2, 2, 2)


def test_a_head_that_writes_nothing_meets_nothing() -> None:
    model = Case("", "softmax").model()
    with torch.no_grad():
        model.blocks[0].mixer.output.weight[:, :4] = 0
    found = composition_scores(model)
    assert (found.v[1, :, 0, 0] == 0).all()
    assert found.v[1, :, 0, 1:].min() > 0


@pytest.mark.parametrize(
    ("variant", "said"),
    [
        ("lstm", "no maps of queries"),
        ("softmax,n_layers=1", "has one block: two heads compose across at least two"),
        ("softmax,n_layers=0", "has no blocks"),
        ("softmax,residual=replacing", "no two heads meet"),
    ],
)
def test_what_does_not_compose_is_refused(variant: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        composition_scores(Case("", variant).model())


def test_it_draws_itself_by_head_and_by_layer_where_heads_are_too_many() -> None:
    found = composition_scores(Case("", "softmax").model())
    table = found.draw("q").table
    assert [row[0] for row in table.rows] == ["1.0", "1.1", "1.2", "1.3"]
    assert list(table.head)[1:] == ["0.0", "0.1", "0.2", "0.3"]
    assert found._repr_html_().count("<svg") == 3
    many = composition_scores(build("softmax", vocab_size=5, context=4, d_model=64, n_layers=4, n_heads=64))
    assert [row[0] for row in many.draw("v").table.rows] == ["1", "2", "3"]
    with pytest.raises(UserError, match="no 'o' composition"):
        found.of("o")
