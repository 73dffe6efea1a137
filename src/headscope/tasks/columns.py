"""Which columns hold the text, the second text, the label and the id?

Recognised are the names of GLUE's own files, of the hub's copy of them, and the usual ones of
other data; anything else is said by name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headscope.errors import InputError

PAIRS = (
    ("sentence1", "sentence2"),
    ("#1 String", "#2 String"),  # MRPC
    ("question1", "question2"),  # QQP
    ("question", "sentence"),  # QNLI
    ("premise", "hypothesis"),  # MNLI on the hub
    ("text_a", "text_b"),
    ("text1", "text2"),
    ("question", "context"),
)
SINGLES = ("sentence", "text", "text_a", "review", "content")
# What annotators agreed on comes before the single votes that stand beside it in MNLI.
LABELS = ("gold_label", "label", "Quality", "is_duplicate", "score", "similarity", "labels")
IDS = ("idx", "index", "id", "guid", "pairID")
SINGLE_TASKS = ("sst-2", "cola")  # of GLUE; all others are pairs
COLA = ("source", "label", "star", "sentence")  # its files have no header
ROLES = ("text_a", "text_b", "label", "id")


@dataclass(frozen=True)
class Columns:
    """Names of columns; none where there is no such column."""

    text_a: str
    text_b: str | None
    label: str
    id: str | None


def choose(
    found: Sequence[str], *, source: str, pair: bool | None, given: Mapping[str, str] | None = None
) -> Columns:
    """The columns of a table.

    found   its column names
    pair    whether the task is about two texts; None if either will do
    given   {role: column} for those that are not to be guessed; "" for none
    raises  InputError if a role or a column does not exist, or a text or the label is not found
    """
    given = dict(given or {})
    for role, name in given.items():
        if role not in ROLES:
            raise InputError(f"columns: no role {role!r}; there are {', '.join(ROLES)}")
        if name and name not in found:
            raise InputError(f"{source} has no column {name!r}; it has {_listed(found)}")
    first, second = _texts(found, source, pair, given)
    label = given.get("label") or _first(LABELS, found)
    if label is None:
        raise InputError(
            f"{source} has no labels: none of its columns {_listed(found)} is one of "
            f"{', '.join(LABELS)}\nwanted a split with labels (dev, not test), or "
            "--columns label=NAME"
        )
    id_column = given["id"] if "id" in given else _first(IDS, found)
    return Columns(first, second, label, id_column or None)


def _texts(
    found: Sequence[str], source: str, pair: bool | None, given: Mapping[str, str]
) -> tuple[str, str | None]:
    if "text_a" in given:
        second = given.get("text_b") or None
        if pair and second is None:
            raise InputError(
                f"columns: text_a is {given['text_a']!r} and text_b is not given; this task "
                "compares two texts: give --columns text_a=NAME,text_b=NAME"
            )
        return given["text_a"], second
    pairs = [] if pair is False else [p for p in PAIRS if set(p) <= set(found)]
    if pairs:
        return pairs[0][0], given.get("text_b", pairs[0][1]) or None
    single = None if pair else _first(SINGLES, found)
    if single is None:
        wanted = "two texts" if pair else "one text" if pair is False else "one text or two"
        raise InputError(
            f"{source} has the columns {_listed(found)}; wanted {wanted}, say "
            f"{'sentence' if pair is False else 'sentence1 and sentence2'}\n"
            "say which they are: --columns text_a=NAME,text_b=NAME,label=NAME"
        )
    return single, given.get("text_b") or None


def _first(names: Sequence[str], found: Sequence[str]) -> str | None:
    return next((name for name in names if name in found), None)


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name[:40]) for name in names[:12])
    return f"{shown}, …" if len(names) > 12 else shown or "(none)"
