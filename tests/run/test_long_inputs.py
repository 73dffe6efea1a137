"""Runs over inputs that are read without whole maps: the same numbers, and what is said of them."""

import copy
import resource
from types import SimpleNamespace

import numpy as np
import psutil
import pytest
import torch
import xarray as xr
from transformers import LlamaConfig, LlamaModel, XLMConfig, XLMModel

import headscope as hs
from headscope.analyses.surface.measure import Surface
from headscope.corpus.document import Document, Frame, FrameElement, Mention, Passage, Word
from headscope.errors import HeadscopeError, InputError
from headscope.report.run_facts import facts
from headscope.run.memory import MAPS_AT_ONCE, free_bytes, what_fits
from model.families.tiny import sharpened
from model.families.tokenizers_made import wordpiece

TEXT = "the cat sat. a cat, b the a b cats. b a the, a cat cats. " * 3
CORPUS = [TEXT, "the a b cats. " * 9, "b a the, a cat."]
WAYS = (
    "surface",
    "entropy",
    "norms",
    "mixing",
    "distance",
    "sinks",
    "divergence",
    "patterns",
    "examples",
    "flow",
    "neurons",
)


@pytest.fixture(scope="module")
def decoder():
    torch.manual_seed(0)
    tokenizer = wordpiece()
    shape = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2}
    config = LlamaConfig(vocab_size=len(tokenizer), **shape, **heads)
    return hs.load(sharpened(LlamaModel(config)).eval(), tokenizer=tokenizer)


def made(model, **more):
    return hs.atlas(model, CORPUS, control="none", max_length=48, **more)


def test_a_run_says_the_same_however_its_inputs_are_read(decoder):
    """Sums, rows and chosen pairs; and, in a decoder, the maps of the first tokens."""
    whole, long = (made(decoder, analyses=WAYS, whole_maps=n) for n in (48, 8))
    for name in WAYS:
        wanted, found = whole[name], long[name]
        assert set(wanted) == set(found)
        for each in wanted.data_vars:
            one, other = wanted[each].values, found[each].values
            if one.dtype.kind == "f":
                np.testing.assert_allclose(
                    other, one, rtol=1e-4, atol=2e-5, err_msg=f"{name}.{each}"
                )
            else:
                np.testing.assert_array_equal(other, one, err_msg=f"{name}.{each}")
    said = long.manifest["long"]
    assert said.startswith("inputs of more than 8 tokens (up to 48)")
    assert said.endswith("examples, flow, neurons, patterns: the first 512 tokens of these alone")
    assert [fact.value for fact in facts(long.tree, long.manifest) if fact.label == "Long inputs"]
    assert "long" not in whole.manifest


def whole_document(name, words):
    """One passage of so many words: a tree, a chain of mentions, and frames far apart."""
    random = np.random.default_rng(len(name))
    forms = random.choice(["the", "cat", "a", "b", "cats", "."], words)
    heads = np.maximum(np.arange(words) - random.integers(1, 90, words), -1)
    relations = random.choice(["nsubj", "det", "obj"], words)
    told = tuple(
        Word(str(form), "NOUN", "NN", int(head), "root" if head < 0 else str(relation))
        for form, head, relation in zip(forms, heads, relations, strict=True)
    )
    mentions = tuple(
        Mention(f"e{at % 7}", at, at, at, ("pronoun", "proper", "nominal")[at % 3])
        for at in range(0, words, 9)
    )
    frames = tuple(
        Frame("Moving", at, at, (FrameElement("Theme", at - 70, at - 69),))
        for at in range(70, words, 31)
    )
    passage = Passage(name, words=told, mentions=mentions, frames=frames)
    return Document(name, (passage,))


