import json
import os
from pathlib import Path

import pytest
import tokenizers as library
from hypothesis import given, settings
from hypothesis import strategies as st

from headstock.errors import UserError
from headstock.tasks import tokenizers
from headstock.tasks.tokenizers import (
    BpeTokenizer,
    ByteTokenizer,
    CharTokenizer,
    Tokenizer,
    WordTokenizer,
    load,
    make,
)

FABLE = (
    "A crow, half dead with thirst, came upon a pitcher which had once been full of water.\nBut when the crow put its "
    "beak into the mouth of the pitcher, it found that little water was left in it.\n\n  It could not reach far enough "
    "down to get at it; then a thought came to it: pebbles, 1 by 1 — été.\n"
) * 4

BYTE = ByteTokenizer()
with pytest.MonkeyPatch.context() as _patch:
    _patch.setenv("HEADSTOCK_CACHE", os.devnull)  # made while tests are collected, before conftest gives a cache
    BPE = make("bpe:300", FABLE)
CHAR = make("char", FABLE)
WORD = WordTokenizer(["the", "crow", "pitcher"])
ALL = {"byte": BYTE, "bpe": BPE, "char": CHAR, "word": WORD}
each_tokenizer = pytest.mark.parametrize("tokenizer", ALL.values(), ids=ALL.keys())
# Text as it comes, and text as the split pattern meets it: spaces, newlines, contractions.
texts = st.text() | st.lists(st.sampled_from([" ", "\n", "crow", "'s", "pitcher", "1", "é", "—", "\t"])).map("".join)


@given(texts)
def test_decoding_undoes_encoding_for_every_text_in_bytes_and_byte_pairs(text: str) -> None:
    for tokenizer in (BYTE, BPE):
        ids = tokenizer.encode(text)
        assert tokenizer.decode(ids) == text
        assert tokenizer.bytes_per_token[ids].sum() == len(text.encode())


@given(st.text(alphabet=sorted(set(FABLE))))
def test_decoding_undoes_encoding_in_characters_of_the_text(text: str) -> None:
    assert CHAR.decode(CHAR.encode(text)) == text
    assert len(CHAR.encode(text)) == len(text)


@each_tokenizer
@given(data=st.data())
def test_any_ids_decode_and_have_labels_that_can_be_seen(tokenizer: Tokenizer, data: st.DataObject) -> None:
    ids = data.draw(st.lists(st.integers(0, tokenizer.vocab_size - 1)))
    assert isinstance(tokenizer.decode(ids), str)
    for token in ids:
        assert tokenizer.label(token).isprintable()
        assert " " not in tokenizer.label(token)


@given(texts)
def test_the_published_library_reads_our_files_to_the_same_ids(text: str) -> None:
    for tokenizer in (BYTE, BPE):
        theirs = library.Tokenizer.from_str(tokenizer.to_library().to_str())
        assert theirs.encode(text).ids == tokenizer.encode(text)
        assert theirs.decode(tokenizer.encode(text)) == text


def test_the_published_library_reads_characters_and_words_too() -> None:
    assert CHAR.to_library().encode(FABLE).ids == CHAR.encode(FABLE)
    assert CHAR.to_library().decode(CHAR.encode(FABLE)) == FABLE
    assert WORD.to_library().encode("the crow\nthe pitcher").ids == WORD.encode("the crow\nthe pitcher") == [0, 1, 0, 2]
    assert WORD.decode([0, 1, 0, 2]) == "the crow the pitcher"


@each_tokenizer
def test_a_saved_tokenizer_is_read_back_the_same(tokenizer: Tokenizer, tmp_path: Path) -> None:
    tokenizer.save(tmp_path / "run")
    again = load(tmp_path / "run")
    assert again == tokenizer
    assert hash(again) == hash(tokenizer)
    assert (again.name, again.pieces) == (tokenizer.name, tokenizer.pieces)
    text = "the crow the pitcher"
    assert again.encode(text) == tokenizer.encode(text)


def test_tokenizers_of_different_kinds_or_texts_are_not_equal() -> None:
    assert len(set(ALL.values())) == 4
    assert make("bpe:300", FABLE.upper()) != BPE
    assert CharTokenizer("ab") != CharTokenizer("abc")


