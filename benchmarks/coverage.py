"""How often does a 95 % interval hold the true value?

python -m benchmarks.coverage TREEBANK.conllu … [--tuned CHECKPOINT] [--only KIND] [--draws N]
    [--stopping]

A corpus of which every document is known is the truth. From it documents are drawn, with
replacement, 5 to 100 at a time; each draw gives an interval, by the very function that a run uses,
and we count how many hold the true value. The populations are the documents of a treebank as the
bundled model reads them (the shares of words whose head an attention head finds, mean attention,
entropy over that of uniform attention, the difference of two heads), and made ones: shares with
documents that differ, skewed means and ratios, means over queries of which a few are drawn in each
document, correlations over heads. With a checkpoint of the
bundled model: what `compare` says, the difference of both models on the same documents ("paired"),
and its intervals that hold for all heads together ("at once"). And what analyses choose, or rank,
with the documents that are drawn (`coverage_documents`): accuracies of heads chosen on the other
half, what a head finds beyond other rules, correlations and means by frequency ranks.

A cell is one number of one head. Of shares only cells with 20 expected events count: as many right
answers, and as many wrong ones, in the documents that are drawn. Cells outside of 0.93 to 0.98 are
drawn ten times as often on a fresh seed (twice, those of whole analyses), and that counts: of 1,000
draws one in twenty is off by 0.014, and of hundreds of cells some would look bad by chance.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import multivariate_normal, rankdata

from benchmarks.coverage_documents import (
    BY_RANK,
    CHOSEN,
    DOCUMENTS,
    LEAST_EVENTS,
    PLAIN,
    Whole,
    by_document,
    chosen_heads,
    frequency_and_norms,
)
from benchmarks.coverage_stopping import stopping_table
from headscope.core.accumulators import Float64, Ints, correlation, ratio
from headscope.core.intervals import (
    ANY,
    POSITIVE,
    SHARE,
    Estimate,
    estimate,
    estimate_correlation,
    estimate_difference,
    estimate_share,
    spearman_over_units,
)
from headscope.corpus.document import Example
from headscope.corpus.input_sample import drawn_queries
from headscope.experiments.comparison.change import simultaneous
from headscope.experiments.comparison.fingerprints import Fingerprints, distances, in_common

GOOD = (0.93, 0.98)
FRESH = 1_000_000  # to the seed
AGAIN, WHOLE_AGAIN = 10, 2  # times
POPULATION = 2000  # documents of a made corpus
PARTITIONS = 1000  # of another
DRAWN = 20  # draws of queries of each of them
COUNTED = {"share": estimate_share, "difference": estimate_difference}
PAIRED = ("paired", "at once")
BOUNDS = {"mean": SHARE, "ratio": POSITIVE, "paired": ANY}


@dataclass(frozen=True)
class Cell:
    """A corpus of which all is known; the number is Σ above / Σ below over documents.

    kind   share, difference, mean, ratio, correlation, paired or at once
    above  [document]; of a difference [2, document], of a correlation [2, head]; of two models
           [2, document], at once [2, document, head]
    below  [document] questions, examples, …
    drawn  [draw, document] estimates of `above`, of which each document that is drawn has one at
           random; None: it has `above` itself
    within [document] the partition of each, of which some are drawn; None: all are read
    """

    kind: str
    where: str
    above: Float64
    below: Float64
    drawn: Float64 | None = None
    within: Ints | None = None

    @property
    def truth(self) -> float:
        """The number on the whole corpus."""
        if self.kind == "correlation":
            return float(correlation(*rankdata(self.above, axis=-1)))
        parts = np.atleast_2d(self.above).sum(-1) / self.below.sum()
        return float(parts[0] - parts[1:].sum())

    def events(self, documents: int) -> float:
        """The right answers, or wrong ones, to be expected: the fewer of both."""
        rate = documents / len(self.below)
        return rate * float(min(self.above.sum(), self.below.sum() - self.above.sum()))


def covered(cell: Cell, documents: int, *, draws: int, seed: int) -> tuple[float, float]:
    """The share of the intervals that hold the truth, and that of draws that have an interval."""
    random = np.random.default_rng([seed, documents])
    at = random.integers(0, len(cell.below), (draws, documents))
    if cell.kind == "at once":
        return _held_at_once(cell, at)
    if cell.kind == "correlation":
        drawn = np.stack([spearman_over_units(*cell.above[:, some]) for some in at], -1)
        found = estimate_correlation(drawn)
    else:
        below = _left_out(cell.below[at])
        above = np.atleast_2d(cell.above)[:, at]  # [part, draw, document]
        if cell.drawn is not None:
            above = cell.drawn[random.integers(0, len(cell.drawn), at.shape), at][None]
        parts = [ratio(_left_out(part), below) for part in above]
        whole = parts[0] - sum(parts[1:])
        if cell.kind in COUNTED:
            found = COUNTED[cell.kind](whole, below)
        else:
            found = estimate(whole, bounds=BOUNDS[cell.kind], sizes=below)
    there = np.isfinite(found.low)
    held = (found.low <= cell.truth) & (cell.truth <= found.high)
    return float(ratio(held[there].sum() + 0.0, there.sum() + 0.0)), float(there.mean())


def _held_at_once(cell: Cell, at: Any) -> tuple[float, float]:
    """The share of draws in which the intervals of all heads hold, where each has one."""
    one, other = cell.above.sum(1) / cell.below.sum()
    held = []
    for documents in at:
        below = _left_out(cell.below[None, documents])  # [document + 1, 1]
        parts = [ratio(_left_out(part[documents].T).T, below.T).T for part in cell.above]
        low, high = simultaneous(parts[0] - parts[1], below)
        if np.isfinite(low).all():
            held.append(((low <= one - other) & (one - other <= high)).all())
    return float(np.mean(held)) if held else np.nan, len(held) / len(at)


def _left_out(values: Float64) -> Float64:
    """[document + 1, draw] sums over all documents, then without each, of [draw, document]."""
    whole = values.sum(1)
    return np.concatenate([whole[None], whole - values.T])


# --- corpora of which all is known --------------------------------------------------------------


def made_cells(seed: int = 0) -> Iterator[Cell]:
    """Shares of documents that differ (beta-binomial), skewed means and ratios, correlations."""
    random = np.random.default_rng(seed)
    for where, sizes in (
        ("made, equal", np.full(POPULATION, 40)),
        ("made, unequal", 1 + random.lognormal(3, 1, POPULATION).astype(np.int64)),
    ):
        for share in (0.02, 0.1, 0.5, 0.9, 0.98):
            for alike in (0.02, 0.2):  # correlation of two answers of a document
                a, b = np.array([share, 1 - share]) * (1 / alike - 1)
                right = random.binomial(sizes, random.beta(a, b, POPULATION))
                yield Cell("share", where, right + 0.0, sizes + 0.0)
        for skew in (0.2, 0.7):
            of_document = random.lognormal(-2, skew, POPULATION)
            yield Cell("mean", where, np.minimum(of_document, 1) * sizes, sizes + 0.0)
            other = random.lognormal(0, skew, POPULATION) * sizes
            yield Cell("ratio", where, of_document * other, other)
    for queries in (4, 32):
        yield drawn_cell(queries, random)
    for rho in (0.0, 0.4, 0.8):
        pairs = multivariate_normal([0, 0], [[1, rho], [rho, 1]]).rvs(POPULATION, random)
        yield Cell("correlation", "made, over heads", pairs.T, np.ones(POPULATION))
    for odd in (0.002, 0.02):  # of the documents: all others give 1
        of_document = np.where(random.random(POPULATION) < odd, random.random(POPULATION), 1.0)
        yield Cell("mean", "made, saturated", 40 * of_document, np.full(POPULATION, 40.0))


def cells_of_partitions(seed: int = 0) -> Iterator[Cell]:
    """Shares, means and ratios of documents in many partitions, which differ, too."""
    random = np.random.default_rng([seed, 2])
    within = np.repeat(np.arange(PARTITIONS), 1 + random.poisson(50, PARTITIONS))
    documents = len(within)
    sizes = 1 + random.lognormal(3, 0.5, documents).astype(np.int64)
    for alike in (0.02, 0.2):  # correlation of two documents of a partition
        for share in (0.1, 0.5, 0.9):
            a, b = np.array([share, 1 - share]) * (1 / alike - 1)
            level = random.beta(a, b, PARTITIONS)[within]
            right = random.binomial(sizes, random.beta(9 * level, 9 * (1 - level))) + 0.0
            yield Cell("share", "made, in partitions", right, sizes + 0.0, within=within)
        spread = np.sqrt(np.array([alike, 1 - alike]))
        of_partition = random.standard_normal(PARTITIONS)[within]
        each = np.stack([of_partition, random.standard_normal(documents)])
        level = np.exp(0.5 * (spread @ each)) / 8
        above = np.minimum(level, 1) * sizes
        yield Cell("mean", "made, in partitions", above, sizes + 0.0, within=within)
        yield Cell("ratio", "made, in partitions", level * sizes, sizes + 0.0, within=within)


def drawn_cell(queries: int, random: np.random.Generator) -> Cell:
    """A mean over the queries of documents of one input each, read at drawn ones by `divergence`.

    The number of a query is skewed, and grows with its place.
    """
    means, drawn = np.empty(POPULATION), np.empty((DRAWN, POPULATION))
    for document in range(POPULATION):
        size = 10 + int(random.lognormal(4, 0.7))
        level = random.lognormal(-2, 0.3) * np.linspace(0.5, 1.5, size)
        of_query = np.minimum(level * random.lognormal(0, 1, size), 1)
        ids = np.zeros(size, np.int64)
        example = Example(str(document), str(document), ids, ids, ids > 0)
        means[document] = of_query.mean()
        for seed in range(DRAWN):
            at, tokens = drawn_queries(example, queries, seed=seed)
            drawn[seed, document] = tokens @ of_query[at] / size
    where = f"made, {queries} drawn queries"
    return Cell("mean", where, means, np.ones(POPULATION), drawn)


def alike_heads(seed: int = 0) -> Iterator[Whole]:
    """How far heads of two models are apart, and what they have in common (`compare` of runs).

    What each head gathers in a document is divided among three rules and the rest at random.
    """
    random, names = np.random.default_rng([seed, 1]), ("one rule", "another", "a third")
    sizes = 1 + random.lognormal(3, 1, POPULATION).astype(np.int64)
    models = [
        np.stack([random.dirichlet(8 * of, POPULATION) for of in random.dirichlet([1] * 4, heads)])
        for heads in (2, 3)
    ]  # each [head, document, rule + rest]

    def made(number: Callable[..., Estimate], at: Ints) -> Estimate:
        below, sides = _left_out(sizes[None, at]), list[Fingerprints]()
        for shares in models:
            above = np.moveaxis(shares[:, at] * sizes[at, None], -1, 1)  # [head, part, document]
            draws = np.stack([ratio(_left_out(part), below) for part in above], 1)
            rules = estimate(draws[..., :-1], bounds=SHARE, sizes=below[..., None])
            left = estimate(draws[..., -1], bounds=SHARE, sizes=below)
            heads = len(above)
            none = Estimate(*np.zeros((3, heads, 0)))
            where = np.zeros((heads, 2), int), rules, left, np.zeros(heads), none
            sides.append(Fingerprints(*where, names, (), np.eye(3)))
        return number(*sides).map(np.ravel)

    for kind, number in (("distance", distances), ("in common", in_common)):
        yield Whole(kind, "made, of heads", POPULATION, partial(made, number))


def treebank_cells(files: Sequence[Path]) -> Iterator[Cell]:
    """What the bundled model's heads do in each document of a treebank."""
    sums, _ = by_document("demo", files)
    asked = sums["dependency/asked"].sum(1)  # [document, relation]
    right = sums["dependency/correct"].sum(1)  # [document, layer, head, direction, relation]
    right = right.reshape(len(right), -1, right.shape[-1])  # [document, unit, relation]
    order = (-right.sum(0)).argsort(0)
    for relation in range(asked.shape[1]):
        of_relation = right[:, order[[0, 20, 80], relation], relation].T  # [3, document]
        for above in of_relation:
            yield Cell("share", "treebank", above, asked[:, relation])
        yield Cell("difference", "treebank", of_relation[:2], asked[:, relation])
    entropy, uniform = sums["entropy/total"], sums["entropy/uniform"]
    attention, count = sums["surface/total"], sums["surface/count"]
    for layer, head in np.ndindex(attention.shape[1:3]):
        if (layer + head) % 3:
            continue
        cells = [Cell("ratio", "treebank", entropy[:, layer, head, 0], uniform)]
        cells += [
            Cell("mean", "treebank", attention[:, layer, head, target], count[:, target])
            for target in range(attention.shape[-1])
        ]
        for cell in cells:
            yield cell
            size = np.maximum(cell.below, 1)
            even = replace(cell, where="treebank, equal", above=cell.above / size)
            yield replace(even, below=cell.below / size)


