import torch

from headstock.tasks.drawn import Rows
from headstock.tasks.example import in_brackets


def words(ids: list[int]) -> list[str]:
    return [f"n{number}" for number in ids]


def rows(inputs: list[int], targets: list[int], mask: list[int]) -> Rows:
    return Rows(torch.tensor([inputs]), torch.tensor([targets]), torch.tensor([mask]).bool())


def test_an_answer_that_the_row_goes_on_with_stands_there_once() -> None:
    assert in_brackets(rows([1, 2, 3], [2, 3, 4], [0, 1, 1]), words) == "n1 n2 [n3] [n4]"


def test_an_answer_that_is_no_part_of_the_row_is_put_in_between() -> None:
    assert in_brackets(rows([1, 2, 3], [2, 9, 4], [0, 1, 0]), words) == "n1 n2 [n9] n3"
