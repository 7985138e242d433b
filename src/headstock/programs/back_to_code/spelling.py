"""How tokens are written in code that stands alone: by name where every name can be a word, else by id."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headstock.programs.back_to_code.domain import Domain

if TYPE_CHECKING:
    from headstock.programs.back_to_code.closed_loops import ClosedLoop


@dataclass(frozen=True)
class Spelling:
    """What the code says of the tokens that it reads and those that it only says."""

    read: tuple[int, ...]
    """Ids of the alphabet."""
    only_said: tuple[int, ...]
    """Ids that are answers and never read."""
    by_name: bool
    """Tokens are written by name."""
    names: tuple[str, ...] | None

    def word(self, ident: int) -> str:
        """Give a token as it stands in a line of words."""
        return self.names[ident] if self.by_name and self.names is not None else str(ident)

    def literal(self, ident: int) -> str:
        """Give a token as Python writes it."""
        return repr(self.word(ident)) if self.by_name else str(ident)

    @property
    def words(self) -> str:
        """Name the alphabet in a comment, a few tokens of it."""
        shown = [self.word(ident) for ident in self.read[:8]]
        return ", ".join(shown) + (f", … ({len(self.read)} in all)" if len(self.read) > 8 else "")


def spelling(domain: Domain, answers: set[int]) -> Spelling:
    """Give the spelling of a domain's tokens and of the ids that are answers.

    Names are used where all are printable ASCII without blanks, and without what would end a comment.
    """
    only_said = tuple(sorted(answers - set(domain.alphabet)))
    by_name = domain.names is not None and all(
        _plain(domain.names[ident]) for ident in (*domain.alphabet, *only_said, *_maybe(domain.start))
    )
    return Spelling(domain.alphabet, only_said, by_name, domain.names)


def foretold(form: str, size: int, part: str) -> str:
    """Give the line that says what the code is."""
    return f"The token that a model holds likeliest next: a {form} of {counted(size, part)}."


def described(domain: Domain, verified: int, spelt: Spelling) -> list[str]:
    """Give the lines that say over what, and what was checked."""
    lines = [
        f"Reads {spelt.words}: {domain.reach}.",
        f"Checked against the model on all {verified:,} sequences of up to {domain.longest} tokens.",
    ]
    if domain.endless:
        lines.append(f"The model saw the last {domain.context} tokens of each, so that covers longer sequences too.")
    if domain.start is not None:
        lines.append(f"The model saw token {spelt.word(domain.start)} before each; it is not written here.")
    return lines


def described_loop(loop: "ClosedLoop") -> list[str]:
    """Give the lines that head the code of a closed loop."""
    return [
        f"What a model generates greedily from {counted(len(loop.prompts), 'prompt')}: {counted(loop.size, 'state')}.",
        f"The model saw the last {loop.domain.context} tokens; checked on all {loop.verified:,} windows that it meets.",
    ]


def counted(number: int, thing: str) -> str:
    """Give a number and what it counts."""
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def _plain(name: str) -> bool:
    return name != "" and all("!" <= char <= "~" for char in name) and "*/" not in name and "/*" not in name


def _maybe(ident: int | None) -> tuple[int, ...]:
    return () if ident is None else (ident,)
