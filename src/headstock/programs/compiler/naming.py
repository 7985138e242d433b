"""Names for what was not given one: the variable that a line assigns is the name of the whole of what the line says."""

from headstock.programs.nodes import Constant, Expression


def names_of(program: Expression) -> dict[int, str]:
    """Give, by its id, the name of each expression that is the whole of an assigned line, and was given no other."""
    expressions: dict[int, Expression] = {}
    parts: set[int] = set()
    waiting = [program]
    while waiting:
        node = waiting.pop()
        if id(node) in expressions:
            continue
        expressions[id(node)] = node
        parts |= {id(part) for part in node.inputs if part.place == node.place}
        waiting += node.inputs
    return {
        key: node.given_name or node.place.assigned
        for key, node in expressions.items()
        if key not in parts and not isinstance(node, Constant)
    }
