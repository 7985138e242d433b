"""What each number of a compiled model is for, and what it holds on an input, expression by expression."""
