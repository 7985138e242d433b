"""Tokens of a compiled program as a person types them: characters, or words parted by spaces."""

from collections.abc import Sequence

from headstock.errors import UserError, near_name
from headstock.programs.reading_out import Readout
from headstock.programs.saving.vocabulary import by_characters
from headstock.programs.values import Value, shown


def tokens_of(readout: Readout, text: str) -> list[Value]:
    """Give the tokens that a text stands for. Raises UserError for one that the program does not know."""
    known = {shown(token): token for token in readout.domain.vocabulary}
    words_alone = not by_characters(readout)
    words = text.split() if words_alone else list(text)
    for word in words:
        if word not in known:
            apart = next((name for name in known if name.split() != [name]), None)
            if words_alone and apart is not None:
                raise UserError(
                    f"the program's token {apart!r} has space in it or is empty, so words cannot be told apart here: "
                    f"give a list of tokens in Python, as in programs.load(DIR)([{apart!r}])."
                )
            what = "word" if words_alone else "character"
            raise UserError(f"the {what} {word!r} is not in the program's vocabulary: {near_name(word, known)}")
    return [known[word] for word in words]


def text_of(readout: Readout, tokens: Sequence[Value]) -> str:
    """Give the text of tokens."""
    return ("" if by_characters(readout) else " ").join(map(shown, tokens))
