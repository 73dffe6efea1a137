"""Does `distance` say how far heads look, on which side, and what a window would keep?"""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from analyses.running import observe, planted, run
from headscope.analyses.distance.measure import BINS, QUANTILES
from headscope.claims.head_labels import label_rules
from headscope.model.batch import Batch
from headscope.model.vocabulary import Vocabulary
from headscope.run.check_analysis import check_analysis
from headscope.run.contract_bench import tiny_examples
from headscope.run.known_analyses import known_analyses
from model.families.tiny import tiny
from recorded import DECODER, claims, recorded
from reference import distance
from reference.extraction import Blocks

WINDOWS = {"windows": "1+2,2+3"}
EDGES = BINS.tolist()
LENGTHS = [len(e) for e in tiny_examples()]


def _right(found: object, maps: list[np.ndarray], atol: float) -> None:
    """Every number of the result is that of the reference, from maps [layer, head, query, key]."""
    profiles = [distance.by_distance(one) for one in maps]
    longest = max(LENGTHS)
    for edge in EDGES:
        bins = [distance.binned(one, EDGES)[..., EDGES.index(edge)] for one in profiles]
        wanted = np.mean(bins, 0) if edge < longest else np.nan * bins[0]
        np.testing.assert_allclose(found.profile.sel(distance=edge), wanted, atol=atol)
    near = np.mean([one[..., :4].sum(-1) for one in profiles], 0)
    np.testing.assert_allclose(found.nearby, near, atol=atol)
    mean = np.mean([distance.mean_distance(one) for one in profiles], 0)
    np.testing.assert_allclose(found.mean_distance, mean, atol=10 * atol)
    for share in QUANTILES:
        reach = np.mean([distance.reach(one, share) for one in profiles], 0)
        np.testing.assert_allclose(found.distance_quantile.sel(quantile=share), reach, atol=1e-12)


def _even(causal: bool) -> list[np.ndarray]:
    return [distance.by_distance(distance.uniform(n, causal=causal)) for n in LENGTHS]


def _right_uniform(found: object, *, causal: bool) -> None:
    even = _even(causal)
    wanted = np.mean([distance.mean_distance(one) for one in even])
    assert float(found.uniform_distance) == pytest.approx(wanted, abs=1e-12)
    bins = np.mean([distance.binned(one, EDGES) for one in even], 0)
    there = np.array(EDGES) < max(LENGTHS)
    np.testing.assert_allclose(found.uniform_profile[there], bins[there], atol=1e-12)


@pytest.mark.parametrize("size", [1, 7])
def test_an_encoder_agrees_with_the_reference(reference: list[Blocks], size: int) -> None:
    found = run({"distance": {}}, size=size)["distance"]
    maps = [block["attention"] for block in reference]
    _right(found, maps, 1e-12)
    _right_uniform(found, causal=False)
    before = np.mean([distance.before(one) for one in maps], 0)
    np.testing.assert_allclose(found.before, before, atol=1e-12)
    assert np.isnan(found.streaming).all()
    assert np.isnan(found.uniform_streaming).all()


def test_a_decoder_agrees_with_the_reference_and_has_streaming_shares() -> None:
    network, examples = tiny("Llama"), tiny_examples()
    vocabulary = Vocabulary(cls=2, sep=3, punctuation=(4, 5), pad=0)
    found = run({"distance": WINDOWS}, network=network, vocabulary=vocabulary)["distance"]
    maps = []
    for example in examples:
        batch = Batch.of([example], vocabulary, replicates=0)
        n = len(example)
        views = observe(network, batch)
        maps.append(np.stack([view.attention[0, :, :n, :n].double() for view in views]))
    _right(found, maps, 2e-6)
    _right_uniform(found, causal=True)
    for window in ((1, 2), (2, 3)):
        name = "{}+{}".format(*window)
        shares = np.stack([distance.streaming(one, *window) for one in maps])
        np.testing.assert_allclose(
            found.streaming.sel(window=name), np.nanmean(shares, 0), atol=2e-6
        )
        even = [distance.streaming(distance.uniform(n, causal=True), *window) for n in LENGTHS]
        wanted = np.nanmean(even)
        assert float(found.uniform_streaming.sel(window=name)) == pytest.approx(wanted, abs=1e-12)
        assert int(found.streaming_inputs.sel(window=name)) == np.isfinite(even).sum() > 0
    assert np.isnan(found.before).all()


