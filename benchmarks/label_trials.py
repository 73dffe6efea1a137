"""Are labels confirmed that are true, and no others? Of networks whose heads are known.

python -m benchmarks.label_trials [--networks N] [--seed S] [--only NAME] [--workers N]

Wired networks are made as for `benchmarks.truth`. Tried are, of each head, the labels that are true
of it; and for each kind of label that it only looks like, the one of them that its maps suit best.
Printed: how many of each were confirmed, with 95 % intervals (Clopper and Pearson).
"""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np
from tqdm import tqdm

import headscope as hs
from benchmarks.truth import Plan, plans, share, wired
from headscope.analyses.explained.rules import RESTS, rules_of_run
from headscope.claims.attention_rule import AttentionRule, rows_of
from headscope.claims.claim import Claim
from headscope.claims.head_labels import label_rules
from headscope.claims.plan import COPIES, NOTHING, OWN_KEYS
from headscope.claims.relation_names import arrow
from headscope.experiments.replay.choosing import scope_of_inputs
from headscope.experiments.replay.scored_model import ScoredModel
from headscope.experiments.trial.hypotheses import Hypothesis, own_keys
from headscope.experiments.trial.settings import TrialSettings
from headscope.experiments.trial.trying import TrialRun, read_pool
from headscope.experiments.trial.verdicts import CONFIRMED, UNTESTABLE, tried_labels
from headscope.model.instrument import Instrument
from headscope.model.model import Model, evaluating, forward
from headscope.run.life_cycle import RunInProgress
from headscope.wired import Wired, annotated_corpus, long_corpus, pair_corpus
from headscope.wired.features import SPOKEN
from headscope.wired.heads import WiredHead

CLAIMS = {  # kind -> what a claim of the kind may be about
    "dependency": ("nsubj", "obj", "det", "amod", "advmod", "obl", "conj", "case"),
    "pair": ("subject_to_verb", "verb_to_subject", "noun_to_pronoun", "pronoun_to_noun"),
    "feature": ("noun", "verb", "pronoun", "subject", "object", "negation"),
    "sink": ("cls", "sep", "special", "first"),
}
WAYS = ("dependent_to_head", "head_to_dependent")


def rule_of(kind: str, about: str, name: str = "") -> tuple[str, str]:
    """The rule of a label, and what it expects."""
    rule = label_rules()[kind]
    if kind == "dependency":
        label, way = about.split(" ")
        about, name = label, arrow(label, way)
    claim: Any = Claim(0, 0, kind, 0, name, "", "", 0, 0, 0, 0, 0, "", about)
    return rule.predicted_by(claim), rule.expects


def true_of(head: WiredHead) -> Iterator[tuple[str, str, str]]:
    """(kind, rule, expects) of the labels that must be said of a head."""
    for said in head.said:
        if said.kind == "rest":
            rest = "self" if head.reach.get(0) else "previous"
            names = {"self": "of the rest, token itself", "previous": "of the rest, previous token"}
            yield said.kind, *rule_of(said.kind, "", names[rest])
        elif said.kind == "frames":
            name = (
                "frame element → target"
                if head.name.startswith("element")
                else "target → frame element"
            )
            yield said.kind, *rule_of(said.kind, "", name)
        else:
            yield said.kind, *rule_of(said.kind, said.about[0] if said.about else "")


def decoys_of(head: WiredHead) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """(kind, its rules with what they expect) of the kinds that a head only looks like."""
    for kind in head.decoy:
        rule = label_rules()[kind]
        if kind == "dependency":
            some = [f"{one} {way}" for one in CLAIMS[kind] for way in WAYS]
            yield kind, [rule_of(kind, about) for about in some]
        elif kind == "frames":
            names = ("frame element → target", "target → frame element")
            yield kind, [rule_of(kind, "", name) for name in names]
        elif kind in CLAIMS:
            yield kind, [rule_of(kind, about) for about in CLAIMS[kind]]
        elif rule.predicts:
            yield kind, [rule_of(kind, "")]


def best_suited(
    model: Model, examples: Sequence[Any], rules: Sequence[AttentionRule], trial: TrialRun
) -> np.ndarray[Any, Any]:
    """[rule, layer, head] mean attention to the keys of a rule where it applies."""
    shape = model.shape
    total = np.zeros((len(rules), shape.layers, shape.heads))
    count = np.zeros(len(rules))
    for example in examples:
        rows = rows_of(rules, trial._read(example))
        applies = rows.sum(-1) > 0.5
        count += applies.sum(-1)
        maps: list[np.ndarray[Any, Any]] = []

        def look(view: Any, maps: list[Any] = maps) -> None:
            maps.append(view.attention[0].double().numpy())

        with (
            evaluating(model.network),
            Instrument(model.network, observers=[look], stacks=[shape.stack]),
        ):
            forward(model.network, *model.batch([example]).inputs)
        n = len(example)
        for layer, own in enumerate(maps):
            total[:, layer] += np.einsum("hqk,rqk->rh", own[:, :n, :n], rows > 0)
    return total / np.maximum(count, 1)[:, None, None]


def corpus_of(inputs: str) -> hs.corpus.MemoryCorpus:
    if inputs in ("sentences", "circuits"):
        return annotated_corpus(60, each=2, seed=7)
    return pair_corpus(60, seed=7) if inputs == "pairs" else long_corpus(24, seed=7)


Row = tuple[str, str, str, str, str]


