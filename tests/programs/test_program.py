import pytest

from headstock import programs as p
from headstock.errors import UserError
from headstock.programs.nodes import Expression
from headstock.programs.program import BIDIRECTIONAL, CAUSAL, as_program


@p.program(
    vocabulary=lambda letter, times: letter * times + "z",
    max_length=lambda letter, times: 3 * times,
    modes=lambda letter, times: (CAUSAL,) if times > 1 else (CAUSAL, BIDIRECTIONAL),
)
def how_many(letter: str, times: int = 1) -> Expression:
    """Count a letter.

    And more.
    """
    return p.width(p.select(p.tokens, letter)) * times


def test_a_program_bears_its_functions_name_docstring_and_line() -> None:
    made = how_many("a")
    assert made.name == "how-many,letter=a"
    assert made.says == "Count a letter.\n\nAnd more."
    assert str(made.place).startswith("test_program.py:")
    assert how_many.__name__ == "how_many"


def test_a_domain_may_depend_on_the_choices() -> None:
    made = how_many("a", 2)
    assert (made.name, made.vocabulary, made.max_length) == ("how-many,letter=a,times=2", ("a", "a", "z"), 6)
    assert made.modes == (CAUSAL,)
    assert how_many(times=1, letter="b").modes == (CAUSAL, BIDIRECTIONAL)


def test_a_program_runs_in_its_usual_mode_where_none_is_said() -> None:
    assert p.interpret(how_many("a"), "aba") == [1, 1, 2]
    assert p.interpret(how_many("a"), "aba", causal=False) == [2, 2, 2]


def test_a_program_refuses_the_mode_that_it_is_not_meant_for() -> None:
    with pytest.raises(UserError, match=r"'how-many,letter=a,times=2' is not bidirectional: .* use causal=True"):
        p.interpret(how_many("a", 2), "aba", causal=False)
    with pytest.raises(UserError, match=r"'reverse' is not causal: it looks ahead; use causal=False"):
        p.interpret(p.zoo.reverse, "aba", causal=True)


def test_an_expression_is_a_program_named_after_its_variable() -> None:
    backwards = p.length - p.indices
    assert as_program(backwards).name == "backwards"
    assert as_program(backwards.named("given")).name == "given"
    assert as_program(p.constant(1)).name == "program"
    assert as_program(as_program(backwards)) == as_program(backwards)


def test_what_makes_no_program_is_refused() -> None:
    with pytest.raises(UserError, match=r"'sort' is no program \(test_program.py:\d+\): give an expression"):
        as_program("sort")
    with pytest.raises(UserError, match=r"how_many makes no program by itself \(.*'letter'; call it with its choices"):
        as_program(how_many)

    @p.program()
    def selects() -> Expression:
        """Give a selector, which is no sequence."""
        return p.before  # type: ignore[return-value]

    with pytest.raises(UserError, match=r"selects \(test_program.py:\d+\) gives no sequence: return the expression"):
        selects()


def test_the_package_has_no_other_names() -> None:
    with pytest.raises(AttributeError, match="no attribute 'sort'"):
        _ = p.sort
