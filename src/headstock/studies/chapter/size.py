"""How many numbers a block holds, and where in a model they are."""

from functools import partial
from typing import Any

import torch

from headstock.model.accounting import parameters
from headstock.model.config import ModelConfig, config_of
from headstock.model.transformer import Transformer
from headstock.pictures.bars import bars
from headstock.pictures.picture import Picture
from headstock.studies.base import Claim, Effort, Measured, Opened, Row, Study
from headstock.studies.chapter.shared import SOURCE
from headstock.studies.figures import figure
from headstock.studies.results import StudyResult

GPT2 = "softmax,qkv_bias=true,output_bias=true,tied=true"
NEOX = "softmax+rope,qkv_bias=true,output_bias=true"
LLAMA = "softmax+rope,norm=rmsnorm,feedforward=swiglu,feedforward_bias=false"


def _gpt2(width: int, layers: int, heads: int) -> ModelConfig:
    return config_of(GPT2, vocab_size=50_257, context=1024, d_model=width, n_layers=layers, n_heads=heads)


def _neox(width: int, layers: int, heads: int, vocab_size: int = 50_304) -> ModelConfig:
    return config_of(NEOX, vocab_size=vocab_size, context=2048, d_model=width, n_layers=layers, n_heads=heads)


def _llama(width: int, layers: int, heads: int, d_ff: int, **more: Any) -> ModelConfig:
    sizes: dict[str, Any] = {"vocab_size": 32_000, "context": 4096, **more}
    return config_of(LLAMA, d_model=width, n_layers=layers, n_heads=heads, d_ff=d_ff, **sizes)


# Public models by their published sizes; blocks whose halves run in parallel hold as many numbers.
FAMILIES: dict[str, tuple[str, ModelConfig, int]] = {
    "gpt2": ("GPT-2 small", _gpt2(768, 12, 12), 124_439_808),
    "gpt2-medium": ("GPT-2 medium", _gpt2(1024, 24, 16), 354_823_168),
    "gpt2-large": ("GPT-2 large", _gpt2(1280, 36, 20), 774_030_080),
    "gpt2-xl": ("GPT-2 XL", _gpt2(1600, 48, 25), 1_557_611_200),
    "pythia-70m": ("Pythia 70M", _neox(512, 6, 8), 70_426_624),
    "pythia-160m": ("Pythia 160M", _neox(768, 12, 12), 162_322_944),
    "pythia-410m": ("Pythia 410M", _neox(1024, 24, 16), 405_334_016),
    "pythia-1b4": ("Pythia 1.4B", _neox(2048, 24, 16), 1_414_647_808),
    "pythia-6b9": ("Pythia 6.9B", _neox(4096, 32, 32, 50_432), 6_857_302_016),
    "llama-7b": ("Llama 7B", _llama(4096, 32, 32, 11_008), 6_738_415_616),
    "llama-13b": ("Llama 13B", _llama(5120, 40, 40, 13_824), 13_015_864_320),
    "mistral-7b": ("Mistral 7B", _llama(4096, 32, 32, 14_336, n_kv_heads=8), 7_241_732_096),
}
"""By row: name, sizes, and the parameters it was published with."""
SHOWN = ("gpt2", "gpt2-xl", "pythia-6b9", "llama-7b")
"""Those of which a claim says that two thirds of a block are its feed-forward; the table has all."""


def of_family(config: ModelConfig, opened: Opened) -> Measured:
    """Count a model's parameters, by where they are."""
    counted = parameters(config)
    block = parameters(config.model_copy(update={"n_layers": 1})).blocks
    mixer = parameters(config.model_copy(update={"n_layers": 1, "feedforward": "none"})).blocks
    norm = {"layernorm": 2, "rmsnorm": 1, "none": 0}[config.norm] * config.d_model
    embeddings = counted.embedding + counted.position + counted.unembedding
    return Measured(
        {
            "total": counted.total,
            "token_embedding": counted.embedding,
            "position_embedding": counted.position,
            "block": block,
            "blocks": counted.blocks,
            "final_norm": counted.final_norm,
            "feedforward_share": (block - mixer - norm) / block,
            "token_embedding_share": counted.embedding / counted.total,
            "embedding_share": embeddings / counted.total,
            "formula": 12 * config.d_model**2 + 13 * config.d_model,
        }
    )


def built(opened: Opened) -> Measured:
    """Count the numbers of GPT-2 small by building it, without memory for them."""
    with torch.device("meta"):
        model = Transformer(FAMILIES["gpt2"][1])
    return Measured({"total": sum(parameter.numel() for parameter in model.parameters())})


def unbiased_block(opened: Opened) -> Measured:
    """Count a block of GPT-2 small's width without biases in the maps of queries, keys and values."""
    config = FAMILIES["gpt2"][1].model_copy(update={"n_layers": 1, "qkv_bias": False})
    return Measured({"block": parameters(config).blocks})


