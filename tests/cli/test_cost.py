"""Cost is laid out for people and for programs; what cannot be measured is told in a sentence before anything runs."""

import json
from pathlib import Path

import pytest

from headstock.instruments.cost import room, turns
from tests.cli.conftest import Headstock, tree

TINY = ["--set", "d_model=16", "--set", "n_heads=2", "--seconds", "0.001"]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "SHORTEST_SAMPLE", 1e-6)


def test_the_table_has_each_length_part_and_exponent(headstock: Headstock, here: Path) -> None:
    said = headstock("cost", "softmax", "differential", "lstm", "--lengths", "8,16,32", *TINY)
    assert said.status == 0, said.err
    for part in (
        "One block, batch 1, float32: 5 turns of everything",
        "Variants, parameters made equal",
        "The whole block; ratios to softmax",
        "Mixing alone",
        "fused (flash, CPU)",
        "fitted to 3 lengths, 8 to 32",
        "The mixing of lstm is all that its mixer does",
        "By formula, all weights at 32 tokens, stored once, are softmax, differential",
        "Projections alone: queries, keys, values and gates, and the output map; ratios to softmax",
        "The feed-forward alone",
        "MiB, forward: the most held at once, and what has to be by formula",
        "MiB, training",
        "Kernels that mixed",
    ):
        assert part in " ".join(said.out.split()), part
    tables = [line for line in said.out.splitlines() if line.startswith("  ")]
    assert max(map(len, tables)) <= 100
    assert "memory and kernels at 16 tokens" in said.err
    assert "turn 5 of 5" in said.err
    assert tree(here) == {}


def test_one_variant_has_no_ratios(headstock: Headstock) -> None:
    said = headstock("cost", "softmax", "--lengths", "8", *TINY).out
    assert "ratio" not in said
    assert "Exponents" not in said


def test_json_holds_every_turn_and_matched_sizes(headstock: Headstock) -> None:
    said = headstock("cost", "softmax", "softmax1,n_heads=1", "--lengths", "16,8,16", "--json", *TINY)
    found = json.loads(said.out)
    assert found["lengths"] == [8, 16]
    assert len(found["measured"]) == 2 * 2 * 4 * 2
    assert all(one["expected_bytes"] > 0 for one in found["measured"])
    assert "fits" not in found
    assert {len(one["seconds"]) for one in found["measured"]} == {found["turns"]}
    assert [arm["label"] for arm in found["variants"]] == ["softmax", "softmax1,n_heads=1"]
    assert "n_heads=1" in found["variants"][1]["variant"]
    assert found["match"] == "params"


def test_parameters_are_made_equal_unless_asked_otherwise(headstock: Headstock) -> None:
    def widths(*more: str) -> list[int]:
        words = ["cost", "softmax", "uniform", "--lengths", "8", "--set", "d_model=64", "--seconds", "0.001", "--json"]
        return [arm["d_ff"] for arm in json.loads(headstock(*words, *more).out)["variants"]]

    assert widths("--match", "none") == [256, 256]
    assert widths()[1] > 256


def test_plain_stores_the_weights(headstock: Headstock) -> None:
    said = headstock("cost", "softmax", "--plain", "--lengths", "8", *TINY).out
    assert "every weight stored" in said
    assert "fused" not in said


def test_a_mixer_of_the_users_own_is_measured(headstock: Headstock, here: Path) -> None:
    (here / "mine.py").write_text(
        "from headstock.model.attention import masked_softmax\n"
        "from headstock.model.mixers.base import ScoreMixer\n\n"
        "class Mine(ScoreMixer):\n"
        "    def weigh(self, scores, visible):\n"
        "        return masked_softmax(2 * scores, visible)\n"
    )
    said = headstock("cost", "softmax", "mine.py:Mine", "--lengths", "8", *TINY)
    assert said.status == 0, said.err
    assert "  Mine " in said.out


