"""An explanation says, for each expression, what the program gives and what the model holds, and where that stands."""

import re
from dataclasses import replace
from fractions import Fraction
from html.parser import HTMLParser
from itertools import pairwise

import pytest
import torch

from headstock import programs as p
from headstock.errors import UserError
from headstock.programs.compiled import Compiled
from headstock.programs.compiler.quantities import Affine, Quantity
from headstock.programs.explaining import dissecting
from headstock.programs.explaining.dissecting import FOLDED
from headstock.programs.explaining.explaining import explained
from headstock.programs.explaining.explanation import Explanation, weight_as_text
from headstock.programs.saving.record import of_the_zoo
from tests.programs.some_compiled import (
    compiled_adder,
    compiled_flag,
    compiled_mean,
    compiled_repeat,
    compiled_sort,
    trained,
)

SEQUENCES = [(compiled_sort, "cab"), (compiled_mean, [10, 1, 2, 2]), (compiled_flag, ["word", "none"])]
SEQUENCES += [(compiled_repeat, "ba|bb"), (compiled_sort, "b"), (compiled_adder, "1+0=")]


def _explain(compiled: Compiled, weights, sequence) -> Explanation:
    """Explain a model with other weights than the compiled one, which is left as it is."""
    model = compiled.blueprint.build()
    model.load_state_dict(weights)
    certified = compiled.model.state_dict()
    return explained(compiled.record, model, sequence, program=compiled.program.output, certified=certified)


@pytest.mark.parametrize(("make", "sequence"), SEQUENCES)
def test_the_model_holds_what_the_program_says_for_every_expression(make, sequence) -> None:
    compiled = make()
    found = compiled.explain(sequence)
    right = p.interpret(compiled.program, sequence, causal=compiled.domain.causal)
    assert list(found.output) == right == list(found.expressions[-1].program)
    assert found.agrees
    assert not found.moved
    held = [one for one in found.expressions if one.model is not None]
    assert held[-1] is found.expressions[-1]
    for one in held:
        assert one.model == one.program, one.name
        assert [type(value) for value in one.model] == [type(value) for value in one.program]
        assert not any(one.moved)


def test_each_expression_has_its_name_its_line_and_where_it_stands() -> None:
    found = compiled_sort().explain("cab")
    assert [one.name for one in found.expressions] == ["tokens", "indices", "rank", "output"]
    rank = found["rank"]
    assert rank.program == (2, 0, 1)
    assert re.fullmatch(r"ordering\.py:\d+", rank.line)
    assert rank.source.startswith("rank = p.width(")
    assert "column" in rank.where
    assert "layer 0" in rank.how
    output = found["output"]
    assert "head 0 (pick)" in output.how
    assert output.source.startswith("return p.aggregate(")
    assert (found["tokens"].line, found["tokens"].how) == ("", "embedding")
    with pytest.raises(KeyError):
        found["other"]


@pytest.mark.parametrize(("make", "sequence"), SEQUENCES)
def test_a_heads_table_is_the_models_weights(make, sequence) -> None:
    compiled = make()
    found = compiled.explain(sequence)
    (read,) = compiled.readout.read([sequence])
    ids, _ = compiled.readout.ids_of([read])
    weights = [weights_bhqk[0].double() for weights_bhqk in compiled.model.weights(ids)]
    assert len(found.heads) == sum(len(layer.heads) for layer in compiled.blueprint.layers)
    assert list(found.labels) == [compiled.readout.names[token] for token in ids[0].tolist()]
    for head in found.heads:
        here = torch.tensor(head.weights, dtype=torch.float64)
        assert torch.allclose(here, weights[head.part.layer][head.part.number], atol=1e-6)
        assert head.part.lines
        assert head.part.name == compiled.blueprint.layers[head.part.layer].heads[head.part.number].name


