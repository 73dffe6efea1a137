"""Are heads that follow known rules explained by these, and are the sums those of a loop?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import takewhile
from typing import Any

import numpy as np
import pytest
import torch
from scipy.optimize import nnls

import headscope as hs
from headscope.analyses.explained import QUESTION
from headscope.analyses.explained.fitting import Products, choose
from headscope.analyses.explained.measure import DEALT, FEWEST, shares_of_rules
from headscope.analyses.explained.prediction import HeadRules, RuleMaps, gathered
from headscope.analyses.explained.rule_sums import RuleSums
from headscope.analyses.explained.rules import RESTS, rules_of_run
from headscope.analyses.explained.rules_as_data import tables
from headscope.analyses.explained.sentences import roles, rules_of, sentence
from headscope.claims.attention_rule import (
    POSITION,
    TOKEN,
    AttentionRule,
    RuleInput,
    rows_of,
)
from headscope.claims.question import named
from headscope.claims.reading import Reading
from headscope.core.accumulators import Float64
from headscope.corpus.document import Example
from headscope.corpus.equal_documents import dealt
from headscope.errors import InputError
from headscope.experiments.replay.rule_file import read_rules
from headscope.heads.head_card import card_text, head_card
from headscope.run.analysis import Scope
from headscope.wired import WiredHead, annotated_corpus, wire
from headscope.wired.catalogue import RESTS as PLACES
from headscope.wired.catalogue import neighbours, same_word, specials

SIZE = 9


def made_input(seed: int = 0, *, causal: bool = False, size: int = SIZE) -> RuleInput:
    """An input of one opening token, words and a closing token, without annotation."""
    ids = np.random.default_rng(seed).integers(5, 9, size)
    ids[0], ids[-1] = 1, 2
    special = np.isin(ids, (1, 2))
    return RuleInput(
        ids,
        tuple(f"t{token}" for token in ids),
        special,
        ids == 1,
        ids == 2,
        ids == 5,
        ids == 5,
        np.zeros(size, np.int64),
        np.full(size, -1),
        np.ones(size, bool),
        (ids == 6) & ~special,
        causal=causal,
    )


@cache
def every_rule() -> Sequence[AttentionRule]:
    return rules_of_run(Scope(1, 1, relations=("nsubj", "obj", "punct")))


def number(name: str) -> int:
    return [rule.name for rule in every_rule()].index(name)


def heads_of(*rules: dict[str, float], rest: str = "the first token") -> HeadRules:
    """One layer of heads with these rules."""
    rule, weight = np.full((len(rules), 5), -1), np.zeros((len(rules), 5))
    for head, parts in enumerate(rules):
        for slot, (name, share) in enumerate(parts.items()):
            rule[head, slot], weight[head, slot] = number(name), share
    none = np.zeros((len(rules), 0))
    place = np.full(len(rules), RESTS.index(rest))
    return HeadRules(rule, weight, place, none.astype(np.int64), none)


# --- rules ----------------------------------------------------------------------------------


@pytest.mark.parametrize("causal", [False, True])
def test_every_rule_gives_rows_of_one_or_nothing(causal: bool) -> None:
    rows = rows_of(every_rule(), made_input(causal=causal))
    total = rows.sum(-1)
    np.testing.assert_allclose(total[total > 0], 1, rtol=1e-5)
    assert not causal or not np.triu(rows, 1).any()


def test_rules_of_tokens_find_what_they_are_named_after() -> None:
    read = made_input(causal=True)
    ids = read.ids.tolist()
    rows = dict(zip([rule.name for rule in every_rule()], rows_of(every_rule(), read), strict=True))
    for query in range(1, SIZE - 1):
        before = [key for key in range(1, query) if ids[key] == ids[query]]
        assert np.flatnonzero(rows["the same token before"][query]).tolist() == before
        after = [key + 1 for key in before]
        assert np.flatnonzero(rows["the token after the same one before"][query]).tolist() == after
        assert (
            np.flatnonzero(rows["the token after the latest same one"][query]).tolist()
            == (after[-1:])
        )
    np.testing.assert_array_equal(rows["the previous token"], np.eye(SIZE, k=-1))
    assert rows["the opening token"][:, 0].all()


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (lambda read: np.ones(3), "3 numbers for an input of 9 tokens"),
        (lambda read: np.full((SIZE, SIZE), np.nan), "no number"),
        (lambda read: -np.eye(SIZE), "negative"),
        (lambda read: 0.5 * np.eye(SIZE), "a row of sum 0.5"),
        (lambda read: np.eye(SIZE, k=1), "cannot see"),
    ],
)
def test_a_rule_that_is_none_is_refused_by_name(rows: Any, words: str) -> None:
    rules = [every_rule()[0], AttentionRule("mine", TOKEN, rows)]
    with pytest.raises(InputError, match=r"the rule 'mine' gave .*" + words):
        rows_of(rules, made_input(causal=True))


# --- sums and choices, beside a loop in float64 -----------------------------------------------


def attention_like(heads: int, seed: int) -> Float64:
    random = np.random.default_rng(seed)
    return random.dirichlet(np.ones(SIZE), (heads, SIZE))  # [head, query, key]


@pytest.mark.parametrize("rest", range(len(RESTS)))
def test_products_are_those_of_the_maps_themselves(rest: int) -> None:
    rules = every_rule()[:12] + [every_rule()[number(name)] for name in RESTS]
    sums = RuleSums(len(rules), 1, 2, groups=2)
    wanted: dict[str, list[Float64]] = {"rules": [], "attention": [], "all": []}
    for group in range(2):
        maps, attention = RuleMaps.of(rules, made_input(group)), attention_like(2, group)
        sums.add_rules(maps, group, (0,))
        sums.add_attention(maps, torch.from_numpy(attention).float(), 0, group)
        rows, base = maps.rows.double().numpy(), maps.rests[rest].double().numpy()
        moved = rows - rows.sum(-1, keepdims=True) * base  # R − T rest
        left = attention - base
        wanted["rules"].append(np.einsum("rqk,jqk->rj", moved, moved))
        wanted["attention"].append(np.einsum("hqk,rqk->hr", left, moved))
        wanted["all"].append((left**2).sum((1, 2)))
    rules_, attention_, all_ = sums.products(rest, [0])
    np.testing.assert_allclose(rules_, wanted["rules"], atol=1e-5)
    np.testing.assert_allclose(attention_[:, 0], wanted["attention"], atol=2e-6, rtol=1e-5)
    np.testing.assert_allclose(all_[:, 0], wanted["all"], atol=2e-6, rtol=1e-5)


def test_three_rules_get_the_weights_of_an_independent_fit() -> None:
    names = ["the previous token", "the same token elsewhere", "the token itself"]
    maps, rest = RuleMaps.of(every_rule(), made_input()), 3
    base = maps.rests[rest].double().numpy()
    rows = maps.rows.double().numpy()[[number(name) for name in names]]
    mixed = np.einsum("r,rqk->qk", [0.4, 0.2, 0.1], rows)
    attention = mixed + (1 - mixed.sum(-1, keepdims=True)) * base
    attention = 0.9 * attention + 0.1 * attention_like(1, 5)[0]
    moved = rows - rows.sum(-1, keepdims=True) * base
    independent, _ = nnls(moved.reshape(3, -1).T, (attention - base).ravel())

    sums = RuleSums(len(every_rule()), 1, 1)
    sums.add_rules(maps, 0, (0,))
    sums.add_attention(maps, torch.from_numpy(attention)[None].float(), 0, 0)
    r, a, e = sums.products(rest, [0])
    allowed = np.isin(np.arange(len(every_rule())), [number(name) for name in names])
    one = choose(
        Products(r[0], a[0, 0, 0], e[0, 0, 0]),
        Products(r, a[:, 0, 0], e[:, 0, 0]),
        rest=rest,
        allowed=allowed,
    )
    chosen = {every_rule()[at].name: w for at, w in zip(one.rules, one.weights, strict=True)}
    assert [chosen[name] for name in names] == pytest.approx(independent.tolist(), abs=1e-5)


def test_what_other_documents_do_not_gain_by_is_not_taken() -> None:
    rules, attention = np.eye(2), np.array([1.0, 0.1])
    own = Products(rules, attention, np.asarray(2.0))
    groups = np.stack([np.array([1.0, 0.4]), np.array([1.0, -0.4])])
    other = Products(np.stack([rules] * 2), groups, np.array([2.0, 2.0]))
    one = choose(own, other, rest=0, allowed=np.ones(2, bool))
    assert one.rules == (0,)
    agreeing = Products(other.rules, np.stack([attention] * 2), other.all)
    assert choose(own, agreeing, rest=0, allowed=np.ones(2, bool)).rules == (0, 1)


def _fitted(attention, others):
    """The rules chosen of rules that have no key in common; others [group, rule]."""
    rules = np.eye(len(attention))
    groups = np.ones((len(others), 1, 1)) * rules, np.array(others), np.full(len(others), 2.0)
    return choose(
        Products(rules, np.array(attention), np.array(2.0)),
        Products(*groups),
        rest=0,
        allowed=np.ones(len(attention), bool),
    )


@pytest.mark.parametrize(("spread", "rules"), [(0.01, (0, 1)), (5.0, (0,))])
def test_a_rule_is_taken_if_documents_gain_by_more_than_the_standard_error(spread, rules):
    """All gain the same sum by the second rule; in the second case it may well be chance."""
    others = [[1.0, 0.3 + spread * sign] for sign in (1, -1) * 10]
    choice = _fitted([1.0, 0.5], others)
    assert choice.rules == rules
    np.testing.assert_allclose(choice.weights, [1.0, 0.5][: len(rules)], rtol=1e-8)
    assert choice.loss == pytest.approx(2 - sum(choice.weights**2))


def test_a_rule_of_hardly_any_weight_is_not_taken():
    assert _fitted([1.0, 0.009], [[1.0, 0.009]] * 20).rules == (0,)
    assert _fitted([1.0, 0.011], [[1.0, 0.011]] * 20).rules == (0, 1)


# --- predictions ------------------------------------------------------------------------------


def test_predicted_rows_sum_to_one_and_their_parts_to_them() -> None:
    heads = heads_of(
        {"the previous token": 0.7, "the same token before": 0.6}, {"all marks": 0.5}, {}
    )
    maps = RuleMaps.of(every_rule(), made_input())
    rows = heads.attention(maps, made_input().ids)
    np.testing.assert_allclose(rows.sum(-1), 1, atol=1e-6)
    np.testing.assert_allclose(heads.parts(maps).sum(1), rows, atol=1e-6)
    assert rows[2, :, 0].numpy() == pytest.approx(1)  # no rule: the rest alone
    keyed = replace(heads, key_token=np.full((3, 1), 6), key_factor=np.full((3, 1), 3.0))
    more = keyed.attention(maps, made_input().ids)
    on_key = made_input().ids == 6
    share, before = more[0][:, on_key].sum(-1), rows[0][:, on_key].sum(-1)
    np.testing.assert_allclose(share, 3 * before / (1 + 2 * before), atol=1e-6)


def test_shares_of_rules_add_up_to_the_overlap() -> None:
    heads = heads_of({"the previous token": 0.5, "all tokens evenly": 0.3}, {"all marks": 1.0})
    maps = RuleMaps.of(every_rule(), made_input())
    own = gathered(torch.from_numpy(attention_like(2, 3)).float(), torch.rand(2, SIZE) + 0.1)
    predicted = heads.attention(maps, made_input().ids)
    shares = shares_of_rules(heads, maps, own, predicted).sum(-1)
    np.testing.assert_allclose(shares.sum(-1), torch.minimum(own, predicted).sum((1, 2)), atol=1e-5)
    assert gathered(own, torch.zeros(2, SIZE)).sum() == 0


def test_equal_documents_are_of_one_part_and_all_parts_have_some() -> None:
    examples = [
        Example(f"{at}", f"d{at}", *[np.zeros(2, np.int64)] * 2, np.zeros(2, bool), content=name)
        for at, name in enumerate("abcdefgaabbcc")
    ]
    how: Any = {"seed": 0, "purpose": "explained", "fewest": FEWEST}
    part, _ = dealt(examples, DEALT, **how)
    by_content: dict[str, set[int]] = {}
    for example, at in zip(examples, part, strict=True):
        by_content.setdefault(example.content, set()).add(at)
    assert all(len(parts) == 1 for parts in by_content.values())
    assert set(part) == {0, 1, 2}
    few, _ = dealt(examples[:3], DEALT, **how)  # inputs of few documents are dealt
    assert set(few) == {0, 1, 2}


# --- networks whose heads are known -------------------------------------------------------------


def known_heads() -> list[WiredHead]:
    rests, names = PLACES["bert"], ("previous token", "next token", "same form elsewhere")
    made = [*neighbours(10.0, rests), *same_word(10.0, rests), *specials(10.0, rests)]
    return [next(head for head in made if head.name == name) for name in (*names, "reads cls")]


@cache
def wired_run() -> hs.Run:
    network = wire("bert", [known_heads()], seed=1)
    model = hs.load(network.network, tokenizer=network.tokenizer)
    corpus = annotated_corpus(24, seed=2)
    return hs.atlas(model, corpus, analyses=["explained", "surface"], control="none")


def test_wired_heads_are_explained_by_the_rules_that_they_follow() -> None:
    run = wired_run()
    question = named("explained")
    assert question is not None
    reading = Reading(run.tree, question)
    first = [rules_of(reading, 0, head)[0].name for head in range(4)]
    assert first[:2] == ["the previous token", "the next token"]
    assert "same token" in " ".join(rule.name for rule in rules_of(reading, 0, 2))
    assert first[3] == "[CLS]"
    explained = run["explained"]["attention"].sel(prediction="rules").values[0]
    assert (explained > 0.9).all()
    assert "is not explained" in sentence(reading, 0, 0)
    assert [len(roles(reading, 0, head)) <= 1 for head in (0, 1)] == [True, True]


def test_means_parts_and_differences_agree() -> None:
    explained = wired_run()["explained"]
    assert explained.attrs["chosen_on"] + explained.attrs["scored_on"] <= 72
    whole = float(explained["all_attention"])
    mean = float(explained["attention"].sel(prediction="rules").mean())
    assert whole == pytest.approx(mean, abs=1e-6)
    parts = explained["rule_share"].sum("slot")
    np.testing.assert_allclose(parts, explained["gathering"].sel(prediction="rules"), atol=1e-6)
    difference = explained["gathering"].sel(prediction="rules") - explained["gathering"].sel(
        prediction="position_and_rest"
    )
    np.testing.assert_allclose(explained["beyond"], difference, atol=1e-6)


def test_the_numbers_of_a_head_can_be_told_apart_by_their_names() -> None:
    tree = wired_run().tree
    lines = card_text(tree, head_card(tree, 0, 0)).splitlines()
    first = next(at for at, line in enumerate(lines) if line.startswith("Explained by rules"))
    names = [line[2:].partition("  ")[0] for line in takewhile(bool, lines[first + 1 :])]
    assert len(set(names)) == len(names) > 5
    assert not [name for name in names if "…" in name]


def test_rules_are_written_as_replay_reads_them() -> None:
    run = wired_run()
    one = hs.explain(run.tree, "L1H1")["heads"]["L1H1"]
    assert one["rules"][0]["rule"] == "the previous token"
    assert set(hs.explain(run.tree)["heads"]) == {"L1H1", "L1H2", "L1H3", "L1H4"}
    assert [own.names for own in read_rules(hs.explain(run.tree)).values()][1][0] == (
        "the next token"
    )
    with pytest.raises(InputError, match="wanted one of 1 × 4"):
        hs.explain(run.tree, (3, 0))
    table = tables(Reading(run.tree, QUESTION))["rules_of_heads"]
    shares = table.groupby(["layer", "head"])["share"].sum()
    explained = run["explained"]["gathering"].sel(prediction="rules").values.ravel()
    np.testing.assert_allclose(shares, explained, atol=1e-6)


def test_asked_alone_it_is_held_against_networks_without_training() -> None:
    network = wire("bert", [known_heads()], seed=1)
    model = hs.load(network.network, tokenizer=network.tokenizer)
    run = hs.atlas(model, annotated_corpus(12, seed=2), analyses=["explained"], control="random")
    networks = run.tree["control"].children
    assert {name for name, one in networks.items() if "explained" in one.children} >= {
        "untrained",
        "shuffled",
    }
    assert "rotated" not in networks  # of pairs of heads alone


def test_too_few_inputs_explain_nothing_and_say_so() -> None:
    network = wire("bert", [known_heads()], seed=1)
    model = hs.load(network.network, tokenizer=network.tokenizer)
    run = hs.atlas(model, annotated_corpus(1, each=1), analyses=["explained"], control="none")
    assert np.isnan(run["explained"]["attention"]).all()
    question = named("explained")
    assert question is not None
    assert sentence(Reading(run.tree, question), 0, 0) == ""


def test_a_question_of_ones_own_brings_rules() -> None:
    from headscope.claims.question import _REGISTERED, Question, register

    rule = AttentionRule(
        "the last token", POSITION, lambda read: read.even(read.offset[0] == len(read) - 1)
    )
    register(Question(name="mine", predicts=(rule,)))
    try:
        assert rule in rules_of_run(Scope(1, 1))
    finally:
        del _REGISTERED["mine"]


def test_a_network_of_the_control_is_read_in_some_layers_and_gives_their_numbers(
    monkeypatch,
) -> None:
    """As the run itself would: the control's numbers of a model that is its own control."""
    made = wire("bert", [known_heads()] * 2, seed=1)
    model = hs.load(made.network, tokenizer=made.tokenizer)
    monkeypatch.setattr("headscope.run.control._equal_weights", lambda *_: False)
    monkeypatch.setattr("headscope.run.control.load", lambda *_, **__: model)
    monkeypatch.setattr("headscope.run.control.Control.tokens", lambda *_, **__: 1 << 20)
    monkeypatch.setattr("headscope.analyses.explained.measure.FEW_HEADS", len(known_heads()))
    run = hs.atlas(model, annotated_corpus(12), analyses=["explained"], control="itself")
    own, other = run["explained"], run.tree["control/model/explained"].to_dataset()
    for name in ("gathering", "beyond"):
        np.testing.assert_array_equal(other[name].isel(layer=1), own[name].isel(layer=1))
    assert np.isnan(other["gathering"].isel(layer=0)).all()
    assert np.isnan(other["attention"]).all()
    assert np.isnan(other["all_attention"])
    assert 0 < float(other["all_gathering"]) <= 1
