"""Encode the examples of a task and compute a model's answers to them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from headscope.core.accumulators import Array, Float64
from headscope.corpus.document import Example
from headscope.corpus.packing import batches
from headscope.errors import InputError
from headscope.model.model import evaluating, forward
from headscope.tasks.task_data import TaskData, TaskExample
from headscope.tasks.task_model import TaskModel

MAX_LENGTH = 128  # tokens, as in BERT's own scripts for GLUE
AT_ONCE = 1000  # rows that the tokenizer gets in one call


@dataclass(frozen=True)
class EncodedTask:
    """Model inputs in the order of the rows.

    examples  each is its own document: examples are what intervals are over
    labels    [example] int64 ids of classes, or float64 numbers
    cut       how many were longer than the limit and lost tokens
    limit     tokens of an example at most, special ones included
    """

    examples: list[Example]
    labels: Array
    cut: int
    limit: int

    @property
    def note(self) -> str | None:
        """A sentence on truncated examples; None without any."""
        if not self.cut:
            return None
        return f"{self.cut} of {len(self.examples)} examples cut to {self.limit} tokens"


def encode(model: TaskModel, data: TaskData, *, max_length: int = MAX_LENGTH) -> EncodedTask:
    """The rows encoded by the model's own tokenizer, one text or two.

    max_length  tokens at most, special ones included, and never more than the model takes. The
                longer text of a pair loses its last tokens first, as in GLUE's own scripts;
                `EncodedTask.cut` counts such rows
    raises      InputError if so few tokens fit that a text may vanish
    """
    limit = min(max_length, model.model.limit)
    tokenizer: Any = model.model.tokenizer
    room = tokenizer.num_special_tokens_to_add(pair=True)
    if limit < room + 2:
        raise InputError(
            f"a length of {limit} tokens; wanted {room + 2} (special tokens and two more) or more"
        )
    examples: list[Example] = []
    cut = 0
    for start in range(0, len(data.rows), AT_ONCE):
        rows = data.rows[start : start + AT_ONCE]
        examples += _examples(tokenizer, rows, limit)
        lengths = [len(ids) for ids in _call(tokenizer, rows)["input_ids"]]
        cut += sum(length > limit for length in lengths)
    return EncodedTask(examples, data.labels, cut, limit)


def _examples(tokenizer: Any, rows: Sequence[TaskExample], limit: int) -> list[Example]:
    encoded = _call(
        tokenizer,
        rows,
        truncation="longest_first",
        max_length=limit,
        return_special_tokens_mask=True,
    )
    # Where the tokenizer gives no segment ids, the network has learned without them.
    segments = encoded.get("token_type_ids") or [[0] * len(ids) for ids in encoded["input_ids"]]
    columns = (encoded["input_ids"], segments, encoded["special_tokens_mask"])
    return [
        Example(row.id, row.id, np.array(ids), np.array(segment), np.array(special, bool))
        for row, ids, segment, special in zip(rows, *columns, strict=True)
    ]


def _call(tokenizer: Any, rows: Sequence[TaskExample], **options: Any) -> Any:
    """The tokenizer's encoding of the rows; every option is given, whatever it was saved with."""
    texts: list[list[str]] = [[row.text_a for row in rows]]
    if rows and rows[0].text_b is not None:
        texts.append([row.text_b or "" for row in rows])
    options = {"truncation": False, "padding": False, "verbose": False} | options
    return tokenizer(*texts, add_special_tokens=True, **options)


BATCH_TOKENS = 2048  # padded tokens of a batch


def outputs(model: TaskModel, encoded: EncodedTask, *, batch_tokens: int = BATCH_TOKENS) -> Float64:
    """[example, class] logits, or [example] predictions of a regression, in the order of the rows.

    Batches of similar length, nothing drops out, no gradients; how examples are batched moves
    float32 logits by less than 1e-5.
    """
    answers = np.empty((len(encoded.examples), model.task.outputs))
    with evaluating(model.model.network):
        for places in batches(encoded.examples, budget=batch_tokens):
            answers[places] = logits(model, [encoded.examples[at] for at in places])
    return answers[:, 0] if model.task.is_regression else answers  # [example] or [example, class]


def logits(model: TaskModel, examples: Sequence[Example]) -> Float64:
    """[example, output] of one batch; the network is run as it is."""
    output: Any = forward(model.model.network, *model.model.batch(examples).inputs)
    answers: torch.Tensor = output.logits
    return answers.double().cpu().numpy()
