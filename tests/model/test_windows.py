"""A window of W shows W keys, the query's own included, on every path; and a cache keeps W − 1 tokens, no more."""

from collections.abc import Callable

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from headstock.model import blockwise
from headstock.model.accounting import cache_bytes
from headstock.model.cache import Cache
from headstock.model.config import config_of
from headstock.model.evaluations import listening
from headstock.model.kernels import kernel_that_ran
from headstock.model.mixers import mixer_class, mixer_names
from headstock.model.transformer import Transformer
from headstock.model.visibility import Visible
from tests.model.cases import BATCH, CONTEXT, SIZES, TIME, Case, close, some_ids

WINDOWED = [mixer for mixer in mixer_names() if "window" not in mixer_class(mixer).refuses]
WINDOWS = (1, 2, 4, TIME - 1, TIME, 3 * CONTEXT)
SHIFTING = ("none", "rope", "rope-interleaved", "alibi", "xpos")
"""Positions that know distances alone."""

HOLES = torch.tensor([[0, 1, 1, 0, 1, 1, 1, 0, 1]], dtype=torch.bool)
PACKED = torch.tensor([[4, 4, 1, 1, 1, 1, 1, 2, 2]])
PIECES = [2, 3, 3, 1]

every_windowed_mixer = pytest.mark.parametrize("mixer", WINDOWED)


def windowed(mixer: str, window: int, position: str = "none", **more: object) -> Transformer:
    return Case(mixer, f"{mixer}+{position},window={window}").model(**more)


def read(model: Transformer, ids: Tensor, sizes: list[int], real: Tensor | None, documents: Tensor | None) -> Tensor:
    """Read in pieces, after a cache."""
    cache, logits, start = Cache(model.config.n_layers), [], 0
    for size in sizes:
        piece = slice(start, start + size)
        choices = {"real": real, "documents": documents}
        choices = {name: value if value is None else value[:, piece] for name, value in choices.items()}
        logits.append(model(ids[:, piece], cache=cache, **choices))
        start += size
    return torch.cat(logits, dim=1)


def what_is_seen(model: Transformer, logits_of: Callable[[], Tensor]) -> Tensor:
    """Say on which tokens' embeddings each token's logits depend, bool (query, key)."""
    embedded: list[Tensor] = []
    with model.embed.register_forward_hook(lambda _, __, output: embedded.append(output)):
        logits = logits_of()
    rows = []
    for query in range(TIME):
        gradients = torch.autograd.grad(
            logits[0, query].square().sum(), embedded, retain_graph=True, materialize_grads=True
        )
        rows.append(torch.cat(gradients, dim=1)[0].count_nonzero(-1) > 0)
    return torch.stack(rows)


READINGS = {
    "fast": ([TIME], None, None),
    "plain": ([TIME], None, None),
    "blockwise": ([TIME], None, None),
    "packed": ([TIME], None, PACKED),
    "blockwise-packed": ([TIME], None, PACKED),
    "padded-left": ([TIME], torch.arange(TIME)[None] >= 3, None),
    "padded-right": ([TIME], torch.arange(TIME)[None] < 7, None),
    "blockwise-padded": ([TIME], torch.arange(TIME)[None] >= 3, None),
    "holes": ([TIME], HOLES, None),
    "tokens": ([1] * TIME, None, None),
    "chunks": (PIECES, None, None),
    "chunks-plain": (PIECES, None, None),
    "chunks-packed": (PIECES, None, PACKED),
    "chunks-with-holes": (PIECES, HOLES, None),
    "chunks-packed-with-holes": (PIECES, HOLES, PACKED),
}


