"""Nothing that comes later moves anything that came before: by values, by gradients, and by how long the whole is."""

import torch

from headstock.conformance.check import Differences, Finding, check, failed, listed, passed
from headstock.conformance.trial import BATCH, TIME, WHOLE, Trial, gradient_of_tokens, paths


@check(
    "the future moves nothing",
    usually="the mask is off by one or missing, or something is computed over all keys at once, as a maximum is",
)
def future_moves_nothing(trial: Trial) -> Finding:
    """Other tokens later on change no logit of the tokens before, fast and plain."""
    trial.needs_causal()
    differences = Differences()
    ids = trial.ids()
    for path, model in paths(trial):
        before = model(ids)
        for now in (0, 3, TIME - 2):
            other = ids.clone()
            other[:, now + 1 :] = (ids[:, now + 1 :] + 5) % trial.config.vocab_size
            differences.hold(f"{path}, tokens after {now}", model(other)[:, : now + 1], before[:, : now + 1])
    return differences.finding()


@check(
    "the future gets no gradient",
    usually="a hidden key weighs 0 in value alone, as after a detached correction, or is only nearly hidden",
)
def future_gets_no_gradient(trial: Trial) -> Finding:
    """No logit sends a gradient to a later token, fast and plain."""
    trial.needs_causal()
    seen = []
    for path, model in paths(trial):
        for now in (0, 4):
            wanted = torch.zeros(BATCH, TIME, dtype=torch.bool)
            wanted[:, now] = True
            gradient = gradient_of_tokens(model, trial.ids(), WHOLE, wanted)
            seen += [f"{path}, token {now} to {later}" for later in _touched(gradient, now + 1)]
    if seen:
        return failed(f"gradients run from {listed(seen)}")
    return passed("gradients to later tokens are exactly 0")


def _touched(gradient_bk: torch.Tensor, start: int) -> list[int]:
    return [key for key in range(start, TIME) if not bool((gradient_bk[:, key] == 0).all())]


@check(
    "a beginning reads the same",
    usually="the length of the whole enters, as in a mean over all positions; or an axis is taken for another of "
    "the same size",
)
def beginning_reads_the_same(trial: Trial) -> Finding:
    """The first tokens alone, 1 to all of them, give the logits that they give within the whole, fast and plain."""
    trial.needs_causal()
    differences = Differences()
    ids = trial.ids()
    for path, model in paths(trial):
        whole = model(ids)
        for length in range(1, TIME):
            differences.hold(f"{path}, {length} tokens", model(ids[:, :length]), whole[:, :length])
    return differences.finding()


@check(
    "all in sight is seen",
    usually="the mask hides one key too many, or keys before the last one are forgotten",
)
def all_in_sight_is_seen(trial: Trial) -> Finding:
    """Every token that the last query may attend to sends it something in one row of many at least."""
    trial = trial.alone()
    window = TIME if trial.config.window is None else min(TIME, trial.config.window)
    wanted = torch.zeros(16, TIME, dtype=torch.bool)
    wanted[:, -1] = True
    missing = []
    for path, model in paths(trial):
        gradient = gradient_of_tokens(model, trial.ids(batch=16), WHOLE, wanted).sum(0)
        missing += [f"{path}, token {key}" for key in range(TIME - window, TIME) if not gradient[key] > 0]
    if missing:
        return failed(f"the last of {TIME} tokens gets nothing from {listed(missing)}")
    return passed(f"the last token hears all {window} that it may attend to")
