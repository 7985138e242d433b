"""Seeing that a model can read a task before it is scored or trained on it."""

from pathlib import Path

from headstock.errors import UserError
from headstock.model.transformer import Transformer
from headstock.tasks import tokenizers
from headstock.tasks.base import Task


def refuse_misfit(folder: Path, model: Transformer, task: Task) -> None:
    """Raise UserError where a model cannot read a task: other tokens, rows longer than its learned table, no mask."""
    config = model.config
    if task.causal and not config.causal:
        raise UserError(
            f"the model in {folder} has causal=false and sees the very tokens that {task.name} has it foretell: choose "
            f"a model that is causal, a program compiled with --causal, or a task with causal=false."
        )
    if task.vocab_size != config.vocab_size:
        raise UserError(
            f"{task.name} has {task.vocab_size} tokens and the model in {folder} has {config.vocab_size}: choose a "
            f"task with its vocabulary."
        )
    if (folder / tokenizers.FILE_NAME).exists() and tokenizers.load(folder) != task.tokenizer:
        raise UserError(
            f"{task.name} has other tokens than the model in {folder} was trained on, though as many: choose a task "
            f"with its vocabulary."
        )
    if task.context > config.context and (config.position == "learned" or config.mixer == "table"):
        raise UserError(
            f"{task.name} has rows of {task.context} tokens and the model in {folder} has learned {config.context} "
            f"positions: choose a context of at most {config.context}."
        )
