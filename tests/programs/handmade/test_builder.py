from dataclasses import replace

import pytest
import torch

from headstock import programs as p
from headstock.errors import UserError
from headstock.programs.blueprint import Reading
from headstock.programs.handmade import aab
from headstock.programs.handmade.builder import Builder, by_hand


def _share():
    """The example of the module's docstring."""
    made = by_hand(["a", "b", "share of a"], vocabulary="ab", context=8)
    made.token("a", "a").token("b", "b")
    made.head(0, "share of a", looks_for=[], offers=[], carries="a", writes="share of a")
    return made.logit("a", "share of a").logit("b", Reading({"share of a": -1}, constant=1))


def test_it_is_a_public_name_of_programs_beside_the_models_made_with_it():
    assert p.by_hand is by_hand
    assert p.handmade.aab is aab


def test_the_example_foretells_by_the_share_of_each_token_so_far():
    logits = _share().build(torch.float64)(torch.tensor([[0, 1, 1, 1]]))[0]
    assert torch.allclose(logits[:, 0], 1 / torch.arange(1, 5, dtype=torch.float64))
    assert torch.allclose(logits.sum(-1), torch.ones(4, dtype=torch.float64))


@pytest.mark.parametrize(
    ("spelt", "reads"),
    [
        ("a", Reading({"a": 1.0})),
        ({"a": 2}, Reading({"a": 2})),
        (Reading({"a": 2}, 3), Reading({"a": 2}, 3)),
    ],
)
def test_a_number_can_be_spelt_in_three_ways_alone_or_in_a_list(spelt, reads):
    for looks_for, offers in ((spelt, [spelt]), ([spelt], spelt)):
        head = _share().head(0, "h", looks_for=looks_for, offers=offers, carries=spelt, writes={"b": 1})
        written = head.blueprint().layers[0].heads[1]
        assert written.looks_for == written.offers == written.carries == (reads,)
        assert written.writes == ({"b": 1},)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda m: m.token("c", "a"), r"^token\('c', ...\): there is no token 'c'"),
        (lambda m: m.token("a", "x"), r"^token\('a', ...\): token 'a' holds column 'x', which is not there"),
        (lambda m: m.token("a", 1), r"^token\('a', ...\): 1 is no weights: write"),
        (lambda m: m.place(8, "a"), r"^place\(8, ...\): the context is 8: choose a position from 0 to 7"),
        (lambda m: m.place(0, "x"), r"^place\(0, ...\): position 0 holds column 'x'"),
        (lambda m: m.column("new", "a"), "^column: column 'a' is named twice"),
        (lambda m: m.logit("b", "x"), r"^logit\('b', ...\): the logit of 'b' reads column 'x'"),
        (lambda m: m.unit(0, "a", "x"), r"^unit\(0, ...\): unit 0 of layer 0 writes column 'x'"),
        (lambda m: m.unit(2, "a", "b"), r"^unit\(2, ...\): there is 1 layer yet: choose 0, or 1 for a new one"),
        (lambda m: m.adds(0, {"x": 1}), r"^adds\(0, ...\): the feed-forward of layer 0 adds column 'x'"),
        (lambda m: m.adds(0, {"x": 1}, by="heads"), r"^adds\(0, ...\): the attention of layer 0 adds column 'x'"),
        (lambda m: m.adds(0, {"a": 1}, by="head"), r"^adds\(0, ...\): by is 'head': choose"),
        (
            lambda m: m.head(0, "h", looks_for="a", offers=[], carries=[], writes=[]),
            r"^head\(0, 'h', ...\): head 'h' of layer 0 looks for 1 number and offers 0",
        ),
        (
            lambda m: m.head(0, "h", looks_for=[], offers=[], carries=["a", "b"], writes="a"),
            r"^head\(0, 'h', ...\): head 'h' of layer 0 carries 2 numbers and writes 1",
        ),
        (
            lambda m: m.head(0, "h", looks_for=[], offers=[], carries=[3], writes="a"),
            r"^head\(0, 'h', ...\): 3 is no weights",
        ),
        (lambda m: m.head(0, "h", looks_for=3, offers=[], carries=[], writes=[]), "3 is no weights"),
        (
            lambda m: m.head("0", "h", looks_for=[], offers=[], carries=[], writes=[]),
            r"^head\('0', 'h', ...\): there is",
        ),
        (lambda m: m.unit(0, Reading(["a"]), {}), r"^unit\(0, ...\): \['a'\] is no weights"),
        (lambda m: m.unit(1.0, "a", "b"), r"^unit\(1.0, ...\): there is 1 layer yet: choose 0"),
        (lambda m: m.place("0", "a"), r"^place\('0', ...\): the context is 8: choose a position from 0 to 7"),
        (lambda m: m.place(True, "a"), r"^place\(True, ...\): the context is 8"),
    ],
)
def test_a_refusal_names_the_call_and_changes_nothing(call, said):
    made = _share()
    before = made.blueprint()
    with pytest.raises(UserError, match=said):
        call(made)
    assert made.blueprint() == before


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"columns": []}, "the model has no columns"),
        ({"vocabulary": "aa"}, "token 'a' is named twice"),
        ({"context": 0}, "the context is 0"),
        ({"context": 1.5}, "the context is 1.5: give a whole number"),
        ({"context": "3"}, "the context is '3': give a whole number"),
        ({"context": None}, "the context is None"),
        ({"d_head": 0}, "d_head is 0"),
        ({"d_head": 1.5}, "d_head is 1.5: give a whole number"),
    ],
)
def test_what_cannot_begin_is_refused_at_once(given, said):
    with pytest.raises(UserError, match=said):
        by_hand(**{"columns": ["a"], "vocabulary": "ab", "context": 1, **given})