@pytest.mark.parametrize("window", [1, 3])
@pytest.mark.parametrize("reading", READINGS)
@every_windowed_mixer
def test_a_window_of_w_shows_w_keys(mixer: str, reading: str, window: int, monkeypatch: pytest.MonkeyPatch) -> None:
    (sizes, real, documents), blocks = READINGS[reading], reading.startswith("blockwise")
    cap = {"soft_cap": 50.0} if blocks and "soft_cap" not in mixer_class(mixer).refuses else {}  # no kernel does that
    alone = {"n_layers": 1, "residual": "replacing", "feedforward": "none", "final_norm": False}
    model, ids = windowed(mixer, window, **alone, **cap), some_ids(batch=1)
    model.plain = reading.endswith("plain")
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("mixer.query.weight"):
                parameter *= 1e-3  # so that no sparse mixer drops a key of its own accord
    if blocks:
        monkeypatch.setattr(blockwise, "SHORTEST", 2)
        monkeypatch.setattr(blockwise, "BLOCK", 2)
    with listening() as heard:
        seen = what_is_seen(model, lambda: read(model, ids, sizes, real, documents))
    if blocks and mixer != "table":  # which always stores every weight
        assert heard in ({"blockwise"}, {"running mean"})  # uniform's, where nothing is hidden
    real = torch.ones(1, TIME, dtype=torch.bool) if real is None else real
    documents = torch.zeros_like(ids) if documents is None else documents
    for query in range(TIME):
        together = (documents[0] == documents[0, query]) & real[0] & (torch.arange(TIME) <= query)
        expected = together.nonzero()[-window:, 0].tolist() if real[0, query] else []
        assert seen[query].nonzero()[:, 0].tolist() == expected, query


@pytest.mark.parametrize("position", SHIFTING)
@every_windowed_mixer
def test_windows_of_two_blocks_reach_back_over_the_last_2w_less_1_tokens(mixer: str, position: str) -> None:
    if mixer == "table" or position in mixer_class(mixer).refuses:
        assert mixer in ("table", "uniform")  # the one knows places, the other has nothing to turn
        return
    model, ids = windowed(mixer, 3, position), some_ids()
    with torch.no_grad():
        whole = model(ids)[:, -1]
        close(model(ids[:, -5:])[:, -1], whole)
        assert (model(ids[:, -4:])[:, -1] - whole).abs().max() > 1e-8
        other = torch.cat([some_ids(seed=1)[:, :-5], ids[:, -5:]], dim=1)
        close(model(other)[:, -1], whole)


@pytest.mark.parametrize("window", WINDOWS)
@every_windowed_mixer
def test_a_cache_keeps_w_less_1_tokens_and_misses_none(mixer: str, window: int) -> None:
    model, ids, cache = windowed(mixer, window, "learned"), some_ids(), Cache(2)
    with torch.no_grad():
        whole = model(ids)
        for place in range(TIME):
            close(model(ids[:, place : place + 1], cache=cache), whole[:, place : place + 1])
            assert cache.n_bytes == BATCH * cache_bytes(model.config, place + 1, torch.float64)
            assert cache.length - cache.forgotten == min(place + 1, window - 1)
            assert all(x.shape[2] == min(place + 1, window - 1) for block in cache.blocks for x in block.kept)
        assert (cache.n_bytes == 0) is (window == 1)


@settings(max_examples=25)
@given(
    sizes=st.lists(st.integers(1, 4), min_size=1, max_size=5),
    window=st.integers(1, 8),
    position=st.sampled_from(("learned", *SHIFTING)),
    documents=st.lists(st.integers(0, 2), min_size=20, max_size=20),
    padding_from=st.integers(0, 5),
    real=st.lists(st.booleans(), min_size=20, max_size=20),
)
@example(
    sizes=[1] * 9,
    window=3,
    position="none",
    documents=[0] * 20,
    padding_from=2,
    real=[*[True] * 3, *[False] * 3, *[True] * 14],
)
@example(sizes=[4, 3, 2, 4], window=4, position="rope", documents=[0] * 20, padding_from=1, real=[False, True] * 10)
def test_pieces_of_any_size_interleaved_documents_and_padding_that_starts_late_equal_the_whole(
    sizes: list[int], window: int, position: str, documents: list[int], padding_from: int, real: list[bool]
) -> None:
    model, time = Case("w", f"softmax+{position},window={window}").model(context=20), sum(sizes)
    ids, which = some_ids(time=time), torch.tensor(documents[:time]).expand(BATCH, -1)
    cache, logits, start = Cache(2), [], 0
    padded = torch.ones(BATCH, time, dtype=torch.bool)
    padded[0, sum(sizes[:padding_from]) :] = torch.tensor(real)[sum(sizes[:padding_from]) : time]
    with torch.no_grad():
        for piece, size in enumerate(sizes):
            part = slice(start, start + size)
            masked = padded[:, part] if piece >= padding_from else None
            logits.append(model(ids[:, part], cache=cache, documents=which[:, part], real=masked))
            start += size
        whole = model(ids, documents=which, real=padded)
    close(torch.cat(logits, dim=1)[padded], whole[padded])
    assert not cache.forgotten  # a document may go on after another, further back than the window is long


