"""Sums of every number, document by document, and what they are without any one of them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Quantity:
    """Σ above / Σ below over documents.

    above  [document, …]
    below  [document, …], which broadcasts
    """

    above: Array
    below: Array

    @property
    def value(self) -> Array:
        return _ratio(self.above.sum(0), self.below.sum(0))

    @property
    def error(self) -> Array:
        """The standard error: a jackknife over documents; NaN of fewer than five."""
        n = len(self.above)
        if n < 5:
            return np.full(self.value.shape, np.nan)
        without = _ratio(self.above.sum(0) - self.above, self.below.sum(0) - self.below)
        moves = without - without.mean(0)
        return np.sqrt((n - 1) / n * (moves**2).sum(0))

    def __getitem__(self, at: Any) -> Quantity:
        below = np.broadcast_to(self.below, self.above.shape)
        return Quantity(self.above[:, *at], below[:, *at])


def _ratio(above: Array, below: Array) -> Array:
    below = np.broadcast_to(below, above.shape)
    return np.divide(above, below, out=np.full(above.shape, np.nan), where=below != 0)


class Totals:
    """Adds values of inputs; each is a mean, or a sum of what stands above and below a line."""

    def __init__(self) -> None:
        self.parts: dict[str, dict[str, list[Any]]] = defaultdict(dict)

    def add(self, name: str, document: str, above: Any, below: Any = 1.0) -> None:
        own = self.parts[name].setdefault(document, [0.0, 0.0])
        own[0], own[1] = own[0] + above, own[1] + below

    def __contains__(self, name: str) -> bool:
        return name in self.parts

    def __getitem__(self, name: str) -> Quantity:
        """A quantity that no input has is absent, and its name is shown."""
        if name not in self.parts:
            raise KeyError(f"no input has {name!r}")
        above = np.stack([np.asarray(one[0], float) for one in self.parts[name].values()])
        below = np.stack([np.asarray(one[1], float) for one in self.parts[name].values()])
        return Quantity(above, below.reshape(*below.shape, *[1] * (above.ndim - below.ndim)))

    def whole(self, name: str) -> Quantity:
        """The same, of one number."""
        return self[name]
