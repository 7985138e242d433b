"""Who asks how long the input is: in causal mode nobody can know, and the sentence names the author's line."""

from headstock.errors import UserError
from headstock.programs.nodes import Expression, Length


def refuse_length(program: Expression) -> None:
    """Raise UserError where a causal program uses the length, naming the expression that does."""
    seen: set[int] = set()
    waiting: list[tuple[Expression, Expression]] = [(program, program)]
    while waiting:
        node, asked_by = waiting.pop()
        if isinstance(node, Length):
            raise UserError(
                f"{asked_by.said} looks ahead: it uses p.length, and a causal program cannot know how long its input "
                f"is; use causal=False, or p.indices + 1, the length so far."
            )
        if id(node) not in seen:
            seen.add(id(node))
            waiting += [(part, node) for part in node.inputs]
