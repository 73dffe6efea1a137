"""Are weights that are fitted to the output those that leave it as it is?"""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest
import torch

import headscope as hs
from experiments.circuits.decoders import network
from experiments.importance.made import language_model
from experiments.replay.made import FEW, STOCK, exact, inputs_of, texts
from experiments.replay.test_answers import THREE
from experiments.replay.test_answers import texts as words_of_its_vocabulary
from headscope.analyses.explained.prediction import HeadRules
from headscope.analyses.explained.rules import RESTS, rules_of_run
from headscope.claims.attention_rule import TOKEN, AttentionRule
from headscope.claims.reading import run_findings
from headscope.errors import HeadscopeError, RunStopped
from headscope.experiments.replay import fitted_weights, replaying
from headscope.experiments.replay.choosing import scope_of_inputs
from headscope.experiments.replay.fitted_weights import FittedWeights, RuleWeights
from headscope.experiments.replay.replacements import StandIns, of_another_head, replacing
from headscope.experiments.replay.replay import replay
from headscope.experiments.replay.scored_model import scored_model
from headscope.experiments.replay.scores import difference_of
from headscope.experiments.replay.settings import RULES
from headscope.experiments.replay.terms import rules_from, weights_from
from headscope.model.model import run_network
from headscope.tasks.task_request import Loading
from model.families.tiny import FAMILIES
from tasks.made import checkpoint

LAYERS, HEADS = 2, 4
PLACE = (1, 2)
TOGETHER = frozenset({PLACE, (0, 1)})


@cache
def twin():
    """The same network, which hands out its maps by itself."""
    same = network("Llama", exact=True)
    same.set_attn_implementation("eager")
    return same


def own_maps(layer, head, read):
    """What the head itself does with these tokens: a rule that knows all."""
    with torch.no_grad():
        ids = torch.from_numpy(read.ids)[None]
        return twin()(ids, output_attentions=True).attentions[layer][0, head].numpy()


def stand_ins(weight, *, factor=1.0):
    """Two heads with a rule that is their own map, and one that misleads; the rest is even."""
    scored = scored_model(exact(), None, Loading())
    examples, _ = inputs_of(scored, hs.corpus_of(texts(24)), replaying.ReplaySettings(**FEW))
    scope = scope_of_inputs(scored.model, examples, replicates=20, seed=0)
    own = {
        place: AttentionRule(f"its own map {place}", TOKEN, partial(own_maps, *place))
        for place in sorted(TOGETHER)
    }
    rules = [*rules_of_run(scope), *own.values()]
    names = [rule.name for rule in rules]
    cell = (LAYERS, HEADS)
    rule, weights = np.full((*cell, 2), -1), np.zeros((*cell, 2))
    for place, one in own.items():
        rule[place] = names.index(one.name), names.index("the previous token")
        weights[place] = weight, 0.2
    rest = np.full(cell, RESTS.index("all tokens evenly"))
    key, factors = np.full((*cell, 1), 5), np.full((*cell, 1), factor)
    made = HeadRules(rule, weights, rest, key, factors)
    return StandIns(scored.model, rules, {RULES: made}, np.zeros(0), ()), scored, examples


def a_fit(weight, **more):
    made, scored, examples = stand_ins(weight, **more)
    difference = difference_of(scored.model, scored.kind, examples, seed=0)
    return FittedWeights(made, RULES, difference, [TOGETHER], seed=0)


def test_a_rule_that_is_the_map_of_the_head_gets_all_of_the_weight(monkeypatch):
    monkeypatch.setattr(fitted_weights, "STEPS", 150)
    fit = a_fit(0.3, factor=1.5)
    before = loss_of(fit).item()
    fitted = fit.fit(lambda count: None)
    after = loss_of(fit).item()
    assert after < 0.01 * before
    for place in TOGETHER:
        own, misleading = fitted.weight[place]
        assert own / max(1.0, own + misleading) > 0.9
        assert misleading < 0.1
        assert fitted.key_factor[place][0] == pytest.approx(1, abs=0.1)


def loss_of(fit):
    with replacing(fit.stand_ins.model.network, gradients=True) as fit.change:
        return fit._loss([0])


def test_gradients_are_those_of_central_differences():
    fit = a_fit(0.3, factor=1.5)
    loss_of(fit).backward()
    for numbers, place in ((fit.weights.weight, (*PLACE, 0)), (fit.weights.factor, (0, 1, 0))):
        slope, step, ends = float(numbers.grad[place]), 1e-2, []
        for sign in (1, -1):
            with torch.no_grad():
                numbers[place] += sign * step
            ends.append(loss_of(fit).item())
            with torch.no_grad():
                numbers[place] -= sign * step
        assert abs(slope) > 1e-6
        assert slope == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=2e-2)


def test_heads_outside_the_sets_keep_their_weights(monkeypatch):
    monkeypatch.setattr(fitted_weights, "STEPS", 6)
    fit = a_fit(0.3)
    fit.sets = [frozenset({PLACE})]
    fitted = fit.fit(lambda count: None)
    assert fitted.weight[0, 1].tolist() == pytest.approx([0.3, 0.2], abs=1e-12)
    assert abs(fitted.weight[PLACE][0] - 0.3) > 1e-3
    assert not fitted.weight[1, 3].any()  # a head without rules gets none


def test_a_fit_of_no_steps_begins_with_what_predicts_attention():
    made = stand_ins(0.3, factor=1.5)[0]
    again = RuleWeights(made.heads[RULES]).fitted()
    for name, numbers in vars(made.heads[RULES]).items():
        np.testing.assert_allclose(getattr(again, name), numbers, rtol=1e-12)


