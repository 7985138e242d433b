"""Fast = plain, cached = read again, in pieces = whole, padded = single, packed = separate, for every case."""

import math

import pytest
import torch
from torch import Tensor

from headstock.errors import UserError
from headstock.model.cache import Cache
from headstock.model.transformer import Transformer, build
from tests.model.cases import (
    BATCH,
    CONTEXT,
    SIZES,
    TIME,
    VOCAB,
    Case,
    both_paths,
    close,
    every_case,
    every_mixer,
    every_position,
    some_ids,
)

LENGTHS = (TIME, 5, 1)
DOCUMENTS = torch.tensor([[0] * 4 + [1] * 5, [3] * 1 + [2] * 2 + [5] * 6, [7] * 9])


def padded(side: str) -> Tensor:
    """Which tokens are real, where the rows have LENGTHS."""
    places = torch.arange(TIME)
    length = torch.tensor(LENGTHS)[:, None]
    return places < length if side == "right" else places >= TIME - length


def read_in_pieces(model: Transformer, ids: Tensor, sizes: list[int], documents: Tensor | None = None) -> Tensor:
    cache = Cache(model.config.n_layers)
    which = [None] * len(sizes) if documents is None else documents.split(sizes, 1)
    pieces = zip(ids.split(sizes, 1), which, strict=True)
    return torch.cat([model(piece, cache=cache, documents=document) for piece, document in pieces], dim=1)


READINGS = {
    "whole": {},
    "padded-left": {"real": padded("left")},
    "padded-right": {"real": padded("right")},
    "packed": {"documents": DOCUMENTS},
    "packed-and-padded": {"documents": DOCUMENTS, "real": padded("right")},
}


@pytest.mark.parametrize("reading", READINGS)
@every_case
def test_fast_evaluation_equals_plain_in_logits_and_gradients(case: Case, reading: str) -> None:
    model, ids = case.model(), some_ids()
    results = []
    for model.plain in (False, True):
        model.zero_grad()
        logits = model(ids, **READINGS[reading])
        torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten()).backward()
        results.append((logits.detach(), [p.grad for p in model.parameters()]))
    (fast, fast_gradients), (plain, plain_gradients) = results
    close(fast, plain)
    for fast_gradient, plain_gradient, (name, _) in zip(
        fast_gradients, plain_gradients, model.named_parameters(), strict=True
    ):
        if plain_gradient is None:
            assert fast_gradient is None, name
        else:
            close(fast_gradient, plain_gradient)


@every_case
def test_cached_decoding_equals_reading_again(case: Case) -> None:
    model, ids = case.model(), some_ids()
    with torch.no_grad():
        whole = model(ids)
        for split in range(1, TIME):
            close(read_in_pieces(model, ids, [split, TIME - split]), whole)
        close(read_in_pieces(model, ids, [1] * TIME), whole)


@both_paths
@every_case
def test_a_prompt_read_in_chunks_equals_the_whole(case: Case, plain: bool) -> None:
    model, ids = case.model(), some_ids()
    model.plain = plain
    with torch.no_grad():
        close(read_in_pieces(model, ids, [2, 3, 3, 1]), model(ids))


@every_case
def test_packed_documents_read_in_chunks_equal_the_whole(case: Case) -> None:
    model, ids = case.model(), some_ids()
    with torch.no_grad():
        close(read_in_pieces(model, ids, [2, 3, 4], DOCUMENTS), model(ids, documents=DOCUMENTS))


@pytest.mark.parametrize("side", ["left", "right"])
@every_case
def test_a_padded_row_equals_the_row_alone(case: Case, side: str) -> None:
    model, ids, real = case.model(), some_ids(), padded(side)
    with torch.no_grad():
        together = model(ids, real=real)
        for row in range(BATCH):
            close(together[row, real[row]], model(ids[row : row + 1, real[row]])[0])


@pytest.mark.parametrize("side", ["left", "right"])
@every_case
def test_padded_rows_decode_on_like_each_row_alone(case: Case, side: str) -> None:
    model, ids, real = case.model(), some_ids(), padded(side)
    more = some_ids(time=3, seed=1)
    with torch.no_grad():
        cache = Cache(model.config.n_layers)
        model(ids, real=real, cache=cache)
        together = torch.cat([model(token, cache=cache) for token in more.split(1, 1)], dim=1)
        for row in range(BATCH):
            alone = torch.cat([ids[row, real[row]], more[row]])[None]
            close(together[row], model(alone)[0, -3:])


@every_case
def test_packed_documents_equal_separate_ones(case: Case) -> None:
    model, ids = case.model(), some_ids()
    with torch.no_grad():
        packed = model(ids, documents=DOCUMENTS)
        for row in range(BATCH):
            for document in DOCUMENTS[row].unique():
                here = DOCUMENTS[row] == document
                close(packed[row, here], model(ids[row : row + 1, here])[0])


@both_paths
@every_case
def test_no_document_sees_another_packed_with_it(case: Case, plain: bool) -> None:
    model, ids = case.model(), some_ids(batch=1)
    model.plain = plain
    documents = DOCUMENTS[:1]
    embedded = []
    with model.embed.register_forward_hook(lambda _, __, output: embedded.append(output) or output.retain_grad()):
        model(ids, documents=documents)[:, 4:].square().sum().backward()
    assert embedded[0].grad[:, :4].count_nonzero() == 0
    assert embedded[0].grad[:, 4:].count_nonzero() > 0


