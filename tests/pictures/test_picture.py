import re
from xml.etree import ElementTree

import matplotlib
import pytest
from markupsafe import Markup

from headstock.errors import UserError
from headstock.pictures import palette
from headstock.pictures.lines import lines
from headstock.pictures.picture import Picture, Table
from headstock.pictures.svg import drawn

NASTY = '<b>&"x\'</b> style="fill:red" $_1^2$'


@pytest.fixture(scope="module")
def picture():
    return lines({NASTY: ([0, 1, 2], [1.0, 2.0, 4.0])}, x=NASTY, y="norm", title=f"It grows {NASTY}", caption="Said.")


def test_a_picture_in_a_notebook_has_title_drawing_caption_and_numbers(picture):
    shown = picture._repr_html_()
    for part in ("It grows", '<svg class="hs-picture"', "Said.", "<table", "@media (prefers-color-scheme:dark)"):
        assert part in shown
    assert "<b>" not in shown
    assert "<body" not in shown


def test_several_pictures_share_a_notebook_with_whatever_else_is_in_it(picture):
    shown = picture._repr_html_()
    assert not re.search(r"\bid=|https?:|url\(|<script|src=|href=", shown)
    css = re.search(r"<style>(.*?)</style>", shown, re.DOTALL)[1]
    rules = re.sub(r"@media[^{]*\{", "", css)
    selectors = [one.strip() for rule in re.findall(r"([^{}]+)\{", rules) for one in rule.split(",")]
    assert len(selectors) > 30
    assert not [selector for selector in selectors if not re.match(r"\.hs\b", selector)]


def test_a_picture_without_a_caption_leaves_no_empty_place_for_one():
    bare = Picture("a", "a", Markup("<svg></svg>"), "", Table(["a"], [["b"]]))
    assert "<figcaption" not in bare._repr_html_()
    assert "<script" not in Picture("a", "<script>", Markup(""), "", Table(["a"], []))._repr_html_()


def test_a_saved_svg_is_a_whole_file_whose_colours_need_no_page(picture, tmp_path):
    saved = picture.save(tmp_path / "new" / "a.svg").read_text(encoding="utf-8")
    root = ElementTree.fromstring(saved)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert float(root.attrib["width"]) > 400
    assert "var(" not in saved
    assert root.attrib["aria-label"] == picture.title == root.find("{*}title").text
    assert NASTY in [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]


def test_every_colour_of_a_saved_svg_is_the_light_one_and_has_its_dark_one_in_the_style(picture, tmp_path):
    saved = picture.save(tmp_path / "a.svg").read_text(encoding="utf-8")
    dark = dict(re.findall(r"\.([\w-]+)\{\w+:(#\w{6})\}", re.search(r"<style>(.*?)</style>", saved)[1]))
    given = re.findall(r'((?: (?:fill|stroke)="[^"]*")+) class="([^"]*)"', saved)
    assert len(given) > 10
    for attributes, classes in given:
        colours = re.findall(r'(fill|stroke)="([^"]*)"', attributes)
        for (of, colour), name in zip(colours, classes.split(), strict=True):
            assert name.startswith(f"{of}-")
            assert (colour, dark[name]) == palette.in_both_schemes(name.removeprefix(f"{of}-"))


def test_shades_stand_alone_too(tmp_path):
    def draw(axes):
        axes.barh([0.5], [1], color=palette.stand_in("less"), alpha=0.5)

    drawing = drawn(100, 50, (0, 0, 0, 0), "", draw)
    assert "fill:rgb(var(--less))" in drawing
    saved = Picture("a", "a", drawing, "", Table(["a"], [])).save(tmp_path / "a.svg").read_text()
    assert 'fill="#b84e00" class="fill-less"' in saved
    assert "fill-less{fill:#e5903f}" in saved
    assert ElementTree.fromstring(saved).attrib["aria-hidden"] == "true"


def test_a_saved_page_holds_the_numbers_and_asks_for_nothing(picture, tmp_path):
    saved = picture.save(str(tmp_path / "a.HTML")).read_text(encoding="utf-8")
    assert saved.startswith("<!doctype html>")
    assert "default-src 'none'" in saved
    assert "<td>4</td>" in saved
    assert not re.search(r"https?:|src=|href=", saved)


@pytest.mark.parametrize("name", ["a.png", "a", "a.svg.gz"])
def test_other_endings_are_refused_with_those_there_are(picture, tmp_path, name):
    with pytest.raises(UserError, match=r"\.svg.*\.html"):
        picture.save(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_a_picture_that_cannot_be_written_leaves_the_old_one(picture, tmp_path):
    (tmp_path / "file").write_text("old")
    with pytest.raises(UserError, match="could not be written"):
        picture.save(tmp_path / "file" / "a.svg")
    assert (tmp_path / "file").read_text() == "old"


def test_the_readers_own_settings_of_matplotlib_neither_show_nor_change(picture):
    with matplotlib.rc_context({"lines.linewidth": 9.0, "axes.facecolor": "red", "lines.scale_dashes": False}):
        again = lines(
            {NASTY: ([0, 1, 2], [1.0, 2.0, 4.0])}, x=NASTY, y="norm", title=f"It grows {NASTY}", caption="Said."
        )
        assert matplotlib.rcParams["lines.linewidth"] == 9.0
    assert again == picture
