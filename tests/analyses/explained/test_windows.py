"""Are rules held against what a layer lets queries see, and are some rows of long inputs read?"""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import transformers as T

import headscope as hs
from analyses.explained.test_explained import attention_like, every_rule, made_input, number
from experiments.circuits.decoders import network, words
from experiments.replay.made import FEW, STOCK, texts
from headscope.analyses.explained import long_inputs
from headscope.analyses.explained.long_inputs import LayersOfInput, queries_of
from headscope.analyses.explained.prediction import RuleMaps
from headscope.analyses.explained.rule_sums import RuleSums
from headscope.analyses.explained.rules import RESTS
from headscope.corpus.document import Example
from headscope.model.language_model import LanguageModel
from headscope.model.model import Model
from headscope.run.analysis import LEADING

WINDOW = 5


def within(size: int, window: int) -> torch.Tensor:
    """[query, key] the last tokens, so many, up to the query itself."""
    return torch.ones(size, size, dtype=torch.bool).tril().triu(1 - window)


def example(size: int, name: str = "one") -> Example:
    ids = np.arange(size)
    return Example(name, "document", ids, np.zeros_like(ids), np.zeros(size, bool))


@cache
def even_decoder() -> LanguageModel:
    """A decoder without queries: each head spreads over what it sees; one layer has a window."""
    kinds = ["sliding_attention", "full_attention"]
    made = network("Gemma2", exact=True, sliding_window=WINDOW, layer_types=kinds)
    for layer in made.model.layers:
        torch.nn.init.zeros_(layer.self_attn.q_proj.weight)
    return LanguageModel(Model(made, words(), "even", "", "even"), "causal")


@cache
def even_encoder() -> Model:
    """An encoder without queries; two of its three layers see five tokens to either side."""
    special = {
        "attn_implementation": "eager",
        "pad_token_id": 0,
        "cls_token_id": 1,
        "sep_token_id": 2,
    }
    size = {"vocab_size": 90, "hidden_size": 32, "intermediate_size": 48}
    shape = {"num_hidden_layers": 3, "num_attention_heads": 4, "local_attention": 2 * WINDOW}
    config = T.ModernBertConfig(**special, **size, **shape, bos_token_id=1, eos_token_id=2)
    made = T.ModernBertModel(config).double().eval()
    for layer in made.layers:
        torch.nn.init.zeros_(layer.attn.Wqkv.weight[: config.hidden_size])
    return Model(made, words(), "even", "", "even")


def test_a_rule_applies_where_a_layer_shows_some_of_its_keys():
    read = made_input(causal=True)
    whole, seen = RuleMaps.of(every_rule(), read), within(len(read), WINDOW)
    few = whole.within(seen)
    assert not few.rows[:, ~seen].any()
    total = few.rows.sum(-1)
    torch.testing.assert_close(total, few.applies)
    torch.testing.assert_close(few.rests.sum(-1), torch.ones(len(RESTS), len(read)))
    first, previous = number("the first token"), number("the previous token")
    assert few.applies[first].tolist() == [1.0] * WINDOW + [0.0] * (len(read) - WINDOW)
    assert torch.equal(few.rows[previous], whole.rows[previous])
    late = few.rests[RESTS.index("the first token"), WINDOW]
    assert late.tolist() == [0.0, *[pytest.approx(1 / WINDOW)] * WINDOW, *[0.0] * 3]
    assert whole.within(within(len(read), len(read))) is whole


