"""Rows as a person reads them: words, and what is asked where. Knows nothing of how rows are drawn."""

from collections.abc import Iterable, Iterator

from headstock.tasks.base import Task
from headstock.training.batch import Batch


def read(task: Task, batches: Iterable[Batch]) -> Iterator[tuple[list[str], dict[int, str]]]:
    """Give each row's words, and by place the word that is right where a target counts."""
    for batch in batches:
        for inputs, targets, mask in zip(
            batch.inputs.tolist(), batch.targets.tolist(), batch.mask.tolist(), strict=True
        ):
            asked = [place for place, counts in enumerate(mask) if counts]
            answers = task.token_labels([targets[place] for place in asked])
            yield task.token_labels(inputs), dict(zip(asked, answers, strict=True))


def marked(task: Task) -> Iterator[tuple[list[str], int, dict[str, list[int]]]]:
    """Give each marked row's words, the place of its question, and the places of each span."""
    marks = task.marks()
    assert marks is not None
    spans = {name: span.tolist() for name, span in marks.spans.items()}
    for row, (inputs, query) in enumerate(zip(marks.inputs.tolist(), marks.queries.tolist(), strict=True)):
        places = {name: [place for place, within in enumerate(span[row]) if within] for name, span in spans.items()}
        everywhere = [place for span in places.values() for place in span]
        assert len(set(everywhere)) == len(everywhere)  # no place in two spans
        assert max(everywhere) <= query
        yield task.token_labels(inputs), query, places
