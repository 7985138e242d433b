"""A model as nothing but a function: token ids in, the logits of every row out. What is inside is not looked at."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

from headstock.errors import UserError
from headstock.model.transformer import Transformer


@dataclass(frozen=True)
class Function:
    """Anything that gives logits for ids: what a model is taken for here, and a way in for a function of your own."""

    logits: Callable[[Tensor], Tensor]
    """int64 (batch, time), all rows of one length → (batch, time, vocabulary)."""
    vocab_size: int
    """Different tokens it knows."""
    context: int
    """Most tokens it reads at once."""
    causal: bool = True
    """A row depends on the tokens up to it alone; this is checked, for it is what is read twice."""
    module: Transformer | None = None
    """Where the function is a model: what is set to evaluation while it is read, and unembeds single rows."""

    def last(self, ids_bq: Tensor) -> Tensor:
        """Give the logits (batch, vocabulary) of the last row alone."""
        if self.module is None:
            return self.logits(ids_bq)[:, -1]
        ids_bq = ids_bq.to(self.module.embed.weight.device)
        return self.module.logits(self.module.hidden(ids_bq)[:, -1])

    def rows(self, ids_bq: Tensor) -> Tensor:
        """Give the logits (batch, time, vocabulary) of all rows."""
        return self.logits(ids_bq if self.module is None else ids_bq.to(self.module.embed.weight.device))

    @contextmanager
    def being_read(self) -> Iterator[None]:
        """Evaluate without gradients and without dropout, and leave the model as it was."""
        was_training = self.module is not None and self.module.training
        if self.module is not None:
            self.module.eval()
        try:
            with torch.no_grad():
                yield
        finally:
            if self.module is not None:
                self.module.train(was_training)


def function_of(model: object) -> Function:
    """Give the function that a model is. Raises UserError for anything that is neither model nor Function, and for a
    model whose one logit is a number."""
    if isinstance(model, Function):
        return model
    if isinstance(model, Transformer):
        _refuse_number(model)
        return Function(model, model.config.vocab_size, model.config.context, model.config.causal, model)
    if isinstance(getattr(model, "model", None), Transformer):
        raise UserError(
            f"a {type(model).__name__} is more than a function: give its model, and of its readout names and start."
        )
    raise UserError(f"a {type(model).__name__} is no model: give a Transformer, or a Function of your own.")


def _refuse_number(model: Transformer) -> None:
    """Raise UserError where the last logit alone is ever other than 0: the likeliest token is then the sign of it."""
    if model.unembed is None:
        return
    weight_vm, bias_v = model.unembed.weight.detach(), model.unembed.bias
    others_are_zero = not weight_vm[:-1].any() and (bias_v is None or not bias_v[:-1].any())
    if len(weight_vm) > 2 and others_are_zero and weight_vm[-1].any():
        raise UserError(
            "all logits of the model but the last are 0 whatever it reads: it is read as a number, as programs of many "
            "fractions are, and not as a token; let the program give fewer values, or words, as by p.map(str, ...)."
        )


def refuse_looking_ahead(function: Function) -> None:
    """Raise UserError where a row may depend on tokens after it, so that no next token is foretold."""
    if not function.causal:
        raise UserError(
            "causal=false reads a sequence whole, so there is no token after it to foretell: take it as a whole with "
            "whole_lookup."
        )
