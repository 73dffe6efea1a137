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
from headscope.analyses.explained.long_inputs import (
    LayersOfInput,
    on_first,
    queries_of,
    stand_ins,
)
from headscope.analyses.explained.prediction import HeadRules, RuleMaps, gathered
from headscope.analyses.explained.rule_sums import RuleSums, chosen
from headscope.analyses.explained.rules import RESTS, STAND_IN
from headscope.corpus.document import Example
from headscope.experiments.replay.replacements import StandIns
from headscope.experiments.replay.settings import RULES
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
    stands = few.rests[RESTS.index(STAND_IN)]
    assert stands[:, 0].tolist() == [1.0] * len(read)  # hidden or not
    assert whole.within(within(len(read), len(read))) is whole


def test_layers_that_see_other_keys_have_sums_of_their_own():
    """The second of three layers has a window; the last input is shorter than it."""
    rules = [every_rule()[number(name)] for name in (*RESTS, "the previous token", "all marks")]
    sums, rest = RuleSums(len(rules), 3, 2), 3
    sizes = {"rules": (7, 7), "rows": (7, 7), "all": (2,)}
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


LONG, SINK = 50, 20  # tokens of the made inputs, and the one that stands in for the first


def resting(rng: np.random.Generator, keep: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention [2 heads, query, key] in a window of 30 tokens, and norms [head, key].

    Head 0 gives a share to the previous token, else it rests on the first token, or on SINK where
    that is hidden. Head 1 is even. Little is taken from the first token and from SINK.
    """
    seen, attention = within(LONG, 30), torch.zeros(2, LONG, LONG)
    attention[1] = seen / seen.sum(-1, keepdim=True)
    for query in range(LONG):
        attention[0, query, max(query - 1, 0)] += keep
        attention[0, query, 0 if seen[query, 0] else SINK] += 1 - keep
    norms = torch.from_numpy(1 + rng.random((2, LONG))).float()
    norms[:, [0, SINK]] = 0.1
    return attention, norms


def test_what_stands_in_for_a_hidden_first_token_counts_as_that_one(monkeypatch):
    monkeypatch.setattr(long_inputs, "STANDS", 4)
    attention, norms = resting(np.random.default_rng(0), 0.25)
    seen = within(LONG, 30)
    instead = stand_ins(attention, norms, seen)
    assert instead is not None
    assert instead.any(0).nonzero().ravel().tolist() == [SINK]
    view = LayersOfInput()
    view.seen, view.view = [seen], {0: 0}
    counted, own = view.counted(0, attention, norms)
    values, wanted = attention.double().numpy(), np.zeros((2, LONG, LONG))
    for head, query, key in np.ndindex(2, LONG, LONG):
        hidden = not seen[query, 0]
        wanted[head, query, 0 if hidden and key == SINK else key] += values[head, query, key]
    np.testing.assert_allclose(counted, wanted, atol=1e-7)
    np.testing.assert_allclose(own.sum(-1), 1, atol=1e-6)
    torch.testing.assert_close(own, on_first(gathered(attention, norms), instead))
    long = norms.clone()
    long[:, SINK] = 1.0  # much is taken from it: it is looked at for its own sake
    assert stand_ins(attention, long, seen) is None
    assert stand_ins(attention, norms, within(LONG, LONG)) is None
    assert view.counted(0, attention, None) == (attention, None)


def test_a_head_that_rests_on_a_stand_in_is_recovered(monkeypatch):
    monkeypatch.setattr(long_inputs, "STANDS", 4)
    names = [*RESTS, "the previous token", "two tokens back"]
    rules = [every_rule()[number(name)] for name in names]
    sums = [RuleSums(len(rules), 1, 2), RuleSums(len(rules), 1, 2, groups=4)]
    for turn in range(8):
        rng = np.random.default_rng(turn)
        attention, norms = resting(rng, 0.25)
        read = made_input(turn, causal=True, size=LONG)
        whole, views = RuleMaps.of(rules, read), LayersOfInput()
        layer: Any = SimpleNamespace(
            index=0, mask=within(LONG, 30)[None, None], attention=attention[None]
        )
        maps = views.look(layer, 0, whole)
        counted, _ = views.counted(0, attention, norms)
        part, group = (sums[0], 0) if turn < 4 else (sums[1], turn - 4)
        part.add_attention(maps, counted, 0, group)
        part.add_rules(maps, group, (0,))
    may = np.arange(len(rules)) >= len(RESTS)
    made = chosen(*sums, [0], allowed={"rules": may})["rules"]
    assert RESTS[made.rest[0, 0]] == STAND_IN
    assert [names[at] for at in made.rule[0, 0] if at >= 0] == ["the previous token"]
    assert made.weight[0, 0, 0] == pytest.approx(0.25, abs=0.01)
    assert RESTS[made.rest[0, 1]] == "all tokens evenly"


def test_a_stand_in_is_replayed_by_what_the_first_token_holds():
    """Written out: behind the window the head takes the value of the first token alone."""
    model = even_decoder()
    layers, heads = model.model.shape.layers, model.model.shape.heads
    rest = np.full((layers, heads), RESTS.index(STAND_IN))
    none = np.zeros((layers, heads, 0))
    rules = HeadRules(none.astype(int) - 1, none, rest, none.astype(int), none)
    tokens = example(9)
    stand_in = StandIns(model.model, every_rule(), {RULES: rules}, np.zeros(0), ())
    batch = model.model.batch([tokens])
    seen = within(batch.input_ids.shape[1], WINDOW)[None, None]
    rows = stand_in.of(batch).of_layer(RULES, 0, seen)
    wanted = torch.zeros(9, 9)
    wanted[:, 0] = 1
    torch.testing.assert_close(rows[0, 0, :9, :9], wanted)


@pytest.mark.parametrize(("window", "hidden"), [(WINDOW, True), (LONG, False)])
def test_a_layer_hides_the_first_token_or_does_not(window, hidden):
    """Sums of attention with the same row, taken twice, once differed in their last bit."""
    rules = [every_rule()[number(name)] for name in (*RESTS, "the previous token")]
    sums = RuleSums(len(rules), 1, 2)
    for seed in range(3):
        read = made_input(seed, causal=True)
        maps = RuleMaps.of(rules, read).within(within(len(read), window))
        sums.add_rules(maps, 0, (0,))
    assert sums.hides_first(0) == hidden
