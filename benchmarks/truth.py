"""Are labels right? Of networks whose heads are known.

python -m benchmarks.truth [--networks N] [--seed S] [--quick] [--workers N] [--only NAME]
                           [--figure FILE]

Wired networks (`headscope.wired`) are read as a user's would be. Printed of each kind of label: of
all that were said, how many are true (precision), and of all that had to be said, how many were
(recall), with 95 % intervals (Clopper and Pearson); which heads failed; and both by sharpness and
by noise. Half of the networks are turned; a third have noise on all weights, another third features
that overlap; in one of six attention is saturated. Heads stand in any order. In the curves what a
head is wired to do counts as missed however little of it is left.
"""

from __future__ import annotations

import argparse
import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from scipy.stats import binomtest
from tqdm import tqdm

import headscope as hs
from headscope.draw.panel import Panel, compose
from headscope.draw.saving import save_picture
from headscope.draw.style import color as hue
from headscope.model.language_model import LanguageModel
from headscope.wired import Wired, WiredHead, annotated_corpus, long_corpus, pair_corpus, wire
from headscope.wired.catalogue_circuits import LENGTH
from headscope.wired.decks import deck
from headscope.wired.truth import judge, plain_truths

SHARP, NOISY = 10.0, 0.02  # what the goals are stated for: log-odds of a match; noise on weights
SATURATED, OVERLAP = 60.0, 0.02
SHAPES = ((2, 8), (4, 4), (3, 6), (2, 6))  # layers, heads
SHARPNESS = (1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 20.0)
NOISE = (0.0, 0.02, 0.05, 0.1, 0.2, 0.4)
OF_A_POINT = 3  # networks
CASES = {  # family and inputs -> share of the networks
    ("bert", "sentences"): 0.4, ("bert", "pairs"): 0.1, ("t5", "sentences"): 0.1,
    ("gpt2", "sentences"): 0.1, ("llama", "sentences"): 0.1, ("gpt2", "long"): 0.04,
    ("gpt2", "circuits"): 0.08, ("llama", "circuits"): 0.08,
}  # fmt: skip
OF_ANY = ("broad", "narrow")  # true of some untrained network, too: asked for without a control
LOOKS = ("surface", "entropy", "distance", "sinks", "norms")
KNOWS = ("dependency", "coreference", "frames", "features", "pairs")
PLACES = {"long": 192}  # of absolute position embeddings; else 64


@dataclass(frozen=True)
class Plan:
    """One network: what it is made of, and how it is read."""

    name: str
    family: str
    inputs: str
    shape: tuple[int, int]
    heads: tuple[int, ...]  # places in the deck of its case, by layer
    sharpness: float = SHARP
    noise: float = 0.0
    turned: bool = False
    overlap: float = 0.0
    grouped: int = 1
    control: str = "random"
    strict: bool = False
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
    examples: list[str] = field(default_factory=list)  # false labels
    decoys: int = 0  # labels of a kind that a decoy only looks like

    def add(self, other: Report) -> None:
        """Counts another one in."""
        for kind, score in other.scores.items():
            self.scores[kind] = self.scores.get(kind, Score()) + score
        self.faults += other.faults
        self.decoys += other.decoys
        self.examples += other.examples

    @property
    def whole(self) -> Score:
        """Of all kinds together."""
        return sum(self.scores.values(), Score())


def plans(count: int, seed: int) -> Iterator[Plan]:
    """Networks whose heads are dealt from whole decks, so that no variant is left out."""
    rng, cases = np.random.default_rng(seed), list(CASES)
    waiting: dict[tuple[str, str], list[int]] = {case: [] for case in cases}
    for number in range(count):
        family, inputs = case = cases[int(rng.choice(len(cases), p=list(CASES.values())))]
        layers, heads = SHAPES[int(rng.integers(len(SHAPES)))]
        if inputs == "circuits":
            layers = 2
        if inputs == "long":
            layers, heads = 2, 4
        dealt, left = list[int](), waiting[case]
        while len(dealt) < layers * heads:
            if not left:
                left += rng.permutation(len(_deck(family, inputs, SHARP))).tolist()
            dealt.append(left.pop())
        yield Plan(
            f"{number} {family} {inputs}",
            family,
            inputs,
            (layers, heads),
            tuple(dealt),
            sharpness=SATURATED if number % 6 == 0 else SHARP,
            noise=NOISY if number % 3 == 1 else 0.0,
            turned=bool(rng.random() < 0.5),
            overlap=OVERLAP if number % 3 == 2 else 0.0,
            grouped=2 if family == "llama" else 1,
            control="none" if number % 4 == 3 else "random",
            seed=seed * 10_000 + number,
        )


