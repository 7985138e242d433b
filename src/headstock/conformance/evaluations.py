"""A fast way, a cache, a piece or a batch gives what reading plainly, again, whole or alone gives."""

import shutil
from contextlib import suppress

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from headstock.conformance.check import Differences, Finding, SkippedError, check, failed, listed, passed
from headstock.conformance.trial import BATCH, LEFT, PACKED, RIGHT, TIME, WHOLE, Reading, Trial, in_pieces, paths
from headstock.model.cache import Cache
from headstock.model.dropout import DropoutDraws
from headstock.model.transformer import Transformer

LONG = 600
"""Tokens that take an evaluation by blocks or chunks over several of these."""
COMPILED = 1e-5
"""Largest difference of what is compiled, in float32."""


@check(
    "fast = plain",
    usually="the fast evaluation lacks a scale, a penalty or part of the mask that the plain one has",
)
def fast_is_plain(trial: Trial) -> Finding:
    """The fast evaluation gives the logits and gradients of the plain one: whole, padded and packed."""
    differences = Differences()
    ids = trial.ids()
    (_, fast), (_, plain) = paths(trial)
    for reading in trial.readings:
        logits, gradients = _trained(fast, ids, reading)
        plain_logits, plain_gradients = _trained(plain, ids, reading)
        real = reading.meant(ids)
        differences.hold(reading.name, logits[real], plain_logits[real])
        for name, gradient in plain_gradients.items():
            differences.hold(f"{reading.name}, gradient of {name}", gradients[name], gradient)
    return differences.finding()


def _trained(model: Transformer, ids: Tensor, reading: Reading) -> tuple[Tensor, dict[str, Tensor]]:
    model.zero_grad()
    with torch.enable_grad():
        logits = model(ids, **reading.says)
        cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten()).backward()  # type: ignore[no-untyped-call]
    none = torch.zeros(())
    return logits, {name: none if p.grad is None else p.grad for name, p in model.named_parameters()}


@check(
    "fast = plain over blocks",
    usually="blocks or chunks are joined one off, or a block sees keys, positions or a state of another",
    dear=True,
)
def fast_is_plain_over_blocks(trial: Trial) -> Finding:
    """The same for 600 tokens, where evaluations by blocks have several of these: whole, padded, packed, windowed."""
    trial = trial.alone().changed(context=LONG)
    ids = trial.ids(batch=2, time=LONG)
    places = torch.arange(LONG).expand(2, -1)
    readings = [
        WHOLE,
        Reading("padded left", real=places >= torch.tensor([[0], [430]])),
        Reading("packed", documents=(places >= torch.tensor([[140], [517]])).long()),
    ]
    differences = Differences()
    (_, fast), (_, plain) = paths(trial)
    for reading in readings[1:]:
        real = reading.meant(ids)
        differences.hold(reading.name, fast(ids, **reading.says)[real], plain(ids, **reading.says)[real])
    logits, gradients = _trained(fast, ids, WHOLE)
    plain_logits, plain_gradients = _trained(plain, ids, WHOLE)
    differences.hold("whole", logits, plain_logits)
    for name, gradient in plain_gradients.items():
        differences.hold(f"whole, gradient of {name}", gradients[name], gradient)
    if trial.config.causal and "window" not in trial.kind.refuses:
        (_, fast), (_, plain) = paths(trial.changed(window=100))
        differences.hold("window of 100", fast(ids), plain(ids))
    return differences.finding()


@check(
    "cached = whole",
    usually="a position is counted from the tokens being read and not from the first, or the cache loses or "
    "repeats some of the past",
)
def cached_is_whole(trial: Trial) -> Finding:
    """After a prompt of any length, tokens read one by one through the cache give the logits of reading again."""
    trial.needs_causal()
    differences = Differences()
    ids = trial.ids()
    for path, model in paths(trial):
        whole = model(ids)
        for prompt in range(1, TIME):
            read = in_pieces(model, ids, [prompt] + [1] * (TIME - prompt))
            differences.hold(f"{path}, after a prompt of {prompt}", read, whole)
    return differences.finding()


