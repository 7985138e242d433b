"""What the tasks of in-context recall share: keys and values, what guessing gives, where they come from.

A key keeps its value within a row and has another one in the next. Scored is every value whose key was shown before.
"""

from headstock.tasks.base import Metric
from headstock.tasks.drawn import DrawnTask
from headstock.tasks.guessing import as_common, commonest
from headstock.tasks.tokenizers import WordTokenizer
from headstock.tasks.words import numbered

PAPER = (
    'Poli et al., "Mechanistic Design and Scaling of Hybrid Architectures" (2024), known as MAD: rows of 128 tokens, '
)


class Recall(DrawnTask):
    """Rows of keys and values from one vocabulary, half and half."""

    primary = Metric("accuracy", "higher", "of the values whose key was shown before")

    def name_tokens(self, vocabulary: int, noise: int) -> None:
        """Make the tokenizer: keys, values, noise."""
        self.vocabulary, self.n_keys = vocabulary, vocabulary // 2
        self.n_values = vocabulary - self.n_keys
        names = [*numbered("k", self.n_keys), *numbered("v", self.n_values), *numbered("x", noise)]
        self.tokenizer = WordTokenizer(names)
        self.vocab_size = len(names)

    def chance(self) -> str:
        """Say what guessing gives on the held-out set."""
        rows, values = self._scored["held-out"], range(self.n_keys, self.n_keys + self.n_values)
        return (
            f"{commonest(rows, values):.1%} for the value token that the row has shown most often, "
            f"{as_common(rows, values):.1%} for the one that it has shown as often as the token before it: what a bag "
            "of words allows, counted in the held-out set."
        )

    def solved(self) -> str:
        """Say when the task is solved."""
        return (
            f"{self.solved_at:.0%} of the scored tokens, so that at most {self.wrong_at_most()} of {self.n_scored:,} "
            "are wrong."
        )
