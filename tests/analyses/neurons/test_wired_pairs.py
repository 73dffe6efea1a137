"""Does `position_overlap` alone tell heads whose neurons are fixed from those whose neurons change?

Twenty pairs of heads are wired into a network. Both of a pair look at the same tokens, by eight
neurons of every query; in one they are the same eight at every position, in the other each token
has eight of its own. Where a head looks says nothing of which it is, nor how many neurons it uses.
"""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import headscope as hs
from headscope.core.accumulators import generator
from headscope.wired.features import Feature
from headscope.wired.heads import Match, WiredHead
from headscope.wired.language import annotated_corpus
from headscope.wired.networks import wire

NEURONS, SET = 24, 8  # that the construction uses; of each query
STRENGTHS = (3.0, 4.0, 5.0, 6.0)  # log-odds; a layer for each
TARGETS = {
    "[CLS]": lambda text, form: text == "[CLS]",
    "[SEP]": lambda text, form: text == "[SEP]",
    "stops": lambda text, form: form is not None and form.tag == "PUNCT",
    "verbs": lambda text, form: form is not None and form.tag == "VERB",
    "nouns": lambda text, form: form is not None and form.tag == "NOUN",
}


def eight(*of: str) -> np.ndarray:
    """A unit vector with eight neurons, drawn by a name."""
    row = np.zeros(NEURONS)
    row[generator(0, "pairs of heads", *of).permutation(NEURONS)[:SET]] = SET**-0.5
    return row


FIXED = Feature("fixed", NEURONS, code=lambda *_: eight())
CHANGING = Feature("changing", NEURONS, code=lambda text, *_: eight(text))


def key_of(target: str) -> Feature:
    """As long in every neuron, so that any eight of a query match it alike."""
    holds = TARGETS[target]

    def code(text: str, form: object, _: int) -> np.ndarray:
        return np.full(NEURONS, SET**-0.5 * holds(text, form))

    return Feature(f"key of {target}", NEURONS, code=code)


@pytest.fixture(scope="module")
def results() -> xr.DataTree:
    """[layer] of each strength, [head] of each target: fixed, then changing."""
    layers = [
        [
            WiredHead(f"{query.name}, {target}, {strength:g}", (Match(query, key, strength),))
            for target in TARGETS
            for query, key in ((FIXED, key_of(target)), (CHANGING, key_of(target)))
        ]
        for strength in STRENGTHS
    ]
    made = wire("bert", layers, seed=1, noise=0.4, turned=True)
    model = hs.load(made.network, tokenizer=made.tokenizer)
    corpus = annotated_corpus(10, each=1)
    execution = hs.Execution(threads=1)
    return hs.atlas(model, corpus, analyses=("surface", "neurons"), execution=execution).tree


def pairs(values: xr.DataArray) -> tuple[np.ndarray, np.ndarray]:
    """[layer, pair] of the fixed heads and of the changing ones."""
    return values.values[:, 0::2], values.values[:, 1::2]


def test_twenty_pairs_are_told_apart_by_the_overlap_between_positions_alone(results) -> None:
    fixed, changing = pairs(results["neurons"]["position_overlap"])
    assert fixed.size == changing.size == 20
    assert changing.max() < 0.5 < fixed.min()


def test_neither_where_they_look_nor_how_many_neurons_tells_them_apart(results) -> None:
    """No threshold of another number leaves the two kinds on its two sides."""
    for values in (
        results["surface"]["attention"].sel(target="sep"),
        results["neurons"]["effective"],
        results["neurons"]["relative_score"],
    ):
        fixed, changing = pairs(values)
        assert max(fixed.min(), changing.min()) < min(fixed.max(), changing.max())