@check(
    "in pieces = whole",
    usually="a piece of several tokens after a cache is masked from the top left instead of the bottom right, or "
    "reads the past as it was before the piece",
)
def in_pieces_is_whole(trial: Trial) -> Finding:
    """A prompt read through the cache in pieces of several tokens gives the logits of the whole, packed or not."""
    trial.needs_causal()
    differences = Differences()
    ids = trial.ids()
    for path, model in paths(trial):
        for reading in (WHOLE, PACKED):
            whole = model(ids, **reading.says)
            for sizes in ([2, 3, 4], [5, 4], [3, 4, 2]):
                said = "+".join(map(str, sizes))
                differences.hold(f"{path}, {reading.name} as {said}", in_pieces(model, ids, sizes, reading), whole)
    return differences.finding()


class _TakenBackError(Exception):
    """Ends a reading that is to leave nothing behind."""


@check(
    "a cache can be read on twice",
    usually="a state or a list of keys is changed in place; make a new tensor and put it into the cache",
)
def cache_can_be_read_on_twice(trial: Trial) -> Finding:
    """A reading that is taken back leaves the cache bit for bit as it was, and what is read then is right."""
    trial.needs_causal()
    ids, start = trial.ids(), 5
    changed = []
    differences = Differences()
    for path, model in paths(trial):
        whole = model(ids)
        cache = Cache(model.config.n_layers)
        model(ids[:, :start], cache=cache)
        before = [x.clone() for block in cache.blocks for x in (*block.kept, *block.state)]
        with suppress(_TakenBackError), cache.reading():
            model(trial.ids(seed=1)[:, start:], cache=cache)
            raise _TakenBackError
        after = [x for block in cache.blocks for x in (*block.kept, *block.state)]
        if not all(torch.equal(x, y) for x, y in zip(before, after, strict=True)):
            changed.append(path)
        read = in_pieces(model, ids[:, start:], [1] * (TIME - start), cache=cache)
        differences.hold(f"{path}, read on after", read, whole[:, start:])
    if changed:
        return failed(f"a reading that was taken back changed what the cache holds ({', '.join(changed)})")
    return differences.finding()


@check(
    "a row is free of its batch",
    usually="a norm or a sum runs over the batch's axis too",
)
def row_is_free_of_its_batch(trial: Trial) -> Finding:
    """A row gives the same logits whatever is read beside it, in evaluation and in training."""
    trial = trial.changed(dropout_attention=0.0, dropout_residual=0.0, dropout_embedding=0.0)
    differences = Differences()
    ids = trial.ids(batch=5)
    for path, model in paths(trial):
        for training in (False, True):
            model.train(training)
            whole = model(ids)
            where = f"{path}, {'training' if training else 'evaluation'}"
            for size in (1, 2):
                differences.hold(
                    f"{where}, {size} at a time", torch.cat([model(part) for part in torch.split(ids, size)]), whole
                )
    return differences.finding()


@check(
    "reading leaves no trace",
    usually="something is remembered between two readings outside the cache, or drawn at random while evaluating",
)
def reading_leaves_no_trace(trial: Trial) -> Finding:
    """In evaluation a reading changes no number and draws none: read again, each logit has the same bits."""
    ids, differing = trial.ids(), []
    for path, model in paths(trial):
        numbers = {name: x.clone() for name, x in model.state_dict().items()}
        drawn = torch.get_rng_state()
        first = model(ids)
        if trial.kind.weights_are != "none":
            model.weights(ids)
        model(trial.ids(batch=2, time=4, seed=1))
        if not torch.equal(first, model(ids)):
            differing.append(f"{path}: logits of the same ids differ")
        differing += [
            f"{path}: {name} is changed" for name, x in model.state_dict().items() if (x != numbers[name]).any()
        ]
        if not torch.equal(drawn, torch.get_rng_state()):
            differing.append(f"{path}: random numbers are drawn")
    return failed(listed(differing)) if differing else passed("the same bits, and nothing drawn")


