"""Do two models see the same, and is what is told of them what a float64 reference finds?"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import headscope as hs
from experiments.comparison.pairs_made import TEXTS, base, compared, corpus, perturbed
from headscope.analyses.patterns.classes import NAMES
from headscope.claims.reading import run_findings
from headscope.core.intervals import DIFFERENCE, estimate
from headscope.corpus import Document, Passage
from headscope.errors import InputError, ModelError, RunStopped
from headscope.experiments.comparison.compare import compare
from headscope.experiments.comparison.paired_inputs import (
    TaskCorpus,
    check_comparable,
    check_same_tokens,
)
from headscope.model.model import Model
from headscope.run.plan import make_plan
from headscope.tasks.predict import encode
from headscope.tasks.task_model import TaskModel
from reference import similarity
from tasks.made import checkpoint, data

QUICK = hs.Settings(analyses=("surface", "entropy"), replicates=60)
STOCK = hs.Execution(linears="stock", threads=1)


def examples(model: Model) -> list:
    plan = make_plan(model, corpus(), QUICK)
    assert plan.counts.examples == len(TEXTS)
    from headscope.run.compute import Reader

    return Reader(model, corpus(), QUICK).examples(plan.shards[0])


# --- the numbers ----------------------------------------------------------------------------


def test_cosine_and_divergence_are_those_of_the_float64_reference(tmp_path: Path) -> None:
    one, other = base(tmp_path, dtype="float64"), perturbed(tmp_path, dtype="float64")
    run = compare(one, other, corpus(), settings=QUICK, execution=STOCK, padded_to=24)
    cosines, divergences, padded = [], [], []
    for example in examples(one):
        first, second = (
            similarity.maps_of(m.network, example.input_ids, example.segment_ids)
            for m in (one, other)
        )
        cosines.append(similarity.cosine(first, second))
        divergences.append(similarity.divergence(first, second))
        if not example.segment_ids.any():
            whole = [
                similarity.padded_maps(m.network, example.input_ids, tokens=24, pad=0)
                for m in (one, other)
            ]
            padded.append(similarity.cosine(*whole))
    found = run["similarity"]
    np.testing.assert_allclose(found["cosine"].values, np.mean(cosines, 0), rtol=1e-12)
    np.testing.assert_allclose(found["js"].values, np.mean(divergences, 0), atol=1e-12)
    np.testing.assert_allclose(found["layer_cosine"].values, np.mean(cosines, (0, 2)), rtol=1e-12)
    singles = hs.corpus.MemoryCorpus([text for text in TEXTS if isinstance(text, str)])
    alone = compare(one, other, singles, settings=QUICK, execution=STOCK, padded_to=24)
    np.testing.assert_allclose(
        alone["similarity"]["cosine_padded"].values, np.mean(padded, 0), rtol=1e-12
    )


def test_inputs_without_whole_maps_are_as_alike(tmp_path: Path) -> None:
    """And what needs whole maps is left out, or refused by name; padded maps are whole too."""
    pair = base(tmp_path), perturbed(tmp_path)
    more = {"settings": QUICK, "execution": STOCK, "control": None}
    whole, long = (
        compare(*pair, corpus(), **more | {"settings": replace(QUICK, whole_maps=n)})
        for n in (64, 8)
    )
    assert "without whole maps" in long.manifest["long"]
    assert "long" not in whole.manifest
    for group in ("similarity", "change", "surface", "base/surface", "entropy"):
        assert set(whole.tree[group]) == set(long.tree[group])
        for name, wanted in whole.tree[group].data_vars.items():
            found = long.tree[group][name].values
            if wanted.dtype.kind == "f":
                np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=3e-6, err_msg=name)
            else:
                np.testing.assert_array_equal(found, wanted, err_msg=name)
    for change in ({"analyses": ("patterns",)}, {"max_length": 24}):
        asked = replace(QUICK, whole_maps=8, **change)
        padded_to = asked.max_length
        with pytest.raises(InputError, match=r"whole maps|padded maps are whole.*--whole-maps 24"):
            compare(*pair, corpus(), settings=asked, execution=STOCK, padded_to=padded_to)


def test_padding_changes_the_padded_cosine_alone(tmp_path: Path) -> None:
    one, other = base(tmp_path), perturbed(tmp_path)
    plain = compare(one, other, corpus(), settings=QUICK, execution=STOCK)
    wide = compare(one, other, corpus(), settings=QUICK, execution=STOCK, padded_to=40)
    for name in ("cosine", "js", "cosine_ci_low", "model_js"):
        np.testing.assert_allclose(
            wide["similarity"][name].values, plain["similarity"][name].values, atol=1e-6
        )
    np.testing.assert_allclose(
        wide["change"]["difference"].values, plain["change"]["difference"].values, atol=1e-5
    )
    legacy = wide["similarity"]["cosine_padded"].values
    assert np.abs(legacy - plain["similarity"]["cosine"].values).max() > 1e-3


def test_a_model_with_itself_is_alike_and_changes_nothing(tmp_path: Path) -> None:
    model = base(tmp_path)
    run = compare(model, base(tmp_path), corpus(), settings=QUICK, execution=STOCK)
    assert (run["similarity"]["cosine"].values == 1).all()
    assert (run["similarity"]["js"].values == 0).all()
    assert (run["change"]["difference"].values == 0).all()
    assert (run["change"]["sure"].values == 0).all()
    assert run["similarity"].sizes.get("rank", 0) == 0
    assert "examples" not in run


def test_layers_below_the_one_that_was_changed_stay_exactly_the_same(tmp_path: Path) -> None:
    one = base(tmp_path, num_hidden_layers=3)
    other = base(tmp_path / "x", num_hidden_layers=3)
    with torch.no_grad():
        other.network.encoder.layer[2].attention.self.query.weight.add_(0.5)
    run = compare(one, other, corpus(), settings=QUICK, execution=STOCK)
    cosine = run["similarity"]["cosine"].values
    assert (cosine[:2] == 1).all()
    assert (cosine[2] < 0.999).all()
    assert any(
        one.startswith("Attention changed most in layer 3 (") for one in run_findings(run.tree)
    )


def test_before_and_after_are_what_an_atlas_of_each_model_says(tmp_path: Path) -> None:
    one, other = base(tmp_path), perturbed(tmp_path, layers=(0, 1))
    run = compare(one, other, corpus(), settings=QUICK, execution=STOCK)
    change = run["change"]
    for side, model in (("before", one), ("after", other)):
        atlas = hs.atlas(model, corpus(), settings=QUICK, execution=STOCK)["surface"]
        for target in ("sep", "previous"):
            row = change.sel(quantity=f"surface.attention.{target}")
            for end in ("", "_ci_low", "_ci_high"):
                np.testing.assert_allclose(
                    row[side + end].values,
                    atlas["attention" + end].sel(target=target).values,
                    atol=1e-6,
                )
    after = hs.atlas(other, corpus(), settings=QUICK, execution=STOCK)
    np.testing.assert_allclose(
        run["entropy"]["entropy"].values, after["entropy"]["entropy"].values, atol=1e-6
    )


def test_classes_of_maps_and_sinks_are_compared_as_an_atlas_has_them(tmp_path: Path) -> None:
    """A selection of cells lost their draws, so neither was compared."""
    one, other = base(tmp_path), perturbed(tmp_path, layers=(0, 1))
    how = replace(
        QUICK,
        analyses=("patterns", "sinks"),
        options={"patterns": {"least_tokens": 1}, "sinks": {"least": 1, "threshold": 0.2}},
    )
    run = compare(one, other, corpus(), settings=how, execution=STOCK)
    alone = {
        side: hs.atlas(model, corpus(), settings=how, execution=STOCK)
        for side, model in (("before", one), ("after", other))
    }
    for key, variable, choice in (
        *((f"patterns.share.{name}", "share", {"pattern": name}) for name in NAMES),
        ("patterns.unsure", "unsure", {}),
        ("sinks.sink_share", "sink_share", {}),
    ):
        row = run["change"].sel(quantity=key)
        sides = []
        for side, atlas in alone.items():
            own = atlas[key.partition(".")[0]]
            for end in ("", "_ci_low", "_ci_high"):
                np.testing.assert_allclose(
                    row[side + end], own[variable + end].sel(choice), atol=1e-6
                )
            sides.append(own[variable].sel(choice).values)
        np.testing.assert_allclose(row["difference"], sides[1] - sides[0], atol=1e-6)
        assert np.isfinite(row["model_difference_ci_low"])


def test_differences_know_how_much_each_document_weighs(tmp_path: Path) -> None:
    """Documents of 1 to 9 inputs: the interval of their difference is that of such documents."""
    one, other = base(tmp_path), perturbed(tmp_path, layers=(0, 1))
    weights = [9, 1, 1, 4, 1, 1, 2, 1]
    unequal = hs.corpus.MemoryCorpus(
        [
            Document(
                str(at),
                tuple(
                    Passage(
                        f"{at}-{part}",
                        text=" ".join(["cats"] * at + ["the cat a b ."] * (1 + (at + part) % 5)),
                    )
                    for part in range(count)
                ),
            )
            for at, count in enumerate(weights)
        ]
    )
    with_draws = replace(STOCK, keep_draws=True)
    before, after = (
        hs.atlas(model, unequal, settings=QUICK, execution=with_draws)["surface"]
        for model in (one, other)
    )
    sizes = before["attention_sizes"].sel(target="sep").values
    assert (sizes[0] - sizes[1:]).tolist() == weights
    draws = (after["attention_draws"].values - before["attention_draws"].values)[..., 0]
    row = compare(one, other, unequal, settings=QUICK, execution=STOCK)["change"]
    kind = str(before["target"].values[0])
    row = row.sel(quantity=f"surface.attention.{kind}")
    of_each = np.broadcast_to(sizes[:, None, None], draws.shape)
    wanted = estimate(draws, bounds=DIFFERENCE, sizes=of_each)
    np.testing.assert_allclose(row["difference_ci_low"].values, wanted.low, atol=1e-6)
    np.testing.assert_allclose(row["difference_ci_high"].values, wanted.high, atol=1e-6)
    over_all = estimate(draws.mean((1, 2)), bounds=DIFFERENCE, sizes=sizes)
    assert float(row["model_difference_ci_high"]) == pytest.approx(over_all.high, abs=1e-6)
    narrow = estimate(draws, bounds=DIFFERENCE)
    assert (wanted.high - wanted.low > 1.05 * (narrow.high - narrow.low)).all()


def test_batches_and_shards_do_not_change_what_is_found(tmp_path: Path) -> None:
    one, other = base(tmp_path), perturbed(tmp_path)
    whole = compare(one, other, corpus(), settings=QUICK, execution=STOCK)
    small = hs.Settings(
        analyses=("surface", "entropy"), replicates=60, batch_tokens=20, shard_tokens=30
    )
    parts = compare(one, other, corpus(), settings=small, execution=STOCK)
    assert parts.manifest["shards"] > 2
    for group in ("similarity", "change"):
        for name, variable in whole[group].data_vars.items():
            if variable.dtype.kind == "f":
                np.testing.assert_allclose(
                    parts[group][name].values, variable.values, atol=1e-5, err_msg=str(name)
                )
    ids = [run["similarity"]["example_id"].values.tolist() for run in (whole, parts)]
    assert ids[0] == ids[1]


# --- the examples that changed most ---------------------------------------------------------


def test_the_examples_that_changed_most_come_first_with_both_models_maps(tmp_path: Path) -> None:
    one, other = base(tmp_path), perturbed(tmp_path)
    run = compare(one, other, corpus(), settings=QUICK, execution=STOCK)
    found, change = run["similarity"], {}
    for example in examples(one):
        maps = [
            similarity.maps_of(m.network, example.input_ids, example.segment_ids)
            for m in (one, other)
        ]
        if len(example) >= 8:
            change[example.id] = (1 - similarity.cosine(*maps)).mean(), maps
    order = sorted(change, key=lambda name: -change[name][0])
    assert found["example_id"].values.tolist() == order
    np.testing.assert_allclose(
        found["example_change"].values, [change[name][0] for name in order], atol=2e-6
    )
    shown = run["examples"]
    assert shown["input"].values.tolist() == order[:4]
    for at, name in enumerate(order[:4]):
        first, second = change[name][1]
        n = first.shape[-1]
        kept = shown["versus_attention"].values[at, :, :, :n, :n]
        np.testing.assert_allclose(kept, first, atol=1e-5)
        kept = shown["token_attention"].values[at, :, :, :n, :n]
        np.testing.assert_allclose(kept, second, atol=1e-5)


# --- what is refused ------------------------------------------------------------------------


def test_other_shapes_are_refused(tmp_path: Path) -> None:
    one, other = base(tmp_path), base(tmp_path / "x", num_hidden_layers=3)
    with pytest.raises(InputError, match=r"2 layers × 3 heads.* 3 layers × 3 heads.*one shape"):
        check_comparable(one, other)


def test_another_vocabulary_is_refused_with_the_first_difference(tmp_path: Path) -> None:
    one, other = base(tmp_path), base(tmp_path / "x")
    vocabulary = json.loads((tmp_path / "x/base/tokenizer.json").read_text())
    words = vocabulary["model"]["vocab"]
    words["dog"] = words.pop("cat")
    (tmp_path / "x/base/tokenizer.json").write_text(json.dumps(vocabulary))
    with pytest.raises(InputError, match=r"tokenizers differ.*'cat'"):
        check_comparable(one, hs.load(tmp_path / "x/base"))
    assert other.tokenizer.get_vocab() == one.tokenizer.get_vocab()


def test_one_vocabulary_that_is_used_differently_is_refused(tmp_path: Path) -> None:
    one = base(tmp_path)
    checkpoint(tmp_path / "cased")
    text = (tmp_path / "cased/tokenizer.json").read_text()
    (tmp_path / "cased/tokenizer.json").write_text(
        text.replace('"lowercase": true', '"lowercase": false')
    )
    other = hs.load(tmp_path / "cased")
    check_comparable(one, other)
    capitals = hs.corpus.MemoryCorpus(["a b", "The cat"])
    with pytest.raises(InputError, match=r"cut 'The cat' differently.*copy the tokenizer"):
        check_same_tokens(one, other, capitals, limit=None)
    check_same_tokens(one, other, capitals, limit=1)


def test_weights_that_are_no_numbers_are_refused(tmp_path: Path) -> None:
    one, other = base(tmp_path), base(tmp_path)
    with torch.no_grad():
        other.network.encoder.layer[1].attention.self.query.weight.fill_(float("nan"))
    with pytest.raises(ModelError, match="layer 2 is not a number"):
        compare(one, other, corpus(), settings=QUICK, execution=STOCK)


@pytest.mark.parametrize("width", [20, 4096])
def test_a_width_that_inputs_do_not_fit_is_refused(tmp_path: Path, width: int) -> None:
    settings = hs.Settings(analyses=("entropy",), max_length=24)
    with pytest.raises(InputError, match=f"padded to {width} tokens"):
        compare(base(tmp_path), base(tmp_path), corpus(), settings=settings, padded_to=width)


# --- the inputs of a task -------------------------------------------------------------------


def test_a_task_is_read_as_a_model_is_trained_for_it(tmp_path: Path) -> None:
    model, rows = base(tmp_path), data(12, pair=True)
    read = TaskCorpus(model, model, rows, max_length=14)
    expected = encode(TaskModel(model, rows.task), rows, max_length=14)
    settings = hs.Settings(analyses=("entropy",), max_length=14)
    plan = make_plan(model, read, settings)
    from headscope.run.compute import Reader

    found = Reader(model, read, settings).examples(plan.shards[0])
    assert read.cut == expected.cut > 0
    for one, other in zip(found, expected.examples, strict=True):
        assert one.document == other.document
        assert one.input_ids.tolist() == other.input_ids.tolist()
        assert one.segment_ids.tolist() == other.segment_ids.tolist()
        assert one.special.tolist() == other.special.tolist()


def test_models_that_do_not_fit_are_told_so_before_the_examples_are_cut(tmp_path: Path) -> None:
    one, other = base(tmp_path / "one"), base(tmp_path / "other", num_hidden_layers=3)
    with pytest.raises(InputError, match="wanted models of one shape"):
        TaskCorpus(one, other, data(4), max_length=14)


# --- which analyses are run -----------------------------------------------------------------


def test_all_that_is_quick_is_run_and_what_is_named_too(tmp_path: Path) -> None:
    one = base(tmp_path)
    few = hs.corpus.MemoryCorpus(TEXTS[:2])
    usual = compare(one, one, few, settings=hs.Settings(replicates=2), execution=STOCK)
    quick = ["distance", "entropy", "norms", "patterns", "sinks", "surface"]
    assert usual.manifest["analyses"] == quick
    named = hs.Settings(replicates=2, analyses=("neurons", "divergence", "examples"))
    asked = compare(one, one, few, settings=named, execution=STOCK)
    assert asked.manifest["analyses"] == ["divergence", "neurons"]
    assert (asked["change"]["analysis"] == "neurons").all()
    with_options = hs.Settings(replicates=2, options={"divergence": {"smoothing": 1e-3}})
    more = compare(one, one, few, settings=with_options, execution=STOCK)
    assert "divergence" in more.manifest["analyses"]


# --- run folders ----------------------------------------------------------------------------


def test_a_stopped_comparison_goes_on_and_ends_in_the_same_bytes(tmp_path: Path) -> None:
    one, other = base(tmp_path), perturbed(tmp_path)
    settings = hs.Settings(analyses=("surface",), replicates=20, shard_tokens=20)

    def stop(done: int, total: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    stopping = hs.Execution(linears="stock", threads=1, progress=stop)
    with pytest.raises(RunStopped, match=r"2 of \d shards are finished and kept"):
        compare(one, other, corpus(), output=tmp_path / "r", settings=settings, execution=stopping)
    seen: list[int] = []
    watching = hs.Execution(
        linears="stock", threads=1, progress=lambda done, total: seen.append(done)
    )
    for folder in ("r", "whole"):
        compare(
            one, other, corpus(), output=tmp_path / folder, settings=settings, execution=watching
        )
        assert seen[0] == (2 if folder == "r" else 0)
        seen.clear()
    results = [(tmp_path / folder / "atlas.nc").read_bytes() for folder in ("r", "whole")]
    assert results[0] == results[1]


def test_a_folder_of_another_pair_is_refused(tmp_path: Path) -> None:
    one, other = base(tmp_path), perturbed(tmp_path)
    compare(one, other, corpus(), output=tmp_path / "r", settings=QUICK, execution=STOCK)
    with pytest.raises(InputError, match=r"run with other settings \(base.sha256"):
        compare(other, other, corpus(), output=tmp_path / "r", settings=QUICK, execution=STOCK)
    again = compare(one, other, corpus(), output=tmp_path / "r", settings=QUICK, execution=STOCK)
    assert again.tree.attrs["base_model"] == str(tmp_path / "base")


def test_every_variable_says_what_it_is_and_the_root_names_both_models(tmp_path: Path) -> None:
    run = compared(tmp_path, limit=8)
    for name in ("similarity", "change"):
        for key, variable in run[name].data_vars.items():
            assert {"long_name", "units", "source"} <= set(variable.attrs), key
    attrs, manifest = run.tree.attrs, run.manifest
    assert attrs["title"] == "headscope compare"
    for part in ("base", "model"):
        name = "base_model" if part == "base" else "model"
        assert attrs[name] == manifest[part]["name"]
    assert attrs["base_sha256"] == manifest["base"]["sha256"] != attrs["model_sha256"]
    assert not [v for group in run for v in run[group].variables if str(v).endswith("_draws")]
    opened = hs.open_run(tmp_path / "run")
    assert set(opened) == set(run)
