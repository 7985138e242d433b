"""What one block costs as the sequence grows: seconds and bytes of the whole block, and of mixing alone.

All that is compared is measured in turns within one program, so that whatever else the machine does falls on all alike.
Knows nothing of how models are made equal: it is handed configs.
"""

import math
import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import asdict, dataclass, replace
from statistics import median, quantiles
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from headstock.errors import UserError
from headstock.instruments.growth import exponent_with_interval
from headstock.instruments.memory import free_bytes, peak_bytes
from headstock.model.accounting import parameters
from headstock.model.config import ModelConfig
from headstock.model.frame import Frame
from headstock.model.heads import Heads
from headstock.model.kernels import kernel_of
from headstock.model.mixers import mixer_class, told_of
from headstock.model.mixers.base import HeadMixer
from headstock.model.transformer import Block, build_from
from headstock.training.run import processor_name

Part = Literal["block", "mixing"]
"""block: norms, maps, mixing and feed-forward. mixing: from queries, keys and values to what the output map reads."""
Pass = Literal["forward", "training"]
"""forward: without gradients, as in evaluation. training: forward and backward."""
Quantity = Literal["seconds", "bytes"]

FEWEST_TURNS, MOST_TURNS = 5, 40
SHORTEST_SAMPLE = 0.02
"""Seconds; what is quicker is repeated within a turn until it takes as long."""
FITTED = 4
"""Lengths, the longest ones, that an exponent is fitted to."""
FEWEST_FITTED = 3
STORED_AT_ONCE = 3
"""Maps of weights that the plain evaluation holds at a time, at the least: scores, masked scores, weights."""
SHARE_OF_FREE = 0.9

Watch = Callable[[int, int, str], None]
"""Called with what is done, of how much, and what it was."""


@dataclass(frozen=True)
class Ratio:
    """How many times as long as the first variant, turn by turn: the median and the middle half."""

    median: float
    low: float
    high: float


@dataclass(frozen=True)
class Measured:
    """One pass through one part of one variant at one length."""

    label: str
    length: int
    part: Part
    step: Pass
    seconds: tuple[float, ...]
    """One value a turn, the turns in order."""
    ratio: Ratio | None
    """None where the first variant was left out at this length."""
    peak_bytes: int
    """The most that was held at once beyond inputs, parameters and their gradients."""
    kernel: str
    """What mixed: see `headstock.model.kernels`."""

    @property
    def median_seconds(self) -> float:
        """The middle one of the turns."""
        return median(self.seconds)

    @property
    def half_spread(self) -> float:
        """Half the width of the middle half of the turns, as a share of the median."""
        low, high = _middle_half(self.seconds)
        return (high - low) / 2 / self.median_seconds


@dataclass(frozen=True)
class Growth:
    """The exponent p of cost ~ length^p: least squares on logarithms, over the longest lengths measured."""

    label: str
    part: Part
    step: Pass
    quantity: Quantity
    exponent: float
    low: float
    """The 95 % interval, by Student's t. Bytes are exact, so theirs says how far they are from one power."""
    high: float
    lengths: tuple[int, ...]


@dataclass(frozen=True)
class Variant:
    """What was measured, by formula."""

    label: str
    variant: str
    block_parameters: int
    d_ff: int
    mixing_is_apart: bool
    """False for a mixer without maps of its own around what it does: its mixing is all of the mixer."""


@dataclass(frozen=True)
class Cost:
    """The result: every measurement, in the order length, variant, part, pass."""

    variants: tuple[Variant, ...]
    lengths: tuple[int, ...]
    batch: int
    plain: bool
    turns: int
    measured: tuple[Measured, ...]
    growth: tuple[Growth, ...]
    weights_bytes: dict[str, dict[int, int | None]]
    """What storing all weights of a variant once takes, by length; None where its weights are none."""
    left_out: tuple[str, ...]
    """A sentence for each variant and length that would not have fitted into memory."""
    environment: dict[str, str]

    def at(self, label: str, length: int, part: Part, step: Pass) -> Measured | None:
        """Give one measurement; None where it was left out."""
        asked = (label, length, part, step)
        return next((m for m in self.measured if (m.label, m.length, m.part, m.step) == asked), None)

    def exponent(self, label: str, part: Part, step: Pass, quantity: Quantity) -> Growth | None:
        """Give one exponent; None where fewer than three lengths were measured."""
        asked = (label, part, step, quantity)
        return next((g for g in self.growth if (g.label, g.part, g.step, g.quantity) == asked), None)

    def to_dict(self) -> dict[str, Any]:
        """Give everything in JSON's terms."""
        return asdict(self)


