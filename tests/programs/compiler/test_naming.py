"""What a line assigns names what the line says as a whole, in columns and sentences."""

from headstock import programs as p
from headstock.programs.compiler.naming import names_of


def test_the_variable_of_a_line_names_the_whole_of_it_and_no_part():
    often = p.width(p.select(p.tokens, p.tokens, "==")) * 2
    names = names_of(often)
    assert names[id(often)] == "often"
    assert list(names.values()).count("often") == 1


def test_a_name_that_was_given_stays():
    counted = p.width(p.select(p.tokens, p.tokens, "==")).named("histogram")
    assert names_of(counted)[id(counted)] == "histogram"


def test_columns_bear_the_names():
    histogram = p.width(p.select(p.tokens, p.tokens, "=="))
    columns = p.compile(histogram, vocab="ab", max_length=3).blueprint.columns
    assert any("histogram" in column for column in columns)
