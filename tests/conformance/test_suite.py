"""Every mixer conforms, in every position; and the report says what was looked at, and what was not."""

import json
import shutil
from typing import Any

import pytest
import torch

from headstock.conformance.check import Differences, apart
from headstock.conformance.report import Report
from headstock.conformance.suite import CHECKS, check_config, check_mixer, check_names, usual_position
from headstock.conformance.trial import PACKED_AND_PADDED, SIZES, WHOLE, Trial
from headstock.errors import UserError
from headstock.model.config import POSITIONS, ModelConfig, config_of
from headstock.model.mixers import differential2, mixer_class, mixer_names
from tests.model.cases import CHOICES, Case


def grid() -> list[Any]:
    """Every mixer with every position it allows; one a mixer is for every day."""
    cells = []
    for mixer in mixer_names():
        allowed = [position for position in POSITIONS if position not in mixer_class(mixer).refuses]
        usual = usual_position(allowed)
        for position in allowed:
            marks = () if position == usual else (pytest.mark.full,)
            cells.append(pytest.param(f"{mixer}+{position}", marks=marks, id=f"{mixer}-{position}"))
    return cells


@pytest.mark.parametrize("variant", grid())
def test_every_mixer_of_ours_conforms(variant: str) -> None:
    report = check_mixer(variant)
    assert report.passed, report.table()
    assert not [outcome for outcome in report.outcomes if outcome.status == "skipped" and "minute" not in outcome.found]


@pytest.mark.full
@pytest.mark.parametrize("case", [case for case in CHOICES if case.config().n_layers], ids=str)
def test_every_choice_of_a_config_conforms(case: Case) -> None:
    report = check_config(case.config())
    assert report.passed, report.table()


@pytest.mark.full
@pytest.mark.skipif(not shutil.which("g++") and not shutil.which("clang++"), reason="needs a C++ compiler")
@pytest.mark.parametrize("mixer", mixer_names())
def test_every_mixer_compiles(mixer: str) -> None:
    allowed = [position for position in POSITIONS if position not in mixer_class(mixer).refuses]
    report = check_mixer(f"{mixer}+{usual_position(allowed)}", only=["compiled = eager"])
    assert report.passed, report.table()


def test_what_is_compiled_is_held_against_what_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    only = ["compiled = eager"]
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert check_mixer("softmax+rope", only=only).outcomes[1].found.startswith("there is no C++ compiler here")
    monkeypatch.setattr(shutil, "which", lambda name: "/usr/bin/g++")
    for factor, passed in ((1.0, True), (1.01, False)):
        monkeypatch.setattr(torch, "compile", lambda model, factor=factor: lambda ids: factor * model(ids))
        assert check_mixer("softmax+rope", only=only).passed is passed


def test_each_law_has_a_name_of_its_own_a_sentence_and_advice() -> None:
    assert len(set(check_names())) == len(check_names())
    for checks in CHECKS.values():
        for check in checks:
            assert len(check.name) <= 30
            assert check.law.endswith(".")
            assert check.usually


def test_without_a_position_all_that_are_allowed_are_tried_and_what_is_dear_at_one() -> None:
    report = check_mixer("uniform", only=["cached = whole", "memory is linear"])
    assert report.positions == ("none", "learned", "sinusoidal")
    at = {outcome.position for outcome in report.outcomes if outcome.check == "memory is linear"}
    assert at == {"learned"}
    everywhere = check_mixer("uniform", only=["memory is linear"], full=True)
    assert len({o.position for o in everywhere.outcomes if o.check == "memory is linear"}) == 3


@pytest.mark.parametrize("mixer", ["softmax", "softmax1", "sink", "differential", "differential2"])
def test_mixers_with_a_fused_way_hold_what_they_claim_of_their_memory_in_both_directions(mixer: str) -> None:
    report = check_mixer(f"{mixer}+none,causal=false", only=["memory is linear"], full=True)
    assert [outcome.status for outcome in report.outcomes if outcome.check == "memory is linear"] == ["passed"]


