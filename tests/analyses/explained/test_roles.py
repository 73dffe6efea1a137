"""Is a head said to have as many roles as it was wired to have, though most queries rest?"""

from __future__ import annotations

import numpy as np
import torch

import headscope as hs
from headscope.analyses.explained import QUESTION
from headscope.analyses.explained.role_sums import RoleSums
from headscope.analyses.explained.sentences import roles
from headscope.claims.reading import Reading
from headscope.wired import annotated_corpus, wire
from headscope.wired.catalogue import RESTS
from headscope.wired.catalogue_language import relations, two_roles

SHARP = 10.0


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


def test_a_query_counts_by_how_much_it_gathers() -> None:
    explained, amount = torch.rand(2, 3, 5), torch.rand(2, 5)
    sums = RoleSums(1, 2, 3)
    sums.add(0, explained[:, :, :2], amount[:, :2])
    sums.add(0, explained[:, :, 2:], amount[:, 2:])
    share = sums.variables()["role_share"].value
    for head in range(2):
        for slot in range(3):
            parts = [float(explained[head, slot, q] * amount[head, q]) for q in range(5)]
            wanted = sum(parts) / float(amount[head].sum())
            np.testing.assert_allclose(share[0, head, slot], wanted, rtol=1e-5)