def test_a_window_that_no_input_is_longer_than_has_no_share() -> None:
    vocabulary = Vocabulary(cls=2, sep=3, punctuation=(4, 5), pad=0)
    found = run({"distance": {}}, network=tiny("Llama"), vocabulary=vocabulary)["distance"]
    assert found["window"].values.tolist() == ["4+64", "128+256"]
    assert np.isnan(found.streaming).all()
    assert np.isfinite(found.nearby).all()


def test_planted_heads_are_as_far_as_they_look() -> None:
    plant = planted(("previous", "next", "self"), ("uniform", "self", "previous"))
    found = run({"distance": {}}, plant=plant)["distance"]
    one = np.mean([(n - 1) / n for n in LENGTHS])  # at the edge they stay themselves
    np.testing.assert_allclose(found.mean_distance[0], [one, one, 0], atol=1e-12)
    np.testing.assert_allclose(found.nearby[0], 1, atol=1e-12)
    np.testing.assert_allclose(found.before[0], [one, 0, 0], atol=1e-12)
    assert float(found.mean_distance[1, 0]) == pytest.approx(float(found.uniform_distance))
    np.testing.assert_allclose(found.profile[1, 0], found.uniform_profile, atol=1e-12)


def test_the_contract_is_kept_with_windows_shorter_than_the_inputs() -> None:
    check_analysis(known_analyses()["distance"], **WINDOWS)


@pytest.mark.parametrize("text", ["4", "4+x", "0+64", ""])
def test_windows_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(
        ValueError, match="wanted the numbers of first and last keys, as in '4\\+64"
    ):
        run({"distance": {"windows": text}})


def test_claims_are_of_heads_that_look_near_or_need_a_window_only() -> None:
    tree = recorded(3, 4, groups=("surface", "distance"), kind=DECODER)
    dataset = tree["distance"].to_dataset()
    for name, value in (("nearby", 0.2), ("streaming", 0.5), ("uniform_streaming", 0.5)):
        for end, by in (("", 0), ("_ci_low", -0.01), ("_ci_high", 0.01)):
            dataset[name + end] = dataset[name].copy(data=np.full(dataset[name].shape, value + by))
    near, window = (0, 1), (2, 3)
    for end in ("", "_ci_low", "_ci_high"):
        dataset[f"nearby{end}"].values[near] = 0.8
        dataset[f"streaming{end}"].values[(*window, 0)] = 0.97
        dataset[f"streaming{end}"].values[(*near, 1)] = 0.97  # the larger window is not asked
    window_inputs = xr.DataArray([10.0, 40.0], dims="window", attrs={"units": "inputs"})
    tree["distance"] = dataset.assign(streaming_inputs=window_inputs)
    found = {(c.kind, c.layer, c.head): c for c in claims(tree, "distance")}
    assert set(found) == {("nearby", *near), ("streaming", *window)}
    assert all(label_rules()[claim.kind].passes(claim) for claim in found.values())
    said = found["streaming", *window].sentence
    assert said == (
        "gives the first 4 and latest 64 tokens 97 % [97, 97] in 10 inputs that have far more, "
        "where 50 % is uniform"
    )
    assert found["nearby", *near].label == "nearby tokens 80 % [80, 80]"


def test_few_inputs_that_have_more_than_first_and_latest_tokens_tell_nothing_of_them() -> None:
    """In 9 of 790 inputs; a window that enough inputs tell of would have a say: none here."""
    tree = recorded(3, 4, groups=("surface", "distance"), kind=DECODER)
    dataset = tree["distance"].to_dataset()
    for end, value in (("", 0.99), ("_ci_low", 0.98), ("_ci_high", 1.0)):
        dataset[f"streaming{end}"] = dataset[f"streaming{end}"] * 0 + value
    tree["distance"] = dataset.assign(streaming_inputs=("window", [9.0, 0.0]))
    assert not [claim for claim in claims(tree, "distance") if claim.kind == "streaming"]
    tree["distance"] = dataset.drop_vars("streaming_inputs", errors="ignore")  # an older run
    assert not [claim for claim in claims(tree, "distance") if claim.kind == "streaming"]