def test_what_does_not_fit_is_said(headstock: Headstock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "free_bytes", lambda device: 300_000)
    said = headstock("cost", "softmax", "--plain", "--lengths", "8,2000", *TINY)
    assert said.status == 0
    assert "softmax is left out at 2,000 tokens" in " ".join(said.out.split())
    monkeypatch.setattr(room, "free_bytes", lambda device: 0)
    assert (
        "nothing was measured: softmax is left out at 8"
        in headstock("cost", "softmax", "--lengths", "8", *TINY).err.splitlines()[-1]
    )


def test_a_kernel_is_named_from_the_length_on_from_which_it_runs(headstock: Headstock) -> None:
    said = headstock("cost", "sigmoid", "--lengths", "64,256", *TINY).out
    assert "sigmoid  plain, blockwise from 256 on  plain, blockwise from 256 on" in said


def test_what_fits_is_foreseen_for_a_part_a_block_and_a_model(headstock: Headstock) -> None:
    more = ["--lengths", "64,128,192,256", "--set", "n_layers=3", "--plain"]
    said = " ".join(headstock("cost", "softmax", "--fits", "0.5", *more, *TINY).out.split())
    assert "that 0.5 GiB have room for, in tokens; batch 1, 3 layers, vocabulary 256" in said
    assert "bytes at the longest would have been foreseen within" in said
    assert "fill it alone: softmax at 8,192 tokens" in said
    found = json.loads(headstock("cost", "softmax", "--fits", "0.5", "--json", *more, *TINY).out)
    assert (found["memory_gib"], found["n_layers"], found["vocab_size"]) == (0.5, 3, 256)
    assert len(found["fits"]) == 3 * 2
    tokens = {(one["holder"], one["step"]): one["tokens"] for one in found["fits"]}
    assert tokens["mixing", "forward"] == pytest.approx(8192 / 3**0.5, rel=0.1)
    assert tokens["model", "training"] < tokens["block", "training"] < tokens["mixing", "training"]


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ("cost", "nothing is measured: name a variant"),
        ("cost sofmax", "unknown mixer 'sofmax': did you mean 'softmax'?"),
        ("cost softmax softmax", "the variant 'softmax' is named twice"),
        ("cost softmax d_model=8", "write --set before every setting"),
        ("cost softmax --set d_modl=8", "unknown setting 'd_modl': did you mean 'd_model'?"),
        ("cost softmax --set context=8", "'context' is not a setting here: it follows from --lengths"),
        ("cost softmax --set n_layers=2", "'n_layers' is not a setting here: one block is measured"),
        ("cost softmax,n_layers=2", "'n_layers' is not a setting here: one block is measured"),
        ("cost softmax --set n_heads=7", "softmax has 7 heads but the width is 512"),
        ("cost uniform+rope", "uniform cannot use rope"),
        ("cost softmax --lengths 8,x", "--lengths is '8,x'"),
        ("cost softmax --lengths 0", "--lengths is '0'"),
        ("cost softmax --lengths=-4", "--lengths is '-4'"),
        ("cost softmax --batch 0", "the batch is 0"),
        ("cost softmax --fits 0", "--fits is 0: give the GiB of a memory, such as 8."),
        ("cost softmax --fits nan", "--fits is nan"),
        ("cost softmax --fits 8 --lengths 8,16", "--fits reads growth off three lengths or more"),
        ("cost softmax --fits 8 --set n_layers=x", "n_layers"),
        ("cost softmax --seconds 0", "seconds is 0"),
        ("cost softmax --seconds nan", "seconds is nan"),
        ("cost softmax uniform,feedforward=none", "no width of its feed-forward makes them equal"),
        ("cost softmax --device gpu", "the device 'gpu' cannot be used"),
        ("cost nowhere.py:Mine", "there is no file nowhere.py"),
    ],
)
def test_what_cannot_be_measured_is_told_in_a_sentence(headstock: Headstock, here: Path, words: str, part: str) -> None:
    assert part in headstock(*words.split()).complaint
    assert tree(here) == {}