def test_words_of_whole_documents_are_read_alike(decoder, monkeypatch):
    """Trees, coreference and frames in inputs of 300 tokens: accuracies to the bit."""
    monkeypatch.setattr(decoder.tokenizer, "model_max_length", 1024)
    texts = hs.corpus.MemoryCorpus([whole_document(f"text {n}", 260 + 10 * n) for n in range(5)])
    names = ("dependency", "coreference", "frames")
    asked = {"analyses": names, "control": "none", "max_length": 512}
    whole, long = (hs.atlas(decoder, texts, **asked, whole_maps=n) for n in (512, 64))
    assert whole.manifest["counts"]["examples"] == 5
    assert "up to 3" in long.manifest["long"]
    for name in names:
        for each, wanted in whole[name].data_vars.items():
            found = long[name][each].values
            if name != "frames" and "weight" not in str(each):
                np.testing.assert_array_equal(found, wanted, err_msg=f"{name}.{each}")
            elif wanted.dtype.kind == "f":
                np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=1e-6, err_msg=each)
    assert whole["coreference"]["count"].sel(mention_type="all") > 50
    assert (whole["dependency"].accuracy > 0).any()
    assert (whole["frames"].score_reversed > 0).all()  # targets stand behind the elements


def test_two_decoders_are_as_alike_however_their_inputs_are_read(decoder):
    """Maps of their first tokens are those that are looked at whole, and that are shown."""
    other = copy.deepcopy(decoder.network)
    other.layers[1].self_attn.q_proj.weight.data *= 1.3
    other = hs.load(other, tokenizer=decoder.tokenizer)
    asked = {"control": None, "max_length": 48, "analyses": ("surface", "norms", "patterns")}
    whole, long = (hs.compare(decoder, other, CORPUS, **asked, whole_maps=n) for n in (48, 8))
    for path in ("similarity", "change", "norms", "base/patterns", "examples"):
        assert set(whole.tree[path]) == set(long.tree[path])
        for name, wanted in whole.tree[path].data_vars.items():
            found = long.tree[path][name].values
            if wanted.dtype.kind == "f":
                np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=2e-5, err_msg=name)
    assert whole["similarity"].cosine[1].max() < 1 - 1e-4
    assert (long["similarity"].cosine[0] == 1).all()


def test_a_family_outside_the_registry_has_whole_maps_of_any_length(decoder, monkeypatch):
    """Once analyses of whole maps were shown these, and the first tokens alone."""
    monkeypatch.setattr("headscope.run.compute.LEADING", 16)
    torch.manual_seed(0)
    shape = {"emb_dim": 32, "n_layers": 1, "n_heads": 4, "max_position_embeddings": 64}
    network = XLMModel(XLMConfig(vocab_size=len(decoder.tokenizer), **shape)).eval()
    model = hs.load(network, tokenizer=decoder.tokenizer)
    assert model.fallback
    asked = {"analyses": ("surface", "patterns"), "limit": 1}
    whole, same = (made(model, **asked, whole_maps=n) for n in (48, 8))
    assert "long" not in same.manifest
    for name in asked["analyses"]:
        xr.testing.assert_identical(whole[name], same[name])


def test_divergence_of_drawn_queries_is_right_in_the_mean(decoder, monkeypatch):
    """Over many seeds, to four standard errors of their spread."""
    unasked = "headscope.analyses.divergence.measure.cluster_results"  # most of the time
    monkeypatch.setattr(unasked, lambda *_, **__: ({}, {}))
    asked = {"analyses": ("divergence",), "limit": 1}
    upper = np.triu_indices(8, 1)

    def js(queries, **more):
        run = made(decoder, **asked, options={"divergence": {"queries": queries}}, **more)
        return run["divergence"].js.values[upper]

    wanted = js("all")
    drawn = np.stack([js(5, whole_maps=8, seed=seed) for seed in range(24)])
    error = drawn.std(0, ddof=1) / len(drawn) ** 0.5
    assert (error > 0).all()
    assert np.abs(drawn.mean(0) - wanted).max() < 4 * error.max()


def test_what_needs_whole_maps_is_left_out_of_an_encoder_and_said_so(tiny):
    """Its first tokens look at later ones too: their maps would not be whole."""
    run = made(tiny, whole_maps=8, limit=1)
    assert not {"patterns", "flow", "neurons", "examples"} & set(run)
    assert {"surface", "entropy", "norms", "divergence"} <= set(run)
    assert "flow, neurons, patterns: left out" in run.manifest["long"].replace("examples, ", "")
    with pytest.raises(InputError, match=r"patterns need whole maps.*--whole-maps 48"):
        made(tiny, whole_maps=8, limit=1, analyses=("entropy", "patterns"))


