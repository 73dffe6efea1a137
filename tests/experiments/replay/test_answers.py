"""Are the answers of a classifier compared by their divergence, and nothing else taken for one?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from scipy.special import softmax
from scipy.stats import entropy

import headscope as hs
from experiments.replay.made import FEW, STOCK, exact, inputs_of
from headscope.claims.reading import run_findings
from headscope.core.accumulators import Float64
from headscope.corpus.document import Example
from headscope.errors import ModelError
from headscope.experiments.replay import replaying
from headscope.experiments.replay.choosing import Halves, halves_of
from headscope.experiments.replay.replay import replay
from headscope.experiments.replay.scored_model import ScoredModel, scored_model
from headscope.model.checkpoint import quietly
from headscope.tasks.task import own_task
from headscope.tasks.task_request import Loading
from model.families.tiny import FAMILIES
from tasks.made import checkpoint, tokenizer

THREE = own_task("mood", ["good", "bad", "neither"])
PLACE = (1, 0)
RULE = {"heads": {"2-1": {"rules": [{"rule": "the token itself", "weight": 1.0}]}}}


def texts(count: int = 14) -> list[str]:
    """Texts of drawn words of the tiny vocabulary."""
    rng = np.random.default_rng(1)
    words = ["the", "cat", "sat", "dog", "ran", "a"]
    return [" ".join(rng.choice(words, 6 + row % 3)) for row in range(count)]


@pytest.fixture(scope="module")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return checkpoint(tmp_path_factory.mktemp("classifier"), head=THREE)


@pytest.fixture(scope="module")
def tried(classifier: Path) -> hs.Run:
    """One head that attends to the token itself, by a rule of ours."""
    return replay(classifier, corpus=texts(), rules=RULE, execution=STOCK, **FEW)


def dealt(classifier: Path) -> tuple[ScoredModel, Halves]:
    scored = scored_model(classifier, None, Loading())
    settings = replaying.ReplaySettings(**FEW)
    examples, _ = inputs_of(scored, hs.corpus_of(texts()), settings)
    return scored, halves_of(examples, choosing=6, trying=6, seed=0)


def answers(network: Any, example: Example) -> Float64:
    ids = torch.from_numpy(example.input_ids)[None]
    with torch.no_grad():
        return softmax(network(ids).logits[0].double().numpy())


def with_own_values(network: Any, example: Example) -> Float64:
    """The answers where the head takes from each token its own value, by hooks on its layer."""
    layer, head = PLACE
    attention = network.bert.encoder.layer[layer].attention
    dim, values = attention.self.attention_head_size, []
    kept = attention.self.value.register_forward_hook(lambda _, args, out: values.append(out))

    def mix(_: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
        changed = args[0].clone()
        own = slice(head * dim, (head + 1) * dim)
        changed[..., own] = values[-1][..., own]
        return (changed, *args[1:])

    mixing = attention.output.register_forward_pre_hook(mix)
    try:
        return answers(network, example)
    finally:
        kept.remove()
        mixing.remove()


def test_answers_diverge_as_by_hand_as_a_share_of_two_inputs(
    tried: hs.Run, classifier: Path
) -> None:
    scored, halves = dealt(classifier)
    network = scored.model.network
    assert scored.kind == "answers"
    whole = [answers(network, one) for one in halves.trying]
    other = [with_own_values(network, one) for one in halves.trying]
    diverge = [float(entropy(p, q)) for p, q in zip(whole, other, strict=True)]
    between = np.array([[float(entropy(p, q)) for q in whole] for p in whole])
    two = between.sum() / (len(whole) * (len(whole) - 1))
    replayed = tried["replay"].sel(replacement="your_rules", order="chosen").isel(share=0)
    assert float(replayed["loss"]) == pytest.approx(np.mean(diverge), rel=1e-4)
    assert float(replayed["baseline"]) == pytest.approx(two, rel=1e-4)
    assert float(replayed["change"]) == pytest.approx(np.mean(diverge) / two, rel=1e-4)
    assert replayed["change_ci_low"] < replayed["change"] < replayed["change_ci_high"]


def test_of_one_head_its_rules_are_spoken_of(classifier: Path) -> None:
    ask: Any = {"corpus": texts(), "execution": STOCK, "replacements": ("rules", "rest"), **FEW}
    one = " ".join(run_findings(replay(classifier, heads=("L2H1",), **ask).tree))
    assert "attention of L2·H1 replaced by its rules, the answers" in one
    assert "by its rest alone" in one
    two = " ".join(run_findings(replay(classifier, heads=("L2H1", "L1H1"), **ask).tree))
    assert "attention of L1·H1 and L2·H1 replaced by their rules, the answers" in two


def test_what_is_said_speaks_of_answers(tried: hs.Run, tmp_path: Path) -> None:
    found = " ".join(run_findings(tried.tree))
    assert "the answers diverge by" in found
    assert "of the divergence between two inputs" in found
    page = tried.report(tmp_path / "report.html").read_text("utf-8")
    assert "divergence (KL) of the probabilities of the classes" in page
    assert tried["replay"]["loss"].attrs["units"] == "nats"


def test_a_model_in_memory_is_the_checkpoint(tried: hs.Run, classifier: Path) -> None:
    model = scored_model(classifier, None, Loading()).model
    again = replay(model, corpus=texts(), rules=RULE, execution=STOCK, **FEW)
    np.testing.assert_array_equal(again["replay"]["loss"], tried["replay"]["loss"])


def test_an_atlas_of_a_classifier_brings_its_rules(classifier: Path, tmp_path: Path) -> None:
    """The atlas reads the body, replay the whole: the digest is that of the same files."""
    run = hs.atlas(str(classifier), texts(), analyses=["explained"], control="none")
    tried = replay(run, corpus=texts(), execution=STOCK, shares=(0.5,), draws=0, **FEW)
    assert tried["replay"].attrs["kind"] == "answers"
    assert tried["replay"].attrs["chosen_on_tried"] == "possible"


def test_vectors_of_a_classifier_are_those_of_its_body(classifier: Path) -> None:
    run = replay(
        classifier, corpus=texts(), score="vectors", execution=STOCK, shares=(1,), draws=0, **FEW
    )
    assert run["replay"].attrs["kind"] == "vectors"
    assert "pooled_change" in run["replay"]


def test_alike_answers_give_no_share(tmp_path: Path) -> None:
    """A head of zeros answers every text alike: nothing to divide by."""
    place = checkpoint(tmp_path / "flat", head=THREE)
    model = scored_model(place, None, Loading()).model
    network: Any = model.network
    torch.nn.init.zeros_(network.classifier.weight)
    run = replay(model, corpus=texts(), execution=STOCK, shares=(1.0,), draws=0, **FEW)
    assert np.isnan(run["replay"]["change"]).all()
    assert float(abs(run["replay"]["loss"]).max()) == pytest.approx(0, abs=1e-12)
    assert "beyond measure" in " ".join(run_findings(run.tree))


@pytest.mark.parametrize("kind", ["regression", "multi_label_classification"])
def test_answers_that_choose_no_class_are_refused(tmp_path: Path, kind: str) -> None:
    place = checkpoint(tmp_path / "model", head=THREE)
    told = json.loads((place / "config.json").read_text("utf-8")) | {"problem_type": kind}
    (place / "config.json").write_text(json.dumps(told), "utf-8")
    with pytest.raises(ModelError, match="answers with numbers, or several labels"):
        scored_model(place, None, Loading())
    model = scored_model(place, "vectors", Loading())
    assert model.kind == "vectors"


def test_answers_of_a_model_without_a_head_for_them_are_refused() -> None:
    with pytest.raises(ModelError, match="without a classification head; wanted one"):
        scored_model(exact(), "answers", Loading())


def test_a_classifier_with_a_decoder_is_told_what_can_be_compared(tmp_path: Path) -> None:
    options = FAMILIES["BART"].options | {"vocab_size": len(tokenizer()), "num_labels": 3}
    network: Any = transformers.BartForSequenceClassification(transformers.BartConfig(**options))
    with quietly():
        network.save_pretrained(tmp_path)
        tokenizer().save_pretrained(tmp_path)
    with pytest.raises(ModelError, match=r"answers from its decoder.* wanted --score vectors"):
        scored_model(tmp_path, None, Loading())
    run = replay(
        tmp_path, corpus=texts(), score="vectors", execution=STOCK, shares=(1.0,), draws=0, **FEW
    )
    assert float(run["replay"]["change"].sel(replacement="rules").max()) > 0


def test_what_is_loaded_is_loaded_once(tmp_path: Path) -> None:
    model = hs.load(checkpoint(tmp_path / "model"))
    assert scored_model(model, None, Loading()).model is model
