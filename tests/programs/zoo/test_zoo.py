import doctest
import inspect
from importlib import import_module

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headstock import programs as p
from headstock.errors import UserError
from headstock.programs import zoo
from headstock.programs.program import BIDIRECTIONAL, CAUSAL
from tests.programs.cases import CASES, Case

each_program = pytest.mark.parametrize("name", list(zoo.PROGRAMS))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_program_is_right(case: Case) -> None:
    answer = p.interpret(case.program, case.given, causal=case.causal)
    assert answer == case.right
    assert [type(value) for value in answer] == [type(value) for value in case.right]


@each_program
def test_every_program_has_a_case_in_each_of_its_modes(name: str) -> None:
    made = {(case.made.name.split(",")[0], case.causal) for case in CASES}
    assert {(name, mode == CAUSAL) for mode in zoo.get(name).modes} <= made


@each_program
def test_the_examples_of_a_docstring_hold(name: str) -> None:
    make = zoo.PROGRAMS[name]
    module = import_module(make.__module__)
    tests = doctest.DocTestFinder().find(inspect.unwrap(make), make.__name__, module=module)
    assert sum(len(test.examples) for test in tests) > 0
    for test in tests:
        assert doctest.DocTestRunner(verbose=False).run(test).failed == 0


@each_program
@settings(max_examples=15)
@given(data=st.data())
def test_a_program_has_an_answer_for_every_input_of_its_domain(name: str, data: st.DataObject) -> None:
    program = zoo.get(name)
    text = data.draw(st.lists(st.sampled_from(program.vocabulary), min_size=1, max_size=program.max_length))
    for mode in program.modes:
        assert len(p.interpret(program, text, causal=mode == CAUSAL)) == len(text)


@each_program
@settings(max_examples=15)
@given(data=st.data())
def test_a_causal_program_does_not_change_its_mind(name: str, data: st.DataObject) -> None:
    program = zoo.get(name)
    if CAUSAL not in program.modes:
        return
    text = data.draw(st.lists(st.sampled_from(program.vocabulary), min_size=1, max_size=program.max_length))
    told = p.interpret(program, text, causal=True)
    shorter = data.draw(st.integers(1, len(text)))
    assert p.interpret(program, text[:shorter], causal=True) == told[:shorter]


@each_program
def test_a_program_is_found_again_by_its_own_name(name: str) -> None:
    program = zoo.get(name)
    assert program.name == name
    assert program.says
    assert program.vocabulary
    assert set(program.modes) <= {BIDIRECTIONAL, CAUSAL}


@pytest.mark.parametrize(
    "spec", ["shift,by=2", "shift,by=-1", "detect,pattern=abab", "dyck,k=3", "addition,digits=2", "count,token=b"]
)
def test_choices_are_read_and_named(spec: str) -> None:
    assert zoo.get(spec).name == spec


def test_a_choice_is_read_as_what_it_is() -> None:
    assert p.interpret(zoo.get(" shift , by = 2 "), "abcd") == [None, None, "a", "b"]
    assert p.interpret(zoo.get("detect,pattern=12"), "12") == [None, True]
    assert p.interpret(zoo.get("detect,pattern=a,,"), "a,") == [None, True]


def test_an_underscore_in_a_name_is_as_good_as_a_dash() -> None:
    assert zoo.get("double_hist").name == "double-hist"


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("sorted", "no program 'sorted' in the zoo: did you mean 'sort'"),
        ("", "no program '' in the zoo: choose one of aab, ab, addition"),
        ("addition,digit=3", "addition has no choice 'digit': did you mean 'digits'"),
        ("sort,by=2", "sort has no choices: leave out 'by=2'"),
        ("shift,2", "'2' in 'shift,2' has no value: write it as key=value"),
        ("shift,by=two", "by must be a whole number: got 'two'"),
        ("shift,by=1,by=2", "gives by twice"),
        ("dyck,k=4", "choose 1, 2 or 3 kinds of brackets"),
    ],
)
def test_a_name_that_cannot_be_read_is_refused(spec: str, said: str) -> None:
    with pytest.raises(UserError, match=said.replace("(", r"\(")):
        zoo.get(spec)


def test_a_program_of_the_zoo_is_a_name_in_the_package() -> None:
    assert {make.__name__ for make in zoo.PROGRAMS.values()} | {"PROGRAMS", "get"} == set(zoo.__all__)
    assert all(getattr(zoo, make.__name__) is make for make in zoo.PROGRAMS.values())
