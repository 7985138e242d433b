"""Mass on spans against dense weights summed by hand; what is on spans and elsewhere is all there is."""

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from headstock.errors import UserError
from headstock.instruments import mass
from headstock.instruments.mass import AttentionMass, attention_mass
from headstock.model.transformer import Transformer, build
from headstock.tasks.base import Marks
from tests.model.cases import BATCH, ONE_A_MIXER, TIME, VOCAB, Case, averaging, close, some_ids

QUERIES = torch.tensor([8, 5, 7])


def spans_of(answer: list[int], noise: list[int]) -> dict[str, Tensor]:
    """Give the same places in every row."""
    places = torch.arange(TIME).expand(BATCH, -1)
    return {name: torch.isin(places, torch.tensor(at)) for name, at in (("answer", answer), ("noise", noise))}


SPANS = spans_of([1, 2], [3, 4, 5])


def small(variant: str, **choices: object) -> Transformer:
    sizes = {"vocab_size": VOCAB, "context": TIME, "d_model": 8, "n_heads": 2, "n_layers": 1}
    return build(variant, **{**sizes, **choices}).double()


def with_scores(scores_hqk: Tensor, variant: str = "softmax") -> AttentionMass:
    model = small(variant)
    with model.hooks([("blocks.0.attn.hook_attn_scores", lambda scores, _: scores_hqk.expand_as(scores).clone())]):
        return attention_mass(model, some_ids(), QUERIES, SPANS)


def test_a_uniform_average_puts_on_a_span_its_part_of_the_keys() -> None:
    found = attention_mass(small("uniform"), some_ids(), QUERIES, SPANS)
    even = {"answer": (2 / 9 + 2 / 6 + 2 / 8) / 3, "noise": (3 / 9 + 3 / 6 + 3 / 8) / 3}
    for span, part in even.items():
        close(found.shares[span], torch.full((1, 2), part, dtype=torch.float64))
        assert found.uniform[span] == pytest.approx(part)
    assert list(found.shares) == list(found.uniform) == ["answer", "noise", "elsewhere"]
    assert found.uniform["elsewhere"] == pytest.approx(1 - sum(even.values()))


@averaging(ONE_A_MIXER)
def test_masses_are_those_of_the_dense_weights_summed_by_hand(case: Case) -> None:
    model, ids = case.model(), some_ids()
    found = attention_mass(model, ids, QUERIES, SPANS)
    for layer, w_bhqk in enumerate(model.weights(ids)):
        for head in range(w_bhqk.shape[1]):
            rows = [w_bhqk[row, head, query].tolist() for row, query in enumerate(QUERIES.tolist())]
            for span, inside in (("answer", {1, 2}), ("noise", {3, 4, 5}), ("elsewhere", {0, 6, 7, 8})):
                on = [[w for key, w in enumerate(row) if key in inside] for row in rows]
                sums = sum(map(sum, on)) / 3
                shares = sum(sum(map(abs, a)) / sum(map(abs, row)) for a, row in zip(on, rows, strict=True)) / 3
                assert float(found.sums[span][layer, head]) == pytest.approx(sums, abs=1e-12)
                assert float(found.shares[span][layer, head]) == pytest.approx(shares, abs=1e-12)
    close(found.empty, torch.zeros_like(found.empty))
    assert found.weights_are == type(model.blocks[0].mixer).weights_are


@averaging(ONE_A_MIXER)
@given(st.lists(st.integers(0, 2), min_size=TIME, max_size=TIME), st.integers(0, TIME - 1))
@settings(max_examples=3)
def test_what_is_on_spans_and_elsewhere_is_the_whole(case: Case, kinds: list[int], query: int) -> None:
    kind = torch.tensor(kinds).expand(BATCH, -1)
    model, ids = case.model(), some_ids()
    found = attention_mass(model, ids, torch.full((BATCH,), query), {"one": kind == 1, "two": kind == 2})
    whole = sum(found.shares.values(), torch.zeros(()))
    close(whole, torch.ones_like(whole))
    close(found.total, torch.stack(model.weights(ids))[..., query, :].sum(-1).mean(1).detach())
    assert sum(found.by_span().values()) == pytest.approx(1)
    assert sum(found.uniform.values()) == pytest.approx(1)


