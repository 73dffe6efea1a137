"""Are Vig's claims read off the right heads, and off inputs of two sentences?"""

from __future__ import annotations

import json

import numpy as np
import pytest
import xarray as xr
from click.testing import CliRunner

import headscope as hs
from headscope.claims.verdict import Outcome
from headscope.cli.main import group
from headscope.papers.claim_engine import judge
from headscope.papers.quantities import PaperRuns
from headscope.papers.run_paper import papers
from headscope.papers.vig2019 import PAIRS, PAPER, _paired
from headscope.run.store import Run
from tasks.made import checkpoint

NEURONS = 64
TARGETS = ("next", "previous", "sep")
CONTRASTS = ("sep", "same_segment", "next", "own_segment")


def with_draws(name: str, dims: tuple[str, ...], values: np.ndarray) -> dict:
    """A variable and 20 draws of it, each within a thousandth."""
    noise = 1 + 0.001 * (np.arange(20) % 2 - 0.5)
    draws = np.stack([values, *(values * one for one in noise)])
    return {name: (dims, values), f"{name}_draws": (("replicate", *dims), draws)}


def run_of(sep: float, *, few: float, overlap: float, segment: float = 0.8, stack: str = "encoder"):
    """Head (0, 0) looks at [SEP], (1, 1) at the next token, by 30 neurons that change."""
    grid = ("layer", "head")
    share = np.full((2, 2, 3), 0.1)
    share[..., 2] = min(sep, 0.1)
    share[0, 0, 2], share[1, 1, 0] = sep, 0.9
    number = np.full((2, 2), 30.0)
    number[0, 0] = few
    same = np.full((2, 2), 0.1)
    same[0, 0] = overlap
    bag = np.array([[0.2, 0.7], [0.0, 0.1]])
    telling = np.full((2, 2, 4), 20.0)
    telling[0, 0, 0], telling[0, 1, 3] = few, 3.0
    split = np.zeros((2, 4, 3, 3))
    split[..., 0, 2], split[..., 0, 1] = segment, segment - 1  # opposite signs do not cancel
    neurons = {
        **with_draws("effective", grid, number),
        **with_draws("position_overlap", grid, same),
        **with_draws("bag_of_words", grid, bag),
        **with_draws("separation_effective", (*grid, "contrast"), telling),
        **with_draws("separation_score", (*grid, "contrast"), telling),
        **with_draws("embedding_separation", ("head", "contrast", "part", "part_other"), split),
        "neuron": np.arange(NEURONS),
    }
    neurons["embedding_separation_draws"][1][1:, ..., 2] *= 1.001  # else no share varies
    parts = ["word", "position", "segment"]
    coords = {"contrast": list(CONTRASTS), "part": parts, "part_other": parts}
    surface = with_draws("attention", (*grid, "target"), share)
    root = {"documents": 20, "layers": 2, "heads": 2, "stack": stack, "sep_token": "[SEP]"}
    tree = {
        "/": xr.Dataset(attrs=root),
        "surface": xr.Dataset(surface, coords={"target": list(TARGETS)}),
        "neurons": xr.Dataset(neurons, coords=coords),
    }
    return PaperRuns({PAIRS: Run(xr.DataTree.from_dict(tree), {})})


def outcome(key: str, runs: PaperRuns):
    return judge(next(line for line in PAPER.claims if line.key == key), runs)


def test_nothing_is_called_published_as_nothing_was():
    assert not papers()["vig2019"].prints_numbers
    assert papers()["clark2019"].prints_numbers
    assert papers()["vig2019"] is PAPER
    assert not any(line.published for line in PAPER.claims)
    assert "no number is published" in PAPER.doubt