def pictures(result: StudyResult) -> list[Picture]:
    """Give the shares of the feed-forward in a block, and of embeddings in a model."""
    found: dict[str, dict[str, float]] = {}
    for name, (title, *_) in FAMILIES.items():
        runs = result.row(name).finished
        if runs:
            found[title] = dict(runs[0].figures)
    if not found:
        return []
    thirds = sum(abs(one["feedforward_share"] - 2 / 3) < 0.01 for one in found.values())
    shares = {title: 100 * one["embedding_share"] for title, one in found.items()}
    first, last = max(shares, key=shares.__getitem__), min(shares, key=shares.__getitem__)
    return [
        bars(
            {title: 100 * one["feedforward_share"] for title, one in found.items()},
            unit="% of a block's parameters",
            title=f"The feed-forward is two thirds of a block in {thirds} of {len(found)} models",
            caption="Keys shared by heads and a wider feed-forward make it more.",
            name="feedforward-share",
        ),
        bars(
            shares,
            unit="% of a model's parameters",
            title=f"Embeddings are {shares[first]:.0f} % of {first} and {shares[last]:.0f} % of {last}",
            caption="Token embeddings, trained positions, and an unembedding of its own where there is one.",
            name="embedding-share",
        ),
    ]


def _claims() -> tuple[Claim, ...]:
    parts = (
        ("total", 124_439_808, "GPT-2 small has 124,439,808 parameters.", "124,439,808"),
        ("token_embedding", 38_597_376, "Its token embeddings hold 50,257 × 768.", "38,597,376"),
        ("position_embedding", 786_432, "Its positions hold 1,024 × 768.", "786,432"),
        ("block", 7_087_872, "One block of it holds 12d² + 13d.", "7,087,872"),
        ("blocks", 85_054_464, "Its twelve blocks hold twelve times that.", "85,054,464"),
        ("final_norm", 1_536, "Its last norm holds 2d.", "1,536"),
    )
    return (
        *(Claim(says, figure("gpt2", name), written, "counts are exact", value, value)
          for name, value, says, written in parts),
        Claim("The formula counts what is built.", figure("built", "total") - figure("gpt2", "total"),
              "the formula is the model", "counts are exact", 0, 0),
        Claim("Without biases on queries, keys and values a block has 2,304 fewer.",
              figure("gpt2", "block") - figure("unbiased-block", "block"), "2.304 fewer", "counts are exact", 2304,
              2304),
        *(Claim(f"12d² + 13d is a block of {FAMILIES[name][0]}.", figure(name, "block") - figure(name, "formula"),
                "12d² + 13d", "counts are exact", 0, 0)
          for name in ("gpt2-xl", "pythia-6b9")),
        *(Claim(f"{title} has {total:,} parameters.", figure(name, "total"), f"{total:,}", "counts are exact", total,
                total)
          for name, (title, _, total) in FAMILIES.items() if name != "gpt2"),
        *(Claim(f"Two thirds of a block of {FAMILIES[name][0]} is its feed-forward.", figure(name, "feedforward_share"),
                "two thirds", "two thirds, to one point in a hundred", 2 / 3 - 0.01, 2 / 3 + 0.01)
          for name in SHOWN),
        Claim("Two thirds of a block of Mistral 7B is its feed-forward.", figure("mistral-7b", "feedforward_share"),
              "two thirds, at every scale",
              "two thirds, to one point in a hundred", 2 / 3 - 0.01, 2 / 3 + 0.01),
        Claim("Almost a third of GPT-2 small is token embeddings.", figure("gpt2", "token_embedding_share"),
              "almost a third", "from 29 parts in a hundred to a third", 0.29, 1 / 3),
    )  # fmt: skip


STUDY = Study(
    name="size",
    title="Where a model's parameters are",
    asks="Is a block 12d² + 13d numbers, two thirds of them in the feed-forward, and does that sum up to the models "
    "that were published?",
    source=f"{SOURCE}: the size; the families' own published sizes",
    rows=(
        *(Row(name, title, measure=partial(of_family, config), published={"total": f"{total:,}"})
          for name, (title, config, total) in FAMILIES.items()),
        Row("built", "GPT-2 small, built and counted", measure=built, published={"total": "124,439,808"}),
        Row("unbiased-block", "a block of it without biases on q, k and v", measure=unbiased_block),
    ),
    claims=_claims(),
    efforts={"quick": Effort(1, minutes=0.1), "full": Effort(1, minutes=0.1)},
    figures=("total", "block", "feedforward_share", "embedding_share"),
    choices=("Families beside GPT-2 small are ours, counted from their published sizes; blocks whose two halves run in "
             "parallel (Pythia) hold what ours hold.",),
    remarks=(
        "“Two thirds, at every scale” holds for blocks of four square maps and a feed-forward of eight or as large; "
        "Mistral shares each key among four heads and widens the feed-forward, and there it is four fifths.",
    ),
    exact=True,
    pictures=pictures,
)  # fmt: skip
