"""Tasks of learning in the row: what a label means is shown by examples."""

from headstock.tasks.listed.entry import Entry

ENTRIES: tuple[Entry, ...] = ()
