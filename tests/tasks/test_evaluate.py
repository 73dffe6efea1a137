"""Are the answers those of the plain transformers model to each example by itself?"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from headscope.tasks.predict import encode, outputs
from headscope.tasks.task_model import load_for_task
from tasks.made import AMOUNT, MOOD, checkpoint, data


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
