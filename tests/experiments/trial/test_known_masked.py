"""Are labels of a masked language model confirmed where heads are wired to tell masked tokens?"""

from __future__ import annotations

import numpy as np
import pytest

import headscope as hs
from headscope.analyses.explained.rules import RESTS, rules_of_run
from headscope.claims.plan import CHANGES
from headscope.experiments.replay.choosing import scope_of_inputs
from headscope.experiments.replay.scored_model import scored_model
from headscope.experiments.trial.hypotheses import Hypothesis
from headscope.experiments.trial.settings import TrialSettings
from headscope.experiments.trial.trying import TrialRun, read_pool
from headscope.experiments.trial.verdicts import CONFIRMED, tried_labels
from headscope.model.language_model import LanguageModel
from headscope.model.model import evaluating
from headscope.run.life_cycle import RunInProgress
from headscope.tasks.task_request import Loading
from headscope.wired import WiredHead, wire
from headscope.wired.catalogue_circuits import DENIES, NOTES, SPEAKS
from headscope.wired.heads import TAKES_NOTHING
from headscope.wired.language import forms

BACK, NEXT = "the previous token", "the next token"
S = 10.0
HEADS = (
    WiredHead("previous token, copied", reach={-1: S}, value=SPEAKS),
    WiredHead("next token, copied", reach={1: S}, value=SPEAKS),
    WiredHead("previous token, nothing taken", reach={-1: S}, value=TAKES_NOTHING),
    WiredHead("next token, denied", reach={1: S}, value=DENIES),
    WiredHead("previous token, noted", reach={-1: S}, value=NOTES),  # which nobody reads
    WiredHead("the token itself, copied", reach={0: S}, value=SPEAKS),
)
TRUE = {(0, BACK), (1, NEXT)}  # of masked tokens, as every word comes twice


def doubled(count: int = 60) -> list[str]:
    """Texts of drawn words, each twice."""
    random, words = np.random.default_rng(0), sorted(forms())
    return [
        " ".join(word for word in random.choice(words, 10) for _ in range(2)) for _ in range(count)
    ]


def confirmed(seed: int, noise: float) -> dict[tuple[int, str], bool]:
    """(head, rule) -> whether the label is."""
    made = wire("bert", [HEADS], seed=seed, noise=noise, speaks=True)
    model = hs.load(made.network, tokenizer=made.tokenizer)
    scored = scored_model(LanguageModel(model, "masked"), None, Loading())
    settings = TrialSettings(inputs=40, seed=seed)
    examples, _ = read_pool(scored, hs.corpus_of(doubled()), settings)
    rules = rules_of_run(scope_of_inputs(model, examples, replicates=200, seed=0))
    labels = [(head, rule) for head in range(len(HEADS)) for rule in (BACK, NEXT)]
    hypotheses = [Hypothesis(rule, "x", rule, ((0, head),), CHANGES) for head, rule in labels]
    rests = np.full((1, len(HEADS)), RESTS.index("all tokens evenly"))
    trial = TrialRun(scored, examples, hypotheses, rules, rests, settings)
    with evaluating(model.network):
        parts = RunInProgress(None, {"fingerprint": "", "linears": "stock", "shards": 0})
        verdicts = tried_labels(trial.compute(parts))
    return {label: one.outcome == CONFIRMED for label, one in zip(labels, verdicts, strict=True)}


@pytest.mark.parametrize(("seed", "noise"), [(1, 0.0), (2, 0.02), (3, 0.05)])
def test_heads_that_tell_masked_tokens_are_confirmed_and_no_others(seed, noise):
    verdicts = confirmed(seed, noise)
    assert {label for label, holds in verdicts.items() if holds} == TRUE
