"""What timing decides is decided once per machine: the same command gives the same bits again."""

import json
import os
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
import torch
from torch import nn

import headscope as hs
from headscope.cli.main import group
from headscope.errors import InputError
from headscope.model.linears import map_sizes
from headscope.run import compute, machine_choices
from headscope.run.machine_choices import chosen_here, kept_for

needs_onednn = pytest.mark.skipif(
    not map_sizes(nn.Linear(8, 8)), reason="this torch has no oneDNN to choose"
)
pytestmark = needs_onednn
AUTO = "auto"


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """The cache folder of a user, empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "headscope" / "machine"


def timed(*kinds):
    """Chooses these kinds, one after the other, each time it is asked to time."""
    left = list(kinds)
    return lambda kind: left.pop(0) if kind == AUTO else kind


def network(size=8):
    return nn.Sequential(nn.Linear(size, 16), nn.Linear(16, size))


@pytest.mark.parametrize("kind", ["onednn", "stock"])
def test_what_the_first_run_has_timed_the_second_takes(cache, kind):
    other = {"onednn": "stock", "stock": "onednn"}[kind]
    choose = timed(kind, other)
    first, second = (chosen_here(network(), choose) for _ in range(2))
    assert (first.kind, second.kind) == (kind, kind)
    assert first.by == "timed now"
    assert second.by.startswith("timed on 20")
    assert not first.trouble + second.trouble
    assert kept_for(network()) == (kind, second.by)


def test_networks_of_other_sizes_are_timed_apart(cache):
    choose = timed("onednn", "stock")
    assert [chosen_here(network(size), choose).kind for size in (8, 24, 8)] == [
        "onednn",
        "stock",
        "onednn",
    ]
    assert len(list(cache.iterdir())) == 2


def test_where_there_is_nothing_to_choose_nothing_is_kept(cache):
    choice = chosen_here(network().double(), timed("stock"))
    assert (choice.kind, choice.by) == ("stock", "the only kind here")
    assert not cache.exists()


def test_a_kept_kind_that_is_wrong_for_these_weights_is_not_taken(cache):
    chosen_here(network(), timed("onednn"))

    def refuses(kind):
        raise InputError("linears 'onednn' differ from the stock output")

    assert chosen_here(network(), refuses).kind == "stock"


def test_of_two_processes_at_once_both_take_what_one_has_kept(cache):
    """They meet after both have timed, and before either has written."""
    at_once = Barrier(2, timeout=60)

    def run(kind):
        def choose(_):
            at_once.wait()
            return kind

        return chosen_here(network(), choose).kind

    with ThreadPoolExecutor(2) as pool:
        kinds = list(pool.map(run, ("onednn", "stock")))
    assert len(set(kinds)) == 1
    assert kept_for(network())[0] == kinds[0]
    assert len(os.listdir(cache)) == 1  # no draft is left


def another_machine(monkeypatch):
    here = machine_choices.this_machine()
    monkeypatch.setattr(
        machine_choices, "this_machine", lambda: here | {"processor": "Z80", "torch": "1.0"}
    )


def test_a_choice_of_another_machine_is_not_taken_and_the_words_say_so(cache, monkeypatch):
    chosen_here(network(), timed("onednn"))
    another_machine(monkeypatch)
    choice = chosen_here(network(), timed("stock"))
    assert choice.kind == "stock"
    assert choice.trouble.startswith("the cache folder holds choices of another machine (")
    assert f"torch {torch.__version__}" in choice.trouble
    assert choice.trouble.endswith("linear maps are timed on this machine")
    again = chosen_here(network(), timed("onednn"))
    assert (again.kind, again.trouble) == ("stock", "")
    assert len(list(cache.iterdir())) == 2


@pytest.mark.parametrize(
    "content",
    [b"", b'{"linears": "onednn"', b"[]", b'{"linears": "fast", "made": "now"}', b"[" * 100_000],
)
def test_a_broken_file_is_said_and_replaced(cache, content):
    chosen_here(network(), timed("onednn"))
    (file,) = cache.iterdir()
    file.write_bytes(content)
    choice = chosen_here(network(), timed("stock"))
    assert choice.kind == "stock"
    assert choice.trouble == (
        f"the cache folder holds a file that cannot be read ({file.name}): linear maps are timed "
        "on this machine"
    )
    assert chosen_here(network(), timed("onednn")).kind == "stock"


def test_a_choice_that_was_copied_from_another_machine_is_not_taken(cache, monkeypatch):
    chosen_here(network(), timed("onednn"))
    (file,) = cache.iterdir()
    content = json.loads(file.read_bytes())
    content["machine"]["processor"] = "Z80\x1b[2J"
    file.write_text(json.dumps(content))
    choice = chosen_here(network(), timed("stock"))
    assert choice.kind == "stock"
    assert "a choice of another machine (Z80\ufffd[2J, torch " in choice.trouble


def test_a_cache_that_cannot_be_written_is_said_and_the_run_goes_on(tmp_path, monkeypatch):
    (tmp_path / "headscope").write_text("a file where the folder should be")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    choice = chosen_here(network(), timed("onednn"))
    assert choice.kind == "onednn"
    assert choice.trouble.startswith("the cache folder (XDG_CACHE_HOME) cannot be written (")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert "wanted a whole path" in chosen_here(network(), timed("stock")).trouble


@pytest.fixture
def keeping(monkeypatch):
    """Runs keep their choice, and time nothing: these kinds in turn."""
    choose = timed("stock", "onednn", "onednn")
    monkeypatch.setattr(compute, "choose", lambda *_, requested: choose(requested))
    monkeypatch.setattr(compute, "chosen_here", chosen_here)


def read(model, **more):
    few = {"analyses": ("entropy",), "limit": 2, "replicates": 0, "control": "none"}
    return hs.atlas(model, hs.demo_corpus(), **few, **more)


@pytest.mark.usefixtures("keeping")
def test_a_second_run_has_the_same_bits_and_the_manifest_says_who_chose(tiny, cache, tmp_path):
    first, second = read(tiny), read(tiny, output=tmp_path / "run")
    assert [run.manifest["linears"] for run in (first, second)] == ["stock", "stock"]
    assert first.manifest["linears_by"] == "timed now"
    assert second.manifest["linears_by"].startswith("timed on ")
    one, other = (run["entropy"]["entropy"].values for run in (first, second))
    assert one.tobytes() == other.tobytes()
    assert not second.notes
    requested = read(tiny, execution=hs.Execution(linears="stock"))
    assert requested.manifest["linears_by"] == "requested"


@pytest.mark.usefixtures("keeping")
def test_a_run_notes_what_is_wrong_with_the_cache(tiny, tmp_path, monkeypatch):
    (tmp_path / "headscope").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    run = read(tiny)
    assert run.notes[-1].startswith("the cache folder (XDG_CACHE_HOME) cannot be written (")
    assert str(tmp_path) not in json.dumps(run.manifest)


@pytest.mark.usefixtures("keeping")
def test_doctor_shows_the_choice_of_this_machine(tiny_place, tiny, cache, capsys):
    def said():
        group(["doctor", str(tiny_place)], standalone_mode=False)
        lines = capsys.readouterr().out.splitlines()
        return next(line for line in lines if "linear maps" in line)

    assert "not timed yet: the first run does that" in said()
    read(tiny)
    assert said().startswith("  ok  linear maps           stock, timed on 20")