def paired_cells(tuned: str, files: Sequence[Path]) -> Iterator[Cell]:
    """What a checkpoint of the bundled model does otherwise in each document of a treebank."""
    after, before = (by_document(name, files, PLAIN)[0] for name in (tuned, "demo"))
    for above, below in (("entropy/total", "entropy/count"), ("surface/total", "surface/count")):
        both = np.stack([after[above], before[above]])  # [2, document, layer, head, kind]
        both = both.reshape(*both.shape[:2], -1, both.shape[-1])  # [2, document, head, kind]
        sizes_of = np.broadcast_to(
            after[below].reshape(both.shape[1], -1), (both.shape[1], both.shape[-1])
        )  # [document, kind]
        for kind, sizes in enumerate(sizes_of.T):
            yield Cell("at once", "treebank", both[..., kind], sizes)
            for head in range(0, both.shape[2], 3):
                yield Cell("paired", "treebank", both[..., head, kind], sizes)


# --- the table ----------------------------------------------------------------------------------


def table(cells: Sequence[Cell | Whole], *, draws: int, seed: int) -> Iterator[str]:
    """Lines of Markdown: lowest, median and highest coverage of the cells of each kind."""
    yield (
        "| number | corpus | documents | cells | lowest | median | highest | below 0.93 "
        "| above 0.98 | shown |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for kind, where in dict.fromkeys((cell.kind, cell.where) for cell in cells):
        own = [cell for cell in cells if (cell.kind, cell.where) == (kind, where)]
        for documents in DOCUMENTS:
            some = [c for c in own if kind != "share" or c.events(documents) >= LEAST_EVENTS]
            tried = [_tried(c, documents, draws=draws, seed=seed) for c in some]
            found = np.concatenate([*tried, np.zeros((0, 2))])
            found = found[found[:, 1] > 0.5]  # else mostly not shown
            if not len(found):
                continue
            three = [np.min(found[:, 0]), np.median(found[:, 0]), np.max(found[:, 0])]
            ends = " | ".join(f"{value:.2f}" for value in three)
            low, high = (found[:, 0] < GOOD[0]).sum(), (found[:, 0] > GOOD[1]).sum()
            counts = f"{documents} | {len(found)} | {ends} | {low} | {high}"
            yield f"| {kind} | {where} | {counts} | {100 * found[:, 1].mean():.0f} % |"


def _tried(cell: Cell | Whole, documents: int, *, draws: int, seed: int) -> Float64:
    """[cell, 2] see `covered`; drawn anew, and more often, where it looks too low or too high."""

    def once(seed: int) -> Float64:
        if isinstance(cell, Whole):
            return cell.covered(documents, draws=draws, seed=seed)
        return np.array([covered(cell, documents, draws=draws, seed=seed)])

    first = once(seed)
    good = (GOOD[0] <= first[:, 0]) & (first[:, 0] <= GOOD[1]) | (first[:, 1] == 0)
    if good.all():
        return first
    rounds = WHOLE_AGAIN if isinstance(cell, Whole) else AGAIN
    again = np.stack([once(seed + FRESH + each) for each in range(rounds)])  # [round, cell, 2]
    held = ratio(np.nan_to_num(again).prod(-1).sum(0), again[..., 1].sum(0))
    return np.where(good[:, None], first, np.stack([held, again[..., 1].mean(0)], -1))


SOURCES: dict[tuple[str, ...], Callable[[Sequence[Path]], Iterable[Cell | Whole]]] = {
    ("share", "difference", "ratio", "mean"): treebank_cells,
    CHOSEN: chosen_heads,
    BY_RANK: frequency_and_norms,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="benchmarks.coverage", description=__doc__)
    parser.add_argument("treebank", type=Path, nargs="*", help="files in CoNLL-U")
    parser.add_argument("--tuned", help="checkpoint of the bundled model: differences of both")
    parser.add_argument("--only", help="kind of number: share, mean, paired, …")
    parser.add_argument("--draws", type=int, default=1000, help="of documents, for each cell")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--stopping", action="store_true", help="where a run stops early instead")
    given = parser.parse_args(arguments)
    cells = [*made_cells(given.seed), *alike_heads(given.seed)]
    if given.stopping:
        cells += cells_of_partitions(given.seed)
    for kinds, of_files in SOURCES.items():
        if given.treebank and given.only in (None, *kinds):
            cells += of_files(given.treebank)
    if given.treebank and given.tuned and given.only in (None, *PAIRED):
        cells += paired_cells(given.tuned, given.treebank)
    cells = [cell for cell in cells if given.only in (None, cell.kind)]
    lines = stopping_table if given.stopping else table
    for line in lines(cells, draws=given.draws, seed=given.seed):
        print(line, flush=True)


if __name__ == "__main__":
    main()