@every_mixer
def test_a_cache_of_packed_documents_goes_on_with_the_last(case: Case) -> None:
    model, ids, cache = case.model(), some_ids(), Cache(2)
    with torch.no_grad():
        whole = model(ids, documents=DOCUMENTS)
        model(ids[:, :7], documents=DOCUMENTS[:, :7], cache=cache)
        close(model(ids[:, 7:], cache=cache), whole[:, 7:])
        later = Cache(2)  # where nothing was said, all that was read is document 0
        model(ids[:, :4], cache=later)
        close(model(ids[:, 4:], documents=torch.ones_like(ids[:, 4:]), cache=later), model(ids[:, 4:]))


@every_case
def test_a_row_does_not_depend_on_its_batch(case: Case) -> None:
    model, ids = case.model(), some_ids(batch=5)
    with torch.no_grad():
        whole = model(ids)
        close(torch.cat([model(row) for row in ids.split(1)]), whole)
        close(torch.cat([model(part) for part in ids.split(2)]), whole)


@both_paths
@pytest.mark.parametrize("reading", READINGS)
@every_case
def test_pieces_of_no_tokens_anywhere_change_nothing(case: Case, reading: str, plain: bool) -> None:
    model, ids = case.model(), some_ids()
    model.plain = plain
    reading = READINGS[reading]
    real = reading.get("real", torch.ones_like(ids, dtype=torch.bool))
    cache, logits, start = Cache(model.config.n_layers), [], 0
    with torch.no_grad():
        nothing = model(ids[:, :0], **{name: said[:, :0] for name, said in reading.items()})
        assert nothing.shape == (BATCH, 0, VOCAB)
        for size in (0, 4, 0, 5, 0):
            piece = slice(start, start + size)
            logits.append(model(ids[:, piece], cache=cache, **{name: said[:, piece] for name, said in reading.items()}))
            start += size
        close(torch.cat(logits, dim=1)[real], model(ids, **reading)[real])


@every_mixer
def test_a_first_piece_of_no_tokens_need_not_have_said_what_the_next_does_not(case: Case) -> None:
    model, ids, cache = case.model(), some_ids(), Cache(2)
    with torch.no_grad():
        model(ids[:, :0], documents=DOCUMENTS[:, :0], real=padded("left")[:, :0], cache=cache)
        close(model(ids, cache=cache), model(ids))


@both_paths
@pytest.mark.parametrize("time", [TIME, 70])
@every_position
def test_a_batch_of_no_rows_gives_none_and_no_gradient(case: Case, time: int, plain: bool) -> None:
    model, ids = case.model(context=70), some_ids(batch=0, time=time)
    model.plain = plain
    for reading in ({}, {"real": ids == 0, "documents": ids}):
        logits = model(ids, **reading)
        assert logits.shape == (0, time, VOCAB)
        logits.sum().backward()
        assert not any(p.grad is not None and p.grad.any() for p in model.parameters())


@pytest.mark.parametrize("variant", ["softmax+rope", "softmax1+alibi", "differential+alibi", "uniform+none"])
def test_paths_agree_over_many_blocks_of_a_fused_kernel(variant: str) -> None:
    model, ids = Case(variant, variant).model(torch.float32, context=540), some_ids(batch=2, time=540)
    real = torch.arange(540).expand(2, -1) >= torch.tensor([[0], [400]])
    results, cache = [], Cache(model.config.n_layers)
    with torch.no_grad():
        for model.plain in (False, True):
            results.append((model(ids), model(ids, real=real)))
        model.plain = False
        cached = torch.cat([model(ids[:, :500], cache=cache), model(ids[:, 500:], cache=cache)], dim=1)
    (fast, fast_padded), (plain, plain_padded) = results
    for other in (fast, cached):
        close(other, plain, atol=1e-4)
    close(fast_padded, plain_padded, atol=1e-4)


@every_case
def test_a_full_context_can_be_read_and_no_token_is_lost(case: Case) -> None:
    model = case.model()
    assert model(some_ids(time=CONTEXT)).shape == (BATCH, CONTEXT, VOCAB)
    assert model(some_ids(time=1)).shape == (BATCH, 1, VOCAB)


@pytest.mark.parametrize("variant", ["softmax+learned", "table+none"])
def test_a_reading_that_fails_leaves_the_cache_as_it_was(variant: str) -> None:
    model, ids = build(variant, **SIZES).eval(), some_ids(time=CONTEXT)
    cache = Cache(model.config.n_layers)
    with torch.no_grad():
        model(ids[:, :8], cache=cache)
        with pytest.raises(UserError, match="end at 12"):
            model(some_ids(time=5), cache=cache)
        assert cache.length == 8
        close(model(ids[:, 8:], cache=cache), model(ids)[:, 8:], atol=1e-6)


@pytest.mark.parametrize("variant", ["softmax", "softmax,n_kv_heads=2", "softmax+rope,window=5", "softmax1", "sink"])
@pytest.mark.parametrize("broken", ["query", "key"])
@pytest.mark.parametrize("time", [1, 2, 7, 15, 16, 20])
def test_a_broken_number_shows_on_every_path_however_short_the_row(variant: str, broken: str, time: int) -> None:
    model, ids = Case("", variant).model(torch.float32, context=32), some_ids(2, time)
    with torch.no_grad():
        getattr(model.blocks[0].mixer, broken).weight[0] = math.nan
        fast = model(ids).isnan()
        model.plain = True
        plain = model(ids).isnan()
    assert torch.equal(fast, plain)
    assert plain.any()
