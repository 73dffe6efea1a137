"""Are the papers' lines whole, and do their numbers agree with a table that was typed apart?"""

from __future__ import annotations

import pytest

from headscope.claims.bibliography import SOURCES
from headscope.draw.figures import pictures
from headscope.papers.published import MARKS
from headscope.papers.run_paper import MAKERS, find_paper, papers

# Typed from our notes on the papers, not from the code: key → values as printed.
TYPED = {
    "clark2019": {
        "table1-det": ["94.3"], "table1-dobj": ["86.8"], "table1-prt": ["99.1"],
        "table1-all": ["34.5", "34.7"], "table1-auxpass": ["82.5", "94.1"],
        "table1-auxpass-offset": ["40.5", "82.5"], "table1-pobj-offset": ["34.6"],
        "table1-mark-offset": ["14.5"], "notebook-conj": ["53.3"], "treebank-nsubj": ["2804"],
        "table2-nearest-nominal": ["19"], "table2-head_match-proper": ["67"],
        "table2-rule_based-all": ["69"], "table2-head-pronoun": ["64"], "table2-head-all": ["65.1"],
        "table3-attention": ["61"], "table3-attention_words": ["77", "78.0"],
        "table3-random_words": ["30"], "table3-right_branching": ["26"], "entropy-cls": ["3.89"],
        "previous": ["4"], "next": ["5"],
    },
    "kovaleva2019": {
        "heterogeneous-mrpc": ["32"], "heterogeneous-qqp": ["61"], "frames-best": ["0.209"],
        "frames-second": ["0.201"], "frames-sentences": ["473"], "classifier": ["0.86"],
        "table1-sts-b-pearson-scratch": ["2.9"], "table1-sst-2-accuracy-tuned": ["92"],
        "table1-qnli-accuracy-scratch": ["49.5"], "table1-mrpc-f1-tuned": ["87.9"],
        "table1-mnli-accuracy-before": ["31.7"], "table1-gain": ["35.9"], "layer-1-rte": ["3.2"],
        "best-head-mrpc": ["1.2"], "best-head-sts-b": ["0.1"], "layers-qnli": ["−0.2"],
    },
    "kobayashi2020": {
        "table1-head-2-4-CV": ["0.37"], "table1-head-2-7-σ": ["0.50"], "table1-mean-μ": ["5.15"],
        "table1-head-2-4-largest": ["12.66"], "table2-cls": ["−0.34"], "table2-sep": ["−0.69"],
        "table2-punctuation": ["−0.25"], "table2-other": ["−0.06"], "frequency-norm": ["0.75"],
        "frequency-attention": ["0.06"], "figure3b-other-8": ["1.75"],
        "mixing-attnresln_n": ["18.8"],
        "mixing-attn_w": ["97.1", "96.41"], "alignment-9": ["25.0"], "data-tokens": ["121,134"],
    },
    "vig2019": {"delimiter-head-few": [], "bag-head-few": []},
    "olsson2022": {"prefix-5-5": ["0.932"], "prefix-7-10": ["0.910"], "prefix-7-2": ["0.833"]},
    "wang2023": {
        "writes-9-9": ["1.9583"], "writes-10-7": ["−1.4267"], "writes-11-1": ["−0.9117"],
        "writes-10-0": ["0.6370"], "writes-8-10": ["0.4264"], "inhibiting-8-6": [],
    },
    "wu2024": {
        "llama-2-7b-80k-16-19": ["0.94"], "llama-2-7b-80k-8-26": ["0.80"],
        "llama-2-7b-80k-sparse": ["3.2", "3.2", "3–6"],
        "llama-2-7b-80k-never": ["70.2", "70.2", "45–73"],
        "llama-2-13b-64k-sparse": ["2.1", "3–6"], "llama-2-13b-64k-never": ["73.2", "45–73"],
        "Mistral-7B-v0.2-hf-12-7": ["0.93"], "Mistral-7B-v0.2-hf-sparse": ["4.2", "4.2", "3–6"],
        "Mistral-7B-v0.2-hf-never": ["65.2", "45–73"],
        "Mixtral-8x7B-v0.1-sparse": ["6.2", "3–6"], "Mixtral-8x7B-v0.1-never": ["57.6", "45–73"],
        "Yi-6B-200K-sparse": ["5.2", "5.7", "3–6"], "Yi-6B-200K-never": ["50.7", "45–73"],
        "Qwen1.5-14B-sparse": ["3.8", "3.8", "3–6"], "Qwen1.5-14B-never": ["53.5", "45–73"],
    },
}  # fmt: skip


@pytest.mark.parametrize("name", papers())
def test_every_line_has_a_key_of_its_own_a_place_a_claim_and_runs_that_can_be_had(name):
    paper = find_paper(name)
    assert len({line.key for line in paper.claims}) == len(paper.claims)
    assert len({group.id for group in paper.groups}) == len(paper.groups)
    for line in paper.claims:
        assert line.place
        assert line.text
        assert line.published or line.direction, line.key
        parts = {part.partition(":")[0] for part in line.measure.runs}
        assert parts <= {*MAKERS, *paper.makers}, line.key
        assert all(published.mark in MARKS for published in line.published)


@pytest.mark.parametrize("name", papers())
def test_every_picture_is_one_of_the_house_and_the_paper_is_cited(name):
    paper = find_paper(name)
    assert paper.source in SOURCES.values()
    shown = [shown for group in paper.groups for shown in group.figures]
    assert {picture.figure for picture in shown} <= set(pictures())
    assert {picture.run.partition(":")[0] for picture in shown} <= {*MAKERS, *paper.makers}


@pytest.mark.parametrize("name", papers())
def test_published_numbers_are_those_of_a_table_typed_apart(name):
    lines = {line.key: line for line in find_paper(name).claims}
    found = {key: [p.text for p in lines[key].published] for key in TYPED[name]}
    assert found == TYPED[name]