def cost_by_length(
    configs: Mapping[str, ModelConfig],
    lengths: Sequence[int],
    *,
    batch: int = 1,
    plain: bool = False,
    seconds: float = 60.0,
    device: str | torch.device = "cpu",
    watch: Watch | None = None,
) -> Cost:
    """Measure one block of each config, by label, at each length; ratios are to the first.

    Weights are drawn, float32. With `plain` every mixer stores its weights. Memory is counted once, exactly; time is
    taken in turns of everything, at least five, until `seconds` are over. Threads are as torch has them. What would
    not fit into free memory is left out.

    Raises UserError for lengths or sizes that mean nothing, and where nothing fits into memory.
    """
    lengths = tuple(sorted(set(lengths)))
    if not configs:
        raise UserError("nothing is measured: name a variant or more, such as softmax and differential.")
    if not lengths or lengths[0] < 1:
        raise UserError(f"the lengths are {', '.join(map(str, lengths)) or 'none'}: give numbers of tokens from 1 on.")
    if batch < 1:
        raise UserError(f"the batch is {batch}: give 1 or more.")
    if not (seconds > 0 and math.isfinite(seconds)):
        raise UserError(f"seconds is {seconds:g}: give how long to measure, such as 60.")
    for label, config in configs.items():
        if config.context < lengths[-1]:
            raise UserError(f"{label} has a context of {config.context} tokens: measure no more, or give it a longer.")
    watch = watch or (lambda done, total, said: None)
    held = torch.device(device)
    arms = [_Arm(label, _that_fits(label, config, lengths, held), plain, held) for label, config in configs.items()]
    cells, left_out = _counted(arms, lengths, batch, watch)
    if not cells:
        raise UserError(f"nothing was measured: {left_out[0]}")
    turns = _timed(cells, seconds, watch)
    measured = tuple(_measured(cell, cells, arms[0]) for cell in cells)
    return Cost(
        variants=tuple(arm.described() for arm in arms),
        lengths=lengths,
        batch=batch,
        plain=plain,
        turns=turns,
        measured=measured,
        growth=tuple(_growths(measured)),
        weights_bytes={arm.label: {n: arm.weights_bytes(n, batch) for n in lengths} for arm in arms},
        left_out=tuple(left_out),
        environment=_environment(torch.device(device)),
    )


def _that_fits(label: str, config: ModelConfig, lengths: Sequence[int], device: torch.device) -> ModelConfig:
    """Give the config, its context cut to the longest length whose tables of places fit into memory.

    Raises UserError where its numbers do not even fit at the shortest.
    """
    free = free_bytes(device)
    if free is None:
        return config
    for context in (config.context, *reversed(lengths)):
        cut = config.model_copy(update={"context": context, "n_layers": 1})
        needed = _bytes_of_numbers(cut)
        if needed <= SHARE_OF_FREE * free:
            return cut
    raise UserError(f"nothing was measured: {_left_out(label, lengths[0], needed, free)}")


def _bytes_of_numbers(config: ModelConfig) -> int:
    """Count the bytes of a model's numbers and of its block's gradients."""
    with told_of(config.mixer):
        counted = parameters(config)
    return (counted.total + counted.blocks) * torch.float32.itemsize


def _left_out(label: str, length: int, needed: int, free: int) -> str:
    return (
        f"{label} is left out at {length:,} tokens: it would take some {_gibibytes(needed)} of memory, "
        f"and {_gibibytes(free)} are free."
    )