@pytest.mark.parametrize("name", ["BERT", "Llama", "Gemma2", "T5"])
def test_gradients_reach_the_rows_that_stand_in_in_every_family(name):
    whole = FAMILIES[name].build()
    whole = whole.get_encoder() if name == "T5" else whole
    ids = torch.arange(2, 16)[None]
    rows = torch.full((1, 1, 14, 14), 1 / 14, requires_grad=True)
    with replacing(whole, gradients=True) as change:
        change.use(frozenset({(0, 1)}), lambda call, heads: rows)
        run_network(whole, ids, torch.ones_like(ids))[0].square().sum().backward()
    assert float(rows.grad.abs().max()) > 1e-6


@pytest.mark.parametrize("kind", ["answers", "masked"])
def test_the_difference_falls_for_a_classifier_and_a_masked_language_model(kind, tmp_path):
    place = tmp_path / kind
    make = partial(checkpoint, head=THREE) if kind == "answers" else language_model
    scored = scored_model(make(place), None, Loading())
    assert scored.kind == kind
    sentences = hs.corpus_of(words_of_its_vocabulary())
    examples, _ = inputs_of(scored, sentences, replaying.ReplaySettings(**FEW))
    scope = scope_of_inputs(scored.model, examples, replicates=20, seed=0)
    rules = rules_of_run(scope)
    names, cell = (
        [rule.name for rule in rules],
        (scored.model.shape.layers, scored.model.shape.heads),
    )
    both = [names.index("the previous token"), names.index("the token itself")]
    none = np.zeros((*cell, 0))
    made = HeadRules(
        np.broadcast_to(both, (*cell, 2)),
        np.broadcast_to([0.9, 0.05], (*cell, 2)),
        np.full(cell, RESTS.index("all tokens evenly")),
        none.astype(np.int64),
        none,
    )
    difference = difference_of(scored.model, kind, examples, seed=0)
    stand_in = StandIns(scored.model, rules, {RULES: made}, np.zeros(0), ())
    fit = FittedWeights(stand_in, RULES, difference, [frozenset(np.ndindex(cell))], seed=0)
    before = loss_of(fit).item()
    fit.fit(lambda count: None)
    assert loss_of(fit).item() < 0.9 * before


# --- in a run ---------------------------------------------------------------------------------


def run_of(**more):
    same = {"corpus": texts(16), "shares": (0.5,), "draws": 0, "execution": STOCK, **FEW}
    return replay(exact(), **{**same, **more})


@pytest.mark.parametrize("score", ["loss", "vectors"])
def test_a_run_says_which_weights_it_tried_and_keeps_them(score):
    plain, fitted = run_of(score=score), run_of(score=score, weights="output")
    xr_plain, xr_fitted = plain["replay"], fitted["replay"]
    assert (xr_plain.attrs["weights_by"], xr_fitted.attrs["weights_by"]) == ("attention", "output")
    assert "fitted_weight" not in xr_plain
    explained = fitted["explained"].sel(explains="attention")
    moved = np.abs(xr_fitted["fitted_weight"].values - explained["weight"].values)
    there = xr_fitted["replaced"].values[0] > 0
    assert moved[there].max() > 1e-2
    assert moved[~there].max() < 1e-9
    for name in ("rest", "mean_map", "even"):
        assert (
            xr_fitted["loss"].sel(replacement=name).equals(xr_plain["loss"].sel(replacement=name))
        )
    for name in ("rules", "another_head"):
        assert (
            not xr_fitted["loss"]
            .sel(replacement=name)
            .equals(xr_plain["loss"].sel(replacement=name))
        )
    said = " ".join(run_findings(fitted.tree))
    assert "their rules with fitted weights" in said
    assert "Weights were fitted to the whole model’s output, on other documents." in said
    assert "fitted" not in " ".join(run_findings(plain.tree))


def test_where_nothing_is_fitted_nothing_is_said_of_it_and_inputs_are_called_inputs():
    even = run_of(weights="output", replacements=("even",))
    assert "fitted" not in " ".join(run_findings(even.tree))
    few = run_of(weights="output", replacements=("rules",))["replay"]
    few = few.assign_attrs(units_are="inputs")  # of three documents inputs are dealt
    assert weights_from(few).endswith("output, on other inputs.")
    assert rules_from(few).startswith("Rules and order are those of other inputs. Weights")


def test_a_run_that_was_stopped_behind_the_fit_does_not_fit_again(tmp_path, monkeypatch):
    def stop(done, total):
        if done:
            raise KeyboardInterrupt

    again = {"weights": "output", "output": tmp_path / "run"}
    with pytest.raises((KeyboardInterrupt, RunStopped)):
        run_of(**again, execution=replace(STOCK, progress=stop))
    monkeypatch.setattr(FittedWeights, "fit", None)
    whole = run_of(**again)
    monkeypatch.undo()
    assert whole["replay"].equals(run_of(weights="output")["replay"])


def test_the_rules_of_another_head_are_those_of_the_next():
    rules = stand_ins(0.3)[0].heads[RULES]
    assert of_another_head(rules).weight[1, 1].tolist() == rules.weight[PLACE].tolist()
    single = HeadRules(*(numbers[:, 2:3] for numbers in vars(rules).values()))
    assert of_another_head(single).weight[0, 0].tolist() == rules.weight[PLACE].tolist()


def test_an_output_that_is_no_number_is_said(monkeypatch):
    fit = a_fit(0.3)
    monkeypatch.setattr(type(fit.difference), "difference", lambda *_: torch.tensor([float("nan")]))
    with pytest.raises(HeadscopeError, match=r"not finite.*--dtype float32"):
        fit.fit(lambda count: None)
