"""Damage the content of a file: bytes, lines, numbers, or the values inside its JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from random import Random
from typing import Any

# What readers have to meet some day: separators, numbers beyond all, no text, marks of formats.
STRANGE = (
    b"", b"\0", b"\t", b"\n", b"\r\n", b"\n\n", b" ", b"_", b"-", b"-1", b"0", b"1e999", b"NaN",
    b"-inf", b"1e23", b"99999999999999999999", b"9" * 5000, b"\xff", b"\xef\xbb\xbf",
    b"\xed\xa0\x80",    b"\\ud800", b'"', b"'", b"{", b"}",
    b"[", b"]", b"(", b")", b"null", b"true", b"[" * 60_000,
    b'{"a":' * 60_000, b"<" * 3000, b"&lt;", b"(" * 5000, b" " * 80_000, b"x" * 100_000, b"#",
    "²٣𝟗é\u2028\u0085".encode(), b"../../x", b"\x1b[2J", b"1/0", b"=",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 7, 1.5, -0.0, 1e300, 2**31, 2**63, 2**70, "", "x", "é\ud800",
    "x" * 5000, [], {}, [[]], [None], [0], ["x"], {"x": 1}, "../x", "[UNK]", float("nan"),
    float("inf"), "\0", "bert", "gpt2", "eager", "float32", [1] * 300, {"0": "a"}, "gelu",
)  # fmt: skip
LARGEST = 1 << 20  # bytes: what takes long may not do so for its size alone
TRIES = 10  # a change may leave all as it is, as of a line and its like
Change = Callable[[bytes, Random, bytes], bytes]


def damaged(content: bytes, rng: Random, other: bytes, *, is_json: bool) -> bytes:
    """The content, changed in one place or a few.

    other    content of another sample, of which pieces may get into this one
    is_json  whether its values may be changed as well as its bytes
    """
    before = content
    for _ in range(TRIES):
        for _ in range(rng.choice((1, 1, 1, 2, 4))):
            if is_json and rng.random() < 0.7:
                content = _other_value(content, rng)
            else:
                content = rng.choice(CHANGES)(content, rng, other)
        if content != before:
            break
    return content[:LARGEST]


def _flip(content: bytes, rng: Random, other: bytes) -> bytes:
    at = rng.randrange(len(content)) if content else 0
    return content[:at] + bytes([rng.randrange(256)]) + content[at + 1 :]


def _bit(content: bytes, rng: Random, other: bytes) -> bytes:
    at = rng.randrange(len(content)) if content else 0
    return (
        content[:at]
        + bytes(byte ^ 1 << rng.randrange(8) for byte in content[at : at + 1])
        + (content[at + 1 :])
    )


def _cut(content: bytes, rng: Random, other: bytes) -> bytes:
    return content[: rng.randrange(len(content) + 1)]


def _lose(content: bytes, rng: Random, other: bytes) -> bytes:
    start, length = rng.randrange(len(content) + 1), rng.choice((1, 2, 8, 64))
    return content[:start] + content[start + length :]


def _strange(content: bytes, rng: Random, other: bytes) -> bytes:
    start, replaced = rng.randrange(len(content) + 1), rng.choice((0, 0, 1, 5))
    return content[:start] + rng.choice(STRANGE) + content[start + replaced :]


def _splice(content: bytes, rng: Random, other: bytes) -> bytes:
    start, at = rng.randrange(len(content) + 1), rng.randrange(len(other) + 1)
    return content[:start] + other[at : at + rng.choice((4, 40, 400))] + content[start:]


def _lines(content: bytes, rng: Random, other: bytes) -> bytes:
    lines = content.split(b"\n")
    at, to = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[at:at] = rng.choice(([lines[to]], [b""], [lines[to]] * 50, []))
    del lines[to : to + rng.choice((0, 1))]
    return b"\n".join(lines)


def _field(content: bytes, rng: Random, other: bytes) -> bytes:
    """One cell of a table, or word of a line."""
    lines = content.split(b"\n")
    at = rng.randrange(len(lines))
    separator = b"\t" if b"\t" in lines[at] else b"," if b"," in lines[at] else b" "
    cells = lines[at].split(separator)
    cells[rng.randrange(len(cells))] = rng.choice((*STRANGE, rng.choice(cells)))
    lines[at] = separator.join(cells)
    return b"\n".join(lines)


CHANGES: tuple[Change, ...] = (
    _flip,
    _bit,
    _bit,
    _cut,
    _lose,
    _strange,
    _splice,
    _lines,
    _field,
    _field,
)


def _other_value(content: bytes, rng: Random) -> bytes:
    """JSON, or one line of JSON lines, with a value replaced, removed, repeated or exchanged."""
    lines = [content] if _parsed(content) is not None else content.split(b"\n")
    at = rng.randrange(len(lines))
    if (tree := _parsed(lines[at])) is None:
        return content
    places: list[tuple[Any, Any]] = []
    if isinstance(tree, dict | list):
        _walk(tree, places)
    if places:
        holder, key = rng.choice(places)
        choice = rng.random()
        if choice < 0.15:
            del holder[key]
        elif choice < 0.3:
            other, there = rng.choice(places)
            if (holder, key) != (other, there) and not isinstance(other[there], dict | list):
                holder[key] = other[there]
        elif choice < 0.35 and isinstance(holder, list):
            holder[key:key] = [deepcopy(holder[key]) for _ in range(3)]
        elif choice < 0.4 and isinstance(holder, dict):
            holder[str(rng.choice(VALUES))[:20]] = deepcopy(rng.choice(VALUES))
        else:
            holder[key] = deepcopy(rng.choice(VALUES))
    else:
        tree = deepcopy(rng.choice(VALUES))
    lines[at] = json.dumps(tree).encode()
    return b"\n".join(lines)


def _parsed(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def _walk(tree: Any, places: list[tuple[Any, Any]]) -> None:
    keys = list(tree) if isinstance(tree, dict) else list(range(len(tree)))
    for key in keys:
        places.append((tree, key))
        if isinstance(tree[key], dict | list):
            _walk(tree[key], places)