@pytest.mark.parametrize("make", [compiled_sort, compiled_repeat, compiled_adder], ids=lambda make: make.__name__)
def test_every_unit_and_column_is_told_once(make) -> None:
    compiled = make()
    found = compiled.explain(compiled.domain.vocabulary[:2])
    units = [(part.layer, place) for part in found.units for place in range(part.first, part.last + 1)]
    layers = compiled.blueprint.layers
    assert units == [(layer, place) for layer, made in enumerate(layers) for place in range(len(made.units))]
    assert [column.name for column in found.columns] == list(compiled.blueprint.columns)
    for layer in range(found.n_layers):
        lines = {line for head in found.heads if head.part.layer == layer for line in head.part.lines}
        lines |= {part.line for part in found.units if part.layer == layer and part.line}
        assert set(found.lines_of_layer(layer)) == lines
        assert lines
    for column in found.columns:
        spans = [(held.since, held.until) for held in column.holds]
        for (_, until), (since, _) in pairwise(spans):
            assert until is not None
            assert until <= since


def test_what_training_has_moved_is_named_by_its_line() -> None:
    compiled = compiled_sort()
    found = _explain(compiled, trained(compiled), "cab")
    (moved,) = found.moved
    assert moved.largest == pytest.approx(0.25)
    assert moved.part.startswith("layer 0 units 0-")
    assert moved.line == compiled.explain("cab")["rank"].line
    assert "not those that were certified" in str(found)
    assert moved.part in str(found)


def test_a_number_that_moved_is_shown_and_a_value_that_differs_is_marked() -> None:
    compiled = compiled_sort()
    unit = next(
        place for place, unit in enumerate(compiled.blueprint.layers[0].units) if not unit.name.startswith("clears")
    )
    weights = {name: weight.clone() for name, weight in compiled.model.state_dict().items()}
    weights["blocks.0.feedforward.into.bias"][unit] += 40.0
    found = _explain(compiled, weights, "cab")
    assert not found.agrees
    rank = found["rank"]
    assert any(rank.moved)
    assert any(rank.differs)
    place = rank.differs.index(True)
    assert rank.off[place] > 0.5
    row = next(line for line in str(found).splitlines() if line.startswith("  rank"))
    assert "program" in row
    assert re.search(r"model .*\(\S+\)!", str(found))
    assert "! stands where" in str(found)
    assert 'class="off"' in found._repr_html_()


def test_embedding_head_and_empty_parts_that_moved_are_named() -> None:
    compiled = compiled_adder()
    weights = {name: weight.clone() for name, weight in compiled.model.state_dict().items()}
    last = max(head.layer for head in compiled.record.anatomy.heads)
    (first, *_) = (head for head in compiled.record.anatomy.heads if head.layer == last)
    weights["embed.weight"][0, 0] += 0.5
    weights[f"blocks.{last}.mixer.query.weight"][0, 0] += 0.125
    weights[f"blocks.{last}.mixer.value.weight"][-1, 0] += 0.25  # of the last head, which only the first layer needs
    found = _explain(compiled, weights, "1+0=")
    assert [(one.part, one.line, one.largest) for one in found.moved] == [
        ("embedding of tokens", "", 0.5),
        (f"layer {last} head {compiled.model.config.n_heads - 1}, which was empty", "", 0.25),
        (f"layer {last} head 0, {first.name}", ", ".join(first.lines), pytest.approx(0.125)),
    ]
    assert first.lines


def test_without_the_program_the_model_is_explained_all_the_same(tmp_path) -> None:
    compiled = compiled_mean()
    compiled.save(tmp_path)
    loaded = p.load(tmp_path)
    found, whole = loaded.explain([10, 1, 2]), compiled.explain([10, 1, 2])
    assert "The program's own values are not known" in str(found)
    for one, other in zip(found.expressions, whole.expressions, strict=True):
        assert one == replace(other, program=None)
    assert (found.heads, found.units, found.columns) == (whole.heads, whole.units, whole.columns)
    with torch.no_grad():
        loaded.model.unembed.weight[0] += 1.0
    assert [one.part for one in loaded.explain([10, 1, 2]).moved] == ["unembedding"]


def test_a_program_of_the_zoo_is_explained_from_a_folder_as_it_was_when_compiled(tmp_path) -> None:
    compiled_sort().save(tmp_path)
    found = p.load(tmp_path).explain("cab")
    assert found == compiled_sort().explain("cab")
    assert found["rank"].program == (2, 0, 1)


