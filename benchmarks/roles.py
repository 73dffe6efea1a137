"""Are the rules and the roles of heads found? Of networks whose heads are known.

python -m benchmarks.roles [--networks N] [--seed S] [--workers N]

Wired networks of one layer with eight heads, two of which have two roles by trigger in the
families that see both ways; knobs as in `benchmarks.truth`. Printed, with 95 % intervals (Clopper
and Pearson): in how many heads the wired rule (of two roles: both) is among the first three of what
the head gathers, its rest counting as one (of heads that take nothing from where they look: of
their attention); how many heads of two roles are said to have two; and how many others are said to
have several. Heads one of whose roles concerns about a tenth of the words count for neither.
"""

from __future__ import annotations

import argparse
import json
import os
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context

import numpy as np
import xarray as xr
from tqdm import tqdm

import headscope as hs
from benchmarks.label_trials import true_of
from benchmarks.truth import NOISY, OVERLAP, SATURATED, SHARP, share
from headscope.analyses.explained import QUESTION
from headscope.analyses.explained.rules import RESTS
from headscope.analyses.explained.sentences import BY, roles
from headscope.claims.reading import Reading
from headscope.wired import Wired, WiredHead, annotated_corpus, wire
from headscope.wired.catalogue import RESTS as IDLE
from headscope.wired.catalogue_language import two_roles
from headscope.wired.decks import deck

FAMILIES = ("bert", "gpt2", "t5", "bert", "llama", "bert")  # in turn
HEADS, TWO = 8, 2
FIRST = 3  # rules
PLACES = {
    -3: "three tokens back", -2: "two tokens back", -1: "the previous token",
    0: "the token itself", 1: "the next token", 2: "two tokens on", 3: "three on",
}  # fmt: skip
NO_RULE = ("narrow", "threshold_sink")  # a few forms of no kind
OF_KIND = {"broad": "all tokens evenly"}
MOST_WORDS = ("by frequent tokens", "by rarer tokens")  # all queries but marks and pieces
ALIKE = {  # rules of the same keys in these inputs
    "the opening token": ("the first token",),
    "all special tokens": ("the first token", "the opening token", "the separators"),
    "the same token elsewhere": ("the token itself", "the same token before"),
}


@dataclass
class Counts:
    """Of one network or of several: how many of how many, and which not."""

    recovered: Counter[bool] = field(default_factory=Counter)
    on_card: Counter[bool] = field(default_factory=Counter)
    two_found: Counter[bool] = field(default_factory=Counter)
    one_split: Counter[bool] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)

    def add(self, other: Counts) -> None:
        """Counts another one in."""
        for name, counts in vars(other).items():
            getattr(self, name).update(counts)

    def lines(self) -> list[str]:
        """The figures, then the faults."""
        said = {
            f"wired rule among the first {FIRST}": self.recovered,
            f"… among the first {FIRST} of a card, where all queries count alike": self.on_card,
            "heads of two roles, two found": self.two_found,
            "other heads, several found": self.one_split,
        }
        rows = [f"| {name} | {share(one[True], one.total())} |" for name, one in said.items()]
        faults = [f"{times:3}  {fault}" for fault, times in self.faults.most_common()]
        return ["| | % |\n|---|---|", *rows, "", *faults]


def network(number: int, *, seed: int) -> Wired:
    """One network; `number` turns the knobs."""
    rng = np.random.default_rng((seed, number))
    turn, of_family = divmod(number, len(FAMILIES))
    family, knob = FAMILIES[of_family], (turn + of_family) % 3
    sharp = SATURATED if rng.random() < 1 / 6 else SHARP
    every, two = list(deck(family, "sentences", sharp)), list(two_roles(sharp, IDLE[family]))
    count = 0 if IDLE[family].causal else TWO
    heads = [two[at] for at in rng.permutation(len(two))[:count]]
    heads += [every[at] for at in rng.permutation(len(every))[: HEADS - count]]
    return wire(
        family,
        [[heads[at] for at in rng.permutation(HEADS)]],
        seed=seed * 10_000 + number,
        noise=NOISY if knob == 1 else 0.0,
        overlap=OVERLAP if knob == 2 else 0.0,
        turned=bool(rng.random() < 0.5),
        grouped=2 if family == "llama" else 1,
    )


