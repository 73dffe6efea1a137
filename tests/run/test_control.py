"""A run is held against networks without training: what is true of them is said of no head."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
import transformers
import xarray as xr
from safetensors.torch import load_file, save_file

import headscope as hs
from headscope.claims.control import CONTROL, controls, sample_words
from headscope.claims.head_labels import all_claims, head_labels
from headscope.claims.head_metrics import control_ranges
from headscope.claims.headline import NO_CONTROL, headline
from headscope.cli.main import group
from headscope.errors import InputError, ModelError
from headscope.heads.head_card import card_text, head_card
from headscope.heads.tables import label_table, tidy
from headscope.model.threads import threads_of_torch
from headscope.report.build import render
from headscope.run.control import (
    LEAST,
    MOST_SHUFFLED,
    SHARE,
    control_of,
    few_steps,
    rotated,
    shuffled,
    untrained,
)
from headscope.run.mixed_weights import MOST_DEALT, SOME
from headscope.run.store import open_run
from headscope.wired import WiredHead, wire
from made_models import nudged, small_bert

QUICK = {"analyses": ("surface", "entropy"), "limit": 6, "replicates": 10}
STOCK = hs.Execution(linears="stock", threads=1)


def read(model, **more):
    return hs.atlas(model, hs.demo_corpus(), execution=STOCK, **QUICK, **more)


@pytest.fixture(scope="module")
def unknowing(tmp_path_factory):
    """Six layers of four heads with random weights."""
    return hs.load(str(small_bert(tmp_path_factory.mktemp("unknowing") / "model", layers=6)))


@pytest.fixture(scope="module")
def held(unknowing):
    return read(unknowing, control="random")


@pytest.fixture(scope="module")
def free(unknowing):
    return read(unknowing, control="none")


@pytest.fixture
def no_pictures(monkeypatch):
    """Pages without pictures, which take most of their time."""
    monkeypatch.setattr("headscope.report.build.pictures", dict)


def labelled(run):
    return [bool(one.labels) for one in head_labels(run.tree).values()]


def test_an_atlas_has_a_control_by_default(no_control):
    assert no_control == "random"


@pytest.mark.usefixtures("no_pictures")
def test_a_random_network_gets_next_to_no_labels_and_the_report_says_so_first(held, free):
    at_all, surely = labelled(free), labelled(held)
    assert sum(at_all) > 0.7 * len(at_all)  # by thresholds alone
    assert sum(surely) <= 0.05 * len(surely)
    page = render(held.tree, held.manifest)
    assert '<p class="lede">This looks like an untrained model: ' in page
    assert 'class="findings"' not in page
    free_page = render(free.tree, free.manifest)
    assert "untrained model" not in free_page
    assert 'class="findings"' in free_page
    assert head_labels(held.tree)[0, 0].closest  # what it would have been called


@pytest.mark.usefixtures("no_pictures")
def test_three_documents_give_values_and_the_report_says_why_nothing_is_claimed(demo):
    few = {**QUICK, "limit": 3, "analyses": ("surface",), "control": "none"}
    run = hs.atlas(demo, hs.demo_corpus(), execution=STOCK, **few)
    attention = run.tree["surface"]["attention"].sel(target="previous").values
    assert attention.max() > 0.5
    assert not any(labelled(run))
    page = render(run.tree, run.manifest)
    assert '<p class="lede">Values are shown, and nothing is claimed of any head' in page
    assert "this run read 3 documents." in page


def test_a_trained_model_keeps_the_labels_that_are_its_own(demo):
    run = read(demo, control="random")
    kinds = {label.kind for one in head_labels(run.tree).values() for label in one.labels}
    assert {"previous", "next", "cls"} <= kinds
    assert "broad" not in kinds
    assert "untrained model" not in headline(run.tree)


def test_without_a_control_nothing_changes(held, free):
    assert CONTROL not in free.tree.children
    for name in free:
        xr.testing.assert_identical(free[name], held[name])
    assert "control" not in free.manifest["spec"]
    assert "control" not in label_table(free.tree)
    assert headline(free.tree) == NO_CONTROL


def test_the_control_lies_in_a_group_that_no_reader_takes_for_an_analysis(held, free):
    assert list(held) == list(free)
    assert len(held) == len(free)
    assert set(tidy(held.tree)) == set(tidy(free.tree))
    names = [network.attrs["model"] for network in controls(held.tree)]
    assert names[:3] == ["untrained", "shuffled", "shuffled 2"]  # there are few heads in each
    assert set(controls(held.tree)[0].children) == {"surface", "entropy"}


def test_a_head_stands_beside_the_heads_of_the_control(held, free):
    low, high = control_ranges(held.tree)["entropy.entropy.all"]
    assert 0 < low < high
    told = card_text(held.tree, head_card(held.tree, 0, 0))
    assert "heads without training" in told
    assert "heads without training" not in card_text(free.tree, head_card(free.tree, 0, 0))


def test_the_control_is_the_same_again_and_kept_in_the_folder(unknowing, held, tmp_path):
    read(unknowing, control="random", output=tmp_path / "run")
    kept = open_run(tmp_path / "run")
    for network, again in zip(controls(held.tree), controls(kept.tree), strict=True):
        xr.testing.assert_identical(network.to_dataset(), again.to_dataset())
        xr.testing.assert_identical(network["entropy"].to_dataset(), again["entropy"].to_dataset())


def test_networks_of_the_control_know_nothing_and_keep_their_scale(tiny):
    own = tiny.network.state_dict()
    large = set()
    for name, tensor in shuffled(tiny.network).state_dict().items():
        one, other = (each.flatten().sort().values for each in (tensor, own[name]))
        if tensor.numel() <= MOST_DEALT:
            assert one.equal(other)
        else:  # so many draws from some of its entries
            large.add(name)
            assert torch.isin(one, other).all()
            torch.testing.assert_close(one.std(), other.std(), rtol=0.02, atol=0)
            assert one.unique().numel() > 0.9 * SOME
        assert len(tensor.shape) < 2 or not tensor.equal(own[name])
    assert large == {"embeddings.word_embeddings.weight"}
    drawn = untrained(tiny.network).state_dict()
    weights = [name for name in own if own[name].ndim > 1 and own[name].is_floating_point()]
    assert not any(drawn[name].equal(own[name]) for name in weights)


def test_what_is_added_for_a_distance_is_the_same_for_all_in_a_shuffled_network() -> None:
    """In any other order some head of T5 would look at the previous token, and take that label."""
    heads = [WiredHead("previous token", reach={-1: 8.0}), WiredHead("evenly")]
    network = wire("t5", [heads]).network
    (name,) = (name for name in network.state_dict() if "relative_attention_bias" in name)
    own, dealt = (one.state_dict()[name] for one in (network, shuffled(network)))
    assert len(own.unique()) > 1
    torch.testing.assert_close(dealt, own.mean(0).expand_as(own))


def test_a_rotated_network_stretches_as_much_in_other_directions(tiny) -> None:
    """A trained network whose matrices were rotated had "clear clusters" of heads."""
    own, embeddings, matrices = tiny.network.state_dict(), 0, 0
    for name, tensor in rotated(tiny.network).state_dict().items():
        if tensor.ndim == 2 and "embeddings" not in name:
            spectra = [torch.linalg.svdvals(each) for each in (tensor, own[name])]
            torch.testing.assert_close(*spectra, rtol=1e-4, atol=1e-5)
            apart = torch.nn.functional.cosine_similarity(tensor.flatten(), own[name].flatten(), 0)
            assert abs(apart) < 0.1
            matrices += 1
        else:
            assert tensor.equal(own[name])
            embeddings += "embeddings" in name
    assert matrices
    assert embeddings


def test_a_network_of_few_steps_is_the_same_again_and_another_than_before(tiny) -> None:
    before, after, again = (
        make(tiny.network).state_dict() for make in (untrained, few_steps, few_steps)
    )
    query = next(name for name in before if name.endswith("query.weight"))
    assert not after[query].equal(before[query])
    size = float((after[query] - before[query]).abs().max() / before[query].std())
    assert 1 < size <= 3.1  # three steps, each of an entry's usual size
    for name, tensor in after.items():
        assert tensor.equal(again[name])


@pytest.mark.parametrize("make", [untrained, shuffled, rotated, few_steps])
def test_a_network_of_the_control_is_the_same_for_any_number_of_threads(tiny, make) -> None:
    """The directions of `rotated` came from LAPACK in as many threads as the run has."""
    networks = []
    for threads in (1, 2):
        with threads_of_torch(threads):
            networks.append(make(tiny.network).state_dict())
    for name, tensor in networks[0].items():
        assert tensor.equal(networks[1][name])


@pytest.mark.parametrize("tied", [True, False])
def test_a_network_with_an_output_head_is_rotated_and_trained_as_its_body_is(tied) -> None:
    """The head turned the embedding with it; logits were taken for vectors, and nothing trained."""
    shape = {"n_embd": 32, "n_layer": 1, "n_head": 2, "n_positions": 32, "vocab_size": 60}
    config = transformers.GPT2Config(**shape, tie_word_embeddings=tied)
    network = transformers.GPT2LMHeadModel(config).eval()
    own, turned = network.state_dict(), rotated(network).state_dict()
    assert turned["transformer.wte.weight"].equal(own["transformer.wte.weight"])
    assert turned["lm_head.weight"].equal(own["lm_head.weight"]) == tied
    assert not turned["transformer.h.0.attn.c_attn.weight"].equal(
        own["transformer.h.0.attn.c_attn.weight"]
    )
    before, after = (make(network).state_dict() for make in (untrained, few_steps))
    assert not after["transformer.h.0.attn.c_attn.weight"].equal(
        before["transformer.h.0.attn.c_attn.weight"]
    )


def test_networks_for_pairs_of_heads_are_asked_nothing_else(tiny) -> None:
    control = control_of(tiny, "random")
    asked = control.asked(("surface", "divergence"))
    assert asked["rotated"] == asked["few steps"] == ("divergence",)
    assert asked["untrained"] == ("surface", "divergence")
    assert {"rotated", "few steps"}.isdisjoint(control.asked(("surface",)))


def test_a_model_held_against_nearly_itself_looks_untrained(tiny, tiny_place, tmp_path):
    run = read(tiny, control=nudged(tiny_place, tmp_path / "near"))
    assert not any(labelled(run))
    assert [network.attrs["model"] for network in controls(run.tree)] == ["model"]


@pytest.mark.parametrize("saved", [False, True])
def test_a_control_that_is_the_model_itself_is_refused_whatever_its_file(
    tiny, tiny_place, tmp_path, saved
):
    if saved:
        tensors = load_file(tiny_place / "model.safetensors")
        shutil.copytree(tiny_place, tmp_path / "same")
        tiny_place = tmp_path / "same"
        save_file(tensors, tiny_place / "model.safetensors", {"format": "pt", "of": "another day"})
    with pytest.raises(InputError, match="is the model itself: all weights are equal"):
        read(tiny, control=tiny_place)


def test_a_control_of_another_shape_is_refused(tiny, tmp_path):
    other = small_bert(tmp_path / "other", layers=3)
    with pytest.raises(ModelError, match=r"has layers 3; wanted .*: layers 2; give a model of"):
        read(tiny, control=other)


def test_the_command_takes_a_control(tiny_place, tmp_path, no_control):
    out = tmp_path / "run"
    assert no_control == "random"  # the command's own default
    how = ["--demo", "--limit", "1", "--analyses", "entropy", "--no-report", "--quiet"]
    how += ["--control", no_control]
    group(["atlas", str(tiny_place), *how, "-o", str(out)], standalone_mode=False)
    assert CONTROL in open_run(out).tree.children


# --- what it costs ----------------------------------------------------------------------------


def test_large_networks_read_few_tokens_of_short_runs_and_small_ones_as_many_as_before(
    tiny,
) -> None:
    control = control_of(tiny, "random")
    large = replace(control, size=1 << 27)
    whole = len(control.networks) - len(control.pairs)
    assert (large.tokens(1000), control.tokens(1000)) == LEAST
    assert large.tokens(1000, draws=True) == LEAST[1]  # intervals need documents
    for run in (10**5, 10**6):
        assert large.tokens(run) == control.tokens(run) <= SHARE * run / whole


def test_a_model_of_two_heads_gets_no_more_networks_than_pay() -> None:
    heads = [WiredHead("previous token", reach={-1: 8.0}), WiredHead("evenly")]
    made = wire("bert", [heads])
    names = list(control_of(hs.load(made.network, tokenizer=made.tokenizer), "random").networks)
    assert sum(name.startswith("shuffled") for name in names) == MOST_SHUFFLED


def test_of_long_inputs_a_control_reads_the_first_tokens_and_says_so(
    unknowing, monkeypatch, no_pictures
) -> None:
    for reads in ("readings", "corpus_run"):
        monkeypatch.setattr(f"headscope.run.{reads}.WINDOW", 64)
    words = [word.form for d in hs.demo_corpus() for p in d.passages for word in p.words or ()]
    texts = hs.corpus.MemoryCorpus([" ".join(words[at : at + 300]) for at in (0, 300, 600)])
    asks = {"analyses": ("surface", "entropy"), "replicates": 3, "control": "random"}
    run = hs.atlas(unknowing, texts, execution=STOCK, **asks)
    assert run.manifest["counts"]["tokens"] > 900
    attrs = controls(run.tree)[0].attrs
    assert (attrs["documents"], attrs["tokens"], attrs["window"]) == (3, 3 * 64, 64)
    said = "3 documents, 192 tokens (of inputs of more than 64 tokens the first 64)"
    assert sample_words(run.tree) == said
    assert said in render(run.tree, run.manifest)
    # [SEP] closes every part, so a control of it rests on [SEP] as often as on [CLS].
    surface = controls(run.tree)[0]["surface"]["attention"]
    assert float(surface.sel(target="sep").mean()) > 0


def test_the_part_that_is_read_says_the_same_of_labels_as_all_inputs(demo, monkeypatch) -> None:
    """On whole inputs of the demo, and on a part of them, every claim has the same threshold but
    for the interval that a share of so few inputs has.
    """
    asks = {"analyses": ("surface", "entropy", "patterns"), "control": "random"}
    part = hs.atlas(demo, hs.demo_corpus(), execution=STOCK, **asks)
    monkeypatch.setattr("headscope.run.control.Control.tokens", lambda *_, **__: 1 << 20)
    monkeypatch.setattr("headscope.run.control.STEP", 1)
    whole = hs.atlas(demo, hs.demo_corpus(), execution=STOCK, **asks)
    few, every = (controls(run.tree)[0].attrs for run in (part, whole))
    assert few["tokens"] < SHARE * every["tokens"] < every["tokens"] == 3385
    of = [{(c.kind, c.name): c.control for c in all_claims(run.tree)} for run in (part, whole)]
    assert of[0].keys() == of[1].keys()
    for claim, least in of[0].items():
        other = of[1][claim]
        error = 2 * np.sqrt(other * (1 - other) / few["examples"])
        assert np.isnan([least, other]).all() or abs(least - other) <= error
    assert labelled(part) == labelled(whole)
