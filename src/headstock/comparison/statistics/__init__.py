"""From numbers a seed to verdicts: hypotheses, tests and their correction, power, verdicts and their sentences."""