@pytest.mark.parametrize("mixer", ["uniform", "sigmoid", "table"])
def test_a_mixer_without_one_claims_nothing_of_it_in_both_directions(mixer: str) -> None:
    assert not mixer_class(mixer).memory_is_linear(config_of(mixer, **SIZES, causal=False))


def test_what_a_mixer_refuses_is_not_asked_of_it_and_the_reason_is_told() -> None:
    report = check_mixer("lstm+none", only=["choices are read"])
    assert report.outcomes[1].status == "not applicable"
    assert report.outcomes[1].found.startswith("refuses soft_cap")
    assert report.passed
    report = check_mixer("uniform+none", only=["choices are read"])
    assert report.outcomes[1].found.endswith("refused: soft_cap, qk_norm, scale_scores")
    assert report.passed


@pytest.fixture(scope="module")
def small() -> Report:
    return check_mixer("uniform", only=["it reads", "a shift changes nothing", "choices are read", "cached = whole"])


@pytest.mark.parametrize("width", [80, 110])
def test_a_table_is_as_wide_as_it_may_be(small: Report, width: int) -> None:
    for report in (small, check_mixer("softmax", only=["it reads"]), check_mixer("softmax+rope", only=["it reads"])):
        assert max(map(len, report.table(width).splitlines())) <= width


def test_a_report_is_a_table_and_a_value(small: Report) -> None:
    table = small.table()
    for part in ("uniform (weights: normalised)", "sinus. is sinusoidal", "Not applicable", "uniform conforms: "):
        assert part in table
    found = json.loads(json.dumps(small.to_dict()))
    assert found["passed"] is True
    assert {outcome["check"] for outcome in found["outcomes"]} < set(check_names())


def test_what_cannot_be_checked_is_refused() -> None:
    with pytest.raises(UserError, match="there is no check 'cached': did you mean 'cached = whole'"):
        check_mixer("softmax", only=["cached"])
    with pytest.raises(UserError, match="unknown mixer 'sofmax': did you mean 'softmax'"):
        check_mixer("sofmax")
    with pytest.raises(UserError, match="cannot use rope"):
        check_mixer("uniform+rope")
    with pytest.raises(UserError, match="without blocks"):
        check_config(ModelConfig(vocab_size=3, context=4, n_layers=0))


def test_outcomes_are_told_as_they_come_and_torchs_generator_is_left_alone() -> None:
    told, before = [], torch.get_rng_state()
    report = check_mixer("table+none", only=["dropout follows its draws"], on_outcome=lambda *what: told.append(what))
    assert [done for _, done, _ in told] == [1, 2]
    assert {total for *_, total in told} == {2}
    assert tuple(outcome for outcome, *_ in told) == report.outcomes
    assert torch.equal(before, torch.get_rng_state())


def test_what_a_query_sees_is_counted_by_hand() -> None:
    config = config_of("softmax,window=2", **SIZES)
    assert Trial(config).sees(WHOLE)[0].sum(-1).tolist() == [1, 2, 2, 2, 2, 2, 2, 2, 2]
    seen = Trial(config).sees(PACKED_AND_PADDED)
    assert seen[0].sum(-1).tolist() == [1, 2, 2, 2, 1, 2, 2, 2, 2]
    assert seen[1].sum(-1).tolist() == [1, 1, 2, 1, 2, 0, 0, 0, 0]


def test_no_number_is_far_from_every_number() -> None:
    nan, one = torch.tensor([float("nan")]), torch.ones(1)
    for actual, expected in ((nan, one), (one, nan), (nan, nan), (one, torch.ones(2))):
        differences = Differences()
        differences.hold("here", actual, expected)
        assert differences.finding().status == "failed"
    assert apart(torch.tensor([100.0, 2.0]), torch.tensor([100.0, 1.0])) == pytest.approx(0.01)


def test_version_2_is_tried_with_heads_that_its_blocks_begin_at(monkeypatch: pytest.MonkeyPatch) -> None:
    right = differential2.differencing
    monkeypatch.setattr(differential2, "differencing", lambda *given: 1.5 * right(*given))
    report = check_mixer("differential2+none", only=["fast = plain over blocks"])
    assert {outcome.check: outcome.status for outcome in report.outcomes}["fast = plain over blocks"] == "failed"
