"""What a study is: rows declared beside published figures, and claims that say when ours agree with theirs.

A study's file holds values alone. Who runs it, judges it and writes its report knows nothing of what it asks.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from headstock.model.transformer import Transformer
from headstock.pictures.picture import Picture
from headstock.studies.figures import Ours
from headstock.tasks.base import Task

if TYPE_CHECKING:
    from headstock.studies.results import StudyResult

Budget = Literal["quick", "full"]
Settings: TypeAlias = Mapping[str, Any]
"""ModelConfig's and TrainingConfig's keys."""


@dataclass(frozen=True)
class Opened:
    """A row with a seed, ready to be measured."""

    row: str
    seed: int
    budget: Budget
    model: Transformer | None = None
    """Trained, in evaluation mode; None for a row that trains nothing."""
    task: Task | None = None
    """What it was trained on, or the row's own task where it trains nothing."""

    @property
    def trained(self) -> tuple[Transformer, Task]:
        """Give the model and its task, for a row that has them both."""
        assert self.model is not None
        assert self.task is not None
        return self.model, self.task


@dataclass(frozen=True)
class Measured:
    """What was measured of one row with one seed."""

    figures: Mapping[str, float]
    """By name; what claims are made of."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """Whatever pictures need beside, in JSON's terms; a number that is not finite is None when it is read again."""


@dataclass(frozen=True)
class Row:
    """One line of a study: a model to be trained, something to be measured, or both.

    A trained row has the figures `perplexity`, `loss`, `accuracy` and, for text, `bits_per_byte`, each on the held-out
    split; with `train_` before its name each stands for the training split; and `parameters`.
    """

    name: str
    """Short, of letters, digits and hyphens; unique in its study."""
    says: str
    """What it is, in a few words: a line of the report's table."""
    variant: str = ""
    """As the variant grammar writes it; empty where nothing is trained."""
    task: str = ""
    """As `tasks.parse` reads it; the study's where empty and something is trained."""
    settings: Settings = field(default_factory=dict)
    """Beside those of the study and of the budget, which they come before; a variant's own keys come before them."""
    measure: Callable[[Opened], Measured] | None = None
    """What is measured of it beside the figures of its training."""
    published: Mapping[str, str] = field(default_factory=dict)
    """Figures as they were published, by the name of ours: printed beside it, letter for letter."""
    steps_share: float = 1.0
    """How much of the budget's steps it trains: 0.5 is half of them, as for an arm whose steps take twice as long."""
    threads: int | None = 1
    """Cores that measuring computes on: one, so that sums are the same everywhere; None leaves torch its own choice,
    as a measurement of time may want."""


@dataclass(frozen=True)
class Claim:
    """Something that was published, or that a study asks of itself, as a band that ours has to lie in."""

    says: str
    """A sentence about the world: "Four heads and their output map are 3 points better than one head." """
    ours: Ours
    published: str | None
    """As printed: "59.71", "about 3"; None where nobody published it, so that there is nothing to reproduce: the claim
    is the study's own, and upheld or not."""
    because: str
    """Why the band reaches from where to where."""
    at_least: float = -math.inf
    at_most: float = math.inf
    unit: str = ""
    full_only: bool = False
    """Says nothing at another budget than the document's, as the perplexity of a whole training does."""
    exact: bool = False
    """Whether no seed moves ours by more than rounding, as where it follows from a formula; so it is in a study that is
    exact, and where a claim is of parameters alone."""
    divergence_counts: bool = False
    """Whether a run whose loss became no number is an answer, its perplexity and loss infinite; elsewhere such a run
    leaves what is made of it undecided."""
    strict: bool = False
    """Whether an end of the band is outside it, as where "more" is claimed and "as much" is not enough."""

    @property
    def edges(self) -> tuple[float, float]:
        """Both ends of the band."""
        return self.at_least, self.at_most


@dataclass(frozen=True)
class Effort:
    """What a budget gives a study."""

    seeds: int
    settings: Settings = field(default_factory=dict)
    """Such as steps and batch_size."""
    rows: tuple[str, ...] = ()
    """The rows it has; all of them where empty."""
    seeds_of: Mapping[str, int] = field(default_factory=dict)
    """By row, where one needs another number of runs than the others, as what is measured in seconds may have more."""
    minutes: float | None = None
    """About how long it takes on two cores, where that is known."""


@dataclass(frozen=True)
class Study:
    """Rows, claims, and what each budget gives them."""

    name: str
    title: str
    asks: str
    """The question in a sentence or two."""
    source: str
    """Where the published figures stand."""
    rows: tuple[Row, ...]
    claims: tuple[Claim, ...]
    efforts: Mapping[Budget, Effort]
    task: str = ""
    settings: Settings = field(default_factory=dict)
    figures: tuple[str, ...] = ("perplexity",)
    """The figures that the report's table shows, in order."""
    choices: tuple[str, ...] = ()
    """What the document leaves open, or this size forbids, and was chosen here, a sentence each."""
    remarks: tuple[str, ...] = ()
    """Where ours differs from what was published and why, a sentence each, with how that is known."""
    spread: float | None = None
    """Relative standard deviation from seed to seed that is assumed of every figure, each by itself, where there is one
    seed; None assumes nothing, so that one seed decides nothing."""
    spread_alike: float = 0.0
    """The same of what a seed does to all figures of a name alike, beside the former."""
    spread_because: str = ""
    spread_of: tuple[str, ...] = ()
    """The figures that it is assumed of; all where none are named. A claim that reads another needs several seeds."""
    pooled: bool = False
    """Whether its rows are taken to scatter alike from seed to seed, relatively, so that their seeds are pooled."""
    exact: bool = False
    """Whether the figures follow from formulas, so that no seed moves them by more than rounding."""
    pictures: Callable[["StudyResult"], Sequence[Picture]] | None = None
    """Given the StudyResult, give the report's pictures; where it has not what they need, fewer or none."""
