import json
import os
from dataclasses import replace

import pytest

from headstock.comparison import timing
from headstock.comparison.compare import plan_for
from headstock.comparison.plan import TUNING_SEEDS, make_plan
from headstock.comparison.request import Request
from headstock.errors import UserError
from tests.comparison.here import MIXERS


def _request(**choices):
    return Request(**{"variants": ("softmax", "uniform"), "tasks": ("crossing",), "seeds": 3, "steps": 40, **choices})


def _cells(request):
    plan = make_plan(request)
    rates = {(on.task.spec, arm.label): request.lr for on in plan.tasks for arm in on.arms}
    return plan.reported_cells(rates)


def test_a_plan_has_a_cell_for_every_arm_task_and_seed_and_no_two_share_an_address():
    cells = _cells(_request(tasks=("crossing", "text")))
    assert len(cells) == 2 * 2 * 3 == len({cell.key for cell in cells}) == len({cell.folder_name for cell in cells})


def test_arms_of_one_seed_differ_by_nothing_but_the_mixer_and_what_matching_gave_it():
    softmax, uniform = _cells(_request())[:2]
    assert softmax.training == uniform.training
    given = uniform.model.model_dump() | {"mixer": "softmax", "d_ff": softmax.model.d_ff}
    assert given == softmax.model.model_dump()


@pytest.mark.parametrize(
    ("variants", "match"),
    [
        (("softmax", "softmax,n_heads=4"), "none"),
        (("softmax,n_heads=4", "uniform", "softmax, n_heads=4"), "none"),
        (("softmax+learned", "softmax,d_ff=8"), "params"),
        (("softmax", f"{MIXERS}:Sharp", f"{os.path.relpath(MIXERS)}:Sharp"), "none"),
    ],
)
def test_one_model_written_in_two_ways_is_no_two_arms(variants, match):
    with pytest.raises(UserError, match=r"are the same model.*: name it once"):
        make_plan(_request(variants=variants, match=match))


def test_one_task_written_in_two_ways_is_no_two_tasks():
    with pytest.raises(UserError, match="text and text,context=64 are the same task: name it once"):
        make_plan(_request(tasks=("text", "text,context=64")))


def test_classes_of_one_name_in_two_files_are_two_arms_named_by_their_files(tmp_path):
    variants = []
    for name in ("one", "two"):
        path = tmp_path / f"{name}.py"
        path.write_text(f"from tests.comparison.mixers import Sharp\n\n\nclass Mine(Sharp):\n    name = {name!r}\n")
        variants.append(f"{path}:Mine")
    assert [arm.label for arm in make_plan(_request(variants=tuple(variants))).tasks[0].arms] == variants


def test_a_long_variant_has_a_folder_with_a_name_that_file_systems_allow():
    cell = replace(_cells(_request())[0], label="softmax," + ",".join(f"some_key_{n}=value" for n in range(30)))
    assert len(cell.folder_name) < 150
    assert cell.folder_name.endswith(f"-seed0-{cell.key[:8]}")


def test_seeds_come_first_so_that_a_stopped_comparison_holds_whole_pairs():
    assert [cell.training.seed for cell in _cells(_request())] == [0, 0, 1, 1, 2, 2]


@pytest.mark.parametrize(
    "change",
    [{"steps": 41}, {"lr": 2e-3}, {"batch_size": 16}, {"settings": (("norm", "rmsnorm"),)},
     {"settings": (("weight_decay", "0"),)}, {"tasks": ("crossing,held_out=0.1",)}],
)  # fmt: skip
def test_whatever_decides_a_runs_numbers_changes_its_address(change):
    assert not {cell.key for cell in _cells(_request())} & {cell.key for cell in _cells(_request(**change))}


def test_the_number_of_seeds_changes_no_address_and_no_identity():
    few, many = make_plan(_request(seeds=3)), make_plan(_request(seeds=5))
    assert few.identity() == many.identity()
    assert [cell.key for cell in _cells(_request(seeds=5))][:6] == [cell.key for cell in _cells(_request(seeds=3))]
    json.dumps(few.identity())


def test_the_source_of_a_users_mixer_is_part_of_its_address(tmp_path):
    mixer = tmp_path / "mine.py"
    text = "from headstock.model.mixers.softmax import Softmax\n\n\nclass Mine(Softmax):\n    '''{}'''\n"
    keys = []
    for words in ("one", "another"):
        mixer.write_text(text.format(words))
        keys.append(_cells(_request(variants=("softmax", f"{mixer}:Mine")))[1].key)
    assert keys[0] != keys[1]


def test_a_users_mixer_is_called_by_its_class():
    plan = make_plan(_request(variants=("softmax", f"{MIXERS}:Sharp,n_heads=8")))
    assert [arm.label for arm in plan.tasks[0].arms] == ["softmax", "Sharp,n_heads=8"]


