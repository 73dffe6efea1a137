"""Are the labels of a masked language model tried by the loss of its masked tokens?"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

import headscope as hs
from experiments.importance.made import language_model
from experiments.replay.made import STOCK
from headscope.analyses.explained.rules import RESTS, rules_of_run
from headscope.claims.attention_rule import rows_of
from headscope.claims.plan import NOTHING
from headscope.claims.question import named
from headscope.claims.reading import Reading
from headscope.core.accumulators import generator
from headscope.errors import ModelError
from headscope.experiments.replay.choosing import scope_of_inputs
from headscope.experiments.replay.replacements import replacing
from headscope.experiments.replay.scored_model import ScoredModel
from headscope.experiments.trial.figure import caption, panels
from headscope.experiments.trial.hypotheses import Hypothesis
from headscope.experiments.trial.queries import THERE, queries_of
from headscope.experiments.trial.result import trial_result
from headscope.experiments.trial.section import findings, table, tables
from headscope.experiments.trial.settings import TrialSettings
from headscope.experiments.trial.terms import DISTANCE, LOSS, MEASURES
from headscope.experiments.trial.trial import trial
from headscope.experiments.trial.trying import COLUMNS, TrialRun, read_pool
from headscope.model.language_model import load_language_model, masked
from headscope.model.model import evaluating

TEXTS = [f"the cat {'a b ' * (at % 4)}the cats b {'a ' * (at % 5)}." for at in range(16)]
PREVIOUS = "the previous token"
PLACE = (0, 1)
MINE = {"heads": {"0.1": {"rules": [{"rule": PREVIOUS}]}}}
FEW = {"inputs": 8, "replicates": 20, "execution": STOCK}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return language_model(tmp_path_factory.mktemp("masked") / "model")


@pytest.fixture(scope="module")
def atlas(place):
    return hs.atlas(place, corpus=TEXTS, analyses=["surface"], control="none", execution=STOCK)


def trial_of(place, *hypotheses: Hypothesis) -> TrialRun:
    """A trial of hypotheses by the model in float64."""
    model = load_language_model(place, dtype="float64").model
    scored, settings = ScoredModel(model, "masked"), TrialSettings(replicates=30)
    examples, _ = read_pool(scored, hs.corpus_of(TEXTS), settings)
    rules = rules_of_run(scope_of_inputs(model, examples, replicates=30, seed=0))
    rests = np.full((2, 3), RESTS.index("all tokens evenly"))
    return TrialRun(scored, examples, hypotheses, rules, rests, settings)


def part(of: TrialRun, at: int) -> dict[str, np.ndarray]:
    with evaluating(of.scored.model.network):
        return of._part([at], {at: range(len(of.hypotheses))})


@pytest.mark.parametrize("grows", [True, False])
def test_an_effect_is_the_rise_of_the_loss_of_masked_tokens_for_each_query(place, grows) -> None:
    of = trial_of(place, Hypothesis("x", "", PREVIOUS, (PLACE,)))
    pool, _ = read_pool(of.scored, hs.corpus_of(TEXTS), of.settings)
    asked = masked(of.scored.model, pool, seed=0)
    at = next(at for at, one in enumerate(asked.objective.asked) if len(one) > 1)
    example, network = of.examples[at], of.scored.model.network
    assert (example.input_ids == asked.examples[at].input_ids).all()
    assert of.outputs.grows
    of.outputs.grows = grows
    numbers = part(of, at)
    rng, read = generator(0, "queries", PREVIOUS, str(at)), of._read(example)
    shown = np.isin(np.arange(len(example)), asked.objective.asked[at])
    rows = rows_of([of.by_name[PREVIOUS]], read)[0]
    there = queries_of(rows, read, rng, shown)[THERE]

    def moved(call, heads):
        rows = call.attention.clone()
        for query, own in zip(there.queries, torch.from_numpy(there.keys), strict=True):
            row = rows[0, 1, int(query)]
            free = ~own
            rows[0, 1, int(query)] = row * free + row[own].sum() * free / free.sum()
        return rows[:, heads]

    ids = torch.from_numpy(example.input_ids)[None]
    places, right = asked.objective.asked[at], torch.from_numpy(asked.objective.right[at])
    made = []
    with evaluating(network), replacing(network) as change, torch.inference_mode():
        for heads in (frozenset(), frozenset([PLACE])):
            change.use(heads, moved)
            answer = network(ids, output_hidden_states=True)
            loss = torch.nn.functional.cross_entropy(answer.logits[0, places], right)
            vectors = answer.hidden_states[-1][0, there.queries]
            made.append((float(loss), torch.nn.functional.normalize(vectors, dim=-1)))
    (base, before), (loss, after) = made
    own = numbers["direct"][0, 0]
    assert own[MEASURES.index(LOSS)] == pytest.approx((loss - base) / len(there), abs=1e-9)
    assert abs(loss - base) > 1e-6
    distance = float((before - after).norm(dim=-1).mean())
    assert own[MEASURES.index(DISTANCE)] == pytest.approx(distance, abs=1e-9)


def test_the_loss_says_what_matters_and_vectors_what_a_rest_gives(place) -> None:
    labels = [Hypothesis("x", "", PREVIOUS, (PLACE,), *more) for more in ((), (NOTHING,))]
    of = trial_of(place, *labels)
    with evaluating(of.scored.model.network):
        numbers = [part(of, at) for at in range(12)]
    joined = {name: np.concatenate([one[name] for one in numbers]) for name in numbers[0]}
    made = trial_result(
        of.hypotheses, ["", ""], joined, of.units, COLUMNS, replicates=20, direct=False,
        score=of.score,
    )  # fmt: skip
    assert made.attrs["score"] == "loss of masked tokens"
    assert made["measure"].values.tolist() == [LOSS, DISTANCE]
    first = joined["hypothesis"] == 0
    wanted = joined["direct"][first, 0, MEASURES.index(LOSS)].mean()
    assert float(made["effect"][0]) == pytest.approx(wanted, abs=1e-12)
    rests = joined["direct"][~first, 0, MEASURES.index(DISTANCE)].mean()
    assert float(made["effect"][1]) == pytest.approx(rests / joined["scale"][~first].mean())


def test_a_masked_language_model_is_tried_by_its_loss_and_the_page_says_so(atlas) -> None:
    run = trial(atlas, corpus=TEXTS, rules=MINE, **FEW)
    question = named("trial")
    assert question is not None
    reading = Reading(run.tree, question)
    assert run.manifest["spec"]["settings"]["kind"] == "masked"
    assert "Effects are changes of the loss of masked tokens." in findings(reading)
    rows = tables(reading)["trial_labels"]
    own = rows[rows["rule"] == PREVIOUS]
    assert set(own[own["kind"] == ""]["unit"]) == {"nats"}
    shown = table(reading)
    assert shown is not None
    assert "rise of the mean loss of an input’s masked tokens" in shown.caption
    assert run["trial"]["loss"].attrs["long_name"].startswith("rise of the loss of masked tokens")


def test_effects_in_nats_are_drawn_in_nats(atlas) -> None:
    run = trial(atlas, corpus=TEXTS, rules=MINE, **FEW)
    tree, question = run.tree.copy(deep=True), named("trial")
    assert question is not None
    data = tree["trial"].to_dataset()
    data["kind"] = data["kind"].copy(data=np.full(data["kind"].shape, "previous"))  # as labels
    tree["trial"].dataset = data
    reading = Reading(tree, question)
    axes = Figure().subplots()
    (panel,) = panels(reading)
    panel.draw(axes)
    assert axes.get_ylabel() == "effect where it applies (nats)"
    effects = [float(one) for one in data["effect"] if np.isfinite(one)]
    assert axes.get_ylim()[0] <= min(0, *effects)
    assert axes.get_ylim()[1] >= max(effects)
    assert "rise of the mean loss" in caption(reading)


def test_vectors_are_compared_where_they_are_wanted_or_there_is_no_head(atlas) -> None:
    run = trial(atlas, corpus=TEXTS, rules=MINE, score="vectors", **FEW)
    assert run["trial"].attrs["score"] == "output vectors"
    assert run.manifest["spec"]["settings"]["kind"] == "vectors"
    assert np.isnan(run["trial"]["loss"].values).all()


def test_a_loss_without_a_head_is_refused(tiny_place) -> None:
    plain = hs.atlas(
        tiny_place, corpus=TEXTS, analyses=["surface"], control="none", execution=STOCK
    )
    with pytest.raises(ModelError, match="so it has no loss; wanted one, or --score vectors"):
        trial(plain, corpus=TEXTS, rules=MINE, score="loss", **FEW)
