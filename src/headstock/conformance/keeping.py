"""What is saved is what is loaded, and a seed makes one model."""

from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from headstock.checkpoints.native import load, save
from headstock.conformance.check import Finding, check, failed, listed, passed
from headstock.conformance.trial import Trial, paths
from headstock.model.transformer import build_from


@check(
    "saved = loaded",
    usually="a number that is drawn or set outside of parameters and buffers, or a buffer with persistent=False",
)
def saved_is_loaded(trial: Trial) -> Finding:
    """A model that is saved and loaded gives the same logits, bit for bit."""
    ids = trial.ids()
    for path, model in paths(trial, torch.float32):
        with TemporaryDirectory() as folder:
            save(model, Path(folder) / "model")
            loaded = load(Path(folder) / "model")
        loaded.plain = model.plain
        if not torch.equal(loaded(ids), model(ids)):
            return failed(f"logits differ after loading ({path})")
    return passed("the same bits")


@check(
    "one seed, one model",
    usually="numbers are drawn from another generator than torch's own or the one given to `initialise`",
)
def one_seed_makes_one_model(trial: Trial) -> Finding:
    """Built twice with one seed, a model has the same numbers, whatever was drawn in between."""
    first = build_from(trial.config, seed=5)
    torch.rand(7)
    second = build_from(trial.config, seed=5)
    differing = [name for name, x in second.state_dict().items() if not torch.equal(x, first.state_dict()[name])]
    if differing:
        return failed(f"{listed(differing)} differ")
    ids = trial.ids()
    if not torch.equal(first.eval()(ids), second.eval()(ids)):
        return failed("all that is saved is equal, but the logits differ")
    return passed("the same bits")
