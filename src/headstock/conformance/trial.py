"""What a check is given: models of one config with stirred numbers, ids, and ways of reading them.

Batch, time, heads, head size and context all differ in number, so that an axis taken for another shows.
"""

from collections.abc import Mapping
from contextlib import ExitStack
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from headstock.conformance.check import NotApplicableError
from headstock.errors import UserError
from headstock.model.cache import Cache
from headstock.model.config import ModelConfig
from headstock.model.dropout import seed_from
from headstock.model.frame import Frame
from headstock.model.mixers import mixer_class
from headstock.model.mixers.base import Mixer
from headstock.model.transformer import Transformer, build_from

BATCH, TIME, CONTEXT, VOCABULARY = 3, 9, 12, 17
SIZES: Mapping[str, Any] = {"vocab_size": VOCABULARY, "context": CONTEXT, "d_model": 24, "n_layers": 2, "n_heads": 4}
SEED = 7
"""Not the seed that a model gets where none is named: what is drawn and not saved then shows."""


@dataclass(frozen=True)
class Reading:
    """One way of reading (batch, time) ids, and its name."""

    name: str
    real: Tensor | None = None
    documents: Tensor | None = None

    @property
    def says(self) -> dict[str, Tensor]:
        """What the model is told besides the ids."""
        said = {"real": self.real, "documents": self.documents}
        return {name: tensor for name, tensor in said.items() if tensor is not None}

    def meant(self, ids: Tensor) -> Tensor:
        """Give bool (batch, time): the tokens whose logits mean something."""
        return torch.ones_like(ids, dtype=torch.bool) if self.real is None else self.real


LENGTHS = torch.tensor([9, 5, 1])[:, None]
"""Real tokens of each row, where there is padding."""
_PLACES = torch.arange(TIME)
LEFT = Reading("padded left", real=_PLACES >= TIME - LENGTHS)
RIGHT = Reading("padded right", real=_PLACES < LENGTHS)
EMPTY = Reading(
    "a row of padding", real=torch.tensor([[True] * 9, [False] * 9, [False] * 3 + [True] * 4 + [False] * 2])
)
PACKED = Reading("packed", documents=torch.tensor([[0] * 4 + [1] * 5, [3] * 1 + [2] * 2 + [5] * 6, [7] * 9]))
PACKED_AND_PADDED = Reading("packed and padded", real=RIGHT.real, documents=PACKED.documents)
WHOLE = Reading("whole")
READINGS = (WHOLE, LEFT, RIGHT, EMPTY, PACKED, PACKED_AND_PADDED)


