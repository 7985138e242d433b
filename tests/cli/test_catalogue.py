"""What can be named is listed, with the defaults that really hold."""

import json

from headstock import tasks
from headstock.instruments import instrument_names
from headstock.model.config import ModelConfig
from headstock.model.mixers import mixer_names
from headstock.training.config import TrainingConfig
from tests.cli.conftest import Headstock


def test_every_mixer_position_key_and_task_is_listed_with_its_meaning(headstock: Headstock) -> None:
    found = json.loads(headstock("list", "--json").out)
    variants = found["variants"]
    assert [mixer["name"] for mixer in variants["mixers"]] == mixer_names()
    assert {mixer["name"] for mixer in variants["mixers"] if mixer["floor"]} == {"uniform", "lstm"}
    assert "rope" in variants["positions"]
    keys = {key["key"]: key for key in [*variants["keys"], *variants["training_keys"]]}
    own = {"vocab_size", "context", "mixer", "position", "steps", "seed", "lr", "batch_size"}
    assert set(keys) == {*ModelConfig.model_fields, *TrainingConfig.model_fields} - own
    assert all(key["meaning"].endswith(".") for key in keys.values())
    assert [task["name"] for task in found["tasks"]] == tasks.names()


def test_a_listed_default_is_the_one_that_holds(headstock: Headstock) -> None:
    keys = json.loads(headstock("list", "variants", "--json").out)["variants"]["keys"]
    usual = ModelConfig(vocab_size=2, context=2)
    assert {key["key"]: key["default"] for key in keys} == {key["key"]: getattr(usual, key["key"]) for key in keys}


def test_each_list_can_be_had_alone(headstock: Headstock) -> None:
    assert set(json.loads(headstock("list", "tasks", "--json").out)) == {"tasks"}
    assert "crossing" not in headstock("list", "variants").out
    assert "softmax1" not in headstock("list", "tasks").out


def test_every_instrument_is_listed_with_what_it_gives(headstock: Headstock) -> None:
    found = json.loads(headstock("list", "instruments", "--json").out)
    assert set(found) == {"instruments"}
    assert [instrument["name"] for instrument in found["instruments"]] == instrument_names()
    assert all(instrument["meaning"].endswith(".") for instrument in found["instruments"])
    said = headstock("list", "instruments").out
    assert "headstock.instruments.attention_patterns(model, ids)" in said
    assert all(name in said for name in instrument_names())


def test_lines_are_no_wider_than_they_may_be(headstock: Headstock) -> None:
    for words in (["list"], ["show", "crossing"], ["show", "text"]):
        assert max(len(line) for line in headstock(*words).out.splitlines() if " " in line.strip()) <= 110


def test_a_card_says_what_a_figure_on_the_task_means(headstock: Headstock) -> None:
    said = headstock("show", "crossing").out
    for part in ("[river]", "50 % between the two nouns", "99% of the held-out", tasks.get("crossing").content_hash):
        assert part in said


def test_a_card_in_json_holds_the_same(headstock: Headstock) -> None:
    card = json.loads(headstock("show", "text,context=32", "--json").out)
    assert card["primary"]["name"] == "bits_per_byte"
    assert tasks.parse(card["spec"]).content_hash == card["content_hash"]