@pytest.mark.parametrize("window", [CONTEXT, 3 * CONTEXT])
@every_windowed_mixer
def test_a_window_no_shorter_than_the_sequence_changes_nothing(mixer: str, window: int) -> None:
    free, model, ids = Case(mixer, mixer).model(), windowed(mixer, window, "learned"), some_ids(time=CONTEXT)
    with torch.no_grad():
        assert torch.equal(model(ids), free(ids))
    assert kernel_that_ran(model, ids) == kernel_that_ran(free, ids)


@pytest.mark.parametrize("mixer", ["softmax", "differential", "forgetting"])
def test_a_window_reads_on_for_ever_in_the_same_memory(mixer: str) -> None:
    model, ids, cache = windowed(mixer, 4, "rope"), some_ids(time=5 * CONTEXT), Cache(2)
    sizes = set()
    with torch.no_grad():
        together = torch.cat([(model(token, cache=cache), sizes.add(cache.n_bytes))[0] for token in ids.split(1, 1)], 1)
        close(together, model(ids))
    assert len(sizes) == 3  # of one token, two, and three for ever after


@pytest.mark.parametrize("variant", ["softmax+rope", "softmax1+alibi", "sink+xpos", "differential2+none"])
def test_a_long_sequence_is_read_in_blocks_where_a_window_hides_most_of_it(variant: str) -> None:
    ids, results = some_ids(batch=1, time=600), []
    documents = torch.arange(600)[None] // 250
    for window, in_blocks in ((64, True), (400, False)):
        model = Case(variant, f"{variant},window={window}").model(context=600, n_layers=1)
        assert ("blockwise" in kernel_that_ran(model, ids)) is in_blocks
        for model.plain in (False, True):
            for choices in ({}, {"documents": documents}):
                model.zero_grad()
                logits = model(ids, **choices)
                logits.square().mean().backward()
                results.append((logits.detach(), model.embed.weight.grad))
    for fast, plain in ((0, 2), (1, 3), (4, 6), (5, 7)):
        for one, other in zip(results[fast], results[plain], strict=True):
            close(one, other)


@given(
    tokens=st.lists(st.tuples(st.integers(-2, 3), st.booleans()), min_size=1, max_size=20), with_padding=st.booleans()
)
def test_places_are_counted_within_each_document_wherever_its_tokens_stand(
    tokens: list[tuple[int, bool]], with_padding: bool
) -> None:
    documents = torch.tensor([[document for document, _ in row] for row in (tokens, tokens[::-1])])
    real = torch.tensor([[is_real for _, is_real in row] for row in (tokens, tokens[::-1])])
    counted = real if with_padding else torch.ones_like(real)
    visible = Visible(
        len(tokens), len(tokens), real.device, real_bk=real if with_padding else None, document_bk=documents
    )
    for row in range(2):
        for place in range(len(tokens)):
            if counted[row, place]:
                before = counted[row, :place] & (documents[row, :place] == documents[row, place])
                assert visible.key_positions[row, place] == before.sum()


@pytest.mark.parametrize("overflow", ["refuse", "slide"])
@every_windowed_mixer
def test_generation_with_a_window_equals_reading_everything_anew(mixer: str, overflow: str) -> None:
    model, new = windowed(mixer, 3, "learned"), 3 if overflow == "refuse" else 9
    real = torch.arange(TIME) >= torch.tensor([[0], [2], [7]])
    for padding in (None, real):
        cached, anew = (
            model.generate(some_ids(), new, overflow=overflow, real=padding, use_cache=use) for use in (True, False)
        )
        assert torch.equal(cached, anew)


def test_no_window_can_be_written() -> None:
    config = config_of("softmax+rope,window=none", **{**SIZES, "window": 5})
    assert config.window is None
    assert config.variant == Case("", "softmax+rope").config().variant
