"""Models as folders."""
