"""Are heads labelled by what they do in one example, in the words of labels?"""

from __future__ import annotations

import numpy as np
import pytest

from headscope.errors import InputError
from headscope.views import example_labels as module
from headscope.views.captured_example import TokenSide

N = 8  # [CLS] a b , c d . [SEP]
KINDS = {
    "cls": np.arange(N) == 0,
    "sep": np.arange(N) == 7,
    "punctuation": np.isin(np.arange(N), (3, 6)),
    "special": np.zeros(N, dtype=bool),  # every token is a query, unless a test says otherwise
}
NOTHING = dict.fromkeys(KINDS, np.zeros(N, dtype=bool))


def example_labels(maps, *, cls_name="[CLS]", sep_name="[SEP]", **flags):
    marks = zip(flags["cls"], flags["sep"], strict=False)
    tokens = tuple(cls_name if c else sep_name if s else "word" for c, s in marks)
    nothing = np.zeros(len(tokens), dtype=np.int64)
    return module.example_labels(maps, TokenSide(tokens, segment=nothing, word=nothing, **flags))


def to(*keys, weight=1.0):
    """[query, key]: `weight` to the keys, in equal parts, the rest to all other keys alike."""
    here = np.isin(np.arange(N), keys)
    row = np.where(here, weight / here.sum(), (1 - weight) / max(N - here.sum(), 1))
    return np.tile(row, (N, 1))


def shifted(offset, weight=1.0):
    """[query, key]: `weight` to the token `offset` on where there is one, the rest to all alike."""
    there = np.eye(N, k=offset)
    rest = 1 - weight * there.sum(-1, keepdims=True)
    return weight * there + rest / N


def label(head, kinds=KINDS, **options):
    return example_labels(np.float32([[head]]), **kinds, **options)[0][0]


@pytest.mark.parametrize(
    ("head", "wanted"),
    [
        # 7 of 8 queries have a previous token: (7·0.8 + 7·0.2/8 + 0) / 8 = 0.721875
        (shifted(-1, 0.8), "previous token 72 %"),
        (shifted(1, 0.8), "next token 72 %"),
        # 0.8 + 0.2/8 = 0.825
        (shifted(0, 0.8), "itself 82 %"),
        (to(0, weight=0.9), "[CLS] 90 %"),
        (to(7, weight=0.61), "[SEP] 61 %"),
        (to(3, 6, weight=0.7), "punctuation 70 %"),
        (to(*range(N)), "broad 100 %"),
        (to(2, weight=0.9), ""),
    ],
)
def test_a_head_is_called_by_what_most_of_its_attention_goes_to(head, wanted):
    assert label(head) == wanted


def test_the_thresholds_are_those_of_labels():
    assert label(to(7, weight=0.599)) == ""
    assert label(to(7, weight=0.601)) == "[SEP] 60 %"
    assert label(shifted(-1, 0.50)) == ""  # 7·(0.5 + 0.5/8)/8 = 0.492
    assert label(shifted(-1, 0.52)) == "previous token 51 %"  # 7·(0.52 + 0.48/8)/8 = 0.5075


def test_layers_and_heads_keep_their_places():
    maps = np.float32([[to(0), to(7), to(2)], [to(2), to(*range(N)), shifted(0)]])
    assert example_labels(maps, **KINDS) == [
        ["[CLS] 100 %", "[SEP] 100 %", ""],
        ["", "broad 100 %", "itself 100 %"],
    ]


def test_special_tokens_are_no_queries():
    head = shifted(-1)  # the words look back; [CLS] and [SEP] at themselves
    head[[0, 7]] = np.eye(N)[[0, 7]]
    special = {**KINDS, "special": KINDS["cls"] | KINDS["sep"]}
    assert label(head) == "previous token 75 %"
    assert label(head, special) == "previous token 100 %"
    only = {**KINDS, "special": np.ones(N, dtype=bool)}
    assert label(head, only) == "previous token 75 %"


def test_broad_is_measured_against_the_tokens_that_a_query_sees():
    causal = np.tril(np.ones((N, N)))
    causal /= causal.sum(-1, keepdims=True)
    assert label(causal, NOTHING) == "broad 100 %"
    # Its mean entropy is ln(8!)/8 = 1.3256, of ln 8 = 2.0794 were the rest to be seen: 64 %.
    seen = np.float32([[causal, to(2)]])
    assert example_labels(seen, **NOTHING) == [["", ""]]


def test_broad_begins_above_nine_tenths_of_the_uniform_entropy():
    # Entropies of p on one of 8 keys, the rest alike, over ln 8: 0.5 → 80 %, 0.35 → 92 %.
    assert label(to(2, weight=0.35), NOTHING) == "broad 92 %"
    assert label(to(2, weight=0.5), NOTHING) == ""


def test_without_an_opening_token_the_first_one_is_named():
    assert label(to(0, weight=0.9), NOTHING) == "first token 90 %"
    assert label(to(0, weight=0.9), cls_name="<s>") == "<s> 90 %"
    assert label(to(7, weight=0.9), sep_name="</s>") == "</s> 90 %"


def test_of_two_labels_that_fit_the_special_token_wins():
    # Every token looks at the next one, the last at itself; the last two are separators.
    maps = np.float32([[[[0, 1, 0], [0, 0, 1], [0, 0, 1]]]])
    kinds = dict.fromkeys(KINDS, np.zeros(3, dtype=bool))
    assert example_labels(maps, **kinds) == [["next token 67 %"]]
    assert example_labels(maps, **{**kinds, "sep": np.arange(3) > 0}) == [["[SEP] 100 %"]]


def test_what_uniform_attention_does_as_well_is_not_telling():
    mostly = {**NOTHING, "punctuation": np.arange(N) > 1}  # 6 of 8: uniform gives 75 %
    assert label(to(*range(N)), mostly) == "broad 100 %"
    assert label(to(1, weight=0.25), mostly) == "broad 97 %"
    assert label(to(2, 3, 4), mostly) == "punctuation 100 %"


def test_one_token_tells_nothing():
    flags = {name: np.array([name == "cls"]) for name in KINDS}
    assert example_labels(np.ones((1, 2, 1, 1), np.float32), **flags) == [["", ""]]


def test_the_first_tokens_of_a_causal_map_are_no_labels():
    causal = np.tril(np.ones((3, 3)))
    causal /= causal.sum(-1, keepdims=True)  # gives the first token (1 + 1/2 + 1/3)/3 = 61 %
    flags = dict.fromkeys(KINDS, np.zeros(3, dtype=bool))
    assert example_labels(np.float32([[causal]]), **flags) == [["broad 100 %"]]


@pytest.mark.parametrize(
    ("maps", "kinds", "words"),
    [
        (np.ones((2, N, N)), KINDS, r"wanted \[layer, head, query, key\]"),
        (np.ones((1, 1, N, N - 1)), KINDS, "as many queries as keys"),
        (np.ones((1, 1, 0, 0)), KINDS, "at least 1"),
        (np.ones((1, 1, N, N)), {**KINDS, "sep": np.zeros(3, bool)}, r"sep has the shape \(3,\)"),
        (np.full((1, 1, N, N), np.nan), KINDS, "NaN"),
    ],
)
def test_maps_that_do_not_fit_are_refused(maps, kinds, words):
    with pytest.raises(InputError, match=words):
        example_labels(maps, **kinds)
