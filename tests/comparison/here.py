"""Where the tests' own mixers are, as a variant names them."""

from pathlib import Path

MIXERS = str(Path(__file__).with_name("mixers.py"))