@cache
def _deck(family: str, inputs: str, sharpness: float) -> list[WiredHead]:
    return list(deck(family, inputs, sharpness))


@cache
def _corpus(inputs: str) -> hs.corpus.MemoryCorpus:
    if inputs == "sentences":
        return annotated_corpus(60, each=2)
    return pair_corpus(60) if inputs == "pairs" else long_corpus(60)


def wired(plan: Plan) -> Wired:
    """The network of a plan."""
    layers, heads = plan.shape
    dealt = [_deck(plan.family, plan.inputs, plan.sharpness)[at] for at in plan.heads]
    if plan.inputs == "circuits":  # who reads stands behind who writes
        dealt.sort(key=lambda head: head.late)
        noted = next(h for h in _deck(plan.family, plan.inputs, plan.sharpness) if h.notes)
        dealt[0] = noted
    rows = [dealt[at * heads : (at + 1) * heads] for at in range(layers)]
    rows = [[row[at] for at in np.random.default_rng(plan.seed).permutation(heads)] for row in rows]
    if plan.family == "t5":  # one table of distances for all layers
        tops = rows[0]
        rows = [
            [top if top.reach or head.reach else head for top, head in zip(tops, row, strict=True)]
            for row in rows
        ]
    return wire(
        plan.family,
        rows,
        seed=plan.seed,
        noise=plan.noise,
        turned=plan.turned,
        overlap=plan.overlap,
        places=PLACES.get(plan.inputs, 64),
        grouped=plan.grouped,
        speaks=plan.inputs == "circuits",
    )


def read(plan: Plan) -> Report:
    """What is said of the heads of one network."""
    made = wired(plan)
    run = _run(plan, made)
    shown = {} if plan.inputs == "circuits" else plain_truths(made, _corpus(plan.inputs))
    report = Report()
    for one in judge(run.tree, made, shown, strict=plan.strict):
        for must in one.right:
            report.scores.setdefault(must.kind, Score()).right += 1
        for must in one.missed:
            if must.kind in OF_ANY and plan.control != "none":
                continue
            report.scores.setdefault(must.kind, Score()).missed += 1
            report.faults[f"{one.head.name}: no {must.kind} {' '.join(must.about)}"] += 1
        for claim in one.false:
            report.scores.setdefault(claim.kind, Score()).false += 1
            report.faults[f"{one.head.name}: {claim.kind} ‘{claim.name}’"] += 1
            report.examples.append(f"{plan.name}: {one.head.name}: {claim.label}")
            report.decoys += claim.kind in one.head.decoy
    return report


def _run(plan: Plan, made: Wired) -> hs.Run:
    how = hs.Execution(linears="stock", threads=1)
    if plan.inputs == "circuits":
        language = LanguageModel(hs.load(made.network, tokenizer=made.tokenizer), "causal")
        return hs.circuits(
            language,
            sequences=30,
            length=LENGTH,
            haystack=0,
            composition=False,
            seed=plan.seed,
            control=plan.control,
            execution=how,
        )
    knows = plan.inputs == "sentences"
    return hs.atlas(
        hs.load(made.network, tokenizer=made.tokenizer),
        _corpus(plan.inputs),
        analyses=LOOKS + KNOWS * knows,
        control=plan.control,
        seed=plan.seed,
        execution=how,
        options={"frames": {"permutations": 50}} if knows else {},
    )


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


