"""Is a head looked at where it does most clearly what is said of it? Are inputs read as kept?"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from heads.test_functions import ABOVE, specific, surpassing
from headscope.analyses.examples.clearest_input import clearest_inputs
from headscope.claims.head_labels import HeadLabels, all_claims, head_labels
from headscope.claims.relation_names import arrow
from headscope.core.stored_maps import StoredInput, stored_inputs
from recorded import BOTH, PAIR, reading, recorded, with_pair


@pytest.fixture(scope="module")
def tree():
    """A run in which a head finds objects, subjects and determiners, and another the way back."""
    tree = surpassing(with_pair(recorded(groups=BOTH)))
    share = ("accuracy", (0.99, 0.98, 1.0))
    for place, way in ((0, "dependent_to_head"), (3, "head_to_dependent")):
        at = {"layer": place, "head": place, "relation": "nsubj", "direction": way}
        above = ABOVE | {"above_reference": 0.59, "above_reference_ci_low": 0.58}
        tree = specific(tree, "dependency", share=share, at=at, below=False, **above)
    return tree


@pytest.fixture(scope="module")
def kept(tree):
    return stored_inputs(tree)


def claims(tree):
    """The strongest label of each head, or the claim that comes closest to one."""
    return {place: found.main for place, found in head_labels(tree).items() if found.main}


def expected(one: StoredInput, maps, kind):
    """How much of a claim there is in an input, by loops; None where it cannot be told."""
    n = len(one.tokens)
    rows = [i for i in range(n) if not one.special[i]]
    goals = {
        "previous": lambda i: [i - 1],
        "next": lambda i: [i + 1] if i + 1 < n else [],
        "self": lambda i: [i],
        "cls": lambda i: [0],
        "sep": lambda i: [j for j in range(1, n) if one.special[j]],
        "special": lambda i: [j for j in range(n) if one.special[j]],
        "punctuation": lambda i: [j for j in range(n) if one.tokens[j] in (".", ",")],
    }
    if kind in goals:
        given = [sum(maps[i][j] for j in goals[kind](i)) for i in rows if goals[kind](i)]
        return np.mean(given) if given else None
    if kind in ("broad", "narrow"):
        nats = np.mean([-sum(p * np.log(p) for p in maps[i] if p > 0) for i in rows]) / np.log(n)
        return nats if kind == "broad" else 1 - nats
    return np.mean([max(maps[i][j] for j in rows if j != i) for i in rows])


# --- reading --------------------------------------------------------------------------------


def test_inputs_are_read_without_what_lies_beyond_them(tree, kept):
    dataset = tree["examples"].to_dataset()
    assert len(kept) == dataset.sizes["input"]
    pair = kept[-1]
    assert pair.tokens == PAIR
    n = len(PAIR)
    assert (pair.attention == dataset.token_attention.values[-1, :, :, :n, :n]).all()
    assert (pair.value_norm == dataset.value_norm.values[-1, :, :, :n]).all()
    assert np.flatnonzero(pair.cls).tolist() == [0]
    assert np.flatnonzero(pair.sep).tolist() == [5, 12]
    assert np.flatnonzero(pair.punctuation).tolist() == [8, 11]
    assert pair.segment.tolist() == [0] * 6 + [1] * 7
    assert pair.gold == ()


def test_a_text_is_told_in_its_words_where_they_are_known(kept):
    assert kept[0].text == "Had the key been stolen, or was it still in the house?"
    assert kept[0].gold[0] == (0, 4, "aux")
    assert kept[-1].text == "who wound it ? the keeper , at dawn ."


def test_a_place_of_many_tokens_has_no_norm_and_is_not_ordinary(tree):
    changed = tree.copy(deep=True)
    changed["examples"]["token_count"].values[-1, 3] = 7
    changed["examples"]["value_norm"].values[-1, :, :, 3] = np.nan
    pair = stored_inputs(changed)[-1]
    assert pair.value_norm is None
    assert not pair.ordinary[3]
    assert stored_inputs(changed)[0].value_norm is not None


def test_an_input_that_was_never_seen_is_left_out(tree):
    changed = tree.copy(deep=True)
    changed["examples"]["token_attention"].values[1] = np.nan
    assert len(stored_inputs(changed)) == len(stored_inputs(tree)) - 1


def test_runs_of_older_versions_kept_no_inputs():
    old = recorded(groups=BOTH)
    old["examples"].dataset = old["examples"].to_dataset().drop_dims(["input", "token"])
    assert stored_inputs(old) == []
    assert clearest_inputs(reading(old, "examples"), []) == []
    assert stored_inputs(recorded(2, 2)) == []


# --- choosing -------------------------------------------------------------------------------


def test_every_head_is_looked_at_where_it_does_most_of_what_is_claimed(tree, kept):
    looks, known = clearest_inputs(reading(tree, "examples"), kept), claims(tree)
    kinds = set()
    for unit, (example, query) in enumerate(looks):
        place = divmod(unit, 12)
        kind = known[place].kind if place in known else "none"
        kind = known[place].about if kind == "sink" else kind
        if kind == "dependency":
            continue
        kinds.add(kind)
        shares = [expected(one, one.attention[place], kind) for one in kept]
        there = [share for share in shares if share is not None]
        assert shares[example] == pytest.approx(max(there)), (place, kind)
        assert query is None
    assert kinds >= {"previous", "next", "sep", "none"}


@pytest.mark.parametrize("direction", [0, 1])
def test_a_head_of_a_relation_is_looked_at_where_it_finds_the_word(tree, kept, direction):
    ways, found = ("dependent_to_head", "head_to_dependent"), 0
    for place, claim in claims(tree).items():
        if claim.kind != "dependency" or claim.name != arrow(claim.about, ways[direction]):
            continue
        example, query = clearest_inputs(reading(tree, "examples"), kept)[place[0] * 12 + place[1]]
        pairs = [pair for one in kept for pair in answers(one, place, claim.about, direction)]
        if not pairs:
            continue
        found += 1
        right, weight = max(pairs)[:2]
        here = answers(kept[example], place, claim.about, direction)
        assert (right, weight, query) in [(r, pytest.approx(w), t) for r, w, t in here]
    assert found


@pytest.mark.parametrize(("about", "word"), [("pronoun", "it"), ("proper", "house")])
def test_a_head_of_coreference_is_looked_at_where_a_word_looks_back(about, word, monkeypatch):
    """Both examples of coreference showed heads on [CLS]: nothing chose where they look."""
    tree = recorded(groups=("examples", "coreference"))
    kept = stored_inputs(tree)
    claim = replace(all_claims(surpassing(tree))[0], kind="coreference", about=about)
    for one in kept:  # a head that rests on [CLS], but for two words
        one.attention[0, 0] = 0
        one.attention[0, 0, :, 0] = 1
    at = next(at for at, one in enumerate(kept) if word in one.tokens)
    token = kept[at].tokens.index(word)
    kept[at].attention[0, 0, token, 0], kept[at].attention[0, 0, token, 2] = 0.4, 0.6
    if about == "pronoun":  # what is no pronoun counts less, whatever its weight
        kept[0].attention[0, 0, 3, 1] = 0.9
    labels = {(0, 0): HeadLabels((), claim)}
    monkeypatch.setattr("headscope.analyses.examples.clearest_input.head_labels", lambda _: labels)
    assert clearest_inputs(reading(tree, "examples"), kept) == [(at, token)]
    # A word that finds its own entity comes before all that look back elsewhere.
    other = next(number for number, one in enumerate(kept) if number != at and one.ordinary[5])
    mention = int(np.flatnonzero(kept[other].ordinary & (np.arange(len(kept[other].word)) > 4))[0])
    kept[other].entity[[2, mention]] = 7
    kept[other].attention[0, 0, mention] = 0
    kept[other].attention[0, 0, mention, 2] = 0.3
    assert clearest_inputs(reading(tree, "examples"), kept) == [(other, mention)]
    kept[other].attention[0, 0, mention, 1] = 0.35  # now it finds another word
    assert clearest_inputs(reading(tree, "examples"), kept) == [(at, token)]


def answers(one, place, relation, direction):
    """(right, weight, token that looks) of every pair, by loops over tokens."""
    maps, rows = one.attention[place].astype(float), []
    tokens = {w: np.flatnonzero(one.word == w) for w in set(one.word.tolist()) if w >= 0}

    def weight(source, target):
        return np.mean([sum(maps[i, j] for j in tokens[target]) for i in tokens[source]])

    for dependent, head, name in one.gold:
        if name != relation:
            continue
        others = [w for w in tokens if w != dependent]
        if direction == 0:
            given = {w: weight(dependent, w) for w in others}
        else:
            given = {w: weight(w, dependent) for w in others}
        source = dependent if direction == 0 else head
        rows.append((given[head] == max(given.values()), given[head], int(tokens[source][0])))
    return rows


def test_claims_about_relations_say_which(tree):
    about = {claim.about for claim in all_claims(tree) if claim.kind == "dependency"}
    assert about
    assert about <= set(tree["dependency"]["relation"].values.tolist())
    about = ("dependency", "sink", "feature", "pair", "coreference")
    assert {claim.about for claim in all_claims(tree) if claim.kind not in about} == {""}
