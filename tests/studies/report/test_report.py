"""The page, the table and the README of whatever a study may have come to."""

import html
import math
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from headstock.studies.readme import as_markdown
from headstock.studies.report import as_fragment, as_html
from headstock.studies.report.strips import limits, strip
from headstock.studies.results import StudyResult
from headstock.studies.scatter import mean_squares
from headstock.studies.writing import basis, tables_of_rows
from tests.studies.report import cases

EMPTY = {"br", "meta", "wbr", "path"}


class Reader(HTMLParser):
    """Checks that elements nest, and gathers attributes and what is read."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.words = ""
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in EMPTY:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.words += data


@cache
def page_of(name: str) -> str:
    return as_html(cases.case(name))


@pytest.fixture(params=cases.CASES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_a_page_is_well_formed_and_asks_for_nothing_from_outside(name: str) -> None:
    page = page_of(name)
    found = {attribute for attribute, _ in Reader(page).attributes}
    assert not found & {"id", "src", "href", "xmlns"}
    assert not [attribute for attribute in found if attribute.startswith("on")]
    assert "<script" not in page
    assert "default-src 'none'" in page
    assert len(page.encode()) < 400_000


def test_the_same_result_gives_the_same_page(name: str) -> None:
    assert as_html(cases.case(name)) == page_of(name)


def test_a_fragments_style_reaches_nothing_outside_it() -> None:
    fragment = as_fragment(cases.case("three seeds"))
    assert cases.case("three seeds")._repr_html_() == fragment
    assert "<body" not in fragment
    found = re.search(r"<style>(.*?)</style>", fragment, re.DOTALL)
    assert found is not None
    rules = re.sub(r"@media[^{]*\{", "", found[1])
    selectors = [one.strip() for rule in re.findall(r"([^{}]+)\{", rules) for one in rule.split(",")]
    assert not [selector for selector in selectors if not re.match(r"\.hs\b", selector)]


def test_the_finding_comes_first_then_verdicts_then_what_they_stand_on() -> None:
    words = Reader(page_of("three seeds")).words
    result = cases.case("three seeds")
    assert result.title == (
        "From an average to a block: 4 of 7 claims reproduced, 1 not reproduced, 2 not decidable at this budget"
    )
    order = [result.title, result.judgements[0].why, "Rows", "What was measured", "Learning", "Where ours differs",
             "Chosen here", "How to reproduce this", result.command]  # fmt: skip
    places = [words.index(part) for part in order]
    assert places == sorted(places)


def test_claims_that_nobody_published_are_counted_for_themselves() -> None:
    result = cases.case("some of its own")
    assert result.title == (
        "From an average to a block: 3 of 4 published claims reproduced, 1 not decidable at this budget; "
        "1 of 3 own claims upheld, 1 not upheld, 1 not decidable at this budget"
    )
    assert result.counts == {"reproduced": 3, "not reproduced": 0, "upheld": 1, "not upheld": 1, "not decidable": 2}
    own = replace(result, judgements=tuple(j for j in result.judgements if j.verdict == "upheld"))
    assert own.title == "From an average to a block: the one own claim is upheld"


def test_trained_rows_stand_in_one_table_and_measured_ones_with_those_that_share_their_figures() -> None:
    tables = tables_of_rows(cases.case("measured too"))
    assert [head for head, _ in tables] == [
        ["row", "perplexity, ours", "published", "seeds"],
        ["row", "variance, ours", "published", "frozen", "seeds"],
        ["row", "weight, ours", "published", "seeds"],
    ]
    assert [[name for name, *_ in lines] for _, lines in tables] == [
        list(cases.NAMES), ["width-4", "width-16"], ["masks"]
    ]  # fmt: skip
    assert tables[1][1] == [["width-4", "3.945", "3.975", "0", "1"], ["width-16", "16.03", "", "0.0115", "1"]]
    assert page_of("measured too").count('<table class="hs-arms"') == 3


def test_a_model_that_is_measured_stands_beside_trained_ones_that_have_its_figures() -> None:
    row = cases.measured("compiled", {}, perplexity=1.0)
    result = cases.result([row, *cases.rows(1)], 1)
    ((_, lines),) = tables_of_rows(result)
    assert [name for name, *_ in lines] == ["compiled", *cases.NAMES]


def test_a_row_with_none_of_the_studys_figures_shows_its_own() -> None:
    found = [*cases.rows(1), cases.measured("odd", {}, other=0.5, another=2.0)]
    _, (head, lines) = tables_of_rows(cases.result(found, 1))
    assert (head, lines) == (["row", "other", "another", "seeds"], [["odd", "0.5", "2", "1"]])


@pytest.mark.parametrize(
    ("means", "written"),
    [
        ((5511.2, 2.3109), ["5,511", "2.311"]),
        ((5511.2, 32.109), ["5,511", "32"]),
        ((551.12, 2.3109), ["551.1", "2.3"]),
    ],
)
def test_thousands_in_a_column_cost_its_units_no_digits(means: tuple[float, ...], written: list[str]) -> None:
    found = [
        replace(row, published={}, runs=(replace(row.runs[0], figures={"perplexity": mean}),))
        for row, mean in zip(cases.rows(1), means, strict=False)
    ]
    ((_, lines),) = tables_of_rows(cases.result(found, 1))
    assert [line[1] for line in lines] == written


def texts(result: StudyResult) -> Mapping[str, str]:
    page = " ".join(Reader(as_html(result)).words.replace("\N{NO-BREAK SPACE}", " ").split())
    table = " ".join(result.table().split())
    return {"page": page, "table": table, "readme": " ".join(html.unescape(as_markdown(result)).split())}


@pytest.mark.parametrize("name", [name for name in cases.CASES if name != "nasty words"])
def test_page_table_and_readme_say_the_same(name: str) -> None:
    result = cases.case(name)
    for where, said in texts(result).items():
        assert result.title in said, where
        for judgement in result.judgements:
            assert judgement.why in said, where
            assert judgement.verdict in said, where
        for row in result.rows:
            assert all(figure in said for figure in row.published.values()), where
        assert all(remark in said for remark in (*result.study.remarks, *result.study.choices)), where


def test_an_assumed_spread_is_said_to_be_assumed_and_where_it_comes_from() -> None:
    for where, said in texts(cases.case("one seed")).items():
        assert "its spread is assumed and not measured" in said, where
        assert "that of three seeds of the smallest row" in said, where
        assert "Student's t" not in said, where
    for where, said in texts(cases.case("three seeds")).items():
        assert "assumed" not in said, where
        assert "all 6 that are uncertain hold together 95 times in 100 (Bonferroni)" in said, where


def test_a_row_with_fewer_seeds_and_its_reason_are_told() -> None:
    for where, said in texts(cases.case("one diverged")).items():
        assert "0 of 2" in said, where
        assert "one-head, seeds 0, 1: the loss is nan at step 7." in said, where
        assert "diverged" in said, where
        assert "uick budget, at most 40 steps, 2 seeds" in said, where


def test_remarks_beside_another_run_say_whose_figures_they_are() -> None:
    for where, said in texts(cases.case("one diverged")).items():
        assert "as the full budget showed it: its figures, not this run's" in said, where
    for where, said in texts(cases.case("three seeds")).items():
        assert "not this run's" not in said, where


def test_words_are_text_and_never_markup() -> None:
    page = page_of("nasty words")
    assert "<script" not in page
    assert page.count("&lt;script&gt;") > 10
    assert "\x00" not in page + cases.case("nasty words").table() + as_markdown(cases.case("nasty words"))
    lines = as_markdown(cases.case("nasty words")).splitlines()
    assert not any("<" in line for line in lines)
    tables = [line for line in lines if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in tables} <= {5, 6, 3}


def test_the_table_is_no_wider_than_it_may_be(name: str) -> None:
    assert max(map(len, cases.case(name).table().splitlines())) <= 100


def test_a_strip_says_for_ears_what_it_shows() -> None:
    judgement = cases.case("three seeds").judgements[0]
    drawn = strip(judgement)
    assert drawn is not None
    assert 'aria-label="Ours: 38.43 (38.1 to 38.8) perplexity. Band: 37 to 39. Reproduced."' in drawn
    assert strip(replace(judgement, estimate=None)) is None


ENDS = st.one_of(st.floats(-1e9, 1e9), st.sampled_from([-float("inf"), float("inf")]))


@given(ENDS, ENDS, ENDS, ENDS, ENDS)
def test_band_and_estimate_lie_on_the_scale_whatever_the_interval(
    low: float, high: float, at_least: float, at_most: float, estimate: float
) -> None:
    assume(low <= high and at_least <= at_most)
    judgement = cases.case("three seeds").judgements[0]
    claim = replace(judgement.claim, at_least=at_least, at_most=at_most)
    first, last = limits(replace(judgement, claim=claim, low=low, high=high, estimate=estimate))
    assert first < last
    for shown in (at_least, at_most, estimate):
        assert abs(shown) == float("inf") or first < shown < last


def test_pooled_seeds_are_said_to_scatter_by_how_much_row_by_row_and_which_claims_stand_on_their_own() -> None:
    found = cases.rows(3)
    block = [run for row in cases.rows(8) if row.name == "block" for run in row.runs]
    some_more = [replace(row, runs=tuple(block)) if row.name == "block" else row for row in found]
    study = replace(cases.STUDY, pooled=True)
    said = " ".join(basis(cases.result(some_more, 3, study)))
    squares = mean_squares(found, "perplexity")
    assert squares is not None
    smallest, largest = (100 * math.sqrt(of(squares.rest_of_rows)) for of in (min, max))
    assert f"each by {100 * squares.apart:.2g} %, of single rows {smallest:.2g} to {largest:.2g} %." in said
    assert "Where a claim has two seeds more than all rows have, or yet more, it is Student's t" in said
    alone = " ".join(basis(cases.result(found, 3, replace(study, claims=study.claims[1:]))))
    assert "two seeds more" not in alone
    assert "Of perplexity a seed moves all rows by" in alone
