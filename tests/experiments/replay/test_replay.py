"""Do replayed heads do what their rows say, and is nothing else changed?"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
import transformers as T
import xarray as xr

import headscope as hs
from experiments.circuits.decoders import decoder
from experiments.importance.made import language_model
from experiments.replay.made import FEW, STOCK, exact, inputs_of, texts
from headscope.analyses.explained.prediction import RESTS, HeadRules
from headscope.claims.attention_rule import TOKEN, AttentionRule
from headscope.claims.reading import Reading, run_findings
from headscope.errors import CorpusError, HeadscopeError, InputError, ModelError, RunStopped
from headscope.experiments.replay import REPLAY, replaying, scores
from headscope.experiments.replay.choosing import costs_alone, halves_of
from headscope.experiments.replay.head_sets import sets_by_share
from headscope.experiments.replay.looked_at import LookedAt
from headscope.experiments.replay.replacements import (
    StandIns,
    by_position,
    of_another_head,
    replacing,
)
from headscope.experiments.replay.replay import replay
from headscope.experiments.replay.scored_model import scored_model
from headscope.experiments.replay.scores import difference_of
from headscope.experiments.replay.section import table
from headscope.experiments.replay.settings import REPLACEMENTS
from headscope.experiments.replay.terms import units_of
from headscope.model.language_model import LanguageModel, load_language_model, masked
from headscope.model.model import forward
from headscope.run.execution import Execution
from headscope.run.store import open_run
from headscope.tasks.task_request import Loading
from model.families.tiny import FAMILIES

LAYERS, HEADS = 2, 4
PLACE = (1, 2)
RULES = {
    "heads": {
        "1.2": {
            "rest": "the first token",
            "rules": [{"rule": "the previous token", "weight": 0.75}],
        }
    }
}


@pytest.fixture(scope="module")
def one() -> hs.Run:
    """One head of a decoder in float64, replaced by a rule of ours and by all else."""
    return replay(exact(), corpus=texts(), rules=RULES, execution=STOCK, **FEW)


# --- what a replacement does ------------------------------------------------------------------


@pytest.mark.parametrize("name", ["BERT", "Llama", "Gemma2", "T5"])
def test_a_head_that_is_replayed_by_its_own_map_changes_nothing(name):
    network = FAMILIES[name].build()
    network = network.get_encoder() if name == "T5" else network
    ids = torch.arange(2, 16)[None].expand(2, -1)
    with replacing(network) as change:
        whole = forward(network, ids, torch.ones_like(ids))[0]
        every = frozenset((layer, head) for layer in range(LAYERS) for head in range(HEADS))
        change.use(every, lambda call, heads: call.attention[:, heads].double())
        same = forward(network, ids, torch.ones_like(ids))[0]
        change.use(every, lambda call, heads: call.attention.roll(1, 1)[:, heads])
        other = forward(network, ids, torch.ones_like(ids))[0]
    torch.testing.assert_close(same, whole, rtol=0, atol=1e-6)
    assert (other - whole).abs().max() > 1e-3


def test_the_replacement_of_no_heads_is_the_whole_model_to_the_bit():
    network = decoder("Llama").model.network
    ids = torch.arange(2, 16)[None]
    whole = forward(network, ids, torch.ones_like(ids)).logits
    with replacing(network) as change:
        change.use(frozenset(), lambda call, heads: call.attention[:, heads] * 0)
        assert torch.equal(forward(network, ids, torch.ones_like(ids)).logits, whole)


def loss_by_hand(example, rows):
    """A Llama's loss with one head's rows [query, key], from its projections alone."""
    ids = torch.from_numpy(example.input_ids)
    logits = logits_by_hand(example, rows)[:-1]
    return float(torch.nn.functional.cross_entropy(logits, ids[1:], reduction="sum"))


def logits_by_hand(example, rows):
    """[token, vocabulary] what the same predicts; rows None: the whole model."""
    network = exact().model.network
    layer, head = PLACE
    attention = network.model.layers[layer].self_attn
    dim, values = attention.head_dim, []
    heads_of_a_key = network.config.num_attention_heads // network.config.num_key_value_heads
    kept = attention.v_proj.register_forward_hook(lambda _, args, out: values.append(out))

    def mix(_, args):
        if rows is None:
            return args
        own = head // heads_of_a_key
        mixed = rows @ values[-1][0, :, own * dim : (own + 1) * dim]
        changed = args[0].clone()
        changed[0, :, head * dim : (head + 1) * dim] = mixed
        return (changed,)

    mixing = attention.o_proj.register_forward_pre_hook(mix)
    ids = torch.from_numpy(example.input_ids)[None]
    try:
        with torch.no_grad():
            return network(ids).logits[0]
    finally:
        kept.remove()
        mixing.remove()


def rows_by_hand(tokens):
    """Three quarters on the previous token and a quarter on the first; the first has no other."""
    rows = torch.zeros(tokens, tokens, dtype=torch.float64)
    rows[:, 0] = 1
    for query in range(1, tokens):
        rows[query, 0] = 0.25
        rows[query, query - 1] += 0.75
    return rows


def test_the_loss_with_one_head_replaced_is_that_of_its_rows(one):
    settings = replaying.ReplaySettings(**FEW)
    scored = scored_model(exact(), None, Loading())
    examples, _ = inputs_of(scored, hs.corpus_of(texts()), settings)
    halves = halves_of(examples, choosing=6, trying=6, seed=0)
    sums = [loss_by_hand(each, rows_by_hand(len(each))) for each in halves.trying]
    even = [loss_by_hand(each, _even(len(each))) for each in halves.trying]
    predicted = sum(len(each) - 1 for each in halves.trying)
    losses = one["replay"]["loss"].sel(order="chosen").isel(share=0)
    assert float(losses.sel(replacement="your_rules")) == pytest.approx(
        sum(sums) / predicted,
        abs=1e-6,  # other heads: transformers takes softmax in float32
    )
    assert float(losses.sel(replacement="even")) == pytest.approx(sum(even) / predicted, abs=1e-6)
    replayed = one["replay"].sel(replacement="your_rules", order="chosen").isel(share=0)
    change = np.exp(float(replayed["loss"]) - float(replayed["baseline"])) - 1
    assert float(replayed["change"]) == pytest.approx(change, abs=1e-12)
    assert replayed["change_ci_low"] < replayed["change"] < replayed["change_ci_high"]


def _even(tokens):
    lower = torch.ones(tokens, tokens, dtype=torch.float64).tril()
    return lower / lower.sum(-1, keepdim=True)


def test_only_the_named_head_is_replaced_and_rules_stand_beside_the_users(one):
    replayed = one["replay"]
    assert list(replayed["replacement"].values)[:2] == ["your_rules", "rules"]
    there = np.argwhere(replayed["replaced"].values[0] > 0)
    assert there.tolist() == [list(PLACE)]
    assert replayed.attrs["inputs"] == 6
    beyond = replayed["beyond_rules"].isel(order=0, share=0)
    losses = replayed["loss"].isel(order=0, share=0)
    np.testing.assert_allclose(beyond, losses - losses.sel(replacement="rules"), rtol=0, atol=1e-12)


# --- what stands in ---------------------------------------------------------------------------


def test_a_mean_map_is_the_mean_by_relative_position():
    rng = np.random.default_rng(0)
    maps = [rng.dirichlet(np.ones(n), (3, n)) for n in (4, 6)]
    sums, pairs = np.zeros((3, 11)), np.zeros(11)
    for each in maps:
        for query in range(each.shape[1]):
            for key in range(each.shape[1]):
                sums[:, key - query + 5] += each[:, query, key]
                pairs[key - query + 5] += 1
    rows = by_position(sums / pairs, 8)
    assert rows.shape == (3, 8, 8)
    assert rows[1, 5, 2] == sums[1, 2] / pairs[2]
    assert rows[1, 7, 1] == 0


def test_every_row_sums_to_1_over_what_is_seen_and_another_head_is_the_next_of_the_layer():
    model = exact().model
    scored = scored_model(exact(), None, Loading())
    examples, _ = inputs_of(scored, hs.corpus_of(texts(2)), replaying.ReplaySettings(**FEW))
    shape = (LAYERS, HEADS)
    each = np.tile(np.arange(HEADS), (LAYERS, 1))  # the rest of a head is its own number
    own = HeadRules(
        np.full((*shape, 1), -1),
        np.zeros((*shape, 1)),
        each,
        np.zeros((*shape, 0), np.int64),
        np.zeros((*shape, 0)),
    )
    profile = np.zeros((*shape, 3))
    profile[..., 0], profile[..., 1], profile[..., 2] = 3, 1, 9
    heads = {"rules": own, "another_head": of_another_head(own)}
    made = StandIns(model, PLAIN, heads, profile, ())
    batch = model.batch(examples)
    tokens = batch.input_ids.shape[1]
    seen = torch.ones(tokens, tokens, dtype=torch.bool).tril() & batch.mask[:, None, None]
    rows = {name: made.of(batch).of_layer(name, 1, seen) for name in REPLACEMENTS[3:]}
    rows["rules"] = made.of(batch).of_layer("rules", 1, seen)
    for one in rows.values():
        assert one.shape == (2, HEADS, tokens, tokens)
        torch.testing.assert_close(one.sum(-1), torch.ones(2, HEADS, tokens))
        assert not (one * ~seen).any()
    assert torch.equal(rows["another_head"], rows["rules"].roll(-1, 1))
    assert not torch.equal(rows["another_head"], rows["rules"])
    assert rows["mean_map"][0, 0, 5, 3:7].tolist() == [0, 0.75, 0.25, 0]
    call = SimpleNamespace(layer=1, mask=seen, attention=torch.zeros(2, HEADS, tokens, tokens))
    few = made.of(batch)
    few.keeps = False  # of long inputs only the rows of the heads that are replaced are made
    for name, every in rows.items():
        some = few.rows(name)(call, [HEADS - 1, 0])
        torch.testing.assert_close(some, every[:, [HEADS - 1, 0]], rtol=0, atol=1e-7)


def test_sets_grow_with_the_share_and_all_heads_are_one_set():
    explained = np.array([[0.1, 0.9, np.nan], [0.5, 0.2, 0.7]])
    sets = sets_by_share(explained, (1 / 3, 1.0), draws=2, seed=0)
    assert [(one.order, one.draw, len(one.heads)) for one in sets] == [
        ("explained", 0, 2),
        ("explained", 0, 6),
        ("random", 1, 2),
        ("random", 2, 2),
    ]
    assert sets[0].heads == {(0, 1), (1, 2)}


def test_heads_come_in_the_order_of_what_each_costs_alone():
    """Where all documents are one text, what chooses is what tries."""
    model, same = exact(), {"corpus": texts(1) * 12, "score": "vectors", "execution": STOCK, **FEW}
    ordered = replay(model, order="alone", shares=[1.0], **same)["replay"]
    assert ordered.attrs["ordered_by"] == "alone"
    for place in ((0, 0), (0, 3), (1, 2)):
        one = replay(model, heads=[place], **same)["replay"]
        cost = one["loss"].sel(replacement="rules").item()
        assert abs(cost) > 1e-6
        assert float(-ordered["best"].values[place]) == pytest.approx(cost, abs=1e-9)


def test_what_a_head_of_a_language_model_costs_is_how_far_predictions_move():
    """KL(whole ‖ replaced) of its own logits, with the rows of a rule written by hand."""
    scored = scored_model(exact(), None, Loading())
    examples, _ = inputs_of(scored, hs.corpus_of(texts(3)), replaying.ReplaySettings(**FEW))
    cell = (LAYERS, HEADS)
    before = AttentionRule("the token before", TOKEN, previous)
    none = np.zeros((*cell, 0))
    rest = np.full(cell, RESTS.index("the first token"))
    numbers = np.full((*cell, 1), len(PLAIN)), np.full((*cell, 1), 0.75)
    rules = HeadRules(*numbers, rest, none.astype(np.int64), none)
    made = StandIns(scored.model, [*PLAIN, before], {"rules": rules}, np.zeros(0), ())
    difference = difference_of(scored.model, scored.kind, examples, seed=0)
    found = costs_alone(made, difference, "stock")
    assert found.shape == cell
    divergences = []
    for example, asked in zip(difference.examples, difference.objective.asked, strict=True):
        assert 0 < len(asked) < len(example) - 1
        whole, replaced = (
            logits_by_hand(example, rows).double().log_softmax(-1)
            for rows in (None, rows_by_hand(len(example)))
        )
        far = (whole.exp() * (whole - replaced)).sum(-1)
        divergences += far[asked].tolist()
    assert found[PLACE] == pytest.approx(np.mean(divergences), rel=1e-4)


def test_what_a_head_costs_must_be_a_number(monkeypatch):
    lost = torch.tensor([float("inf")])
    monkeypatch.setattr(scores.PredictionDivergence, "difference", lambda *_: lost)
    with pytest.raises(HeadscopeError, match=r"not finite.*--dtype float32"):
        replay(exact(), corpus=texts(), order="alone", execution=STOCK, **FEW)


def test_an_answer_that_is_ruled_out_adds_nothing_to_a_divergence():
    whole, other = torch.tensor([[0.8, 0.2, 0.0]]).log(), torch.tensor([[0.6, 0.4, 0.0]]).log()
    far = scores.AnswerScore(()).difference(other, whole, None)
    assert float(far) == pytest.approx(0.8 * np.log(0.8 / 0.6) + 0.2 * np.log(0.2 / 0.4))
    assert np.isinf(float(scores.AnswerScore(()).difference(whole, whole.roll(1, 1), None)))


def test_documents_choose_or_try_and_never_both():
    scored = scored_model(exact(), None, Loading())
    same = [*texts(20), *texts(20)]
    examples, _ = inputs_of(scored, hs.corpus_of(same), replaying.ReplaySettings(inputs=50))
    halves = halves_of(examples, choosing=50, trying=50, seed=0)
    assert not {e.document for e in halves.choosing} & {e.document for e in halves.trying}
    assert len(halves.all) == 40
    few = halves_of(examples, choosing=6, trying=7, seed=0)
    assert (len(few.choosing), len(few.trying), len(set(few.units))) == (6, 7, 7)


# --- encoders, masked language models ---------------------------------------------------------


def test_vectors_of_an_encoder_are_compared_with_those_of_two_inputs(tiny_place):
    run = replay(
        tiny_place,
        corpus=hs.demo_corpus(),
        limit=3,
        shares=(1.0,),
        draws=0,
        replacements=("rules", "even"),
        execution=STOCK,
        **FEW,
    )
    replayed = run["replay"].isel(order=0, share=0)
    assert replayed.attrs["kind"] == "vectors"
    for start in ("", "pooled_"):
        shares = replayed[f"{start}loss"] / replayed[f"{start}baseline"]
        np.testing.assert_allclose(replayed[f"{start}change"], shares)
        assert 0 < float(replayed[f"{start}baseline"]) < 2
    assert run["replay"].attrs["units"] == 6
    assert "explained" in run


def test_a_masked_language_model_loses_on_masked_tokens(tmp_path):
    place = language_model(tmp_path / "masked")
    corpus = [f"the cat {'a b ' * (n % 4)}the cat b ." for n in range(12)]
    ask = {"corpus": corpus, "shares": (1.0,), "draws": 0, "execution": STOCK, **FEW}
    replayed = replay(place, replacements=("even",), **ask)["replay"]
    assert replayed.attrs["kind"] == "masked"
    assert replayed.attrs["score"] == "masked-language-model loss"
    losses = replayed["loss"].isel(order=0, share=0).sel(replacement="even")
    assert float(losses) != float(replayed["baseline"])
    model = load_language_model(place).model
    asked = masked(model, _tried(model, corpus), seed=0)
    whole = [
        float(torch.nn.functional.cross_entropy(logits, right, reduction="sum"))
        for logits, right in _answers(model, asked)
    ]
    count = sum(len(places) for places in asked.objective.asked)
    assert float(replayed["baseline"]) == pytest.approx(sum(whole) / count, rel=1e-5)


def _tried(model, corpus):
    scored = scored_model(LanguageModel(model, "masked"), None, Loading())
    examples, _ = inputs_of(scored, hs.corpus_of(corpus), replaying.ReplaySettings(**FEW))
    return halves_of(examples, choosing=6, trying=6, seed=0).trying


def _answers(model, asked):
    for example, places, right in zip(
        asked.examples, asked.objective.asked, asked.objective.right, strict=True
    ):
        ids = torch.from_numpy(example.input_ids)[None]
        with torch.no_grad():
            yield model.network(ids).logits[0, places], torch.from_numpy(right)


# --- a run goes on, and refuses ---------------------------------------------------------------


def test_a_stopped_run_goes_on_to_the_same_bits(tmp_path, monkeypatch):
    monkeypatch.setattr(replaying, "PART_TOKENS", 20)
    ask = {"corpus": texts(), "shares": (0.5, 1.0), "draws": 1, **FEW}
    model = decoder("Llama")
    calls = []

    def stop(done, _all):
        calls.append(done)
        if done >= 2:
            raise KeyboardInterrupt

    with pytest.raises(RunStopped):
        replay(
            model,
            output=tmp_path / "run",
            execution=Execution(linears="stock", progress=stop),
            **ask,
        )
    kept = len(list(tmp_path.glob("run/shards/*/*.shard")))
    assert kept >= 2
    made = []
    monkeypatch.setattr(replaying.ReplayRun, "_choose", lambda self, kind: made.append(kind) or {})
    run = replay(model, output=tmp_path / "run", execution=STOCK, **ask)
    assert not made  # rules are kept, too
    monkeypatch.undo()
    monkeypatch.setattr(replaying, "PART_TOKENS", 20)
    whole = replay(model, execution=STOCK, **ask)
    assert run["replay"].identical(open_run(tmp_path / "run")["replay"])
    assert run["replay"].equals(whole["replay"])
    assert run["explained"].equals(whole["explained"])


def bad_rows(read):
    return read.even(read.offset <= 0) * 0.7


BAD = AttentionRule("seven tenths", TOKEN, bad_rows)


@pytest.mark.parametrize(
    ("ask", "error", "words"),
    [
        ({"corpus": texts(11)}, CorpusError, "found 11 inputs; wanted at least 12"),
        (
            {"rules": {"heads": {"L1H1": {"rules": [{"rule": "the previus token"}]}}}},
            InputError,
            "no rule called 'the previus token'; did you mean 'the previous token'",
        ),
        (
            {"rules": {"heads": {"L1H1": {"rules": [{"rule": BAD}]}}}},
            InputError,
            "the rule 'seven tenths' gave a row of sum 0.7; wanted 1",
        ),
        (
            {"rules": {"heads": {"L1H1": {"rest": "nowhere"}}}},
            InputError,
            "no rest called 'nowhere'",
        ),
        ({"heads": ("L3H1",)}, InputError, "no head L3·H1: the model has 2 layers of 4 heads"),
        ({"shares": (0.0,)}, InputError, "wanted some above 0 %"),
        ({"replacements": ("rule",)}, InputError, "no replacement called 'rule'; did you mean"),
    ],
)
def test_what_cannot_be_replayed_is_refused_in_clear_words(ask, error, words):
    with pytest.raises(error, match=words):
        replay(exact(), **{"corpus": texts(), "execution": STOCK, **FEW, **ask})


def test_models_whose_attention_cannot_be_replaced_are_refused(tmp_path):
    from experiments.circuits.decoders import words
    from headscope.model.model import Model

    outside = Model(FAMILIES["MPNet"].build(), words(), "mpnet", "", "")
    with pytest.raises(ModelError, match="it can be read, not replaced"):
        scored_model(outside, None, Loading())
    T.BertForTokenClassification(T.BertConfig(**_SMALL)).save_pretrained(tmp_path)
    with pytest.raises(InputError, match="only answers on whole texts are compared"):
        scored_model(tmp_path, None, Loading())


_SMALL = {
    "vocab_size": 20,
    "hidden_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 1,
    "intermediate_size": 8,
}


# --- which heads come first -------------------------------------------------------------------


@pytest.mark.parametrize("name", ["Llama", "Gemma3"])
def test_a_head_is_off_by_what_its_rules_change_of_what_it_adds(name):
    model = exact(name).model
    scored = scored_model(exact(name), None, Loading())
    examples, _ = inputs_of(scored, hs.corpus_of(texts(2)), replaying.ReplaySettings(**FEW))
    rules = [*PLAIN, AttentionRule("the previous token", "position", previous)]
    shape = (LAYERS, HEADS)
    own = HeadRules(
        np.full((*shape, 1), len(PLAIN)),
        np.full((*shape, 1), 0.75),
        np.zeros(shape, np.int64),
        np.zeros((*shape, 0), np.int64),
        np.zeros((*shape, 0)),
    )
    looked = LookedAt(StandIns(scored.body, rules, {"rules": own}, np.zeros(0), ()), 20)
    looked.read(examples, lambda count: None)
    np.testing.assert_allclose(looked.error[PLACE], off_by_hand(model, examples), rtol=1e-5)
    np.testing.assert_allclose(looked.profile, profile_by_hand(scored.body, examples), atol=1e-6)


def profile_by_hand(model, examples):
    """[layer, head, key − query + 19] the mean attention of all pairs, one after the other."""
    sums, pairs = np.zeros((model.shape.layers, model.shape.heads, 39)), np.zeros(39)
    for example in examples:
        maps = []
        with torch.no_grad(), hs.Instrument(model.network, observers=[maps.append]):
            model.network(input_ids=torch.from_numpy(example.input_ids)[None])
        for query in range(len(example)):
            for key in range(query + 1):
                pairs[key - query + 19] += 1
                for view in maps:
                    sums[view.index, :, key - query + 19] += view.attention[
                        0, :, query, key
                    ].numpy()
    return sums / np.maximum(pairs, 1)


PLAIN = [
    AttentionRule(rest, "rest", lambda read, place=place: read.even(np.arange(len(read)) == place))
    for place, rest in enumerate(RESTS)
]


def previous(read):
    return read.even(read.offset == -1)


def off_by_hand(model, examples):
    """The mean over tokens of ‖what one head adds otherwise‖² / ‖stream‖²."""
    network, (layer, head), shares = model.network, PLACE, []
    block = network.model.layers[layer]
    attention, kept = block.self_attn, {}
    hooks = [
        block.register_forward_pre_hook(lambda _, args: kept.update(stream=args[0][0])),
        attention.v_proj.register_forward_hook(lambda _, args, out: kept.update(value=out[0])),
        attention.o_proj.register_forward_hook(lambda _, args, out: kept.update(out=out[0])),
        block.post_attention_layernorm.register_forward_hook(
            lambda _, args, out: kept.update(normed=out[0])
        ),
    ]
    heads_of_a_key = network.config.num_attention_heads // network.config.num_key_value_heads
    dim, key_head = attention.head_dim, head // heads_of_a_key
    for example in examples:
        ids = torch.from_numpy(example.input_ids)[None]
        with torch.no_grad():
            maps = network(ids, output_attentions=True).attentions[layer][0, head]
        apart = (rows_by_hand(len(example)) - maps) @ kept["value"][:, key_head * dim :][:, :dim]
        added = apart @ attention.o_proj.weight[:, head * dim : (head + 1) * dim].T
        share = added.square().sum(-1) / kept["stream"].square().sum(-1)
        if "Gemma" in type(block).__name__:
            share = share * kept["normed"].square().sum(-1) / kept["out"].square().sum(-1)
        shares += share.tolist()
    for hook in hooks:
        hook.remove()
    return np.mean(shares)


@pytest.mark.parametrize(
    ("read", "said"),
    [
        ({"corpus": texts()}, "6 documents"),
        ({"corpus": texts(2, tokens=120), "max_length": 16, "long": "window"}, "6 inputs"),
    ],
)
def test_intervals_are_over_documents_or_of_few_over_inputs(read, said):
    run = replay(exact(), heads=[PLACE], execution=STOCK, **FEW, **read)
    assert units_of(run["replay"]) == said
    assert f"95 % intervals, over {said}." in table(Reading(run.tree, REPLAY)).caption


def test_rules_are_not_praised_where_even_attention_does_as_well():
    run = replay(
        exact(), corpus=texts(), shares=[0.5, 1], draws=0, replacements=("rules", "even"),
        execution=STOCK, **FEW,
    )  # fmt: skip
    silent = "Nothing else that stood in for heads (even attention) costs surely more"
    first, *others = run_findings(run.tree)
    assert first.startswith(silent)
    assert "surely below" not in " ".join(others)

    replayed = run.tree["replay"].to_dataset()
    for bound in ("", "_ci_low", "_ci_high"):
        replayed[f"beyond_rules{bound}"][:] = 1
        replayed[f"change{bound}"][:] = 0.01
    tree = run.tree.copy()
    tree["replay"] = xr.DataTree(replayed)
    said = " ".join(run_findings(tree))
    assert silent not in said
    assert "surely below 16 % up to 100 % of the heads" in said
