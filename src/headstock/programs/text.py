"""Tokens of a compiled program as a person types them: characters, or words parted by spaces."""

from collections.abc import Sequence

from headstock.errors import UserError, near_name
from headstock.programs.reading_out import Readout
from headstock.programs.saving.vocabulary import by_characters
from headstock.programs.values import Value, shown


def tokens_of(readout: Readout, text: str) -> list[Value]:
    """Give the tokens that a text stands for. Raises UserError for one that the program does not know."""
    known = {shown(token): token for token in readout.domain.vocabulary}
    words = list(text) if by_characters(readout) else text.split()
    for word in words:
        if word not in known:
            what = "character" if by_characters(readout) else "word"
            raise UserError(f"the {what} {word!r} is not in the program's vocabulary: {near_name(word, known)}")
    return [known[word] for word in words]


def text_of(readout: Readout, tokens: Sequence[Value]) -> str:
    """Give the text of tokens."""
    return ("" if by_characters(readout) else " ").join(map(shown, tokens))
