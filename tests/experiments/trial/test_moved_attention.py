"""Is attention moved as a label's trial says, and nothing else?"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from experiments.circuits.decoders import network, words
from experiments.replay.made import exact, texts
from headscope.analyses.explained.rules import RESTS, rules_of_run
from headscope.claims.attention_rule import RuleInput, rows_of
from headscope.claims.head_labels import label_rules
from headscope.claims.plan import COPIES, NOTHING, OWN, OWN_NEXT
from headscope.core.accumulators import generator
from headscope.corpus import corpus_of
from headscope.experiments.replay.choosing import scope_of_inputs
from headscope.experiments.replay.replacements import replacing
from headscope.experiments.replay.scored_model import ScoredModel
from headscope.experiments.trial import queries
from headscope.experiments.trial.hypotheses import Hypothesis, own_keys
from headscope.experiments.trial.moving import Move, Moving
from headscope.experiments.trial.own_attention import LEAST_WEIGHT
from headscope.experiments.trial.queries import (
    MOST,
    OTHER_KEYS,
    SAME_KEYS,
    SAME_OFFSET,
    THERE,
    queries_of,
)
from headscope.experiments.trial.settings import TrialSettings
from headscope.experiments.trial.trying import COLUMNS, TrialRun, read_pool
from headscope.model.instrument import Instrument
from headscope.model.model import Model, evaluating, forward

EVEN = RESTS.index("all tokens evenly")
CELL = (2, 4)
PREVIOUS = "the previous token"


def read_of(tokens: int, *, causal: bool = False) -> RuleInput:
    no = np.zeros(tokens, bool)
    ids = np.arange(tokens)
    return RuleInput(ids, (), no, no, no, no, no, no * 0, ids - ids - 1, ~no, no, causal=causal)


def trial_of(*hypotheses: Hypothesis, kind: str = "causal", model: Model | None = None) -> TrialRun:
    """A trial of hypotheses on drawn texts."""
    model = model or exact().model
    scored = ScoredModel(model, kind)
    settings = TrialSettings(replicates=30)
    examples, _ = read_pool(scored, corpus_of(texts(16)), settings)
    rules = rules_of_run(scope_of_inputs(model, examples, replicates=30, seed=0))
    return TrialRun(scored, examples, hypotheses, rules, np.full(CELL, EVEN), settings)


def part(trial: TrialRun, at: int = 0) -> dict[str, np.ndarray]:
    with evaluating(trial.scored.model.network):
        return trial._part([at], {at: range(len(trial.hypotheses))})


# --- where ------------------------------------------------------------------------------------


def test_a_query_is_compared_with_one_like_it_near_by() -> None:
    read = read_of(12)
    rows = np.zeros((12, 12))
    rows[5, 3] = 1
    some = queries_of(rows, read, generator(0, "x"))
    assert some[THERE].queries.tolist() == [5]
    same = some[SAME_KEYS]
    assert same.queries.tolist() == [4]
    assert np.flatnonzero(same.keys[0]).tolist() == [3]
    offset = some[SAME_OFFSET]
    assert np.flatnonzero(offset.keys[0]).tolist() == [offset.queries[0] - 2]
    other = some[OTHER_KEYS]
    assert other.queries.tolist() == [5]
    assert np.flatnonzero(other.keys[0])[0] in (2, 4)


def test_of_many_queries_some_are_tried_and_none_whose_weight_has_nowhere_to_go() -> None:
    read = read_of(30, causal=True)
    rows = read.even(read.offset == 0)  # the first token sees but itself
    some = queries_of(rows, read, generator(0, "x"))
    assert len(some[THERE]) == MOST
    assert 0 not in some[THERE].queries
    assert SAME_KEYS not in some  # the rule applies to every query
    seen = read.visible[some[OTHER_KEYS].queries]
    assert (some[OTHER_KEYS].keys <= seen).all()


def test_a_query_that_sees_far_fewer_keys_is_no_comparison() -> None:
    read = read_of(12, causal=True)
    rows = np.zeros((12, 12))
    rows[4:, 3] = 1  # all but the first four queries
    some = queries_of(rows, read, generator(0, "x"))
    for name in (SAME_KEYS, SAME_OFFSET):
        if name in some:
            pairs = zip(some[name].of, some[name].queries, strict=True)
            assert all(4 * (q + 1) >= 3 * (some[THERE].queries[of] + 1) for of, q in pairs)


def test_half_of_the_queries_are_masked_tokens_and_are_compared_with_such() -> None:
    read = read_of(60)
    rows = read.even(read.offset == -1)
    rows[::2] = 0  # it applies to every other query
    asked = np.arange(60) % 4 < 2  # of these and of the others, every other one
    some = queries_of(rows, read, generator(0, "x"), asked)
    assert asked[some[THERE].queries].sum() == MOST // 2
    assert len(some[THERE]) == MOST
    for name in (SAME_KEYS, SAME_OFFSET):
        like = asked[some[THERE].queries[some[name].of]]
        assert (asked[some[name].queries] == like).all()
        assert 0 < like.sum() < len(like)
    alone = queries_of(rows, read, generator(0, "x"), np.arange(60) == 7)
    assert 7 in alone[THERE].queries
    assert len(alone[THERE]) == MOST


# --- what is moved ----------------------------------------------------------------------------


def moved(move: Move, *, rest: int = EVEN) -> tuple[np.ndarray, np.ndarray]:
    """[head, query, key] of the layer of a move, in the row without it and in that with it."""
    trial = trial_of(Hypothesis("x", "", PREVIOUS, ((0, 0),)))
    example, model = trial.examples[0], trial.scored.model
    rests = rows_of([trial._rest(name) for name in RESTS], trial._read(example))
    moving = Moving(np.full(CELL, rest), torch.from_numpy(rests))
    moving.use([move])
    seen: list[torch.Tensor] = []

    def look(view) -> None:
        if view.index == move.heads[0][0]:
            seen.append(view.attention)

    with (
        evaluating(model.network),
        Instrument(model.network, observers=[look], interventions=[moving]),
    ):
        forward(model.network, *model.batch([example] * 2).inputs)
    n = len(example)
    return tuple(seen[0][:, :, :n, :n].double().numpy())


def test_weight_goes_from_the_keys_to_where_the_head_rests() -> None:
    keys = np.zeros((1, 10), bool)
    keys[0, [2, 4]] = True
    before, after = moved(Move(((0, 1),), np.array([6]), keys))
    same = np.ones((4, *before.shape[1:]), bool)
    same[1, 6] = False
    assert np.abs(before - after)[same].max() == 0
    own, now = before[1, 6], after[1, 6]
    assert now[[2, 4]].tolist() == [0, 0]
    free = [0, 1, 3, 5, 6]  # seen by the query
    assert now[free] == pytest.approx(own[free] + own[[2, 4]].sum() / 5, abs=1e-12)
    assert now.sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize(("more", "total"), [({"drop": True}, "left"), ({"whole": True}, "one")])
def test_weight_can_go_nowhere_or_all_of_it_go(more: dict[str, bool], total: str) -> None:
    keys = np.zeros((1, 10), bool)
    keys[0, 3] = True
    before, after = moved(Move(((1, 2),), np.array([5]), keys, **more))
    own, now = before[2, 5], after[2, 5]
    if total == "left":
        assert now.sum() == pytest.approx(1 - own[3], abs=1e-12)
    else:
        assert now[[0, 1, 2, 4, 5]] == pytest.approx(np.full(5, 0.2), abs=1e-12)


# --- what changes -----------------------------------------------------------------------------


@pytest.mark.parametrize("one_by_one", [True, False])
def test_an_effect_is_that_of_rows_made_by_hand(one_by_one: bool) -> None:
    trial = trial_of(Hypothesis("x", "", PREVIOUS, ((0, 1),)))
    assert trial.outputs.one_by_one
    trial.outputs.one_by_one = one_by_one
    numbers, example, network = part(trial), trial.examples[0], trial.scored.model.network
    rng, read = generator(0, "queries", PREVIOUS, "0"), trial._read(example)
    there = queries_of(rows_of([trial.by_name[PREVIOUS]], read)[0], read, rng)[THERE]
    ids = torch.from_numpy(example.input_ids)
    network.set_attn_implementation("eager")
    whole = network(ids[None], output_attentions=True, output_hidden_states=True)
    distance, rise = [], []
    sets = [[at] for at in range(len(there))] if one_by_one else [list(range(len(there)))]
    for some in sets:
        rows = whole.attentions[0].detach().clone()
        for at in some:
            query, keys = int(there.queries[at]), torch.from_numpy(there.keys[at])
            free = (torch.arange(len(ids)) <= query) & ~keys
            row = rows[0, 1, query]
            rows[0, 1, query] = row * ~keys + row[keys].sum() * free / free.sum()
        with evaluating(network), replacing(network) as change:
            change.use(frozenset([(0, 1)]), lambda _call, heads, rows=rows: rows[:, heads])
            answer = network(ids[None], output_hidden_states=True)
        at = there.queries[some]
        one, other = (
            torch.nn.functional.normalize(made.hidden_states[-1][0, at].detach(), dim=-1)
            for made in (whole, answer)
        )
        distance += (one - other).norm(dim=-1).tolist()
        at = at[at < len(ids) - 1]
        base, moved = (
            torch.nn.functional.cross_entropy(
                made.logits[0, at].double().detach(), ids[at + 1], reduction="none"
            )
            for made in (whole, answer)
        )
        rise += (moved - base).tolist()
    assert numbers["direct"][0, 0, :2] == pytest.approx(
        [np.mean(distance), np.mean(rise)], abs=1e-6
    )


def test_copies_from_where_they_differ_give_what_whole_copies_give() -> None:
    labels = [
        Hypothesis("x", "", PREVIOUS, ((layer, head),)) for layer in (1, 0) for head in (1, 3)
    ]
    trial = trial_of(*labels)
    assert trial.outputs.grows
    trial.outputs.one_by_one = False
    grown = part(trial)
    trial.outputs.grows = False
    whole = part(trial)
    for name in grown:
        assert grown[name] == pytest.approx(whole[name], abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("name", ["GPT-2", "Mistral", "Gemma2", "OPT"])
def test_a_query_by_itself_gives_what_a_whole_copy_gives(name: str, monkeypatch) -> None:
    monkeypatch.setattr(queries, "MOST", 1)  # in a whole copy all queries move together
    model = Model(network(name, exact=True), words(), name, "", name)
    labels = [Hypothesis("x", "", PREVIOUS, (head,)) for head in ((1, 1), (0, 2))]
    trial = trial_of(*labels, model=model)
    assert trial.outputs.one_by_one
    alone = part(trial)
    trial.outputs.one_by_one = False
    whole = part(trial)
    for key in ("change", "direct"):
        assert alone[key] == pytest.approx(whole[key], abs=1e-6, nan_ok=True)


def test_keys_without_weight_change_nothing() -> None:
    """The rule of the other sentence never applies; that of hidden keys has no weight to move."""
    trial = trial_of(Hypothesis("x", "", PREVIOUS, ((0, 1),)))
    with torch.no_grad():
        moving = Moving(np.full(CELL, EVEN), torch.zeros(4, 3, 3))
        before = torch.tensor([[0.4, 0.6, 0.0]], dtype=torch.float64)
        keys = np.array([[False, False, True]])
        seen = torch.ones(1, 3, dtype=torch.bool)
        after = moving._moved(0, 0, Move(((0, 0),), np.array([2]), keys), before, seen)
    assert after.tolist() == before.tolist()
    assert trial.why() == [""]


def test_without_what_comes_later_the_direct_effect_is_the_whole() -> None:
    model = Model(network("Llama", exact=True), words(), "Llama", "", "Llama")
    last = model.network.model.layers[-1]
    one = Hypothesis("x", "", PREVIOUS, ((1, 1),))
    trial = trial_of(one, model=model)
    direct = part(trial)["direct"][0]
    assert trial.outputs.direct
    assert abs(direct[0] - direct[1]).max() > 1e-6  # what its layer makes of it
    with torch.no_grad():
        last.mlp.down_proj.weight.zero_()
    alone = part(trial_of(one, model=model))["direct"][0]
    assert alone[1] == pytest.approx(alone[0], abs=1e-7)
    assert alone[0].min() > -np.inf


def test_a_norm_between_attention_and_stream_leaves_no_direct_effect() -> None:
    model = Model(network("Gemma2", exact=True), words(), "Gemma2", "", "Gemma2")
    trial = trial_of(Hypothesis("x", "", PREVIOUS, ((1, 1),)), model=model)
    assert not trial.outputs.direct
    assert np.isnan(part(trial)["direct"][0, 1]).all()


def test_a_rest_is_dropped_and_held_against_the_same_weight_elsewhere() -> None:
    first = Hypothesis("x", "", "the first token", ((1, 0),), NOTHING)
    made = part(trial_of(first))["change"][0, :, :, 0]
    known = dict(zip(COLUMNS, made, strict=True))
    assert np.isfinite(known[OTHER_KEYS]).all()
    assert np.isfinite(known["whole"]).all()
    assert np.isnan(known[SAME_KEYS]).all()


def test_what_is_copied_is_measured_by_the_tokens_at_the_keys() -> None:
    one = Hypothesis("x", "", PREVIOUS, ((1, 0),), COPIES)
    trial = trial_of(one)
    assert np.isfinite(part(trial)["change"][0, -1, 0, 2])
    vectors = trial_of(one, kind="vectors", model=trial.scored.model)
    vectors.scored = ScoredModel(trial.scored.body, "vectors")
    assert np.isnan(part(vectors)["change"][0, -1, 0, 2])


# --- where a head itself looks ----------------------------------------------------------------


def test_a_heads_own_row_is_its_key_of_most_weight_where_that_is_enough() -> None:
    trial = trial_of(Hypothesis("x", "", own_keys((1, 2)), ((1, 2),), COPIES))
    example, model = trial.examples[0], trial.scored.model
    seen: list[torch.Tensor] = []
    with (
        evaluating(model.network),
        Instrument(model.network, observers=[lambda view: seen.append(view.attention[0])]),
    ):
        forward(model.network, *model.batch([example]).inputs)
        rows = trial.by_name[own_keys((1, 2))].rows(trial._read(example))
    n = len(example)
    wanted = np.zeros((n, n))
    for query in range(n):
        weight = seen[1][2, query, :n].numpy().copy()
        weight[[0, query]] = 0
        if weight.max() >= LEAST_WEIGHT:
            wanted[query, weight.argmax()] = 1
    assert 0 < wanted.sum() < n - 2  # some queries look at no token enough
    assert rows.tolist() == wanted.tolist()


def test_a_retrieval_head_is_tried_where_it_looks_at_the_token_that_comes_next() -> None:
    every, next_of = ((own_keys((1, head), which), (1, head)) for which in OWN for head in (2,))
    trial = trial_of(*(Hypothesis("x", "", rule, (at,), COPIES) for rule, at in (every, next_of)))
    kept = 0
    for example in trial.examples:
        read = trial._read(example)
        looks, rows = (trial.by_name[rule].rows(read) for rule, _ in (every, next_of))
        for query, key in np.argwhere(looks):
            comes = query + 1 < len(example)
            comes = comes and example.input_ids[key] == example.input_ids[query + 1]
            assert rows[query, key] == comes
            kept += int(comes)
        assert rows.sum() <= looks.sum()
    assert kept > 0


def test_labels_of_retrieval_are_tried_on_what_they_copy() -> None:
    rule = label_rules()["retrieval"]
    assert (rule.predicts, rule.expects) == (OWN_NEXT, COPIES)