@dataclass(frozen=True)
class Trial:
    """One config under trial."""

    config: ModelConfig
    kind: type[Mixer] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", mixer_class(self.config.mixer))

    def model(self, dtype: torch.dtype = torch.float64, *, plain: bool = False, seed: int = SEED) -> Transformer:
        """Give a model in evaluation mode; every number is moved away from where it starts.

        So no weight is 1, no bias 0 and no attention nearly uniform. A parameter's draw follows from its name, so
        two configs share what they share.
        """
        model = build_from(self.config, seed=seed)
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                generator = torch.Generator().manual_seed(seed_from("stir", name))
                parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))
        model.plain = plain
        return model.to(dtype).eval()

    def changed(self, **changes: Any) -> "Trial":
        """Give the trial of another config. Raises NotApplicableError where the mixer refuses it, with its reason."""
        try:
            trial = replace(self, config=ModelConfig(**{**self.config.model_dump(), **changes}))
            self.kind.check(trial.config)
        except UserError as error:
            for key, value in changes.items():
                name = str(value) if key == "position" else key
                if name in self.kind.refuses:
                    raise NotApplicableError(f"refuses {name}: {self.kind.refuses[name]}") from None
            raise NotApplicableError(str(error)) from None
        return trial

    def alone(self) -> "Trial":
        """Give the trial of one block, without dropout."""
        return self.changed(n_layers=1, dropout_attention=0.0, dropout_residual=0.0, dropout_embedding=0.0)

    @property
    def readings(self) -> tuple[Reading, ...]:
        """Every way of reading."""
        return READINGS

    def ids(self, batch: int = BATCH, time: int = TIME, seed: int = 0) -> Tensor:
        """(batch, time), the same for the same seed."""
        generator = torch.Generator().manual_seed(seed_from("ids", seed))
        return torch.randint(self.config.vocab_size, (batch, time), generator=generator)

    def needs_causal(self) -> None:
        """Leave the check where sequences are read whole."""
        if not self.config.causal:
            raise NotApplicableError("causal=false reads a sequence whole: nothing comes later")

    def needs_weights(self) -> None:
        """Leave the check where there is no average."""
        if self.kind.weights_are == "none":
            raise NotApplicableError("its weights are none")

    def sees(self, reading: Reading) -> Tensor:
        """Give bool (batch, query, key), True = may attend, counted by hand and not by the model."""
        visible = torch.zeros(BATCH, TIME, TIME, dtype=torch.bool)
        for row in range(BATCH):
            real = [True] * TIME if reading.real is None else reading.real[row].tolist()
            documents = [0] * TIME if reading.documents is None else reading.documents[row].tolist()
            for query in range(TIME):
                shared = [
                    key
                    for key in range(query + 1 if self.config.causal else TIME)
                    if real[key] and real[query] and documents[key] == documents[query]
                ]
                visible[row, query, shared[-self.config.window :] if self.config.window else shared] = True
        return visible


def mixers(model: Transformer) -> list[Mixer]:
    """Give the mixer of every block."""
    found = [block.mixer for block in model.blocks]
    assert all(isinstance(mixer, Mixer) for mixer in found)
    return found  # type: ignore[return-value]


@dataclass(frozen=True)
class Call:
    """One call of a mixer: its input and what it made of it."""

    mixer: Mixer
    x_bqm: Tensor
    frame: Frame
    output_bqm: Tensor


def calls(model: Transformer, ids: Tensor, reading: Reading = WHOLE) -> list[Call]:
    """Read ids and give every block's call of its mixer."""
    seen: list[Call] = []

    def note(mixer: nn.Module, given: tuple[Tensor, Frame], output: Tensor) -> None:
        assert isinstance(mixer, Mixer)
        seen.append(Call(mixer, *given, output))

    with ExitStack() as hooks:
        for mixer in mixers(model):
            hooks.enter_context(mixer.register_forward_hook(note))
        model(ids, **reading.says)
    return seen


def gradient_of_tokens(model: Transformer, ids: Tensor, reading: Reading, wanted: Tensor) -> Tensor:
    """Give the size of the gradient, (batch, time), that each token's embedding gets from logits[wanted]."""
    embedded: list[Tensor] = []

    def keep(_: nn.Module, given: object, output: Tensor) -> None:
        output.retain_grad()
        embedded.append(output)

    with torch.enable_grad(), model.embed.register_forward_hook(keep):
        model(ids, **reading.says)[wanted].square().sum().backward()
    gradient = embedded[0].grad
    assert gradient is not None
    return gradient.abs().sum(-1)


def in_pieces(
    model: Transformer, ids: Tensor, sizes: list[int], reading: Reading = WHOLE, cache: Cache | None = None
) -> Tensor:
    """Read ids piece by piece through a cache, a new one where none is given, and give all logits."""
    cache = Cache(model.config.n_layers) if cache is None else cache
    logits, start = [], 0
    for size in sizes:
        piece = slice(start, start + size)
        said = {name: tensor[:, piece] for name, tensor in reading.says.items()}
        logits.append(model(ids[:, piece], cache=cache, **said))
        start += size
    return torch.cat(logits, dim=1)


def paths(trial: Trial, dtype: torch.dtype = torch.float64) -> list[tuple[str, Transformer]]:
    """Give one model twice: by its fast evaluation and by its plain one."""
    fast = trial.model(dtype)
    plain = deepcopy(fast)
    plain.plain = True
    return [("fast", fast), ("plain", plain)]
