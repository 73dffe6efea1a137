"""Which class, or which number, does a cell of the label column mean?"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from headscope.errors import CorpusError
from headscope.tasks.task import Task, own_task, plain

# Whole numbers of which there are more are taken for a measure, not for names of classes.
MOST_CLASSES = 20


class LabelFault(ValueError):
    """What is wrong with a cell, and what was wanted."""


def reader_of(task: Task) -> Callable[[Any], int | float]:
    """What reads a cell: the id of a class (by its name or its id), or a finite number.

    It raises LabelFault for a cell that is empty, -1 (the hub's sign for a hidden label), unknown,
    or not finite.
    """
    names = {plain(label): at for at, label in enumerate(task.labels)}
    # Classes that are called 1, 2, 3 are meant by these numbers, never by their ids.
    called = [as_number(label) for label in task.labels]
    ids = {number: at for at, number in enumerate(range(len(called)) if None in called else called)}

    by_id = f", or 0 to {len(called) - 1}" if None in called else ""

    def number(cell: Any) -> float:
        value = as_number(cell)
        if value is None or not math.isfinite(value):
            raise LabelFault(f"{_shown(cell)}; wanted a finite number")
        return value

    def class_id(cell: Any) -> int:
        if not missing(cell) and plain(str(cell)) in names:
            return names[plain(str(cell))]
        value = as_number(cell)
        if missing(cell) or value == -1:
            raise LabelFault("missing; wanted a split with labels (dev, not test)")
        if value not in ids:
            raise LabelFault(f"{_shown(cell)}; wanted {', '.join(task.labels)}{by_id}")
        return ids[value]

    return number if task.is_regression else class_id


def guessed_task(name: str, cells: Sequence[Any], *, source: str) -> Task:
    """The user's task that a whole label column tells of.

    Numbers of which one is not whole, or of which there are more than 20 different, make a
    regression; everything else names classes, numbers in their order and words in that of the
    alphabet.

    raises  CorpusError if there are no labels, or nearly as many as rows
    """
    there = {str(cell).strip(): as_number(cell) for cell in cells if not missing(cell)}
    if not there:
        raise CorpusError(f"{source}: all labels are missing; wanted a class or a number each")
    if None not in there.values():
        numbers = [v for v in there.values() if v is not None and math.isfinite(v)]
        whole = all(value.is_integer() for value in numbers)
        if not whole or len(there) > MOST_CLASSES:
            return own_task(name, None)
        return own_task(name, _named(source, sorted({int(value) for value in numbers})))
    if len(there) > max(MOST_CLASSES, len(cells) // 2):
        raise CorpusError(
            f"{source}: the label column holds {len(there)} different texts in {len(cells)} rows; "
            "wanted classes or numbers: say which column it is with --columns label=NAME"
        )
    return own_task(name, _named(source, sorted(there)))


def _named(source: str, classes: Sequence[Any]) -> list[str]:
    if len(classes) < 2:
        raise CorpusError(all_alike(source, str(classes[0]) if classes else "nan"))
    return [str(one) for one in classes]


def all_alike(source: str, label: str | float) -> str:
    """What is said where every row has the same label."""
    return (
        f"{source}: every row has the label {_shown(label)}; wanted different ones, or there is "
        "nothing to tell apart"
    )


def missing(cell: Any) -> bool:
    """Whether a cell of a label column is empty."""
    return cell is None or (isinstance(cell, str) and not cell.strip())


def as_number(cell: Any) -> float | None:
    """The number that a cell holds; None if it holds none."""
    try:
        return float(cell)
    except (TypeError, ValueError):
        return None


def _shown(cell: Any) -> str:
    return repr(cell if isinstance(cell, int | float) else str(cell)[:60])
