"""Which model inputs do the rows of a task give?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from headscope.corpus.document import Example
from headscope.errors import InputError
from headscope.tasks.checkpoint import TaskModel
from headscope.tasks.read import Row, TaskData

MAX_LENGTH = 128  # tokens, as in BERT's own scripts for GLUE
AT_ONCE = 1000  # rows that the tokenizer gets in one call


@dataclass(frozen=True)
class Encoded:
    """Model inputs in the order of the rows.

    examples  each is its own document: examples are what the bootstrap resamples
    labels    [example] int64 ids of classes, or float64 numbers
    cut       how many were longer than the limit and lost tokens
    limit     tokens of an example at most, special ones included
    """

    examples: list[Example]
    labels: npt.NDArray[Any]
    cut: int
    limit: int

    @property
    def note(self) -> str | None:
        """What is to be told of the cut ones; None if there are none."""
        if not self.cut:
            return None
        return f"{self.cut} of {len(self.examples)} examples cut to {self.limit} tokens"


def encode(model: TaskModel, data: TaskData, *, max_length: int = MAX_LENGTH) -> Encoded:
    """The rows as the model's own tokenizer frames them, one text or two.

    max_length  tokens at most, special ones included, and never more than the model takes. The
                longer text of a pair loses its last tokens first, as in GLUE's own scripts;
                `Encoded.cut` counts such rows
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
    return Encoded(examples, data.labels, cut, limit)


def _examples(tokenizer: Any, rows: Sequence[Row], limit: int) -> list[Example]:
    found = _call(
        tokenizer, rows, truncation="longest_first", max_length=limit,
        return_special_tokens_mask=True,
    )  # fmt: skip
    # Where the tokenizer does not tell segments, the network has learned without them.
    segments = found.get("token_type_ids") or [[0] * len(ids) for ids in found["input_ids"]]
    return [
        Example(
            row.id,
            row.id,
            np.array(found["input_ids"][at], np.int64),
            np.array(segments[at], np.int64),
            np.array(found["special_tokens_mask"][at], bool),
        )
        for at, row in enumerate(rows)
    ]


def _call(tokenizer: Any, rows: Sequence[Row], **options: Any) -> Any:
    """What the tokenizer says of the rows; it is told everything, whatever it was saved with."""
    texts: list[list[str]] = [[row.text_a for row in rows]]
    if rows and rows[0].text_b is not None:
        texts.append([row.text_b or "" for row in rows])
    options = {"truncation": False, "padding": False, "verbose": False} | options
    return tokenizer(*texts, add_special_tokens=True, **options)
