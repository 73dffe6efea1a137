"""Is what is said of heads true where they are known by construction?"""

import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from benchmarks.truth import CASES, Plan, Score, plans, read, share, wired

from headscope.wired import Match, WiredHead, annotated_corpus, wire
from headscope.wired.decks import deck
from headscope.wired.features import HEAD_SLOT, ONE, SLOT, WORD, special
from headscope.wired.language import forms, sentences
from headscope.wired.truth import plain_truths

SHARP = 12.0
FAMILIES = ("bert", "gpt2", "llama", "t5")


def maps(family: str, heads: list[WiredHead], text: str, **knobs: object) -> np.ndarray:
    """[head, query, key] of the last of two layers of these heads."""
    made = wire(family, [heads, heads], **knobs)  # type: ignore[arg-type]
    made.network.set_attn_implementation("eager")
    ids = torch.tensor([made.tokenizer(text)["input_ids"]])
    with torch.inference_mode():
        last = made.network(input_ids=ids, output_attentions=True).attentions[1]
    return np.asarray(last[0].double())


@pytest.mark.parametrize("family", FAMILIES)
def test_a_wired_head_looks_where_it_is_wired_to(family: str) -> None:
    previous = WiredHead("previous", reach={-1: SHARP})
    tree = WiredHead("tree", (Match(HEAD_SLOT, SLOT, SHARP),))
    sentence = sentences(1, seed=3)[0]
    knobs = {"grouped": 2} if family == "llama" else {}
    before, heads = maps(family, [previous, tree], sentence.text, turned=True, **knobs)
    opens = int(family in ("bert", "llama"))
    at = np.arange(1, before.shape[0])
    assert (before[at, at - 1] > 0.99).all()
    place = {form.slot: n for n, form in enumerate(sentence.forms) if form.slot >= 0}
    for n, form in enumerate(sentence.forms):
        head = place.get(form.head_slot)
        if head is not None and (head < n or family in ("bert", "t5")):
            assert heads[n + opens, head + opens] > 0.99


def test_every_token_has_the_same_norm_so_that_layer_norms_do_nothing() -> None:
    made = wire("bert", [[WiredHead("even")]], turned=True)
    vectors = made.stream.embedded(made.stream.tokens)
    assert np.ptp(np.linalg.norm(vectors, axis=1)) < 1e-9
    assert abs(vectors.mean(1)).max() < 1e-9


def test_noise_wears_a_head_down() -> None:
    head, text = WiredHead("same", (Match(WORD, WORD, 8.0),)), sentences(1)[0].text
    shares = [np.diagonal(maps("t5", [head], text, noise=noise)[0]).mean() for noise in (0, 0.3, 3)]
    assert shares[0] > shares[1] > shares[2]


def test_a_form_tells_its_annotation_and_no_two_are_alike() -> None:
    known = [(f.tag, f.relation, f.slot, f.head_slot, f.entity, f.framed) for f in forms().values()]
    verbs = [one for one in known if one[0] in ("VERB", "NOUN")]
    assert len(verbs) == len(set(verbs))
    words = next(iter(annotated_corpus(1))).passages[0].words
    assert words is not None
    assert sum(word.head < 0 for word in words) == 1


@pytest.mark.parametrize("case", CASES, ids=" ".join)
def test_every_kind_of_label_has_two_variants_and_decoys(case: tuple[str, str]) -> None:
    heads = list(deck(*case, SHARP))
    assert len({head.name for head in heads}) == len(heads)
    said = Counter(
        kind
        for family, inputs in CASES
        for head in deck(family, inputs, SHARP)
        for kind in {must.kind for must in head.said}
    )
    assert min(said.values()) >= 2
    assert any(head.decoy for head in heads)


def test_plain_maps_know_the_threshold_from_both_sides() -> None:
    sep = special("[SEP]")
    heads = [WiredHead("reads", (Match(ONE, sep, SHARP),)), WiredHead("even")]
    true = plain_truths(wire("bert", [heads]), annotated_corpus(2, each=1))
    assert {"sep", "no sink", "no broad"} <= true[0, 0]
    assert {"broad", "no sep", "no narrow"} <= true[0, 1]


def test_a_sink_has_to_be_said_only_of_as_many_inputs_as_can_tell() -> None:
    network = wire("bert", [[WiredHead("rests", (Match(ONE, special("[SEP]"), SHARP),))]])
    few, many = (
        plain_truths(network, annotated_corpus(documents, each=3))[0, 0] for documents in (4, 60)
    )
    assert few >= {"threshold_sink", "no threshold_sink"}
    assert "threshold_sink" in many
    assert "no threshold_sink" not in many


@pytest.mark.parametrize("order", [0, 1])
def test_what_is_said_of_known_heads_is_true_in_any_order(order: int) -> None:
    names = (
        "previous token",
        "rests on sep",
        "reads cls",
        "det dependent_to_head",
        "nsubj dependent_to_head",
        "to noun",
        "same entity",
        "hashed pairs",
    )
    known = [head.name for head in deck("bert", "sentences", SHARP)]
    dealt = [known.index(name) for name in names]
    turned = tuple(dealt[order * 3 :] + dealt[: order * 3])
    control = "none" if order else "random"
    plan = Plan("few", "bert", "sentences", (2, 4), turned, control=control)
    report = read(plan)
    assert report.whole == Score(right=report.whole.right)
    assert report.whole.right >= 7


def test_networks_of_a_seed_are_the_same_and_deal_every_variant() -> None:
    one, again = list(plans(60, 1)), list(plans(60, 1))
    assert one == again
    dealt = {at for plan in one if plan.name.endswith("bert sentences") for at in plan.heads}
    assert dealt == set(range(len(list(deck("bert", "sentences", SHARP)))))
    first = wired(one[0]).network.state_dict()
    assert all(
        torch.equal(first[name], part) for name, part in wired(one[0]).network.state_dict().items()
    )


def test_the_python_of_the_page_finds_what_it_says() -> None:
    page = (Path(__file__).parents[1] / "docs/truth.md").read_text("utf-8")
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(compile(block, "truth.md", "exec"), names)
    assert names["previous"].values[0, 0] > 0.9
    assert names["previous"].values[0, 1] < 0.2
    assert names["found"].values[0].tolist() == pytest.approx([0.2, 1.0], abs=0.2)


def test_a_share_has_the_interval_of_clopper_and_pearson() -> None:
    assert share(20, 20) == "100 [83, 100] of 20"  # 1 − (0.05 / 2) ** (1 / 20) = 0.168
