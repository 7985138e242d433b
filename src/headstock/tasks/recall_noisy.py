"""In-context recall with noise among the pairs.

    k3 v5 x02 x11 k0 v1 k3 [v5]

Source: Poli et al., "Mechanistic Design and Scaling of Hybrid Architectures" (2024).
"""

from collections.abc import Iterator
from typing import Any, ClassVar

import torch
from torch import Tensor

from headstock.errors import UserError
from headstock.tasks.base import DataCard
from headstock.tasks.drawing import draw
from headstock.tasks.drawn import Rows
from headstock.tasks.example import in_brackets
from headstock.tasks.recall import PAPER, Recall
from headstock.training.batch import Probe

NOISES = (0.0, 0.2, 0.4, 0.6, 0.8)
"""Shares of noise that probes have."""


class NoisyRecall(Recall):
    """Rows of pairs, some of them noise in place of key and value."""

    name = "recall-noisy"
    steps: ClassVar = {"quick": 1200, "full": 5000}

    def __init__(self, *, length: int, vocabulary: int, noise: float, noise_vocabulary: int) -> None:
        """Make it; `noise` is the chance that two tokens are of the noise vocabulary instead of a key and its value."""
        if length % 2:
            raise UserError(f"a row of pairs has an even length, not {length}: choose {length + 1}.")
        self.length, self.noise, self.noise_vocabulary = length, noise, noise_vocabulary
        self.name_tokens(vocabulary, noise_vocabulary)
        self.context = length
        self.finish()

    def options(self) -> dict[str, str | int | float]:
        """Give the sizes and the share of noise."""
        return {
            "length": self.length,
            "vocabulary": self.vocabulary,
            "noise": self.noise,
            "noise_vocabulary": self.noise_vocabulary,
        }

    def draw(self, size: int, *purpose: str | int, **at: Any) -> Rows:
        """Draw rows; `at` may say which share of the pairs is noise."""
        share, n = at.get("noise", self.noise), self.length // 2
        every = torch.arange(size)
        noise_bn = draw(2**53, size * n, *purpose, "which").view(size, n) < share * 2**53
        noise_bn[every, draw(n - 1, size, *purpose, "a pair")] = False  # at least one, for the last to ask for
        noise_bn[:, -1] = False
        keys_bn = draw(self.n_keys, size * n, *purpose, "keys").view(size, n)
        keys_bn[:, -1] = self._a_key_shown(keys_bn[:, :-1], noise_bn[:, :-1], *purpose)
        values_bk = draw(self.n_values, size * self.n_keys, *purpose, "values").view(size, self.n_keys)
        pairs = torch.stack([keys_bn, self.n_keys + values_bk.gather(1, keys_bn)], dim=2)
        any_noise = draw(self.noise_vocabulary, 2 * size * n, *purpose, "noise").view(size, n, 2)
        inputs = torch.where(noise_bn[:, :, None], self.vocabulary + any_noise, pairs).view(size, self.length)
        before_bn = _shown_before(keys_bn, noise_bn)
        mask = torch.stack([before_bn, torch.zeros_like(before_bn)], dim=2).view(size, self.length)

        asked_b = before_bn.int().argmax(1)
        earlier_bn = torch.arange(n) < asked_b[:, None]
        answer_bn = earlier_bn & ~noise_bn & (keys_bn == keys_bn[every, asked_b][:, None])
        spans = {
            "answer": answer_bn,
            "other pairs": earlier_bn & ~noise_bn & ~answer_bn,
            "noise": earlier_bn & noise_bn,
        }
        return Rows(
            inputs, inputs.roll(-1, 1), mask, {name: span.repeat_interleave(2, 1) for name, span in spans.items()}
        )

    def _a_key_shown(self, keys_bn: Tensor, noise_bn: Tensor, *purpose: str | int) -> Tensor:
        """Draw one of the different keys that each row has shown: int64 (row,)."""
        first_bn = ~noise_bn & ~_shown_before(keys_bn, noise_bn)
        any_bn = draw(2**62, keys_bn.numel(), *purpose, "asked at the end").view(keys_bn.shape)
        return keys_bn.gather(1, any_bn.masked_fill(~first_bn, -1).argmax(1, keepdim=True))[:, 0]

    def probes(self) -> Iterator[Probe]:
        """Give a set for each of some shares of noise."""
        for noise in NOISES:
            yield self.probe(noise=noise)

    def card(self) -> DataCard:
        """Give the card, a held-out row as its example."""
        return DataCard(
            title=self.name,
            what_is_asked="Keys and values come in pairs, with noise in place of some pairs; a key has one value in a "
            "row and another in the next: say the value of every key that the row has shown before.",
            example=in_brackets(self._scored["held-out"], self.token_labels),
            primary=self.primary,
            chance=self.chance(),
            solved=self.solved(),
            held_out=f"{self.n_held_out} rows of the one in eight, by a hash of the whole row, that is never "
            "trained on.",
            facts={
                "vocabulary": f"{self.n_keys} keys, {self.n_values} values and {self.noise_vocabulary} tokens of "
                "noise, which are neither",
                "tokens in a row": f"{self.length}: pairs side by side, the last of a key shown before",
                "keys and values": "evenly drawn with repetition, so that two keys may share a value",
                "noise": f"two tokens of it in place of a pair with a chance of {self.noise}",
                "scored": f"{self.n_scored:,} values in the held-out set",
            },
            source=PAPER + "there 12,800 of them are trained on, at every token; here rows are drawn without end, and "
            "trained is what is scored.",
            content_hash=self.content_hash,
        )


def _shown_before(keys_bn: Tensor, noise_bn: Tensor) -> Tensor:
    """Say of each pair whether its key was in an earlier one; of noise, that it was not. bool (row, pair)."""
    same_bnm = (keys_bn[:, :, None] == keys_bn[:, None, :]) & ~noise_bn[:, None, :]
    return same_bnm.tril(-1).any(2) & ~noise_bn