def test_what_two_maps_cancel_is_looked_at_and_adds_up_to_nothing() -> None:
    model = small("differential2")
    scores = torch.zeros(2, TIME, TIME, dtype=torch.float64)
    both = [(f"blocks.0.attn.hook_attn_scores_{n}", lambda s, _: scores.expand_as(s).clone()) for n in (1, 2)]
    with model.hooks([*both, ("blocks.0.attn.hook_lambda", lambda share, _: torch.full_like(share, 0.75))]):
        found = attention_mass(model, some_ids(), QUERIES, SPANS)
    even = attention_mass(small("uniform"), some_ids(), QUERIES, SPANS)
    close(found.shares["noise"], even.shares["noise"])
    close(found.sums["noise"], even.shares["noise"] / 4)
    close(found.total, torch.full_like(found.total, 0.25))
    assert found.by_span("sums")["noise"] == pytest.approx(found.by_span()["noise"] / 4)
    assert "weights of a head add up to 0.25, by span: answer" in repr(found)


def test_a_head_that_weighs_nothing_is_in_no_mean_of_shares() -> None:
    scores = torch.zeros(2, TIME, TIME, dtype=torch.float64)
    scores[0] = -1e4
    found = with_scores(scores, "sigmoid")
    assert found.empty.tolist() == [[1.0, 0.0]]
    assert found.shares["noise"][0].isnan().tolist() == [True, False]
    assert found.by_span()["noise"] == pytest.approx(found.uniform["noise"])
    assert found.sums["noise"].tolist() == [[0.0, pytest.approx((3 / 10 + 3 / 7 + 3 / 9) / 3)]]
    assert "Struck out: the head weighs nothing." in found.draw("noise").caption
    nothing = with_scores(torch.full_like(scores, -1e4), "sigmoid")
    assert nothing._repr_html_() is None
    with pytest.raises(UserError, match="no head weighs anything in any row, so there is no mass to draw"):
        nothing.draw()


def test_a_row_that_weighs_nothing_counts_in_the_sums_and_not_in_the_shares() -> None:
    real = torch.ones(BATCH, TIME, dtype=torch.bool)
    real[2, 7:] = False  # where the third row's query stands
    found = attention_mass(small("uniform"), some_ids(), QUERIES, SPANS, real=real)
    close(found.empty, torch.full_like(found.empty, 1 / 3))
    close(found.shares["answer"], torch.full_like(found.empty, (2 / 9 + 2 / 6) / 2))
    close(found.sums["answer"], torch.full_like(found.empty, (2 / 9 + 2 / 6) / 3))


def test_rows_read_some_at_a_time_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    model, ids = Case("", "differential+alibi").model(), some_ids(5)
    kind = some_ids(5, seed=1) % 3  # other places in each row
    asked = (torch.tensor([8, 5, 7, 6, 6]), {"answer": kind == 1, "noise": kind == 2})
    whole = attention_mass(model, ids, *asked)
    monkeypatch.setattr(mass, "ROWS_AT_A_TIME", 2)
    pieces = attention_mass(model, ids, *asked)
    for span in whole.shares:
        close(pieces.shares[span], whole.shares[span])
        close(pieces.sums[span], whole.sums[span])


def test_a_tasks_marks_are_read_as_they_are() -> None:
    model, ids = Case("", "softmax").model(), some_ids()
    by_marks = attention_mass(model, Marks(ids, QUERIES, SPANS))
    apart = attention_mass(model, ids, QUERIES, SPANS)
    assert by_marks.by_span() == apart.by_span()
    with pytest.raises(UserError, match="marks hold queries and spans already"):
        attention_mass(model, Marks(ids, QUERIES, SPANS), QUERIES)