class _Arm:
    """A config and the block that is measured; its parameters' gradients are there before anything runs."""

    def __init__(self, label: str, config: ModelConfig, plain: bool, device: torch.device) -> None:
        self.label = label
        self.config = config.model_copy(update={"n_layers": 1})
        self.device = device
        self.plain = plain
        with told_of(config.mixer):
            self.model = build_from(self.config).to(device)
        self.model.plain = plain
        block = self.model.blocks[0]
        assert isinstance(block, Block)
        self.block = block
        for parameter in block.parameters():
            parameter.grad = torch.zeros_like(parameter)
        self.mixing_is_apart = isinstance(block.mixer, HeadMixer)

    def described(self) -> Variant:
        counted = parameters(self.config).blocks
        return Variant(self.label, self.config.variant, counted, self.config.d_ff, self.mixing_is_apart)

    def weights_bytes(self, length: int, batch: int) -> int | None:
        """Every weight of every map, float32."""
        mixer = mixer_class(self.config.mixer)
        if mixer.weights_are == "none":
            return None
        return batch * mixer.sizes(self.config).query_heads * length**2 * torch.float32.itemsize

    def entering(self, length: int, batch: int) -> tuple[Tensor, Frame]:
        """Give random numbers of the block's input, and the frame that the model makes."""
        caught: list[tuple[Tensor, Frame]] = []
        hook = self.block.register_forward_pre_hook(lambda _, given: caught.append(given))
        try:
            with torch.no_grad(), told_of(self.config.mixer):
                self.model.hidden(torch.zeros(batch, length, dtype=torch.long, device=self.device))
        finally:
            hook.remove()
        embedded_bqm, frame = caught[0]
        x_bqm = torch.randn(embedded_bqm.shape, generator=torch.Generator().manual_seed(0))
        return x_bqm.to(self.device), frame

    def ways(self, length: int, batch: int) -> dict[Part, "_Way"]:
        """Give how each part is run at a length."""
        x_bqm, frame = self.entering(length, batch)
        with torch.no_grad():
            read_bqm = self.block.mixer_norm(x_bqm) if self.block.pre_norm else x_bqm
        mixing = self._mixing(read_bqm, frame) if self.mixing_is_apart else None
        if mixing is None:
            self.mixing_is_apart = False
            mixing = _Way(lambda x: self.block.mixer(x, _anew(frame)), [read_bqm])
        return {"block": _Way(lambda x: self.block(x, _anew(frame)), [x_bqm]), "mixing": mixing}

    def _mixing(self, x_bqm: Tensor, frame: Frame) -> "_Way | None":
        """Give the mixer's own forward with its maps done before and its output map off; None where it has others."""
        mixer = self.block.mixer
        assert isinstance(mixer, HeadMixer)
        with torch.no_grad():
            made = mixer.project(x_bqm, frame)
        alone = copy(mixer)  # with the same parameters
        alone._modules = {**mixer._modules, "output": None}
        asked = False

        def mixing(q: Tensor, k: Tensor, v: Tensor, gates: Tensor | None = None) -> Tensor:
            anew = _anew(frame)
            heads = replace(made, q_bhqd=q, k_bhkd=k, v_bhkd=v, gates_bhk=gates, visible=anew.visible)

            def project(*_: object) -> Heads:
                nonlocal asked
                asked = True
                return heads

            alone.project = project  # type: ignore[method-assign, assignment]
            z_bqm: Tensor = alone.train(mixer.training)(x_bqm, anew)
            del alone.project  # which holds on to the masks
            return z_bqm

        inputs = [made.q_bhqd, made.k_bhkd, made.v_bhkd]
        way = _Way(mixing, inputs if made.gates_bhk is None else [*inputs, made.gates_bhk])
        return way if asked else None


def _anew(frame: Frame) -> Frame:
    """Give the frame without the masks that an earlier run has made: they are part of the cost."""
    return replace(frame, visible=replace(frame.visible))


class _Way:
    """One part of a block as a function of its inputs, to be run with or without gradients."""

    def __init__(self, function: Callable[..., Tensor], inputs: Sequence[Tensor]) -> None:
        self.function = function
        self.inputs = [x.detach().requires_grad_() for x in inputs]
        with torch.no_grad():
            self.gradient = torch.ones_like(function(*self.inputs))

    def forward(self) -> None:
        with torch.no_grad():
            self.function(*self.inputs)

    def training(self) -> None:
        self.let_go()
        self.function(*self.inputs).backward(self.gradient)  # type: ignore[no-untyped-call]

    def let_go(self) -> None:
        """Let the inputs' gradients go, which a run gives anew."""
        for x in self.inputs:
            x.grad = None


class _Cell:
    """One pass through one part of one arm at one length, and what was measured of it."""

    def __init__(self, arm: _Arm, length: int, part: Part, step: Pass, way: _Way) -> None:
        self.arm, self.length, self.part, self.step = arm, length, part, step
        self.way = way
        self.run = way.forward if step == "forward" else way.training
        self.kernel, self.peak_bytes, self.repeats = "", 0, 1
        self.seconds: list[float] = []

    def count(self) -> None:
        """Run thrice: for the kernel, for the memory, for the number of repeats; this warms up, too."""
        self.arm.block.train(self.step == "training")
        with told_of(self.arm.config.mixer):
            self.kernel = kernel_of(self.run)
            self.way.let_go()
            self.peak_bytes = peak_bytes(self.run, self.arm.device)
            self.repeats = max(1, math.ceil(SHORTEST_SAMPLE / self.timed(1)))

    def take_turn(self) -> None:
        self.arm.block.train(self.step == "training")
        self.seconds.append(self.timed(self.repeats))

    def timed(self, repeats: int) -> float:
        """Give seconds a run."""
        self._wait()
        began = time.perf_counter()
        for _ in range(repeats):
            self.run()
        self._wait()
        return (time.perf_counter() - began) / repeats

    def _wait(self) -> None:
        if self.arm.device.type == "cuda":
            torch.cuda.synchronize(self.arm.device)


