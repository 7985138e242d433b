"""The recurrent summary that came before attention, as a floor."""

import warnings
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from headstock.errors import UserError
from headstock.model.attention import wide
from headstock.model.cache import State
from headstock.model.config import ModelConfig
from headstock.model.evaluations import note
from headstock.model.frame import Frame
from headstock.model.mixers.base import HeadSizes, Mixer, into_residual
from headstock.model.mixers.states import Passage
from headstock.model.shapes import Residual, Weights

_NO_QUERIES = "it has no queries and keys"


class LSTM(Mixer):
    """Long short-term memory: all that was read is one vector, and gates say what to forget and what to add.

        c_t = f_t ⊙ c_{t−1} + i_t ⊙ tanh(g_t),   h_t = o_t ⊙ tanh(c_t)
        (i, f, g, o)_t = W x_t + U h_{t−1} + b,   i, f, o through a sigmoid

    c and h are n_heads·d_head wide; h goes through the output map. No average of values: it has no weights. b starts
    at 1 for the forget gate and 0 elsewhere (Jozefowicz et al., 2015). Source: Hochreiter and Schmidhuber, "Long
    Short-Term Memory" (1997); the forget gate: Gers et al., "Learning to Forget" (2000).
    """

    weights_are = "none"
    is_floor = True
    sees_order = True
    refuses: ClassVar = {
        "rope": _NO_QUERIES + " to rotate",
        "rope-interleaved": _NO_QUERIES + " to rotate",
        "xpos": _NO_QUERIES + " to rotate",
        "alibi": "it has no scores to take a penalty from",
        "window": "it cannot let one token go and keep the rest",
        "soft_cap": "it has no scores to cap",
        "scale_scores": "it has no scores",
        "qk_norm": _NO_QUERIES + " to norm",
        "head_norm": "its parts are no averages of values",
        "query_key": _NO_QUERIES,
        "value_map": "it has no values",
        "n_kv_heads": "it has no keys and values to share",
        "qkv_bias": "its gates have their biases already",
        "causal": "it reads in one order",
        "dropout_attention": "it has no weights to drop",
        "cross attention": "it has no keys and values that another sequence could give",
    }

    @classmethod
    def sizes(cls, config: ModelConfig) -> HeadSizes:
        """Outputs, side by side as of heads; no queries, keys or values."""
        return HeadSizes(
            query_heads=0, key_heads=0, key_size=0, value_heads=0,
            value_size=config.d_head, output_heads=config.n_heads,
        )  # fmt: skip

    @classmethod
    def own_parameters(cls, config: ModelConfig) -> int:
        """W, U and b."""
        hidden = config.n_heads * config.d_head
        return 4 * hidden * (config.d_model + hidden + 1)

    @classmethod
    def own_flops(cls, config: ModelConfig) -> int:
        """W."""
        return 2 * 4 * config.n_heads * config.d_head * config.d_model

    @classmethod
    def mixing_flops(cls, config: ModelConfig, length: int) -> int:
        """U, whatever the length."""
        return 2 * 4 * (config.n_heads * config.d_head) ** 2

    @classmethod
    def state_numbers(cls, config: ModelConfig) -> int:
        """h and c."""
        return 2 * config.n_heads * config.d_head

    @classmethod
    def memory_is_linear(cls, config: ModelConfig) -> bool:
        """A state a token."""
        return True

    def __init__(self, config: ModelConfig, layer: int) -> None:
        super().__init__(config, layer)
        self.d_head = config.d_head
        hidden = self.hidden = config.n_heads * config.d_head
        self.input = nn.Linear(config.d_model, 4 * hidden, bias=False)
        self.recurrent = nn.Linear(hidden, 4 * hidden, bias=False)
        self.bias = nn.Parameter(torch.zeros(4 * hidden))
        self.output = nn.Linear(hidden, config.d_model, config.output_bias) if config.output_map else None

    def initialise(self, generator: torch.Generator) -> None:
        """Let nothing be forgotten at first."""
        nn.init.zeros_(self.bias)
        nn.init.ones_(self.bias[self.hidden : 2 * self.hidden])

    def forward(self, x_bqm: Residual, frame: Frame) -> Residual:
        """Read on from the state, and map h out."""
        if frame.memory_bkm is not None:
            raise UserError(f"LSTM cannot read another sequence: {self.refuses['cross attention']}.")
        passage = Passage.of(frame.visible)
        cache = None if frame.caches is None else frame.caches[self.layer]
        x = wide(x_bqm)
        state = cache.state if cache is not None else ()
        state = state or (x.new_zeros(x.shape[0], self.hidden), x.new_zeros(x.shape[0], self.hidden))
        if not x.shape[1]:
            h_bqm = x.new_zeros(x.shape[0], 0, self.hidden)
        elif frame.plain or passage.real_bk is not None or passage.document_bk is not None:
            h_bqm, state = self._walk(x, state, passage)
        else:
            h_bqm, state = self._run(x, state)
        if cache is not None:
            cache.state = state
        h_bqhd = h_bqm.to(x_bqm.dtype).view(*x_bqm.shape[:2], self.hidden // self.d_head, self.d_head)
        return into_residual(h_bqhd, self.output, frame.hooks.attn(self.layer))

    def hook_names(self) -> list[str]:
        """Parts of h, side by side as of heads, and what each gives."""
        return ["hook_z", "hook_result"]

    def weights(self, x_bqm: Residual, frame: Frame) -> Weights:
        """Raise UserError: there are none."""
        raise UserError("LSTM has no weights to show: its state is no average of values.")

    def _walk(self, x_bqm: Tensor, state: State, passage: Passage) -> tuple[Tensor, State]:
        note("recurrent")
        from_input = F.linear(x_bqm, wide(self.input.weight), wide(self.bias))
        recurrent = wide(self.recurrent.weight)

        def step(state: State, token: int) -> tuple[Tensor, State]:
            h, c = state
            add, forget, new, show = (from_input[:, token] + F.linear(h, recurrent)).chunk(4, dim=-1)
            c = forget.sigmoid() * c + add.sigmoid() * new.tanh()
            h = show.sigmoid() * c.tanh()
            return h, (h, c)

        return passage.walk(step, state, x_bqm.shape[1])

    def _run(self, x_bqm: Tensor, state: State) -> tuple[Tensor, State]:
        """By torch's own LSTM, which knows no padding."""
        note("torch's LSTM")
        bias = wide(self.bias)
        parameters = [wide(self.input.weight), wide(self.recurrent.weight), bias, torch.zeros_like(bias)]
        h, c = state
        with warnings.catch_warnings():
            # cuDNN wants the maps in one piece of memory, and copies them there at every call where they are not
            warnings.filterwarnings("ignore", message="RNN module weights are not part of single contiguous chunk")
            out, h, c = torch.lstm(x_bqm, [h[None], c[None]], parameters, True, 1, 0.0, self.training, False, True)
        return out, (h[0], c[0])
