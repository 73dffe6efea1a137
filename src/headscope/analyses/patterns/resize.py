"""What does the classifier see of a map, whatever its size?

Two pictures of 64 × 64: square roots of the weights as shares of the largest, pooled by the largest
and by the mean. The largest keeps thin diagonals of long inputs, the mean keeps what is broad. Cell
(r, c) pools rows ⌊rn/64⌋ to ⌈(r+1)n/64⌉ and columns alike, so that a small map is enlarged.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from numba import prange
from torch.nn.functional import adaptive_avg_pool2d, adaptive_max_pool2d

from headscope.model.kernels import EXACT, threaded
from headscope.model.layer import compiled

SIDE = 64
Seen = npt.NDArray[np.uint8]


def seen(maps: torch.Tensor) -> torch.Tensor:
    """[map, 2, SIDE, SIDE] from 0 to 1; maps [map, query, key], without padding."""
    if compiled(maps):
        found = maps.new_empty(len(maps), 2, SIDE, SIDE)
        _pool(maps.numpy(), SIDE, found.numpy())
        return found
    largest = maps.amax((1, 2), keepdim=True).clamp_min(torch.finfo(maps.dtype).tiny)
    roots = (maps / largest).clamp_min(0).sqrt()[:, None]  # [map, 1, query, key]
    pooled = [pool(roots, SIDE) for pool in (adaptive_max_pool2d, adaptive_avg_pool2d)]
    return torch.cat(pooled, dim=1)  # [map, picture, row, column]


def seen_bytes(maps: npt.NDArray[np.floating]) -> Seen:
    """The same in bytes, as the labelled set keeps it; maps [map, query, key]."""
    given = torch.from_numpy(np.ascontiguousarray(maps, np.float32))
    found: Seen = (seen(given) * 255).round().to(torch.uint8).numpy()
    return found


@threaded(EXACT)
def _pool(maps: npt.NDArray[np.float32], side: int, out: npt.NDArray[np.float32]) -> None:
    """Both pictures of every map, down the columns and then along the rows.

    Torch's pools take ten times as long on the host.
    """
    n = maps.shape[1]
    for at in prange(len(maps)):
        scale = np.float32(1) / max(maps[at].max(), np.float32(1.1754944e-38))
        most, total = np.empty(n, np.float32), np.empty(n, np.float32)
        for row in range(side):
            top, bottom = row * n // side, -(-(row + 1) * n // side)
            most[:] = 0
            total[:] = 0
            for r in range(top, bottom):
                for c in range(n):
                    root = np.sqrt(max(maps[at, r, c] * scale, np.float32(0)))
                    most[c] = max(most[c], root)
                    total[c] += root
            for column in range(side):
                left, right = column * n // side, -(-(column + 1) * n // side)
                out[at, 0, row, column] = most[left:right].max()
                cells = np.float32((bottom - top) * (right - left))
                out[at, 1, row, column] = total[left:right].sum() / cells
