"""What is measured: a config's block, and each of its parts as a function that can be run alone."""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace

import torch
from torch import Tensor

from headstock.instruments.cost.expected import stored_once
from headstock.instruments.cost.result import Part, Variant
from headstock.model.accounting import parameters
from headstock.model.config import ModelConfig
from headstock.model.frame import Frame
from headstock.model.heads import Heads
from headstock.model.mixers import told_of
from headstock.model.mixers.base import HeadMixer
from headstock.model.transformer import Block, build_from

Outputs = Tensor | tuple[Tensor, ...]


class Subject:
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
        """Give what the result says of it."""
        counted = parameters(self.config).blocks
        return Variant(self.label, self.config.variant, counted, self.config.d_ff, self.mixing_is_apart)

    def weights_bytes(self, length: int, batch: int) -> int | None:
        """Every weight of every map, float32."""
        return stored_once(self.config, length, batch)

    def ways(self, length: int, batch: int, parts: Sequence[Part]) -> "dict[Part, Way]":
        """Give how each part that the block has is run at a length."""
        x_bqm, frame = self._entering(length, batch)
        with torch.no_grad():
            read_bqm = self.block.mixer_norm(x_bqm) if self.block.pre_norm else x_bqm
        mixing = self._mixing(read_bqm, frame) if self.mixing_is_apart else None
        if mixing is None:
            self.mixing_is_apart = False
            mixing = Way(lambda x: self.block.mixer(x, _anew(frame)), [read_bqm])
        made: dict[Part, Callable[[], Way]] = {
            "block": lambda: Way(lambda x: self.block(x, _anew(frame)), [x_bqm]),
            "mixing": lambda: mixing,
        }
        if self.mixing_is_apart:
            made["projections"] = lambda: self._projections(read_bqm, frame)
        if self.block.has_feedforward:
            made["feedforward"] = lambda: Way(self.block.feedforward, [read_bqm])
        return {part: made[part]() for part in parts if part in made}

    def _entering(self, length: int, batch: int) -> tuple[Tensor, Frame]:
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

    def _mixing(self, x_bqm: Tensor, frame: Frame) -> "Way | None":
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
        way = Way(mixing, inputs if made.gates_bhk is None else [*inputs, made.gates_bhk])
        return way if asked else None

    def _projections(self, x_bqm: Tensor, frame: Frame) -> "Way":
        """Give the maps into heads of what the mixer reads, and the output map of as much as its heads give."""
        mixer = self.block.mixer
        assert isinstance(mixer, HeadMixer)
        z_bqm = x_bqm.new_ones(*x_bqm.shape[:2], mixer.heads.output_heads * mixer.heads.value_size)

        def projections(x: Tensor, z: Tensor) -> Outputs:
            heads = mixer.project(x, frame)
            made = [heads.q_bhqd, heads.k_bhkd, heads.v_bhkd, heads.gates_bhk]
            if mixer.output is not None:
                made.append(mixer.output(z))
            return tuple(y for y in made if y is not None and y.numel())

        return Way(projections, [x_bqm, z_bqm])


def _anew(frame: Frame) -> Frame:
    """Give the frame without the masks that an earlier run has made: they are part of the cost."""
    return replace(frame, visible=replace(frame.visible))


class Way:
    """One part of a block as a function of its inputs, to be run with or without gradients."""

    def __init__(self, function: Callable[..., Outputs], inputs: Sequence[Tensor]) -> None:
        self.function = function
        self.inputs = [x.detach().requires_grad_() for x in inputs]
        with torch.no_grad():
            outputs = function(*self.inputs)
        self.gradients = [torch.ones_like(y) for y in ((outputs,) if isinstance(outputs, Tensor) else outputs)]

    def forward(self) -> None:
        """Run without gradients."""
        with torch.no_grad():
            self.function(*self.inputs)

    def training(self) -> None:
        """Run forward and backward."""
        self.let_go()
        outputs = self.kept()
        torch.autograd.backward(outputs, self.gradients)

    def kept(self) -> tuple[Tensor, ...]:
        """Run forward, ready to go backward from what is given."""
        outputs = self.function(*self.inputs)
        return (outputs,) if isinstance(outputs, Tensor) else outputs

    def let_go(self) -> None:
        """Let the inputs' gradients go, which a run gives anew."""
        for x in self.inputs:
            x.grad = None
