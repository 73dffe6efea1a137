"""Is a checkpoint loaded with the right head, in the right order, or refused?"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForSequenceClassification, BartConfig, BartModel

from headscope.errors import InputError, ModelError
from headscope.model.model import load
from headscope.tasks.task import GLUE, Task
from headscope.tasks.task_model import load_for_task, task_of
from model.families.tokenizers_made import wordpiece
from tasks.made import AMOUNT, MOOD, checkpoint


@pytest.fixture(scope="module")
def plain(tmp_path_factory) -> Path:
    return checkpoint(tmp_path_factory.mktemp("plain") / "model")


@pytest.fixture(scope="module")
def tuned(tmp_path_factory) -> Path:
    return checkpoint(tmp_path_factory.mktemp("tuned") / "model", head=MOOD)


def edited(folder: Path, tmp_path: Path, **changes) -> Path:
    copy = Path(shutil.copytree(folder, tmp_path / "edited"))
    file = copy / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))
    return copy


def weights(model):
    return {name: p.detach().clone() for name, p in model.model.network.named_parameters()}


def test_a_fine_tuned_checkpoint_is_loaded_as_transformers_loads_it(tuned):
    found = load_for_task(tuned, MOOD)
    wanted = AutoModelForSequenceClassification.from_pretrained(tuned)
    for name, parameter in wanted.named_parameters():
        torch.testing.assert_close(weights(found)[name], parameter.detach(), rtol=0, atol=0)
    assert not found.model.network.training
    assert (found.model.shape.layers, found.model.shape.heads) == (2, 3)
    assert (found.start, found.notes) == ("checkpoint", ())


def test_a_checkpoint_without_a_head_is_refused_and_told_how_to_get_one(plain):
    """Also where the task has three classes: transformers says 2 where nobody chose any."""
    for task in (MOOD, GLUE["mnli"], GLUE["sts-b"]):
        with pytest.raises(ModelError, match=r"has no classification head \(.*wanted a check") as e:
            load_for_task(plain, task)
        assert "headscope finetune" in str(e.value)
        assert len(str(e.value).splitlines()) <= 3


def test_a_new_head_leaves_the_rest_as_it_was_and_is_drawn_by_the_seed(plain):
    first, again, other = (load_for_task(plain, MOOD, new_head=True, seed=s) for s in (0, 0, 1))
    before = AutoModelForSequenceClassification.from_pretrained(plain)
    inside = {name: p for name, p in before.named_parameters() if name.startswith("bert.")}
    for name, parameter in inside.items():
        assert torch.equal(weights(other)[name], parameter)
    heads = [weights(model)["classifier.weight"] for model in (first, again, other)]
    assert torch.equal(heads[0], heads[1])
    assert not torch.equal(heads[0], heads[2])
    assert first.notes == ("the head is untrained",)
    assert first.origin == load(str(plain)).sha256
    assert first.model.sha256 == again.model.sha256 != other.model.sha256


@pytest.mark.parametrize("task", [MOOD, Task("three", ("a", "b", "c"), ("accuracy",)), AMOUNT])
def test_a_new_head_replaces_one_of_another_task(tuned, task):
    found = load_for_task(tuned, task, new_head=True)
    old = weights(load_for_task(tuned, MOOD))["classifier.weight"]
    head = weights(found)["classifier.weight"]
    assert head.shape == (task.outputs, 24)
    assert head.shape != old.shape or not torch.equal(head, old)
    assert float(head.std()) == pytest.approx(0.02, rel=0.4)  # BERT's initializer_range
    assert tuple(found.model.network.config.id2label.values()) == (task.labels or (task.name,))


def test_a_random_network_has_nothing_of_the_checkpoint_but_its_shape(plain):
    found, same = (load_for_task(plain, MOOD, random_init=True, seed=3) for _ in range(2))
    trained = weights(load_for_task(plain, MOOD, new_head=True))
    for name, parameter in weights(found).items():
        assert parameter.shape == trained[name].shape
        assert torch.equal(parameter, weights(same)[name])
        if parameter.ndim > 1:  # fresh biases are 0 and fresh norms are 1, everywhere
            assert not torch.equal(parameter, trained[name])
    assert (found.start, found.notes) == ("random", ("all weights are random",))


def test_what_is_drawn_leaves_the_callers_randomness_alone(plain):
    torch.manual_seed(5)
    wanted = torch.rand(3)
    torch.manual_seed(5)
    load_for_task(plain, MOOD, new_head=True, seed=1)
    assert torch.equal(torch.rand(3), wanted)


@pytest.mark.parametrize("names", [("cat", "no"), ("no", "dog"), ("CAT", "No")])
def test_classes_in_another_order_or_of_other_names_are_an_error(tuned, tmp_path, names):
    folder = edited(tuned, tmp_path, id2label=dict(enumerate(names)))
    with pytest.raises(
        ModelError, match=r"has the classes .* \(id2label in config.json\), and mood"
    ) as e:
        load_for_task(folder, MOOD)
    assert "no, cat, in this order" in str(e.value)
    assert f"--labels {','.join(names)}" in str(e.value)
    assert len(str(e.value).splitlines()) <= 3


def test_names_that_differ_in_spelling_only_are_the_same(tuned, tmp_path):
    task = Task("rte", ("entailment", "not_entailment"), ("accuracy",))
    folder = edited(tuned, tmp_path, id2label={"0": "ENTAILMENT", "1": "not entailment"})
    assert load_for_task(folder, task).notes == ()


def test_classes_without_names_are_taken_in_order_and_told(tuned, tmp_path):
    folder = edited(tuned, tmp_path, id2label={"0": "LABEL_0", "1": "LABEL_1"})
    (note,) = load_for_task(folder, MOOD).notes
    assert note.endswith("does not name its classes (LABEL_0, LABEL_1): taken as no, cat")


@pytest.mark.parametrize("task", [GLUE["mnli"], GLUE["sts-b"]])
def test_another_number_of_classes_is_an_error(tuned, task):
    with pytest.raises(
        ModelError, match=r"has 2 classes \(no, cat\), and (mnli has 3|sts-b has none)"
    ):
        load_for_task(tuned, task)


def test_a_head_of_a_regression_fits_a_regression_only(tmp_path):
    folder = checkpoint(tmp_path / "model", head=AMOUNT)
    assert load_for_task(folder, AMOUNT).model.network.config.problem_type == "regression"
    with pytest.raises(ModelError, match="has 1 classes"):
        load_for_task(folder, MOOD)


def test_an_encoder_decoder_is_refused(tmp_path):
    config = BartConfig(
        vocab_size=13,
        d_model=16,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=16,
        decoder_ffn_dim=16,
        max_position_embeddings=48,
        pad_token_id=0,
        bos_token_id=2,
        eos_token_id=3,
    )
    BartModel(config).save_pretrained(tmp_path / "bart")
    wordpiece().save_pretrained(tmp_path / "bart")
    for options in ({}, {"new_head": True}):
        with pytest.raises(ModelError, match="is an encoder-decoder"):
            load_for_task(tmp_path / "bart", Task("t", ("a", "b", "c"), ("f1",)), **options)


def test_pickled_weights_are_refused_unread(tuned, tmp_path):
    folder = edited(tuned, tmp_path)
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(ModelError, match=r"has no \*.safetensors"):
        load_for_task(folder, MOOD)


def test_the_task_of_a_checkpoint_is_glues_or_its_own(tuned, tmp_path):
    assert task_of(tuned, "RTE") is GLUE["rte"]
    assert task_of(tuned, "mine") == Task("mine", ("no", "cat"), ("accuracy", "f1"))
    folder = checkpoint(tmp_path / "model", head=AMOUNT)
    assert task_of(folder, "mine").is_regression
    with pytest.raises(ModelError, match="no folder here, and no id of the hub"):
        task_of(tmp_path / "nowhere", "mine")


def test_a_decoder_without_padding_answers_at_the_last_token_of_each_text(tmp_path):
    """A token that also fills must not be taken for the end of a text, or the end for padding."""
    from transformers import GPT2Config, GPT2Model

    from headscope.tasks.predict import encode, outputs
    from headscope.tasks.task_data import TaskData, TaskExample
    from model.families.tokenizers_made import bytes_bpe

    config = GPT2Config(vocab_size=13, n_embd=16, n_layer=2, n_head=2, n_positions=32)
    GPT2Model(config).save_pretrained(tmp_path / "gpt")
    bytes_bpe(eos_token="<|end|>").save_pretrained(tmp_path / "gpt")
    model = load_for_task(tmp_path / "gpt", MOOD, new_head=True)
    rows = tuple(TaskExample(str(n), "a b a, b."[:n], None, n % 2) for n in (1, 3, 6, 9))
    found = outputs(model, encode(model, TaskData(MOOD, rows, "", "")))
    for row, logits in zip(rows, found, strict=True):
        ids = model.model.tokenizer(row.text_a, return_tensors="pt")["input_ids"]
        with torch.no_grad():
            hidden = model.model.network.transformer(ids).last_hidden_state[0, -1]
            alone = model.model.network.score(hidden)
        torch.testing.assert_close(torch.tensor(logits).float(), alone, atol=1e-5, rtol=1e-5)


def test_asking_for_the_labels_of_a_glue_task_is_refused():
    from headscope.tasks.task_request import TaskRequest, task_named

    with pytest.raises(InputError, match="rte is a task of GLUE, whose labels are known"):
        task_named("rte", TaskRequest(labels=["a", "b"]))