def test_layers_that_see_other_keys_have_sums_of_their_own():
    """The second of three layers has a window; the last input is shorter than it."""
    rules = [every_rule()[number(name)] for name in (*RESTS, "the previous token", "all marks")]
    sums, rest = RuleSums(len(rules), 3, 2), 3
    sizes = {"rules": (6, 6), "rows": (6, 6), "all": (2,)}
    wanted = {name: np.zeros((3, *size)) for name, size in sizes.items()}
    for seed, window in enumerate((WINDOW, WINDOW, 20)):
        whole, views = RuleMaps.of(rules, made_input(seed, causal=True)), LayersOfInput()
        n = whole.visible.shape[-1]
        for layer in range(3):
            mask = within(n, window if layer == 1 else n)[None, None]
            attention = torch.from_numpy(attention_like(2, seed + 9 * layer)).float() * mask[0]
            view: Any = SimpleNamespace(index=layer, mask=mask, attention=attention[None])
            maps = views.look(view, 0, whole)
            sums.add_attention(maps, attention, layer, 0)
            rows, base = maps.rows.double().numpy(), maps.rests[rest].double().numpy()
            moved = rows - maps.applies.double().numpy()[..., None] * base
            wanted["rules"][layer] += np.einsum("rqk,jqk->rj", moved, moved)
            wanted["rows"][layer] += np.einsum("rqk,jqk->rj", rows, rows)
            wanted["all"][layer] += ((attention.double().numpy() - base) ** 2).sum((1, 2))
        for layers in views.alike():
            sums.add_rules(views.maps(layers[0], whole), 0, layers)
    assert sums.seeing(0) == sums.seeing(2) != sums.seeing(1)
    for layers in ((0, 2), (1,)):
        rules_, _, every = sums.products(rest, layers)
        for at, layer in enumerate(layers):
            np.testing.assert_allclose(rules_[0], wanted["rules"][layer], atol=1e-5)
            np.testing.assert_allclose(every[0, at], wanted["all"][layer], atol=1e-5)
    assert np.abs(wanted["rules"][0] - wanted["rules"][1]).max() > 1
    every = sums.of_all_layers("rule_rule")
    np.testing.assert_allclose(every, wanted["rows"].sum(0), atol=1e-5)


def test_of_a_long_input_one_query_of_each_stretch_is_read():
    short, long = example(LEADING), example(4 * LEADING)
    assert queries_of(short, seed=0).tolist() == list(range(LEADING))
    some = queries_of(long, seed=0)
    stretch = len(long) // len(some)
    assert len(some) * len(long) == LEADING**2
    assert (some // stretch).tolist() == list(range(len(some)))
    assert some.tolist() == queries_of(long, seed=0).tolist() != queries_of(long, seed=1).tolist()
    assert queries_of(example(4 * LEADING, "other"), seed=0).tolist() != some.tolist()
    maps = RuleMaps.of(every_rule(), made_input(causal=True), np.array([2, 7]))
    whole = RuleMaps.of(every_rule(), made_input(causal=True))
    assert torch.equal(maps.rows, whole.rows[:, [2, 7]])
    assert torch.equal(maps.rests, whole.rests[:, [2, 7]])


@pytest.mark.parametrize("leading", [LEADING, 8])
@pytest.mark.parametrize("model", [even_encoder, lambda: even_decoder().model])
def test_what_is_seen_evenly_is_explained_in_a_layer_with_a_window_too(leading, model, monkeypatch):
    """Also where some rows of each input are read; 10 to 12 tokens are more than 8."""
    monkeypatch.setattr(long_inputs, "LEADING", leading)
    run = hs.atlas(model(), texts(24), analyses=["explained"], control="none", execution=STOCK)
    explained = run["explained"]
    of_rules = explained.sel(prediction="rules")
    np.testing.assert_allclose(of_rules["attention"], 1, atol=1e-6)
    np.testing.assert_allclose(explained["iou"], 1, atol=1e-6)


def test_heads_of_a_layer_with_a_window_are_replayed_by_what_it_sees():
    replayed = hs.replay(even_decoder(), corpus=texts(), shares=[1.0], execution=STOCK, **FEW)
    losses = replayed["replay"]["loss"].sel(replacement="rules").values
    np.testing.assert_allclose(losses, float(replayed["replay"]["baseline"]), rtol=0, atol=1e-6)
