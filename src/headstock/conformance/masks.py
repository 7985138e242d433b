"""Who may see whom: padding, packed documents, windows, rows that see nothing, both directions, another sequence."""

import torch
from torch import Tensor

from headstock.conformance.check import Differences, Finding, all_finite, check, failed, listed, passed
from headstock.conformance.trial import (
    BATCH,
    EMPTY,
    LEFT,
    PACKED,
    RIGHT,
    TIME,
    WHOLE,
    Reading,
    Trial,
    calls,
    gradient_of_tokens,
    in_pieces,
    paths,
)
from headstock.errors import UserError
from headstock.model.frame import Frame
from headstock.model.mixers.base import CROSS
from headstock.model.transformer import Transformer

SPAN = 4
"""Keys in the window that is looked through."""


@check(
    "padded left = single",
    usually="padding is counted as places or weighs something",
)
def padded_left_is_single(trial: Trial) -> Finding:
    """A row padded on the left gives the logits of the row alone."""
    return _padded(trial, LEFT)


@check(
    "padded right = single",
    usually="padding is counted or weighs something, or a state goes on over it",
)
def padded_right_is_single(trial: Trial) -> Finding:
    """A row padded on the right gives the logits of the row alone."""
    return _padded(trial, RIGHT)


def _padded(trial: Trial, reading: Reading) -> Finding:
    differences = Differences()
    ids, real = trial.ids(), reading.meant(trial.ids())
    for path, model in paths(trial):
        together = model(ids, **reading.says)
        for row in range(BATCH):
            alone = model(ids[row : row + 1, real[row]])[0]
            differences.hold(f"{path}, {len(alone)} of {TIME} tokens", together[row, real[row]], alone)
    return differences.finding()


@check(
    "packed = separate",
    usually="the state or the places go on from one document into the next, or their scores meet in one softmax",
)
def packed_is_separate(trial: Trial) -> Finding:
    """Documents packed into one row give the logits that each gives alone."""
    differences = Differences()
    ids, documents = trial.ids(), PACKED.documents
    assert documents is not None
    for path, model in paths(trial):
        packed = model(ids, **PACKED.says)
        for row in range(BATCH):
            for document in documents[row].unique().tolist():  # type: ignore[no-untyped-call]
                here = documents[row] == document
                alone = model(ids[row : row + 1, here])[0]
                differences.hold(f"{path}, row {row}, document {document}", packed[row, here], alone)
    return differences.finding()


@check(
    "documents stay apart",
    usually="the mask between documents is missing on one path, or nearly hides instead of hiding",
)
def documents_stay_apart(trial: Trial) -> Finding:
    """No gradient runs from one document to another packed into the same row."""
    seen = []
    documents = PACKED.documents
    assert documents is not None
    for path, model in paths(trial):
        for row, document in ((0, 1), (1, 2), (1, 5)):
            wanted = torch.zeros(BATCH, TIME, dtype=torch.bool)
            wanted[row] = documents[row] == document
            gradient = gradient_of_tokens(model, trial.ids(), PACKED, wanted)
            if not bool((gradient[~wanted] == 0).all()):
                seen.append(f"{path}, out of document {document}")
    return failed(f"gradients run {listed(seen)}") if seen else passed("gradients between documents are exactly 0")


@check(
    "empty rows are zeros",
    usually="a row is masked with −inf throughout, which is NaN, or with a finite constant, which averages what is "
    "hidden; masked_softmax gives zeros",
)
def empty_rows_are_zeros(trial: Trial) -> Finding:
    """Where a query has nothing to attend to the mixer gives zeros, with finite gradients, in every dtype."""
    ids, wrong = trial.ids(), []
    assert EMPTY.real is not None
    for dtype in (torch.float64, torch.float32, torch.bfloat16):
        for path, model in paths(trial, dtype):
            where = f"{path}, {_short(dtype)}"
            with torch.enable_grad():
                if not all(_is_nothing(call.output_bqm[~EMPTY.real], call.mixer) for call in calls(model, ids, EMPTY)):
                    wrong.append(f"{where}: not zeros")
                model(ids, **EMPTY.says)[EMPTY.real].float().square().sum().backward()
            if not all_finite(*(parameter.grad for parameter in model.parameters())):
                wrong.append(f"{where}: a gradient is not finite")
    return failed(listed(wrong)) if wrong else passed("zeros, with finite gradients")


def _is_nothing(output: Tensor, mixer: torch.nn.Module) -> bool:
    """Whether there is nothing but the output map's bias."""
    bias = getattr(getattr(mixer, "output", None), "bias", None)
    return torch.equal(output, torch.zeros_like(output) if bias is None else bias.expand_as(output))


def _short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