@each_tokenizer
def test_a_damaged_file_is_refused_by_name(tokenizer: Tokenizer, tmp_path: Path) -> None:
    tokenizer.save(tmp_path)
    file = tmp_path / "tokenizer.json"
    saved = file.read_bytes()
    changed = json.loads(saved)
    changed["model"]["vocab"] = {token: 2 * place for token, place in changed["model"]["vocab"].items()}
    foreign = json.loads(saved)
    foreign["normalizer"] = {"type": "Lowercase"}
    for damaged in (saved[: len(saved) // 2], b"", b"\x80", b"[]", b"{}", json.dumps(changed).encode()):
        file.write_bytes(damaged)
        with pytest.raises(UserError, match=r"tokenizer\.json is damaged, or no tokenizer of this package"):
            load(tmp_path)
    file.write_text(json.dumps(foreign))
    with pytest.raises(UserError, match="it holds parts that are not known here"):
        load(tmp_path)


def test_a_missing_file_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"tokenizer\.json cannot be read \(No such file"):
        load(tmp_path)


def test_a_byte_is_its_own_id_and_half_a_character_decodes_to_a_replacement() -> None:
    assert BYTE.encode("é") == [0xC3, 0xA9]
    assert BYTE.decode([0xC3]) == "�"
    assert [BYTE.label(token) for token in (0xC3, 0x20, 0x0A, 0x09, 0x00, 0x61)] == [
        "\\xc3",
        "␣",
        "↵",
        "⇥",
        "\\x00",
        "a",
    ]


@pytest.mark.parametrize("token", [-1, 256])
def test_an_id_outside_the_vocabulary_is_refused(token: int) -> None:
    with pytest.raises(UserError, match=f"token {token} is not in the vocabulary of 256"):
        BYTE.decode([token])


def test_an_unknown_character_is_named() -> None:
    with pytest.raises(UserError, match="the character 'Ω' is not among the"):
        CHAR.encode("crow Ω")


def test_an_unknown_word_is_answered_with_the_nearest() -> None:
    with pytest.raises(UserError, match="the word 'crows' is not among the 3 known ones: did you mean 'crow'"):
        WORD.encode("the crows")


def test_half_a_character_of_utf_16_is_refused_and_not_lost() -> None:
    for tokenizer in (BYTE, BPE):
        with pytest.raises(UserError, match="half a character"):
            tokenizer.encode("a\ud800")


def test_byte_pairs_fill_the_vocabulary_exactly_or_say_how_far_the_text_goes() -> None:
    assert BPE.vocab_size == 300
    with pytest.raises(UserError, match=r"has only enough different strings for 25[67] tokens, not 400"):
        make("bpe:400", "ab")
    with pytest.raises(UserError, match="did you mean 'byte'"):
        make("bytes", FABLE)


@given(texts)
@settings(max_examples=50)
def test_cutting_a_long_text_moves_no_token(text: str) -> None:
    long = (text + FABLE) * 2
    assert len(list(tokenizers._parts(long))) == 1
    with pytest.MonkeyPatch.context() as patch:
        whole = BPE.encode(long)
        patch.setattr(tokenizers, "_PIECE", 5)
        assert len(list(tokenizers._parts(long))) > 1
        assert "".join(tokenizers._parts(long)) == long
        assert BPE.encode(long) == whole


def test_a_trained_tokenizer_is_taken_from_the_cache_by_the_next_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADSTOCK_CACHE", str(tmp_path))
    tokenizers._trained.cache_clear()
    first = make("bpe:280", FABLE)
    assert make("bpe:280", FABLE) is first
    tokenizers._trained.cache_clear()  # what a new process begins with
    with monkeypatch.context() as patch:
        patch.setattr(library.trainers, "BpeTrainer", None)
        assert make("bpe:280", FABLE) == first
        tokenizers._trained.cache_clear()
    [entry] = (tmp_path / "bpe").iterdir()
    entry.write_bytes(entry.read_bytes()[:-10])
    assert make("bpe:280", FABLE) == first


def test_byte_pairs_on_shakespeare_give_the_reference_number_of_tokens(shakespeare: Path) -> None:
    text = shakespeare.read_bytes().decode()
    tokenizer = make("bpe:1024", text)
    assert isinstance(tokenizer, BpeTokenizer)
    assert tokenizer.vocab_size == 1024
    assert len(tokenizer.encode_array(text)) == 459_792
