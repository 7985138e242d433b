"""What Python asks of a value at once, refused of what has its values only when a program runs, each with the way out.

Knows nothing of the language's nodes.
"""

from collections.abc import Iterator
from typing import Any, NoReturn

from headstock.errors import UserError
from headstock.programs.places import here


class NotYetAValue:
    """Refuses to be a list, a number or a truth. What stands for many values says so by `said`."""

    @property
    def said(self) -> str:
        """How a sentence calls it."""
        raise NotImplementedError

    def _refuse(self, why: str, instead: str) -> NoReturn:
        raise UserError(f"{self.said} {why}: {instead} ({here()}).")

    def __iter__(self) -> Iterator[Any]:
        self._refuse(
            "is known only when a program runs, so it has no items to go through",
            "put the values of several positions together by aggregate()",
        )

    def __contains__(self, value: object) -> bool:
        self._refuse("is known only when a program runs, so nothing is `in` it yet", "compare its values by ==")

    def __getitem__(self, at: object) -> NoReturn:
        self._refuse(
            "is known only when a program runs, so it has no items to take by [ ]",
            "take the value of another position by aggregate(), as in aggregate(offset(-1), x, by='best')",
        )

    def __len__(self) -> int:
        self._refuse("is known only when a program runs, so it has no len()", "p.length is how many tokens there are")

    def _no_number(self) -> NoReturn:
        self._refuse(
            "is known only when a program runs, so it is no number yet",
            "apply a function to its values by map(), as in map(round, x), or look them up by lookup()",
        )

    def __float__(self) -> float:
        self._no_number()

    def __int__(self) -> int:
        self._no_number()

    def __index__(self) -> int:
        self._no_number()

    def __round__(self, digits: object = None) -> NoReturn:
        self._no_number()

    def __trunc__(self) -> int:
        self._no_number()

    def __floor__(self) -> int:
        self._no_number()

    def __ceil__(self) -> int:
        self._no_number()