def _counted(arms: Sequence[_Arm], lengths: Sequence[int], batch: int, watch: Watch) -> tuple[list[_Cell], list[str]]:
    """Count memory and name kernels, shortest first, so that a length that would not fit is foreseen."""
    cells: list[_Cell] = []
    left_out = []
    for done, length in enumerate(lengths):
        watch(done, len(lengths), f"memory and kernels at {length:,} tokens")
        at_length: list[_Cell] = []
        for arm in arms:
            needed, free = _needed(arm, length, batch, cells), free_bytes(arm.device)
            if free is not None and needed > SHARE_OF_FREE * free:
                left_out.append(_left_out(arm.label, length, needed, free))
                continue
            for part, way in arm.ways(length, batch).items():
                for step in get_args(Pass):
                    at_length.append(_Cell(arm, length, part, step, way))
                    at_length[-1].count()
        # What is compared stands side by side in a turn.
        cells += sorted(at_length, key=lambda cell: (cell.part, cell.step))
    return cells, left_out


def _needed(arm: _Arm, length: int, batch: int, before: Sequence[_Cell]) -> int:
    """Foresee the bytes of a length: by formula alone at first, then from the longest one measured."""
    if length > arm.config.context:  # whose tables alone are too large
        return _bytes_of_numbers(arm.config.model_copy(update={"context": length}))
    linear = not arm.plain and mixer_class(arm.config.mixer).memory_is_linear(arm.config)
    measured = [cell for cell in before if cell.arm is arm]
    if measured:
        longest = measured[-1].length
        most = max(cell.peak_bytes for cell in measured if cell.length == longest)
        return math.ceil(most * (length / longest) ** (1 if linear else 2))
    activations = batch * length * (arm.config.d_model + arm.config.d_ff) * torch.float32.itemsize
    return activations + (0 if linear else STORED_AT_ONCE * (arm.weights_bytes(length, batch) or 0))


def _gibibytes(count: int) -> str:
    return f"{count / 2**30:,.1f} GiB"


def _timed(cells: Sequence[_Cell], seconds: float, watch: Watch) -> int:
    """Let every cell take its turns until the time is over; give how many."""
    began = time.perf_counter()
    turns, expected = 0, FEWEST_TURNS
    while turns < expected:
        watch(turns, expected, f"turn {turns + 1} of {expected}")
        for cell in cells:
            cell.take_turn()
        turns += 1
        a_turn = (time.perf_counter() - began) / turns
        expected = min(MOST_TURNS, max(FEWEST_TURNS, int(seconds / a_turn)))
    watch(turns, turns, f"{turns} turns taken")
    return turns


def _measured(cell: _Cell, cells: Sequence[_Cell], first: _Arm) -> Measured:
    where = (cell.length, cell.part, cell.step)
    beside = next((one for one in cells if one.arm is first and (one.length, one.part, one.step) == where), None)
    ratio = None
    if beside is not None:
        by_turn = [own / other for own, other in zip(cell.seconds, beside.seconds, strict=True)]
        ratio = Ratio(median(by_turn), *_middle_half(by_turn))
    return Measured(cell.arm.label, *where, tuple(cell.seconds), ratio, cell.peak_bytes, cell.kernel)


def _middle_half(values: Sequence[float]) -> tuple[float, float]:
    low, _, high = quantiles(values, n=4, method="inclusive")
    return low, high


def _growths(measured: Sequence[Measured]) -> Iterator[Growth]:
    """Fit one exponent to each variant, part, pass and quantity of which enough lengths were measured."""
    for label, part, step in dict.fromkeys((one.label, one.part, one.step) for one in measured):
        longest = [one for one in measured if (one.label, one.part, one.step) == (label, part, step)][-FITTED:]
        if len(longest) < FEWEST_FITTED:
            continue
        lengths = tuple(one.length for one in longest)
        for quantity in get_args(Quantity):
            cost = [one.median_seconds if quantity == "seconds" else one.peak_bytes for one in longest]
            if min(cost) > 0:
                yield Growth(label, part, step, quantity, *exponent_with_interval(lengths, cost), lengths)


def _environment(device: torch.device) -> dict[str, str]:
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "machine": f"{platform.system()} {platform.machine()}",
        "processor": processor_name(),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
        "dtype": "float32",
        "threads": str(torch.get_num_threads()),
    }