def test_what_was_not_said_is_not_taken_for_nothing():
    made = by_hand(["a"], vocabulary="ab", context=2)
    for said, call in (
        (r"token\('a', ...\) is still to be called", lambda: made.token("a", "a")),
        (r"token\('b', ...\) is still to be called", lambda: made.token("b", {})),
        (r"logit\('a', ...\) is still to be called", lambda: made.logit("a", "a")),
        (r"logit\('b', ...\) is still to be called", lambda: made.logit("b", {}).place(0, "a")),
        (r"place\(1, ...\) is still to be called", lambda: made.place(1, {})),
    ):
        with pytest.raises(UserError, match=said):
            made.build()
        call()
    assert made.build().config.position == "learned"


def test_a_tied_model_needs_no_logits_and_takes_none():
    made = by_hand(["a"], vocabulary="a", context=1, tied=True).token("a", {"a": 3})
    assert made.build()(torch.tensor([[0]])).item() == 9
    with pytest.raises(UserError, match=r"logit\('a', ...\): a tied unembedding reads what token\('a', ...\) holds"):
        made.logit("a", "a")


def test_a_layer_below_the_top_can_be_written_on():
    made = _share().unit(1, "share of a", {"b": 1}, name="second").unit(0, Reading({"a": 1}, 1), {"a": 1})
    layers = made.adds(0, {"b": 2}).blueprint().layers
    assert [len(layer.heads) for layer in layers] == [1, 0]
    assert [len(layer.units) for layer in layers] == [1, 1]
    assert layers[0].adds == {"b": 2}
    assert layers[1].units[0].name == "second"


def test_what_the_caller_keeps_is_copied():
    holds = {"a": 1.0}
    made = by_hand(["a"], vocabulary="a", context=1, tied=True).token("a", holds)
    holds["a"] = 5.0
    assert made.build()(torch.tensor([[0]])).item() == 1


def test_any_blueprint_can_be_written_on():
    made = Builder(aab.blueprint()).column("seen")
    made.unit(0, {"token b": 1}, {"seen": 1}).adds(0, {"seen": 1})
    ids = torch.tensor([[0, 0, 1, 0, 0]])
    longer = made.build()
    assert torch.equal(longer(ids), aab.model()(ids))  # no logit reads the new column
    seen = longer.run_with_cache(ids, names="blocks.0.hook_resid_post")[1]["blocks.0.hook_resid_post"][0, :, -1]
    assert seen.tolist() == [1025, 1025, 2, 1, 1025]


def test_a_column_a_head_and_a_unit_written_beside_what_was_there_change_a_logit():
    untied = replace(aab.blueprint(), tied=False, logits=aab.blueprint().readings_of_logits, d_head=16)
    made = Builder(untied).column("all so far").unit(1, Reading({"all so far": 1}, -0.5), {"token b": 4096})
    made.head(1, "is all a", looks_for=[], offers=[], carries="position 0", writes="all so far")
    logits = made.build()(torch.tensor([[0, 0, 1]]))[0]
    assert logits[0].tolist() == [1, 1024 + 2048]  # position 0 sees itself alone: 4096 × (1 − 1/2)
    assert logits[2].tolist() == [1024, 1]  # a third is below a half


def test_a_compiled_model_can_be_written_on_by_hand():
    compiled = p.compile(p.zoo.aab, vocab="ab", max_length=5, causal=True)
    made = Builder(compiled.blueprint).column("first", "starts with a")
    made.place(0, {**compiled.blueprint.places[0], "first": 1})
    a = {column: weight for column, weight in compiled.blueprint.tokens[0].items() if weight}
    column = next(name for name in a if not compiled.blueprint.tokens[1].get(name))
    made.head(
        0, "the first", looks_for=[Reading({}, 1)], offers={"first": 1000}, carries=column, writes="starts with a"
    )
    model = made.build()
    for text, expected in (([0, 1, 0], [1, 1, 1]), ([1, 0, 0], [0, 0, 0])):
        ids = torch.tensor([text])
        logits, cache = model.run_with_cache(ids, names="blocks.0.hook_resid_post")
        assert torch.equal(logits, compiled.model(ids))
        assert (cache["blocks.0.hook_resid_post"][0, :, -1] / a[column]).tolist() == expected
