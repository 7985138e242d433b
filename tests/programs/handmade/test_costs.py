import ctypes
import shutil
import subprocess
from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode

from headstock.errors import UserError
from headstock.model.accounting import flops_per_token
from headstock.model.cache import Cache
from headstock.model.config import ModelConfig, config_of
from headstock.programs.handmade import aab, costs
from tests.programs.any_blueprint import any_blueprint


def _counted(model, ids_bq, **choices):
    """What torch itself counts, on the plain path, where it sees the matrix products."""
    model.plain = True
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        model(ids_bq, **choices)
    return counter.get_total_flops()


def test_a_full_pass_of_aab_is_3520_operations():
    found = costs.products(aab.blueprint().config(), 5)
    assert (found.qkv, found.scores, found.averages) == (2 * 5 * 8 * 24, 2 * 5 * 8 * 5, 2 * 5 * 5 * 8)
    assert (found.projection, found.feedforward, found.unembedding) == (2 * 5 * 8 * 8, 0, 2 * 5 * 8 * 2)
    assert found.total == 3520 == _counted(aab.model(), torch.zeros(1, 5, dtype=torch.int64))


def test_one_token_after_a_cache_of_four_is_704():
    model, cache = aab.model(), Cache(1)
    model(torch.zeros(1, 4, dtype=torch.int64), cache=cache)
    assert _counted(model, torch.zeros(1, 1, dtype=torch.int64), cache=cache) == 704
    assert costs.products(model.config, 1, 5).total == 704


def test_two_tokens_are_1216_and_520_where_the_model_was_made_for_two():
    ids = torch.zeros(1, 2, dtype=torch.int64)
    assert costs.products(aab.blueprint().config(), 2).total == 1216 == _counted(aab.model(), ids)
    assert costs.products(aab.blueprint(2).config(), 2).total == 520 == _counted(aab.model(2), ids)


@settings(max_examples=20)
@given(st.integers(0, 10_000))
def test_products_are_what_torch_counts_for_any_blueprint(seed):
    blueprint = any_blueprint(seed)
    ids = torch.zeros(1, blueprint.context, dtype=torch.int64)
    config = blueprint.config()
    found = costs.products(config, blueprint.context).total
    assert found == _counted(blueprint.build(), ids)
    assert found == blueprint.context * flops_per_token(config, blueprint.context)


@pytest.mark.parametrize(
    "variant", ["uniform", "softmax,value_map=identity", "softmax,output_map=false", "softmax,feedforward=swiglu"]
)
def test_products_that_are_not_known_are_refused(variant):
    with pytest.raises(UserError, match="are not counted here"):
        costs.products(config_of(variant, vocab_size=2, context=5), 5)


def test_all_ways_stand_side_by_side():
    program = ModelConfig(vocab_size=2, context=9, d_model=4, n_layers=1, n_heads=1)
    found = costs.costs({"a program": program})
    expected = {
        "(aab)* by hand, as published (about)": (4000, None),
        "(aab)* by hand, all five tokens": (3520, None),
        "(aab)* by hand, one token after a cache of four": (704, None),
        "(aab)* by hand, only the last two tokens": (1216, None),
        "(aab)* by hand for a context of two": (520, None),
        "(aab)* by hand for a context of two, one token after a cache of one": (260, None),
        "a program": (5 * flops_per_token(program, 5), None),
        "a program, one token after a cache of 4": (flops_per_token(program, 5), None),
        "(ab)* by hand, the last token": (8, None),
        "(aab)* as a rule in x64 assembly, as published": (0, 8),
    }
    for name, (flops, instructions) in expected.items():
        assert (found.way(name).flops, found.way(name).instructions) == (flops, instructions), name
    assert found.way("(aab)* by hand, all five tokens").fused == 1760
    python = found.way("(aab)* as a rule in Python (bytecode)")
    assert python.flops == 0
    assert 5 <= python.instructions <= 30  # which differs between versions of Python
    with pytest.raises(UserError, match="there is no way 'b'"):
        found.way("b")


def test_the_table_holds_every_way_and_the_products_of_the_full_pass():
    found = costs.costs()
    lines = found.table().splitlines()
    assert len(lines) == len(found.ways) + 2
    assert all(line.startswith(way.name) for line, way in zip(lines[1:-1], found.ways, strict=True))
    assert lines[2].split()[-2:] == ["3,520", "1,760"]
    assert lines[-1] == ("The full pass: qkv 1,920, scores 400, averages 400, projection 640, unembedding 160.")


def test_bytecode_is_counted_as_dis_prints_it():
    assert costs.bytecode_instructions(lambda x: x) < costs.bytecode_instructions(lambda x: x + x)
    executed = []

    def watch(frame, event, argument):
        frame.f_trace_opcodes = True
        if event == "opcode":
            executed.append(frame.f_lasti)
        return watch

    import sys

    before = sys.gettrace()
    sys.settrace(watch)
    try:
        aab.rule("aab")
    finally:
        sys.settrace(before)
    assert 0 < len(executed) <= costs.bytecode_instructions(aab.rule)


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_the_rule_in_c_is_the_rule_in_a_handful_of_machine_instructions(tmp_path):
    assert 2 <= costs.machine_instructions(costs.C_RULE) <= costs.PUBLISHED_INSTRUCTIONS
    library = tmp_path / "rule.so"
    subprocess.run(
        ["gcc", "-O2", "-shared", "-fPIC", "-x", "c", "-", "-o", str(library)],
        input=costs.C_RULE,
        text=True,
        check=True,
    )
    rule = ctypes.CDLL(str(library)).next
    for text in map("".join, product("ab", repeat=4)):
        ids = (ctypes.c_int * 4)(*("ab".index(token) for token in text))
        assert "ab"[rule(ids, ctypes.c_long(4))] == aab.rule(text), text


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_what_is_no_c_is_not_counted():
    assert costs.machine_instructions("this is no C") is None


def test_without_gcc_the_row_of_the_c_rule_is_left_out(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert costs.machine_instructions(costs.C_RULE) is None
    assert not any("gcc" in way.name for way in costs.costs().ways)
