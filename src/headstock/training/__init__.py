"""Batches, the loop, and runs that stop and go on."""
