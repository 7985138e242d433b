"""Every inner value that is listed can be looked at without moving a thing, and is what the model goes on with."""

import torch
from torch import Tensor

from headstock.conformance.check import Differences, Finding, check, failed, passed
from headstock.conformance.trial import Trial
from headstock.model.hooks import HookPoint


@check(
    "looking moves nothing",
    usually="a name is listed and its value never shown, or weighing in plain sight gives another average",
)
def looking_moves_nothing(trial: Trial) -> Finding:
    """Asking for every inner value at once leaves the logits of plain reading as they are, whole, padded and packed."""
    differences = Differences()
    model, ids = trial.model(plain=True), trial.ids()
    for reading in trial.readings:
        real = reading.meant(ids)
        logits, _ = model.run_with_cache(ids, None, gradients_of=None, **reading.says)
        differences.hold(reading.name, logits[real], model(ids, **reading.says)[real])
    return differences.finding()


@check(
    "what is written is used",
    usually="`hooks(name, value)` is called and what it gives back is thrown away: go on with it",
)
def what_is_written_is_used(trial: Trial) -> Finding:
    """Replacing any inner value of the mixer that is listed changes the logits."""
    model, ids = trial.model(), trial.ids()
    logits = model(ids)
    names = [name for name in model.hook_names() if name.startswith("blocks.0.attn.")]
    for name in names:
        if torch.equal(model.run_with_hooks(ids, [(name, _moved)]), logits):
            return failed(f"another {name} leaves every logit as it was")
    return passed(f"{len(names)} values")


def _moved(value: Tensor, hook: HookPoint) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return value * (1.5 + torch.rand(value.shape, generator=generator)) + 0.1
