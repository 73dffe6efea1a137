"""Numbers that tables and cards give by name: what each is, by the name that a reader sees."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import numpy as np

from .judging import NUMBER
from .page import Said
from .pattern import HEAD, Match, Pattern
from .totals import Quantity
from .world import World, places, rank_of

OF_NAME: dict[str, str] = {
    "to itself": "to self", "to previous token": "to previous", "to next token": "to next",
    "to first token": "to first", "to [CLS]": "to cls", "to [SEP]": "to sep",
    "to punctuation": "to punctuation", "to [SEP] from [SEP]": "sep from sep",
    "to [SEP] from other tokens": "sep from other",
    "of words to same word elsewhere": "of words to the same word",
    "entropy, all tokens": "entropy", "entropy, [CLS] only": "entropy of cls",
    "within 3 tokens": "nearby", "mean distance of attention": "mean distance",
    "value norm, mean": "value norm", "value norm of [CLS]": "value norm of cls",
    "value norm of [SEP]": "value norm of sep", "value norm of punctuation":
    "value norm of punctuation", "value norm of other tokens": "value norm of other",
    "weighted norm of [CLS]": "norm of cls", "weighted norm of [SEP]": "norm of sep",
    "weighted norm of punctuation": "norm of punctuation",
    "weighted norm of other tokens": "norm of other",
    "weighted norm of first token": "norm of first",
    "summed attention to [CLS]": "to cls", "summed attention to [SEP]": "to sep",
    "summed attention to punctuation": "to punctuation", "inputs with a sink": "sink",
}  # fmt: skip
CV = "value norm, CV"
N = "|".join(sorted(map(re.escape, (*OF_NAME, CV)), key=len, reverse=True))


def quantity(w: World, name: str) -> Quantity:
    return w.totals[OF_NAME[name]]


def value_of(w: World, name: str, at: tuple[int, int]) -> Quantity | float:
    """A number of a head; of the coefficient of variation without its error."""
    if name == CV:
        mean, square = w.totals["value norm"].value[at], w.totals["value norm squared"].value[at]
        return float(np.sqrt(max(square - mean**2, 0)) / mean)
    return quantity(w, name)[at]


def _named(w: World, m: Match) -> Quantity | float:
    return value_of(w, m["name"], places(m["head"]))


def _rank(w: World, m: Match) -> list[str]:
    """The rank, and the share of the other heads that lie below."""
    if m["name"] == CV:
        return []
    values, at = quantity(w, m["name"]).value, places(m["head"])
    near = np.isclose(values, values[at], rtol=3e-5, atol=1e-9).sum() - 1  # float32 may tell apart
    rank = rank_of(values, at)
    below = 100 * (values < values[at]).sum() / (values.size - 1)
    wrong = []
    if abs(int(m["rank"]) - rank) > near:
        wrong.append(f"says rank {m['rank']}, is {rank}")
    if abs(int(m["below"]) - below) > 0.51 + 100 * near / (values.size - 1):
        wrong.append(f"says {m['below']} % lie below, {below:.1f} % do")
    return wrong


PATTERNS = (
    Pattern("number by name, per cent", HEAD + rf"(?P<name>{N}) {{value%}}$", {"value": _named}),
    Pattern(
        "number by name",
        HEAD + rf"(?P<name>{N}) {{value#}}(?: (?:nats|tokens))?$",
        {"value": _named},
        unbounded=("value",),
    ),
    Pattern(
        "number of a card, per cent",
        HEAD + rf"(?P<name>{N}) {{value%}}; rank (?P<rank>\d+), "
        r"(?P<below>\d+) % below$",
        {"value": _named},
        also=_rank,
    ),
    Pattern(
        "number of a card",
        HEAD + rf"(?P<name>{N}) {{value#}}(?: (?:nats|tokens))?; rank "
        r"(?P<rank>\d+), (?P<below>\d+) % below$",
        {"value": _named},
        also=_rank,
        unbounded=("value",),
    ),
)


def rows_as_sentences(said: Iterable[Said]) -> Iterator[Said]:
    """The table of heads, a sentence for each of its cells; all else as it is."""
    columns: tuple[str, ...] = ()
    for one in said:
        if one.where == "table" and one.cells:
            if one.cells[0] in ("Head", "Head "):
                columns = one.cells
                continue
            if columns and len(columns) == len(one.cells):
                for column, cell in zip(columns[2:], one.cells[2:], strict=True):
                    name = re.sub(r"(nats|tokens)$", "", column).strip() or column
                    name = column if column in OF_NAME else name
                    yield Said("table of heads", f"{one.cells[0]} {name} {cell}")
                continue
        yield one


CARD = re.compile(rf"^  (?P<name>\S.*?) +(?P<value>{NUMBER}.*?) +(?P<rank>\d+) +(?P<below>\d+) %")


def read_card(text: str) -> Iterator[Said]:
    """The lines of `headscope head RUN L3H9`, with the head before each."""
    head = re.match(r"L\d+·H\d+", text)
    assert head is not None
    for line in text.splitlines()[1:]:
        row = CARD.match(line)
        if row:
            yield Said(
                "card",
                f"{head[0]} {row['name']} {row['value']}; rank {row['rank']}, "
                f"{row['below']} % below",
            )
        elif re.match(r"  .*→.*heads$", line):
            yield Said("card", f"{head[0]} {line.strip()}")
        elif re.match(r"\d+\. ", line):
            yield Said("card", f"{head[0]} {line.partition('. ')[2]}")
