from collections.abc import Callable
from typing import Any

import pytest

from headstock import programs as p
from headstock.programs import zoo
from headstock.programs.places import Place, here


def line_of(marker: str) -> int:
    """Give the number of the line of this file that ends in a marker."""
    with open(__file__, encoding="utf-8") as file:
        return next(at for at, line in enumerate(file, start=1) if line.rstrip().endswith(f"# {marker}"))


WRITTEN: list[tuple[str, Callable[[], Any]]] = [
    ("plus", lambda: p.indices + 1),  # plus
    ("map", lambda: p.map(len, p.tokens)),  # map
    ("method", lambda: p.tokens.map(len)),  # method
    ("where", lambda: p.where(True, 1, 2)),  # where
    ("lookup", lambda: p.lookup({}, p.tokens)),  # lookup
    ("constant", lambda: p.constant(1)),  # constant
    ("select", lambda: p.select(p.tokens, "a")),  # select
    ("offset", lambda: p.offset(-1)),  # offset
    ("aggregate", lambda: p.aggregate(p.before, p.indices)),  # aggregate
    ("width", lambda: p.width(p.before)),  # width
    ("and", lambda: p.before & p.up_to_here),  # and
    ("or", lambda: p.before | p.up_to_here),  # or
    ("not", lambda: ~p.before),  # not
]


@pytest.mark.parametrize(("marker", "write"), WRITTEN, ids=[marker for marker, _ in WRITTEN])
def test_each_word_stands_where_its_author_wrote_it(marker: str, write: Callable[[], Any]) -> None:
    assert write().place == Place(__file__, line_of(marker))


def test_a_place_knows_the_name_that_its_line_gives() -> None:
    how_many = p.width(p.everything)
    assert how_many.place.assigned == "how_many"
    assert how_many.said == f"how_many (test_places.py:{how_many.place.line})"
    assert p.width(p.everything).said.startswith("width (test_places.py:")


def test_a_comparison_gives_no_name() -> None:
    indices = p.indices
    compared = [
        indices == 0,
    ]
    assert compared[0].place.text == "indices == 0,"
    assert compared[0].place.assigned == ""


def test_a_line_that_is_not_in_a_file_has_no_text() -> None:
    place = Place("<prompt>", 3)
    assert (place.text, place.assigned, str(place)) == ("", "", "<prompt>:3")


def test_the_languages_own_words_stand_in_its_own_file() -> None:
    assert str(p.before.place).startswith("language.py:")
    assert p.length.said.startswith("length (language.py:")


def test_a_program_of_the_zoo_stands_in_its_own_file() -> None:
    assert str(zoo.hist().output.place).startswith("counting.py:")


def test_here_is_the_caller_where_nothing_of_the_language_stands_between() -> None:
    assert here() == Place(__file__, line_of("here"))  # here
