"""How does a map look to the classifier, by the definition: one map at a time, with loops?

Square roots of shares of the largest weight, pooled by the largest and by the mean.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


def picture(kept: Array, side: int) -> Array:
    """[2, side, side]: cell (r, c) covers rows floor(r·n/S) to ceil((r+1)·n/S)."""
    n = len(kept)
    roots = np.sqrt(kept / kept.max())
    found = np.zeros((2, side, side))
    for row in range(side):
        for column in range(side):
            r, c = (slice(p * n // side, -(-(p + 1) * n // side)) for p in (row, column))
            found[:, row, column] = roots[r, c].max(), roots[r, c].mean()
    return found
