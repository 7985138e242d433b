"""A compiled folder's tokens: characters or words, the start token in front, and no reading of what is only written."""

from pathlib import Path

import pytest
import tokenizers as library

import headstock as hs
from headstock.errors import UserError
from headstock.tasks import tokenizers
from headstock.tasks.program_tokens import ProgramTokenizer
from tests.programs.some_compiled import compiled_flag, compiled_mean, compiled_repeat, compiled_sort

ALL = [
    (compiled_sort, "cab"),
    (compiled_repeat, "a|ba"),
    (compiled_flag, "yes none"),
    (compiled_mean, "10 1 2"),
]


@pytest.mark.parametrize(("make", "text"), ALL)
def test_a_text_comes_back_and_the_ids_are_those_that_the_model_reads(make, text: str, tmp_path: Path) -> None:
    compiled = make()
    compiled.save(tmp_path)
    made = tokenizers.load(tmp_path)
    assert isinstance(made, ProgramTokenizer)
    assert made.decode(made.encode(text)) == text
    shown = {str(token): token for token in compiled.domain.vocabulary}
    words = [shown[word] for word in (text.split() if " " in text else text)]
    ids, _ = compiled.readout.ids_of([words])
    assert made.encode(text) == ids[0].tolist()
    assert made.encode("") == []


@pytest.mark.parametrize(("make", "text"), ALL)
def test_the_tokenizers_library_reads_the_same_file(make, text: str, tmp_path: Path) -> None:
    make().save(tmp_path)
    ours = tokenizers.load(tmp_path)
    theirs = library.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    assert theirs.encode(text).ids == ours.encode(text)
    assert theirs.decode(theirs.encode(text).ids) == text
    assert [theirs.id_to_token(token) for token in range(ours.vocab_size)] == list(ours.readout.names)
    assert ours == tokenizers.load(tmp_path)


def test_what_can_only_be_written_is_refused_as_input(tmp_path: Path) -> None:
    compiled_sort().save(tmp_path)
    made = tokenizers.load(tmp_path)
    for text in ("abd", "<start>a", "None"):
        with pytest.raises(UserError, match="is not in the program's vocabulary"):
            made.encode(text)
    assert [made.label(token) for token in range(made.vocab_size)] == ["a", "b", "c", "<start>", "None"]
    assert made.decode([3, 0, 4]) == "aNone"


def test_a_model_without_a_program_keeps_its_own_tokenizer(tmp_path: Path) -> None:
    hs.save(compiled_sort().model, tmp_path, tokenizer=tokenizers.ByteTokenizer())
    assert isinstance(tokenizers.load(tmp_path), tokenizers.ByteTokenizer)
