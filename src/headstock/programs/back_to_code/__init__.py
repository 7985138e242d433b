"""Back to code: from a model over a finite domain to the smallest machine or look-up that says the same, as source.

    form = extract(model, names="ab")      # the smaller of machine(...) and lookup(...)
    print(form)  ;  form("aab")  ;  form.python()  ;  form.c()

What is reproduced is the likeliest token (greedy generation), on every sequence of the domain, each of which is read.
Knows nothing of how a model was made: compiled, by hand or trained.
"""

from headstock.programs.back_to_code.closed_loops import ClosedLoop, closed_loop
from headstock.programs.back_to_code.extracting import extract
from headstock.programs.back_to_code.function import Function
from headstock.programs.back_to_code.lookups import Lookup, lookup
from headstock.programs.back_to_code.machines import Machine, machine
from headstock.programs.back_to_code.whole import WholeLookup, whole_lookup

__all__ = [
    "ClosedLoop",
    "Function",
    "Lookup",
    "Machine",
    "WholeLookup",
    "closed_loop",
    "extract",
    "lookup",
    "machine",
    "whole_lookup",
]
