"""The whole model against its parts put together by hand."""

import pytest
import torch

from headstock.errors import UserError
from headstock.model.cache import Cache
from tests.model.cases import BATCH, CONTEXT, TIME, VOCAB, Case, close, every_case, every_mixer, some_ids


def test_no_blocks_leave_the_embedding_and_the_unembedding() -> None:
    model = Case("no-blocks", "softmax+none,n_layers=0,norm=none").model()
    close(model(some_ids()), model.embed.weight[some_ids()] @ model.unembed.weight.T)


def test_tied_embeddings_are_one_matrix() -> None:
    model = Case("tied", "softmax,n_layers=0,norm=none,tied=true").model()
    embedded = model.embed.weight[some_ids()] + model.position.weight[:TIME]
    close(model(some_ids()), embedded @ model.embed.weight.T)
    assert "unembed.weight" not in model.state_dict()


@pytest.mark.parametrize("placement", ["pre", "post"])
@pytest.mark.parametrize("residual", ["added", "replacing"])
@pytest.mark.parametrize("feedforward", ["gelu", "none"])
def test_a_block_puts_its_norms_and_its_residual_where_the_config_says(
    placement: str, residual: str, feedforward: str
) -> None:
    case = Case("one", f"softmax,n_layers=1,residual={residual},norm_placement={placement},feedforward={feedforward}")
    model, ids = case.model(), some_ids()
    block = model.blocks[0]
    seen: list[tuple[torch.Tensor, torch.Tensor]] = []
    sublayers = [(block.mixer_norm, block.mixer)]
    if feedforward != "none":
        sublayers.append((block.feedforward_norm, block.feedforward))
    for _, sublayer in sublayers:
        sublayer.register_forward_hook(lambda _, inputs, output: seen.append((inputs[0], output)))
    logits = model(ids)
    x = model.embed(ids) + model.position(torch.arange(TIME))
    for (norm, _), (read, wrote) in zip(sublayers, seen, strict=True):
        close(read, norm(x) if placement == "pre" else x)
        joined = x + wrote if residual == "added" else wrote
        x = joined if placement == "pre" else norm(joined)
    close(logits, model.unembed(model.final_norm(x)))
    assert isinstance(model.final_norm, torch.nn.Identity) is (placement == "post")


def test_feedforwards_are_what_their_names_say() -> None:
    x = torch.randn(2, 3, 16, dtype=torch.float64)
    for kind, formula in (
        ("relu", lambda f: f.out(f.into(x).clamp(min=0))),
        ("gelu", lambda f: f.out(f.into(x) * 0.5 * (1 + torch.erf(f.into(x) / 2**0.5)))),
        ("swiglu", lambda f: f.out(f.gate(x) * torch.sigmoid(f.gate(x)) * f.into(x))),
    ):
        layer = Case(kind, f"softmax,feedforward={kind}").model().blocks[0].feedforward
        close(layer(x), formula(layer))


def test_norms_are_what_their_names_say() -> None:
    x = 3 + torch.randn(2, 3, 16, dtype=torch.float64)
    layernorm = Case("layernorm", "softmax,norm_eps=0.01").model().final_norm
    centred = x - x.mean(-1, keepdim=True)
    spread = (centred.square().mean(-1, keepdim=True) + 0.01).sqrt()
    close(layernorm(x), centred / spread * layernorm.weight + layernorm.bias)
    rmsnorm = Case("rmsnorm", "softmax,norm=rmsnorm,norm_eps=0.01").model().final_norm
    close(rmsnorm(x), x / (x.square().mean(-1, keepdim=True) + 0.01).sqrt() * rmsnorm.weight)


@every_case
def test_hidden_and_logits_make_the_whole(case: Case) -> None:
    model = case.model()
    assert torch.equal(model.logits(model.hidden(some_ids())), model(some_ids()))
    close(model.logits(model.hidden(some_ids())[:, -1]), model(some_ids())[:, -1])


def test_int32_ids_are_read_like_int64() -> None:
    model = Case("softmax", "softmax").model()
    assert torch.equal(model(some_ids().int()), model(some_ids()))


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("ids", "reading", "sentence"),
    [
        (torch.zeros(2, 3), {}, r"ids are float32 of shape \(2, 3\): give integers of shape \(batch, time\)"),
        (torch.zeros(3, dtype=torch.int64), {}, r"ids are int64 of shape \(3,\)"),
        (torch.tensor([[0, VOCAB]]), {}, "ids go from 0 to 17 but the vocabulary has 17 tokens: give ids from 0 to 16"),
        (torch.tensor([[-1, 3]]), {}, "ids go from -1 to 3"),
        (some_ids(), {"real": torch.ones(BATCH, TIME)}, "real is float32 .* give a bool for each id"),
        (some_ids(), {"real": torch.ones(BATCH, 1, dtype=torch.bool)}, r"real is bool of shape \(3, 1\)"),
        (some_ids(), {"documents": torch.zeros(BATCH, TIME)}, "documents are float32 .* give an integer for each id"),
        (some_ids(), {"documents": torch.zeros(TIME, dtype=torch.int64)}, r"documents are int64 of shape \(9,\)"),
        (some_ids(), {"documents": torch.zeros(BATCH, TIME, dtype=torch.complex64)}, "documents are complex64"),
        (some_ids(), {"documents": torch.zeros(BATCH, TIME, dtype=torch.uint16)}, "documents are uint16"),
    ],
)
def test_what_is_no_input_is_refused_in_a_sentence(
    ids: torch.Tensor, reading: dict[str, torch.Tensor], sentence: str
) -> None:
    model = Case("softmax", "softmax").model()
    for read in (model, model.weights):
        with pytest.raises(UserError, match=sentence):
            read(ids, **reading)


def test_a_cache_knows_how_much_it_has_read() -> None:
    model, cache = Case("softmax", "softmax").model(), Cache(2)
    assert (cache.length, cache.n_bytes) == (0, 0)
    model(some_ids(time=4), cache=cache)
    model(some_ids(time=CONTEXT - 4), cache=cache)
    assert cache.length == CONTEXT
    assert cache.blocks[1].kept[0].shape == (BATCH, 4, CONTEXT, 4)


@every_mixer
def test_a_cache_serves_one_model_one_batch_and_one_dtype(case: Case) -> None:
    model, cache = case.model(), Cache(2)
    single = case.model(torch.float32)
    other = Case("other", f"{case.variant},n_heads=2").model()
    with torch.no_grad():
        for empty, n_layers in ((Cache(1), 1), (Cache(3), 3)):
            with pytest.raises(UserError, match=f"made for n_layers={n_layers}, but the model has 2: make it"):
                model(some_ids(), cache=empty)
        ids = some_ids(batch=1)
        model(ids[:, :4], cache=cache)  # one row, which would spread over any batch
        for reader, batch, sentence in (
            (model, 3, "a batch of 1, but a batch of 3 is read"),
            (model, 2, "a batch of 1, but a batch of 2 is read"),
            (single, 1, "begun in float64, but the model is in float32 now"),
            (other, 1, "what another model read"),
        ):
            with pytest.raises(UserError, match=sentence):
                reader(some_ids(batch=batch, time=3), cache=cache)
        close(model(ids[:, 4:], cache=cache), model(ids)[:, 4:])


def test_a_cache_whose_first_reading_failed_serves_whoever_comes_next() -> None:
    model, cache = Case("softmax", "softmax").model(), Cache(2)
    with pytest.raises(UserError, match="the vocabulary has 17 tokens"):
        model(torch.tensor([[VOCAB]]), cache=cache)
    close(model(some_ids(), cache=cache), model(some_ids()))
