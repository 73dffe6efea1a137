"""Does a run stop where what it was asked is known, always at the same document?"""

import logging
import os
import re
import signal
from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr

import headscope as hs
from commands import shard_files
from forked import called_apart, forked
from headscope.claims.head_labels import open_labels
from headscope.core.confidence import holding_at_every_look
from headscope.core.head_names import counting_from, renamed
from headscope.corpus.drawn import DrawnCorpus
from headscope.errors import InputError
from headscope.report.build import first_findings
from headscope.report.run_facts import stopped_early
from headscope.run.stopping import NARROW, Goal, Stopping, times_narrower

WORDS = (
    "the",
    "cat",
    "sat",
    "on",
    "a",
    "mat",
    "while",
    "two",
    "dogs",
    "slept",
    "in",
    "its",
    "house",
)
STOCK = {"execution": hs.Execution(linears="stock", threads=1), "control": "none"}
HOW = {"analyses": ["surface"], "shard_tokens": 150, "until": 0.2, **STOCK}


def texts(count=160):
    """Sentences of six to thirteen words, one a document."""
    random = np.random.default_rng(0)
    return [
        f"{' '.join(random.choice(WORDS, random.integers(6, 14)))}, number {at}."
        for at in range(count)
    ]


def bits(run):
    return (run.path / "atlas.nc").read_bytes()


@pytest.fixture(scope="module")
def early(tiny, tmp_path_factory):
    return hs.atlas(tiny, texts(), output=tmp_path_factory.mktemp("early") / "run", **HOW)


def test_a_run_reads_as_much_as_it_needs_and_says_why(early):
    until, counts = early.manifest["until"], early.manifest["counts"]
    assert 30 <= until["documents"] < until["of_documents"] == 160
    assert until["known"]
    assert 0 < max(until["needed"].values()) < 1
    assert until["why"].startswith("all intervals of ")
    assert counts["documents"] == until["documents"] == early.tree.attrs["documents"]
    assert counts["tokens"] == until["tokens"] < until["of_tokens"]
    for name in early:
        assert max(times_narrower(early[name], 0.2).values()) < 1


def test_its_numbers_are_those_of_the_documents_that_it_read(tiny, early):
    """Which a run of these alone gives; its intervals are wider, as they hold at every look."""
    read = list(DrawnCorpus(hs.corpus_of(texts())))[: early.manifest["until"]["documents"]]
    alone = hs.atlas(tiny, read, analyses=["surface"], **STOCK)
    mine, theirs = early["surface"], alone["surface"]
    np.testing.assert_allclose(mine["attention"], theirs["attention"], rtol=1e-6)
    there = np.isfinite(theirs["attention_ci_low"].values)
    for end, sign in (("low", -1), ("high", 1)):
        one, other = (x[f"attention_ci_{end}"].values[there] for x in (mine, theirs))
        assert (sign * (one - other) > 0).all()


def test_in_memory_it_is_the_same(tiny, early):
    run = hs.atlas(tiny, texts(), **HOW)
    xr.testing.assert_identical(run.tree, early.tree)


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_killed_and_continued_with_any_number_of_workers_it_is_the_same(
    tiny_place, early, tmp_path, workers
):
    place, name = str(tiny_place), __name__
    code = f"import {name} as tests; tests.run_by_workers({place!r}, {workers}, killed_at=9)"
    with forked(cwd=tmp_path, code=code) as process:
        process.communicate()
        assert process.returncode == -signal.SIGKILL
    assert shard_files(tmp_path / "run")
    called_apart(run_by_workers, place, workers, cwd=tmp_path)
    assert (tmp_path / "run" / "atlas.nc").read_bytes() == bits(early)


def run_by_workers(place, workers, killed_at=None):
    """In a process that ends by kill -9 when so many shards are finished."""

    def kill(done, _total):
        if done == killed_at:
            os.kill(os.getpid(), signal.SIGKILL)

    execution = hs.Execution(workers=workers, linears="stock", threads=1, progress=kill)
    hs.atlas(hs.load(place), texts(), output="run", **HOW | {"execution": execution})


