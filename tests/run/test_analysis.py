"""Does every analysis keep the contract, does the registry guard its names, does the check bite?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr

from headscope.claims.question import Question
from headscope.core.accumulators import Sums
from headscope.core.results import Variable, labelled
from headscope.errors import HeadscopeError, InputError
from headscope.model.batch import Batch, to_float64
from headscope.model.layer import LayerView
from headscope.run.analysis import Analysis, Scope
from headscope.run.check_analysis import CHECKS, check_analysis
from headscope.run.contract_bench import Bench
from headscope.run.known_analyses import (
    NEEDS,
    choose,
    known_analyses,
    measured_questions,
    options_of,
    register,
)

OTHER_OPTIONS: list[tuple[str, dict[str, Any]]] = [
    ("surface", {"edge_tokens": "leave_out"}),
    ("entropy", {"smoothing": 1e-4}),
    ("divergence", {"smoothing": 1e-3, "reduction": "sum", "queries": "all"}),
    ("divergence", {"queries": 3}),
    ("norms", {"cancellation": "all"}),
    ("norms", {"layer_norms": False, "every": 3}),
]


STREAMED = [name for name, kind in known_analyses().items() if not kind.sampled]


@pytest.mark.parametrize("name", STREAMED)
def test_every_registered_analysis_keeps_the_contract(name: str) -> None:
    check_analysis(known_analyses()[name])


@pytest.mark.parametrize("question", measured_questions(), ids=lambda question: question.name)
def test_what_a_question_announces_is_what_its_measure_is(question: Question) -> None:
    kind = question.part("measure")
    assert (kind.name, kind.summary, kind.source) == (
        question.name,
        question.summary,
        question.source,
    )
    assert kind.needs == question.needs <= NEEDS
    assert {name: option.default for name, option in question.options.items()} == options_of(kind)
    scope = Scope(layers=1, heads=1, replicates=0)
    for name, option in question.options.items():
        option.check(name, option.default)
        for value in option.one_of:
            kind(scope, **{name: value})
        if option.one_of:
            with pytest.raises(ValueError, match=f"{name} is 'neither'; wanted one of "):
                option.check(name, "neither")
            with pytest.raises(ValueError, match=f"{name} is 'neither'; wanted one of "):
                kind(scope, **{name: "neither"})


@pytest.mark.parametrize(("name", "options"), OTHER_OPTIONS)
def test_analyses_keep_the_contract_with_other_options(name: str, options: dict[str, Any]) -> None:
    assert set(options) <= set(options_of(known_analyses()[name]))
    check_analysis(known_analyses()[name], **options)


def test_an_analysis_that_reads_a_sample_in_passes_has_no_such_contract() -> None:
    with pytest.raises(InputError, match="explained reads a sample in several passes"):
        check_analysis(known_analyses()["explained"])


@pytest.mark.parametrize("name", STREAMED)
def test_analyses_work_in_bfloat16_as_well_as_it_can(name: str) -> None:
    """Three digits are all that the model itself keeps; counts and ranks are left out."""
    bench = Bench(known_analyses()[name], {})
    wanted = bench.measured()
    found = bench.result(bench.run(bench.examples, size=3, dtype=torch.bfloat16))
    assert set(found) == set(wanted)
    for variable in {"attention", "entropy", "weighted_norm", "ratio", "js"} & set(found):
        np.testing.assert_allclose(found[variable], wanted[variable], rtol=0.1, atol=0.1)


# --- an analysis as a user would write it, and what can be wrong with it ---------------------


class Largest(Analysis):
    """The largest weight of each row, mean over rows, then over examples."""

    name = "largest"
    summary = "how sure each head is"
    source = "ours"

    def __init__(self, scope: Scope) -> None:
        super().__init__(scope)
        self.total = self.sums(scope.layers, scope.heads)
        self.count = self.sums()

    def observe(self, layer: LayerView, batch: Batch) -> None:
        top = batch.mean_over_queries(layer.attention.amax(-1))  # [example, head]
        self.total.add(top, batch.groups, at=(layer.index,))
        if layer.index == 0:
            self.count.add(np.ones(len(top)), batch.groups)

    def result(self) -> xr.Dataset:
        mean = self.mean(self.total, self.count)
        return labelled(
            {"largest": Variable(mean, ("layer", "head"), "largest weight", "probability", "ours")}
        )


def test_a_plain_analysis_keeps_the_contract_and_hears_which_checks_it_passed() -> None:
    passed = check_analysis(Largest)
    assert len(passed.checks) == len(CHECKS)
    first, *lines = repr(passed).split("\n")
    assert first == f"largest keeps the contract of analyses; {len(CHECKS)} checks passed:"
    assert "- Noise in the rows of padding changes nothing." in lines


class AveragesAverages(Largest):
    def observe(self, layer: LayerView, batch: Batch) -> None:
        top = batch.mean_over_queries(layer.attention.amax(-1)).mean(0, keepdims=True)
        self.total.add(top, batch.groups[:1], at=(layer.index,))
        if layer.index == 0:
            self.count.add(np.ones(1), batch.groups[:1])


class ForgetsTheMask(Largest):
    def observe(self, layer: LayerView, batch: Batch) -> None:
        top = to_float64(layer.attention.amax(-1).mean(-1))
        self.total.add(top, batch.groups, at=(layer.index,))
        if layer.index == 0:
            self.count.add(np.ones(len(top)), batch.groups)


class MutatesItsInput(Largest):
    def observe(self, layer: LayerView, batch: Batch) -> None:
        super().observe(layer, batch)
        layer.attention.mul_(2)


class MutatesWhatOthersShare(Largest):
    needs = frozenset({"attention", "values", "projection"})

    def observe(self, layer: LayerView, batch: Batch) -> None:
        super().observe(layer, batch)
        layer.value_norm.div_(layer.value_norm.amax())


class MutatesTheBatch(Largest):
    def finish(self, batch: Batch) -> None:
        batch.mask[:, 0] = False


class CountsOutsideAccumulators(Largest):
    def __init__(self, scope: Scope) -> None:
        super().__init__(scope)
        self.seen = 0

    def finish(self, batch: Batch) -> None:
        self.seen += len(batch.lengths)

    def result(self) -> xr.Dataset:
        return super().result() * max(self.seen, 1) / 7


class KeepsNothing(Largest):
    @property
    def accumulators(self) -> dict[str, Any]:
        return {}


class DependsOnTheOrder(Largest):
    def observe(self, layer: LayerView, batch: Batch) -> None:
        top = batch.mean_over_queries(layer.attention.amax(-1))
        row = self.total.by_group[:, layer.index]
        row[:] = np.maximum(row / 2, top.mean(0))
        if layer.index == 0:
            self.count.by_group[:] = 1


class MergesOneWay(Largest):
    def merge(self, other: Analysis) -> None:
        mine, theirs = self.accumulators["total"], other.accumulators["total"]
        assert isinstance(mine, Sums)
        assert isinstance(theirs, Sums)
        mine.by_group += 2 * theirs.by_group
        super().merge(other)


class DividesByZero(Largest):
    def result(self) -> xr.Dataset:
        return labelled(
            {
                "largest": Variable(
                    self.total.total / self.count.total, ("layer", "head"), "w", "1", "ours"
                )
            }
        )


class ZeroForAbsent(Largest):
    def result(self) -> xr.Dataset:
        return super().result().fillna(0)


class WithoutUnits(Largest):
    def result(self) -> xr.Dataset:
        result = super().result()
        del result["largest"].attrs["units"]
        return result


class WithoutLabels(Largest):
    def result(self) -> xr.Dataset:
        return super().result().drop_vars("head")


class UpsideDown(Largest):
    def result(self) -> xr.Dataset:
        result = super().result()
        low, high = result["largest_ci_low"], result["largest_ci_high"]
        return result.assign(largest_ci_low=high, largest_ci_high=low)


class OneEnded(Largest):
    def result(self) -> xr.Dataset:
        return super().result().drop_vars("largest_ci_low")


class GivesAnArray(Largest):
    def result(self) -> xr.Dataset:
        return super().result()["largest"]  # type: ignore[return-value]


class OnlyFloat32(Largest):
    def observe(self, layer: LayerView, batch: Batch) -> None:
        layer.attention @ batch.categories[:, None]
        super().observe(layer, batch)


class FailsOnOneToken(Largest):
    def observe(self, layer: LayerView, batch: Batch) -> None:
        layer.attention[:, :, : int(batch.lengths.max())][:, :, 1, 0].sum()
        super().observe(layer, batch)


class LoadsAnything(Largest):
    def load(self, state: Any) -> None:
        for name, accumulator in self.accumulators.items():
            accumulator.by_group = np.array(state.get(name, 0.0))  # type: ignore[union-attr]


class Nameless(Largest):
    name = ""


BROKEN = [
    (AveragesAverages, "largest: a batch size of 2 instead of 1 changes 'largest' by"),
    (ForgetsTheMask, "a batch size of 2 instead of 1 changes 'largest' by"),
    (MutatesItsInput, "changes the attention of layer 0 that it was shown"),
    (MutatesWhatOthersShare, "changes the value_norm of layer 0 that it was shown"),
    (MutatesTheBatch, "changes the batch's mask that it was shown"),
    (CountsOutsideAccumulators, "something is kept outside the accumulators"),
    (KeepsNothing, "keeps nothing in accumulators"),
    (DependsOnTheOrder, "changes 'largest(_ci_low)?' by"),
    (MergesOneWay, "cutting into shards changes 'largest' by"),
    (DividesByZero, r"result\(\) raised RuntimeWarning: invalid value"),
    (ZeroForAbsent, "holds numbers though no example was seen"),
    (WithoutUnits, "'largest' has units None, wanted a text"),
    (WithoutLabels, "the axis 'head' has no labels"),
    (UpsideDown, "an interval of 'largest' is upside down"),
    (OneEnded, "'largest_ci_high' stands alone"),
    (GivesAnArray, r"result\(\) gives DataArray, wanted xarray.Dataset"),
    (OnlyFloat32, "observing examples of 12, 1, 9 tokens raised RuntimeError"),
    (FailsOnOneToken, "observing examples of 1 tokens raised IndexError"),
    (LoadsAnything, "takes a state with 'total' of another shape"),
    (Nameless, "name is '', wanted a text"),
]


@pytest.mark.parametrize(("kind", "sentence"), BROKEN, ids=[kind.__name__ for kind, _ in BROKEN])
def test_a_broken_analysis_is_caught_by_name(kind: type[Analysis], sentence: str) -> None:
    with pytest.raises(AssertionError, match=sentence):
        check_analysis(kind)


# --- the registry ---------------------------------------------------------------------------


@pytest.fixture
def scratch_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headscope.claims.question._REGISTERED", {})


@pytest.mark.usefixtures("scratch_registry")
def test_a_registered_analysis_is_known_by_its_name() -> None:
    assert register(Largest) is Largest
    assert known_analyses()["largest"] is Largest
    assert choose(("largest", "entropy", "largest")) == ["largest", "entropy"]


@pytest.mark.usefixtures("scratch_registry")
def test_registering_the_same_analysis_twice_is_harmless() -> None:
    register(Largest)
    register(Largest)


@pytest.mark.usefixtures("scratch_registry")
def test_two_analyses_of_one_name_raise() -> None:
    with pytest.raises(InputError, match="two questions are called 'entropy'"):
        register(type("Other", (Largest,), {"name": "entropy"}))


@pytest.mark.usefixtures("scratch_registry")
def test_an_unknown_need_raises_and_says_what_there_is() -> None:
    wanting = type("Wanting", (Largest,), {"name": "wanting", "needs": frozenset({"logits"})})
    with pytest.raises(InputError, match=r"needs \['logits'\]; there are \['attention', "):
        register(wanting)
    assert "wanting" not in known_analyses()


def test_an_unknown_analysis_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(
        InputError,
        match=r"no analysis called 'entropie'; did you mean 'entropy'\? there are .*entropy",
    ):
        choose(("entropie",))


# --- saving and merging ---------------------------------------------------------------------


def test_a_state_with_sums_of_another_name_is_refused() -> None:
    one = Largest(Scope(2, 3))
    with pytest.raises(HeadscopeError, match="largest has no sums extra"):
        one.load({**one.state(), "extra": np.zeros(3)})


def test_merging_runs_of_other_replicates_raises_instead_of_broadcasting() -> None:
    """`+=` would have added one replicate to all of them."""
    with pytest.raises(ValueError, match="they belong to different runs"):
        Largest(Scope(2, 3, replicates=20)).merge(Largest(Scope(2, 3, replicates=0)))