@pytest.mark.parametrize("change", ["text", "program", "lines"])
def test_a_program_of_the_zoo_whose_lines_have_changed_is_not_taken_for_it(change) -> None:
    record = compiled_sort().record
    assert of_the_zoo(record) is not None
    first, *rest = record.source
    changed = {
        "text": {"source": (replace(first, text=f"{first.text}  # as it was"), *rest)},
        "program": {"program": "mine"},
        "lines": {"source": ()},
    }
    assert of_the_zoo(replace(record, **changed[change])) is None


def test_an_expression_whose_number_nothing_reads_stands_in_no_column() -> None:
    found = p.compile(p.zoo.double_hist, vocab="ab", max_length=3, causal=False).explain("ab")
    assert found["=="].how == found["indices"].how == FOLDED
    assert found.agrees


def test_numbers_of_which_one_is_taken_away_before_the_other_comes_stand_in_no_column() -> None:
    early, late = (Quantity(name, time, Fraction(0), Fraction(1)) for name, time in (("early", 2), ("late", 5)))
    both = Affine({early: Fraction(1), late: Fraction(1)})
    built = p.compile(p.zoo.copy, vocab="ab", max_length=2).built
    for cleared, stands in (({4: [early]}, False), ({5: [early]}, False), ({6: [early]}, True), ({}, True)):
        dissection = dissecting._Dissection(p.tokens, built)
        dissection.until = dissecting._until(replace(built.allocation, clearing=cleared))
        dissection.built = replace(built, allocation=replace(built.allocation, column_of={early: 0, late: 1}))
        assert dissection._stands(both) is stands
        dissection.built = replace(built, allocation=replace(built.allocation, column_of={late: 1}))
        assert not dissection._stands(both)


def test_an_input_outside_the_domain_is_refused() -> None:
    for sequence in ("abz", "aaaa", ""):
        with pytest.raises(UserError, match="the program"):
            compiled_sort().explain(sequence)


def test_a_weight_is_set_as_the_fraction_that_it_is() -> None:
    shown = [weight_as_text(weight, 7) for weight in (0.0, 1.0, 1 / 3, 2 / 7, 0.5000001, 0.4567, 1e-9)]
    assert shown == ["·", "1", "1/3", "2/7", "1/2", "0.457", "·"]


def test_of_long_inputs_the_weights_are_not_set_as_text() -> None:
    compiled = p.compile(p.zoo.shift(1), vocab="ab", max_length=30)
    found = compiled.explain("ab" * 15)
    assert "31 × 31 weights, which are in .heads" in str(found)
    assert "query \\ key" not in str(found)


def test_a_model_of_no_layers_is_explained_too() -> None:
    compiled = p.compile(p.zoo.ab)
    assert not compiled.blueprint.layers
    found = compiled.explain("aba")
    assert found.agrees
    assert list(found.output) == compiled("aba")
    assert "Layers" not in str(found)


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tables = 0
        self.outside: list[str] = []

    def handle_starttag(self, tag, attrs) -> None:
        self.open.append(tag)
        self.tables += tag == "table"
        self.outside += [value for name, value in attrs if name in ("src", "href")]

    def handle_endtag(self, tag) -> None:
        assert self.open.pop() == tag


def test_the_page_is_whole_and_loads_nothing() -> None:
    found = compiled_sort().explain("cab")
    page = found._repr_html_()
    tags = _Tags()
    tags.feed(page)
    assert tags.open == []
    assert tags.outside == []
    assert tags.tables == 4 + len(found.heads)
    assert "prefers-color-scheme:dark" in page
    assert "&lt;start&gt;" in page
    assert "<start>" not in page


def test_names_of_the_same_variable_are_told_apart() -> None:
    total = p.constant(0)
    for letter in "ab":
        total = total + p.width(p.select(p.tokens, letter, "=="))
        doubled = total * 2
    output = total + doubled
    found = p.compile(output, vocab="ab", max_length=3).explain("ab")
    names = [one.name for one in found.expressions]
    assert len(set(names)) == len(names)
    assert {"total", "doubled", "output"} <= set(names)
    assert found.agrees
