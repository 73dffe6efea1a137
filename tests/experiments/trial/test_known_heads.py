"""Are labels of heads confirmed that are wired to do it, and of those that only look so not?"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import headscope as hs
from headscope.analyses.explained.rules import RESTS, rules_of_run
from headscope.claims.plan import CHANGES, COPIES, NOTHING, OWN_KEYS
from headscope.experiments.replay.choosing import scope_of_inputs
from headscope.experiments.replay.scored_model import ScoredModel
from headscope.experiments.trial.hypotheses import Hypothesis, own_keys
from headscope.experiments.trial.settings import TrialSettings
from headscope.experiments.trial.trying import TrialRun, read_pool
from headscope.experiments.trial.verdicts import (
    CONFIRMED,
    NOT_CONFIRMED,
    UNTESTABLE,
    TriedLabel,
    tried_labels,
)
from headscope.model.model import evaluating
from headscope.run.life_cycle import RunInProgress
from headscope.wired import WiredHead, annotated_corpus, wire
from headscope.wired.decks import deck

SUBJECT = "subject → verb"
SHARP = 10.0
IN_MEMORY = {"fingerprint": "", "linears": "stock", "shards": 0}


@cache
def known(family: str) -> dict[str, WiredHead]:
    name, _, inputs = family.partition(" ")
    return {head.name: head for head in deck(name, inputs or "sentences", SHARP)}


def tried(family: str, *labels: tuple[str, str, str]) -> list[TriedLabel]:
    """Verdicts on labels of one layer of heads: the name of each head, a rule, what it expects."""
    names = list(dict.fromkeys(name for name, *_ in labels))
    heads = [known(family)[name] for name in names]
    kind, _, inputs = family.partition(" ")
    speaks = inputs == "circuits"
    rows = [heads, heads] if any(head.late for head in heads) else [heads]
    made = wire(kind, rows, seed=1, speaks=speaks)
    model = hs.load(made.network, tokenizer=made.tokenizer)
    scored = ScoredModel(model, "causal" if speaks else "vectors")
    settings = TrialSettings(inputs=14)
    examples, _ = read_pool(scored, annotated_corpus(16, each=2), settings)
    rules = rules_of_run(scope_of_inputs(model, examples, replicates=200, seed=0))
    last = len(rows) - 1
    hypotheses = [
        Hypothesis(rule, "x", own_keys(head) if rule == OWN_KEYS else rule, (head,), expects)
        for name, rule, expects in labels
        for head in [(last, names.index(name))]
    ]
    rests = np.full((len(rows), len(heads)), RESTS.index("all tokens evenly"))
    trial = TrialRun(scored, examples, hypotheses, rules, rests, settings)
    with evaluating(model.network):
        return tried_labels(trial.compute(RunInProgress(None, IN_MEMORY)))


@pytest.fixture(scope="module")
def of_encoder() -> dict[tuple[str, str], TriedLabel]:
    labels = [
        ("previous token", "the previous token", CHANGES),
        ("nsubj dependent_to_head", SUBJECT, CHANGES),
        ("to noun", "all nouns", CHANGES),
        ("same entity", "earlier mentions of the same entity", CHANGES),
        ("main verb from everywhere", SUBJECT, CHANGES),
        ("hashed pairs", SUBJECT, CHANGES),
        ("previous token", "noun → its determiner", CHANGES),
        ("previous token, stops rest", "the previous token", CHANGES),  # takes nothing
        ("rests on sep", "the separators", NOTHING),
        ("reads sep", "the separators", NOTHING),
        ("reads sep", "the separators", CHANGES),
        ("reads sep", "no such rule", CHANGES),
    ]
    return {
        label[:2] + label[2:]: one
        for label, one in zip(labels, tried("bert", *labels), strict=True)
    }


@pytest.mark.parametrize(
    ("head", "rule", "expects"),
    [
        ("previous token", "the previous token", CHANGES),
        ("nsubj dependent_to_head", SUBJECT, CHANGES),
        ("to noun", "all nouns", CHANGES),
        ("same entity", "earlier mentions of the same entity", CHANGES),
        ("rests on sep", "the separators", NOTHING),
        ("reads sep", "the separators", CHANGES),
    ],
)
def test_what_a_head_is_wired_to_do_is_confirmed(of_encoder, head, rule, expects) -> None:
    one = of_encoder[head, rule, expects]
    assert one.outcome == CONFIRMED, one


@pytest.mark.parametrize(
    ("head", "rule", "expects", "why"),
    [
        ("main verb from everywhere", SUBJECT, CHANGES, "the same tokens by other queries"),
        ("hashed pairs", SUBJECT, CHANGES, ""),
        ("previous token", "noun → its determiner", CHANGES, ""),
        ("previous token, stops rest", "the previous token", CHANGES, ""),
        ("reads sep", "the separators", NOTHING, "half of what the same weight would change"),
    ],
)
def test_what_only_looks_like_it_is_not(of_encoder, head, rule, expects, why) -> None:
    one = of_encoder[head, rule, expects]
    assert one.outcome == NOT_CONFIRMED
    assert why in one.why


def test_a_rule_that_never_applies_cannot_be_tried(of_encoder) -> None:
    one = of_encoder["reads sep", "no such rule", CHANGES]
    assert one.outcome == UNTESTABLE
    assert one.why == "no rule predicts what it says"


def test_of_a_decoder_it_is_tried_what_is_copied() -> None:
    labels = [
        ("induction, copied", "the token after the same one before", COPIES),
        ("at rest, with what little is left copied", "the token after the same one before", COPIES),
        ("previous token, nothing taken", "the previous token", CHANGES),
        ("previous token, noted", "the previous token", CHANGES),
    ]
    outcomes = [one.outcome for one in tried("gpt2 circuits", *labels)]
    assert outcomes[1:3] == [NOT_CONFIRMED] * 2
    assert outcomes[3] == CONFIRMED


def test_of_a_copying_head_it_is_tried_whether_it_copies_what_it_looks_at() -> None:
    names = ("copied", "denied", "noted", "nothing taken")
    labels = [(f"previous token, {name}", OWN_KEYS, COPIES) for name in names]
    outcomes = [one.outcome for one in tried("gpt2 circuits", *labels)]
    assert outcomes == [CONFIRMED] + [NOT_CONFIRMED] * 3


def test_what_a_head_carries_can_come_from_another_input_with_the_same_token(of_encoder) -> None:
    assert of_encoder["previous token", "the previous token", CHANGES].transfers
    assert not of_encoder["previous token, stops rest", "the previous token", CHANGES].transfers
    assert of_encoder["to noun", "all nouns", CHANGES].transfers is None  # many tokens
