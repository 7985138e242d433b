"""From a program to exact weights, one pass a file; compiling.py reads as the pipeline."""
