"""Is a language model asked the right tokens, and is its loss that of those tokens alone?"""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
import transformers as T
from torch.nn import functional

from experiments.ablation.classifiers import batch, examples
from experiments.importance.made import language_model
from headscope.claims.reading import WITHHELD, Reading, run_findings
from headscope.corpus import TextCorpus
from headscope.errors import CorpusError, ModelError
from headscope.experiments.importance import IMPORTANCE
from headscope.experiments.importance.measuring import importance_to_text
from headscope.experiments.importance.section import integral_note
from headscope.experiments.importance.settings import QUICK, ImportanceSettings
from headscope.model.language_model import LanguageModel, causal, load_language_model, masked
from headscope.model.model import Model, run_network
from headscope.run.execution import Execution
from model.families.tiny import FAMILIES
from tasks.made import checkpoint

SPECIAL = {0, 1, 2, 3, 4}


@pytest.fixture(scope="module")
def language(tmp_path_factory):
    """A masked language model."""
    return load_language_model(language_model(tmp_path_factory.mktemp("language") / "model"))


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "wiki.txt"
    path.write_text("The cat sat, the cats. A b a the cat.\n\nA cat, b the a . a the cats\n" * 4)
    return path


def framed(*lengths, seed=0):
    """Examples whose first and last tokens are special, of a vocabulary of 13."""
    made = examples(*lengths, seed=seed)
    for example in made:
        example.input_ids[:] = example.input_ids % 8 + 5
        example.special[[0, -1]] = True
    return made


def test_fifteen_percent_of_an_inputs_own_tokens_are_asked(language):
    shown = framed(*[22] * 400)
    told = masked(language.model, shown, seed=1)
    counts = np.zeros(3)
    for before, after, asked, right in zip(
        shown, told.examples, told.objective.asked, told.objective.right, strict=True
    ):
        assert len(asked) == len(set(asked.tolist())) == 3  # of 20
        assert not before.special[asked].any()
        np.testing.assert_array_equal(before.input_ids[asked], right)
        others = np.setdiff1d(np.arange(22), asked)
        np.testing.assert_array_equal(after.input_ids[others], before.input_ids[others])
        now = after.input_ids[asked]
        counts += [(now == 4).sum(), ((now != 4) & (now != right)).sum(), (now == right).sum()]
        assert not SPECIAL.intersection(now[now != 4].tolist())
    # of the tenth that becomes another token, one of eight is by chance the same
    shares = counts / counts.sum()
    assert shares == pytest.approx([0.8, 0.1 * 7 / 8, 0.1 + 0.1 / 8], abs=0.03)


def test_what_is_masked_depends_on_seed_and_id_alone(language):
    shown = framed(9, 5, 12)
    all_of = masked(language.model, shown, seed=0)
    alone = masked(language.model, shown[1:2], seed=0)
    np.testing.assert_array_equal(all_of.objective.asked[1], alone.objective.asked[0])
    np.testing.assert_array_equal(all_of.examples[1].input_ids, alone.examples[0].input_ids)
    seeds = [masked(language.model, shown, seed=seed).objective.digest for seed in (0, 0, 1)]
    assert seeds[0] == seeds[1] != seeds[2]


def test_inputs_without_tokens_of_their_own_are_left_out_and_counted(language):
    told = masked(language.model, framed(2, 6, 2), seed=0)
    assert (len(told.examples), told.left_out) == (1, 2)
    assert len(told.objective.asked[0]) == 1  # at least one, of four
    with pytest.raises(CorpusError, match="found 2 inputs, none with a token"):
        masked(language.model, framed(2, 2), seed=0)
    assert causal(examples(1, 4)).left_out == 1


@pytest.mark.parametrize(("name", "kind"), [("GPT-2", "GPT2LMHeadModel"), ("Llama", "")])
def test_a_causal_models_loss_is_the_mean_over_all_tokens_but_the_first(name, kind):
    family = FAMILIES[name]
    made = getattr(T, kind or f"{family.name}ForCausalLM")
    network = made(getattr(T, f"{family.name}Config")(**family.options)).eval()
    shown = batch(6, 4)
    objective = causal(list(shown.examples)).objective
    with torch.no_grad():
        with objective.asking(network, [0, 1]):
            found = objective.losses(
                run_network(network, shown.input_ids, shown.mask).logits, [0, 1]
            )
        for row, example in enumerate(shown.examples):
            ids = torch.from_numpy(example.input_ids)[None]
            wanted = network(ids, labels=ids).loss
            assert float(found[row]) == pytest.approx(float(wanted), rel=1e-5)


