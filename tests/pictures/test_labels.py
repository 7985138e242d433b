from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headstock.pictures.labels import elided, elided_apart, moved_apart, without_shared_end

places = st.lists(st.floats(-100, 400), min_size=1, max_size=20)


@given(places, st.floats(1, 30))
def test_labels_moved_apart_keep_their_order_their_gap_and_their_room(given_places, gap):
    low, high = 0.0, 300.0
    moved = moved_apart(given_places, gap, low, high)
    in_order = sorted(range(len(moved)), key=lambda index: (given_places[index], index))
    least = min(gap, (high - low) / max(1, len(moved) - 1))
    for one, next_one in pairwise(in_order):
        assert moved[next_one] - moved[one] >= least - 1e-9
    assert all(low - 1e-9 <= place <= high + 1e-9 for place in moved)


@given(st.lists(st.integers(0, 20), min_size=1, max_size=20, unique=True))
def test_labels_that_are_apart_do_not_move(steps):
    at = [15.0 * step for step in steps]
    assert moved_apart(at, 15.0, 0.0, 300.0) == pytest.approx(at)


def test_two_labels_at_one_place_move_the_same_way_apart():
    assert moved_apart([100, 100], 14, 0, 300) == pytest.approx([93, 107])


@given(st.text(max_size=60), st.integers(3, 40))
def test_a_label_cut_short_is_no_longer_than_asked(label, length):
    assert len(elided(label, length)) <= length


@given(st.lists(st.text("ab/:.", min_size=1, max_size=60), min_size=1, max_size=12, unique_by=lambda s: s))
def test_different_labels_stay_different_when_cut_short(labels):
    assert len(set(elided_apart(labels, 8))) == len(labels)


def test_the_end_that_all_labels_share_is_left_out_and_something_of_each_stays():
    assert without_shared_end(["a-x-y", "b-c-x-y"]) == {"a-x-y": "a", "b-c-x-y": "b-c"}
    assert without_shared_end(["x-y", "b-x-y"]) == {"x-y": "x", "b-x-y": "b-x"}
    assert without_shared_end(["y", "b-y"]) == {"y": "y", "b-y": "b-y"}
    assert without_shared_end(["a-x", "b"]) == {"a-x": "a-x", "b": "b"}
    assert without_shared_end(["a-x"]) == {"a-x": "a-x"}
    assert without_shared_end([]) == {}


@given(st.lists(st.text("ab-", min_size=1, max_size=6), min_size=2, max_size=4, unique=True))
def test_labels_without_their_shared_end_are_still_apart(labels):
    short = without_shared_end(labels)
    assert list(short) == labels
    assert len(set(short.values())) == len(labels)


def test_a_path_loses_its_folders_before_it_loses_anything_else():
    assert elided("./examples/mine/my_mixer.py:MyMixer+rope", 28) == "…/my_mixer.py:MyMixer+rope"
