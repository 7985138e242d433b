"""Headstock: a workbench for transformer attention."""

__version__ = "0.1.0"