def test_a_masked_models_loss_is_the_mean_over_the_asked_tokens(language):
    network = language.model.network
    told = masked(language.model, framed(9, 14), seed=0)
    shown = batch(9, 14)
    ids = torch.zeros_like(shown.input_ids)
    for row, example in enumerate(told.examples):
        ids[row, : len(example)] = torch.from_numpy(example.input_ids)
    with torch.no_grad():
        whole = run_network(network, ids, shown.mask).logits
        with told.objective.asking(network, [0, 1]):
            logits = run_network(network, ids, shown.mask).logits
    assert len(logits) == sum(map(len, told.objective.asked)) < whole.shape[0] * whole.shape[1]
    found = told.objective.losses(logits, [0, 1])
    answers = told.objective.answers(logits, [0, 1])
    for row, (asked, right) in enumerate(
        zip(told.objective.asked, told.objective.right, strict=True)
    ):
        wanted = functional.cross_entropy(whole[row, asked], torch.from_numpy(right))
        assert float(found[row]) == pytest.approx(float(wanted), rel=1e-5)
        probability = whole[row, asked].softmax(-1)[range(len(right)), right].mean()
        assert float(answers[row]) == pytest.approx(float(probability), rel=1e-5)


def test_a_run_on_text_holds_gradients_without_a_task(language, text, tmp_path):
    settings = ImportanceSettings(replicates=10, batch_tokens=64)
    run = importance_to_text(
        language,
        TextCorpus([text]),
        settings=settings,
        execution=Execution(linears="stock"),
        output=tmp_path / "run",
    )
    assert list(run["importance"]["variant"].values) == list(QUICK)
    found = run["gradients"]
    assert found.attrs["loss_name"] == "masked-language-model loss"
    assert np.isfinite(found["magnitude"].values).all()
    np.testing.assert_allclose(found["attention"].sum("category"), 1, rtol=1e-5)
    page = run.report().read_text("utf-8")
    assert "Where do gradients go?" in page
    attattr = importance_to_text(
        language,
        TextCorpus([text]),
        execution=Execution(linears="stock"),
        settings=ImportanceSettings(methods=("attattr",), replicates=0, steps=2, limit=1),
    )
    errors = attattr["importance"]["completeness_error"]
    assert float(errors.max()) > 0.05  # a sharp random model, and few steps
    assert "more than 2 steps are wanted" in integral_note(Reading(attattr.tree, IMPORTANCE))


def test_checkpoints_without_a_language_model_head_say_what_to_do(tmp_path):
    plain = checkpoint(tmp_path / "plain")
    with pytest.raises(ModelError, match=r"(?s)head \(it is a BertModel\).*--task"):
        load_language_model(plain)
    with pytest.raises(ModelError, match="no language-model head"):
        load_language_model("demo")
    language = load_language_model(language_model(tmp_path / "model"))
    language.model.tokenizer.mask_token = None
    with pytest.raises(ModelError, match="no mask token"):
        masked(language.model, framed(5), seed=0)
    assert isinstance(language.model, Model)


@pytest.mark.parametrize("pulled", [True, False])
def test_a_loss_surely_above_that_of_equal_chances_is_told_and_nothing_is_claimed(
    language, text, pulled
):
    """`pulled`: towards a token that is never right; else the others are about as likely."""
    network = copy.deepcopy(language.model.network)
    with torch.no_grad():
        head = network.get_output_embeddings()
        head.weight *= 1 if pulled else 0.01
        head.bias += torch.eye(13)[0] * (5 if pulled else -5)
    model = LanguageModel(replace(language.model, network=network), "masked")
    settings = ImportanceSettings(replicates=20, methods=("michel",))
    text.write_text(text.read_text() * 4)
    run = importance_to_text(model, TextCorpus(text), settings=settings)
    why = run["importance"].attrs.get(WITHHELD, "")
    assert ("takes all 13 tokens for equally likely" in why) == pulled
    assert (run_findings(run.tree) == [why]) == pulled
