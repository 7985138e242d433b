"""In-context recall with keys and values of one to several tokens.

    k3 k1 v5 k0 v1 v6 v2 k3 v0 k3 k1 [v5]

Source: Poli et al., "Mechanistic Design and Scaling of Hybrid Architectures" (2024).
"""

import math
from collections.abc import Iterator
from typing import Any, ClassVar

import torch
from torch import Tensor

from headstock.errors import UserError
from headstock.tasks.base import DataCard
from headstock.tasks.drawing import draw, draw_different
from headstock.tasks.drawn import Rows
from headstock.tasks.example import in_brackets
from headstock.tasks.recall import PAPER, Recall
from headstock.training.batch import Probe

MOST_MOTIFS = 2**61
"""Sequences of different tokens that a number can stand for."""


class FuzzyRecall(Recall):
    """Rows of pairs whose keys and values are of one to several tokens."""

    name = "recall-fuzzy"
    steps: ClassVar = {"quick": 1500, "full": 6000}

    def __init__(self, *, length: int, vocabulary: int, pairs: int, longest: int) -> None:
        """Make it; `pairs` different keys a row, keys and values of 1 to `longest` tokens."""
        least = (2 * pairs + 1) * longest
        if length < least:
            raise UserError(
                f"{pairs} pairs with keys and values of up to {longest} tokens need a length of {least} or more, so "
                f"that one comes again, not {length}: choose a longer row or fewer pairs."
            )
        if vocabulary // 2 < max(pairs, longest):
            raise UserError(
                f"a vocabulary of {vocabulary} has {vocabulary // 2} tokens for keys, too few for {pairs} pairs of up "
                f"to {longest} different tokens: choose {2 * max(pairs, longest)} or more."
            )
        self.length, self.pairs, self.longest = length, pairs, longest
        self.name_tokens(vocabulary, 0)
        self.context = length
        if math.perm(max(self.n_keys, self.n_values), longest) > MOST_MOTIFS:
            raise UserError(
                f"keys of {longest} different tokens of {self.n_keys} are more than can be counted: choose a smaller "
                "vocabulary, or a smaller longest."
            )
        self.finish()

    def options(self) -> dict[str, str | int | float]:
        """Give the sizes."""
        return {
            "length": self.length,
            "vocabulary": self.vocabulary,
            "pairs": self.pairs,
            "longest": self.longest,
        }

    def draw(self, size: int, *purpose: str | int, **at: Any) -> Rows:
        """Draw rows; `at` may say how long keys and values may be."""
        longest, pairs = at.get("longest", self.longest), self.pairs
        keys_bpj, key_size_bp = self._drawn(self.n_keys, longest, size, *purpose, "keys")
        values_bpj, value_size_bp = self._drawn(self.n_values, longest, size, *purpose, "values")
        values_bpj = torch.where(values_bpj < 0, values_bpj, values_bpj + self.n_keys)
        n = self.length // 2 + 1  # a pair has two tokens or more
        pair_bn = draw(pairs, size * n, *purpose, "pairs").view(size, n)
        ends_bn = (key_size_bp + value_size_bp).gather(1, pair_bn).cumsum(1)
        place_bt = torch.arange(self.length + 1).repeat(size, 1)
        n_bt = torch.searchsorted(ends_bn, place_bt, right=True)  # which pair of the row a token is of
        pair_bt = pair_bn.gather(1, n_bt)
        key_size_bt = key_size_bp.gather(1, pair_bt)
        begin_bt = ends_bn.gather(1, n_bt) - key_size_bt - value_size_bp.gather(1, pair_bt)
        within_bt = place_bt - begin_bt
        is_value_bt = within_bt >= key_size_bt
        either_bpj = torch.cat([keys_bpj, values_bpj], dim=2).flatten(1)
        width = self.longest
        column_bt = torch.where(is_value_bt, width + within_bt - key_size_bt, within_bt)
        tokens = either_bpj.gather(1, pair_bt * 2 * width + column_bt)
        first_bp = torch.full((size, pairs), n).scatter_reduce(1, pair_bn, torch.arange(n).repeat(size, 1), "amin")
        before_bt = n_bt > first_bp.gather(1, pair_bt)
        mask = (is_value_bt & before_bt)[:, 1:]

        asked_b = mask.int().argmax(1, keepdim=True) + 1
        earlier_bq = (n_bt < n_bt.gather(1, asked_b))[:, :-1]
        same_bq = (pair_bt == pair_bt.gather(1, asked_b))[:, :-1]
        spans = {"answer": earlier_bq & same_bq, "other pairs": earlier_bq & ~same_bq}
        return Rows(tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous(), mask, spans)

    def _drawn(self, n_tokens: int, longest: int, size: int, *purpose: str | int) -> tuple[Tensor, Tensor]:
        """Draw a motif of up to `longest` different tokens for each row's pairs, every size as likely, with the sizes.

        The motifs: int64 (row, pair, self.longest), filled up with −1. Keys of a row are different, values need not be.
        """
        size_bp = draw(longest, size * self.pairs, *purpose, "sizes").view(size, self.pairs)
        drawn = []
        for number in range(longest):
            n_motifs = math.perm(n_tokens, number + 1)
            if purpose[-1] == "keys":
                which_bp = draw_different(n_motifs, size, self.pairs, *purpose, number)
            else:
                which_bp = draw(n_motifs, size * self.pairs, *purpose, number).view(size, self.pairs)
            motif_bpj = _motifs(which_bp, n_tokens, number + 1)
            drawn.append(torch.nn.functional.pad(motif_bpj, (0, self.longest - number - 1), value=-1))
        chosen = size_bp[None, :, :, None].expand(1, *drawn[0].shape)
        return torch.stack(drawn).gather(0, chosen)[0], 1 + size_bp

    def probes(self) -> Iterator[Probe]:
        """Give a set for each longest key and value up to the trained one."""
        for longest in range(1, self.longest + 1):
            yield self.probe(longest=longest)

    def card(self) -> DataCard:
        """Give the card, a held-out row as its example."""
        return DataCard(
            title=self.name,
            what_is_asked="Keys and values of one or several tokens come in pairs; a key is all the key tokens since "
            "the last value, so that k1 and k1 k2 are two keys. Say every token of the value of a key that the row "
            "has shown before.",
            example=in_brackets(self._scored["held-out"], self.token_labels),
            primary=self.primary,
            chance=self.chance(),
            solved=self.solved(),
            held_out=f"{self.n_held_out} rows of the one in eight, by a hash of it up to the last "
            "answer, that is never trained on.",
            facts={
                "vocabulary": f"{self.n_keys} tokens for keys and {self.n_values} for values",
                "tokens in a row": f"{self.length}; the last pair may be cut off",
                "pairs": f"{self.pairs} different keys, each drawn as often as it falls",
                "keys and values": f"1 to {self.longest} tokens, every size as likely, no token twice in one; two keys "
                "may share a value",
                "scored": f"{self.n_scored:,} tokens of values in the held-out set",
            },
            source=PAPER + "with keys of any size in training and of the greatest in evaluation, drawn anew at every "
            "pair. Here a row has a few keys that come again and again, of any size in both; it is filled to its end "
            "and not padded; what is trained is what is scored.",
            content_hash=self.content_hash,
        )


def _motifs(which_bp: Tensor, n_tokens: int, length: int) -> Tensor:
    """Give the sequences of so many different tokens that stand there in their alphabet: int64 (row, pair, length)."""
    taken: list[Tensor] = []
    for place in range(length):
        later = math.perm(n_tokens - 1 - place, length - 1 - place)
        token_bp, which_bp = which_bp // later, which_bp % later  # among those not taken yet
        if taken:
            for smaller_bp in torch.stack(taken).sort(0).values:
                token_bp = token_bp + (smaller_bp <= token_bp)
        taken.append(token_bp)
    return torch.stack(taken, dim=-1)