def read(number: int, *, seed: int) -> Counts:
    """What is found of the heads of one network."""
    made, counts = network(number, seed=seed), Counts()
    family = made.network.config.model_type
    run = hs.atlas(
        hs.load(made.network, tokenizer=made.tokenizer),
        annotated_corpus(60, each=2, seed=seed),
        analyses=[QUESTION.name],
        control="none",
        seed=seed,
        execution=hs.Execution(linears="stock", threads=1),
    )
    reading = Reading(run.tree, QUESTION)
    for at, head in enumerate(made.heads[0]):
        data = run.tree[QUESTION.name].dataset
        sink = any(
            said.kind == "sink" for said in head.said
        )  # nothing is taken from where it looks
        rules, of_card = (
            first_rules(data, at, "" if sink else by) for by in ("role_share", "rule_share")
        )
        count = len(roles(reading, 0, at))
        if (there := is_there(head, rules)) is not None:
            counts.recovered[there] += 1
            counts.on_card[bool(is_there(head, of_card))] += 1
            counts.faults[f"{family}: {head.name}: first {', '.join(rules)}"] += not there
        if head.roles == 2:
            counts.two_found[count == 2] += 1
        elif head.roles == 1:
            counts.one_split[count > 1] += 1
        names = ", ".join(rule.name for rule in roles(reading, 0, at))
        wrong = head.roles == 2 != count or (head.roles == 1 < count)
        counts.faults[f"{family}: {head.name}: {count} roles: {names}"] += wrong
    counts.faults = +counts.faults
    return counts


def first_rules(data: xr.Dataset, head: int, by: str) -> list[str]:
    """The rules of a head with the largest shares, its rest among them; without `by`, or of a head
    that gathers nothing, those of its attention: its rest and the rules that were chosen first.
    """
    shares = data[by].values[0, head] if by else np.full(1, np.nan)
    gathers = bool(np.isfinite(shares).any())
    chosen = data.sel(explains="gathering" if gathers else "attention", layer=0, head=head)
    names, rules = json.loads(data.attrs["rules"]), chosen["rule"].values.tolist()
    every = [names[rule] if rule >= 0 else "" for rule in rules] + [RESTS[int(chosen["rest"])]]
    order = np.argsort(-shares, kind="stable") if gathers else (-1, *range(len(rules)))
    return [every[at] for at in order if every[at]][:FIRST]


def is_there(head: WiredHead, rules: Sequence[str]) -> bool | None:
    """Whether the rule that a head was wired to follow is among these; None: it follows none."""
    true = [OF_KIND.get(kind, rule) for kind, rule, _ in true_of(head) if kind not in NO_RULE]
    if not true:
        return None
    if head.roles == 2:
        return set(true) <= set(rules)
    near = [PLACES[at] for at, weight in head.reach.items() if at in PLACES and weight > 1]
    alike = [name for rule in true for name in ALIKE.get(rule, ())]
    by_kind = [rule.partition(BY)[0] for rule in rules if rule.endswith(MOST_WORDS)]
    return bool({*true, *near, *alike} & {*rules, *by_kind})


def main(arguments: Sequence[str] | None = None) -> None:
    """Read all networks and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--networks", type=int, default=24)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args(arguments)
    os.environ["OMP_NUM_THREADS"] = "1"  # of each worker
    whole = Counts()
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
        reading = pool.map(partial(read, seed=options.seed), range(options.networks))
        for one in tqdm(reading, total=options.networks, unit="network"):
            whole.add(one)
    print("\n".join(whole.lines()))


if __name__ == "__main__":
    main()
