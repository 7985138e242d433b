"""From an average to a transformer block: each row adds one piece to the row above."""

from headstock.studies.base import Claim, Effort, Row, Study
from headstock.studies.figures import Ours, figure, perplexity

AVERAGE = "n_heads=1,value_map=identity,output_map=false"
ONE_HEAD = "n_heads=1,output_map=false"
FOUR_HEADS = "n_heads=4,output_bias=true"
BLOCK = f"{FOUR_HEADS},feedforward=gelu,norm=layernorm"

ROWS = (
    Row("no-context", "each token alone: embedding, then a map to the vocabulary", "softmax+none,n_layers=0",
        published={"perplexity": "59.71"}),
    Row("uniform-replacing", "the uniform average of the past replaces the token",
        f"uniform+none,{AVERAGE},residual=replacing", published={"perplexity": "about 4 times row 1"}),
    Row("uniform-replacing-positions", "and learned positions", f"uniform,{AVERAGE},residual=replacing",
        published={"perplexity": "2.14 below"}),
    Row("uniform-added", "the uniform average is added to the token", f"uniform+none,{AVERAGE}",
        published={"perplexity": "60.45"}),
    Row("uniform-added-positions", "and learned positions", f"uniform,{AVERAGE}", published={"perplexity": "60.45"}),
    Row("raw-scores", "scores x·xᵀ: tokens as they are, without maps", f"softmax,{AVERAGE},query_key=identity"),
    Row("shared-map", "one map for queries and keys", f"softmax,{AVERAGE},query_key=shared"),
    Row("no-value-map", "two maps; what matches is what is copied", f"softmax,{AVERAGE}"),
    Row("one-head", "and a map of values: one head of 128", f"softmax,{ONE_HEAD}", published={"perplexity": "about 46"}),
    Row("one-head-replacing", "the same head, replacing the token", f"softmax,{ONE_HEAD},residual=replacing",
        published={"perplexity": "9 above"}),
    Row("four-heads", "four heads of 32 and an output map", f"softmax,{FOUR_HEADS}",
        published={"perplexity": "about 43"}),
    Row("feedforward", "and a feed-forward", f"softmax,{FOUR_HEADS},feedforward=gelu",
        published={"perplexity": "about 39.9"}),
    Row("block", "and norms before each: one block", f"softmax,{BLOCK}",
        published={"perplexity": "38.07", "train_perplexity": "18.77"}),
    Row("two-blocks", "two blocks", f"softmax,{BLOCK},n_layers=2",
        published={"perplexity": "40.57", "train_perplexity": "14.49"}),
    # Where training starts is not said: what else it could have been, at both ends of the ladder.
    Row("no-context-fan-in", "row 1 from the start `fan-in`", "softmax+none,n_layers=0,init=fan-in"),
    Row("no-context-gpt2", "row 1 from the start `gpt2`", "softmax+none,n_layers=0,init=gpt2"),
    Row("block-fan-in", "the block from the start `fan-in`", f"softmax,{BLOCK},init=fan-in"),
    Row("block-gpt2", "the block from the start `gpt2`", f"softmax,{BLOCK},init=gpt2"),
)  # fmt: skip
