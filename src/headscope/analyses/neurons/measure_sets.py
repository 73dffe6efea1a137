"""The most important neurons of a query, how far two queries share them, and of the own sentence.

Of every query the SET largest neurons; of every pair of queries of an input the Jaccard overlap of
their sets: 1 if they are the same, `chance` if they have nothing to do with each other.

How far is a head a bag of words of the own sentence, and are its neurons the same everywhere? Vig
(2019) names heads that spread their attention evenly over the words of the own sentence, by few
neurons, always the same, that tell one sentence of a pair from the other. What even attention over
the words of the own sentence and the attention of a query have in common is Σ_j min(α_j, 1/n), j
over its n words: 1 for a bag of words. Uniform attention has n of all keys there, so that what it
has in common with the other sentence is taken off, and both sentences count the same, however long:
uniform attention is 0 then, and attention to one token near 0.
"""

import numpy as np
import torch

from headscope.core.accumulators import Float64, ratio
from headscope.core.intervals import DIFFERENCE, SHARE, estimate
from headscope.core.results import Variable
from headscope.model import kernels
from headscope.model.batch import Batch, to_float64
from headscope.model.layer import LayerView
from headscope.run.analysis import AnalysisPart, Scope

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


VIG = "after Vig 2019; the measure is ours"


class OwnSentence(AnalysisPart):
    """Sums over words that see words of their own sentence and of another; sentences alike."""

    def __init__(self, scope: Scope) -> None:
        grid = (scope.layers, scope.heads)
        self.bag, self.overlap, self.pairs = (scope.sums(*grid) for _ in range(3))
        self.count = scope.sums(scope.layers)

    def attends(self, layer: LayerView, batch: Batch) -> None:
        """Add each example's mean over its sentences, of means over words, for one layer."""
        run = batch.word_runs
        word = run > 0
        if int(run.max()) < 2:
            return
        seen = word[:, None] & word[:, :, None]  # [example, query, key]
        if layer.seen is not None:
            seen = seen & layer.seen[:, 0]
        mine = run[:, None] == run[:, :, None]
        own, other = seen & mine, seen & ~mine
        there = own.any(-1) & other.any(-1)  # [example, query]
        bag = _in_common(layer.attention, own) - _in_common(layer.attention, other)
        words = (mine & there[:, None]).sum(-1).clamp_min(1)  # [example, query] of its sentence
        share = there.to(bag) / words
        share = share / share.sum(1, keepdim=True).clamp_min(1)
        at, groups = (layer.index,), batch.groups
        self.bag.add(to_float64((bag * share[:, None]).sum(-1)), groups, at=at)
        self.count.add(to_float64(there.any(1)), groups, at=at)

    def tells_apart(self, layer: int, size: torch.Tensor, used: torch.Tensor, batch: Batch) -> None:
        """Add what the neurons that tell the own sentence from the other share between positions.

        size  [example, query, head, neuron] of what each adds
        used  [example, query, head] bool
        """
        overlap, pairs = mean_overlap(important(size, falling(size, SET), used), used)
        self.overlap.add(overlap, batch.groups, at=(layer,))
        self.pairs.add(pairs, batch.groups, at=(layer,))

    def draws(self) -> tuple[Float64, Float64]:
        """[replicate + 1, layer, head] each: how far a bag of words; overlap of its neurons."""
        bag = ratio(self.bag.sums, self.count.sums[..., None])
        return bag, ratio(self.overlap.sums, self.pairs.sums)

    def result(self) -> dict[str, Variable]:
        """bag_of_words[layer, head], from -1 to 1; own_segment_overlap[layer, head]."""
        bag, overlap = self.draws()
        words = "attention in common with even attention over the words of the own sentence"
        same = f"overlap between two positions of the top {SET} neurons (Jaccard)"
        return {
            "bag_of_words": Variable(
                estimate(bag, bounds=DIFFERENCE, sizes=self.count.sums[..., None]),
                ("layer", "head"),
                f"{words}, less the same of the other sentence",
                "1",
                VIG,
            ),
            "own_segment_overlap": Variable(
                estimate(overlap, bounds=SHARE, sizes=self.pairs.sums),
                ("layer", "head"),
                f"{same} that tell words of the own sentence from those of the other",
                "1",
                VIG,
            ),
        }


def _in_common(attention: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
    """[example, head, query] Σ min(α, 1/n) over these keys [example, query, key], n of a query."""
    even = keys.to(attention) / keys.sum(-1, keepdim=True).clamp_min(1)
    return torch.minimum(attention, even[:, None]).sum(-1, dtype=torch.float32)
