"""Which maps and texts do the tests of the map classes make?"""

from __future__ import annotations

import numpy as np

from headscope.corpus.document import Example
from headscope.experiments.map_classifier.annotation_session import Drawn

SECRETS = ("model-of-nobody", "text-of-nobody", "document-of-nobody", "example-of-nobody")


def make_map(number, size):
    """Rows that sum to 1, another map for every number."""
    weights = np.random.default_rng(number).random((size, size)) ** 4
    return (weights / weights.sum(1, keepdims=True)).astype(np.float16)


def make_drawn(count, *, names=SECRETS):
    """Maps of 10, 11, 12, ... tokens, every other one with a second segment."""
    model, text, document, example = names
    return [
        Drawn(
            model,
            "f" * 64,
            text,
            document,
            example,
            layer=n % 6,
            head=n % 12,
            boundary=-1 if n % 2 else 4,
            map=make_map(n, 10 + n % 7),
        )
        for n in range(count)
    ]


def make_example(name, length, *, second=None, seed=0):
    """An input of the demo model; its second segment begins at `second`."""
    rng = np.random.default_rng([seed, length])
    segments = np.zeros(length, np.int64)
    if second is not None:
        segments[second:] = 1
    special = np.zeros(length, bool)
    special[[0, -1]] = True
    ids = np.concatenate([[101], rng.integers(1996, 9000, length - 2), [102]]).astype(np.int64)
    return Example(name, f"document of {name}", ids, segments, special)
