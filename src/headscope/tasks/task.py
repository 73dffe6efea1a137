"""Which tasks are known, and what is right in them?

The nine tasks of GLUE (Wang et al. 2019, "GLUE: A Multi-Task Benchmark"), and any of the user's
own: a name, class names in the order of their ids, and metrics.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headscope.errors import InputError

METRICS = ("accuracy", "f1", "matthews", "pearson", "spearman")
OF_REGRESSION = ("pearson", "spearman")


@dataclass(frozen=True)
class Task:
    """One text or two, and what is to be told of them.

    name     of GLUE, or the user's own
    labels   class names in the order of their ids; none for a regression
    metrics  the first is the main one; see `metrics.score`
    """

    name: str
    labels: tuple[str, ...]
    metrics: tuple[str, ...]

    @property
    def is_regression(self) -> bool:
        """Whether a number is told, not a class."""
        return not self.labels

    @property
    def outputs(self) -> int:
        """How many numbers a network says of an example."""
        return max(len(self.labels), 1)


_YES_NO = ("entailment", "not_entailment")
# Class names and ids are those of the GLUE data and of the hub's copy of it; F1 stands before
# accuracy where the paper reports both (Kovaleva et al. 2019, Table 1).
GLUE: dict[str, Task] = {
    task.name: task
    for task in (
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
}


def plain(name: str) -> str:
    """A name without case, spaces, '-' and '_': SST-2, sst2 and SST_2 are one; -1 and 1 are not."""
    try:
        return f"{float(name):g}"
    except ValueError:
        return "".join(c for c in name.casefold() if c not in " -_")


_BY_PLAIN_NAME = {plain(name): task for name, task in GLUE.items()}


def find_task(name: str) -> Task:
    """The task of GLUE that has this name, in any spelling; raises InputError that lists them."""
    if plain(name) not in _BY_PLAIN_NAME:
        raise InputError(
            f"no task {name!r}; there are {', '.join(GLUE)}, and any of your own with --data FILE"
        )
    return _BY_PLAIN_NAME[plain(name)]


def is_known(name: str) -> bool:
    """Whether `find_task` has it."""
    return plain(name) in _BY_PLAIN_NAME


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
