"""Figures by difficulty, and where the arms look: what the page and the terminal say, and that other pages stay."""

import re
from dataclasses import replace
from functools import cache

from headstock.comparison.report import as_html
from headstock.comparison.report.difficulty import by_difficulty
from headstock.comparison.report.looking import mass_note, mass_table
from headstock.comparison.results import Comparison, TaskOutcome
from headstock.pictures import palette
from headstock.pictures.picture import Picture
from tests.comparison.report.difficulties import CROSSED, LENGTHS, ORDERS, with_difficulties, with_holes
from tests.comparison.report.example import plain


@cache
def usual() -> Comparison:
    return with_difficulties()


def looks(task: TaskOutcome) -> dict[str, palette.ArmLook]:
    return palette.looks([(arm.label, arm.floor) for arm in task.arms])


def pictures(task: TaskOutcome) -> list[Picture]:
    return by_difficulty(task, looks(task))


def mean(task: TaskOutcome, arm: int, place: int) -> float:
    found = task.arms[arm].probes[place].mean
    assert found is not None
    return found


def test_a_page_differs_from_one_without_difficulties_by_their_section_alone() -> None:
    page, without = as_html(usual()), as_html(plain())
    assert "By difficulty" in page
    assert "By difficulty" not in without
    assert "Attention mass" not in without
    assert "</section>\n\n<section>\n  <h2>How sure each contrast is</h2>" in without  # and no line in its place
    less = re.sub(r"<section>\s*<h2>By difficulty</h2>.*?</section>\n", "", page, flags=re.DOTALL)
    less = re.sub(r"<tr><th scope=\"row\">By difficulty[^/]*</th><td>[^/]*</td></tr>", "", less)
    less = re.sub(r" *\n*<h3>Attention mass, crossing</h3>.*?<p class=\"hs-note\">.*?</p>\n", "", less, flags=re.DOTALL)
    assert less == without


def test_one_difficulty_is_a_line_an_arm_with_the_means_behind_it() -> None:
    task = usual().tasks[0]
    (picture,) = pictures(task)
    rows = [row for row in picture.table.rows if row[0] == "differential"]
    assert [row[1] for row in rows] == ["16", "32", "64", "128"]
    values = task.arms[1].probes[2].values
    assert rows[2][2:] == [
        f"{value:.5g}" for value in (mean(task, 1, 2), min(map(float, values)), max(map(float, values)))
    ]  # type: ignore[arg-type]
    ends = ", ".join(f"{mean(task, arm, 0):.2f} to {mean(task, arm, 3):.2f}" for arm in (0,))
    assert picture.title.startswith(f"On crossing, accuracy from length 16 to 128: {ends} (softmax)")
    assert "Line: mean over 8 seeds, whose standard deviation is at most" in picture.caption


def test_the_order_in_which_lengths_were_asked_does_not_change_the_line() -> None:
    turned = with_difficulties(LENGTHS[::-1]).tasks[0]
    (picture,) = pictures(turned)
    row = next(row for row in picture.table.rows if row[:2] == ["softmax", "16"])
    assert row[2] == f"{mean(turned, 0, 3):.5g}"
    assert picture.title.startswith("On crossing, accuracy from length 16 to 128: ")


def test_of_one_seed_there_is_no_band() -> None:
    (picture,) = pictures(with_difficulties(seeds=1).tasks[0])
    assert picture.caption == "Line: mean over 1 seed. Not tested."
    assert len(picture.table.head) == 3


def test_many_arms_are_put_in_a_range() -> None:
    task = usual().tasks[0]
    fourth = replace(task.arms[1], label="another")
    (picture,) = pictures(replace(task, arms=[*task.arms, fourth]))
    ends = [mean(task, arm, 3) for arm in range(3)]
    assert picture.title == (f"On crossing, accuracy at length 128 lies between {min(ends):.2f} and {max(ends):.2f}")


