"""The encoder–decoder of "Attention Is All You Need" (Vaswani et al., 2017) learns to write a string backwards.

    python examples/encoder_decoder.py --mixer softmax

The encoder reads the whole string, every letter seeing every other. The decoder writes the answer letter by letter: it
sees what it has written so far and, by cross attention, all that the encoder made of the string. As in the paper,
positions are sinusoidal, each norm stands after its sub-layer has joined the residual, the learning rate warms up, and
one embedding serves both sides and the output.
"""

import argparse
import random
import sys

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from headstock.errors import UserError
from headstock.model.config import ModelConfig
from headstock.model.frame import Frame
from headstock.model.initialisation import initialise
from headstock.model.transformer import Block, Transformer
from headstock.model.visibility import Visible

LETTERS, SHORTEST, LONGEST = "abcdefgh", 5, 12
PAD, START, STOP = range(3)
FIRST_LETTER = 3


class EncoderDecoder(nn.Module):
    """A source string and the answer so far in, logits of the answer's next token out."""

    def __init__(self, mixer: str, n_layers: int = 2) -> None:
        super().__init__()
        sizes = {"vocab_size": FIRST_LETTER + len(LETTERS), "context": LONGEST + 1, "n_layers": n_layers}
        parts = {"mixer": mixer, "position": "sinusoidal", "norm_placement": "post", "tied": True}
        seeing_all = ModelConfig(**sizes, **parts, feedforward="relu", causal=False)
        causal = ModelConfig(**sizes, **parts, feedforward="relu")
        without_feedforward = ModelConfig(**sizes, **parts, feedforward="none")
        self.encoder = Transformer(seeing_all)
        # A layer of the decoder is two blocks: one looks back over the answer, one across to the source.
        self.back = nn.ModuleList(Block(without_feedforward, layer) for layer in range(n_layers))
        self.across = nn.ModuleList(Block(causal, layer) for layer in range(n_layers))

    def encode(self, source: Tensor) -> Tensor:
        """(batch, source) → (batch, source, model)"""
        return self.encoder.hidden(source, real=source != PAD)

    def decode(self, answer: Tensor, memory: Tensor, source: Tensor) -> Tensor:
        """(batch, answer) → (batch, answer, vocabulary)"""
        n_tokens = answer.shape[1]
        back = Frame(Visible(n_tokens, n_tokens, answer.device))  # causal, so what pads at the end is never seen
        across = Frame.across(memory, n_tokens, real_bk=source != PAD)
        x = self.encoder.embed(answer) + self.encoder.position(back.visible.query_positions)
        for look_back, look_across in zip(self.back, self.across, strict=True):
            x = look_across(look_back(x, back), across)
        return self.encoder.logits(x)

    @torch.no_grad()
    def write(self, source: Tensor) -> Tensor:
        """Give the likeliest token, one after the other: (batch, source) → (batch, LONGEST + 1)."""
        memory, answer = self.encode(source), torch.full_like(source[:, :1], START)
        for _ in range(LONGEST + 1):
            likeliest = self.decode(answer, memory, source)[:, -1].argmax(-1, keepdim=True)
            answer = torch.cat([answer, likeliest], dim=1)
        return answer[:, 1:]


def some_string(draws: random.Random) -> str:
    """Give a string of random letters and length."""
    return "".join(draws.choices(LETTERS, k=draws.randint(SHORTEST, LONGEST)))


def as_ids(strings: list[str]) -> Tensor:
    """Give (string, LONGEST + 1): the letters, STOP, then padding."""
    rows = [[FIRST_LETTER + LETTERS.index(letter) for letter in string] + [STOP] for string in strings]
    return torch.tensor([row + [PAD] * (LONGEST + 1 - len(row)) for row in rows])


def read(ids: Tensor) -> list[str]:
    """Give the letters that stand before STOP, row by row."""
    rows = (row[: row.index(STOP)] if STOP in row else row for row in ids.tolist())
    return ["".join(LETTERS[i - FIRST_LETTER] if i >= FIRST_LETTER else "?" for i in row) for row in rows]


def train(model: EncoderDecoder, steps: int, draws: random.Random, held_out: set[str], warmup: int = 100) -> float:
    """Train on random strings that are not held out; give the last loss in nats a token."""
    optimiser = torch.optim.Adam(model.parameters(), lr=2e-3, betas=(0.9, 0.98), eps=1e-9)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda t: min((t + 1) / warmup, (warmup / (t + 1)) ** 0.5))
    for step in range(1, steps + 1):
        strings = [string for string in (some_string(draws) for _ in range(64)) if string not in held_out]
        source, target = as_ids(strings), as_ids([string[::-1] for string in strings])
        answer = F.pad(target[:, :-1], (1, 0), value=START)  # what was right so far, from which the next is foretold
        logits = model.decode(answer, model.encode(source), source)
        loss = F.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=PAD)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
        if step % 100 == 0 or step == steps:
            print(f"step {step:5}   loss {loss.item():.4f}", flush=True)
    return loss.item()


def main() -> None:
    """Train, then write held-out strings backwards."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mixer", default="softmax", help="any that can look both ways and across, your own too")
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    if asked.steps < 1:
        parser.error(f"--steps is {asked.steps}: give 1 or more.")
    draws = random.Random(asked.seed)
    held_out = sorted({some_string(draws) for _ in range(500)})
    model = EncoderDecoder(asked.mixer)
    initialise(model, "fan-in", n_layers=2, seed=asked.seed)
    train(model, asked.steps, draws, set(held_out))
    written = read(model.eval().write(as_ids(held_out)))
    right = sum(string[::-1] == answer for string, answer in zip(held_out, written, strict=True))
    print(f"{held_out[0]} → {written[0]}")
    print(
        f"{right} of {len(held_out)} held-out strings written backwards without a mistake: {right / len(held_out):.1%}"
    )


if __name__ == "__main__":
    try:
        main()
    except UserError as error:
        sys.exit(str(error))