def read(plan: Plan) -> list[Row]:
    """(network, head, true or decoy, kind and rule, verdict) of every label that was tried."""
    made: Wired = wired(plan)
    model = hs.load(made.network, tokenizer=made.tokenizer)
    causal = plan.inputs == "circuits"
    scored = ScoredModel(model, "causal" if causal else "vectors")
    settings = TrialSettings(seed=plan.seed)
    examples, _ = read_pool(scored, corpus_of(plan.inputs), settings)
    rules = rules_of_run(scope_of_inputs(model, examples, replicates=200, seed=0))
    known = {rule.name for rule in rules}
    shape = model.shape
    rests = np.full((shape.layers, shape.heads), RESTS.index("all tokens evenly"))
    bare = TrialRun(scored, examples, [], rules, rests, settings)
    suited = best_suited(model, examples[:20], rules, bare)
    number = {rule.name: at for at, rule in enumerate(rules)}
    hypotheses, truths = [], []
    for layer, row in enumerate(made.heads):
        for at, head in enumerate(row):
            place, true = (layer, at), list(true_of(head))
            for kind, predicted, expects in true:
                if rule := _of_head(predicted, place):
                    hypotheses.append(Hypothesis(rule, kind, rule, (place,), expects))
                    truths.append((head.name, truth_of(plan, head, expects)))
            names = {rule for _, rule, _ in true} | also_of(head)
            for kind, some in decoys_of(head):
                may = [(r, e) for r, e in some if r in known and r not in names]
                if some == [(OWN_KEYS, COPIES)] and OWN_KEYS not in names:
                    may = [(own_keys(place), COPIES)]
                if may:
                    shares = [suited[number[one], layer, at] for one, _ in may if one in number]
                    rule, expects = may[int(np.argmax(shares or 0))]
                    hypotheses.append(Hypothesis(rule, kind, rule, (place,), expects))
                    truths.append((head.name, "decoy"))
    trial = TrialRun(scored, examples, hypotheses, rules, rests, settings)
    manifest = {"fingerprint": "", "linears": "stock", "shards": 0}
    with evaluating(model.network):
        result = trial.compute(RunInProgress(None, manifest))
    rows = list[Row]()
    every = zip(truths, tried_labels(result), hypotheses, strict=True)
    for number, ((head, truth), one, hypothesis) in enumerate(every):
        beyond = result["beyond"].values[number].round(3).tolist()
        numbers = f"{one.effect[0]:.3f}, beyond {beyond}, share {one.share[0]:.2f}"
        said = f"{one.outcome} {one.why} ({numbers})"
        rows.append((plan.name, head, truth, f"{one.kind}: {hypothesis.rule}", said))
    return rows


def _of_head(rule: str, head: tuple[int, int]) -> str:
    return own_keys(head) if rule == OWN_KEYS else rule


def truth_of(plan: Plan, head: WiredHead, expects: str) -> str:
    """Whether what a label that is true of the maps expects is true: a head that takes nothing
    changes nothing, but for what noise adds, and one that writes no words makes none likelier.
    """
    if expects == COPIES:
        return "true" if head.value.writes.name == SPOKEN.name and head.value.gain > 0 else "decoy"
    if head.value.gain or expects == NOTHING:
        return "true"
    return "noise" if plan.noise or plan.overlap else "decoy"


def also_of(head: WiredHead) -> set[str]:
    """Rules of labels that may be said of a head, and count for nothing."""
    names = set[str]()
    for also in head.also:
        abouts = also.about or CLAIMS.get(also.kind, ("",))
        for about in abouts:
            ways = (
                [f"{about} {way}" for way in WAYS]
                if also.kind == "dependency" and " " not in about
                else [about]
            )
            if also.kind == "frames":
                names |= {
                    rule_of("frames", "", name)[0]
                    for name in ("frame element → target", "target → frame element")
                }
            elif also.kind != "rest":
                names |= {rule_of(also.kind, one)[0] for one in ways}
    return names


def main(arguments: Sequence[str] | None = None) -> None:
    """Try the labels of all networks and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--networks", type=int, default=24)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="part of a name, such as `gpt2 circuits`")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args(arguments)
    os.environ["OMP_NUM_THREADS"] = "1"  # of each worker
    found, wrong = Counter[tuple[str, str, bool]](), Counter[str]()
    untestable = Counter[str]()
    made = [plan for plan in plans(options.networks, options.seed) if options.only in plan.name]
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
        for rows in tqdm(pool.map(read, made), total=len(made), unit="network"):
            for network, head, truth, what, verdict in rows:
                kind = what.partition(":")[0]
                if verdict.startswith(UNTESTABLE):
                    untestable[f"{truth} {kind}"] += 1
                    continue
                confirmed = verdict.startswith(CONFIRMED)
                found[truth, kind, confirmed] += 1
                if truth != "noise" and confirmed != (truth == "true"):
                    wrong[f"{truth}: {head} [{network}]: {what}: {verdict}"] += 1
    for truth in ("true", "decoy"):
        kinds = sorted({kind for t, kind, _ in found if t == truth})
        print(f"\n{truth}: confirmed, %")
        for kind in kinds:
            right = found[truth, kind, True]
            print(f"  {kind:16} {share(right, right + found[truth, kind, False])}")
        right = sum(n for (t, _, c), n in found.items() if t == truth and c)
        every = sum(n for (t, _, _), n in found.items() if t == truth)
        print(f"  {'all':16} {share(right, every)}")
    for text, times in [*wrong.most_common(80), *untestable.most_common(20)]:
        print(f"{times:3}  {text}")


if __name__ == "__main__":
    main()
