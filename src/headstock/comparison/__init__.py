"""Arms compared fairly: request → plan (matched) → engine and store → statistics → verdicts → table and report."""
