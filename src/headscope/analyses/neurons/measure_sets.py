"""The most important neurons of a query, and how far two queries share them.

Of every query the SET largest neurons; of every pair of queries of an input the Jaccard overlap of
their sets: 1 if they are the same, `chance` if they have nothing to do with each other.
"""

import numpy as np
import torch

from headscope.core.accumulators import Float64
from headscope.model import kernels
from headscope.model.batch import to_float64

SET = 8
_WORD = 64  # bits


def important(size: torch.Tensor, largest: torch.Tensor, used: torch.Tensor) -> torch.Tensor:
    """[example, query, head, neuron] bool: at least as large as the SET-th largest, and not 0.

    Equal ones are all in or all out, so that no order of neurons matters.

    size     [example, query, head, neuron] at least 0
    largest  [example, query, head, rank]   the largest of them, falling
    used     [example, query, head] bool    the others have no set
    """
    least = largest[..., :SET][..., -1:]
    return (size >= least) & (size > 0) & used[..., None]


def mean_overlap(sets: torch.Tensor, used: torch.Tensor) -> tuple[Float64, Float64]:
    """Mean overlap over pairs of queries, and 1 where there are pairs, else 0.

    sets     [example, query, head, neuron] bool, used [example, query, head] bool
    returns  [example, head] each
    """
    queries = to_float64(used.sum(1))  # [example, head]
    total = _compiled(sets) if sets.device.type == "cpu" else _by_product(sets)
    pairs = queries * (queries - 1) / 2
    return total / np.maximum(pairs, 1), (pairs > 0).astype(np.float64)


def _compiled(sets: torch.Tensor) -> Float64:
    """[example, head] the sum over pairs of queries."""
    packed = np.packbits(sets.transpose(1, 2).numpy(), axis=-1)  # [example, head, query, byte]
    missing = -packed.shape[-1] % (_WORD // 8)
    whole = np.pad(packed, [(0, 0)] * 3 + [(0, missing)])
    out = np.zeros(whole.shape[:2])
    kernels.overlaps(np.ascontiguousarray(whole).view(np.uint64), out)
    return out


def _by_product(sets: torch.Tensor) -> Float64:
    """The same by a matrix product, on any device."""
    members = sets.transpose(1, 2).float()  # [example, head, query, neuron]
    common = members @ members.transpose(2, 3)  # [example, head, query, query]
    count = members.sum(-1)
    union = (count[..., None] + count[..., None, :] - common).clamp_min_(1)
    each_with_itself = (count > 0).sum(-1)
    return (to_float64(common.div_(union).sum((-2, -1))) - to_float64(each_with_itself)) / 2


def chance(neurons: int) -> float:
    """The expected overlap of two sets drawn at random."""
    size = min(SET, neurons)
    common = np.arange(size + 1)
    from scipy.stats import hypergeom  # half a second of imports, for the results alone

    drawn = hypergeom(neurons, size, size).pmf(common)
    return float((drawn * common / (2 * size - common)).sum())


def falling(size: torch.Tensor, most: int) -> torch.Tensor:
    """[…, rank] the `most` largest of [..., neuron], falling; numpy sorts faster than topk."""
    if size.device.type != "cpu":
        return size.topk(min(most, size.shape[-1]), dim=-1).values
    return torch.from_numpy(np.sort(size.numpy(), axis=-1))[..., -most:].flip(-1)