@check(
    "a window shows its keys",
    usually="the window is off by one (W keys are the query's own and W − 1 before), or one evaluation leaves it out",
)
def window_shows_its_keys(trial: Trial) -> Finding:
    """With a window of 4 a query is moved by its own token and the three before it, and by no other, on every path."""
    trial = trial.alone().changed(window=SPAN)
    ids, wrong = trial.ids(batch=16), []
    wanted = torch.zeros(16, TIME, dtype=torch.bool)
    wanted[:, -1] = True
    for path, model in paths(trial):
        gradient = gradient_of_tokens(model, ids, WHOLE, wanted).sum(0)
        wrong += _outside(path, gradient)
        if trial.config.causal:
            wrong += _outside(f"{path}, cached", _moved_through_cache(model, ids))
    if wrong:
        return failed(f"a window of {SPAN} at token {TIME - 1}: {listed(wrong)}")
    return passed(f"tokens {TIME - SPAN} to {TIME - 1} of {TIME} and no other move the last")


def _outside(path: str, moved_k: Tensor) -> list[str]:
    span = range(TIME - SPAN, TIME)
    shown = [key for key in range(TIME) if not bool(moved_k[key] == 0)]
    extra, missing = [key for key in shown if key not in span], [key for key in span if key not in shown]
    said = [f"{path} also shows token {key}" for key in extra]
    return said + [f"{path} hides token {key}" for key in missing]


def _moved_through_cache(model: Transformer, ids: Tensor) -> Tensor:
    """Give how far, (time), another token moves the last logits, read in pieces."""
    sizes = [4, 3, 1, 1]
    last = in_pieces(model, ids, sizes)[:, -1]
    moved = []
    for key in range(TIME):
        other = ids.clone()
        other[:, key] = (ids[:, key] + 1) % model.config.vocab_size
        difference = (in_pieces(model, other, sizes)[:, -1] - last).abs().max()
        moved.append(torch.where(difference > 1e-12 * last.abs().max(), difference, 0.0))
    return torch.stack(moved)


@check(
    "both directions",
    usually="the fast evaluation is causal whatever it is told: ask `visible.causal`, or refuse causal in `refuses`",
)
def both_directions(trial: Trial) -> Finding:
    """With causal=false every token is seen by every other, padded = single, packed = separate, fast = plain."""
    trial = trial.changed(causal=False, window=None)
    differences = Differences()
    ids = trial.ids()
    (_, fast), (_, plain) = paths(trial)
    for reading in trial.readings:
        real = reading.meant(ids)
        differences.hold(
            f"fast and plain, {reading.name}", fast(ids, **reading.says)[real], plain(ids, **reading.says)[real]
        )
    for finding in (_padded(trial, LEFT), _padded(trial, RIGHT), packed_is_separate.look(trial)):
        if finding.status == "failed":
            return finding
    wanted = torch.zeros(16, TIME, dtype=torch.bool)
    wanted[:, 0] = True
    for path, model in paths(trial.alone()):
        unseen = (gradient_of_tokens(model, trial.ids(batch=16), WHOLE, wanted).sum(0) == 0).nonzero().flatten()
        if len(unseen):
            return failed(f"{path}: the first token sees nothing of token {int(unseen[0])}")
    return differences.finding()


@check(
    "another sequence",
    usually="keys and values are made from the queries' own sequence: read `frame.memory_bkm`, as `project` does, or "
    'name "cross attention" in `refuses`',
)
def another_sequence(trial: Trial) -> Finding:
    """Keys and values of another sequence are read, fast = plain, padded = single; or it is refused in a sentence."""
    generator = torch.Generator().manual_seed(2)
    memory = torch.randn(BATCH, 5, trial.config.d_model, generator=generator, dtype=torch.float64)
    real = torch.tensor([[True] * 5, [False, True, True, True, True], [True, True, False, False, False]])
    differences, outputs = Differences(), []
    for path, model in paths(trial):
        call = calls(model, trial.ids())[0]
        mixer, x_bqm, plain = call.mixer, call.x_bqm, model.plain
        try:
            output = mixer(x_bqm, Frame.across(memory, TIME, plain=plain))
        except UserError as error:
            if CROSS in trial.kind.refuses:
                return passed(f"refused: {error}")
            raise
        if CROSS in trial.kind.refuses:
            return failed("it is refused in `refuses`, but read without a word")
        if torch.equal(mixer(x_bqm, Frame.across(memory.flip(2), TIME, plain=plain)), output):
            return failed(f"{path}: another sequence changes nothing")
        outputs.append(output)
        together = mixer(x_bqm, Frame.across(memory, TIME, real_bk=real, plain=plain))
        for row in range(BATCH):
            frame = Frame.across(memory[row : row + 1, real[row]], TIME, plain=plain)
            differences.hold(f"{path}, padded row {row}", together[row], mixer(x_bqm[row : row + 1], frame)[0])
    differences.hold("fast and plain", *outputs)
    return differences.finding()
