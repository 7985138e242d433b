"""Arms compared fairly: request → plan (matched) → engine and store → statistics → report.

`compare` is the whole way. `statistics/` knows only numbers a seed, `report/` only what was found.
"""