def test_packed_documents_are_measured_as_rows_of_their_own() -> None:
    model, ids = Case("", "softmax+rope").model(), some_ids(1, 8)
    both = torch.tensor([[0, 0, 0, 0, 0, 1, 0, 0]], dtype=torch.bool)
    packed = attention_mass(
        model, ids, torch.tensor([7]), {"answer": both}, documents=torch.tensor([[0] * 4 + [1] * 4])
    )
    alone = attention_mass(model, ids[:, 4:], torch.tensor([3]), {"answer": both[:, 4:]})
    close(packed.shares["answer"], alone.shares["answer"])
    assert packed.uniform == alone.uniform


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"queries": None}, "ids were given without queries and spans"),
        ({"queries": QUERIES[:2]}, r"queries are torch\.int64 of shape \(2,\) for 3 rows"),
        ({"queries": QUERIES.double()}, r"queries are torch\.float64"),
        ({"queries": QUERIES + 1}, "a query lies outside its row: choose positions from 0 to 8"),
        ({"spans": {}}, "no span was given"),
        ({"spans": {"elsewhere": SPANS["noise"]}}, "'elsewhere' is what no span holds"),
        ({"spans": {"answer": SPANS["answer"].long()}}, r"the span 'answer' is torch\.int64"),
        ({"spans": {"answer": SPANS["answer"][:, :4]}}, r"of shape \(3, 4\), but ids are of shape \(3, 9\)"),
        ({"spans": {"a": SPANS["answer"], "b": SPANS["answer"]}}, "a position is in two spans"),
    ],
    ids=lambda value: "" if isinstance(value, str) else "-".join(value),
)
def test_queries_and_spans_that_do_not_fit_are_refused(changed: dict[str, object], said: str) -> None:
    with pytest.raises(UserError, match=said):
        attention_mass(small("softmax"), some_ids(), **{"queries": QUERIES, "spans": SPANS, **changed})  # type: ignore[arg-type]


def test_a_mixer_without_weights_is_refused() -> None:
    with pytest.raises(UserError, match="lstm has no weights to measure"):
        attention_mass(small("lstm"), some_ids(), QUERIES, SPANS)


def test_masses_draw_themselves_with_the_finding_as_title() -> None:
    found = attention_mass(small("uniform", n_layers=2), some_ids(), QUERIES, SPANS)
    picture = found.draw()
    assert picture.title == "Of a query's weight 0.27 on answer, 0.4 on noise, 0.33 on elsewhere"
    assert [row[0] for row in picture.table.rows] == ["answer", "noise", "elsewhere"]
    assert picture.caption.endswith("Averaged over heads and layers. Means over 3 rows. Weights add up to 1.")
    assert repr(found) == "AttentionMass(answer 0.269, noise 0.403, elsewhere 0.329; weights add up to 1; 3 rows)"
    by_head = found.draw("answer")
    assert by_head.title == "Share on answer by head: 0.27 to 0.27, 0.27 in a uniform average"
    assert [row[0] for row in by_head.table.rows] == ["layer 0", "layer 1"]
    assert "<svg" in (found._repr_html_() or "")
    with pytest.raises(UserError, match="there is no span 'anser': did you mean 'answer'"):
        found.draw("anser")
    with pytest.raises(UserError, match="there is no mass by 'sum': did you mean 'sums'"):
        found.by_span("sum")


def test_sums_that_are_not_one_are_said_under_the_picture() -> None:
    found = with_scores(torch.zeros(2, TIME, TIME, dtype=torch.float64), "softmax1")
    low, high = float(found.total.min()), float(found.total.max())
    assert low == high == pytest.approx((9 / 10 + 6 / 7 + 8 / 9) / 3)
    assert "Weights of a head add up to 0.882, by span: answer" in found.draw().caption
    apart = replace(found, sums={**found.sums, "noise": torch.tensor([[-1.0, 1.0]]).double()})
    assert math.isclose(float(apart.total.max() - apart.total.min()), 2)
    assert "add up to −0.472 to 1.53" in repr(apart)
