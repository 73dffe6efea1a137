"""Writes what the model did with a text as one binary answer: JSON, and arrays behind it.

    4 bytes   length of the JSON, little endian
    JSON      the data of `views.view_page.payload`; an array is [first byte, bytes] of what follows
    bytes     maps and norms as that page has them, but neither compressed nor in base64

Exact weights and vectors of a head come when they are asked for, as `block_of` packs them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headscope.core.accumulators import Array
from headscope.errors import InputError
from headscope.live.requests import HeadRequest
from headscope.views.captured_example import ExampleMaps
from headscope.views.example_labels import stack_labels
from headscope.views.packed_arrays import block_of, joined
from headscope.views.view_page import payload

MOST_TOLD = 8  # tokens or classes, with the largest probabilities before or after
MOST_PLACES = 4  # masks
BITS = 16  # of a number of a vector
Labels = Sequence[Sequence[str]]
Outcome = dict[str, Any]


@dataclass(frozen=True)
class Read:
    """A text as the model read it, with the changed model's maps and the model's answer."""

    shown: ExampleMaps
    outcome: Outcome


def told(
    kind: str,
    places: Sequence[int],
    before: Array | None,
    after: Array | None,
    *,
    name: Callable[[int], str],
    moved: Sequence[float] | None,
) -> Outcome:
    """The model's answer as plain values.

    places  tokens at which it tells a token
    before  [place, output] probabilities of the model as it is; None without a head
    after   of the changed model; None where nothing is changed
    name    of an output, by its number
    moved   [token] 1 - cosine between the output vectors, before and after
    """
    rows = []
    for row, one in enumerate(() if before is None else before[:MOST_PLACES]):
        other = one if after is None else after[row]
        order = np.argsort(-np.maximum(one, other), kind="stable")[:MOST_TOLD]
        shown = sorted(order.tolist(), key=lambda number: -one[number])
        rows.append(
            {
                "place": int(places[row]) if places else None,
                "told": [
                    [name(at), _short(one[at]), None if after is None else _short(other[at])]
                    for at in shown
                ],
            }
        )
    return {"kind": kind, "rows": rows, "moved": None if moved is None else list(moved)}


def _short(share: Any) -> float:
    return float(f"{float(share):.5g}")


def answer(read: Read, labels: Labels | None = None) -> bytes:
    """The answer to a text.

    labels  [layer][head] what heads do, of a run; None: what they do in this text
    """
    parts, size = list[bytes](), 0

    def keep(*arrays: Array) -> list[int]:
        nonlocal size
        parts.append(joined(*arrays))
        size += len(parts[-1])
        return [size - len(parts[-1]), len(parts[-1])]

    shown = read.shown
    named: list[Labels] = [stack_labels(stack, shown.sides) for stack in shown.stacks]
    if labels and (len(labels), len(labels[0])) == shown.stacks[0].attention.shape[:2]:
        named[0] = labels
    data = payload(shown, labels=named, detail="none", pack=keep)
    for stack in data["stacks"]:
        _ask_for_all(stack)
        if (last := stack["measures"][-1])["signed"]:  # what came of the change: after less before
            last |= {"minuend": last["subtrahend"], "subtrahend": 0, "label": "change of attention"}
    head = json.dumps({"data": data, "outcome": read.outcome}, allow_nan=False).encode()
    return b"".join([len(head).to_bytes(4, "little"), head, *parts])


def _ask_for_all(stack: dict[str, Any]) -> None:
    """The page may ask for every head's exact weights; none of them is there yet."""
    places = [[layer, head] for layer in range(stack["layers"]) for head in range(stack["heads"])]
    detail = stack["detail"]
    why = "" if detail["vectors"] else detail["why"]
    there: dict[str, Any] = {"heads": places, "bits": BITS, "why": why, "blocks": []}
    stack["detail"] = detail | there | {"untrained": []}


def head_answer(shown: ExampleMaps, request: HeadRequest) -> bytes:
    """Exact weights and vectors of one head, as the page unpacks them.

    raises  InputError for a head that is not there
    """
    at, *place = request.place
    size = shown.stacks[at].attention.shape[:2] if at < len(shown.stacks) else (0, 0)
    if place[0] >= size[0] or place[1] >= size[1]:
        raise InputError(f"found the head {request.place}, counted from 0, which does not exist")
    return bytes(block_of(shown.stacks[at], (place[0], place[1]), bits=BITS, pack=joined))
