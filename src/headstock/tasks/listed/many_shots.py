"""Tasks of learning in the row: what a label means is shown by examples."""

from headstock.tasks.listed.entry import Entry
from headstock.tasks.options import Option, share, whole

ENTRIES = (
    Entry(
        "manyshot",
        "label an item as the row's examples do, whatever their order",
        "headstock.tasks.manyshot",
        "ManyShot",
        (
            Option("shots", 16, "labelled examples before the question, as many of each class", whole(1)),
            Option("classes", 4, "classes in a row", whole(2)),
            Option("item", 1, "features that an item has", whole(1)),
            Option("noise", 0.0, "share of an item's features that are any instead; 0 is none", share(0.9, zero=True)),
            Option("features", 16, "different features; at least classes × item", whole(2)),
            Option("labels", 4, "different labels; at least as many as classes", whole(2)),
        ),
    ),
)
