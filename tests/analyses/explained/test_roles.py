"""Is a head said to have as many roles as it was wired to have, though most queries rest?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import headscope as hs
from headscope.analyses.explained import QUESTION
from headscope.analyses.explained.measure import Explained, shares_of_rules
from headscope.analyses.explained.sentences import roles
from headscope.claims.reading import Reading
from headscope.wired import annotated_corpus, wire
from headscope.wired.catalogue import RESTS
from headscope.wired.catalogue_language import relations, two_roles

SHARP = 10.0
LIMITS = ("ci_low", "ci_high")


def test_two_roles_are_found_and_one_is_not_split_though_most_queries_rest() -> None:
    names = (
        "subject to verb, determiner to noun, else rests",
        "obj dependent_to_head, else rests",
    )
    every = [*two_roles(SHARP, RESTS["bert"]), *relations(SHARP, RESTS["bert"])]
    heads = [head for name in names for head in every if head.name == name]
    made = wire("bert", [heads], seed=3)
    model = hs.load(made.network, tokenizer=made.tokenizer)
    corpus = annotated_corpus(30, each=1, seed=2)
    run = hs.atlas(model, corpus, analyses=["explained"], control="none")
    reading = Reading(run.tree, QUESTION)
    two, one = ({rule.name for rule in roles(reading, 0, at)} for at in range(2))
    assert two == {"subject → verb", "determiner → noun"}
    assert one == {"direct object → verb"}
    before = run.tree.copy()
    old = before["explained"].to_dataset().drop_vars("role_share")
    before["explained"].dataset = old  # a run of an older version
    assert [rule.name for rule in roles(Reading(before, QUESTION), 0, 1)] != []


def test_a_query_counts_by_how_much_it_gathers(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[torch.Tensor, torch.Tensor]] = []
    add = Explained._score_gathering

    def watched(
        self: Explained, index: int, own: Any, amount: Any, maps: Any, example: Any, **more: Any
    ) -> None:
        add(self, index, own, amount, maps, example, **more)
        rules = self.of_gathering["rules"].layer(index)
        predicted = rules.attention(maps, example.input_ids)
        seen.append((amount, shares_of_rules(rules, maps, own, predicted)))

    monkeypatch.setattr(Explained, "_score_gathering", watched)
    every = list(two_roles(SHARP, RESTS["bert"]))
    made = wire("bert", [every[:2]], seed=3)
    model = hs.load(made.network, tokenizer=made.tokenizer)
    corpus = annotated_corpus(30, each=1, seed=2)
    found = hs.atlas(model, corpus, analyses=["explained"], control="none")["explained"]
    for head, slot in np.ndindex(2, found.sizes["slot"]):
        parts = [(float(s[head, slot] @ a[head]), float(a[head].sum())) for a, s in seen]
        wanted = sum(part for part, _ in parts) / sum(whole for _, whole in parts)
        share = found["role_share"][0, head, slot]
        np.testing.assert_allclose(float(share), wanted, rtol=1e-5)
        low, high = (float(found[f"role_share_{end}"][0, head, slot]) for end in LIMITS)
        assert low <= float(share) <= high
        assert low < high or wanted in (0.0, 1.0)
