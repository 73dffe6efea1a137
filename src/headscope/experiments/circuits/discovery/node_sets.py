"""Sets of nodes as circuits: what the network answers with all other nodes replaced.

A set is faithful as far as the network, with every node outside of it replaced, still tells the
answer from the wrong one: (m(set) - m(none)) / (m(all) - m(none)), m being the mean logit
difference (Mueller et al. 2025). What stands in for a node is what it gives in the corrupted
prompt, its mean, or nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from headscope.core.accumulators import Bools, Float64, generator
from headscope.experiments.circuits.discovery.node_names import KINDS, Nodes
from headscope.experiments.circuits.discovery.nodes import NodeOutputs, ReplacingPass
from headscope.experiments.circuits.discovery.paired_passes import Pair, PairedPasses
from headscope.model.batch import to_float64

COUNTERFACTUAL, MEAN, ZERO = "counterfactual", "mean", "zero"
REPLACEMENTS = (COUNTERFACTUAL, MEAN, ZERO)
# of all nodes, at which Mueller et al. 2025 score a circuit
SHARES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
TRIES = 20  # to draw another set


@dataclass(frozen=True)
class OtherOutputs:
    """What all nodes give instead, by batch.

    whole  whether in the tokens that two prompts begin with, too
    """

    of: Callable[[Pair], NodeOutputs]
    whole: bool = True


def answers_of_sets(paired: PairedPasses, sets: Bools, instead: OtherOutputs) -> Float64:
    """[prompt, set] the logit difference with all nodes replaced that are not in a set.

    sets  [set, node]
    """
    different, same = np.unique(sets, axis=0, return_inverse=True)
    answers = np.zeros((len(paired.prompts.clean), len(different)))
    out = torch.from_numpy(~different)
    for pair in paired.pairs(whole=instead.whole):
        made, (rows, tokens) = instead.of(pair), pair.real.shape
        at_once = max(1, paired.batch_tokens // (rows * tokens))
        for start in range(0, len(out), at_once):
            some = out[start : start + at_once].to(made.stream.device)
            with torch.no_grad():
                how = ReplacingPass(made, some, paired.nodes)
                rows_of = to_float64(paired.answers(pair.clean, how, copies=len(some)))
            answers[pair.clean.places, start : start + len(some)] = rows_of.T
    return answers[:, same]


def stand_in(paired: PairedPasses, kind: str) -> OtherOutputs:
    """What stands in for nodes, by its name: one of REPLACEMENTS."""
    if kind == COUNTERFACTUAL:
        return OtherOutputs(lambda pair: pair.corrupted_gave, whole=False)
    if kind == ZERO:
        return OtherOutputs(
            lambda pair: pair.clean_gave.filled(
                [torch.zeros_like(own[:1, :1]) for own in pair.clean_gave.tensors()]
            )
        )
    means = mean_outputs(paired)
    return OtherOutputs(lambda pair: pair.clean_gave.filled(means))


def mean_outputs(paired: PairedPasses) -> list[torch.Tensor]:
    """[1, 1, …] the mean over all tokens of all prompts, corrupted ones too, of each output."""
    total: list[torch.Tensor] = []
    count, kind = 0, torch.float32
    for pair in paired.pairs(whole=True):
        real, kind = pair.real, pair.clean_gave.stream.dtype
        count += 2 * int(real.sum())
        both = zip(pair.clean_gave.tensors(), pair.corrupted_gave.tensors(), strict=True)
        sums = [(one + other)[real].double().sum(0) for one, other in both]
        total = [a + b for a, b in zip(total, sums, strict=True)] if total else sums
    return [(own / count).to(kind)[None, None] for own in total]


# --- which nodes ------------------------------------------------------------------------------


def in_order(scores: Float64, *, absolute: bool = False) -> list[int]:
    """All nodes that have a score, the best first; or, absolute, those of the largest."""
    size = np.abs(scores) if absolute else scores
    order = np.argsort(-np.nan_to_num(size, nan=-np.inf), kind="stable")
    return [int(at) for at in order if np.isfinite(scores[at])]


def first_of_order(order: Sequence[int], counts: Sequence[int], nodes: int) -> Bools:
    """[count, node] the sets of the first nodes of an order, for each count of them."""
    sets = np.zeros((len(counts), nodes), bool)
    for row, count in zip(sets, counts, strict=True):
        row[list(order[:count])] = True
    return sets


def random_sets(members: Bools, nodes: Nodes, *, draws: int, seed: int) -> Bools:
    """[draw, node] other sets by chance, with as many heads and feed-forward layers; the input
    stays in or out.
    """
    kinds = nodes.kinds()
    places = [np.flatnonzero(kinds == kind) for kind in KINDS]
    sets = np.repeat(members[None], draws, 0)
    for draw, row in enumerate(sets):
        rng = generator(seed, "random circuits", str(draw))
        for _ in range(TRIES):
            for some in places:
                row[some] = rng.permutation(members[some])
            if (row != members).any():
                break
    return sets


def areas(faithfulness: Float64, shares: Sequence[float] = SHARES) -> tuple[Float64, Float64]:
    """CPR, the area under a curve, and CMD, the area between it and 1, over the shares of nodes.

    faithfulness  [share, …]
    source        Mueller et al. 2025; trapezoids between the shares, as their code has them
    """
    over = np.asarray(shares)
    return (
        np.trapezoid(faithfulness, over, axis=0),
        np.trapezoid(np.abs(1 - faithfulness), over, axis=0),
    )
