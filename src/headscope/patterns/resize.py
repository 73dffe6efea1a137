"""What does the classifier see of a map, whatever its size?

Two pictures of 32 × 32: square roots of the weights as shares of the largest, pooled by the largest
and by the mean. The largest keeps thin diagonals of long inputs, the mean keeps what is broad.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch.nn.functional import adaptive_avg_pool2d, adaptive_max_pool2d

SIDE = 32
Seen = npt.NDArray[np.uint8]


def seen(maps: torch.Tensor) -> torch.Tensor:
    """[map, 2, SIDE, SIDE] from 0 to 1; maps [map, query, key], without padding."""
    largest = maps.amax((1, 2), keepdim=True).clamp_min(torch.finfo(maps.dtype).tiny)
    roots = (maps / largest).clamp_min(0).sqrt()[:, None]  # [map, 1, query, key]
    pooled = [pool(roots, SIDE) for pool in (adaptive_max_pool2d, adaptive_avg_pool2d)]
    return torch.cat(pooled, dim=1)  # [map, picture, row, column]


def seen_bytes(maps: npt.NDArray[np.floating]) -> Seen:
    """The same in bytes, as the labelled set keeps it; maps [map, query, key]."""
    given = torch.from_numpy(np.ascontiguousarray(maps, np.float32))
    found: Seen = (seen(given) * 255).round().to(torch.uint8).numpy()
    return found
