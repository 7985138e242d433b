"""Random blueprints: every part there or not, every count from none."""

import random

from headstock.programs.blueprint import Blueprint, Columns, Head, Layer, Reading, Unit

COLUMNS = ("p", "q", "r", "s", "t")


def any_blueprint(seed: int) -> Blueprint:
    draw = random.Random(seed)
    vocabulary, context, tied = draw.randint(1, 3), draw.randint(1, 4), draw.random() < 0.3
    constants = draw.random() < 0.5

    def columns() -> Columns:
        return {name: draw.uniform(-1, 1) for name in draw.sample(COLUMNS, draw.randint(0, 3))}

    def reading() -> Reading:
        return Reading(columns(), draw.choice([0.0, draw.uniform(-1, 1)]) if constants else 0.0)

    def head() -> Head:
        scored, carried = draw.randint(0, 5), draw.randint(0, 5)
        return Head(
            "any",
            tuple(reading() for _ in range(scored)),
            tuple(reading() for _ in range(scored)),
            tuple(reading() for _ in range(carried)),
            tuple(columns() for _ in range(carried)),
        )

    def layer() -> Layer:
        return Layer(
            tuple(head() for _ in range(draw.randint(0, 3))),
            tuple(Unit(reading(), columns()) for _ in range(draw.randint(0, 3))),
            columns() if constants else {},
            columns() if constants else {},
        )

    return Blueprint(
        COLUMNS,
        tuple("abc"[:vocabulary]),
        context,
        tuple(columns() for _ in range(vocabulary)),
        draw.choice([None, tuple(columns() for _ in range(context))]),
        tuple(layer() for _ in range(draw.randint(0, 3))),
        () if tied else tuple(reading() for _ in range(vocabulary)),
        causal=draw.random() < 0.5,
        divide_scores=draw.random() < 0.3,
        tied=tied,
        biases=draw.choice([None, "always"]),
    )
