"""Finds a circuit on some prompts, and tries it on others: all numbers by prompt."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from headscope.core.accumulators import Bools, Float64, generator, ratio
from headscope.experiments.circuits.discovery.edge_attribution import edge_attribution, real_edges
from headscope.experiments.circuits.discovery.edge_sets import answers_of_edges
from headscope.experiments.circuits.discovery.node_attribution import node_attribution
from headscope.experiments.circuits.discovery.node_names import Nodes
from headscope.experiments.circuits.discovery.node_sets import (
    COUNTERFACTUAL,
    REPLACEMENTS,
    SHARES,
    OtherOutputs,
    answers_of_sets,
    first_of_order,
    in_order,
    random_sets,
    stand_in,
)
from headscope.experiments.circuits.discovery.paired_passes import PairedPasses, paired_passes
from headscope.experiments.circuits.prompts import PromptSet
from headscope.model.language_model import LanguageModel

FAITHFUL = 0.9  # ours: of the difference between the whole network and none of it
DRAWS = 39  # random sets: where none or one comes as close to 1 as the circuit, p is 0.05
HALVES = 10  # of the circuit, which are taken out to see whether it is complete
ORDERS = ("score", "size")  # the largest first; or the largest in size, for or against the answer
STEP = 1.4  # ours: how much larger each set is that may be chosen


@dataclass(frozen=True)
class FoundEdges:
    """Scores of edges, and circuits of the first of them.

    scores  [prompt, node, reader] logits; `real` [node, reader] where there is an edge
    curves  [tried, order, share] with all but the first edges cut; None where none can be cut
    """

    scores: Float64
    real: Bools
    curves: Float64 | None


@dataclass(frozen=True)
class Discovery:
    """What was found; [tried] are the prompts that did not choose.

    nodes     of the network
    prompts   all of them
    seed      of what is drawn
    scores    [prompt, node] logits
    others    the same by other kinds of corrupted prompts
    clean     [prompt] the logit difference of the network as it is
    gap       [prompt] that less the same of the corrupted prompt
    choosing  [prompt] whether it chose
    member    [node] whether it is in the circuit
    empty     [tried, replacement] with all nodes replaced
    curves    [tried, replacement, order, share] with all but the first nodes replaced
    circuit   [tried, replacement] with all but the circuit replaced
    random    [tried, draw] the same of random sets
    without   [tried, member] of the circuit without each of its nodes
    halves    [tried, 2, draw] of the circuit, and of the network, without half of the circuit
    width     of the residual stream
    beside    whether feed-forward layers read what the heads of their layer read
    edges     None where they were not asked for
    """

    nodes: Nodes
    prompts: PromptSet
    seed: int
    scores: Float64
    others: dict[str, Float64]
    clean: Float64
    gap: Float64
    choosing: Bools
    member: Bools
    empty: Float64
    curves: Float64
    circuit: Float64
    random: Float64
    without: Float64
    halves: Float64
    width: int
    beside: bool
    edges: FoundEdges | None = None

    @property
    def whole(self) -> Float64:
        """[tried] the logit difference of the network as it is."""
        return self.clean[~self.choosing]

    @property
    def tried(self) -> list[str]:
        """[tried] the items of the prompts that did not choose."""
        return [self.prompts.items[at] for at in np.flatnonzero(~self.choosing)]


def discovered(
    language: LanguageModel,
    prompts: PromptSet,
    *,
    steps: int,
    seed: int,
    batch_tokens: int,
    edges: bool = False,
) -> Discovery:
    """Rank the nodes and choose a circuit on a third of the items, try it on the others."""
    chose = choosing_items(prompts.items, seed=seed)
    with paired_passes(language, prompts, batch_tokens=batch_tokens) as every:
        scores = node_attribution(every, steps=steps)
        ends = np.repeat([[False], [True]], len(every.nodes), 1)
        seen = answers_of_sets(every, ends, stand_in(every, COUNTERFACTUAL))
        choosing, trying = every.of(np.flatnonzero(chose)), every.of(np.flatnonzero(~chose))
        mean = scores[chose].mean(0)
        member = chosen_circuit(choosing, mean)
        empty, curves, circuit = _by_replacement(trying, mean, member)
        other = stand_in(trying, COUNTERFACTUAL)
        random = random_sets(member, every.nodes, draws=DRAWS, seed=seed)
        parts, out = without_each(member), without_halves(member, seed=seed)
        answers = answers_of_sets(trying, np.concatenate([random, parts, *out]), other)
        of_edges = _edges(every, trying, chose, steps=steps) if edges else None
        width, beside = int(next(every.pairs()).clean_gave.stream.shape[-1]), every.beside
    others = {}
    for kind, corrupted in prompts.others.items():
        other_kind = replace(prompts, corrupted=corrupted)
        with paired_passes(language, other_kind, batch_tokens=batch_tokens) as paired:
            others[kind] = node_attribution(paired, steps=steps)
    cuts = np.cumsum([len(random), len(parts)])
    drawn, without, halves = np.split(answers, cuts, 1)
    return Discovery(
        every.nodes,
        prompts,
        seed,
        scores,
        others,
        seen[:, 1],
        seen[:, 1] - seen[:, 0],
        chose,
        member,
        empty,
        curves,
        circuit,
        drawn,
        without,
        halves.reshape(len(halves), 2, -1),
        width,
        beside,
        of_edges,
    )


def _edges(every: PairedPasses, trying: PairedPasses, chose: Bools, *, steps: int) -> FoundEdges:
    """Rank edges on the prompts that choose, and cut all but the first on the others."""
    scores, real = edge_attribution(every, steps=steps), real_edges(every)
    if every.beside:
        return FoundEdges(scores, real, None)
    mean = np.where(real, scores[chose].mean(0), np.nan).ravel()
    counts = [int(share * real.sum()) for share in SHARES]
    sets = [
        first_of_order(in_order(mean, absolute=absolute), counts, len(mean))
        for absolute in (False, True)
    ]
    answers = answers_of_edges(trying, np.concatenate(sets).reshape(-1, *real.shape))
    return FoundEdges(scores, real, answers.reshape(len(answers), len(ORDERS), len(SHARES)))


def choosing_items(items: list[str], *, seed: int) -> Bools:
    """[prompt] whether its item is in the third that chooses; at least one, and not all."""
    unique = list(dict.fromkeys(items))
    order = generator(seed, "items that choose").permutation(len(unique))
    some = {unique[at] for at in order[: max(1, len(unique) // 3)]}
    return np.array([item in some for item in items])


def chosen_circuit(choosing: PairedPasses, scores: Float64) -> Bools:
    """[node] the fewest first nodes that are faithful, less those that can go.

    Of the sets along the order, each STEP times as large as the one before, the first is taken
    that is faithful. Of its nodes those go without which it answers best, as long as it stays so.
    """
    order, nodes = in_order(scores), len(scores)
    other = stand_in(choosing, COUNTERFACTUAL)
    counts = sorted({min(round(STEP**at), len(order)) for at in range(64)})
    sets = first_of_order(order, counts, nodes)
    share = _faithful(choosing, sets, other)
    enough = np.flatnonzero(share >= FAITHFUL)
    member: Bools = sets[enough[0] if len(enough) else -1]
    alone = _faithful(choosing, without_each(member), other)
    going = np.flatnonzero(member)[np.argsort(-alone, kind="stable")]
    fewer = np.repeat(member[None], len(going), 0)
    for at, row in enumerate(fewer):
        row[going[:at]] = False
    left = _faithful(choosing, fewer, other) >= FAITHFUL
    return np.asarray(fewer[np.flatnonzero(left)[-1]] if left.any() else member)


def _faithful(paired: PairedPasses, sets: Bools, other: OtherOutputs) -> Float64:
    """[set] how faithful sets are."""
    ends = np.repeat([[False], [True]], sets.shape[1], 1)
    answers = answers_of_sets(paired, np.concatenate([ends, sets]), other).mean(0)
    return ratio(answers[2:] - answers[0], answers[1] - answers[0])


def without_each(member: Bools) -> Bools:
    """[member, node] the circuit without each of its nodes in turn."""
    places = np.flatnonzero(member)
    sets = np.repeat(member[None], len(places), 0)
    sets[np.arange(len(places)), places] = False
    return sets


def without_halves(member: Bools, *, seed: int) -> tuple[Bools, Bools]:
    """[draw, node] the circuit, and the whole network, without a random half of the circuit."""
    places = np.flatnonzero(member)
    circuits = np.repeat(member[None], HALVES, 0)
    networks = np.ones_like(circuits)
    for draw, (one, other) in enumerate(zip(circuits, networks, strict=True)):
        order = generator(seed, "half of a circuit", str(draw)).permutation(places)
        gone = order[: len(order) // 2]
        one[gone] = other[gone] = False
    return circuits, networks


def _by_replacement(
    trying: PairedPasses, scores: Float64, member: Bools
) -> tuple[Float64, Float64, Float64]:
    """[tried, replacement] of no node; [tried, replacement, order, share] of the first nodes;
    [tried, replacement] of the circuit.
    """
    orders = [in_order(scores, absolute=absolute) for absolute in (False, True)]
    counts = [int(share * len(orders[0])) for share in SHARES]
    firsts = [first_of_order(order, counts, len(scores)) for order in orders]
    sets = np.concatenate([np.zeros_like(member)[None], member[None], *firsts])
    every = [answers_of_sets(trying, sets, stand_in(trying, kind)) for kind in REPLACEMENTS]
    answers = np.stack(every, 1)  # [tried, replacement, set]
    curves = answers[..., 2:].reshape(*answers.shape[:2], len(orders), len(SHARES))
    return answers[..., 0], curves, answers[..., 1]