@pytest.mark.parametrize("moment", [1, 5, 10])
def test_stopped_and_continued_it_is_the_same(tiny, early, tmp_path, moment):
    def interrupt(done, _total):
        if done == moment:
            raise KeyboardInterrupt

    execution = hs.Execution(linears="stock", threads=1, progress=interrupt)
    with pytest.raises((KeyboardInterrupt, hs.errors.RunStopped)):
        hs.atlas(tiny, texts(), output=tmp_path / "run", **HOW | {"execution": execution})
    run = hs.atlas(tiny, texts(), output=tmp_path / "run", **HOW)
    assert bits(run) == bits(early)
    assert run.manifest["until"] == early.manifest["until"]


def test_what_it_cannot_know_so_well_is_said_before_and_after(tiny, caplog):
    with caplog.at_level(logging.WARNING, "headscope"):
        run = hs.atlas(tiny, texts(), **HOW | {"until": 0.001})
    until = run.manifest["until"]
    [warned] = re.findall(r"by the first ([\d,]+) tokens, .* would take about", caplog.text)
    assert until["tokens"] / 4 <= int(warned.replace(",", "")) < until["tokens"] / 2
    assert until["documents"] == 160
    assert not until["known"]
    assert until["why"].startswith("all was read, and wider than 0.001 are ")


@pytest.mark.parametrize(("what", "count"), [("surface", 4), ("examples", 30)])
def test_where_nothing_has_an_interval_all_is_read(tiny, what, count):
    run = hs.atlas(tiny, texts(count), **HOW | {"analyses": [what]})
    assert run.manifest["until"]["documents"] == count
    assert "has an interval" in run.manifest["until"]["why"]


@pytest.mark.parametrize("until", [0, -0.1, 1.5, "soon", True, float("nan")])
def test_what_is_no_width_is_refused(tiny, until):
    with pytest.raises(InputError, match="wanted a width between 0 and 1"):
        hs.atlas(tiny, texts(30), until=until)


def test_a_question_waits_for_the_documents_that_it_reads(tiny):
    """Of sixty texts and a treebank of fourteen documents, the first thirty have few sentences."""
    corpus = hs.corpus.Concatenation([hs.corpus_of(texts(60)), hs.demo_corpus()])
    how = HOW | {"analyses": ["surface", "dependency"], "shard_tokens": 400, "until": 0.9}
    run = hs.atlas(tiny, corpus, limit=66, **how)
    assert run["dependency"].attrs["documents"] >= 5
    assert np.isfinite(run["dependency"]["accuracy_ci_low"].values).any()


def test_a_share_of_processes_is_refused(tiny, tmp_path):
    execution = hs.Execution(shard=(1, 2))
    with pytest.raises(InputError, match="found --until and --shard"):
        hs.atlas(tiny, texts(30), output=tmp_path / "run", until=0.1, execution=execution)


# --- labels -----------------------------------------------------------------------------------


def test_a_label_is_open_while_its_interval_holds_the_threshold(early):
    """Of all heads, also those of which no claim is made; a narrow interval is at the border."""
    tree = early.tree.copy(deep=True)
    surface = tree["surface"].to_dataset()
    for end, value in (("", 0.1), ("_ci_low", 0.05), ("_ci_high", 0.15)):
        surface[f"attention{end}"][:] = value
    at = {"layer": 1, "head": 2, "target": 1}
    assert surface["attention"]["target"][1] == "previous"

    def opened(low, high):
        surface["attention"][at], surface["attention_ci_low"][at] = (low + high) / 2, low
        surface["attention_ci_high"][at] = high
        tree["surface"] = xr.DataTree(surface)
        some = {one: least for one, least in open_labels(tree).items() if one.kind == "previous"}
        return {(one.layer, one.head): least for one, least in some.items()}

    assert opened(0.45, 0.55) == opened(0.4, 0.5001) == {(1, 2): 0.5}
    assert opened(0.1, 0.9) == {(1, 2): 0.5}  # no more than usual, surely
    assert opened(0.5001, 0.65) == opened(0.3, 0.5) == {}


def test_labels_end_a_run_once_each_is_decided(tiny):
    run = hs.atlas(tiny, texts(), **HOW | {"until": "labels"})
    until = run.manifest["until"]
    assert until["known"]
    assert until["documents"] < 160
    assert until["why"].startswith("every label is decided")
    with holding_at_every_look(until["documents"]):
        still_open = open_labels(run.tree)
    assert all(one.high - one.low <= NARROW for one in still_open)
    assert len(still_open) == len(until["border"])


