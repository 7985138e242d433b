"""A program compiled twice is one model, whatever the process: its certificate belongs to its weights."""

import contextlib
import io
import os
import subprocess
import sys

COMPILING = """
import hashlib
from headstock.programs import zoo
from headstock.programs.compiler.compiling import built
from headstock.programs.compiler.domain import Domain

told = hashlib.sha256()
for name, vocabulary, length in (("sort", "abc", 4), ("most-frequent", "abc", 3), ("detect,pattern=ab", "ab", 4)):
    blueprint = built(zoo.get(name).output, Domain.of(vocabulary, length, False, "float32")).blueprint
    told.update(repr(blueprint.columns).encode())
    for key, weight in blueprint.build().state_dict().items():
        told.update(key.encode() + weight.numpy().tobytes())
print(told.hexdigest())
"""


def test_two_processes_compile_the_same_weights_whatever_their_hashes():
    """One of the two is this one, whose hashes are drawn, or those of a seed that is not the other's."""
    other = subprocess.run(
        [sys.executable, "-c", COMPILING],
        env={**os.environ, "PYTHONHASHSEED": "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    here = io.StringIO()
    with contextlib.redirect_stdout(here):
        exec(COMPILING, {})
    assert here.getvalue() == other
