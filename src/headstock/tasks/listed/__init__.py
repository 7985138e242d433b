"""Every task as it is listed, by kind. Knows nothing of torch."""

from headstock.tasks.listed import formal, language, recall
from headstock.tasks.listed.entry import Entry

__all__ = ["BY_NAME", "Entry"]

BY_NAME = {entry.name: entry for entry in (*language.ENTRIES, *recall.ENTRIES, *formal.ENTRIES)}