def test_settings_hold_for_every_arm_and_a_variants_own_keys_come_before_them():
    plan = make_plan(_request(variants=("softmax", "softmax,n_heads=8"), settings=(("n_heads", "2"), ("clip", "1.0"))))
    assert [arm.model.n_heads for arm in plan.tasks[0].arms] == [2, 8]
    assert all(cell.training.clip == 1.0 for cell in _cells(_request(settings=(("clip", "1.0"),))))


def test_every_arm_is_tuned_at_the_same_rates_on_seeds_that_are_not_reported():
    plan = make_plan(_request(tune=3))
    assert plan.rates() == pytest.approx([1e-3 / 10**0.5, 1e-3, 1e-3 * 10**0.5], rel=1e-2)
    cells = plan.tuning_cells()
    tried = {}
    for cell in cells:
        tried.setdefault(cell.label, set()).add((cell.training.lr, cell.training.seed))
    assert tried["softmax"] == tried["uniform"]
    assert {cell.training.seed for cell in cells} == set(TUNING_SEEDS)
    assert not set(TUNING_SEEDS) & set(range(plan.request.seeds))


def test_two_tasks_of_one_name_are_told_apart():
    plan = make_plan(_request(tasks=("text,context=32", "text,context=16")))
    assert [on.label for on in plan.tasks] == ["text,context=32", "text,context=16"]


def test_equal_time_gives_the_slower_arm_fewer_steps(monkeypatch):
    monkeypatch.setattr(timing, "seconds_per_step", lambda plan, on: [0.010, 0.025])
    plan = plan_for(_request(match="time"))
    assert [arm.steps for arm in plan.tasks[0].arms] == [40, 16]
    assert "On crossing, training time was made equal by steps: softmax 40, uniform 16" in plan.matching()[0]


def test_tasks_of_which_the_same_holds_share_a_sentence():
    same = make_plan(_request(variants=("softmax", "softmax,init=gpt2"), tasks=("crossing", "text"), match="none"))
    assert same.matching() == ["On crossing and text, nothing was made equal."]


def test_measured_steps_are_read_back_from_the_folders_plan_and_not_measured_again(monkeypatch, tmp_path):
    monkeypatch.setattr(timing, "seconds_per_step", lambda plan, on: [0.010, 0.025])
    plan = plan_for(_request(match="time"))
    (tmp_path / "plan.json").write_text(json.dumps(plan.identity()))
    monkeypatch.setattr(timing, "seconds_per_step", lambda plan, on: [0.010, 0.020])
    assert plan_for(_request(match="time"), tmp_path).identity() == plan.identity()


def test_seconds_a_step_are_measured_for_every_arm():
    plan = make_plan(_request(match="time"))
    assert all(seconds > 0 for seconds in timing.seconds_per_step(plan, plan.tasks[0]))
    assert replace(plan, tasks=plan.tasks) == plan


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"variants": ("softmax", "differentail")}, "did you mean 'differential'"),
        ({"variants": ("softmax", "softmax")}, "named twice"),
        ({"variants": ("softmax", "differential,n_heads=1")}, "choose an even number"),
        ({"variants": ("softmax,n_heads=6", "uniform")}, "choose a number of heads that divides 64"),
        ({"variants": ("softmax", "__main__:Mine")}, "put it in a file"),
        ({"variants": ()}, "nothing is compared"),
        ({"tasks": ("crosing",)}, "did you mean 'crossing'"),
        ({"tasks": ()}, "name a task"),
        ({"settings": (("n_head", "3"),)}, "did you mean 'n_heads'"),
        ({"settings": (("vocab_size", "3"),)}, "follows from the task"),
        ({"settings": (("lr", "3"),)}, "use --lr"),
        ({"settings": (("clip", "0"),)}, "clip='0' cannot be used"),
        ({"settings": (("clip", "1"), ("clip", "2"))}, "given twice"),
        ({"settings": (("agreement_penalty", "0.1"),)}, "agreement_penalty=0.1 needs heads that subtract one map"),
        ({"seeds": 0}, "seeds=0"),
        ({"steps": -1}, "steps=-1"),
        ({"lr": 0}, "lr=0"),
        ({"batch_size": 0}, "batch_size=0"),
        ({"tune": 1}, "leaves nothing to choose"),
        ({"match": "size"}, "match='size'"),
        ({"device": "abacus"}, "'abacus' cannot be used"),
    ],
)
def test_what_cannot_be_run_is_refused_before_anything_is(change, said):
    with pytest.raises(UserError, match=said) as refused:
        make_plan(_request(**change))
    assert "\n" not in str(refused.value)
