"""What the suite found of a mixer, and how it is told: a table of checks and positions, then failures in words."""

import textwrap
from dataclasses import asdict, dataclass
from typing import Any

from headstock.conformance.check import Status

MARK: dict[Status | None, str] = {"passed": "ok", "failed": "FAIL", "not applicable": "-", "skipped": "skip", None: ""}
MANY = 3
"""Failed checks from which on most follow from one of them."""
SHORT = {"sinusoidal": "sinus.", "rope-interleaved": "rope-i."}
"""Positions whose names are too long for the head of a column."""


@dataclass(frozen=True)
class Outcome:
    """How one check of one position ended."""

    group: str
    check: str
    position: str
    status: Status
    found: str
    """Figures beside those allowed, or the reason why the check says nothing."""
    law: str
    """What must hold."""
    usually: str
    """What a failure usually comes from; empty where it does not fail."""


@dataclass(frozen=True)
class Report:
    """What the suite found."""

    variant: str
    weights_are: str
    positions: tuple[str, ...]
    outcomes: tuple[Outcome, ...]

    @property
    def passed(self) -> bool:
        """Whether no check failed."""
        return not self.failures

    @property
    def failures(self) -> list[Outcome]:
        """The outcomes that failed, in reading order."""
        return [outcome for outcome in self.outcomes if outcome.status == "failed"]

    @property
    def failed_checks(self) -> list[str]:
        """The names of the checks that failed at any position, each once."""
        return list(dict.fromkeys(outcome.check for outcome in self.failures))

    @property
    def verdict(self) -> str:
        """One sentence."""
        counts = {status: sum(o.status == status for o in self.outcomes) for status in MARK}
        said = ", ".join(f"{counts[status]} {status}" for status in MARK if status and counts[status])
        how = "conforms" if self.passed else "does not conform"
        return f"{self.variant} {how}: {said}."

    def to_dict(self) -> dict[str, Any]:
        """Give it as JSON's values."""
        return {
            "variant": self.variant,
            "weights_are": self.weights_are,
            "positions": list(self.positions),
            "passed": self.passed,
            "outcomes": [asdict(outcome) for outcome in self.outcomes],
        }

    def table(self, width: int = 110) -> str:
        """Lay it out, at most `width` letters a line where words allow it."""
        rows = self._one_position(width) if len(self.positions) == 1 else self._grid()
        said = len(self.positions) > 1 or f"+{self.positions[0]}" in self.variant
        at = "" if said else f", {self.positions[0]}"
        parts = [f"{self.variant}{at} (weights: {self.weights_are})", rows]
        if len(self.positions) > 1:
            parts += [_filled(self._legend(), "", width)] if self._legend() else []
            parts += self._said_of("not applicable", "Not applicable", width)
            parts += self._said_of("skipped", "Skipped", width)
        if self.failures:
            parts.append("\n".join(self._failures(width)))
        return "\n\n".join([*parts, self.verdict])

    def _one_position(self, width: int) -> str:
        name_width = max(len(outcome.check) for outcome in self.outcomes)
        lines: list[str] = []
        for group, outcomes in self._groups().items():
            lines.append(group)
            for outcome in outcomes:
                before = f"  {MARK[outcome.status]:<4}  {outcome.check:<{name_width}}  "
                lines.append(_filled(outcome.found, before, width))
        return "\n".join(lines)

    def _grid(self) -> str:
        heads = [SHORT.get(position, position) for position in self.positions]
        widths = [max(4, len(head)) for head in heads]
        name_width = 2 + max(len(outcome.check) for outcome in self.outcomes)
        lines = [" " * name_width + "".join(f"  {head:<{wide}}" for head, wide in zip(heads, widths, strict=True))]
        for group, outcomes in self._groups().items():
            lines.append(group)
            for name in self._names(outcomes):
                at = {outcome.position: outcome.status for outcome in outcomes if outcome.check == name}
                marks = [MARK[at.get(position)] for position in self.positions]
                cells = "".join(f"  {mark:<{wide}}" for mark, wide in zip(marks, widths, strict=True))
                lines.append(f"  {name:<{name_width - 2}}{cells}")
        return "\n".join(line.rstrip() for line in lines)

    def _names(self, outcomes: list[Outcome]) -> list[str]:
        """Give the names of a group's checks in reading order: that of the position where most were run."""
        at = {p: [outcome.check for outcome in outcomes if outcome.position == p] for p in self.positions}
        return max(at.values(), key=len)

    def _legend(self) -> str:
        said = [f"{SHORT[position]} is {position}" for position in self.positions if position in SHORT]
        if len({(outcome.group, outcome.check) for outcome in self.outcomes}) * len(self.positions) > len(
            self.outcomes
        ):
            said.insert(0, "blank: looked at in one position alone")
        if any(outcome.status == "not applicable" for outcome in self.outcomes):
            said.insert(0, "-: not applicable")
        return f"{'; '.join(said)}." if said else ""

    def _said_of(self, status: Status, title: str, width: int) -> list[str]:
        said: dict[tuple[str, str], list[str]] = {}
        for outcome in self.outcomes:
            if outcome.status == status:
                said.setdefault((outcome.check, outcome.found), []).append(outcome.position)
        if not said:
            return []
        lines = [title]
        for (name, reason), positions in said.items():
            everywhere = len(positions) == len({o.position for o in self.outcomes if o.check == name})
            where = "" if everywhere else f" ({', '.join(positions)})"
            lines.append(_filled(f"{name}{where}: {reason}", "  ", width, "    "))
        return ["\n".join(lines)]

    def _failures(self, width: int) -> list[str]:
        lines = ["Failed" if len(self.failed_checks) < MANY else "Failed; begin with the first, for others may follow"]
        for name in self.failed_checks:
            failures = [outcome for outcome in self.failures if outcome.check == name]
            lines.append(_filled(f"{name}: {failures[0].law}", "  ", width, "    "))
            found: dict[str, list[str]] = {}
            for outcome in failures:
                found.setdefault(outcome.found.rstrip("."), []).append(outcome.position)
            lines += [_filled(f"{', '.join(at)}: {said}.", "    ", width, "      ") for said, at in found.items()]
            lines.append(_filled(f"usually: {failures[0].usually}.", "    ", width, "      "))
        return lines

    def _groups(self) -> dict[str, list[Outcome]]:
        groups: dict[str, list[Outcome]] = {}
        for outcome in self.outcomes:
            groups.setdefault(outcome.group, []).append(outcome)
        return groups


def _filled(text: str, first: str, width: int, rest: str | None = None) -> str:
    rest = " " * len(first) if rest is None else rest
    room = max(width, len(rest) + 30)
    return "\n".join(
        textwrap.wrap(
            text,
            room,
            initial_indent=first,
            subsequent_indent=rest,
            break_long_words=False,
            break_on_hyphens=False,
        )
    )
