"""What do a tiny checkpoint and a task that it can learn look like?

Right is class 1 where a text has the word "cat"; a text has 2 to 14 words of a dozen.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    BertModel,
    PreTrainedTokenizerFast,
)

from headscope.model.checkpoint import quietly
from headscope.tasks.task import Task
from headscope.tasks.task_data import TaskData, TaskExample
from model.families.tokenizers_made import wordpiece

MOOD = Task("mood", ("no", "cat"), ("accuracy", "f1"))
AMOUNT = Task("amount", (), ("pearson", "spearman"))
WORDS = ("the", "a", "b", ".", ",")


def config(**changes: Any) -> BertConfig:
    usual = {
        "vocab_size": 13,
        "hidden_size": 24,
        "num_hidden_layers": 2,
        "num_attention_heads": 3,
        "intermediate_size": 32,
        "max_position_embeddings": 48,
    }
    return BertConfig(**usual | changes)


def checkpoint(folder: Path, *, seed: int = 0, head: Task | None = None, **changes: Any) -> Path:
    """A tiny BERT with its tokenizer; with the head of a task, or none."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        if head is None:
            network: Any = BertModel(config(**changes))
        else:
            names = dict(enumerate(head.labels or (head.name,)))
            options = {"id2label": names, "label2id": {v: k for k, v in names.items()}} | changes
            network = BertForSequenceClassification(config(**options))
        for parameter in network.parameters():  # sharp attention, biases that are not 0
            parameter.data += 0.3 * torch.randn(parameter.shape)
    with quietly():
        network.save_pretrained(folder)
        tokenizer().save_pretrained(folder)
    return folder


def tokenizer() -> PreTrainedTokenizerFast:
    """As BERT's, which tells the two segments of a pair."""
    made = wordpiece()
    made.model_input_names = ["input_ids", "token_type_ids", "attention_mask"]
    made.init_kwargs["model_input_names"] = made.model_input_names
    return made


def rows(
    count: int, *, seed: int = 0, pair: bool = False, regression: bool = False
) -> tuple[TaskExample, ...]:
    rng = np.random.default_rng(seed)
    found = []
    for at in range(count):
        words = list(rng.choice(WORDS, rng.integers(2, 15)))
        cats = int(rng.integers(0, 3)) if regression else at % 2
        for _ in range(cats):
            words.insert(int(rng.integers(0, len(words) + 1)), "cat")
        second = " ".join(rng.choice(WORDS, rng.integers(1, 9))) if pair else None
        found.append(
            TaskExample(f"r{at}", " ".join(words), second, float(cats) if regression else cats)
        )
    return tuple(found)


def data(count: int, *, seed: int = 0, task: Task = MOOD, pair: bool = False) -> TaskData:
    made = rows(count, seed=seed, pair=pair, regression=task.is_regression)
    return TaskData(task, made, f"made {seed}", "0" * 64)


def write_tsv(path: Path, made: tuple[TaskExample, ...]) -> Path:
    lines = [f"{row.text_a}\t{row.label}" for row in made]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["sentence\tlabel", *lines]) + "\n", "utf-8")
    return path