def test_few_fixed_neurons_are_those_of_the_head_that_looks_at_the_separator():
    runs = run_of(0.8, few=4, overlap=0.9)
    few = outcome("delimiter-head-few", runs)
    assert (few.outcome, few.measured.value, few.measured.head) == (Outcome.HOLDS, 4, (0, 0))
    assert few.measured.detail == "L1·H1, of 64 neurons"
    assert outcome("delimiter-head-fixed", runs).outcome is Outcome.HOLDS
    assert outcome("next-head-changing", runs).outcome is Outcome.HOLDS
    assert outcome("next-head-many", runs).measured.value == pytest.approx(26)
    many = run_of(0.8, few=40, overlap=0.05)
    keys = ("delimiter-head-few", "delimiter-head-fixed", "next-head-changing", "next-head-many")
    assert {outcome(key, many).outcome for key in keys} == {Outcome.FAILS}


def test_where_no_head_is_of_the_kind_its_neurons_are_not_asked_about():
    runs = run_of(0.4, few=4, overlap=0.9)
    assert outcome("delimiter", runs).outcome is Outcome.FAILS
    unasked = outcome("delimiter-head-few", runs)
    assert unasked.outcome is Outcome.NOT_ASKED
    assert unasked.verdict.needs.endswith("the most is 0.40, in L1·H1")


def test_the_bag_of_words_is_told_by_its_own_neurons_and_by_segments():
    runs = run_of(0.8, few=4, overlap=0.9)
    assert outcome("bag", runs).measured.head == (0, 1)
    few = outcome("bag-head-few", runs)
    assert (few.outcome, few.measured.value) == (Outcome.HOLDS, 3)
    assert outcome("bag-source", runs).measured.value == pytest.approx(0.8)
    positions = outcome("bag-source", run_of(0.8, few=4, overlap=0.9, segment=0.3))
    assert (positions.outcome, positions.measured.value) == (Outcome.FAILS, pytest.approx(0.3))


def test_a_decoder_is_not_asked_about_the_next_token():
    asked = outcome("next", run_of(0.8, few=4, overlap=0.9, stack="decoder"))
    assert asked.verdict.needs == "a decoder does not see the next token"


def test_inputs_without_a_separator_say_nothing_of_it():
    runs = run_of(0.0, few=4, overlap=0.9)
    for key in ("delimiter", "delimiter-few", "delimiter-head-few"):
        assert outcome(key, runs).verdict.needs == "needs inputs with a separator"


def test_bundled_sentences_are_read_in_pairs():
    document = next(iter(hs.demo_corpus()))
    sentences = [one for one in document.passages if one.words and not one.mentions]
    pairs = _paired(document).passages
    assert len(pairs) == len(sentences) // 2
    for place, passage in ((0, pairs[0].text), (1, pairs[0].text_pair), (3, pairs[1].text_pair)):
        assert passage.replace(" ", "") == "".join(word.form for word in sentences[place].words)


def test_a_paper_of_pairs_runs_from_end_to_end_with_a_control(tmp_path, no_control):
    checkpoint(tmp_path / "model")
    rows = [
        {"id": f"{at}", "text_a": f"the cat {word} .", "text_b": "the cats , a b ."}
        for at, word in enumerate(["a", "b", "the", "cat", "cats", "a b"])
    ]
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ["reproduce", "vig2019", "--model", str(tmp_path / "model"), "--no-report", "--json"]
    words += ["--data", f"segments={tmp_path / 'pairs.jsonl'}", "--control", no_control]
    words += ["--replicates", "10", "--threads", "1", "-o", str(tmp_path / "out")]
    result = CliRunner().invoke(group, words)
    assert result.exit_code == 0, result.output
    lines = {line["key"]: line for line in json.loads(result.stdout)["lines"]}
    for key in ("next", "delimiter", "bag", "other-sentence", "bag-source"):
        assert lines[key]["ci_low"] <= lines[key]["ours"] <= lines[key]["ci_high"], key
    held = [line for line in lines.values() if line["status"] == "holds"]
    assert all(line["untrained"] is not None for line in held)
    assert lines["bias"]["reason"].startswith("needs sentence pairs that differ in gender")
