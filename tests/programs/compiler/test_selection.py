import pytest
from hypothesis import given, settings

from headstock import programs as p
from headstock.errors import UserError
from headstock.programs.compiler.certificate import every_sequence
from headstock.programs.compiler.domain import Domain
from headstock.programs.compiler.infer import Values
from headstock.programs.compiler.selection import always_picks, picks_one_at_most
from headstock.programs.compiler.simplify import Simplifying
from headstock.programs.interpreter import Reading
from headstock.programs.nodes import Aggregate, Conjoined, Width
from tests.programs.random_programs import Drawn, programs


@settings(max_examples=40)
@given(drawn=programs(deepest=2, longest=4))
def test_what_is_known_of_a_selector_is_so_on_every_sequence(drawn: Drawn) -> None:
    domain = Domain.of(drawn.vocabulary, drawn.max_length, drawn.causal, "float32")
    values = Values(domain)
    simplify = Simplifying(values)
    try:
        simplify(drawn.output)
        found = [simple.selector for _, simple in simplify.became.values() if isinstance(simple, (Aggregate, Width))]
        known = [(s, always_picks(s.leaves, values), picks_one_at_most(s.leaves, values))
                 for s in found if isinstance(s, Conjoined)]  # fmt: skip
    except UserError:
        return
    for sequence in list(every_sequence(domain))[:60]:
        reading = Reading(sequence, causal=drawn.causal)
        for selector, always, one in known:
            for row in reading.selected(selector):
                assert sum(row) >= 1 or not always
                assert sum(row) <= 1 or not one


@pytest.mark.parametrize("causal", [False, True])
def test_positions_tell_whether_a_key_is_always_there_and_alone(causal: bool) -> None:
    values = Values(Domain.of("ab", 4, causal, "float32"))
    simplify = Simplifying(values)

    def known(selector: p.Selector) -> tuple[bool, bool]:
        leaves = simplify.selectors.conjunction(simplify._selector(selector), p.indices).leaves
        return always_picks(leaves, values), picks_one_at_most(leaves, values)

    assert known(p.select(p.indices, p.indices)) == (True, True)
    assert known(p.offset(-1)) == (False, True)
    assert known(p.select(p.indices, 0)) == (True, True)
    assert known(p.select(p.tokens, p.tokens)) == (True, False)
    assert known(p.select(p.tokens, "a")) == (False, False)
    assert known(p.select(p.indices // 2, p.indices // 2)) == (True, False)


@pytest.mark.parametrize(
    "selector",
    [
        p.offset(1),
        p.offset(-1) | p.offset(2),
        p.select(p.indices, p.indices, ">"),
        ~p.up_to_here,
        p.select(p.tokens, p.tokens) & p.select(p.indices, p.indices, ">="),
        p.select(p.indices, p.indices, "!="),
    ],
)
def test_a_selector_of_positions_ahead_is_refused_causally(selector: p.Selector) -> None:
    ahead = p.width(selector)
    with pytest.raises(UserError, match=r"ahead \(.*\) reads position \d from position \d .*causal=False.*up_to_here"):
        p.compile(ahead, vocab="ab", max_length=4, causal=True)


@pytest.mark.parametrize(
    "selector",
    [
        p.offset(1) & p.up_to_here,
        p.offset(-1) | p.before,
        p.select(p.tokens, p.tokens),
        ~p.select(p.tokens, p.tokens),
        p.everything,
        p.select(p.indices, 2),
        p.select(p.tokens, p.tokens) & p.select(p.indices, p.indices, "<"),
    ],
)
def test_a_selector_of_content_or_of_what_stands_before_is_compiled_causally(selector: p.Selector) -> None:
    compiled = p.compile(p.width(selector), vocab="ab", max_length=4, causal=True)
    assert compiled("abba") == p.interpret(compiled.program, "abba", causal=True)
