"""What a transformer is, as a value: ModelConfig, and the variant grammar that writes one in a line.

    MIXER[+POSITION][,key=value...]        softmax      differential+alibi,n_heads=8      ./my_mixer.py:MyMixer+rope

Keys are ModelConfig's fields. Knows nothing of torch: a plan can be read and printed without it.
"""

from typing import Any, Literal, get_args

from pydantic import Field, NonNegativeInt, PositiveInt, field_validator, model_validator

from headstock.errors import UserError, near_name
from headstock.settings import Settings

Position = Literal["none", "learned", "sinusoidal", "rope", "rope-interleaved", "alibi", "xpos"]
ROTARY = ("rope", "rope-interleaved", "xpos")
"""Positions that turn queries and keys."""
POSITIONS: tuple[str, ...] = get_args(Position)

TOPK_KEYS = 8
"""What `k` is for the mixer topk where it is not given."""

Probability = Field(default=0.0, ge=0.0, lt=1.0)


def _head_size(known: dict[str, Any]) -> int:
    return max(1, int(known.get("d_model", 0)) // int(known.get("n_heads", 1)))  # too many heads: _parts_fit says so


def _feedforward_width(known: dict[str, Any]) -> int:
    """Four times the width; for the three maps of swiglu 8/3 of it, which holds as many parameters."""
    width = int(known.get("d_model", 0))
    return round(width * 8 / 3) if known.get("feedforward") == "swiglu" else 4 * width


class ModelConfig(Settings):
    """Every choice that makes a model's function; what is left out follows from what is given, once, here.

    Raises UserError for an unknown key, a value outside its range, or parts that do not fit each other.
    """

    vocab_size: PositiveInt
    """Different tokens that can be read and foretold."""
    context: PositiveInt
    """Tokens a model was made for: the length of its learned tables, and what generation may reach."""

    mixer: str = "softmax"
    """A name of `headstock list variants`, or a class of your own: `package.module:Class`, `file.py:Class`."""
    position: Position = "learned"
    """How a token knows where it stands."""
    d_model: PositiveInt = 64
    """Width of the residual."""
    n_layers: NonNegativeInt = 2
    """Blocks, each a mixer and a feed-forward."""

    n_heads: PositiveInt = 4
    """Query heads, of size d_head each, in every variant."""
    n_kv_heads: PositiveInt = Field(default_factory=lambda known: known.get("n_heads", 1))
    """Key and value heads; fewer than n_heads makes groups of query heads that share one (Ainslie et al., 2023)."""
    d_head: PositiveInt = Field(default_factory=_head_size)
    """Width of a head; d_model / n_heads where not given."""
    query_key: Literal["learned", "shared", "identity"] = "learned"
    """Two maps, one map for both, or none: the token itself is its query and its key."""
    value_map: Literal["learned", "identity"] = "learned"
    """A map of its own, or none: the token itself is its value."""
    output_map: bool = True
    """A map from all heads' outputs into the residual."""
    qkv_bias: bool = False
    """Biases in the maps of queries, keys and values."""
    output_bias: bool = False
    """A bias in the output map."""

    causal: bool = True
    """A token sees itself and what is before it; with false it sees all, as in an encoder."""
    window: PositiveInt | None = None
    """Keys a query sees, its own included (Beltagy et al., 2020); all of them with none."""
    scale_scores: bool = True
    """Scores are q·k/√d_head; with false they are q·k, whose variance grows with the head (Vaswani et al., 2017)."""
    soft_cap: float | None = Field(default=None, gt=0)
    """Turns a score s into soft_cap · tanh(s / soft_cap) (Gemma Team, 2024); with none it stays as it is."""
    qk_norm: Literal["none", "layernorm", "rmsnorm"] = "none"
    """A norm of every query and key, before it is turned, one weight for all heads (Dehghani et al., 2023)."""
    k: PositiveInt | None = Field(default_factory=lambda known: TOPK_KEYS if known.get("mixer") == "topk" else None)
    """Keys that a query of topk averages, the highest scored."""
    head_norm: Literal["own", "none", "rmsnorm"] = "own"
    """A norm of each head's output, one weight for all heads; with own there is one where the mixer's formula has it,
    as differential's has for each pair."""
    lambda_init: float | None = Field(default=None, ge=0, lt=1)
    """The λ_init of differential in every layer; with none it grows with the depth, 0.8 − 0.6 exp(−0.3 layer)."""
    lambda_scale: bool = True
    """What a pair of differential gives is multiplied by 1 − λ_init; with false it is not."""
    lambdas: Literal["layer", "head", "fixed"] = "layer"
    """The λ that differential learns: one a layer, one a pair of heads, or none, so that λ stays λ_init."""

    norm: Literal["none", "layernorm", "rmsnorm"] = "layernorm"
    """What keeps the sizes of numbers in order."""
    norm_placement: Literal["pre", "post"] = "pre"
    """Before each sub-layer, or after its output has joined the residual."""
    final_norm: bool = Field(default_factory=lambda known: known.get("norm_placement") == "pre")
    """A norm before the unembedding; has an effect only where there is a norm at all."""
    norm_eps: float = Field(default=1e-5, gt=0)
    """Added to the variance, or the mean square, before its root is taken."""

    feedforward: Literal["none", "relu", "gelu", "swiglu"] = "gelu"
    """What works on each position alone."""
    d_ff: PositiveInt = Field(default_factory=_feedforward_width)
    """Width inside the feed-forward; 4 d_model where not given, 8/3 d_model for swiglu."""
    feedforward_bias: bool = True
    """Biases in the feed-forward's maps."""

    residual: Literal["added", "replacing"] = "added"
    """What a sub-layer's output does to its input."""
    tied: bool = False
    """The unembedding is the token embedding, transposed."""
    unembed_bias: bool = False
    """A bias a token on the logits."""

    dropout_attention: float = Probability
    """On the weights of the average."""
    dropout_residual: float = Probability
    """On each sub-layer's output, before it joins the residual."""
    dropout_embedding: float = Probability
    """On the sum of token and position."""

    init: Literal["fan-in", "gpt2", "torch"] = "fan-in"
    """Where training starts: see `model/initialisation.py`, which says what each draws."""

    @field_validator("window", "soft_cap", "k", "lambda_init", mode="before")
    @classmethod
    def _none_can_be_written(cls, value: object) -> object:
        return None if value == "none" else value

    @model_validator(mode="after")
    def _parts_fit(self) -> "ModelConfig":
        width = self.n_heads * self.d_head
        if "d_head" not in self.model_fields_set and self.d_model % self.n_heads:
            fits = sorted((n for n in range(1, self.d_model + 1) if self.d_model % n == 0), key=self._far_from_n_heads)
            raise UserError(
                f"{self.mixer} has {self.n_heads} heads but the width is {self.d_model}: choose a number of heads "
                f"that divides {self.d_model}, such as {' or '.join(map(str, sorted(fits[:2])))}, or a width that is a "
                f"multiple of {self.n_heads}."
            )
        if self.n_heads % self.n_kv_heads:
            raise UserError(
                f"{self.n_heads} query heads cannot share {self.n_kv_heads} key heads evenly: choose n_kv_heads "
                f"that divides {self.n_heads}."
            )
        for asked, reason in (
            (self.query_key == "identity", "query_key=identity uses the token as its query and key"),
            (self.value_map == "identity", "value_map=identity uses the token as its value"),
            (not self.output_map, "output_map=false gives the heads' outputs to the residual as they are"),
        ):
            if asked and width != self.d_model:
                raise UserError(f"{reason}, so n_heads × d_head must be d_model={self.d_model}, not {width}.")
        if self.n_kv_heads != self.n_heads and (self.query_key != "learned" or self.value_map != "learned"):
            raise UserError(
                "n_kv_heads below n_heads needs learned query, key and value maps: a shared or identity map has as "
                "many key heads as query heads."
            )
        if self.window is not None and not self.causal:
            raise UserError("a window looks back, so it needs causal=true: leave window or causal=false out.")
        if self.position == "xpos" and not self.causal:
            raise UserError(
                "xpos lets a score fall with the distance back, so ahead it would grow: choose rope with causal=false."
            )
        if self.position in ROTARY and self.d_head % 2:
            raise UserError(f"{self.position} turns pairs of numbers, but d_head is {self.d_head}: choose an even one.")
        if self.qkv_bias and self.query_key == "identity" and self.value_map == "identity":
            raise UserError("qkv_bias=true has nothing to act on where the token itself is query, key and value.")
        if self.output_bias and not self.output_map:
            raise UserError("output_bias=true has nothing to act on without an output map: set output_map=true.")
        for key, value in (("soft_cap", self.soft_cap), ("norm_eps", self.norm_eps)):
            if value is not None and not 1e-30 <= value <= 1e30:
                raise UserError(f"{key}={value} comes near what float32 cannot hold: choose one from 1e-30 to 1e30.")
        if self.tied and self.unembed_bias:
            raise UserError("a tied unembedding has no bias: set unembed_bias=false or tied=false.")
        return self

    def _far_from_n_heads(self, n: int) -> tuple[int, int]:
        return abs(n - self.n_heads), n

    @property
    def chosen(self) -> dict[str, Any]:
        """Give the keys whose value is another than follows from the keys before them, in order."""
        said: dict[str, Any] = {}
        chosen = {}
        for key, field in type(self).model_fields.items():
            value = getattr(self, key)
            uneven = key == "d_head" and self.d_model % self.n_heads  # then no default is accepted
            if uneven or value != field.get_default(call_default_factory=True, validated_data=said):
                chosen[key] = value
            said[key] = value
        return chosen

    @property
    def variant(self) -> str:
        """The line that makes this config again, given its vocab_size and context; defaults are left out."""
        head = self.mixer if self.position == "learned" else f"{self.mixer}+{self.position}"
        said_elsewhere = ("vocab_size", "context", "mixer", "position")
        keys = (f"{key}={_written(value)}" for key, value in self.chosen.items() if key not in said_elsewhere)
        return ",".join([head, *keys])


def _written(value: object) -> str:
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def parse_variant(variant: str) -> dict[str, str]:
    """Split a variant into ModelConfig keys and their values as written.

    Raises UserError for an unknown position or key, or a part that is not key=value.
    """
    head, *parts = variant.strip().split(",")
    mixer, plus, position = head.rpartition("+")
    if not plus or ":" in position:  # no position, or a + inside a path
        mixer, position = head, ""
    if not mixer:
        raise UserError(f"{variant!r} names no mixer: write MIXER[+POSITION][,key=value...], such as softmax+rope.")
    keys = {"mixer": mixer}
    if plus and mixer != head:
        if position not in POSITIONS:
            raise UserError(f"unknown position {position!r} in {variant!r}: {near_name(position, POSITIONS)}")
        keys["position"] = position
    for part in parts:
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not key or not value:
            raise UserError(f"{part!r} in {variant!r} is not key=value: write, for instance, n_heads=8.")
        if key not in ModelConfig.model_fields:
            raise UserError(f"unknown key {key!r} in {variant!r}: {near_name(key, ModelConfig.model_fields)}")
        if key in keys:
            raise UserError(f"{key!r} is given twice in {variant!r}: give it once.")
        keys[key] = value
    return keys


def config_of(variant: str, **overrides: Any) -> ModelConfig:
    """Give the config of a variant; where both name a key, the variant's own value holds.

    Raises UserError as ModelConfig and parse_variant do.
    """
    return ModelConfig(**{**overrides, **parse_variant(variant)})
