"""Does a list of models become runs, a table and a page, whatever one of the models does?"""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import pandas as pd
import pytest
import torch
from transformers import GPT2Config, GPT2Model

from counting import counts_from_0
from headscope.claims.control import controls
from headscope.claims.verdict import Outcome
from headscope.corpus import MemoryCorpus, TreebankCorpus
from headscope.errors import HeadscopeError, InputError, RunFolderError, RunStopped
from headscope.model.checkpoint import quietly
from headscope.papers.zoo import run_zoo
from headscope.papers.zoo.claims import CLAIMS, REFERENCES, RELATIONS
from headscope.papers.zoo.listed_models import folder_name, listed_models
from headscope.papers.zoo.outcome import weight
from headscope.papers.zoo.page import render
from headscope.papers.zoo.zoo import zoo
from headscope.run.execution import Execution
from made_models import nudged
from model.families.tokenizers_made import bytes_bpe
from tasks.made import checkpoint

HOSTILE = "<img src=x onerror=alert(1)>"
EXECUTION = Execution(threads=1, linears="stock")
ROWS = (
    "_\tDET\t_\t_\t2\tdet",
    "_\tNOUN\t_\t_\t3\tobj",
    "_\tVERB\t_\t_\t0\troot",
    "_\tPUNCT\t_\t_\t3\tpunct",
)
WORDS = ("a", "b", "the", "cat")


def decoder(folder):
    """A tiny GPT-2 whose tokenizer adds no token of its own."""
    with torch.random.fork_rng():
        torch.manual_seed(3)
        network = GPT2Model(
            GPT2Config(vocab_size=13, n_embd=24, n_layer=2, n_head=2, n_positions=48)
        )
    with quietly():
        network.save_pretrained(folder)
        bytes_bpe(pad_token="<pad>", model_max_length=48).save_pretrained(folder)
    return folder


