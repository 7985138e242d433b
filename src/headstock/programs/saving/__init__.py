"""A compiled program as a folder: its weights, its text, its certificate, and the meaning of every column."""
