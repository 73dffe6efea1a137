"""Does `frames` say how much heads look from frame elements to their target, and beyond chance?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import binom

import headscope as hs
from analyses.running import VOCABULARY, Plant, observe, run
from analyses.running import planted as exact
from corpus.framenet_release import Sentence, Unit, write_release
from headscope.analyses.frames.measure import (
    QUANTILES,
    Frames,
    Links,
    family_wise,
    links_of,
    places_of,
)
from headscope.corpus.document import Example, Frame, FrameElement, Word
from headscope.model.batch import Batch
from headscope.model.model import Model
from headscope.run.analysis import Scope
from headscope.run.check_analysis import check_analysis
from headscope.run.contract_bench import (
    CLS,
    HEADS,
    LAYERS,
    SEP,
    TOKENS,
    tiny_examples,
    tiny_network,
)
from reference import frames as plain
from reference.extraction import Blocks

OPTIONS = [
    {},
    {"pairing": "zip"},
    {"measure": "weighted_norm"},
    {"pairing": "zip", "measure": "weighted_norm", "statistic": "standardised"},
    {"permutations": 3},
]
WAYS = {"": False, "_reversed": True}


def frame(target: tuple[int, int], *elements: tuple[int, int], core: bool = True) -> Frame:
    """A frame of these words, first and last."""
    return Frame("", *target, tuple(FrameElement("", *e, core=core) for e in elements))


def sentence(name: str, *frames: Frame, pieces: Sequence[int] = (1,) * 6, seed: int = 0) -> Example:
    """[CLS], words of so many random tokens each, [SEP]."""
    rng = np.random.default_rng((seed, *name.encode()))
    ids = np.array([CLS, *rng.integers(6, TOKENS, sum(pieces)), SEP])
    word = np.array([-1, *np.repeat(np.arange(len(pieces)), pieces), -1])
    words = tuple(Word(str(number)) for number in range(len(pieces)))
    return Example(
        name, name, ids, np.zeros_like(ids), word < 0, word_index=word, words=words, frames=frames
    )


def varied(count: int) -> list[Example]:
    """Sentences of one or two elements, of words of one to three tokens, some ids repeated."""
    kinds = [
        [frame((4, 4), (0, 1))],
        [frame((3, 3), (0, 0), (5, 6))],
        [frame((5, 5), (1, 2)), frame((0, 0), (4, 4))],
    ]
    examples = []
    for index in range(count):
        rng = np.random.default_rng(index)
        pieces = rng.integers(1, 4, 8)
        made = sentence(str(index), *kinds[index % len(kinds)], pieces=pieces, seed=1)
        made.input_ids[5:9:3] = made.input_ids[2]
        examples.append(made)
    return examples


def drawn(example: Example, layer: int, *, lean: float = 0.0) -> np.ndarray:
    """[head, query, key] sharp random rows; each head gives the links `lean` more than the last."""
    n = len(example)
    rng = np.random.default_rng((layer, *example.id.encode()))
    maps = rng.dirichlet(np.full(n, 0.3), (HEADS, n))  # [head, query, key]
    for element, target in np.concatenate(links_of(example, pairing="product"), 1).T:
        more = lean * (layer * HEADS + np.arange(HEADS))
        maps[:, element, target] += more
        maps[:, target, element] += more
    return maps


def random_maps(lean: float = 0.0) -> Plant:
    def plant(batch: Batch, layer: int) -> torch.Tensor:
        tokens = batch.input_ids.shape[1]
        maps = torch.zeros(len(batch.examples), HEADS, tokens, tokens, dtype=torch.float64)
        for row, example in enumerate(batch.examples):
            there = torch.from_numpy(drawn(example, layer, lean=lean))
            maps[row, :, : len(example), : len(example)] = there
        return maps

    return plant


def as_reference(
    examples: Sequence[Example], weights: Sequence[np.ndarray], pairing: str
) -> list[plain.Sentence]:
    """What the reference needs, tokens looked up word by word."""
    found = []
    for example, maps in zip(examples, weights, strict=True):
        tokens: dict[int, list[int]] = {}
        for token, word in enumerate(example.word_index.tolist()):
            tokens.setdefault(word, []).append(token)
        links = []
        for one in example.frames:
            spans = [range(e.first, e.last + 1) for e in one.elements]
            elements = [[t for word in span for t in tokens[word]] for span in spans]
            target = [t for word in range(one.first, one.last + 1) for t in tokens[word]]
            if pairing == "zip":
                links += plain.zip_link(example.input_ids.tolist(), elements, target)
            else:
                links += plain.product_links(elements, target)
        found.append((maps, (~example.special).tolist(), links))
    return found


# --- the contract, and the reference ---------------------------------------------------------


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_it_keeps_the_contract(options: dict[str, Any]) -> None:
    check_analysis(Frames, **options)


@pytest.mark.parametrize("pairing", ["product", "zip"])
def test_random_maps_score_as_in_the_reference(pairing: str) -> None:
    examples = varied(12)
    maps = [np.stack([drawn(e, layer) for layer in range(LAYERS)]) for e in examples]
    expected = as_reference(examples, maps, pairing)
    found = run({"frames": {"pairing": pairing}}, examples=examples, plant=random_maps())["frames"]
    assert int(found.sentences) == 12
    for way, reverse in WAYS.items():
        wanted = plain.score(expected, reverse=reverse)
        np.testing.assert_allclose(found[f"score{way}"], wanted, rtol=0, atol=1e-12)


@pytest.mark.parametrize("pairing", ["product", "zip"])
@pytest.mark.parametrize("measure", ["attention", "weighted_norm"])
def test_a_real_network_scores_as_in_the_reference(
    reference: list[Blocks], pairing: str, measure: str
) -> None:
    there = [i for i, e in enumerate(tiny_examples()) if e.frames]
    examples = [tiny_examples()[i] for i in there]
    weights = []
    for blocks in (reference[i] for i in there):
        norms = np.linalg.norm(blocks["f"], axis=-1)[:, :, None]  # [layer, head, 1, key]
        weights.append(blocks["attention"] * (norms if measure == "weighted_norm" else 1))
    expected = as_reference(examples, weights, pairing)
    found = run({"frames": {"pairing": pairing, "measure": measure}})["frames"]
    assert int(found.sentences) == len(examples) < len(tiny_examples())
    for way, reverse in WAYS.items():
        wanted = plain.score(expected, reverse=reverse)
        np.testing.assert_allclose(found[f"score{way}"], wanted, rtol=1e-9)
    assert found.score.attrs["units"] == ("probability" if measure == "attention" else "1")
    assert (found.attrs["measure"], found.attrs["pairing"]) == (measure, pairing)


@pytest.mark.parametrize("pairing", ["product", "zip"])
def test_chance_is_the_mean_over_all_places_of_the_links(pairing: str) -> None:
    examples = varied(9)
    maps = [np.stack([drawn(e, layer) for layer in range(LAYERS)]) for e in examples]
    expected = as_reference(examples, maps, pairing)
    options = {"pairing": pairing, "permutations": 4000}
    found = run({"frames": options}, examples=examples, plant=random_maps())["frames"]
    for way, reverse in WAYS.items():
        error = np.std(list(plain.permuted(expected, times=200, seed=0, reverse=reverse)), 0)
        gap = np.abs(found[f"chance{way}"] - plain.chance(expected, reverse=reverse))
        assert (gap < 5 * error / np.sqrt(4000)).all()


@pytest.mark.parametrize("statistic", ["score", "standardised"])
def test_p_values_are_those_of_other_random_places(statistic: str) -> None:
    """Of 1000 draws a share near one half is known to 0.016, and both sides have drawn."""
    examples = varied(12)
    maps = [np.stack([drawn(e, layer, lean=0.03) for layer in range(LAYERS)]) for e in examples]
    expected = as_reference(examples, maps, "product")
    options = {"permutations": 1000, "statistic": statistic}
    found = run({"frames": options}, examples=examples, plant=random_maps(0.03))["frames"]
    for way, reverse in WAYS.items():
        draws = list(plain.permuted(expected, times=1000, seed=1, reverse=reverse))
        wanted = plain.p_values(
            plain.score(expected, reverse=reverse),
            draws,
            standardise=statistic == "standardised",
        )
        assert wanted.min() < 0.5 < wanted.max()
        np.testing.assert_allclose(found[f"p_value{way}"], wanted, atol=0.09)


# --- worked by hand --------------------------------------------------------------------------


def planted(*weights: float) -> Plant:
    """Heads that give the target (token 6) so much of an element's (token 2's) attention."""

    def plant(batch: Batch, layer: int) -> torch.Tensor:
        tokens = batch.input_ids.shape[1]
        maps = torch.eye(tokens, dtype=torch.float64).repeat(len(batch.examples), HEADS, 1, 1)
        for head, weight in enumerate(weights):
            maps[:, head, 2, 6], maps[:, head, 2, 2] = weight, 1 - weight
        return maps

    return plant


def exemplars(count: int = 20, words: int = 8) -> list[Example]:
    return [sentence(str(i), frame((5, 5), (1, 1)), pieces=(1,) * words) for i in range(count)]


def test_a_head_that_looks_from_the_element_to_the_target_scores_1_and_is_no_chance() -> None:
    """In 8 words a link of distance 4 has 4 places: the planted one comes in a quarter of them."""
    found = run({"frames": {}}, examples=exemplars(), plant=planted(1, 0.5, 0))["frames"]
    assert found.score.values.tolist() == [[1, 0.5, 0]] * LAYERS
    assert (found.score_reversed == 0).all()
    np.testing.assert_allclose(found.chance[0], [0.25, 0.125, 0], atol=0.02)
    # The best head of a permutation is the first, which has that place in k of 20 sentences.
    np.testing.assert_allclose(found.p_value[0, 0], 1 / 201)
    np.testing.assert_allclose(found.p_value[0, 1], binom.sf(9, 20, 0.25), atol=0.03)
    assert float(found.p_value[0, 2]) == 1
    assert (found.p_value_reversed == 1).all()
    assert (found.chance_reversed == 0).all()


def test_uniform_attention_is_chance() -> None:
    uniform = exact(*[["uniform"] * HEADS] * LAYERS)
    for statistic in ("score", "standardised"):
        found = run({"frames": {"statistic": statistic}}, examples=exemplars(), plant=uniform)
        for way in WAYS:
            np.testing.assert_allclose(found["frames"][f"score{way}"], 0.1, rtol=1e-6)
            np.testing.assert_allclose(found["frames"][f"chance{way}"], 0.1, rtol=1e-6)
            assert (found["frames"][f"p_value{way}"] == 1).all()


def test_a_head_of_large_weights_hides_the_others_unless_they_are_standardised() -> None:
    """Head 0 gives 0.6 to whatever stands four words on; head 1 gives the target alone 0.5."""

    def plant(batch: Batch, layer: int) -> torch.Tensor:
        maps = planted(0, 0.5, 0)(batch, layer)
        noise = torch.from_numpy(np.stack([_noise(e.id) for e in batch.examples]))
        places = torch.arange(maps.shape[-1] - 4)
        maps[:, 0, places, places + 4] = 0.6 + noise[:, places]
        return maps

    def _noise(name: str) -> np.ndarray:
        return np.random.default_rng(int(name)).uniform(-0.05, 0.05, TOKENS)

    raw, fair = (
        run({"frames": {"statistic": s}}, examples=exemplars(), plant=plant)["frames"].p_value[0]
        for s in ("score", "standardised")
    )
    assert float(raw[1]) == 1
    assert float(fair[1]) == pytest.approx(1 / 201)
    assert float(fair[0]) > 0.05


def test_a_sentence_with_one_place_for_its_link_is_no_evidence() -> None:
    examples = [sentence(str(i), frame((5, 5), (0, 0)), pieces=(1,) * 6) for i in range(20)]
    found = run({"frames": {"statistic": "score"}}, examples=examples, plant=random_maps())[
        "frames"
    ]
    np.testing.assert_allclose(found.chance, found.score, rtol=1e-12)
    assert float(found.p_value.min()) == 1


def test_what_float32_rounds_apart_is_no_evidence() -> None:
    score = np.array([[0.3, 0.2]])
    moved = score[..., None] * (1 - np.array([1e-7, 3e-7, 2e-7]))
    for statistic in ("score", "standardised"):
        assert family_wise(score, moved, statistic=statistic)[0, 0] == 1


def test_the_inputs_of_a_document_are_moved_independently() -> None:
    twins = [replace(e, document="one") for e in exemplars(2)]
    batch = Batch.of(twins, VOCABULARY, replicates=2)
    links = Links.of(batch, pairing="product", permutations=50, seed=0)
    first, second = links.placed - links.placed.min(1, keepdims=True)
    assert (first != second).any()


def test_other_seeds_give_other_places_and_the_same_seed_the_same() -> None:
    def chances(seed: int) -> np.ndarray:
        scope = Scope(LAYERS, HEADS, 20, replicates=2, seed=seed)
        analysis = Frames(scope, permutations=5)
        batch = Batch.of(exemplars(), VOCABULARY, replicates=2)
        for view in observe(tiny_network(torch.float64), batch, plant=planted(1, 0, 0)):
            analysis.observe(view, batch)
        return analysis.result().chance.values

    assert (chances(0) == chances(0)).all()
    assert (chances(0) != chances(1)).any()


# --- links -----------------------------------------------------------------------------------


def test_product_pairs_every_token_of_each_element_with_every_one_of_the_target() -> None:
    example = sentence("x", frame((3, 3), (0, 1), (5, 5)), pieces=(1, 2, 1, 2, 1, 1))
    first, second = links_of(example, pairing="product")
    assert first.T.tolist() == [[1, 5], [1, 6], [2, 5], [2, 6], [3, 5], [3, 6]]
    assert second.T.tolist() == [[8, 5], [8, 6]]


def test_zip_pairs_them_one_by_one_each_where_its_like_stands_first() -> None:
    example = sentence("x", frame((3, 3), (5, 5), (0, 1)), pieces=(1, 2, 1, 2, 1, 1))
    example.input_ids[1:9] = [10, 11, 12, 13, 14, 12, 15, 16]
    (link,) = links_of(example, pairing="zip")
    # Elements in order are tokens 1 2 3 8, the target 5 6; token 6 is another 12, first at 3.
    assert link.T.tolist() == [[1, 5], [2, 3]]


def test_elements_that_are_not_core_are_no_links() -> None:
    whole = frame((4, 4), (0, 0), (1, 1), core=False)
    mixed = replace(whole, elements=(whole.elements[0], FrameElement("", 1, 1)))
    for pairing in ("product", "zip"):
        assert links_of(sentence("x", whole), pairing=pairing) == []
        (link,) = links_of(sentence("x", mixed), pairing=pairing)
        assert link.tolist() == [[2], [5]]


def test_what_has_no_token_in_this_input_is_no_link() -> None:
    example = sentence("x", frame((4, 4), (0, 0), (2, 2)))
    example.word_index[example.word_index == 0] = -1
    assert [link.tolist() for link in links_of(example, pairing="product")] == [[[3], [5]]]
    example.word_index[example.word_index == 4] = -1
    assert links_of(example, pairing="product") == []
    assert links_of(replace(example, word_index=None), pairing="product") == []
    found = run({"frames": {}}, examples=[example, *exemplars(3)], size=2)["frames"]
    assert int(found.sentences) == 3


def test_a_link_is_moved_as_a_whole_and_never_onto_special_tokens() -> None:
    example = sentence("x", frame((3, 3), (0, 1)))  # 8 tokens, content 1 to 6
    (link,) = links_of(example, pairing="product")
    places = places_of(link, example)
    assert [place.T.tolist() for place in places] == [
        [[1, 4], [2, 4]],
        [[2, 5], [3, 5]],
        [[3, 6], [4, 6]],
    ]
    example.special[5] = True
    assert [place.T.tolist() for place in places_of(link, example)] == [
        [[1, 4], [2, 4]],
        [[3, 6], [4, 6]],
    ]


@pytest.mark.parametrize(
    "options",
    [{"pairing": "all"}, {"measure": "norm"}, {"statistic": "t"}, {"permutations": 0}],
    ids=str,
)
def test_an_impossible_option_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="wanted"):
        Frames(Scope(LAYERS, HEADS), **options)


# --- whole runs ------------------------------------------------------------------------------


def test_a_run_gives_the_spread_of_its_sentences() -> None:
    found = run({"frames": {}}, examples=exemplars(), plant=planted(1, 0.5, 0))["frames"]
    assert found.bin.values.tolist() == pytest.approx((np.arange(20) / 20).tolist())
    assert found["quantile"].values.tolist() == list(QUANTILES)
    for head, place in enumerate((19, 10, 0)):
        assert float(found.distribution[0, head, place]) == 1
        np.testing.assert_allclose(
            found.score_quantile[0, head], found.score[0, head], rtol=0, atol=1e-3
        )


def test_a_run_over_a_release_gives_frames(demo: Model, tmp_path: Path) -> None:
    texts = ["The girl had always really pitied him .", "My aunt could never quite have loved it ."]
    elements = [[("Feeler", "The girl")], [("Feeler", "My aunt")]]
    sentences = [
        Sentence(i, text, target, element)
        for i, (text, target, element) in enumerate(
            zip(texts, ["pitied", "loved"], elements, strict=True)
        )
    ]
    release = write_release(tmp_path, [Unit(5, "feel.v", sentences=sentences)])
    made = hs.atlas(
        demo,
        hs.corpus.FramesCorpus(release),
        analyses=("frames",),
        replicates=10,
        options={"frames": {"permutations": 20}},
        execution=hs.Execution(linears="stock"),
    )
    found = made["frames"]
    assert int(found.sentences) == 2
    assert bool((found.score > 0).all())
    assert np.isnan(found.score_ci_low).all()  # two documents carry no interval
    assert made.manifest["corpus"]["kind"] == "frames"