@check(
    "evaluation drops nothing",
    usually="dropout is called without asking whether the model is training",
)
def evaluation_drops_nothing(trial: Trial) -> Finding:
    """In evaluation a model with dropout on its weights gives the logits of the one without."""
    differences = Differences(0.0)
    ids = trial.ids()
    without, dropping = paths(trial.changed(dropout_attention=0.0)), paths(trial.changed(dropout_attention=0.5))
    for (path, model), (_, other) in zip(without, dropping, strict=True):
        differences.hold(path, other(ids), model(ids))
    return differences.finding()


@check(
    "dropout follows its draws",
    usually="torch's own dropout is called, not `headstock.model.dropout.dropout` with the frame's draws",
)
def dropout_follows_its_draws(trial: Trial) -> Finding:
    """In training what is dropped follows from (seed, step, row), whatever torch's generator or the batch is."""
    model = trial.changed(dropout_attention=0.4, dropout_residual=0.2).model().train()
    ids = trial.ids()

    def read(rows: range, step: int = 0) -> Tensor:
        draws = DropoutDraws(0, step, rows, ids.device)
        logits: Tensor = model(ids[rows.start : rows.stop], draws=draws)
        return logits

    first = read(range(BATCH))
    differences = Differences()
    differences.hold("drawn again", read(range(BATCH)), first)
    differences.hold("in batches of one", torch.cat([read(range(row, row + 1)) for row in range(BATCH)]), first)
    if torch.equal(read(range(BATCH), step=1), first):
        return failed("the step changes nothing that is dropped")
    return differences.finding()


@check(
    "compiled = eager",
    usually="torch.compile meets something it takes for a constant: a Python number read off a tensor, a list that "
    "grows, a branch on values",
    slow=True,
)
def compiled_is_eager(trial: Trial) -> Finding:
    """torch.compile gives the logits and gradients of the model as it is."""
    if not any(shutil.which(compiler) for compiler in ("g++", "clang++", "c++", "cl")):
        raise SkippedError("there is no C++ compiler here: install g++ or clang++")
    trial = trial.alone()
    ids, model = trial.ids(), trial.model(torch.float32)
    differences = Differences(COMPILED)
    logits, gradients = _trained(model, ids, WHOLE)
    compiled = torch.compile(model)
    model.zero_grad()
    with torch.enable_grad():
        compiled_logits = compiled(ids)
        cross_entropy(compiled_logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten()).backward()  # type: ignore[no-untyped-call]
    differences.hold("logits", compiled_logits, logits)
    for name, parameter in model.named_parameters():
        if parameter.grad is not None:
            differences.hold(f"gradient of {name}", parameter.grad, gradients[name])
    return differences.finding()


@check(
    "padded rows decode on",
    usually="places are counted with the padding, or a query after a padded prompt sees it",
)
def padded_rows_decode_on(trial: Trial) -> Finding:
    """After a batch padded on either side, each row goes on through the cache as it would alone."""
    trial.needs_causal()
    differences = Differences()
    ids, more = trial.ids(), trial.ids(time=3, seed=1)
    for path, model in paths(trial):
        for reading in (LEFT, RIGHT):
            cache, real = Cache(model.config.n_layers), reading.meant(ids)
            model(ids, cache=cache, **reading.says)
            together = in_pieces(model, more, [1, 1, 1], cache=cache)
            for row in range(BATCH):
                alone = torch.cat([ids[row, real[row]], more[row]])[None]
                differences.hold(f"{path}, {reading.name}, row {row}", together[row], model(alone)[0, -3:])
    return differences.finding()
