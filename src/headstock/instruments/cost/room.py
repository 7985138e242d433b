"""Foreseeing what a length will take, so that nothing is tried that free memory has no room for."""

import math
from collections.abc import Mapping, Sequence

import torch

from headstock.errors import UserError
from headstock.instruments.cost.expected import maps_at_once, memory_is_linear, stored_once
from headstock.instruments.cost.subject import Subject
from headstock.instruments.memory import free_bytes
from headstock.model.accounting import parameters
from headstock.model.config import ModelConfig
from headstock.model.mixers import told_of

SHARE_OF_FREE = 0.9


def cut_to_room(label: str, config: ModelConfig, lengths: Sequence[int], device: torch.device) -> ModelConfig:
    """Give the config, its context cut to the longest length whose tables of places fit into memory.

    Raises UserError where its numbers do not even fit at the shortest.
    """
    free = free_bytes(device)
    if free is None:
        return config
    for context in (config.context, *reversed(lengths)):
        cut = config.model_copy(update={"context": context, "n_layers": 1})
        needed = _bytes_of_numbers(cut)
        if needed <= SHARE_OF_FREE * free:
            return cut
    raise UserError(f"nothing was measured: {_left_out(label, lengths[0], needed, free)}")


def refusal(subject: Subject, length: int, batch: int, most: Mapping[int, int]) -> str | None:
    """Give the sentence that leaves a length out, or None where memory has room for it.

    most: by length, the most bytes that a pass of the subject was seen to hold.
    """
    needed, free = _needed(subject, length, batch, most), free_bytes(subject.device)
    if free is None or needed <= SHARE_OF_FREE * free:
        return None
    return _left_out(subject.label, length, needed, free)


def _needed(subject: Subject, length: int, batch: int, most: Mapping[int, int]) -> int:
    """Foresee the bytes of a length: by formula alone at first, then from the longest one measured."""
    config = subject.config
    if length > config.context:  # whose tables alone are too large
        return _bytes_of_numbers(config.model_copy(update={"context": length}))
    linear = not subject.plain and memory_is_linear(config, "training")
    if most:
        longest = max(most)
        return math.ceil(most[longest] * (length / longest) ** (1 if linear else 2))
    activations = batch * length * (config.d_model + config.d_ff) * torch.float32.itemsize
    return activations + (0 if linear else maps_at_once(config) * (stored_once(config, length, batch) or 0))


def _bytes_of_numbers(config: ModelConfig) -> int:
    """Count the bytes of a model's numbers and of its block's gradients."""
    with told_of(config.mixer):
        counted = parameters(config)
    return (counted.total + counted.blocks) * torch.float32.itemsize


def _left_out(label: str, length: int, needed: int, free: int) -> str:
    return (
        f"{label} is left out at {length:,} tokens: it would take some {needed / 2**30:,.1f} GiB of memory, "
        f"and {free / 2**30:,.1f} GiB are free."
    )
