"""A blueprint worked out column by column in plain Python: what a built model is held to."""

import math

from headstock.programs.blueprint import Blueprint, Columns, Head, Reading

Residual = dict[str, float]


def read(reading: Reading, held: Residual) -> float:
    return reading.constant + sum(weight * held[name] for name, weight in reading.columns.items())


def add(columns: Columns, held: Residual, times: float = 1.0) -> None:
    for name, weight in columns.items():
        held[name] += times * weight


def score(head: Head, query: Residual, key: Residual, divisor: float = 1.0) -> float:
    pairs = zip(head.looks_for, head.offers, strict=True)
    return sum(read(looks, query) * read(offers, key) for looks, offers in pairs) / divisor


def logits(blueprint: Blueprint, ids: list[int]) -> list[list[float]]:
    rows: list[Residual] = []
    for position, token in enumerate(ids):
        held = dict.fromkeys(blueprint.columns, 0.0)
        add(blueprint.tokens[token], held)
        add(blueprint.places[position] if blueprint.places is not None else {}, held)
        rows.append(held)
    divisor = math.sqrt(blueprint.head_size) if blueprint.divide_scores else 1.0
    for layer in blueprint.layers:
        before = [dict(held) for held in rows]
        for position, held in enumerate(rows):
            seen = before[: position + 1] if blueprint.causal else before
            for head in layer.heads:
                scores = [score(head, before[position], key, divisor) for key in seen]
                shares = [math.exp(one - max(scores)) for one in scores]
                for carried, writes in zip(head.carries, head.writes, strict=True):
                    total = sum(share * read(carried, key) for share, key in zip(shares, seen, strict=True))
                    add(writes, held, total / sum(shares))
            add(layer.attention_adds, held)
            mixed = dict(held)
            for unit in layer.units:
                add(unit.writes, held, max(0.0, read(unit.reads, mixed)))
            add(layer.adds, held)
    return [[read(reading, held) for reading in blueprint.readings_of_logits] for held in rows]
