"""Heads that look back are found by where their weight lies."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from headstock.errors import UserError
from headstock.instruments.looking_back import KINDS, HeadScores, head_scores, kinds_of_key, twice
from headstock.model.transformer import Transformer, build
from tests.model.cases import ONE_A_MIXER as MIXERS
from tests.model.cases import VOCAB, Case, averaging, every_mixer, some_ids


def looking_at(offset: int, table_qk: Tensor) -> None:
    """Let a head of a table look `offset` tokens back, and at itself where there is no such token."""
    with torch.no_grad():
        for query in range(len(table_qk)):
            table_qk[query, query - offset if query >= offset else query] = 100.0


def test_each_kind_of_head_is_found_and_scores_one() -> None:
    model = build("table", vocab_size=VOCAB, context=16, d_model=8, n_layers=1, n_heads=4)
    table_hqk = model.blocks[0].mixer.table_hqk
    for head, offset in enumerate((1, 8, 7)):
        looking_at(offset, table_hqk[head])
    found = head_scores(model)
    assert found.best("previous")[0] == (0, 0)
    assert found.best("duplicate")[0] == (0, 1)
    assert found.best("induction")[0] == (0, 2)
    for head, kind in enumerate(KINDS):
        assert found.of(kind)[0, head] == pytest.approx(1.0)
        assert found.of(kind)[0, (head + 1) % 3] == pytest.approx(0.0, abs=1e-6)
    assert found.queries == {"previous": 16 * 15, "duplicate": 16 * 8, "induction": 16 * 8}


def test_a_uniform_average_scores_its_chance() -> None:
    found = head_scores(Case("", "uniform").model(), length=5)
    for kind in KINDS:
        torch.testing.assert_close(found.of(kind), torch.full((2, 4), found.chance[kind], dtype=torch.float64))
    assert found.chance["induction"] == pytest.approx(sum(1 / (query + 1) for query in range(5, 10)) / 5)
    assert found.chance["previous"] == pytest.approx(sum(1 / (query + 1) for query in range(1, 10)) / 9)


def plainly(model: Transformer, ids: Tensor) -> dict[str, list[list[float]]]:
    """Add up weight by weight."""
    scores: dict[str, list[list[float]]] = {kind: [] for kind in KINDS}
    for weights in model.weights(ids):
        for kind in KINDS:
            sums, count = torch.zeros(weights.shape[1], dtype=torch.float64), 0
            for row, tokens in enumerate(ids.tolist()):
                for query, token in enumerate(tokens):
                    keys = {
                        "previous": [query - 1] if query else [],
                        "duplicate": [key for key in range(query) if tokens[key] == token],
                        "induction": [key for key in range(1, query) if tokens[key - 1] == token],
                    }[kind]
                    count += bool(keys)
                    sums += sum((weights[row, :, query, key] for key in keys), torch.zeros_like(sums))
            scores[kind].append((sums / count).tolist())
    return scores


@averaging(MIXERS)
def test_scores_are_mean_weights_as_defined(case: Case) -> None:
    model, ids = case.model(), some_ids() % 4
    found = head_scores(model, ids)
    for kind, expected in plainly(model, ids).items():
        torch.testing.assert_close(found.of(kind), torch.tensor(expected, dtype=torch.float64))


@averaging(MIXERS)
@pytest.mark.parametrize("left", [False, True])
def test_padding_changes_no_score(case: Case, left: bool) -> None:
    model, ids = case.model(), some_ids(1, 6) % 4
    padding = torch.zeros(1, 3, dtype=ids.dtype)
    parts, real = [ids, padding], [torch.ones_like(ids), padding]
    padded, mask = (torch.cat(x[::-1] if left else x, dim=1) for x in (parts, real))
    alone, beside = head_scores(model, ids), head_scores(model, padded, real=mask.bool())
    for kind in KINDS:
        torch.testing.assert_close(beside.of(kind), alone.of(kind))
        assert beside.chance[kind] == pytest.approx(alone.chance[kind])
    assert beside.queries == alone.queries


def test_documents_are_looked_at_apart() -> None:
    model, ids = Case("", "softmax+rope").model(), some_ids(2, 5) % 3
    packed = torch.cat([ids[:1], ids[1:]], dim=1)
    documents = torch.tensor([[0] * 5 + [1] * 5])
    apart, together = head_scores(model, ids), head_scores(model, packed, documents=documents)
    for kind in KINDS:
        torch.testing.assert_close(together.of(kind), apart.of(kind))
    assert together.queries == apart.queries


@given(st.lists(st.integers(0, 2), min_size=1, max_size=8))
def test_keys_of_a_kind_stand_before_their_query(tokens: list[int]) -> None:
    found = kinds_of_key(torch.tensor([tokens]))
    for query in range(len(tokens)):
        for key in range(len(tokens)):
            before = key < query
            assert found["previous"][0, query, key] == (key == query - 1)
            assert found["duplicate"][0, query, key] == (before and tokens[key] == tokens[query])
            assert found["induction"][0, query, key] == (before and key > 0 and tokens[key - 1] == tokens[query])


def test_a_window_that_hides_the_first_time_leaves_no_score() -> None:
    found = head_scores(Case("", "softmax,window=4").model(), length=6)
    assert found.queries["induction"] == 0
    assert found.induction.isnan().all()
    assert math.isnan(found.chance["induction"])
    assert not found.previous.isnan().any()
    assert found.draw("induction").title.endswith("no query sees such a key")
    assert "nan" not in found.draw("induction").caption


def test_random_sequences_follow_from_the_seed_and_hold_each_token_once_a_half() -> None:
    model = Case("", "softmax").model()
    ids = twice(model, seed=3)
    assert ids.shape == (16, 12)
    assert torch.equal(ids[:, :6], ids[:, 6:])
    assert all(len(set(row[:6])) == 6 for row in ids.tolist())
    assert torch.equal(ids, twice(model, seed=3))
    assert not torch.equal(ids, twice(model, seed=4))
    same, other = (head_scores(model, seed=seed).induction for seed in (3, 4))
    assert torch.equal(head_scores(model, seed=3).induction, same)
    assert not torch.equal(same, other)


def test_what_cannot_be_scored_is_refused() -> None:
    with pytest.raises(UserError, match="no weights"):
        head_scores(Case("", "lstm").model())
    for length in (1, 7):
        with pytest.raises(UserError, match="choose a length from 2 to 6"):
            head_scores(Case("", "softmax").model(), length=length)
    with pytest.raises(UserError, match="give ids too"):
        head_scores(Case("", "softmax").model(), real=torch.ones(1, 2, dtype=torch.bool))
    with pytest.raises(UserError, match="did you mean 'induction'"):
        found().of("inductive")


def found() -> HeadScores:
    return head_scores(Case("", "softmax").model())


@every_mixer
def test_every_mixer_is_scored_or_refused_and_left_as_it_was(case: Case) -> None:
    model = case.model().train()
    state = torch.random.get_rng_state()
    try:
        assert head_scores(model).induction.shape[0] == 2
    except UserError:
        assert case.name in ("lstm", "delta")
    assert model.training
    assert torch.equal(torch.random.get_rng_state(), state)


def test_it_draws_itself() -> None:
    assert "A uniform average scores" in found().draw("previous").caption
    assert found()._repr_html_().count("<svg") == 3


def test_what_draws_sequences_is_refused_beside_ids_and_where_none_can_be_drawn() -> None:
    model = Case("", "softmax").model()
    for option in ({"length": 5}, {"batch": 0}, {"seed": 9}):
        with pytest.raises(UserError, match="length, batch and seed draw sequences, and ids were given"):
            head_scores(model, some_ids(), **option)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="no two different tokens can stand twice in a context of 3"):
        head_scores(Case("", "softmax").model(context=3))
