"""What analyses make of some documents of a treebank, each read once by the bundled model.

Every document's sums are kept apart, so that an analysis of any of them, drawn anew, is put
together without reading them again: whole analyses, with all that they choose, count or rank.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy.sparse import csr_array, vstack

import headscope as hs
from headscope.analyses.dependency.measure import Dependency
from headscope.analyses.language.specific import ABOVE
from headscope.analyses.mixing.measure import Mixing
from headscope.analyses.norms.measure import EVERY
from headscope.analyses.norms.measure_relations import Cancellation, FrequencyRelation
from headscope.core.accumulators import Float64, Ints, Sums, ratio
from headscope.core.intervals import Estimate
from headscope.core.results import estimate as of_results
from headscope.run.analysis import Scope
from headscope.run.compute import Computer, ShardJob
from headscope.run.corpus_run import frequency_ranks, scope_of
from headscope.run.frequency_ranks import corpus_ranks
from headscope.run.plan import Shard, make_plan

CHOSEN = ("held_out", "advantage", ABOVE)
BY_RANK = ("spearman_attention_value_norm", "spearman_frequency", "frequency_profile")
PLAIN = ("entropy", "surface")
DOCUMENTS = (5, 14, 30, 100)
LEAST_EVENTS = 20
PLACES = [0, 20]  # of heads, the best first, of which `above_reference` is tried


@dataclass(frozen=True)
class Whole:
    """Numbers that an analysis makes of whole documents: many cells at once.

    kind    their name in the results
    size    documents that there are
    made    from the places of some of them, the estimates [cell]
    events  [cell] the right answers in all documents, or the wrong ones: the fewer of both
    """

    kind: str
    where: str
    size: int
    made: Callable[[Ints], Estimate]
    events: Float64 | float = np.inf

    def covered(self, documents: int, *, draws: int, seed: int) -> Float64:
        """[cell, 2] the share of the intervals that hold the truth, and that of draws with one.

        Of cells with too few events to be expected none is shown.
        """
        random = np.random.default_rng([seed, documents])
        drawn = [self.made(at) for at in random.integers(0, self.size, (draws, documents))]
        truth = self.made(np.arange(self.size)).value
        low, high = (np.stack([getattr(one, end) for one in drawn]) for end in ("low", "high"))
        enough = self.events * documents / self.size >= LEAST_EVENTS
        there = np.isfinite(low) & np.isfinite(high) & np.isfinite(truth) & enough
        held = there & (low <= truth) & (truth <= high)
        return np.stack([ratio(held.sum(0) + 0.0, there.sum(0) + 0.0), there.mean(0)], -1)


def chosen_heads(files: Sequence[Path]) -> Iterator[Whole]:
    """Accuracies of heads that the documents choose, and what heads find beyond other rules."""
    every, scope = by_document("demo", files)
    asked, right = (every[f"dependency/{name}"].sum((0, 1)) for name in ("asked", "correct"))
    flat, size = right.reshape(-1, right.shape[-1]), len(every["dependency/asked"])
    events = np.minimum(flat.max(0), asked - flat.max(0))  # [relation], two classes before them
    many = np.flatnonzero(events * DOCUMENTS[-1] / size >= LEAST_EVENTS)
    assert {0, 1} <= set(many)
    heads = np.unravel_index((-flat[:, many]).argsort(0)[PLACES], right.shape[:-1])
    names = ",".join(scope.relations[at - 2] for at in many[2:])

    @cache
    def numbers(at: tuple[int, ...]) -> dict[str, Estimate]:
        analysis = Dependency(replace(scope, replicates=len(at)), relations=names)
        for name, kept in analysis.accumulators.items():
            drawn = every[f"dependency/{name}"][list(at)]
            drawn = drawn if name == "left_out" else drawn[..., many]
            kept.by_group = Sums(drawn).folded(len(kept.by_group)).by_group
        result = analysis.result()
        each = {variable: of_results(result, variable) for variable in CHOSEN}
        cells = (*heads, np.arange(len(many)))
        return each | {ABOVE: each[ABOVE].map(lambda grid: grid[cells].ravel())}

    for variable in CHOSEN:
        some = np.tile(events[many], len(PLACES) if variable == ABOVE else 1)
        yield Whole(variable, "treebank", size, lambda at, v=variable: numbers(tuple(at))[v], some)


def frequency_and_norms(files: Sequence[Path]) -> Iterator[Whole]:
    """Numbers by frequency ranks, which the drawn documents count; weights against norms."""
    of_tokens, pairs, coarse = list[Any](), list[Any](), list[Float64]()
    for computer, shard in documents("demo", files, ("mixing", "norms")):
        mixing, norms = computer.read(computer.reader.examples(shard))
        scope, part = computer.job.scope, norms.cancellation
        known = {"_ratios": mixing._ratios, "_layers": mixing._layers}
        of_tokens.append((computer._showing.batch, known, {"_both": norms.frequency._both}))
        pairs.append(csr_array(part.pairs.counts.reshape(1, -1)))
        coarse.append(part.coarse_pairs.total)
    every_pair, every_coarse = vstack(pairs).T.tocsr(), np.stack(coarse)

    def cancellation(at: Ints) -> Estimate:
        part = Cancellation(replace(scope, replicates=len(at)), every=EVERY)
        times = np.bincount(at, minlength=len(coarse))
        part.pairs.counts[...] = (every_pair @ times).reshape(part.pairs.counts.shape)
        part.coarse_pairs.by_group = every_coarse[at]
        return part.result()["spearman_attention_value_norm"].value

    def by_rank(kind: type[Mixing | FrequencyRelation], variable: str, at: Ints) -> Estimate:
        drawn = [of_tokens[document] for document in at]
        ids = np.concatenate([batch.input_ids[batch.mask].numpy() for batch, *_ in drawn])
        ranks = corpus_ranks(np.bincount(ids, minlength=len(scope.frequency_rank)))
        analysis = kind(replace(scope, replicates=len(at), frequency_rank=ranks))
        for place, (batch, *known) in enumerate(drawn):
            vars(analysis).update(known[kind is FrequencyRelation])
            groups = np.full(len(batch.input_ids), place)
            shown = SimpleNamespace(
                input_ids=batch.input_ids, mask=batch.mask, units=batch.units, groups=groups
            )
            analysis.finish(shown)
        result = analysis.result()
        number = (
            result[variable].value if kind is FrequencyRelation else of_results(result, variable)
        )
        return number.map(np.ravel)

    yield Whole("spearman_attention_value_norm", "treebank", len(coarse), cancellation)
    for where, kind, variable in (
        ("norms", FrequencyRelation, "spearman_frequency"),
        ("mixing", Mixing, "spearman_frequency"),
        ("norms", FrequencyRelation, "frequency_profile"),
    ):
        yield Whole(variable, f"treebank, {where}", len(coarse), partial(by_rank, kind, variable))


def by_document(
    name: str, files: Sequence[Path], analyses: tuple[str, ...] = ("dependency", *PLAIN)
) -> tuple[dict[str, Any], Scope]:
    """The sums of every document, by analysis and accumulator; and what the analyses know."""
    sums = dict[str, list[Any]]()
    for computer, shard in documents(name, files, analyses):
        for key, part in computer.compute(shard).items():
            sums.setdefault(key, []).append(part[0].copy())
    return {key: np.stack(parts) for key, parts in sums.items()}, computer.job.scope


def documents(
    name: str, files: Sequence[Path], analyses: tuple[str, ...]
) -> Iterator[tuple[Computer, Shard]]:
    """Each document, as a shard of one batch; its sums are in one group."""
    model, corpus = hs.load(name), hs.corpus.TreebankCorpus(files)
    settings = hs.Settings(analyses=analyses, replicates=1, shard_tokens=1, batch_tokens=1 << 20)
    plan = make_plan(model, corpus, settings)
    scope = scope_of(model, plan, settings, frequency_ranks(plan, None, model))
    job = ShardJob(corpus, settings, scope, analyses, model.shape.stack, "stock", 1)
    computer = Computer(model, job)
    return ((computer, shard) for shard in plan.shards)
