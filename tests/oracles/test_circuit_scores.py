"""Do TransformerLens and we say the same of the same tiny decoders? To 1e-4.

`make_circuit_scores.py` wrote its numbers once, with the versions that stand in the file.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from experiments.circuits.decoders import decoder
from headscope.experiments.circuits import head_scores
from headscope.experiments.circuits.head_scores import PatternScores
from headscope.experiments.circuits.made_inputs import Repeats, example_of
from headscope.experiments.circuits.result import WAYS
from headscope.experiments.circuits.weight_maps import WeightMaps
from headscope.model.model import show_layers

THEIRS = json.loads(Path(__file__).with_name("circuit_scores.json").read_text("utf-8"))
IDS = np.array(THEIRS["ids"])
HALF = len(IDS) // 2


@pytest.mark.parametrize("name", THEIRS["models"])
def test_the_detector_of_transformer_lens_finds_the_same_heads(name):
    """Theirs divides by all queries, and counts the second token's attention to the first."""
    model, theirs = decoder(name).model, THEIRS["models"][name]
    example = example_of(IDS, "one", "repeated", special=1)
    scores = PatternScores(Repeats([example], [example], 1, HALF))
    batch, second = model.batch([example]), []

    def look(view):
        scores.look(view, batch)
        second.append(view.neighbour(-1)[0, :, 0].numpy())

    show_layers(model, batch, look)
    previous, duplicate, induction = np.moveaxis(scores.whole[0, ..., :3], -1, 0)
    sums = (previous * (2 * HALF - 1) + np.stack(second), duplicate * HALF, induction * HALF)
    kinds = ("previous_token_head", "duplicate_token_head", "induction_head")
    for kind, total in zip(kinds, sums, strict=True):
        np.testing.assert_allclose(total / len(IDS), theirs[kind], atol=1e-4)


@pytest.mark.parametrize("name", THEIRS["models"])
def test_composition_and_copying_by_weights_are_those_of_transformer_lens(name):
    weights, theirs = WeightMaps(decoder(name).model), THEIRS["models"][name]
    maps = list(weights.layers())
    score, _ = head_scores.composition(maps)
    for ours, way in zip(score, WAYS, strict=True):
        wanted = np.array(theirs[way[0].upper()])
        there = np.isfinite(ours)
        assert there.any()
        wanted = wanted.reshape(ours.shape).T  # [reader, writer]
        np.testing.assert_allclose(ours[there], wanted[there], atol=1e-4)
    np.testing.assert_allclose(head_scores.copying(maps, weights), theirs["copying"], atol=1e-4)
