"""The tokens of a compiled program as a tokenizer: characters or words, the start token in front by itself."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from headstock.programs.compiler.domain import Domain
from headstock.programs.reading_out import Readout
from headstock.programs.saving.saved import read_record
from headstock.programs.saving.vocabulary import by_characters, library_tokenizer
from headstock.programs.text import tokens_of
from headstock.programs.values import shown
from headstock.tasks.tokenizers import Ids, Tokenizer


class ProgramTokenizer(Tokenizer):
    """A token a character, or a token a word where the program has longer ones.

    Tokens that can only be written, such as None, are decoded, and refused where a text has them. The start token is
    put in front of every text, and is no text itself.
    """

    def __init__(self, readout: Readout) -> None:
        self.name = "program"
        self.readout = readout
        self.start = readout.start
        self._separator = "" if by_characters(readout) else " "
        self._ids = {shown(token): place for place, token in enumerate(readout.domain.vocabulary)}
        self.pieces = tuple(
            b"" if place == readout.start else name.encode() for place, name in enumerate(readout.names)
        )

    def encode_array(self, text: str) -> Ids:
        """Give the ids, the start token's first; raises UserError for what the program cannot read."""
        tokens = tokens_of(self.readout, text)
        front = [] if self.start is None or not tokens else [self.start]
        return np.array(front + [self._ids[shown(token)] for token in tokens], dtype=np.int32)

    def decode(self, ids: Sequence[int]) -> str:
        """Give the text of ids, the start token left out."""
        return self._separator.join(self._piece(token).decode() for token in ids if token != self.start)

    def label(self, token: int) -> str:
        """Give a token as an axis shows it; the start token by its name."""
        return self.readout.names[token] if token == self.start else super().label(token)

    def to_library(self) -> Any:
        """Give the same as an object of the `tokenizers` library."""
        return library_tokenizer(self.readout)


def load_program_tokens(folder: Path) -> ProgramTokenizer:
    """Give the tokenizer of a folder that holds a compiled program. Raises UserError for a damaged one."""
    return ProgramTokenizer(read_record(folder).readout)


def program_tokens_of(description: Any, names: Sequence[str]) -> ProgramTokenizer:
    """Give the tokenizer that tokenizer.json describes, which a model trained on a program's tokens has no record of.

    description: the file as JSON. names: its tokens in the order of their ids. Raises for one of another form.
    """
    start = names.index(description["added_tokens"][0]["content"]) if description["added_tokens"] else None
    read = start
    if start is None:  # then as many as the pattern has
        pattern = description["pre_tokenizer"]["pattern"]["Regex"]
        read = next(n for n in range(1, len(names) + 1) if "|".join(map(re.escape, names[:n])) == pattern)
    domain = Domain(tuple(names[:read]), max_length=1, causal=True)  # of which a tokenizer reads the vocabulary alone
    return ProgramTokenizer(Readout(domain, start, tuple(names), {}, ()))
