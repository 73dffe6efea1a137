"""Examples are encoded as by the tokenizer, cuts are counted, answers are the plain model's."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from headscope.errors import InputError
from headscope.tasks.predict import encode, outputs
from headscope.tasks.task_data import TaskData, TaskExample, read_task
from headscope.tasks.task_model import load_for_task
from model.families.tokenizers_made import wordpiece
from tasks.made import AMOUNT, MOOD, checkpoint, data


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = checkpoint(tmp_path_factory.mktemp("model") / "model", head=MOOD)
    return load_for_task(folder, MOOD)


@pytest.mark.parametrize("pair", [False, True])
@pytest.mark.parametrize("limit", [128, 11, 6])
def test_every_row_is_what_the_tokenizer_makes_of_it_alone(model, pair, limit):
    rows = data(30, pair=pair)
    found = encode(model, rows, max_length=limit)
    cut = 0
    for row, example in zip(rows.rows, found.examples, strict=True):
        texts = (row.text_a,) if row.text_b is None else (row.text_a, row.text_b)
        alone = model.model.tokenizer(
            *texts,
            truncation="longest_first",
            max_length=min(limit, 48),
            return_special_tokens_mask=True,
        )
        assert example.input_ids.tolist() == alone["input_ids"]
        assert example.segment_ids.tolist() == alone["token_type_ids"]
        assert example.special.tolist() == [bool(x) for x in alone["special_tokens_mask"]]
        assert (example.id, example.document) == (row.id, row.id)
        whole = len(model.model.tokenizer(*texts, truncation=False)["input_ids"])
        cut += whole > limit
    assert found.cut == cut
    assert (cut > 0) == (limit < 128)
    assert found.labels.tolist() == [row.label for row in rows.rows]


def test_the_longer_text_of_a_pair_loses_its_end_first(model):
    row = TaskExample("x", "a b a b a b a b", "the cat", 0)
    (found,) = encode(model, TaskData(MOOD, (row,), "", ""), max_length=9).examples
    tokens = model.model.tokenizer.convert_ids_to_tokens(found.input_ids)
    assert tokens == ["[CLS]", "a", "b", "a", "b", "[SEP]", "the", "cat", "[SEP]"]


def test_without_segments_from_the_tokenizer_there_are_none(model, tmp_path):
    """transformers itself trains such a network on zeros."""
    folder = checkpoint(tmp_path / "model", head=MOOD)
    wordpiece().save_pretrained(folder)
    found = encode(load_for_task(folder, MOOD), data(3, pair=True))
    assert not any(example.segment_ids.any() for example in found.examples)
    assert encode(model, data(3, pair=True)).examples[0].segment_ids.any()


def test_cuts_are_told_and_no_cut_is_not(model):
    assert encode(model, data(30)).note is None
    note = encode(model, data(30), max_length=6).note
    assert note is not None
    assert note.endswith("of 30 examples cut to 6 tokens")


def test_never_more_tokens_than_the_model_takes(model):
    row = TaskExample("x", "a " * 100, None, 0)
    found = encode(model, TaskData(MOOD, (row,), "", ""), max_length=4000)
    assert (len(found.examples[0]), found.limit, found.cut) == (48, 48, 1)


def test_a_length_without_room_for_both_texts_is_refused(model):
    with pytest.raises(InputError, match="a length of 4 tokens; wanted 5"):
        encode(model, data(2), max_length=4)


def test_encoding_leaves_the_tokenizer_as_it_was(model):
    before = model.model.tokenizer.backend_tokenizer.to_str()
    encode(model, data(3), max_length=6)
    assert model.model.tokenizer.backend_tokenizer.to_str() == before


def test_the_demo_tokenizer_neither_pads_nor_cuts_by_its_own_settings(shared):
    """It was saved with a padding to 128 tokens of its own."""
    rows = read_task("rte", shared / "data/glue", limit=20)
    model = load_for_task("demo", rows.task, new_head=True)
    found = encode(model, rows, max_length=512)
    lengths = [len(example) for example in found.examples]
    assert len(set(lengths)) > 5
    assert not any((example.input_ids == 0).any() for example in found.examples)
    assert found.cut == 0
    assert np.unique(found.examples[0].segment_ids).tolist() == [0, 1]


@pytest.mark.parametrize("task", [MOOD, AMOUNT])
@pytest.mark.parametrize("pair", [False, True])
@pytest.mark.parametrize("budget", [1, 100, 2048])
def test_answers_are_those_to_each_example_by_itself(task, pair, budget, tmp_path):
    folder = checkpoint(tmp_path / "model", head=task)
    model, rows = load_for_task(folder, task), data(23, task=task, pair=pair)
    found = outputs(model, encode(model, rows), batch_tokens=budget)
    network = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    with torch.no_grad():
        alone = [
            network(**tokenizer(r.text_a, r.text_b, return_tensors="pt")).logits[0].numpy()
            for r in rows.rows
        ]
    wanted = np.array(alone)[:, 0] if task.is_regression else np.array(alone)
    assert found.shape == wanted.shape
    assert np.ptp(found, axis=0).min() > 0.01  # answers that are all alike would hide a mix-up
    np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_nothing_drops_out_and_the_training_mode_comes_back(tmp_path):
    model = load_for_task(checkpoint(tmp_path / "model", head=MOOD), MOOD)
    encoded = encode(model, data(8))
    model.model.network.train()
    first, again = outputs(model, encoded), outputs(model, encoded)
    np.testing.assert_array_equal(first, again)
    assert model.model.network.training
