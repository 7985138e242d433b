"""What a person types for a vocabulary is read in one way, wherever it is typed."""

import pytest

from headstock.programs.typed import typed_vocabulary


@pytest.mark.parametrize(
    ("written", "tokens"),
    [
        ("abcd", ["a", "b", "c", "d"]),
        ("12", ["1", "2"]),
        ("1,-2,3", [1, -2, 3]),
        ("red, green", ["red", "green"]),
        (",", [","]),
        ("", []),
        ("a,,b", None),
    ],
)
def test_characters_stand_side_by_side_and_words_and_numbers_between_commas(written, tokens):
    assert typed_vocabulary(written) == tokens
