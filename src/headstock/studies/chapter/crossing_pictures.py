"""The pictures of the study `crossing`: what was answered, where both blocks look, and what they are worth."""

import math
from collections.abc import Mapping
from typing import Any, TypeAlias

from headstock.pictures.bars import bars
from headstock.pictures.grid import heat
from headstock.pictures.picture import Picture
from headstock.studies.results import StudyResult
from headstock.tasks.crossing import ADJECTIVES

Details: TypeAlias = Mapping[str, Any]
KINDS = ("the noun that crosses", "the noun that is crossed")
BY_SEED = {
    "first_noun_in_first": ("block 1 → noun 1", 0.70),
    "adjective_in_second": ("block 2 → adj.", 1.00),
    "second_noun_in_second": ("block 2 → noun 2", 0.49),
    "meant_noun_in_second": ("block 2 → meant", math.nan),
    "right_without_first": ("right without 1", math.nan),
    "right_without_second": ("right without 2", math.nan),
}
"""What two blocks do, by figure: as the picture says it, and the chapter's."""


def pictures(result: StudyResult) -> list[Picture]:
    """Give the answers of all rows, and of two blocks the maps and what is left without each part."""
    found = [_answers(result)]
    found.append(_by_seed(result))
    details = result.details("two-blocks")
    if details:
        found += [_map(details, layer) for layer in (0, 1)]
        found += [_without_places(details, kind) for kind in (0, 1)]
        found.append(_without_heads(details))
    return [picture for picture in found if picture is not None]


def _answers(result: StudyResult) -> Picture | None:
    right = {row.says: row.spread("right") for row in result.rows}
    wrong = {row.says: row.spread("wrong_noun") for row in result.rows}
    known = {says: 100 * spread.mean for says, spread in right.items() if spread is not None}
    if not known:
        return None
    hard = [row.says for row in result.rows if row.says in known and "leaky" not in row.task] or list(known)
    best = max(hard, key=known.__getitem__)
    return bars(
        known,
        unit="% of the held-out sentences",
        title=f"Of what is not leaky, most is answered by “{best}”: {known[best]:.1f} %",
        beside={says: 100 * spread.mean for says, spread in wrong.items() if spread is not None and says in known},
        beside_is="the wrong noun of the pair",
        name="answers",
    )


def _by_seed(result: StudyResult) -> Picture | None:
    runs = [run for row in result.rows if row.name == "two-blocks" for run in row.finished]
    if len(runs) < 2:
        return None
    values = [[said, *(run.figures.get(name, math.nan) for run in runs)] for name, (_, said) in BY_SEED.items()]
    first = [run.figures["first_noun_in_first"] for run in runs]
    as_published = sum(share >= 0.5 for share in first)
    return heat(
        values,
        [says for says, _ in BY_SEED.values()],
        ["chapter", *(f"seed {run.seed}" for run in runs)],
        title=f"With {as_published} of {len(runs)} seeds the first block puts most of its weight on the first noun",
        rows="measured",
        columns="model",
        unit="weight, or share that is right",
        missing="not published",
        caption="Weights from the position that names the noun meant, means of heads and held-out pairs: block 1 on "
        "the first noun; block 2 on the adjective where the noun that crosses is meant, on the second noun where the "
        "noun that is crossed is, and on the noun meant in both. Below: what is right without a block's attention.",
        name="two-blocks-by-seed",
    )


def _map(details: Details, layer: int) -> Picture:
    map_ak = details["maps"][layer]
    words = [f"{place} {word}" for place, word in enumerate(_words(details))]
    spread = max(max(row[key] for row in map_ak) - min(row[key] for row in map_ak) for key in range(len(map_ak[0])))
    says = "looks where it does whatever the adjective" if spread < 0.05 else "looks elsewhere as the adjective says"
    return heat(
        map_ak,
        list(ADJECTIVES),
        words,
        title=f"Block {layer + 1} {says}",
        rows="adjective",
        columns="key",
        unit="weight",
        caption="From the position that names the noun meant; mean of the heads over all held-out pairs. Words of one "
        "sentence name the places. Of the first seed.",
        name=f"map-of-block-{layer + 1}",
    )


def _words(details: Details) -> list[str]:
    return [str(word) for word in details["words"]]


def _without_places(details: Details, kind: int) -> Picture:
    values = [[100 * both[kind] for both in of_layer] for of_layer in details["without_place"]]
    words = [f"{place} {word}" for place, word in enumerate(_words(details))]
    layer, place = min(((row, key) for row in (0, 1) for key in range(len(words))), key=lambda at: values[at[0]][at[1]])
    return heat(
        values,
        ["block 1", "block 2"],
        words,
        title=f"For {KINDS[kind]}, what block {layer + 1} gives at “{words[place]}” is needed most: "
        f"{values[layer][place]:.0f} % are right without it",
        rows="block",
        columns="place",
        unit="% right",
        caption="All heads' outputs at one place, replaced by their mean over the held-out sentences. Of the first "
        "seed.",
        name=f"without-places-{'crosser' if kind == 0 else 'crossed'}",
    )


def _without_heads(details: Details) -> Picture:
    values = [[100 * share for share in of_layer] for of_layer in details["without_head"]]
    lowest = min(min(row) for row in values)
    return heat(
        values,
        ["block 1", "block 2"],
        [f"head {head}" for head in range(len(values[0]))],
        title=f"Without one head, {lowest:.0f} % or more are right",
        rows="block",
        columns="head",
        unit="% right",
        caption="One head's output at all places, replaced by its mean over the held-out sentences. Of the first seed.",
        name="without-heads",
    )