def test_heads_are_named_by_the_models_own_layers_and_counted_as_everywhere(early):
    tree = early.tree.copy(deep=True)
    tree.attrs["layer_numbers"] = "4 7 9"
    surface = tree["surface"].to_dataset()
    for end, value in (("", 0.5), ("_ci_low", 0.2), ("_ci_high", 0.8)):
        surface[f"attention{end}"][{"layer": 1, "head": 2, "target": 1}] = value
    tree["surface"] = xr.DataTree(surface)
    shards = [SimpleNamespace(documents=160, tokens=2474)]
    stopping = Stopping(
        Goal("labels"),
        SimpleNamespace(shards=shards),
        lambda merged: {"surface": surface},
        lambda shards: {},
        lambda results: tree,
    )
    assert not stopping.enough(1, {})
    (name,) = (one for one in stopping.looks[0].open if one.startswith("L8·H3 "))
    manifest = {**early.manifest, "until": early.manifest["until"] | {"why": f"open: {name}"}}
    assert name in stopped_early(manifest)
    (first, *_) = first_findings(early.tree, manifest)
    assert first.text.startswith("With --until 0.2 the run read 124 of 160 documents")
    assert first.text.endswith(f"open: {name}.")
    with counting_from(0):
        assert renamed(name).startswith("L7·H2 ")
        assert renamed(name) in stopped_early(manifest)


# --- before a run -----------------------------------------------------------------------------


def test_a_forecast_says_how_much_it_takes_and_a_run_agrees(tiny, monkeypatch):
    """From 60 of 160 documents; the run stops at the first look behind it, or the one before."""
    monkeypatch.setattr("headscope.run.stopping.SAMPLE", 900)
    how = {"analyses": ["surface"], "shard_tokens": 150, "execution": STOCK["execution"]}
    result = hs.forecast(tiny, texts(), until=0.2, **how)
    assert 900 <= result.tokens < result.total < result.of_tokens == 2474
    assert result.reachable
    assert result.core_hours == pytest.approx(result.total * result.seconds / 3600)
    run = hs.atlas(tiny, texts(), **HOW | {"until": 0.2})
    assert result.total / 1.5 < run.manifest["until"]["tokens"] < 1.5 * result.total
    assert "2,474 tokens" in "\n".join(result.lines())


def test_a_forecast_of_what_is_out_of_reach_says_so(tiny):
    how = {"analyses": ["surface"], "shard_tokens": 150, "execution": STOCK["execution"]}
    result = hs.forecast(tiny, texts(30), until=0.001, **how)
    assert not result.reachable
    assert "is out of reach: it takes about" in "\n".join(result.lines())
    few = hs.forecast(tiny, texts(4), until=0.1, **how)
    assert np.isnan(few.total)
    assert few.as_dict()["total"] is None
    assert "nothing that was asked has an interval" in "\n".join(few.lines())


@pytest.mark.parametrize(("value", "spread"), [(2.0, 1.5), (0.4, 2.0), (3.0, 0.3)])
def test_a_width_that_grows_from_a_logarithm_is_compared_there(value, spread):
    ends = {"_ci_low": value * np.exp(-spread), "_ci_high": value * np.exp(spread)}
    result = nats(value, **ends)
    times = times_narrower(result, 0.1)["much"]
    # By so much narrower in its logarithm, it is as wide as wanted: a tenth of the value.
    assert 2 * value * np.sinh(spread / times) == pytest.approx(0.1 * value)
    assert times < times_narrower(nats(value, _ci_low=-1.0, _ci_high=ends["_ci_high"]), 0.1)["much"]


def test_any_other_width_is_compared_as_it_is():
    assert times_narrower(nats(2.0, _ci_low=1.0, _ci_high=3.0), 0.1)["much"] == pytest.approx(10)
    narrow = nats(2.0, _ci_low=1.95, _ci_high=2.1)  # enough, on whatever scale
    assert times_narrower(narrow, 0.1)["much"] == pytest.approx(0.75)


def nats(value: float, **ends: float) -> xr.Dataset:
    names = {"much": value} | {f"much{end}": number for end, number in ends.items()}
    return xr.Dataset(
        {name: ("head", [number], {"units": "nats"}) for name, number in names.items()}
    )
