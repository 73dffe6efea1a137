"""How alike are the maps that two models make of the same input, head by head?"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from headscope.core.accumulators import Float64
from headscope.model import kernels
from headscope.model.batch import to_float64
from headscope.model.layer import LN2, compiled

COSINE, JS = 0, 1


def alike(before: torch.Tensor, after: torch.Tensor, lengths: npt.NDArray[np.int64]) -> Float64:
    """[example, head, 2] the cosine of two maps taken as vectors, and their divergence.

    before, after  [example, head, query, key] probabilities; rows of real queries sum to 1
    lengths        [example] queries and keys from there on are left out
    returns        the cosine Σ ab / √(Σ a² Σ b²), from 0 to 1 (Kovaleva et al. 2019, §4.3); and the
                   Jensen-Shannon divergence of a query's weights, mean over queries, from 0 to ln 2
                   nats. Equal maps give exactly 1 and 0
    """
    if compiled(before) and compiled(after):
        sums = np.zeros((*before.shape[:2], 4))
        kernels.alike(before.contiguous().numpy(), after.contiguous().numpy(), lengths, sums)
        sums[..., 3] *= LN2
    else:
        sums = _sums(before, after, lengths)
    cosine = sums[..., 0] / np.sqrt(sums[..., 1] * sums[..., 2])
    js = np.clip(sums[..., 3] / lengths[:, None], 0, LN2)  # rounding leaves it a little outside
    return np.stack([np.minimum(cosine, 1), js], -1)  # [example, head, 2]


def _sums(before: torch.Tensor, after: torch.Tensor, lengths: npt.NDArray[np.int64]) -> Float64:
    """[example, head, 4] what `kernels.alike` gives, in nats; for any device and precision."""
    queries, keys = before.shape[2:]
    n = torch.from_numpy(lengths).to(before.device)[:, None, None, None]
    row, column = (torch.arange(size, device=before.device) for size in (queries, keys))
    real = (row[:, None] < n) & (column < n)  # [example, 1, query, key]
    a, b = (maps.masked_fill(~real, 0) for maps in (before, after))
    entropy = torch.special.entr
    apart = entropy((a + b) / 2) - (entropy(a) + entropy(b)) / 2
    rows = [to_float64(part.sum(-1)) for part in (a * b, a * a, b * b, apart)]
    return np.stack([part.sum(-1) for part in rows], -1)  # [example, head, 4]
