"""Are queries of a rule drawn evenly over its use, whatever the order of the inputs, and shown?"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr

import headscope as hs
from accessible import faults
from headscope.analyses.explained import QUESTION
from headscope.analyses.explained.contexts import Contexts, spaced
from headscope.analyses.explained.drawn_queries import (
    DRAWN,
    TENTHS,
    DrawnQueries,
    of_tenths,
    smallest,
)
from headscope.analyses.explained.prediction import HeadRules, RuleMaps
from headscope.analyses.explained.rules import RESTS
from headscope.analyses.explained.sentences import CARD, LEAST_SAID, rules_of
from headscope.claims.attention_rule import POSITION, AttentionRule, RuleInput
from headscope.claims.reading import Reading
from headscope.core.accumulators import Array, Float64
from headscope.corpus.document import Example
from headscope.wired import WiredHead, annotated_corpus, wire
from headscope.wired.catalogue import RESTS as PLACES
from headscope.wired.catalogue import neighbours, same_word

INPUTS, TOKENS = 60, 12
EVERY = AttentionRule("the previous token", POSITION, lambda read: read.even(read.offset == -1))


def some_rules() -> list[AttentionRule]:
    rests = [
        AttentionRule(name, POSITION, lambda read: read.even(read.offset[0] == 0)) for name in RESTS
    ]
    return [EVERY, *rests]


def inputs() -> list[Example]:
    none = np.zeros(TOKENS, np.int64)
    return [
        Example(f"{at}", f"d{at}", np.arange(TOKENS) + at, none, none > 0, content=f"{at}")
        for at in range(INPUTS)
    ]


def maps_of(example: Example) -> RuleMaps:
    none = np.zeros(len(example), bool)
    read = RuleInput(
        example.input_ids,
        tuple(map(str, example.input_ids)),
        *[none] * 5,
        np.zeros(len(example), np.int64),
        np.full(len(example), -1),
        ~none,
        none,
    )
    return RuleMaps.of(some_rules(), read)


def one_head() -> HeadRules:
    """A layer of one head with one rule and an empty slot."""
    none = np.zeros((1, 0))
    return HeadRules(
        np.array([[0, -1]]),
        np.array([[0.5, 0.0]]),
        np.array([0]),
        none.astype(np.int64),
        none,
    )


def attention(at: int) -> torch.Tensor:
    rows = np.random.default_rng(at).dirichlet(np.full(TOKENS, 0.3), (1, TOKENS))
    return torch.from_numpy(rows).float()  # [head, query, key]


def drawn(order: list[int]) -> DrawnQueries:
    examples = inputs()
    queries = DrawnQueries(1, 1, 2, examples, seed=3)
    for at in order:
        queries.add(0, one_head(), attention(at), maps_of(examples[at]), examples[at])
    return queries


def uses() -> Float64:
    """[input, query] what each query gives to the one before, by hand; the first has none."""
    rows = np.stack([attention(at)[0].double().numpy() for at in range(INPUTS)])
    return np.stack([rows[:, query, query - 1] for query in range(1, TOKENS)], 1)


def test_the_same_queries_are_drawn_in_any_order() -> None:
    one, other = drawn([*range(INPUTS)]), drawn([*reversed(range(INPUTS))])
    there = np.isfinite(one.layers[0]["lot"])  # the empty slot holds nothing
    assert there[0, 0].all()
    np.testing.assert_array_equal(one.layers[0][there], other.layers[0][there])


def test_draws_of_two_shards_together_are_those_of_the_whole() -> None:
    first, second = drawn([*range(0, INPUTS, 2)]), drawn([*range(1, INPUTS, 2)])
    whole = drawn([*range(INPUTS)]).layers[0]
    for merged in (
        smallest(first.layers[0], second.layers[0]),
        smallest(second.layers[0], first.layers[0]),
    ):
        there = np.isfinite(whole["lot"])  # the empty slot holds nothing
        np.testing.assert_array_equal(merged[there], whole[there])


def test_use_is_what_the_query_gives_to_the_keys_of_the_rule() -> None:
    kept, by_hand = drawn([*range(INPUTS)]).layers[0], uses()
    assert kept["use"].shape[2] == DRAWN
    assert not np.isfinite(kept["lot"][0, 1]).any()  # of an empty slot nothing is drawn
    for use, place, own, key in zip(
        kept["use"][0, 0], kept["query"][0, 0], kept["own"][0, 0], kept["key"][0, 0], strict=True
    ):
        at, query = divmod(int(place), TOKENS)
        assert query > 0  # the first token has none before it: the rule does not apply
        assert use == pytest.approx(by_hand[at, query - 1], abs=1e-6)
        np.testing.assert_array_equal(own == 1, key == place - 1)


def test_queries_are_drawn_evenly_over_the_use_of_all() -> None:
    """Whatever their use: of the drawn ones a tenth lies in each tenth of all."""
    edges = np.quantile(uses(), np.linspace(0.1, 0.9, 9))
    counts = np.zeros(TENTHS)
    for seed in range(20):
        queries = DrawnQueries(1, 1, 2, inputs(), seed=seed)
        for at, example in enumerate(inputs()):
            queries.add(0, one_head(), attention(at), maps_of(example), example)
        places = np.digitize(queries.layers[0]["use"][0, 0], edges)
        counts += np.bincount(places, minlength=TENTHS)
    expected = 20 * DRAWN / TENTHS
    # Hypergeometric: 100 of 660 without replacement, twenty times; 5 standard deviations.
    spread = np.sqrt(expected * 0.9 * (1 - DRAWN / uses().size))
    assert (np.abs(counts - expected) < 5 * spread).all(), counts


def test_one_of_each_tenth_is_shown_the_least_used_first() -> None:
    random = np.random.default_rng(0)
    use, lot = random.random(50), random.random(50)
    rank = np.argsort(np.argsort(use))
    shown = of_tenths(use, lot)
    assert [tenth for tenth, _ in shown] == [*range(TENTHS)]
    for tenth, at in shown:
        inside = np.flatnonzero(rank // 5 == tenth)
        assert at == inside[lot[inside].argmin()]
    few: Array = np.where(np.arange(50) < 3, lot, np.inf)
    assert len(of_tenths(use, few)) == 3
    assert of_tenths(use, np.full(50, np.inf)) == []


# --- on the card ---------------------------------------------------------------------------


@cache
def wired_run() -> hs.Run:
    """A head on the previous token, and one on the same form elsewhere that rests without one."""
    rests = PLACES["bert"]
    made: list[WiredHead] = [*neighbours(3.0, rests), *same_word(3.0, rests)]
    names = ("previous token", "same form elsewhere")
    heads = [next(head for head in made if head.name == name) for name in names]
    network = wire("bert", [heads], seed=1)
    model = hs.load(network.network, tokenizer=network.tokenizer)
    return hs.atlas(model, annotated_corpus(24, seed=2), analyses=["explained"], control="none")


def reading() -> Reading:
    return Reading(wired_run().tree, QUESTION)


def test_a_context_is_the_query_with_the_text_around_it() -> None:
    run = wired_run()["explained"]
    contexts = Contexts(reading())
    tokens, number = run["scored_token"].values, run["scored_input"].values
    for layer, head, slot, tenth in np.argwhere(run["context_query"].values >= 0).tolist():
        query = int(run["context_query"].values[layer, head, slot, tenth])
        for key, weight in zip(
            run["context_key"].values[layer, head, slot, tenth],
            run["context_weight"].values[layer, head, slot, tenth],
            strict=True,
        ):
            assert weight == 0 or number[key] == number[query]
    (rule,) = [one for one in rules_of(reading(), 0, 0) if one.name == "the previous token"]
    shown = [*contexts.of(0, 0, rule.place)]
    assert all(one.query for one in shown)
    place = int(run["context_query"].values[0, 0, rule.place, 9])
    one = shown[-1]
    assert one.query == tokens[place]
    assert one.before.split()[-1] == tokens[place - 1]
    assert one.takes[0].token == tokens[place - 1]
    assert one.takes[0].of_rule


def test_low_use_is_shown_as_well_as_high() -> None:
    data = CARD.data(reading(), 0, 1)
    every = [[c["use"] for c in rule["contexts"]] for rule in data["rules"]]
    spread = [uses for uses in every if uses]
    assert spread
    assert all(uses == sorted(uses) for uses in spread)
    lines = [line for line in CARD.lines(reading(), 0, 1) if "«" in line]
    assert 1 < len(lines) <= 15


def test_the_page_has_the_same_contexts() -> None:
    page = CARD.page(reading())["rules"]
    data = CARD.data(reading(), 0, 1)["rules"]
    of_rule = {one["rule"]: one["contexts"] for one in data}
    for name, rows in zip(page["names"][1], page["of"][1], strict=True):
        assert [row[1] for row in rows] == [round(100 * one["use"]) for one in of_rule[name]]
        assert [page["tokens"][row[0]].strip() for row in rows] == [
            one["query"] for one in of_rule[name]
        ]


def test_a_run_without_contexts_has_a_card_without_them() -> None:
    tree = wired_run().tree.copy()
    old = tree["explained"].to_dataset().drop_dims(["tenth", "scored_token"])
    tree["explained"] = xr.DataTree(old)
    old_run = Reading(tree, QUESTION)
    assert not any("«" in line for line in CARD.lines(old_run, 0, 1))
    assert CARD.page(old_run)["rules"]["tokens"] == []


@pytest.mark.parametrize(
    ("tokens", "special", "text"),
    [
        (["[CLS]", "a", "##b", "c"], [1, 0, 0, 0], " [CLS] ab c"),
        (["Ġa", "b", "Ġc", "Ċ"], [0, 0, 0, 0], " ab c↵"),
        (["<s>", "▁a", "b"], [1, 0, 0], " <s> ab"),
    ],
)
def test_tokens_are_joined_to_text(tokens: list[str], special: list[int], text: str) -> None:
    assert "".join(spaced(tokens, np.array(special) > 0)) == text


def test_the_card_in_the_browser_shows_every_context(
    watched: Any, axe: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = wired_run().report(tmp_path_factory.mktemp("contexts") / "report.html")
    page = watched(path.as_uri() + "#L1H2", width=1280, offline=True)
    section = page.locator(".card .rules")
    section.wait_for()
    for summary in section.locator("summary").all():
        summary.click()
    rules = [rule for rule in CARD.data(reading(), 0, 1)["rules"] if rule["value"] >= LEAST_SAID]
    wanted = [one for rule in rules for one in rule["contexts"]]
    assert section.locator("tbody tr").count() == len(wanted) > 0
    assert section.locator("mark").all_text_contents() == [one["query"] for one in wanted]
    cells = section.locator("tbody td:nth-child(2)").all_text_contents()
    assert cells == [one["before"] + one["query"] + one["after"] for one in wanted]
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert faults(page, axe, part=".card .rules") == []
