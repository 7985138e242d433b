"""What a comparison found, as plain values: everything that the table, the report and `--json` are made from.

Every field is JSON's, so a Comparison can be written to a file and read back whole.
"""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from headstock.comparison.statistics.hypotheses import Verdict


@dataclass(frozen=True)
class CellResult:
    """One run: an arm on a task with a seed."""

    seed: int
    lr: float
    status: Literal["finished", "failed"]
    reason: str | None
    folder: str
    """Relative to the comparison's folder."""
    metrics: dict[str, dict[str, float]]
    """By split, "held-out" and "train": loss (nats a token), perplexity, accuracy, bits_per_byte for text."""
    curve: list[dict[str, float]]
    """One entry an evaluation: step, train_loss and the held-out metrics."""
    steps_to_solve: int | None
    seconds_per_step: float


@dataclass(frozen=True)
class Cost:
    """What an arm costs on a task, by formula but for the seconds."""

    d_ff: int
    parameters: int
    non_embedding: int
    flops_per_token: int
    """Forward, at the task's context."""
    cache_bytes: int
    seconds_per_step: float | None
    """Median over the arm's runs; None where none was measured."""
    kernel: str | None
    """What mixed, as read off the operations that ran."""


@dataclass(frozen=True)
class Attention:
    """Where an arm looks at a task's deciding position, in the model of its first seed that finished."""

    labels: list[str]
    """One readable label a token, up to the deciding position."""
    position: int
    weights: list[list[list[float]]]
    """[layer][head][key], keys from 0 to the position."""
    weights_are: str
    """normalised, signed or unnormalised, as the mixer declares."""
    prediction: str
    """The likeliest next token there."""
    target: str
    """The token that is right."""


@dataclass(frozen=True)
class OnProbe:
    """The primary metric of one arm at one difficulty, on held-out rows."""

    at: dict[str, int | float | str]
    """What the difficulty is, by name: a depth, a length, an order."""
    values: list[float | None]
    """One a run, in the order of the runs, and one in all of a fixed model; None where a run has none."""
    mean: float | None
    deviation: float | None
    """Standard deviation from seed to seed; None for fewer than two."""


@dataclass(frozen=True)
class SpanMass:
    """How much an arm looks at one kind of place, averaged over heads, layers and rows."""

    span: str
    """As the task marks it: "answer", "noise"; "elsewhere" is what it marks as nothing."""
    shares: list[float | None]
    """Share of Σ|w|, one a model; None where no head weighs anything."""
    mean: float | None
    deviation: float | None
    """Standard deviation from seed to seed; None for fewer than two."""
    sum: float | None
    """Σw, in which negative weights subtract, mean over models."""
    uniform: float
    """What a uniform average would put there."""


@dataclass(frozen=True)
class Mass:
    """Where the models of an arm look from the question of held-out rows, as `instruments.attention_mass` gives it."""

    spans: list[SpanMass]
    rows: int
    weights_are: str
    """normalised, signed or unnormalised, as the mixer declares."""
    lacking: int = 0
    """Finished runs whose model is not there any more, so that it could not be read."""


@dataclass(frozen=True)
class Tuning:
    """The learning rates one arm was tried at, on seeds that are not reported."""

    rates: list[float]
    values: list[float | None]
    """Mean primary metric over the tuning seeds at each rate; None where a run failed."""
    chosen: float


@dataclass(frozen=True)
class ArmOnTask:
    """One arm on one task: its complete variant, cost and runs."""

    label: str
    variant: str
    floor: bool
    lr: float
    steps: int
    cost: Cost
    cells: list[CellResult]
    attention: Attention | None
    tuning: Tuning | None
    probes: list[OnProbe] = field(default_factory=list)
    """One a difficulty that the task knows of, in the task's order."""
    mass: Mass | None = None
    """None where the task marks no answer, and where the mixer has no weights."""

    @property
    def trained(self) -> bool:
        """Whether it took a step; one that took none is a fixed model, the same run for all seeds."""
        return self.steps > 0


@dataclass(frozen=True)
class TaskOutcome:
    """One task of a comparison; its first arm is the baseline."""

    name: str
    spec: str
    title: str
    metric: str
    unit: str
    better: Literal["lower", "higher"]
    solved_at: float | None
    chance: str
    content_hash: str
    context: int
    batch_size: int
    arms: list[ArmOnTask]


@dataclass(frozen=True)
class Comparison:
    """The answer of `headstock.compare`: verdicts, and all that they stand on."""

    title: str
    command: str
    """What reproduces it."""
    date: str
    look: int
    seeds: int
    match: str
    matching: list[str]
    """Sentences: what was made equal, and what still differs."""
    reach: list[str]
    """Sentences: what the plan could claim, said before it ran."""
    exploratory: bool
    earlier_claims: list[str]
    """Sentences: what earlier looks at fewer seeds claimed, which stands though this look may not repeat it."""
    verdicts: list[Verdict]
    tasks: list[TaskOutcome]
    environment: dict[str, Any]
    plan_hash: str
    folder: str

    def to_dict(self) -> dict[str, Any]:
        """Give everything as JSON's values."""
        return asdict(self)

    def table(self) -> str:
        """Give the verdicts and the figures they stand on, as text for a terminal."""
        from headstock.comparison.report.table import as_text

        return as_text(self)

    def report(self, path: str | Path) -> Path:
        """Write the report, one HTML file that opens anywhere; give its path."""
        from headstock.comparison.report import write_report

        return write_report(self, Path(path))

    def _repr_html_(self) -> str:
        from headstock.comparison.report import as_fragment

        return as_fragment(self)