@pytest.mark.parametrize(
    ("whole", "way", "wanted"),
    [(48, "with whole", "--max-length 16 "), (8, "without whole", "--max-length 16 ")],
)
def test_memory_that_runs_out_says_what_was_read_and_what_fits(
    decoder, monkeypatch, tmp_path, whole, way, wanted
):
    """An allocation that no machine grants, in the second shard; the first one is kept."""
    given, kept = Surface.observe, []

    def too_much(self, layer, batch):
        kept.extend(tmp_path.glob("run/shards/*/*"))
        if kept:
            torch.empty(1 << 60)
        given(self, layer, batch)

    monkeypatch.setattr(Surface, "observe", too_much)
    told = (
        rf"out of memory .*allocate.*; found 1 x 48 tokens in a batch, read {way} maps; inputs of "
        rf"up to 48 tokens were read before; finished shards are kept; wanted {wanted}"
    )
    asked = {"analyses": ("surface",), "output": tmp_path / "run", "shard_tokens": 1}
    with pytest.raises(HeadscopeError, match=told):
        made(decoder, batch_tokens=1, whole_maps=whole, **asked)
    assert kept


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_nan_in_half_precision_is_said_and_loses_nothing(decoder, tmp_path, dtype):
    """One word is no number; only the second shard holds it."""
    network = copy.deepcopy(decoder.network).to(dtype)
    model = hs.load(network, tokenizer=decoder.tokenizer)
    network.embed_tokens.weight.data[decoder.tokenizer.convert_tokens_to_ids("b")] = np.nan
    told = rf"of shard 2 holds NaN: the network computed in {dtype} gave NaN for .*shards are kept"
    with pytest.raises(HeadscopeError, match=told):
        hs.atlas(
            model,
            ["the cat, a cat. " * 9, TEXT],
            control="none",
            whole_maps=8,
            max_length=48,
            analyses=("entropy", "norms"),
            output=tmp_path / "run",
            shard_tokens=1,
        )
    assert len(list(tmp_path.glob("run/shards/*/*"))) == 1


def test_what_fits_is_half_or_what_the_maps_leave_room_for():
    """By hand: maps of 1,000 tokens and 12 heads are 48 MB, held so many times."""
    heads, layer = 4 * 12, 48_000_000 * MAPS_AT_ONCE
    assert what_fits(8, 1000, maps=heads, free=None) == "--batch-tokens 4000 or less"
    assert what_fits(8, 1000, maps=heads, free=3 * layer) == "--batch-tokens 3000 or less"
    assert what_fits(8, 1000, maps=heads, free=layer // 4).startswith("--max-length 496 or less")
    assert what_fits(1, 1000, maps=heads, free=layer // 100).startswith("--max-length 96 or")
    assert what_fits(1, 1000, maps=0, free=layer // 100).startswith("--max-length 496 or")
    assert "more memory" in what_fits(1, 1000, maps=heads, free=0)


def test_what_a_device_has_left_is_what_the_system_says(monkeypatch):
    """Of an accelerator also what torch holds for later."""
    said = {"mem_get_info": (5, 99), "memory_reserved": 8, "memory_allocated": 6}
    told = SimpleNamespace(**{name: lambda _, one=one: one for name, one in said.items()})
    monkeypatch.setattr(torch, "get_device_module", lambda _: told)
    assert free_bytes(torch.device("cuda")) == 5 + 8 - 6
    host = torch.device("cpu")
    assert free_bytes(host) == pytest.approx(psutil.virtual_memory().available, rel=0.2)
    before = resource.getrlimit(resource.RLIMIT_AS)
    least = psutil.Process().memory_info().vms + (1 << 24)
    try:
        resource.setrlimit(resource.RLIMIT_AS, (least, before[1]))
        assert free_bytes(host) <= 1 << 24
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
