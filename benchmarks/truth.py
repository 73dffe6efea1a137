"""Are labels right? Of networks whose heads are known.

python -m benchmarks.truth [--networks N] [--seed S] [--quick] [--workers N] [--figure FILE]

Wired networks (`headscope.wired`) are read as a user's would be. Printed of each kind of label: of
all that were said, how many are true (precision), and of all that had to be said, how many were
(recall), with 95 % intervals (Clopper and Pearson); which heads failed; and both by sharpness and by
noise. Half of the networks are turned, a third have noise on all weights or features that overlap,
in one of six attention is saturated; heads stand in any order.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache
from multiprocessing import get_context

import numpy as np
from scipy.stats import binomtest

SHARP, NOISY = 10.0, 0.02  # what the goals are stated for: log-odds of a match; noise on weights
SATURATED = 60.0
SHAPES = ((2, 8), (4, 4), (1, 16), (3, 5))  # layers, heads
SHARPNESS = (1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 20.0)
NOISE = (0.0, 0.02, 0.05, 0.1, 0.2, 0.4)
OF_A_POINT = 4  # networks
CASES = (("bert", "sentences"), ("bert", "pairs"))
SHARES = (0.75, 0.25)
ANALYSES = {
    "sentences": ("surface", "entropy", "distance", "sinks", "norms", "dependency", "coreference",
                  "frames", "features", "pairs"),
    "pairs": ("surface", "entropy", "distance", "sinks", "norms"),
}  # fmt: skip


@dataclass(frozen=True)
class Plan:
    """One network: what it is made of, and how it is read."""

    name: str
    family: str
    corpus: str
    shape: tuple[int, int]
    heads: tuple[int, ...]  # places in the deck of its case, by layer
    sharpness: float = SHARP
    noise: float = 0.0
    turned: bool = False
    overlap: float = 0.0
    control: str = "random"
    seed: int = 0


@dataclass
class Score:
    """Of one kind of label."""

    right: int = 0
    missed: int = 0
    false: int = 0

    def __add__(self, other: Score) -> Score:
        return Score(self.right + other.right, self.missed + other.missed, self.false + other.false)


@dataclass
class Report:
    """What was said of the heads of one network or of several."""

    scores: dict[str, Score] = field(default_factory=dict)
    faults: Counter[str] = field(default_factory=Counter)
    decoys: int = 0  # labels of a kind that a decoy only looks like

    def add(self, other: Report) -> None:
        """Counts another one in."""
        for kind, score in other.scores.items():
            self.scores[kind] = self.scores.get(kind, Score()) + score
        self.faults += other.faults
        self.decoys += other.decoys

    @property
    def whole(self) -> Score:
        """Of all kinds together."""
        return sum(self.scores.values(), Score())


@cache
def deck(family: str, corpus: str, sharpness: float) -> list[object]:
    """All variants of all kinds."""
    from headscope.wired import catalogue

    return list(catalogue.deck(family, corpus, sharpness))


def plans(count: int, seed: int) -> Iterator[Plan]:
    """Networks whose heads are dealt from whole decks, so that no variant is left out."""
    rng = np.random.default_rng(seed)
    waiting: dict[tuple[str, str], list[int]] = {case: [] for case in CASES}
    for number in range(count):
        family, corpus = CASES[int(rng.choice(len(CASES), p=SHARES))]
        shape = SHAPES[int(rng.integers(len(SHAPES)))]
        dealt, left = list[int](), waiting[family, corpus]
        while len(dealt) < shape[0] * shape[1]:
            if not left:
                left += rng.permutation(len(deck(family, corpus, SHARP))).tolist()
            dealt.append(left.pop())
        yield Plan(
            f"{family} {number}", family, corpus, shape, tuple(dealt),
            sharpness=SATURATED if number % 6 == 5 else SHARP,
            noise=NOISY if number % 3 == 1 else 0.0, turned=bool(rng.random() < 0.5),
            overlap=0.02 if number % 3 == 2 else 0.0,
            control="none" if number % 4 == 3 else "random", seed=seed * 10_000 + number,
        )  # fmt: skip


def curve(plan: list[Plan], name: str, values: Sequence[float]) -> list[list[Plan]]:
    """For each value the same networks, with it."""
    return [[replace(one, sharpness=SHARP, noise=0.0, overlap=0.0, control="random") if False else
             replace(one, **{"sharpness": SHARP, "noise": 0.0, "overlap": 0.0, name: value})
             for one in plan] for value in values]  # fmt: skip


@cache
def corpus_of(name: str) -> object:
    """What a network reads."""
    from headscope.wired import annotated_corpus, pair_corpus

    return annotated_corpus(40, each=2) if name == "sentences" else pair_corpus(60)


def read(plan: Plan) -> Report:
    """What is said of the heads of one network."""
    import headscope as hs
    from headscope.wired import wire
    from headscope.wired.truth import judge, plain_truths

    layers, heads = plan.shape
    dealt = [deck(plan.family, plan.corpus, plan.sharpness)[at] for at in plan.heads]
    wired = wire(
        plan.family, [dealt[at * heads : (at + 1) * heads] for at in range(layers)],  # type: ignore[misc]
        seed=plan.seed, noise=plan.noise, turned=plan.turned, overlap=plan.overlap,
    )  # fmt: skip
    corpus = corpus_of(plan.corpus)
    run = hs.atlas(
        hs.load(wired.network, tokenizer=wired.tokenizer), corpus,  # type: ignore[arg-type]
        analyses=ANALYSES[plan.corpus], control=plan.control, seed=plan.seed,
        options={"frames": {"permutations": 50}} if "frames" in ANALYSES[plan.corpus] else {},
        execution=hs.Execution(linears="stock", threads=1),
    )  # fmt: skip
    report = Report()
    for one in judge(run.tree, wired, plain_truths(wired, corpus)):  # type: ignore[arg-type]
        for must in one.right:
            report.scores.setdefault(must.kind, Score()).right += 1
        for must in one.missed:
            if must.kind == "broad" and plan.control != "none":
                continue  # an untrained network is broad, too
            report.scores.setdefault(must.kind, Score()).missed += 1
            report.faults[f"{one.head.name}: no {must.kind} {' '.join(must.about)}"] += 1
        for claim in one.false:
            report.scores.setdefault(claim.kind, Score()).false += 1
            report.faults[f"{one.head.name}: {claim.kind} ‘{claim.name}’"] += 1
            report.decoys += claim.kind in one.head.decoy
    return report


def share(right: int, of: int) -> str:
    """A share with its interval, in per cent."""
    if not of:
        return "–"
    ends = binomtest(right, of).proportion_ci(method="exact")
    return f"{100 * right / of:.0f} [{100 * ends.low:.0f}, {100 * ends.high:.0f}] of {of}"


def table(report: Report) -> Iterator[str]:
    """A line for each kind."""
    yield "| kind | precision, % | recall, % |\n|---|---|---|"
    for kind, score in [*sorted(report.scores.items()), ("all", report.whole)]:
        precision = share(score.right, score.right + score.false)
        yield f"| {kind} | {precision} | {share(score.right, score.right + score.missed)} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Read all networks and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--networks", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="24 networks, no curves")
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args(arguments)
    start, count = time.perf_counter(), 24 if given.quick else given.networks
    made = list(plans(count, given.seed))
    whole = Report()
    with ProcessPoolExecutor(given.workers, mp_context=get_context("spawn")) as pool:
        for one in pool.map(read, made):
            whole.add(one)
    print("\n".join(table(whole)))
    print(f"\n{whole.decoys} labels of kinds that decoys only look like")
    for fault, times in whole.faults.most_common():
        print(f"{times:3}  {fault}")
    print(f"\n{count} networks, {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
