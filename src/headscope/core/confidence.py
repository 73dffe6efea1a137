"""How sure intervals are: 95 % once, or 95 % for all looks at a sample that grows.

Who looks at an interval again and again, and stops when it is narrow, stops too often where it is
narrow by chance. So a run that stops early (`run.stopping`) makes intervals that hold at every look
at once, an asymptotic confidence sequence (Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas 2021,
theorem 2.2): the estimate ± its standard error times `boundary`. It needs nothing but the error at
the look, which merged sums give. Where its interval is longer without the documents that have no
part in a number, such as those in which a relation does not occur, they do not count. Bounds
without asymptotics (Howard et al. 2021; by betting, Waudby-Smith and Ramdas 2024) need the data in
order, and only hold for means between known bounds.

The boundary is Robbins's normal mixture. The package `confseq` has it, too: it calls itself
unstable, was last released in 2023, and is built from C++ for a formula of one line.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from statistics import NormalDist

import numpy as np

from headscope.core.accumulators import Float64

CONFIDENCE = 0.95
TAIL = (1 - CONFIDENCE) / 2
TUNED = 128  # ours: documents at which the boundary is lowest; it rises slowly on both sides
# Of intervals made in this context: an analysis, also a stranger's, makes them where it likes.
_READ: ContextVar[int] = ContextVar("documents read up to a look; 0 outside of looks", default=0)


def tail(parts: Float64, groups: int) -> Float64:
    """[*cell] the share of intervals that may end too low, and too high: TAIL, or less in a look.

    parts   [*cell] groups with a part in each number
    groups  into which documents were put at random; some may be empty
    """
    if not (read := _READ.get()):
        return np.full(np.shape(parts), TAIL)
    from scipy.special import ndtr  # not for who reads arguments only

    # If k of the documents have a part, and each is in some group at random, this many groups have
    # one; solved for k.
    most = max(read, groups)
    documents = most * (1 - (1 - parts / groups) ** (groups / most))
    # That is rough where most groups have one: no interval is shorter than that of all documents.
    return np.asarray(ndtr(-np.maximum(boundary(np.maximum(documents, 1)), boundary(read))))


@contextmanager
def holding_at_every_look(documents: int) -> Iterator[None]:
    """Inside the context intervals hold together with those of all other looks.

    documents  read up to this look
    """
    token = _READ.set(documents)
    try:
        yield
    finally:
        _READ.reset(token)


def stretch(tests: int) -> float:
    """By how much a normal interval is longer for the largest of several numbers (Bonferroni)."""
    at = NormalDist().inv_cdf
    return at(TAIL / tests) / at(TAIL)


def boundary(documents: Float64 | float, *, tuned: float = TUNED) -> Float64:
    """By how many standard errors a mean may be off, at any number of documents: 3.04 at best.

    documents  above 0, as many as the mean is of, or the same multiple at every look
    tuned      documents at which the boundary is lowest, nearly: ρ² of the mixture is chosen for
               them as in Howard et al. 2021, section 3.5
    """
    alpha = 1 - CONFIDENCE
    rising = 2 * math.log(1 / alpha) + math.log(1 + 2 * math.log(1 / alpha))  # ρ² tuned
    scaled = rising * documents / tuned  # ρ² documents
    return np.sqrt((1 + 1 / scaled) * np.log((1 + scaled) / alpha**2))


def more_documents(narrower: float, documents: float) -> float:
    """By which factor documents must grow until an interval is narrower by a factor.

    narrower   how many times narrower
    documents  of which the interval is; its errors fall with their root, the boundary rises slowly
    """
    more = narrower**2
    for _ in range(20):
        more = (narrower * float(boundary(more * documents) / boundary(documents))) ** 2
    return more
