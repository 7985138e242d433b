"""Text to token ids and back, in four ways: bytes, characters, byte pairs trained on the spot, and whole words.

Every tokenizer is saved in the published `tokenizer.json` form, so that the `tokenizers` library, and what is built on
it, reads it too. Knows nothing of tasks and corpora.
"""

import hashlib
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import tokenizers as library
import torch
from tokenizers import decoders, models, pre_tokenizers, trainers
from torch import Tensor

from headstock.checkpoints.files import write_atomically
from headstock.errors import UserError, near_name
from headstock.programs.saving.vocabulary import holds_program
from headstock.tasks.files import remembered
from headstock.tasks.options import tokenizer_name

FILE_NAME = "tokenizer.json"
_VISIBLE = {" ": "␣", "\n": "↵", "\t": "⇥", "\r": "␍"}
_PIECE = 1 << 16
# Where a text may be cut with no change to its tokens: GPT-2's pattern makes a token of a newline that stands alone.
_SAFE_CUT = re.compile(r"(?<=[A-Za-z.,:;!?])\n(?=[A-Za-z])")

Ids = npt.NDArray[np.int32]


def _byte_letters() -> list[str]:
    """Give the printable letter that stands for each byte in byte-level vocabularies, by GPT-2's rule."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return [chr(byte if byte in printable else next(others)) for byte in range(256)]


_LETTER_OF_BYTE = _byte_letters()
_BYTE_OF_LETTER = {letter: byte for byte, letter in enumerate(_LETTER_OF_BYTE)}


class Tokenizer(ABC):
    """Text to token ids and back. A value: never changed after it is made.

    decode(encode(text)) == text for every text that encodes, words excepted (they are joined by one space).
    """

    joined_by: ClassVar[bytes] = b""
    name: str
    """As an option writes it: byte, char, bpe:1024 (or word, which only a task with its own vocabulary has)."""
    pieces: tuple[bytes, ...]
    """The bytes that each id stands for; not always whole characters."""

    @property
    def vocab_size(self) -> int:
        """How many ids there are: 0 … vocab_size − 1."""
        return len(self.pieces)

    @property
    def bytes_per_token(self) -> Tensor:
        """float64 (vocab_size,): how many bytes of text each id stands for."""
        return torch.tensor([len(piece) for piece in self.pieces], dtype=torch.float64)

    @abstractmethod
    def encode_array(self, text: str) -> Ids:
        """Give the ids of a text, int32 (tokens,); raises UserError where there is none for some part of it."""

    def encode(self, text: str) -> list[int]:
        """Give the ids of a text as `encode_array` does, in a list."""
        ids: list[int] = self.encode_array(text).tolist()
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """Give the text of ids; bytes that are no whole character show as �. Raises UserError for no id of ours."""
        return self.joined_by.join(self._piece(token) for token in ids).decode("utf-8", "replace")

    def label(self, token: int) -> str:
        """Give one token as a picture's axis shows it: spaces and newlines visible, half characters as \\xNN."""
        text = self._piece(token).decode("utf-8", "backslashreplace")
        shown = (_VISIBLE.get(letter, letter) for letter in text)
        return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in shown)

    @abstractmethod
    def to_library(self) -> library.Tokenizer:
        """Give the same tokenizer as an object of the `tokenizers` library."""

    def save(self, folder: Path) -> None:
        """Write tokenizer.json into a folder, made where it is missing; raises UserError where that cannot be."""
        content = self.to_library().to_str(pretty=True).encode()
        write_atomically(folder / FILE_NAME, lambda beside: beside.write_bytes(content))

    def _piece(self, token: int) -> bytes:
        if not 0 <= token < len(self.pieces):
            raise UserError(f"token {token} is not in the vocabulary of {len(self.pieces)}, which counts from 0.")
        return self.pieces[token]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tokenizer) and self.to_library().to_str() == other.to_library().to_str()

    def __hash__(self) -> int:
        return hash((self.name, self.pieces))


