"""Is a score what earlier parts wrote into its query and key, and is each part's share its own?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import transformers as T

import headscope as hs
from experiments.alignment.made import SENTENCES, fast, network_of
from experiments.circuits.decoders import ADDING, network, pairs, words
from experiments.circuits.made import saved, small
from headscope.errors import InputError, ModelError
from headscope.experiments.circuits.made_inputs import repeats
from headscope.model.language_model import LanguageModel, load_language_model
from headscope.model.model import Model, load
from headscope.wired import wire
from headscope.wired.decks import deck
from model.families.tiny import FAMILIES, UNLISTED, VOCABULARY, sharpened
from reference.circuits import normed

IDS = [5, 6, 7, 8, 9, 6, 7, 20, 31]
LAYER, HEAD, QUERY, KEY = 1, 2, 6, 4  # the key in reach of windows of four tokens
ENCODERS = ["BERT", "RoBERTa", "DistilBERT", "ALBERT", "ELECTRA", "ModernBERT", "OPT post-norm"]

SMALL = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    **dict.fromkeys(("bos_token_id", "eos_token_id"), 1),
}
REFUSED = ["MPNet", "DeBERTa v2"]


def named(name: str, made: Any) -> Model:
    return Model(made, words(), name, "", name)


def model_of(name: str, *, exact: bool = False) -> Model:
    if name in ADDING:
        return named(name, network(name, exact=exact))
    made = FAMILIES[name].build()
    return named(name, made.double() if exact else made)


def split(model: Model, query: int = QUERY, key: int = KEY) -> Any:
    return hs.prompts.score_parts(model, IDS, (LAYER, HEAD), query, key)


def maps(model: Model, ids: list[int]) -> torch.Tensor:
    """[head, query, key] of the layer, as transformers gives them."""
    with torch.no_grad():
        out = model.network(input_ids=torch.tensor([ids]), output_attentions=True)
    return out.attentions[LAYER][0].double()


# --- the whole ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*ADDING, *ENCODERS])
def test_the_parts_sum_to_the_score_less_others_that_the_networks_own_weights_tell(name):
    model = model_of(name)
    parts = split(model)
    own = maps(model, IDS)[HEAD, QUERY]
    scores = (own[own > 0] / own[KEY]).log()  # less that of the key
    if cap := parts.attrs["softcap"]:  # they level off, and the parts are of what comes before
        scores += cap * np.tanh(parts.attrs["score"] / cap)
        scores = cap * torch.atanh(scores / cap)
    target = (own[own > 0] == own[KEY]).nonzero().item()
    wanted = float(scores[target] - (scores.sum() - scores[target]) / (len(scores) - 1))
    sizes = np.abs(parts["query_side"]).sum().item()
    for side in ("query_contrast", "key_contrast"):
        assert float(parts[side].sum()) == pytest.approx(wanted, abs=1e-4 * sizes)
    for side, over in (("query_side", "key_part"), ("key_side", "query_part")):
        assert float(parts[side].sum()) == pytest.approx(parts.attrs["score"], abs=1e-4 * sizes)
        np.testing.assert_allclose(parts["parts"].sum(over), parts[side], atol=1e-5 * sizes)
    assert float(own[KEY]) == pytest.approx(parts.attrs["attention"], rel=1e-4)
    heads = [f"L1·H{head}" for head in range(1, 5)]
    assert [part for part in parts["part"].values if "H" in part][:4] == heads
    assert parts["part"].values[0] == "token embedding"
    assert {"MLP 1", "biases"} <= set(parts["part"].values)
    assert np.abs(parts["query_side"].sel(part=heads)).min() > 1e-6  # else nothing is tried


@pytest.mark.parametrize("name", sorted({*FAMILIES, *UNLISTED} - {*ADDING, *ENCODERS, *REFUSED}))
def test_the_parts_of_every_family_on_the_registry_sum_to_the_score(name):
    made = {**FAMILIES, **UNLISTED}[name].build()
    parts = hs.prompts.score_parts(named(name, made), IDS, (LAYER, HEAD), QUERY, KEY)
    sizes = np.abs(parts["parts"]).sum().item()
    assert float(parts["parts"].sum()) == pytest.approx(parts.attrs["score"], abs=1e-5 * sizes)
    assert {"token embedding", "L1·H1", "L1·H4", "MLP 1"} <= set(parts["part"].values)


@pytest.mark.parametrize("name", ["T5", "BART"])
def test_of_a_decoder_beside_an_encoder_cross_attention_is_a_part(name):
    model = load(network_of(name).double(), tokenizer=fast(), stack="decoder")
    parts = hs.prompts.score_parts(model, SENTENCES[0][0], (1, 2), 4, 2)
    assert float(parts["parts"].sum()) == pytest.approx(parts.attrs["score"], rel=1e-9)
    assert np.abs(parts["query_side"].sel(part=["L1·H1", "cross-attention 1"])).min() > 1e-6
    assert (parts.attrs["position_bias"] != 0) == (name == "T5")


@pytest.mark.parametrize("away", ["layers.0", "layers.1"])
def test_of_a_network_that_is_partly_on_the_disk_the_parts_are_the_same(tmp_path, away):
    folder, text = saved(tmp_path / "small", small("Llama")), "Monday cat dog Monday cat"
    prompt = [(text, " dog", " tree")]
    names = ("embed_tokens", "layers.0", "layers.1", "norm", "rotary_emb")
    places = {f"model.{name}": "disk" if name in (away, "norm") else "cpu" for name in names}
    model = load_language_model(folder, device_map={**places, "lm_head": "cpu"})
    wanted = hs.prompts.score_parts(folder, text, (LAYER, HEAD), 4, 2)
    direct = hs.prompts.direct_logits(folder, prompt)
    for _ in range(2):  # a pass leaves the weights where they were
        own = hs.prompts.score_parts(model, text, (LAYER, HEAD), 4, 2)
        np.testing.assert_allclose(own["parts"], wanted["parts"], atol=1e-6)
        other = hs.prompts.direct_logits(model, prompt)
        np.testing.assert_allclose(other["direct"], direct["direct"], atol=1e-6)


def test_layers_without_attention_are_parts_by_their_paths_and_experts_are_their_layer():
    lfm = T.Lfm2Config(**SMALL, layer_types=["full_attention", "conv", "full_attention"])
    model = named("LFM2", sharpened(T.Lfm2ForCausalLM(lfm)).eval())
    parts = hs.prompts.score_parts(model, IDS, "L3·H1", QUERY, KEY)
    own = ["MLP 1", "model.layers.1.conv.out_proj", "model.layers.1.feed_forward.w2", "biases"]
    assert parts["part"].values[-4:].tolist() == own
    assert float(parts["parts"].sum()) == pytest.approx(parts.attrs["score"], abs=1e-4)
    with pytest.raises(ModelError, match=r"conv\.out_proj: it is no layer with attention"):
        hs.prompts.direct_logits(LanguageModel(model, "causal"), pairs(5))
    mixtral = T.MixtralConfig(**SMALL, num_local_experts=4)
    model = named("Mixtral", sharpened(T.MixtralForCausalLM(mixtral)).eval())
    parts = hs.prompts.score_parts(model, IDS, "L3·H1", QUERY, KEY)
    assert parts["part"].values[-2:].tolist() == ["MLP 2", "biases"]
    assert float(parts["parts"].sum()) == pytest.approx(parts.attrs["score"], abs=1e-4)


@pytest.mark.parametrize("name", ["Llama", "GPT-2", "Gemma3", "BERT"])
def test_in_half_precision_the_parts_are_those_of_float32_but_for_its_rounding(name):
    model, half = model_of(name), model_of(name)
    wanted = split(model)["parts"]
    half.network.to(torch.bfloat16)
    own = split(half)["parts"]
    assert own["query_part"].values.tolist() == wanted["query_part"].values.tolist()
    np.testing.assert_allclose(own, wanted, atol=0.05 * np.abs(wanted).max().item())


@pytest.mark.parametrize("name", ["Llama", "GPT-2", "Gemma3", "BERT"])
def test_in_double_precision_they_sum_to_it_to_ten_digits(name):
    parts = split(model_of(name, exact=True))
    for total in (parts["parts"].sum(), parts["query_side"].sum(), parts["key_side"].sum()):
        assert float(total) == pytest.approx(parts.attrs["score"], rel=1e-9, abs=1e-9)


# --- part by part, from the weights and the norms' formulas -------------------------------------


class Slow:
    """The stream at one token as named vectors, through norms by their formula."""

    def __init__(self, net: Any) -> None:
        self.net, self.parts = net, dict[str, torch.Tensor]()

    def add(self, name: str, vector: torch.Tensor) -> None:
        self.parts[name] = self.parts.get(name, 0) + vector

    def pass_norm(self, norm: Any) -> Slow:
        kind = type(norm).__name__
        gain = 1 + norm.weight if "Gemma" in kind else norm.weight
        epsilon = getattr(norm, "variance_epsilon", getattr(norm, "eps", None))
        whole = sum(self.parts.values())
        out = Slow(self.net)
        for name, part in self.parts.items():
            out.add(name, normed(part, whole, gain, centred=kind == "LayerNorm", epsilon=epsilon))
        if getattr(norm, "bias", None) is not None:
            out.add("biases", norm.bias)
        return out

    def take(self, other: Slow) -> None:
        for name, part in other.parts.items():
            self.add(name, part)


def layout(net: Any) -> dict[str, Any]:
    kind = net.config.model_type
    if kind == "gpt2":
        one, two = net.transformer.h
        tables = {
            "token embedding": net.transformer.wte,
            "position embedding": net.transformer.wpe,
        }
        return {"embed": tables, "project": one.attn.c_proj, "mlp": one.mlp, "before": two.ln_1}
    if kind == "bert":
        one, two = net.encoder.layer
        tables = {
            "token embedding": net.embeddings.word_embeddings,
            "position embedding": net.embeddings.position_embeddings,
            "type embedding": net.embeddings.token_type_embeddings,
        }
        return {
            "embed": tables,
            "first": net.embeddings.LayerNorm,
            "project": one.attention.output.dense,
            "behind": one.attention.output.LayerNorm,
            "mlp": one.output.dense,
            "last": one.output.LayerNorm,
            "query": two.attention.self.query,
            "key": two.attention.self.key,
        }
    one, two = net.model.layers
    return {
        "embed": {"token embedding": net.model.embed_tokens},
        "project": one.self_attn.o_proj,
        "attention_norm": one.post_attention_layernorm if kind == "gemma3_text" else None,
        "mlp": one.mlp,
        "mlp_norm": getattr(one, "post_feedforward_layernorm", None),
        "before": two.input_layernorm,
        "query": two.self_attn.q_proj,
        "key": two.self_attn.k_proj,
        "query_norm": getattr(two.self_attn, "q_norm", None),
        "key_norm": getattr(two.self_attn, "k_norm", None),
    }


def stream_of(net: Any, at: int) -> Slow:
    """What layer 1 reads at a token."""
    where, kept = layout(net), dict[Any, tuple[torch.Tensor, torch.Tensor]]()
    watched = [*where["embed"].values(), where["project"], where["mlp"]]
    hooks = [
        m.register_forward_hook(lambda m, a, out: kept.update({m: (a[0], out)})) for m in watched
    ]
    with torch.no_grad():
        net(input_ids=torch.tensor([IDS]))
    for hook in hooks:
        hook.remove()
    stream = Slow(net)
    for name, table in where["embed"].items():
        stream.add(name, kept[table][1][0, at])
    if "first" in where:
        stream = stream.pass_norm(where["first"])
    module, attention = where["project"], Slow(net)
    matrix = module.weight if net.config.model_type == "gpt2" else module.weight.T
    for head in range(4):
        rows = slice(8 * head, 8 * head + 8)
        attention.add(f"L1·H{head + 1}", kept[module][0][0, at, rows] @ matrix[rows])
    if module.bias is not None:
        attention.add("biases", module.bias)
    norm = where.get("attention_norm")
    stream.take(attention if norm is None else attention.pass_norm(norm))
    if "behind" in where:
        stream = stream.pass_norm(where["behind"])
    mlp, norm = Slow(net), where.get("mlp_norm")
    mlp.add("MLP 1", kept[where["mlp"]][1][0, at])
    stream.take(mlp if norm is None else mlp.pass_norm(norm))
    return stream.pass_norm(where["last"] if "last" in where else where["before"])


def turned(vector: torch.Tensor, at: int, theta: float) -> torch.Tensor:
    """Rotary positions by their formula (Su et al. 2021), halves as Llama pairs them."""
    half = len(vector) // 2
    angle = at * theta ** (-torch.arange(half, dtype=torch.float64) / half)
    a, b = vector[:half], vector[half:]
    return torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()])


def vector_of(net: Any, side: str, at: int) -> dict[str, torch.Tensor]:
    """What each part adds to the query or key of a token."""
    where, gpt2 = layout(net), net.config.model_type == "gpt2"
    shared = 1 if side == "query" else 4 // getattr(net.config, "num_key_value_heads", 4)
    head = HEAD // shared
    rows = slice(8 * head, 8 * head + 8)
    stream, out = stream_of(net, at), Slow(net)
    if gpt2:
        module = net.transformer.h[1].attn.c_attn
        third = slice(0, 32) if side == "query" else slice(32, 64)
        matrix, bias = module.weight[:, third][:, rows], module.bias[third][rows]
    else:
        matrix, bias = where[side].weight.T[:, rows], where[side].bias
        bias = None if bias is None else bias[rows]
    for name, part in stream.parts.items():
        out.add(name, part @ matrix)
    if bias is not None:
        out.add("biases", bias)
    if where.get(f"{side}_norm") is not None:
        out = out.pass_norm(where[f"{side}_norm"])
    rope = getattr(net.config, "rope_parameters", None)
    if rope:
        theta = rope.get("full_attention", rope)["rope_theta"]
        return {name: turned(part, at, theta) for name, part in out.parts.items()}
    return out.parts


@pytest.mark.parametrize("name", ["Llama", "GPT-2", "Gemma3", "BERT"])
def test_each_pair_of_parts_is_what_weights_and_formulas_make_of_it(name):
    model = model_of(name, exact=True)
    parts, config = split(model)["parts"], model.network.config
    model.network.requires_grad_(False)
    queries, keys = (
        vector_of(model.network, side, at) for side, at in (("query", QUERY), ("key", KEY))
    )
    scaling = 8**-0.5 / (2 if name == "GPT-2" else 1)  # this one divides by the layer's number
    if name == "Gemma3":
        scaling = config.query_pre_attn_scalar**-0.5
    for u in parts["query_part"].values:
        for w in parts["key_part"].values:
            zero = torch.zeros(8, dtype=torch.float64)
            wanted = float(queries.get(u, zero) @ keys.get(w, zero)) * scaling
            # transformers computes sines and cosines in float32
            assert float(parts.sel(query_part=u, key_part=w)) == pytest.approx(wanted, abs=3e-6)
    assert set(queries) <= set(parts["query_part"].values)


# --- known circuits ----------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_of_a_planted_induction_head_the_previous_token_head_wrote_the_key(family):
    heads = {head.name: head for head in deck(family, "circuits", 10.0)}
    layers = [
        [heads["same token"], heads["previous token, noted"]],
        [heads["evenly, copied"], heads["induction"]],
    ]
    made = wire(family, layers, turned=True, noise=0.02)
    model = hs.load(made.network, tokenizer=made.tokenizer)
    mean = hs.prompts.mean_score_parts(model, (1, 1), sequences=10, length=12)
    whole = float(mean["contrast"])
    assert whole > 10
    for side, writer in (("query_contrast", "token embedding"), ("key_contrast", "L1·H2")):
        own = mean[side].to_series()
        assert own.idxmax() == writer
        assert mean[f"{side}_ci_low"].sel(part=writer) > 0.5 * whole
        assert own[writer] > 0.9 * whole
        assert own.drop(writer).abs().max() < 0.2 * whole
    # Where a head only attends evenly, no part sets the key apart.
    even = hs.prompts.mean_score_parts(model, (1, 0), sequences=10, length=12)
    assert abs(float(even["contrast"])) < 0.1 * whole


# --- means -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["Qwen3", "BERT", "GPT-2"])
def test_the_mean_over_pairs_is_that_of_the_single_scores(name):
    model = model_of(name)
    rng = np.random.default_rng(0)
    texts = [rng.integers(5, VOCABULARY, size).tolist() for size in (7, 4, 9, 6)]
    places = [[(5, 2), (-1, 0), (4, 2)], [(3, 1)], [], [(4, 4)]]
    inputs = list(zip(texts, places, strict=True))
    mean = hs.prompts.mean_score_parts(model, "1.2", inputs, batch_tokens=18)
    singles = [
        hs.prompts.score_parts(model, text, (LAYER, HEAD), *pair)
        for text, pairs in inputs
        for pair in pairs
    ]
    for side in ("query_side", "key_side", "query_contrast", "key_contrast"):
        wanted = np.mean([one[side] for one in singles], 0)
        np.testing.assert_allclose(mean[side], wanted, atol=1e-5)
    for total in ("score", "contrast"):
        wanted = np.mean([one.attrs[total] for one in singles])
        assert float(mean[total]) == pytest.approx(wanted, abs=1e-5)
    assert (mean.attrs["n"], mean.attrs["pairs"]) == (4, 5)
    assert "4 inputs: values without intervals" in mean.attrs["notes"]
    assert np.isnan(mean["query_side_ci_low"]).all()


@pytest.mark.parametrize(("kind", "step"), [("induction", 1), ("duplicate_token", 0)])
def test_targets_of_repeated_tokens_are_the_copy_or_what_came_after_it(kind, step):
    model = model_of("Llama")
    made = repeats(model, sequences=10, length=8, seed=3)
    pairs = []
    for ids in made.ids.tolist():
        half = range(made.opening + made.length, len(ids) - 1)
        known = [(i, ids.index(ids[i])) for i in half]
        # the last token of the first half was not followed by another of them
        pairs.append((ids, [(i, j + step) for i, j in known if ids[j + 1] == ids[i + 1]]))
    shown, own = (
        hs.prompts.mean_score_parts(model, (1, 2), inputs, sequences=10, length=8, seed=3)
        for inputs in (kind, pairs)
    )
    np.testing.assert_allclose(shown["key_side"], own["key_side"], atol=1e-5)
    assert shown.attrs["n"] == 10
    low, high = shown["key_side_ci_low"], shown["key_side_ci_high"]
    heads = shown["part"].str.contains("H")
    assert ((low < shown["key_side"]) & (shown["key_side"] < high))[heads].all()


# --- what is refused ---------------------------------------------------------------------------


def test_a_first_token_has_nothing_to_be_compared_with():
    model = model_of("Llama")
    parts = split(model, 0, 0)
    assert np.isnan(parts["query_contrast"]).all()
    assert np.isnan(parts.attrs["contrast"])
    assert float(parts["query_side"].sum()) == pytest.approx(parts.attrs["score"], rel=1e-3)
    with pytest.raises(InputError, match="sees no other key"):
        hs.prompts.mean_score_parts(model, (1, 2), [(IDS, [(0, 0)])])


@pytest.mark.parametrize(
    ("text", "head", "pair", "said"),
    [
        (IDS, (1, 2), (3, 4), "token 3 cannot see token 4 in this layer"),
        (IDS, "L9·H1", (3, 2), "no head L9·H1: the model has 2 layers of 4 heads"),
        (IDS, "second", (3, 2), "wanted layer and head"),
        (IDS, (1, 2), (9, 2), "no token 9: the text has 9 tokens"),
        (IDS, (1, 2), (3, -10), "no token -10"),
        ("  ", (1, 2), (0, 0), "found an empty text"),
        ([], (1, 2), (0, 0), "as a text; wanted a text, or the ids"),
        ([1.5], (1, 2), (0, 0), "as a text; wanted a text, or the ids"),
        ([5, -1], (1, 2), (0, 0), "as a text; wanted a text, or the ids"),
        ([5, VOCABULARY], (1, 2), (0, 0), f"of ids below {VOCABULARY}"),
    ],
)
def test_what_is_not_there_is_refused_by_name(text, head, pair, said):
    with pytest.raises(InputError, match=said):
        hs.prompts.score_parts(model_of("Llama"), text, head, *pair)


def test_a_key_behind_a_window_is_not_seen():
    with pytest.raises(InputError, match="token 8 cannot see token 1"):
        split(model_of("Mistral"), 8, 1)


def test_pairs_of_no_known_kind_and_no_pairs_are_refused():
    model = model_of("Llama")
    with pytest.raises(InputError, match="no pairs called 'copies'; there are induction,"):
        hs.prompts.mean_score_parts(model, (1, 2), "copies")
    with pytest.raises(InputError, match="found no pairs of query and key"):
        hs.prompts.mean_score_parts(model, (1, 2), [(IDS, [])])


def test_a_stream_that_is_bent_between_layers_is_refused():
    model = model_of("Llama")
    first = model.network.model.layers[0]
    hook = first.register_forward_hook(lambda _m, _a, out: out + 0.1 * out.square())
    try:
        with pytest.raises(ModelError, match="its parts differ from the whole"):
            split(model)
    finally:
        hook.remove()
    assert split(model).attrs["score"]  # and nothing of it is left behind


def test_what_is_no_norm_before_the_queries_is_refused_by_name():
    model = model_of("Llama")
    model.network.model.layers[LAYER].input_layernorm = torch.nn.Tanh()
    with pytest.raises(ModelError, match="input_layernorm: Tanh is no LayerNorm or RMSNorm"):
        split(model)


@pytest.mark.parametrize("name", REFUSED)
def test_a_family_off_the_registry_is_refused(name):
    with pytest.raises(ModelError, match="outside transformers' registry"):
        split(model_of(name))


def test_the_network_is_left_as_it_was():
    model = model_of("Gemma2")
    net = model.network
    before, first = [p.requires_grad for p in net.parameters()], maps(model, IDS)
    hooks = sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in net.modules())
    split(model)
    assert [p.requires_grad for p in net.parameters()] == before
    assert sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in net.modules()) == hooks
    assert torch.equal(maps(model, IDS), first)