def treebank(path, documents=30):
    """Documents of one sentence each: 30 determiners, objects and full stops."""
    lines = []
    for at in range(documents):
        lines += [f"# newdoc id = d{at}", f"# sent_id = s{at}"]
        forms = WORDS[at % 4], WORDS[at // 4 % 4], WORDS[at // 16], "."  # no document twice
        rows = enumerate(zip(forms, ROWS, strict=True), 1)
        lines += [f"{row}\t{form}\t{text}\t_\t_" for row, (form, text) in rows]
        lines.append("")
    path.write_text("\n".join([*lines, ""]), "utf-8")
    return path


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """Three models of other shapes, one of them with a hostile name, and a treebank."""
    folder = tmp_path_factory.mktemp("zoo")
    checkpoint(folder / "bert", num_hidden_layers=3)
    checkpoint(folder / HOSTILE, seed=1)
    decoder(folder / "gpt")
    treebank(folder / "trees.conllu")
    return folder


@pytest.fixture(scope="module")
def found(desk):
    """A finished zoo of them, one of which is not there, with its page."""
    made = zoo(
        [desk / "bert", str(desk / "nothing"), desk / HOSTILE, desk / "gpt"],
        TreebankCorpus([desk / "trees.conllu"]),
        output=desk / "out",
        replicates=20,
        execution=EXECUTION,
        reports=False,
    )
    made.report()
    return made


class Seen(HTMLParser):
    """The tags and text of a page, and what it links to."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.text, self.links = [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.links += [
            (tag, v) for k, v in attrs if k in ("href", "src", "xlink:href") and v[0] != "#"
        ]

    def handle_data(self, data):
        self.text.append(data)


# --- runs -----------------------------------------------------------------------------------


def test_a_model_that_fails_is_one_line_and_the_others_go_on(found):
    assert list(found.runs) == ["bert", HOSTILE, "gpt"]
    assert list(found.failed) == ["nothing"]
    assert "nothing': no folder here" in found.failed["nothing"]
    assert "\n" not in found.failed["nothing"]


def held_against(desk, name, control):
    """A zoo of one model with a control, and its table."""
    held = zoo(
        [desk / "bert"],
        TreebankCorpus([desk / "trees.conllu"]),
        output=desk / name,
        replicates=20,
        execution=EXECUTION,
        reports=False,
        control=control,
        analyses=("surface", "entropy", "norms"),
    )
    held.report()
    table = pd.read_csv(held.path / "claims.csv", keep_default_na=False).set_index("claim")
    return held, table


def test_claims_are_held_against_networks_without_training(desk, no_control):
    held, table = held_against(desk, "held", no_control)
    networks = controls(held.runs["bert"].tree)
    assert {"untrained", "shuffled"} <= {network.attrs["model"] for network in networks}
    holding = table[table["verdict"] == Outcome.HOLDS]
    assert (holding["untrained"] != "").all()  # each was held against them
    assert (table[table["verdict"] != Outcome.HOLDS]["untrained"] == "").all()


def test_a_claim_that_also_holds_of_the_control_says_so_with_its_number(desk):
    """The control is the model but for one weight."""
    near = nudged(desk / "bert", desk / "near")
    held, table = held_against(desk, "itself", str(near))
    also = table[~table["untrained"].isin(["", "none"])]
    assert len(also)
    saved = json.loads((held.path / "claims.json").read_text("utf-8"))
    answers = {claim["name"]: claim["answers"]["bert"] for claim in saved["claims"]}
    for name, row in also.iterrows():
        first = row["untrained"].split(", ")[0]
        assert answers[name]["untrained"][first] == pytest.approx(float(row["untrained_value"]))
    page = (held.path / "report.html").read_text("utf-8")
    assert page.count("also untrained: ") == len(also)


def test_every_model_has_a_run_folder(found):
    assert found.runs["bert"].path == found.path / "models/bert"
    for run in found.runs.values():
        assert run.path.parent == found.path / "models"
        assert (run.path / "atlas.nc").is_file()


def test_every_claim_is_asked_of_every_model_and_missing_is_never_0(found):
    table = pd.read_csv(found.path / "claims.csv")
    assert len(table) == len(CLAIMS) * 3
    unasked = table[table["verdict"] == Outcome.NOT_ASKED]
    assert unasked["value"].isna().all()
    assert unasked["why"].notna().all()
    assert table[table["verdict"] != Outcome.NOT_ASKED]["value"].notna().all()
    gpt = table[table["model"] == "gpt"].set_index("claim")
    assert gpt.loc["separator_middle", "why"] == "no separator"
    assert gpt.loc["next_heads", "why"] == "a decoder does not see the next token"


def test_the_claims_as_json_are_those_of_the_table(found):
    saved = json.loads((found.path / "claims.json").read_text("utf-8"))
    assert saved["models"] == ["bert", HOSTILE, "gpt"]
    assert [claim["name"] for claim in saved["claims"]] == [claim.key for claim in CLAIMS]
    rows = found.claims.set_index(["claim", "model"])
    for claim in saved["claims"]:
        for model, answer in claim["answers"].items():
            value = rows.loc[(claim["name"], model), "value"]
            assert (answer["value"] is None) == bool(pd.isna(value))
            if answer["value"] is not None:
                assert answer["value"] == pytest.approx(value)


def test_a_relation_is_the_advantage_of_the_best_head_of_the_run(found):
    row = found.claims.set_index(["claim", "model"]).loc[("relation_det", "bert")]
    dependency = found.runs["bert"]["dependency"].sel(relation="det")
    assert row["value"] == pytest.approx(float(dependency["advantage"]))
    assert (row["layer"], row["head"]) == (dependency["best_layer"], dependency["best_head"])
    assert row["n"] == 30
    needs = found.answers["relation_nsubj"]["bert"].verdict.needs
    assert needs == "no such relation in this corpus"


def test_the_tables_of_layers_and_heads_name_the_model_and_the_depth(found):
    layers = pd.read_csv(found.path / "tables/layers.csv")
    attention = layers[layers["quantity"].isin(["sep", "cls", "first", "punctuation", "other"])]
    whole = attention.groupby(["model", "layer"])["value"].sum()
    assert whole.to_numpy() == pytest.approx(1)  # what is not drawn is drawn as other
    assert set(layers[layers["model"] == "bert"]["depth"]) == {0, 0.5, 1}
    heads = pd.read_csv(found.path / "tables/best_heads.csv")
    assert set(heads["model"]) == set(found.runs)
    assert set(heads["relation"]) >= {r.labels[0] for r in RELATIONS[:2]}


# --- the page -------------------------------------------------------------------------------


def test_the_page_asks_for_nothing_and_runs_nothing(found):
    seen = Seen((found.path / "report.html").read_text("utf-8"))
    assert "script" not in seen.tags
    references = [("a", source.link) for source in REFERENCES.values()]
    assert seen.links == references  # the models have no page of their own here


def test_the_page_opens_with_a_matrix_of_claims_by_models(found):
    page = (found.path / "report.html").read_text("utf-8")
    matrix = page[page.index('<section id="matrix"') : page.index('<section id="found"')]
    assert matrix.count('scope="col"') == 3
    assert matrix.count("<td class=") == 3 * len(found.answers)
    for key in found.answers:
        assert f'href="#claim-row-{key}"' in matrix
        assert f'id="claim-row-{key}"' in page
    verdicts = re.findall(r'<span class="unseen">([\w ]+)</span>', matrix)
    assert verdicts == [str(a.outcome) for row in found.answers.values() for a in row.values()]


def test_sentences_of_the_largest_distance_from_their_bounds_come_first(found):
    sizes = {claim.headline: weight(found.answers[claim.key]) for claim in CLAIMS if claim.headline}
    order = [size for line in found.headlines for end, size in sizes.items() if f"{end}" in line]
    assert len(set(order)) > 2
    assert order == sorted(order, reverse=True)


def test_a_hostile_name_is_text(found):
    page = (found.path / "report.html").read_text("utf-8")
    assert "<img" not in page
    assert HOSTILE in Seen(page).text
    for picture in (found.path / "figures").glob("*.svg"):
        assert "<img" not in picture.read_text("utf-8")


def test_every_model_has_its_panel_in_every_picture(found):
    page = (found.path / "report.html").read_text("utf-8")
    assert page.count("<h3>bert</h3>") == 4
    for name in ("attention", "entropy", "norms", "best_heads"):
        assert (found.path / f"figures/{name}.png").is_file()


# --- again, and stopped ---------------------------------------------------------------------


def test_a_second_time_nothing_is_computed_and_a_model_may_be_added(desk, found):
    results = found.path / "models/bert/atlas.nc"
    before = results.stat().st_mtime_ns
    again = zoo(
        [desk / "bert", desk / "gpt"],
        TreebankCorpus([desk / "trees.conllu"]),
        output=found.path,
        replicates=20,
        execution=EXECUTION,
        reports=False,
    )
    assert results.stat().st_mtime_ns == before
    assert list(again.runs) == ["bert", "gpt"]
    assert again.claims.query("model == 'bert'")["value"].tolist() == pytest.approx(
        found.claims.query("model == 'bert'")["value"].tolist(), nan_ok=True
    )


def test_a_stopped_zoo_goes_on_where_it_was(desk, tmp_path, monkeypatch):
    corpus, asked = MemoryCorpus(["a b .", "b a , b ."]), []

    def once():
        return zoo(
            [desk / "bert", desk / "gpt"],
            corpus,
            output=tmp_path / "out",
            replicates=2,
            analyses=("surface",),
            execution=EXECUTION,
            reports=False,
            begin=asked.append,
        )

    whole = run_zoo.atlas

    def stopped(*args, **given):
        if asked[-1] == "gpt":
            raise KeyboardInterrupt
        return whole(*args, **given)

    monkeypatch.setattr(run_zoo, "atlas", stopped)
    with pytest.raises(RunStopped, match="the same command goes on"):
        once()
    kept = (tmp_path / "out/models/bert/atlas.nc").stat().st_mtime_ns
    monkeypatch.setattr(run_zoo, "atlas", whole)
    found = once()
    assert list(found.runs) == ["bert", "gpt"]
    assert found.runs["gpt"].report().is_file()
    assert (tmp_path / "out/models/bert/atlas.nc").stat().st_mtime_ns == kept


def test_a_folder_of_another_spec_is_refused_and_emptied_on_demand(desk, found, tmp_path):
    corpus = MemoryCorpus(["a b ."])
    small = {"output": tmp_path / "out", "analyses": ("surface",), "reports": False}
    zoo([desk / "gpt"], corpus, **small, replicates=2, execution=EXECUTION)
    with pytest.raises(RunFolderError, match=r"other settings \(settings.replicates: 2, now 3\)"):
        zoo([desk / "bert"], corpus, **small, replicates=3, execution=EXECUTION)
    fresh = Execution(threads=1, linears="stock", overwrite=True)
    zoo([desk / "bert"], corpus, **small, replicates=3, execution=fresh)
    assert [p.name for p in (tmp_path / "out/models").iterdir()] == ["bert"]


def test_the_same_weights_under_two_names_are_told(desk, tmp_path):
    checkpoint(tmp_path / "copy", num_hidden_layers=3)
    made = zoo(
        [desk / "bert", tmp_path / "copy"],
        MemoryCorpus(["a b ."]),
        output=tmp_path / "out",
        analyses=("surface",),
        replicates=2,
        execution=EXECUTION,
        reports=False,
    )
    assert made.failed == {"copy": "has the same weights as bert"}


def test_what_no_model_allows_is_the_error_itself(desk, tmp_path):
    with pytest.raises(InputError, match="none of dependency can run on"):
        zoo(
            [desk / "bert"],
            MemoryCorpus(["a b ."]),
            output=tmp_path / "out",
            analyses=("dependency",),
            execution=EXECUTION,
        )
    with pytest.raises(HeadscopeError, match=r"none of the 2 models could be read: x: .*; y: "):
        zoo(["./x", "./y"], MemoryCorpus(["a b ."]), output=tmp_path / "out", execution=EXECUTION)


# --- names ----------------------------------------------------------------------------------


@pytest.mark.parametrize("twice", [["demo", "demo"], ["./a", "demo", "./a"]])
def test_one_model_twice_is_refused(twice):
    with pytest.raises(InputError, match="2 times; name each once"):
        listed_models(twice)


def test_a_folder_named_in_two_ways_is_one_model(tmp_path, monkeypatch):
    (tmp_path / "m").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="name each once"):
        listed_models(["./m", tmp_path / "m"])


def test_two_folders_of_one_name_are_told_apart(tmp_path):
    first, second = listed_models([tmp_path / "a/model", tmp_path / "b/model"])
    assert (first.label, second.label) == (str(tmp_path / "a/model"), str(tmp_path / "b/model"))
    assert first.folder != second.folder


@pytest.mark.parametrize(
    "name", ["../..", HOSTILE, "a\x00b\n", "x" * 300, "con/../aux", "-rf", "\udcff", "a/b"]
)
def test_a_folder_is_a_plain_short_name(name):
    folder = folder_name(name)
    assert folder
    assert len(folder) <= 70
    assert set(folder) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
    assert not folder.startswith((".", "-"))


def test_a_hub_id_is_legible_as_a_folder():
    assert folder_name("google-bert/bert-base-uncased") == "google-bert--bert-base-uncased"


def test_names_on_the_page_count_from_0_if_asked(desk, found):
    """Of finished runs, which a zoo opens; what papers print stays."""
    pages = []

    def page():
        again = zoo(
            [desk / "bert", str(desk / "nothing"), desk / HOSTILE, desk / "gpt"],
            TreebankCorpus([desk / "trees.conllu"]),
            output=found.path,
            replicates=20,
            execution=EXECUTION,
            reports=False,
        )
        pages.append(render(again))
        return pages[-1]

    from_0 = counts_from_0(page)
    assert "Layers and heads count from 0, as TransformerLens does" in from_0
    assert "at the depth of layers 5 to 9 of BERT-base" in from_0
    assert "that of BERT’s layers 5–9" in from_0
    from_1 = pages[-1]
    assert "at the depth of layers 6 to 10 of BERT-base. Layers and heads count from 1" in from_1
    assert "columns of layers and heads count from 0" in from_1
