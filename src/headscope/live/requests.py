"""What a page may request: a text, what is changed in the model, one head's exact numbers.

Everything that comes from outside is checked here, once, before anything else sees it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from headscope.errors import InputError

if TYPE_CHECKING:
    from starlette.requests import Request

MOST_CHARACTERS = 20_000  # of both texts
Changed = frozenset[tuple[int, ...]]


@dataclass(frozen=True)
class Changes:
    """Changes of the model, counted from 0.

    off    (stack, layer, head) whose weights are all 0: they add nothing
    even   (stack, layer, head) whose weights are the same for all tokens that a token may see
    zero   (side, token) whose value is zero for all heads: nobody takes anything there
    layer  the only one in which it is, of every stack that reads the side; None: all layers
    """

    off: Changed = frozenset()
    even: Changed = frozenset()
    zero: Changed = frozenset()
    layer: int | None = None

    def __bool__(self) -> bool:
        return bool(self.off or self.even or self.zero)


WIDTHS = {"off": 3, "even": 3, "zero": 2}  # numbers of each
TEXTS, PLACE, PAIR = ("text", "pair"), ("stack", "layer", "head"), ("query", "key")


class AbsentError(InputError):
    """Changes of what is not there.

    absent  name and numbers of each, as they were sent: ["zero", 0, 999]
    """

    def __init__(self, absent: list[list[Any]], wanted: str) -> None:
        self.absent = absent
        named = ", ".join(" ".join(map(str, one)) for one in absent)[:80]
        super().__init__(f"found changes of what is not there, from 0: {named}; wanted {wanted}")


@dataclass(frozen=True)
class ReadRequest:
    """A text or two, and what is changed while they are read; pair is "" where there is none."""

    text: str
    pair: str = ""
    changes: Changes = field(default_factory=Changes)


@dataclass(frozen=True)
class HeadRequest:
    """A head's exact weights and vectors in a text, of the model as it is.

    place      stack, layer, head
    untrained  of an untrained network of its shape instead
    """

    text: ReadRequest
    place: tuple[int, int, int]
    untrained: bool = False


@dataclass(frozen=True)
class ScoreRequest:
    """What wrote one score of a head, of the model as it is.

    place  stack, layer, head
    pair   positions of query and key
    """

    text: ReadRequest
    place: tuple[int, int, int]
    pair: tuple[int, int]


def read_request(body: bytes) -> ReadRequest:
    """The parsed request; raises InputError for an invalid one."""
    fields = json_object(body, *TEXTS, "changes")
    changes = fields.get("changes", {})
    if not isinstance(changes, dict) or not changes.keys() <= {*WIDTHS, "layer"}:
        raise InputError(f"found changes {str(changes)[:60]}; wanted off, even, zero and layer")
    some = {name: _places(name, changes.get(name, [])) for name in WIDTHS}
    if both := some["even"] & some["off"]:
        raise InputError(f"found the head {min(both)}, from 0, both off and even; wanted one")
    layer = None if (layer := changes.get("layer")) is None else _number(layer)
    if layer is not None and not some["zero"]:
        raise InputError(f"found the layer {layer} of no token; wanted tokens of value zero")
    return ReadRequest(*_texts(fields), Changes(**some, layer=layer))


def head_request(body: bytes) -> HeadRequest:
    """As `read_request`, with stack, layer and head, and perhaps untrained."""
    fields = json_object(body, *TEXTS, *PLACE, "untrained")
    if not isinstance(untrained := fields.get("untrained", False), bool):
        raise InputError(f"found untrained {str(untrained)[:40]!r}; wanted true or false")
    stack, layer, head = (_number(fields.get(name)) for name in PLACE)
    return HeadRequest(ReadRequest(*_texts(fields)), (stack, layer, head), untrained)


def score_request(body: bytes) -> ScoreRequest:
    """As `read_request`, with stack, layer and head, and the positions of query and key."""
    fields = json_object(body, *TEXTS, *PLACE, *PAIR)
    stack, layer, head, query, key = (_number(fields.get(name)) for name in (*PLACE, *PAIR))
    return ScoreRequest(ReadRequest(*_texts(fields)), (stack, layer, head), (query, key))


class LargeError(InputError):
    """A request that is larger than any that the page sends."""


async def json_bytes(request: Request, most: int) -> bytes:
    """The content of a request; raises InputError for another kind, LargeError for more bytes."""
    if request.headers.get("content-type", "").partition(";")[0] != "application/json":
        raise InputError("found another kind of content; wanted application/json")
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > most:
            raise LargeError(
                f"found a larger request; wanted {most:,} bytes at most: shorten the text"
            )
    return body


def json_object(body: bytes, *names: str) -> Mapping[str, Any]:
    """The object in these bytes; raises InputError for others, and for fields of other names."""
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict):
        raise InputError(f"found {body[:40]!r}; wanted a JSON object")
    if unknown := sorted(fields.keys() - set(names)):
        wanted = ", ".join(names) or "none"
        raise InputError(f"found the field {unknown[0][:40]!r}; wanted {wanted}")
    return fields


def _texts(fields: Mapping[str, Any]) -> tuple[str, str]:
    text, pair = fields.get("text"), fields.get("pair", "")
    if not isinstance(text, str) or not isinstance(pair, str):
        raise InputError("found a text that is not a string; wanted text, and perhaps pair")
    if (length := len(text) + len(pair)) > MOST_CHARACTERS:
        raise InputError(
            f"found {length:,} characters; wanted {MOST_CHARACTERS:,} at most: shorten the text"
        )
    # Half of a surrogate pair is no text, and tokenizers refuse it.
    return text.encode("utf-8", "replace").decode(), pair.encode("utf-8", "replace").decode()


def _places(name: str, numbers: Any) -> Changed:
    rows: list[Any] = numbers if isinstance(numbers, list) else [None]
    if not all(isinstance(row, list) and len(row) == WIDTHS[name] for row in rows):
        raise InputError(
            f"found {name} = {str(numbers)[:60]}; wanted rows of {WIDTHS[name]} numbers"
        )
    return frozenset(tuple(_number(value) for value in row) for row in rows)


def _number(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 2**31:
        raise InputError(f"found {str(value)[:40]!r}; wanted a whole number, from 0")
    return value
