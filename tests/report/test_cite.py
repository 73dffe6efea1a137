"""Does a citation name every source behind a run, and say of its methods what the run knows?"""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest
import xarray as xr
from click.testing import CliRunner

import headscope as hs
from headscope.claims.bibliography import SOURCES
from headscope.claims.question import questions
from headscope.cli.main import group
from headscope.core.results import Variable, labelled
from headscope.report.cite import cite, key_of, sources_of
from headscope.run.store import Run
from recorded import ALL, manifest_of, recorded

ENTRY = re.compile(r"@(\w+)\{(\w+),\n((?:  \w+ = \{.*\},\n)+)\}\n")


@pytest.fixture(scope="module")
def run() -> Run:
    tree = recorded(groups=ALL)
    return Run(tree, manifest_of(tree))


def entries(bibtex: str) -> dict[str, dict[str, str]]:
    """By key; all of the text must be entries."""
    assert not ENTRY.sub("", bibtex).strip()
    fields = re.compile(r"  (\w+) = \{(.*)\},")
    return {key: dict(fields.findall(body)) for _, key, body in ENTRY.findall(bibtex)}


def test_every_citation_in_a_result_has_an_entry(run):
    found = entries(cite(run).bibtex)
    said = {str(v.attrs.get("source")) for name in run for v in run[name].data_vars.values()}
    named = re.compile(r"([A-Z]\w+)(?: et al\.| (?:and|&) [A-Z]\w+)? ((?:19|20)\d\d)")
    wanted = {first.lower() + year for text in said for first, year in named.findall(text)}
    assert {"clark2019", "kobayashi2020", "kovaleva2019", "hennig2015", "kruskal1964"} <= wanted
    assert wanted <= found.keys()


def test_entries_are_whole_and_their_keys_differ():
    keys = Counter(map(key_of, SOURCES))
    assert max(keys.values()) == 1
    for name, source in SOURCES.items():
        assert str(source.year) in name
        assert source.authors.split(",")[0].split()[-1] == name.split()[0]


def test_an_entry_says_what_the_paper_is(run):
    clark = entries(cite(run).bibtex)["clark2019"]
    assert clark["author"].split(" and ")[-1] == "Christopher D. Manning"
    assert clark["title"] == "{What Does BERT Look At? An Analysis of BERT’s Attention}"
    assert (clark["year"], clark["booktitle"]) == ("2019", "BlackboxNLP")
    assert entries(cite(run).bibtex)["hennig2007"]["journal"].endswith(
        r"Statistics \& Data Analysis"
    )


def test_a_source_stands_there_only_if_the_run_rests_on_it():
    tree = recorded(groups=("entropy",))
    cited = cite(Run(tree, manifest_of(tree)))
    assert set(entries(cited.bibtex)) == {"headscope", "clark2019"}


def test_the_control_and_the_first_of_two_models_are_no_analyses(run):
    assert set(sources_of(run)) == set(run)


def test_the_paragraph_says_what_the_manifest_knows_and_no_more(run):
    text = cite(run).text
    for said in (
        "BertModel, 6 layers × 12 heads",
        "revision ffb93f3bd404",
        "torch 2.13.0",
        f"{run.tree.attrs['documents']} documents",
        "empty: 2",
        "95 %",
    ):
        assert said in text
    assert "float32" not in text  # this manifest names no precision
    assert "Settings" not in text
    bare = cite(Run(run.tree, {})).text
    assert "Versions" not in bare
    assert "6 layers × 12 heads" in bare


def test_a_run_on_disk_names_precision_inputs_and_options(short):
    cited = hs.cite(short.path)
    spec = short.manifest["spec"]
    assert f"float32, sha256 of the weights {spec['model']['sha256'][:16]}" in cited.text
    assert f"sha256 of the inputs {spec['corpus']['inputs_sha256'][:16]}" in cited.text
    assert f"replicates {short.manifest['replicates']}, seed 0" in cited.text
    assert str(cited) == f"{cited.text}\n\n{cited.bibtex}"


def test_a_source_that_is_not_known_is_told_as_it_stands(run):
    one = Variable(np.ones(3), ("x",), "made", "1", "Clark et al. 2019, §3; Doe 2031, eq. 4")
    tree = run.tree.assign({"made": xr.DataTree(labelled({"made": one}))})
    cited = cite(Run(tree, run.manifest))
    assert cited.unknown == ("Doe 2031, eq. 4",)
    assert "made (Clark et al. 2019; Doe 2031, eq. 4)" in cited.text


def test_every_question_of_ours_cites_what_is_known():
    for question in questions():
        if question.package.startswith("headscope."):
            terms = question.part("terms", {}).values()
            for source in (question.source, *(term.source for term in terms)):
                years = re.findall(r"(?:19|20)\d\d", source)
                assert len(years) <= sum(source.count(name) for name in SOURCES), source


def test_the_command_prints_both_or_one(short):
    def told(*more):
        return CliRunner().invoke(group, ["cite", str(short.path), *more], standalone_mode=False)

    cited = hs.cite(short)
    assert told().output == f"{cited}\n"
    assert told("--bibtex").output == f"{cited.bibtex}\n"
    assert told("--text").output == f"{cited.text}\n"
    assert "wanted one of them" in str(told("--text", "--bibtex").exception)
