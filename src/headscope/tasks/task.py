"""The tasks that are known, and which class or number a cell of the label column means.

The nine tasks of GLUE (Wang et al. 2019, "GLUE: A Multi-Task Benchmark"), and any of the user's
own: a name, class names in the order of their ids, and metrics.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from headscope.errors import CorpusError, InputError

OF_REGRESSION = ("pearson", "spearman")


@dataclass(frozen=True)
class Task:
    """A task: from one text or two, predict a class or a number.

    name     of GLUE, or the user's own
    labels   class names in the order of their ids; none for a regression
    metrics  the first is the main one; see `metrics.score`
    """

    name: str
    labels: tuple[str, ...]
    metrics: tuple[str, ...]

    @property
    def is_regression(self) -> bool:
        """Whether the answer is a number, not a class."""
        return not self.labels

    @property
    def outputs(self) -> int:
        """How many numbers the network gives for an example."""
        return max(len(self.labels), 1)


_YES_NO = ("entailment", "not_entailment")
# Class names and ids are those of the GLUE data and of the hub's copy of it; F1 stands before
# accuracy where the paper reports both (Kovaleva et al. 2019, Table 1).
_TASKS = (
    Task("rte", _YES_NO, ("accuracy",)),
    Task("sst-2", ("negative", "positive"), ("accuracy",)),
    Task("sts-b", (), ("pearson", "spearman")),
    Task("mrpc", ("not_equivalent", "equivalent"), ("f1", "accuracy")),
    Task("qqp", ("not_duplicate", "duplicate"), ("f1", "accuracy")),
    Task("qnli", _YES_NO, ("accuracy",)),
    Task("mnli", ("entailment", "neutral", "contradiction"), ("accuracy",)),
    Task("cola", ("unacceptable", "acceptable"), ("matthews", "accuracy")),
    Task("wnli", ("not_entailment", "entailment"), ("accuracy",)),
)
GLUE: dict[str, Task] = {task.name: task for task in _TASKS}


def plain(name: str) -> str:
    """A name without case, spaces, '-' and '_': SST-2 and sst2 are equal; -1 and 1 are not."""
    try:
        return f"{float(name):g}"
    except ValueError:
        return "".join(c for c in name.casefold() if c not in " -_")


def known_task(name: str) -> Task | None:
    """The task of GLUE that has this name, in any spelling; None if there is none."""
    return next((task for task in _TASKS if plain(task.name) == plain(name)), None)


def find_task(name: str) -> Task:
    """The task of GLUE that has this name, in any spelling; raises InputError that lists them."""
    if (task := known_task(name)) is None:
        raise InputError(
            f"no task {name!r}; there are {', '.join(GLUE)}, and any of your own with --data FILE"
        )
    return task


def own_task(name: str, labels: Sequence[str] | None) -> Task:
    """A task of the user's: classes in this order; None for a regression.

    raises  InputError for fewer than two classes, or one named twice
    """
    if labels is None:
        return Task(name, (), OF_REGRESSION)
    if len(labels) < 2 or len({plain(label) for label in labels}) < len(labels):
        raise InputError(
            f"task {name!r} with the labels {', '.join(labels) or 'none'}; wanted two different "
            "ones or more"
        )
    return Task(name, tuple(labels), ("accuracy", "f1"))


# Whole numbers of which there are more are taken for a measure, not for names of classes.
MOST_CLASSES = 20


class LabelFault(ValueError):
    """What is wrong with a cell, and what was wanted."""


def reader_of(task: Task) -> Callable[[Any], int | float]:
    """A function from a cell to a class id (by name or id), or to a finite number.

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
    """The user's own task, guessed from a whole label column.

    Numbers of which one is not whole, or of which there are more than 20 different, make a
    regression; everything else names classes, numbers in their order and words in that of the
    alphabet.

    raises  CorpusError if there are no labels, or nearly as many as rows
    """
    there = {str(cell).strip(): as_number(cell) for cell in cells if not missing(cell)}
    if not there:
        raise CorpusError(
            f"{source}: all labels are missing; wanted a class or a number for each row"
        )
    classes: Sequence[object] = sorted(there)
    if None not in there.values():
        numbers = [v for v in there.values() if v is not None and math.isfinite(v)]
        if len(there) > MOST_CLASSES or not all(value.is_integer() for value in numbers):
            return own_task(name, None)
        classes = sorted({int(value) for value in numbers})
    elif len(there) > max(MOST_CLASSES, len(cells) // 2):
        raise CorpusError(
            f"{source}: the label column holds {len(there)} different texts in {len(cells)} rows; "
            "wanted classes or numbers: name the column with --columns label=NAME"
        )
    if len(classes) < 2:
        raise CorpusError(all_alike(source, str(classes[0]) if classes else "nan"))
    return own_task(name, [str(one) for one in classes])


def all_alike(source: str, label: str | float) -> str:
    """The message for data in which every row has the same label."""
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
