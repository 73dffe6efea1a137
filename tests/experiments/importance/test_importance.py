"""Does a run hold what the gradients of all examples amount to, and can it be stopped and read?"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import spearmanr

from counting import counts_from_0
from experiments.importance.conftest import STOCK
from headscope.claims.reading import WITHHELD, run_findings
from headscope.errors import HeadscopeError, InputError, ModelError, RunFolderError, RunStopped
from headscope.experiments.importance import gradients as stream
from headscope.experiments.importance import measuring as module
from headscope.experiments.importance.correlation import EFFECTS, correlations, effect_of
from headscope.experiments.importance.importance import importance
from headscope.experiments.importance.settings import METHODS, ImportanceSettings
from headscope.model.batch import CATEGORIES
from headscope.model.instrument import Instrument
from headscope.report.build import render
from headscope.run.execution import Execution
from headscope.run.store import open_run
from headscope.tasks.predict import encode, outputs
from headscope.tasks.task_model import load_for_task
from reference.importance import maps_and_gradients, mean_magnitude
from tasks.made import AMOUNT, MOOD, checkpoint, data

LAYERS, HEADS = 2, 3
FEW = ImportanceSettings(replicates=0, methods=("gradient", "michel"))


@pytest.fixture(scope="module")
def plainly(mood):
    """By example: sums, edges, Σ α ∂loss/∂α and the loss, in float64, one example at a time."""
    model = load_for_task(mood, MOOD, dtype="float64")
    encoded = encode(model, data(40))
    found = []
    for example, label in zip(encoded.examples, encoded.labels, strict=True):
        kinds = np.select([example.input_ids == at for at in (2, 3)], [0, 1], 3)
        kinds[(example.input_ids == 5) | (example.input_ids == 6)] = 2
        right = torch.tensor([label])
        told = []

        def loss(logits, right=right, told=told):
            told.append(torch.nn.functional.cross_entropy(logits, right))
            return told[-1]

        maps, gradients = maps_and_gradients(model.model.network, example.input_ids, loss)
        sums, edges = mean_magnitude(gradients, kinds)
        padded = np.zeros((LAYERS, HEADS, 4))
        padded[..., : sums.shape[-1]] = sums
        counts = np.zeros(4)
        counts[: len(edges)] = edges
        product = [(a * g).sum((1, 2)).numpy() for a, g in zip(maps, gradients, strict=True)]
        found.append((padded, counts, np.stack(product), float(told[0].detach())))
    return [np.stack(part) for part in zip(*found, strict=True)]


def test_magnitudes_are_means_over_all_edges_of_all_examples(found, plainly):
    sums, edges, _, losses = plainly
    gradients = found["gradients"]
    assert list(gradients["category"].values) == list(CATEGORIES)
    wanted = sums.sum(0) / edges.sum(0)
    np.testing.assert_allclose(gradients["magnitude"].values, wanted, rtol=1e-4)
    queries = np.sqrt(edges.sum(1)).sum()  # every token asks every token
    np.testing.assert_allclose(
        gradients["magnitude_by_query"].values, sums.sum(0) / queries, rtol=1e-4
    )
    layer = sums.sum((0, 2)) / (HEADS * edges.sum(0))
    np.testing.assert_allclose(gradients["layer_magnitude"].values, layer, rtol=1e-4)
    assert float(gradients["loss"]) == pytest.approx(losses.mean(), rel=1e-4)
    np.testing.assert_allclose(gradients["attention"].sum("category"), 1, rtol=1e-5)


def test_importances_are_those_of_the_papers(found, plainly):
    sums, edges, product, _ = plainly
    importances = found["importance"]["head_importance"]
    assert list(importances["variant"].values) == list(METHODS)
    by = {name: importances.sel({"variant": name}).values for name in METHODS}
    np.testing.assert_allclose(by["gradient"], sums.sum((0, 3)) / edges.sum(), rtol=1e-4)
    michel = np.abs(product).mean(0)
    np.testing.assert_allclose(by["michel"], michel, rtol=1e-4)
    length = np.sqrt((michel**2).sum(1, keepdims=True))
    np.testing.assert_allclose(by["michel_normalised"], michel / length, rtol=1e-4)
    assert np.linalg.norm(by["michel_normalised"], axis=1) == pytest.approx(1)


@pytest.mark.parametrize("way", ["zero", "uniform"])
def test_slopes_are_how_steeply_the_loss_rises_when_a_head_begins_to_fade(mood, found, way):
    model = load_for_task(mood, MOOD, dtype="float64")
    encoded = encode(model, data(40))
    slopes = found["importance"]["head_importance"].sel({"variant": f"slope_{way}"}).values
    step = 1e-6

    def loss_with(layer, head, share):
        def fade(call):
            if call.layer == layer:
                call.attention = call.attention.clone()
                even = (1 / call.attention.shape[-1]) if way == "uniform" else 0.0
                call.attention[:, head] += share * (even - call.attention[:, head])

        losses = []
        with torch.no_grad(), Instrument(model.model.network, interventions=[fade]):
            for example, label in zip(encoded.examples, encoded.labels, strict=True):
                logits = model.model.network(torch.from_numpy(example.input_ids)[None]).logits
                losses.append(-float(logits.log_softmax(-1)[0, label]))
        return np.mean(losses)

    for layer, head in ((0, 1), (1, 2)):
        rise = (loss_with(layer, head, step) - loss_with(layer, head, -step)) / (2 * step)
        assert slopes[layer, head] == pytest.approx(rise, rel=1e-3, abs=1e-6)


GRID = ("layer", "head")
CONTRACT = {
    "gradients": {
        "magnitude": ((*GRID, "category"), "nats"),
        "magnitude_by_query": ((*GRID, "category"), "nats"),
        "attention": ((*GRID, "category"), "probability"),
        "layer_magnitude": (("layer", "category"), "nats"),
        "layer_attention": (("layer", "category"), "probability"),
        "loss": ((), "nats"),
    },
    "importance": {
        "head_importance": ((*GRID, "variant"), "1"),
        "output_change": (("layer",), "1"),
        "completeness_error": (("layer",), "1"),
        "rho": (("variant", "effect"), "1"),
        "overlap": (("variant", "effect"), "1"),
        "effect_of_head": ((*GRID, "effect"), "1"),
    },
}


@pytest.mark.parametrize("group", CONTRACT)
def test_a_group_has_its_variables_dims_and_units(found, group):
    dataset = found[group]
    ends = ("_ci_low", "_ci_high")
    assert {name for name in dataset.data_vars if not name.endswith(ends)} == set(CONTRACT[group])
    for name, (dims, units) in CONTRACT[group].items():
        assert (dataset[name].dims, dataset[name].attrs["units"]) == (dims, units)
        assert dataset[name].attrs["long_name"]
        assert dataset[name].attrs["source"]


def test_every_number_has_an_interval_around_it(found):
    for group, name in (
        ("gradients", "magnitude"),
        ("gradients", "layer_attention"),
        ("importance", "head_importance"),
    ):
        value, low, high = (found[group][f"{name}{end}"] for end in ("", "_ci_low", "_ci_high"))
        assert bool((low <= value).all())
        assert bool((value <= high).all())
        assert bool((low < high).any())


def test_a_correlation_over_fewer_than_ten_heads_has_no_interval(found):
    assert found["importance"].sizes["layer"] * found["importance"].sizes["head"] < 10
    assert bool(found["importance"]["rho"].notnull().any())
    assert bool(found["importance"]["rho_ci_low"].isnull().all())


def test_the_size_of_batches_and_parts_changes_nothing(mood, found, monkeypatch):
    monkeypatch.setattr(module, "PART_TOKENS", 50)
    settings = ImportanceSettings(replicates=50, steps=4, batch_tokens=60)
    again = importance(load_for_task(mood, MOOD), data(40), settings=settings, execution=STOCK)
    for group, name in (("gradients", "magnitude"), ("importance", "head_importance")):
        for end in ("", "_ci_low"):
            np.testing.assert_allclose(
                again[group][name + end], found[group][name + end], rtol=1e-3, atol=1e-7
            )


def test_rho_is_the_rank_correlation_with_the_effect_of_switching_off(found, ablated):
    loss = ablated["ablation"]["loss_difference"].values.ravel()
    fall = -ablated["ablation"]["difference"].values.ravel()
    effects = {"loss": loss, "loss_size": np.abs(loss), "score": fall, "score_size": np.abs(fall)}
    importances = found["importance"]["head_importance"]
    for method in METHODS:
        x = importances.sel({"variant": method}).values.ravel()
        for effect in EFFECTS:
            rho = float(found["importance"]["rho"].sel({"variant": method, "effect": effect}))
            assert rho == pytest.approx(spearmanr(x, effects[effect]).statistic)
    np.testing.assert_array_equal(
        found["importance"]["effect_of_head"].sel(effect="loss").values.ravel(), loss
    )
    assert found["importance"].attrs["ablation_note"] == ""
    assert found["importance"].attrs["replacement"] == "zero"


def test_the_overlap_counts_top_heads_of_both(found, ablated):
    rng = np.random.default_rng(0)
    many = rng.permutation(40).reshape(4, 10).astype(float)
    effect = effect_of(ablated, load_for_task_like(ablated), task="mood", inputs="")
    effect = replace(effect, loss=many, score=-many)
    one = found["importance"].isel(variant=[0]).drop_dims(["layer", "head", "effect"])
    shifted = np.roll(np.sort(many.ravel())[::-1], 2)  # of the four largest, two stay on top
    places = np.argsort(-many.ravel())
    values = np.empty(40)
    values[places] = shifted
    group = one.assign(head_importance=(("layer", "head", "variant"), values.reshape(4, 10, 1)))
    told = correlations(group, effect)
    assert told.attrs["top"] == 4
    assert float(told["overlap"].sel(effect="loss").item()) == 0.5
    ends = [told[f"overlap_ci_{end}"].sel(effect="loss").item() for end in ("low", "high")]
    assert ends == pytest.approx([0.0676, 0.9324], abs=1e-4)  # Clopper and Pearson, 2 of 4
    assert float(told["overlap"].sel(effect="score").item()) == 0
    assert float(told["rho"].sel(effect="score").item()) == pytest.approx(
        -float(told["rho"].sel(effect="loss").item())
    )


def load_for_task_like(run):
    """What `effect_of` asks of a model: its name and hash."""

    class Like:
        name, sha256 = "model", run.manifest["model"]["sha256"]

    return Like()


def test_an_ablation_of_something_else_is_refused(mood, ablated, found, tmp_path):
    model, rows = load_for_task(mood, MOOD), data(40)
    other = load_for_task(checkpoint(tmp_path / "other", head=MOOD, seed=5), MOOD)
    with pytest.raises(InputError, match="wanted an ablation of the same checkpoint"):
        importance(other, rows, ablation=ablated, execution=STOCK)
    with pytest.raises(InputError, match="wanted a run of `headscope ablate`"):
        importance(model, rows, ablation=found, execution=STOCK)
    task = replace(MOOD, name="temper")
    with pytest.raises(InputError, match="is of the task mood, and the request of temper"):
        importance(replace(model, task=task), replace(rows, task=task), ablation=ablated)
    run = importance(model, data(30), settings=FEW, ablation=ablated, execution=STOCK)
    assert run["importance"].attrs["ablation_note"] == (
        "the ablation is of 40 examples, not the same"
    )


def test_a_regression_has_the_gradients_of_its_squared_error(tmp_path):
    model = load_for_task(checkpoint(tmp_path / "model", head=AMOUNT), AMOUNT)
    rows = data(24, task=AMOUNT)
    run = importance(model, rows, settings=replace(FEW, methods=METHODS), execution=STOCK)
    with torch.no_grad():
        told = [
            float(model.model.network(torch.from_numpy(e.input_ids)[None]).logits)
            for e in encode(model, rows).examples
        ]
    wanted = np.mean((np.array(told) - rows.labels) ** 2)
    assert float(run["gradients"]["loss"]) == pytest.approx(wanted, rel=1e-4)
    assert run["gradients"].attrs["loss_name"] == "squared error"
    assert run["gradients"]["magnitude"].attrs["units"] == "1"


def test_a_run_that_was_stopped_goes_on_with_what_is_missing(mood, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "PART_TOKENS", 60)
    model, rows = load_for_task(mood, MOOD), data(30)
    whole = importance(model, rows, settings=FEW, execution=STOCK)
    own, calls = module.ImportanceRun._part, []

    def stopping(self, places):
        calls.append(list(places))
        if len(calls) == 3:
            raise KeyboardInterrupt
        return own(self, places)

    monkeypatch.setattr(module.ImportanceRun, "_part", stopping)
    with pytest.raises(RunStopped, match="goes on from what is finished"):
        importance(model, rows, settings=FEW, execution=STOCK, output=tmp_path / "run")
    told = []
    again = Execution(linears="stock", progress=lambda *x: told.append(x))
    run = importance(model, rows, settings=FEW, execution=again, output=tmp_path / "run")
    done = [at for number, places in enumerate(calls) if number != 2 for at in places]
    assert sorted(done) == list(range(30))
    assert run["importance"].equals(whole["importance"])
    assert told[-1] == (30, 30)
    monkeypatch.setattr(module.ImportanceRun, "_part", None)  # nothing may be computed
    finished = importance(model, rows, settings=FEW, execution=STOCK, output=tmp_path / "run")
    assert finished.tree.identical(open_run(tmp_path / "run").tree)


def test_another_spec_in_the_folder_is_refused(mood, tmp_path):
    model, rows = load_for_task(mood, MOOD), data(20)
    importance(model, rows, settings=FEW, execution=STOCK, output=tmp_path / "run")
    other = replace(FEW, methods=("michel",))
    with pytest.raises(RunFolderError, match="methods"):
        importance(model, rows, settings=other, execution=STOCK, output=tmp_path / "run")
    again = replace(STOCK, overwrite=True)
    run = importance(model, rows, settings=other, execution=again, output=tmp_path / "run")
    assert list(run["importance"]["variant"].values) == ["michel"]


def test_what_cannot_be_is_refused(mood):
    for wrong in ({"methods": ("gini",)}, {"methods": ()}, {"steps": 0}, {"batch_tokens": 0}):
        with pytest.raises(InputError, match="wanted"):
            ImportanceSettings(**wrong)
    model = load_for_task(mood, MOOD)
    with torch.no_grad():
        model.model.network.classifier.bias[0] = torch.nan
    with pytest.raises(HeadscopeError, match=r"the loss of 'r\d+' is not finite"):
        importance(model, data(20), settings=FEW, execution=STOCK)


def test_gradients_that_are_not_autograds_are_refused(mood, monkeypatch):
    own = stream.probabilities

    def twice(*given, **options):
        return own(*given, **{**options, "scaling": 2 * options["scaling"]})

    monkeypatch.setattr(stream, "probabilities", twice)
    with pytest.raises(ModelError, match=r"away from those of autograd.*refusing"):
        importance(load_for_task(mood, MOOD), data(20), settings=FEW, execution=STOCK)


def test_tables_have_a_row_per_head_method_and_effect(found):
    folder = found.path / "tables"
    table = pd.read_csv(folder / "importance.csv")
    heads = table[table["metric"] == "head_importance"]
    assert len(heads) == LAYERS * HEADS * len(METHODS)
    assert len(table[table["metric"] == "rho"]) == len(METHODS) * len(EFFECTS)
    gradients = pd.read_csv(folder / "gradients.csv")
    assert set(gradients["category"].dropna()) == set(CATEGORIES)


def test_the_report_tells_what_was_found(found):
    page = (found.path / "report.html").read_text("utf-8")
    for words in (
        "Where do gradients go?",
        "Which heads does the loss depend on?",
        "Is that what happens when heads are switched off?",
        "Rank correlation over 6 heads",
        "when a head adds nothing",
    ):
        assert words in page
    for name in ("gradients", "importance", "importance_against_ablation"):
        assert (found.path / f"figures/{name}.svg").is_file()


def test_names_on_the_page_of_importances_count_from_0_if_asked(found, monkeypatch):
    monkeypatch.setattr("headscope.report.build.pictures", dict)
    counts_from_0(lambda: render(found.tree, found.manifest))


@pytest.mark.parametrize("exchanged", [True, False])
def test_answers_surely_worse_than_a_guess_are_told_and_nothing_is_claimed(mood, exchanged):
    model, rows = load_for_task(mood, MOOD), data(40)
    said = outputs(model, encode(model, rows), batch_tokens=200).argmax(-1)
    labels = 1 - said if exchanged else said
    told = tuple(replace(row, label=int(at)) for row, at in zip(rows.rows, labels, strict=True))
    settings = replace(FEW, replicates=50)
    run = importance(model, replace(rows, rows=told), settings=settings, execution=STOCK)
    findings = run_findings(run.tree)
    assert [WITHHELD in run[name].attrs for name in ("gradients", "importance")] == [exchanged] * 2
    assert ("surely below the 50 % of a guess" in " ".join(findings)) == exchanged
    assert len(findings) == 1 or not exchanged