class ByteTokenizer(Tokenizer):
    """A token a byte of UTF-8, its id the byte's value: 256 of them, and every text has an encoding."""

    def __init__(self) -> None:
        self.name = "byte"
        self.pieces = tuple(bytes([byte]) for byte in range(256))

    def encode_array(self, text: str) -> Ids:
        """Give the values of the bytes."""
        return np.frombuffer(_utf8(text), dtype=np.uint8).astype(np.int32)

    def to_library(self) -> library.Tokenizer:
        """Give a byte-level vocabulary without merges."""
        made = library.Tokenizer(models.BPE(vocab=_BYTE_OF_LETTER, merges=[]))
        made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        made.decoder = decoders.ByteLevel()
        return made


class CharTokenizer(Tokenizer):
    """A token a character, in the order of their code points; a character that was not given is refused by name."""

    def __init__(self, characters: Sequence[str]) -> None:
        self.name = "char"
        self._characters = sorted(set(characters))
        self._points = np.array([ord(character) for character in self._characters], dtype=np.uint32)
        self.pieces = tuple(_utf8(character) for character in self._characters)

    def encode_array(self, text: str) -> Ids:
        """Give the places of the characters in code point order; raises UserError for one that was not given."""
        points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
        if not len(points):
            return np.empty(0, dtype=np.int32)
        ids = np.searchsorted(self._points, points).clip(max=len(self._points) - 1)
        unknown = self._points[ids] != points
        if unknown.any():
            character = chr(points[unknown.argmax()])
            raise UserError(
                f"the character {character!r} is not among the {self.vocab_size} that this tokenizer was made from: "
                "leave it out, or use tokenizer=byte, which has every character."
            )
        return ids.astype(np.int32)

    def to_library(self) -> library.Tokenizer:
        """Give a vocabulary of characters without merges."""
        vocabulary = {character: place for place, character in enumerate(self._characters)}
        made = library.Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
        made.decoder = decoders.Fuse()
        return made


class WordTokenizer(Tokenizer):
    """A token a word, words parted by white space; a word that was not given is refused with the nearest one."""

    joined_by = b" "

    def __init__(self, words: Sequence[str]) -> None:
        self.name = "word"
        self._ids = {word: place for place, word in enumerate(words)}
        self.pieces = tuple(_utf8(word) for word in words)

    def encode_array(self, text: str) -> Ids:
        """Give the ids of the words; raises UserError for one that was not given."""
        words = text.split()
        for word in words:
            if word not in self._ids:
                raise UserError(
                    f"the word {word!r} is not among the {self.vocab_size} known ones: {near_name(word, self._ids)}"
                )
        return np.array([self._ids[word] for word in words], dtype=np.int32)

    def to_library(self) -> library.Tokenizer:
        """Give a word-level vocabulary."""
        made = library.Tokenizer(models.WordLevel(self._ids))
        made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
        return made


class BpeTokenizer(Tokenizer):
    """Byte pairs after GPT-2's split pattern: every text has an encoding, frequent strings are one token."""

    def __init__(self, trained: library.Tokenizer) -> None:
        vocabulary = trained.get_vocab()
        self.name = f"bpe:{len(vocabulary)}"
        in_order = sorted(vocabulary, key=vocabulary.__getitem__)
        self.pieces = tuple(bytes(_BYTE_OF_LETTER[letter] for letter in token) for token in in_order)
        self._library = trained

    def encode_array(self, text: str) -> Ids:
        """Give the ids after all merges, the same as if the text went in whole."""
        _utf8(text)
        # The library keeps some hundred bytes a token until a call ends, so a long text goes in by pieces.
        return np.concatenate([np.array(self._library.encode(part).ids, dtype=np.int32) for part in _parts(text)])

    def to_library(self) -> library.Tokenizer:
        """Give the trained object itself."""
        return self._library


