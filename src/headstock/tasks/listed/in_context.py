"""Tasks of reading: what is asked for is told in the row, among much that is not asked for."""

from headstock.tasks.listed.entry import Entry

ENTRIES: tuple[Entry, ...] = ()
