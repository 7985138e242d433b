from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from headstock.programs.compiler.domain import Domain
from headstock.programs.compiler.represent import CodeBook, Coded
from headstock.programs.values import is_number

some_values = st.sets(
    st.one_of(st.none(), st.sampled_from("abxyz"), st.integers(-5, 20), st.fractions(-3, 3, max_denominator=6)),
    min_size=1,
    max_size=8,
)


@given(rows=st.lists(some_values, min_size=1, max_size=5))
def test_numbers_stand_for_themselves_and_no_two_values_share_a_code(rows: list[set[object]]) -> None:
    book = CodeBook(Domain.of("abc", 3, False, "float32"))
    for values in rows:
        codes = book.codes(list(values))
        assert len(set(codes.values())) == len(codes) == len(values)
        assert all(code == value for value, code in codes.items() if is_number(value))


@given(rows=st.lists(st.sets(st.sampled_from([None, *"abxyz"]), min_size=1), min_size=2, max_size=5))
def test_a_word_has_the_same_code_wherever_it_stands_among_words(rows: list[set[object]]) -> None:
    book = CodeBook(Domain.of("abc", 3, False, "float32"))
    seen: dict[object, Fraction] = {}
    for values in rows:
        for value, code in book.codes(list(values)).items():
            assert seen.setdefault(value, code) == code


def test_a_code_is_the_same_whatever_order_values_are_given_in() -> None:
    book, other = (CodeBook(Domain.of("ab", 3, False, "float32")) for _ in range(2))
    assert book.codes(["x", None, "y", 3]) == other.codes([3, "y", "x", None])


def test_a_square_is_that_of_the_code() -> None:
    coded = Coded((("a", Fraction(0)), ("b", Fraction(1)), ("c", Fraction(2))), Fraction(1))
    assert [coded(letter) for letter in "abc"] == [1, 0, 1]
