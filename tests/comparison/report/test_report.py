import re
import subprocess
import sys
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from statistics import fmean

import matplotlib
import pytest

from headstock.comparison.report import as_fragment, as_html, write_report
from headstock.comparison.report.curves import band
from headstock.comparison.results import Attention
from tests.comparison.report import cases

EMPTY = {"br", "meta", "wbr", "path", "hr"}


@cache
def page_of(name):
    return as_html(cases.case(name))


@pytest.fixture(params=cases.CASES)
def name(request):
    return request.param


@pytest.fixture
def page(name):
    return page_of(name)


@cache
def read(page):
    return Reader(page)


class Reader(HTMLParser):
    """Checks that elements nest, and gathers rows of tables, attributes, figures and what is read."""

    def __init__(self, page):
        super().__init__()
        self.open, self.rows, self.attributes, self.figures, self.words = [], [], [], [], ""
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag == "figure":
            self.figures.append({"tables": 0, "rows": 0, "pictures": 0, "captions": 0})
        if "figure" in self.open and self.figures:
            self.figures[-1]["tables"] += tag == "table"
            self.figures[-1]["rows"] += tag == "tr"
            self.figures[-1]["captions"] += tag == "figcaption"
        if ("role", "img") in attrs and dict(attrs).get("aria-label") and self.figures:
            self.figures[-1]["pictures"] += "figure" in self.open
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th") and self.rows:
            self.rows[-1].append("")
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in EMPTY:
            self.handle_endtag(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.words += data
        if self.rows and self.rows[-1] and {"td", "th"} & set(self.open) and "title" not in self.open:
            self.rows[-1][-1] += data


def test_every_page_is_well_formed_and_small(page):
    read(page)
    assert len(page.encode()) < 2_000_000


def test_the_plain_page_is_very_small():
    assert len(page_of("tuned").encode()) < 400_000


def test_a_page_asks_for_nothing_from_outside_and_runs_nothing(page):
    assert not re.search(r"https?:|//[a-z]|url\(|@import|<script|<link|<img|<iframe|javascript:", page)
    assert not {name for _, name, _ in read(page).attributes} & {"src", "href", "srcset", "xmlns", "xlink:href"}
    assert not [name for _, name, _ in read(page).attributes if name.startswith("on")]
    assert "default-src 'none'" in page


def test_nothing_has_an_id_so_that_two_reports_can_stand_in_one_page(page):
    assert not [name for _, name, _ in read(page).attributes if name in ("id", "for", "aria-labelledby")]


def test_a_fragments_style_reaches_nothing_outside_it():
    fragment = as_fragment(cases.case("plain"))
    assert "<body" not in fragment
    assert cases.case("plain")._repr_html_() == fragment
    css = re.search(r"<style>(.*?)</style>", fragment, re.DOTALL)[1]
    rules = re.sub(r"@media[^{]*\{", "", re.sub(r"/\*.*?\*/", "", css, flags=re.DOTALL))
    selectors = [one.strip() for rule in re.findall(r"([^{}]+)\{", rules) for one in rule.split(",")]
    assert len(selectors) > 50
    assert not [selector for selector in selectors if not re.match(r"\.hs\b", selector)]


def test_every_figure_has_words_for_ears_a_caption_and_a_table_behind_it(page):
    for figure in read(page).figures:
        assert figure["tables"] == figure["pictures"] == figure["captions"] == 1
        assert figure["rows"] > 1


def test_every_part_is_there_and_verdicts_come_first():
    reader, case = read(page_of("tuned")), cases.case("tuned")
    wanted = ["Results", "made equal", "Learning", "How sure", "Cost of a step", "Where the arms look", "Tuning"]
    places = [reader.words.index(heading) for heading in [*wanted, "How to reproduce"]]
    assert places == sorted(places)
    assert all(reader.words.index(verdict.sentence) < places[0] for verdict in case.verdicts)
    assert case.command in reader.words
    assert all(cell.folder in reader.words for task in case.tasks for arm in task.arms for cell in arm.cells)
    for hashed in (case.plan_hash, *(task.content_hash for task in case.tasks)):
        assert hashed in reader.words


def test_claims_look_other_than_what_is_no_claim():
    for verdict in cases.case("plain").verdicts:
        kept = verdict.sentence.replace(" %", "\N{NO-BREAK SPACE}%")
        item = next(item for item in re.findall(r"<li class=.*?</li>", page_of("plain")) if kept in item)
        assert ('class="hs-claim"' in item) == verdict.claim


def test_only_an_exploratory_page_wears_the_banner(name, page):
    assert ('class="hs-exploratory"' in page) == cases.case(name).exploratory


def test_an_arm_has_the_same_colour_wherever_it_is_named(name, page):
    labels = {arm.label for task in cases.case(name).tasks for arm in task.arms}
    found = {label: set() for label in labels}
    for colour, label in re.findall(r"(?:fill|color):var\(--(arm-\w+)\)\">([^<]+)<", page):
        found.get(label, set()).add(colour)
    assert all(len(colours) <= 1 for colours in found.values())


def test_labels_and_reasons_are_text_and_never_markup():
    nasty = cases.case("nasty labels")
    arms = list(nasty.tasks[1].arms)
    broken = replace(arms[0].cells[0], status="failed", reason="<script>alert(1)</script>", metrics={})
    arms[0] = replace(arms[0], cells=[broken, *arms[0].cells[1:]])
    case = replace(nasty, title="<i>&", command="a <b> 'c'", tasks=[nasty.tasks[0], replace(nasty.tasks[1], arms=arms)])
    reader = Reader(as_html(case))
    assert "<script>alert(1)</script>" in reader.words
    assert cases.NASTY in reader.words
    assert not {tag for tag, _, _ in reader.attributes} & {"b", "script"}


def test_no_missing_number_is_written_as_a_number(page):
    words = read(page).words.replace("the loss is nan at step", "")
    assert not re.search(r"\b(nan|inf|None|NaN|Infinity)\b", words)
    assert not re.search(r"\b(nan|inf)\b", " ".join(re.findall(r' d="([^"]*)"', page)))


def test_the_numbers_in_the_tables_are_those_of_the_comparison():
    case = cases.case("plain")
    rows = [[" ".join(cell.split()) for cell in row] for row in read(page_of("plain")).rows]
    for task in case.tasks:
        for arm in task.arms:
            mean = fmean(cell.metrics["held-out"][task.metric] for cell in arm.cells)
            own = [row for row in rows if row[0].split()[:1] == [arm.label]]
            held_out = [float(row[1].split(" ± ")[0]) for row in own if " ± " in row[1]]
            assert any(abs(value - mean) < 0.00051 for value in held_out)
            assert any(
                f"{arm.cost.parameters:,}" in row[1] and f"{arm.cost.flops_per_token:,}" in row[4] for row in own
            )
            for cell in arm.cells:
                value = f"{cell.metrics['held-out'][task.metric]:.4f}"
                assert [row for row in rows if row[0] == arm.label and value in row and row[-1] == cell.folder]
    contrasts = [row for row in rows if len(row) == 10]
    for verdict in case.verdicts:
        own = [row for row in contrasts if row[:2] == [f"{verdict.arm} − {verdict.against}", verdict.kind]]
        estimates = [float(row[2].replace("−", "-")) for row in own]
        assert any(estimate == pytest.approx(verdict.estimate, rel=1e-3) for estimate in estimates)


def test_light_and_dark_are_both_given_and_no_picture_has_a_colour_of_its_own(page):
    assert "@media (prefers-color-scheme:dark)" in page
    for picture in re.findall(r"<svg.*?</svg>", page, re.DOTALL):
        assert not re.search(
            r"#[0-9a-f]{6}", re.sub(r"<title>.*?</title>|<text.*?</text>|aria-label=\"[^\"]*\"", "", picture)
        )


def test_the_readers_own_settings_of_matplotlib_neither_show_nor_change():
    with matplotlib.rc_context({"lines.linewidth": 9.0, "text.usetex": True, "axes.facecolor": "red"}):
        assert as_html(cases.case("plain")) == page_of("plain")
        assert matplotlib.rcParams["lines.linewidth"] == 9.0
        assert matplotlib.rcParams["text.usetex"] is True


def test_the_band_is_the_middle_half_of_many_seeds_and_the_range_of_few():
    cells = cases.case("plain").tasks[1].arms[0].cells
    ends = sorted(cell.curve[-1]["bits_per_byte"] for cell in cells)
    of_all = band(cells, "bits_per_byte")
    assert ends[1] < of_all.lows[-1] < ends[2]
    assert ends[5] < of_all.highs[-1] < ends[6]
    of_three = band(cells[:3], "bits_per_byte")
    first = sorted(cell.curve[-1]["bits_per_byte"] for cell in cells[:3])
    assert (of_three.lows[-1], of_three.highs[-1]) == (first[0], first[-1])
    assert "the middle half of 8 seeds" in page_of("plain")
    assert "from the lowest to the highest of 2 seeds" in page_of("two seeds")
    assert "so there is no band" in page_of("one seed")


def test_a_very_large_comparison_stays_small_and_says_what_it_leaves_out():
    plain = cases.many_arms(8)
    row = [1 / 512] * 512
    deep = Attention(["wort"] * 512, 511, [[row] * 12] * 12, "normalised", "a", "b")
    curve = [{"step": float(step), "bits_per_byte": 4 / (1 + step), "accuracy": 0.5} for step in range(1, 401)]
    tasks = [
        replace(
            task,
            arms=[
                replace(arm, attention=deep, cells=[replace(cell, curve=curve) for cell in arm.cells])
                for arm in task.arms
            ],
        )
        for task in plain.tasks
    ]
    page = as_html(replace(plain, tasks=tasks))
    assert len(page.encode()) < 2_000_000
    assert "of 512 keys are shown" in page
    assert "of 12 heads" in page


def test_the_report_is_written_whole_into_a_new_folder(tmp_path):
    path = cases.case("plain").report(tmp_path / "new" / "report.html")
    assert path == tmp_path / "new" / "report.html"
    assert path.read_text(encoding="utf-8") == page_of("plain")
    assert [file.name for file in path.parent.iterdir()] == ["report.html"]
    assert write_report(cases.case("tuned"), path).read_text(encoding="utf-8") == page_of("tuned")


def test_importing_the_report_does_not_import_matplotlib():
    code = "import sys, headstock.comparison.report; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_fixed_model_is_in_no_picture_of_learning_or_of_a_step_s_cost():
    reader = read(page_of("a fixed baseline"))
    assert "Not trained, so not drawn: softmax at 1.000." in reader.words
    assert "Not trained, so without a step: softmax." in reader.words
    assert ["arm", "median", "to differential", "kernel", "fastest run", "slowest run"] in reader.rows
    learning = [row for row in reader.rows if len(row) == 6 and row[0] in ("softmax", "uniform")]
    assert {row[0] for row in learning} == {"uniform"}
    assert "Learning curves" not in page_of("only fixed models")
    assert "Cost of a step" not in page_of("only fixed models")


def test_a_fixed_model_is_one_run_in_the_table_of_runs():
    rows = [row for row in read(page_of("a fixed baseline")).rows if row[-1].startswith("runs/crossing")]
    assert [row[1] for row in rows if row[0] == "softmax"] == ["any"]
    assert [row[1] for row in rows if row[0] == "uniform"] == [str(seed) for seed in range(8)]
