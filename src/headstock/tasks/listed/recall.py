"""Tasks of recall: what is asked for stands in the row itself, somewhere."""

from headstock.tasks.listed.entry import Entry
from headstock.tasks.options import Option, whole

ENTRIES = (
    Entry(
        "repeats",
        "say what comes next in a random sequence that comes again",
        "headstock.tasks.repeats",
        "Repeats",
        (
            Option("length", 32, "tokens of the longest sequence; rows are twice as long", whole(2)),
            Option("vocabulary", 64, "different tokens", whole(2)),
        ),
    ),
)