def test_two_difficulties_are_a_grid_an_arm_all_on_one_scale() -> None:
    task = usual().tasks[1]
    found = pictures(task)
    assert [picture.name for picture in found] == [f"By difficulty, text, {arm.label}" for arm in task.arms]
    assert [row[0] for row in found[0].table.rows] == ["0", "0.25", "0.5", "0.75", "1"]
    assert found[1].table.rows[1][1:] == [f"{mean(task, 1, place):.4g}" for place in (2, 3)]
    largest = max(mean(task, arm, place) for arm in range(3) for place in range(len(CROSSED)))
    assert all(f">{largest:.3g}<" in picture.drawing for picture in found)
    worst = max(range(len(CROSSED)), key=lambda place: mean(task, 2, place))  # of bits, which are to be few
    at = CROSSED[worst]
    said = f"uniform on text: bits per byte {mean(task, 2, worst):.2f} at depth {at['depth']:g}, length {at['length']}"
    assert found[2].title.startswith(said)


def test_difficulties_that_are_words_are_a_row_an_arm_and_what_is_missing_is_struck_out() -> None:
    task = with_holes().tasks[0]
    (picture,) = pictures(task)
    assert picture.table.head == ["arm \\ order", *(at["order"] for at in ORDERS)]
    assert [row[0] for row in picture.table.rows] == ["softmax", "differential"]
    assert picture.table.rows[0][1] == "—"
    assert "Struck out: not scored." in picture.caption


def test_where_nothing_was_scored_by_difficulty_nothing_is_drawn() -> None:
    assert pictures(plain().tasks[0]) == []


def test_the_terminal_sets_arms_side_by_side_at_each_difficulty() -> None:
    task = usual().tasks[1]
    lines = usual().table().partition("text by difficulty: ")[2].splitlines()
    assert lines[0] == "bits per byte, held-out, not tested"
    assert lines[1].split() == ["depth", "×", "length", "softmax", "differential", "uniform"]
    at = lines[4].split()
    assert at[:3] == ["0.25", "×", "32"]
    probe = task.arms[0].probes[2]
    assert probe.deviation is not None
    assert at[3:6] == [f"{probe.mean:.3f}", "±", f"{probe.deviation:.3f}"]
    assert "by difficulty" not in plain().table()


def test_where_arms_are_too_many_for_a_line_their_means_stand_alone() -> None:
    given = usual()
    task = given.tasks[0]
    arms = [replace(task.arms[place % 3], label=f"arm {place}") for place in range(8)]
    lines = replace(given, tasks=[replace(task, arms=arms)], verdicts=[]).table().partition("by difficulty: ")[2]
    row = lines.splitlines()[2].split()
    assert row == ["16", *(f"{mean(task, place % 3, 0):.3f}" for place in range(8))]


def test_the_table_of_masses_gives_shares_and_beside_signed_ones_their_sums() -> None:
    task = usual().tasks[0]
    table = mass_table(task, looks(task))
    assert table is not None
    assert [(group.name, group.columns) for group in table.groups] == [
        ("share of |weight| on", ["answer", "noise", "elsewhere"]),
        ("weights of a row", ["add up to"]),
    ]
    softmax, differential = table.rows
    assert (softmax.label, softmax.role) == ("softmax", "baseline")
    assert [(cell.text, cell.beside) for cell in softmax.cells][:2] == [("0.054 ± 0.002", ""), ("0.804 ± 0.002", "")]
    assert [(cell.text, cell.beside) for cell in differential.cells][1] == ("0.804 ± 0.002", "Σ −0.020")
    assert differential.cells[-1].text == f"{0.0535 - 0.02 + 0.1535:.3f}"
    note = mass_note(task)
    assert "averaged over heads, layers and 64 held-out rows; ± over seeds." in note
    assert "A uniform average would put 0.050 on answer, 0.800 on noise and 0.150 on elsewhere." in note
    assert note.endswith("No weights could be read of uniform.")


def test_masses_of_probabilities_alone_need_no_sums() -> None:
    task = usual().tasks[0]
    alone = replace(task, arms=task.arms[:1])
    table = mass_table(alone, looks(alone))
    assert table is not None
    assert [group.name for group in table.groups] == ["share of |weight| on"]
    assert "subtract" not in mass_note(alone)
    assert mass_table(plain().tasks[0], looks(task)) is None
    assert mass_note(plain().tasks[0]) == ""


def test_a_share_that_no_head_has_is_written_as_none() -> None:
    task = with_holes().tasks[0]
    table = mass_table(task, looks(task))
    assert table is not None
    assert table.rows[1].cells[0].text == "—"
