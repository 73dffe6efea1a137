"""Does every probe score pairs as the papers define it?"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from headscope.experiments.probes.pair_probes import (
    AttentionAndWordsProbe,
    AttentionProbe,
    DistancesAndWordsProbe,
    ProbeInput,
    distance_features,
    pair_vectors,
)
from reference import probes as reference

WORDS, UNITS, DIM = 5, 4, 3


@pytest.fixture(autouse=True)
def _seeded():
    with torch.random.fork_rng():
        torch.manual_seed(3)
        yield


@pytest.fixture
def look() -> ProbeInput:
    maps = torch.rand(WORDS + 2, WORDS + 2, UNITS)
    return ProbeInput(WORDS, maps, torch.randn(WORDS, DIM))


def double(tensor: torch.Tensor | None) -> np.ndarray:
    assert tensor is not None
    return tensor.detach().double().numpy()


@pytest.mark.parametrize("constant", [False, True])
def test_the_probe_on_attention_is_its_definition(look: ProbeInput, constant: bool) -> None:
    probe = AttentionProbe(UNITS, constant_root=constant)
    wanted = reference.attention_scores(
        double(look.maps), double(probe.weight), double(probe.root), constant_root=constant
    )
    np.testing.assert_allclose(probe(look).detach(), wanted, atol=1e-5)
    assert probe(look).shape == (WORDS, WORDS + 1)
    assert sum(p.numel() for p in probe.parameters()) == 2 * UNITS + (1 if constant else 2)


@pytest.mark.parametrize("shift", [False, True])
def test_the_probe_on_attention_and_words_is_its_definition(look: ProbeInput, shift: bool) -> None:
    probe = AttentionAndWordsProbe(UNITS, DIM, constant_root=False, legacy_root_shift=shift)
    torch.nn.init.normal_(probe.bias)
    dense = np.concatenate([double(probe.dependent), double(probe.candidate)])
    wanted = reference.attention_words_scores(
        double(look.maps),
        double(look.vectors),
        dense,
        double(probe.bias),
        double(probe.root),
        shift=shift,
    )
    np.testing.assert_allclose(probe(look).detach(), wanted, atol=1e-4)


@pytest.mark.parametrize("shift", [False, True])
def test_the_probe_on_distances_and_words_is_its_definition(look: ProbeInput, shift: bool) -> None:
    probe = DistancesAndWordsProbe(DIM, legacy_root_shift=shift)
    torch.nn.init.normal_(probe.bias)
    dense = [double(part) for part in (probe.place, probe.dependent, probe.candidate)]
    wanted = reference.distances_words_scores(
        double(look.vectors),
        np.concatenate(dense),
        double(probe.bias),
        double(probe.out),
        shift=shift,
    )
    np.testing.assert_allclose(probe(look).detach(), wanted, atol=1e-4)
    assert probe.place.shape[0] == 8
    assert probe.out.shape == (256,)


def test_the_legacy_shift_gives_every_candidate_the_vector_of_the_next_word(
    look: ProbeInput,
) -> None:
    assert look.vectors is not None
    right, there = pair_vectors(look.vectors, legacy_root_shift=False)
    shifted, shifted_there = pair_vectors(look.vectors, legacy_root_shift=True)
    assert torch.equal(right[1:], look.vectors)
    assert torch.equal(shifted[:-1], right[1:])
    assert not right[0].any()
    assert not shifted[-1].any()
    assert there.tolist() == [0, 1, 1, 1, 1, 1]
    assert shifted_there.tolist() == [1, 1, 1, 1, 1, 0]


def test_features_of_places_are_those_of_each_pair() -> None:
    found = distance_features(4)
    for i in range(4):
        for j in range(5):
            np.testing.assert_allclose(found[i, j], reference.distance_features(4, i + 1, j))


def test_without_special_tokens_root_has_one_learned_score(look: ProbeInput) -> None:
    probe = AttentionProbe(UNITS, constant_root=True)
    torch.nn.init.constant_(probe.root, 7.0)
    assert (probe(look)[:, 0] == 7).all()
    probe(look).sum().backward()
    assert probe.root.grad is not None
    assert float(probe.root.grad[0]) == WORDS


def test_even_attention_tells_no_word_from_another() -> None:
    even = ProbeInput(WORDS, torch.full((WORDS + 2, WORDS + 2, UNITS), 1 / (WORDS + 2)))
    p = AttentionProbe(UNITS, constant_root=False)(even).softmax(1).detach().numpy()
    rest = (1 - p[:, :1]) / WORDS
    np.testing.assert_allclose(p[:, 1:], np.broadcast_to(rest, (WORDS, WORDS)), rtol=1e-5)
