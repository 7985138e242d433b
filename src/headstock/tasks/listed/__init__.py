"""Every task as it is listed, by kind. Knows nothing of torch."""

from headstock.tasks.listed import formal, in_context, language, many_shots, recall
from headstock.tasks.listed.entry import Entry

__all__ = ["BY_NAME", "Entry"]

_KINDS = (language, recall, in_context, many_shots, formal)
BY_NAME: dict[str, Entry] = {entry.name: entry for kind in _KINDS for entry in kind.ENTRIES}
