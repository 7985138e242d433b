"""What the page shows of a model on one text, ready to be put into it; it shows and saves itself."""

from dataclasses import dataclass
from pathlib import Path

from headstock.checkpoints.files import write_atomically
from headstock.errors import UserError
from headstock.instruments.viewer.encoding import EncodedMap
from headstock.instruments.viewer.heads import HeadSummary
from headstock.instruments.viewer.predictions import Prediction, mean_loss
from headstock.pictures import numbers

MOST_IN_A_NOTEBOOK = 4_000_000
"""Weights up to which a notebook holds them; of more it shows the small pictures alone."""


@dataclass(frozen=True)
class Layer:
    """The maps of one block."""

    maps: tuple[EncodedMap, ...]
    """What each head averages by."""
    pairs: tuple[tuple[EncodedMap, EncodedMap], ...] = ()
    """Of a difference of two maps, both of each head; empty where there are none, or where they are left out."""
    shares: tuple[tuple[float, ...], ...] = ()
    """λ of each head and query, by which the second map was multiplied; one a head where it is one for all queries."""


@dataclass(frozen=True)
class View:
    """One text as a model reads it: its tokens, every map, what each head does, and what is expected next."""

    title: str
    labels: tuple[str, ...]
    """What each token is called."""
    layers: tuple[Layer, ...]
    """Empty where there are no maps."""
    heads: tuple[HeadSummary, ...]
    """Layer after layer."""
    predictions: tuple[Prediction, ...]
    """One a token; empty where none were made."""
    weights_are: str
    width: int
    """Bytes a weight is kept in."""
    notes: tuple[str, ...] = ()
    """Sentences: what is not there, and why."""

    @property
    def n_weights(self) -> int:
        """How many weights are kept."""
        length = len(self.labels)
        every = [
            one for layer in self.layers for one in (*layer.maps, *(map_ for pair in layer.pairs for map_ in pair))
        ]
        return sum(length * (length + 1) // 2 if one.triangle else length * length for one in every)

    @property
    def summary(self) -> str:
        """How large it is, and how well the text is predicted."""
        n_layers, n_heads = (max((place + 1 for place in places), default=0) for places in self._places)
        parts = [f"{numbers.count(n_layers, 'layer')} × {numbers.count(n_heads, 'head')}"] if n_heads else []
        parts.append(numbers.count(len(self.labels), "token"))
        loss = mean_loss(self.predictions)
        if loss is not None:
            right = sum(one.right is True for one in self.predictions)
            parts += [f"loss {loss:.3f} nats a token", f"{right} of {len(self.labels) - 1} next tokens predicted"]
        return " · ".join(parts)

    @property
    def _places(self) -> tuple[list[int], list[int]]:
        return [one.layer for one in self.heads], [one.head for one in self.heads]

    def save(self, path: str | Path) -> Path:
        """Write the page, one .html file that needs nothing else; give its path.

        A file that is there is replaced, whole or not at all. Raises UserError for another ending, and where the file
        cannot be written.
        """
        from headstock.instruments.viewer.page import as_page

        path = Path(path)
        refuse_ending(path)
        page = as_page(self)
        write_atomically(path, lambda beside: beside.write_text(page, encoding="utf-8"))
        return path

    def __repr__(self) -> str:
        return f"View({self.title}: {len(self.labels)} tokens, {len(self.layers)} layers of maps)"

    def _repr_html_(self) -> str:
        """Give the page as one element, for a notebook."""
        from headstock.instruments.viewer.page import as_fragment

        return as_fragment([self])


def refuse_ending(path: Path) -> None:
    """Raise UserError for a file that would not be opened as a page, and for a folder."""
    if path.suffix.lower() not in (".html", ".htm"):
        raise UserError(f"{path} is not named as a page: give it the ending .html.")
    if path.is_dir():
        raise UserError(f"{path} is a folder: give the name of a file.")
