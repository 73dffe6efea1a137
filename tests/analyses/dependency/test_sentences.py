"""Are sentences drawn so that nothing covers anything, and with the attention that was measured?"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from matplotlib.collections import PathCollection
from matplotlib.colors import to_hex

from headscope.analyses.dependency.figure_sentences import BREADTH
from headscope.analyses.dependency.relation_heads import (
    chosen_relations,
    chosen_sentences,
    parsed_sentences,
    relation_heads,
)
from headscope.draw.arcs import (
    LABEL,
    LABEL_GAP,
    Stroke,
    mirrored,
    right_to_left,
    routes,
    row_of,
    text_width,
)
from headscope.draw.figures import draw, pictures
from headscope.draw.style import LIGHT
from recorded import LANGUAGE, recorded

WORDS = ["the", "keeper", "wound", "the", "old", "clock", "before", "dawn", ",", "as", "ever"]


@pytest.fixture(scope="module")
def tree():
    return recorded(groups=LANGUAGE)


def row():
    return row_of(WORDS, width=400, size=8, least=5)


def random_arcs(rng, count):
    ends = (rng.choice(len(WORDS), 2, replace=False).tolist() for _ in range(count))
    return [Stroke(*pair, rng.choice(["det", "nmod:poss", "55", ""]), "blue") for pair in ends]


# --- the row of words -----------------------------------------------------------------------


def test_words_stand_in_order_and_apart():
    found = row()
    ends = [
        (centre - width / 2, centre + width / 2)
        for centre, width in zip(found.centres, found.widths, strict=True)
    ]
    for (_, end), (start, _) in itertools.pairwise(ends):
        assert start - end == pytest.approx(1.1 * found.size)
    assert ends[-1][1] < found.length <= 400


def test_a_long_sentence_is_set_smaller_and_a_longer_one_not_at_all():
    wide = row().length
    assert row_of(WORDS, width=wide + 1, size=8, least=5).size == 8
    assert row_of(WORDS, width=wide * 0.75, size=8, least=5).length <= wide * 0.75 + 1e-6
    assert row_of(WORDS, width=wide * 0.6, size=8, least=5) is None


def test_signs_of_east_asia_take_a_square_and_others_what_the_typeface_gives():
    assert text_width("橋渡", 8) == 16
    assert text_width("橋渡i", 8) - 16 == pytest.approx(text_width("i", 8))
    assert 0 < text_width("i", 8) < text_width("m", 8)
    assert text_width("", 8) == 0


def test_a_sentence_from_right_to_left_is_mirrored():
    assert right_to_left(["שלום", "עולם", "2", "."])
    assert right_to_left(["سلام"])
    assert not right_to_left(["hello", "שלום", "world"])
    assert not right_to_left([".", ""])
    found = mirrored(row())
    assert found.centres == sorted(found.centres, reverse=True)
    assert min(found.centres) > 0


# --- arcs -----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_arcs_on_one_level_keep_apart_labels_counted(seed):
    arcs = random_arcs(np.random.default_rng(seed), 12)
    found = routes(arcs, row())
    for (one, a), (other, b) in itertools.combinations(zip(arcs, found, strict=True), 2):
        if a.level == b.level:
            extents = []
            for arc, route in ((one, a), (other, b)):
                half = (text_width(arc.label, LABEL) + LABEL_GAP) / 2 if arc.label else 0
                middle = (route.start + route.end) / 2
                ends = (route.start, route.end, middle - half, middle + half)
                extents.append((min(ends), max(ends)))
            (low, high), (low_other, high_other) = extents
            assert high <= low_other or high_other <= low


@pytest.mark.parametrize("seed", range(20))
def test_arcs_end_at_their_words_each_in_a_place_of_its_own(seed):
    arcs = random_arcs(np.random.default_rng(seed), 12)
    words = row()
    ends = []
    for arc, route in zip(arcs, routes(arcs, words), strict=True):
        for word, x in ((arc.source, route.start), (arc.target, route.end)):
            assert abs(x - words.centres[word]) <= words.widths[word] / 2
            ends.append((word, round(x, 6)))
    assert len(set(ends)) == len(ends)


def test_arcs_of_a_tree_without_crossings_do_not_cross():
    heads = [1, 2, -1, 5, 5, 2, 7, 2, 2, 10, 2]
    arcs = [Stroke(head, word, "", "blue") for word, head in enumerate(heads) if head >= 0]
    found = routes(arcs, row())
    for one, other in itertools.permutations(found, 2):
        low, high = sorted((one.start, one.end))
        for leg in (other.start, other.end):
            assert not (low < leg < high and other.level > one.level)


def test_a_longer_arc_runs_outside_a_shorter_one():
    inner, outer = routes([Stroke(3, 4, "det", "blue"), Stroke(2, 5, "obj", "blue")], row())
    assert (inner.level, outer.level) == (0, 1)


# --- which relations and sentences ----------------------------------------------------------


def test_the_relations_furthest_ahead_of_their_offset_are_chosen():
    dependency = recorded(groups=("dependency",))["dependency"].to_dataset()
    dependency["advantage_ci_low"][:] = dependency["advantage"] / 2  # as of many documents
    found = chosen_relations(dependency)
    here = dependency.sel(relation=[best.relation for best in found])
    assert len(found) == 6
    assert (here["advantage_ci_low"].values > 0).all()
    rest = dependency.where(dependency["advantage_ci_low"] > 0, drop=True)["advantage"]
    rest = rest.drop_sel(relation=["all", "all_but_root_and_punctuation", "punct"]).values
    assert (here["advantage"].values >= np.sort(rest)[-6]).all()


def test_a_relation_that_is_not_ahead_beyond_its_interval_is_not_chosen():
    dependency = recorded(groups=("dependency",))["dependency"].to_dataset()
    dependency["advantage_ci_low"].loc[{"relation": "case"}] = -0.01
    assert "case" not in {best.relation for best in chosen_relations(dependency)}
    dependency["advantage_ci_low"][:] = -0.01
    assert chosen_relations(dependency) == []


def test_sentences_are_chosen_without_regard_to_the_attention():
    made = recorded(groups=LANGUAGE)
    relations = chosen_relations(made["dependency"])
    chosen = chosen_sentences(parsed_sentences(made["examples"]), relations)
    noise = np.random.default_rng(0).random(made["examples"]["attention"].shape)
    other = (
        made["examples"]
        .to_dataset()
        .assign(attention=made["examples"]["attention"].where(False, noise.astype(np.float32)))
    )
    again = chosen_sentences(parsed_sentences(other), relations)
    assert [s.words for s in chosen] == [s.words for s in again]
    assert 0 < len(chosen) <= 4


def test_a_sentence_that_does_not_fit_a_page_is_not_drawn(tree):
    examples = tree["examples"].to_dataset()
    words = examples["text"].values.astype(object)
    words[1] = [f"{word}-committee" * bool(word) for word in words[1]]
    longer = tree.copy()
    longer["examples"].dataset = examples.assign_coords(text=(("example", "word"), words))
    assert row_of(words[1][:11].tolist(), width=BREADTH, size=8, least=5.5) is None
    drawn = {
        text.get_text() for axes in draw(longer, "example_sentences").axes for text in axes.texts
    }
    assert "stolen" in drawn
    assert not any("committee" in word for word in drawn)


def test_words_beyond_the_sentence_and_sentences_never_seen_are_left_out():
    examples = recorded(groups=("examples",))["examples"].to_dataset()
    examples["attention"].values[0] = np.nan
    found = parsed_sentences(examples)
    assert len(found) == examples.sizes["example"] - 1
    assert all("" not in sentence.words for sentence in found)
    assert {sentence.attention.shape[-1] for sentence in found} == {len(s.words) for s in found}


# --- the attention that is drawn ------------------------------------------------------------


def best_of(dependency, relation):
    (found,) = (best for best in relation_heads(dependency) if best.relation == relation)
    return found


def test_from_dependents_the_attention_of_each_dependent_is_drawn():
    made = recorded(groups=LANGUAGE)
    best = best_of(made["dependency"], "obj")  # dependent to head, in (2, 0)
    sentence = parsed_sentences(made["examples"])[1]  # … heard an unusual case …
    arcs = sentence.attention_arcs(best, top=0)
    expected = made["examples"]["attention"].values[1, 2, 0, 5].copy()
    expected[5] = 0  # a word's own place is no answer
    assert {arc.source for arc in arcs} == {5}
    assert {arc.target: arc.weight for arc in arcs} == pytest.approx(
        {word: weight for word, weight in enumerate(expected[:11]) if weight > 0}
    )
    (largest,) = (arc for arc in arcs if arc.largest)
    assert largest.target == expected[:11].argmax()
    assert [arc.target for arc in arcs if arc.right] == [2]  # heard


def test_from_heads_the_attention_that_each_dependent_gets_is_drawn():
    made = recorded(groups=LANGUAGE)
    turned = made["dependency"].to_dataset()
    turned["best_direction"].loc[{"relation": "conj"}] = 1  # head to dependent
    made["dependency"].dataset = turned
    made["examples"]["attention"].values[0, 2, 4, 4, 12] = 0.5
    best = best_of(made["dependency"], "conj")  # in (2, 4)
    sentence = parsed_sentences(made["examples"])[0]  # … been stolen, or was it … in the house
    arcs = sentence.attention_arcs(best, top=0)
    expected = made["examples"]["attention"].values[0, 2, 4, :14, 12].copy()
    expected[12] = 0
    assert {arc.target for arc in arcs} == {12}
    assert {arc.source: arc.weight for arc in arcs} == pytest.approx(
        {word: weight for word, weight in enumerate(expected) if weight > 0}
    )
    assert [arc.source for arc in arcs if arc.right] == [4]  # stolen


def test_weak_attention_is_left_out_but_never_the_largest():
    made = recorded(groups=LANGUAGE)
    best = best_of(made["dependency"], "obj")
    sentence = parsed_sentences(made["examples"])[1]
    weak = [arc for arc in sentence.attention_arcs(best, top=1.0) if arc.weight < 0.1]
    assert not [arc for arc in weak if not arc.largest]
    sentence.attention[...] /= 1000
    (only,) = sentence.attention_arcs(best, top=1.0)
    assert only.largest
    sentence.attention[...] = 0
    assert sentence.attention_arcs(best, top=1.0) == []


def test_each_sentence_names_its_heads_and_prints_the_attention_in_percent(tree):
    words = ["Judge", "Halloran", "heard", "case"]
    found = next(
        shown
        for axes in draw(tree, "example_sentences").axes
        if set(words) <= set(shown := [text.get_text() for text in axes.texts])
    )
    assert any(text.startswith("obj: L3·H1 d→h, finds 71 % [") for text in found)
    maps = tree["examples"]["attention"].values[1]
    assert f"{100 * maps[2, 0, 5, 2]:.0f}" in found  # case attends to heard


def test_an_arc_that_the_treebank_does_not_have_is_dashed(tree):
    made = recorded(groups=LANGUAGE)
    made["examples"]["attention"][..., 1:] = 0.0  # every head arcs at the first word alone
    made["examples"]["attention"][..., 0] = 1.0
    axes = draw(made, "example_sentences").axes[0]
    marked = [
        (path.vertices[:, 1].max(), dashes)
        for arcs in axes.collections
        if isinstance(arcs, PathCollection)
        for path, hue, (_, dashes) in zip(
            arcs.get_paths(), arcs.get_edgecolor(), arcs.get_linestyle(), strict=True
        )
        if to_hex(hue) != LIGHT["rule"]
    ]
    above = {dashes for highest, dashes in marked if highest > 0}
    below = [dashes for highest, dashes in marked if highest < 0]
    assert above == {None}
    assert below
    assert None not in below


def test_no_label_and_no_word_covers_another(tree):
    """Of the text in one panel, as it is rendered."""
    figure = draw(tree, "example_sentences")
    figure.draw_without_rendering()
    for axes in figure.axes:
        boxes = [(text.get_text(), text.get_window_extent().padded(-0.6)) for text in axes.texts]
        for (one, a), (other, b) in itertools.combinations(boxes, 2):
            assert not a.overlaps(b), (one, other)


def test_the_picture_needs_a_relation_to_show():
    made = recorded(groups=LANGUAGE)
    made["dependency"]["advantage_ci_low"][:] = -0.01
    assert not pictures()["example_sentences"].available(made)