@dataclass(frozen=True)
class Curve:
    """Precision and recall by a knob."""

    knob: str
    values: tuple[float, ...]
    reports: list[Report]

    def lines(self) -> Iterator[str]:
        """A line for each value."""
        yield f"| {self.knob} | precision, % | recall, % |\n|---|---|---|"
        for value, report in zip(self.values, self.reports, strict=True):
            one = report.whole
            precision = share(one.right, one.right + one.false)
            yield f"| {value:g} | {precision} | {share(one.right, one.right + one.missed)} |"

    def draw(self, axes: Axes) -> None:
        """Both, with their intervals."""
        for name, word in (("precision", "blue"), ("recall", "vermillion")):
            wrong = "false" if name == "precision" else "missed"
            counts = [(r.whole.right, getattr(r.whole, wrong)) for r in self.reports]
            known = [
                (at, right, right + other)
                for at, (right, other) in enumerate(counts)
                if right + other
            ]
            ends = [binomtest(right, of).proportion_ci(method="exact") for _, right, of in known]
            mean = np.array([right / of for _, right, of in known])
            bars = [mean - [e.low for e in ends], [e.high for e in ends] - mean]
            axes.errorbar(
                [at for at, *_ in known],
                mean,
                bars,
                label=name,
                color=hue(word),
                marker="o" if name == "precision" else "^",
                capsize=0,
            )
        axes.set_xticks(range(len(self.values)), [f"{value:g}" for value in self.values])
        axes.set_ylim(0, 1.02)
        axes.set_xlabel(
            {"sharpness": "log-odds of a match", "noise": "noise on weights"}[self.knob]
        )
        axes.legend(loc="lower right" if self.knob == "sharpness" else "lower left")


def curve_plans(knob: str, values: Sequence[float], seed: int) -> list[Plan]:
    """OF_A_POINT networks, the same for each value but for it."""
    first = [one for one in plans(100, seed + 1) if one.name.endswith("bert sentences")]
    plain: dict[str, Any] = {
        "sharpness": SHARP,
        "noise": 0.0,
        "overlap": 0.0,
        "control": "random",
        "strict": True,
    }
    return [replace(one, **plain | {knob: value}) for value in values for one in first[:OF_A_POINT]]


def main(arguments: Sequence[str] | None = None) -> None:
    """Read all networks and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--networks", type=int, help="200, or 24 of --quick")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="no curves")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", default="", help="part of a name, such as `gpt2 circuits`")
    parser.add_argument("--figure", help="file of the picture of the curves")
    options = parser.parse_args(arguments)
    start, whole = time.perf_counter(), Report()
    usual = 24 if options.quick else 200
    made = list(plans(usual if options.networks is None else options.networks, options.seed))
    made = [one for one in made if options.only in one.name]
    asked = {} if options.quick or options.only else {"sharpness": SHARPNESS, "noise": NOISE}
    of_curves = {knob: curve_plans(knob, some, options.seed) for knob, some in asked.items()}
    os.environ["OMP_NUM_THREADS"] = "1"  # of each worker: networks are small, and workers as many
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
        for one in tqdm(pool.map(read, made), total=len(made), unit="network"):
            whole.add(one)
        print("\n".join(table(whole)))
        print(f"\n{whole.decoys} labels of kinds that decoys only look like")
        for fault, times in whole.faults.most_common():
            print(f"{times:3}  {fault}")
        print("\n".join(whole.examples), flush=True)
        curves = [
            Curve(knob, asked[knob], _pooled(list(pool.map(read, some))))
            for knob, some in of_curves.items()
        ]
    for curve in curves:
        print("\n" + "\n".join(curve.lines()))
    if options.figure and curves:
        panels = [Panel(f"By {curve.knob}", curve.draw) for curve in curves]
        save_picture(compose(panels), Path(options.figure))
    read_all = len(made) + sum(map(len, of_curves.values()))
    print(f"\n{read_all} networks, {time.perf_counter() - start:.0f} s")


def _pooled(reports: Sequence[Report]) -> list[Report]:
    """One for each value."""
    found = list[Report]()
    for at in range(0, len(reports), OF_A_POINT):
        found.append(Report())
        for one in reports[at : at + OF_A_POINT]:
            found[-1].add(one)
    return found


if __name__ == "__main__":
    main()
