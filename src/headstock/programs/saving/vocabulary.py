"""The tokens of a compiled model as a tokenizer.json, for the `tokenizers` library and all that is built upon it.

A token a character where all that can be read are characters, and else a token a word; the start token in front by
itself. The library knows no token that can only be written: it takes `None` for a word like any other.
"""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headstock.checkpoints.files import write_atomically
from headstock.programs.values import shown

if TYPE_CHECKING:
    from headstock.programs.reading_out import Readout

FILE_NAME = "tokenizer.json"
RECORD = "program.json"
"""What a folder with a compiled program has besides."""


def holds_program(folder: Path) -> bool:
    """Whether a folder holds a compiled program."""
    return (folder / RECORD).is_file()


def by_characters(readout: "Readout") -> bool:
    """Whether a text is read a token a character; else words are parted by white space."""
    return all(len(shown(token)) == 1 for token in readout.domain.vocabulary)


def library_tokenizer(readout: "Readout") -> Any:
    """Give a tokenizer of the `tokenizers` library."""
    import tokenizers as library
    from tokenizers import decoders, models, pre_tokenizers, processors

    ids = {name: place for place, name in enumerate(readout.names)}
    made = library.Tokenizer(models.WordLevel(ids))
    if by_characters(readout):
        each = "|".join(re.escape(shown(token)) for token in readout.domain.vocabulary)
        made.pre_tokenizer = pre_tokenizers.Split(library.Regex(each), "isolated")
        made.decoder = decoders.Fuse()
    else:
        made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    if readout.start is not None:
        name = readout.names[readout.start]
        made.add_special_tokens([library.AddedToken(name, special=True, normalized=False)])
        made.post_processor = processors.TemplateProcessing(
            single=f"{name} $A", pair=None, special_tokens=[(name, readout.start)]
        )
    return made


def save_vocabulary(readout: "Readout", folder: Path) -> None:
    """Write tokenizer.json into a folder. Raises UserError where that cannot be."""
    content = library_tokenizer(readout).to_str(pretty=True).encode()
    write_atomically(folder / FILE_NAME, lambda beside: beside.write_bytes(content))