def make(name: str, text: str) -> Tokenizer:
    """Make the tokenizer that an option names (byte, char, bpe:N) for a text.

    The same text gives the same tokenizer in any process; a trained one is kept in the cache folder.
    Raises UserError for an unknown name, or where the text has too few different strings for N tokens.
    """
    kind, _, size = str(tokenizer_name("tokenizer", name)).partition(":")
    if kind == "byte":
        return ByteTokenizer()
    if kind == "char":
        return CharTokenizer(sorted(set(text)))
    return _trained(text, int(size))


def load(folder: Path) -> Tokenizer:
    """Read a tokenizer that `save` wrote, or that of a compiled program, which its own record says better.

    Raises UserError for a missing, damaged or foreign tokenizer.json.
    """
    if holds_program(folder):
        from headstock.tasks.program_tokens import load_program_tokens

        return load_program_tokens(folder)
    path = folder / FILE_NAME
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UserError(
            f"{path} cannot be read ({error.strerror or error}): save the model with its tokenizer, as hs.save(model, "
            f"folder, tokenizer=...) does."
        ) from None
    try:
        return _from_json(content)
    except Exception as error:  # the library raises bare Exception for all that is wrong in a file
        raise UserError(f"{path} is damaged, or no tokenizer of this package: {error}") from None


def _from_json(content: bytes) -> Tokenizer:
    """Read a saved tokenizer; whatever it does not hold exactly as `save` writes it raises."""
    description: dict[str, Any] = json.loads(content)
    vocabulary: dict[str, int] = description["model"]["vocab"]
    in_order = sorted(vocabulary, key=vocabulary.__getitem__)
    if [vocabulary[token] for token in in_order] != list(range(len(in_order))):
        raise ValueError("its ids do not count from 0 without a gap.")
    parted = description["pre_tokenizer"]
    made: Tokenizer
    if description["model"]["type"] == "WordLevel" and (parted["type"] == "Split" or description["post_processor"]):
        from headstock.tasks.program_tokens import program_tokens_of

        made = program_tokens_of(description, in_order)
    elif description["model"]["type"] == "WordLevel":
        made = WordTokenizer(in_order)
    elif parted is None:
        made = CharTokenizer(in_order)
    elif not parted["use_regex"]:
        made = ByteTokenizer()
    else:
        made = BpeTokenizer(_untrained(vocabulary, [tuple(pair) for pair in description["model"]["merges"]]))
    if json.loads(made.to_library().to_str()) != description:
        raise ValueError("it holds parts that are not known here.")
    return made


def _untrained(vocabulary: dict[str, int], merges: list[tuple[str, str]]) -> library.Tokenizer:
    made = library.Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    return made


@lru_cache(maxsize=4)
def _trained(text: str, size: int) -> BpeTokenizer:
    def train() -> bytes:
        made = _untrained({}, [])
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(vocab_size=size, initial_alphabet=alphabet, show_progress=False)
        made.train_from_iterator(_parts(text), trainer)
        if made.get_vocab_size() < size:
            raise UserError(
                f"this text of {len(text):,} characters has only enough different strings for "
                f"{made.get_vocab_size()} tokens, not {size}: choose a smaller bpe, or tokenizer=byte."
            )
        return made.to_str().encode()

    # The trainer's version is in the key: a later one might break ties between pairs in another way.
    key = hashlib.sha256(f"{library.__version__} {size} ".encode() + _utf8(text)).hexdigest()
    found = _from_json(remembered(f"bpe/{key}.json", train))
    assert isinstance(found, BpeTokenizer)
    return found


def _parts(text: str) -> Iterator[str]:
    """Cut a text where no token is cut, at least _PIECE characters a part; an empty text is one empty part."""
    start = 0
    while cut := _SAFE_CUT.search(text, start + _PIECE):
        yield text[start : cut.end()]
        start = cut.end()
    yield text[start:]


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise UserError(f"the text holds half a character ({text[error.start]!r}), which UTF-8 cannot write.") from None
