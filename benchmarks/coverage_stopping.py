"""Does an interval hold the true value where a run stops because it is narrow (`--until`)?

A corpus of which every document is known is read in random order; of many partitions some are
read, each as one group. After 30, 45, 60, 90, … documents its interval is looked at, by the
functions that a run uses and in as many groups, and reading ends when it is narrower than a width.
Beside how many hold the true value there stands how many would without `holding_at_every_look`, and
how many hold at all looks together, whatever ends the reading.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING

import numpy as np

from headscope.core.accumulators import REPLICATES, Float64, Ints, ratio
from headscope.core.confidence import holding_at_every_look
from headscope.core.intervals import POSITIVE, SHARE, Estimate, estimate, estimate_share
from headscope.corpus.drawn import MOST_PARTITIONS
from headscope.run.stopping import FEWEST_READ

if TYPE_CHECKING:
    from benchmarks.coverage import Cell

LOOKS = [FEWEST_READ * (2 + half) * 2**at // 2 for at in range(7) for half in (0, 1)]
WIDTHS = (0.2, 0.1, 0.04, 0.02)
KINDS = ("share", "mean", "ratio")


def stopping_table(cells: Sequence[Cell], *, draws: int, seed: int) -> Iterator[str]:
    """Lines of Markdown: coverage where reading ends, lowest and median over cells."""
    yield (
        "| number | corpus | width | cells | lowest | median | lowest without "
        "| lowest at all looks | documents read |"
    )
    yield "|---|---|---|---|---|---|---|---|---|"
    for kind, where in dict.fromkeys((cell.kind, cell.where) for cell in cells):
        if kind not in KINDS:
            continue
        own = [cell for cell in cells if (cell.kind, cell.where) == (kind, where)]
        looked = [
            [_looked(cell, draws=draws, seed=seed, every=every) for cell in own]
            for every in (True, False)
        ]
        for width in WIDTHS:
            sure, once = (
                np.array([_at_stop(*one, width) for one in some]) for some in looked
            )  # [cell, 2]
            always = [float(held.all(0).mean()) for held, _ in looked[0]]
            yield (
                f"| {kind} | {where} | {width} | {len(own)} | {sure[:, 0].min():.3f} | "
                f"{np.median(sure[:, 0]):.3f} | {once[:, 0].min():.3f} | {min(always):.3f} | "
                f"{np.median(sure[:, 1]):.0f} |"
            )


def _looked(cell: Cell, *, draws: int, seed: int, every: bool) -> tuple[Float64, Float64]:
    """[look, draw] whether the interval holds the truth; its width, of its scale."""
    random = np.random.default_rng([seed, 1])
    if cell.within is None:
        at = random.integers(0, len(cell.below), (draws, LOOKS[-1]))
        of_group = np.broadcast_to(random.integers(0, REPLICATES, LOOKS[-1]), at.shape)
    else:
        at, of_group = _of_some_partitions(cell.within, draws, random)
    held, width = [], []
    for documents in LOOKS:
        groups, count = of_group[:, :documents], int(of_group.max()) + 1
        if cell.within is None and documents <= REPLICATES:
            groups, count = np.broadcast_to(np.arange(documents), groups.shape), documents
        above, below = (
            _left_out(_sums(part[at[:, :documents]], groups, count))
            for part in (cell.above, cell.below)
        )
        with holding_at_every_look(documents) if every else nullcontext():
            parts = _interval(cell.kind, ratio(above, below), below)
        there = np.isfinite(parts.low)
        held.append(~there | ((parts.low <= cell.truth) & (cell.truth <= parts.high)))
        scale = 1.0 if cell.kind in ("share", "mean") else max(1.0, cell.truth)
        width.append(np.where(there, (parts.high - parts.low) / scale, np.inf))
    return np.array(held), np.array(width)


def _of_some_partitions(within: Ints, draws: int, random: np.random.Generator) -> tuple[Ints, Ints]:
    """[draw, document] which are read, and which of the partitions that were drawn each is from."""
    at, of_group = np.empty((2, draws, LOOKS[-1]), np.int64)
    for draw in range(draws):
        some = random.choice(within.max() + 1, MOST_PARTITIONS, replace=False)
        at[draw] = random.choice(np.flatnonzero(np.isin(within, some)), LOOKS[-1])
        of_group[draw] = np.searchsorted(np.sort(some), within[at[draw]])
    return at, of_group


def _sums(values: Float64, groups: Ints, count: int) -> Float64:
    """[draw, group] sums of the documents of each group, of [draw, document]."""
    out = np.zeros((len(values), count))
    np.add.at(out, (np.arange(len(values))[:, None], groups), values)
    return out


def _interval(kind: str, whole: Float64, below: Float64) -> Estimate:
    if kind == "share":
        return estimate_share(whole, below)
    return estimate(whole, bounds=SHARE if kind == "mean" else POSITIVE, sizes=below)


def _left_out(by_group: Float64) -> Float64:
    """[group + 1, draw] sums over all groups, then without each, of [draw, group]."""
    whole = by_group.sum(1)
    return np.concatenate([whole[None], whole - by_group.T])


def _at_stop(held: Float64, width: Float64, asked: float) -> tuple[float, float]:
    """The share of draws that hold where reading ends, and the documents read, the median."""
    narrow = width < asked
    last = np.where(narrow.any(0), narrow.argmax(0), len(LOOKS) - 1)
    return float(held[last, np.arange(len(last))].mean()), float(np.median(np.array(LOOKS)[last]))
