"""Does attention grown from nothing add up to what it changes, edge by edge as by hand?"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from experiments.ablation.classifiers import NAMES, batch, classifier, sizes
from headscope.experiments.importance.attribution import Grown, attributions, steps_of
from headscope.experiments.importance.gradients import frozen
from headscope.experiments.importance.task_loss import TaskLoss
from headscope.model.instrument import Instrument
from headscope.model.model import forward, run_network
from headscope.tasks.task import Task
from reference.importance import attribution

LENGTHS = (9, 4, 7)
CAUSAL_OR_WINDOWED = set(NAMES) - {
    "BERT",
    "RoBERTa",
    "XLM-R XL",
    "DistilBERT",
    "ALBERT",
    "ALBERT groups",
    "ELECTRA",
    "ERNIE",
}
OBJECTIVE = TaskLoss(Task("made", ("a", "b", "c"), ("accuracy",)), np.array([0, 2, 1]))


def gentle(name):
    """A classifier whose answers are smooth in its maps, as those of trained ones are."""
    network = classifier(name).double()
    for parameter in network.parameters():
        parameter.data *= 0.4 if parameter.ndim > 1 else 1.0
    return network


def probability(right):
    return lambda logits: logits.softmax(-1)[0, right]


def grown(network, made, *, steps):
    with frozen(network), Grown(network) as opened:
        return attributions(opened, made, [0, 1, 2], objective=OBJECTIVE, steps=steps)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_steps_integrate_polynomials_exactly(count):
    at, weights = steps_of(count)
    assert 0 < float(at.min()) <= float(at.max()) < 1
    for power in range(2 * count):
        assert float((weights * at**power).sum()) == pytest.approx(1 / (power + 1), abs=1e-14)


def test_attributions_are_those_of_the_paper_written_out():
    network, made = gentle("BERT"), batch(*LENGTHS)
    found = grown(network, made, steps=12)
    modules = [layer.attention.self for layer in network.bert.encoder.layer]
    for row, example in enumerate(made.examples):
        right = int(OBJECTIVE.labels[row])
        wanted = attribution(
            network,
            example.input_ids,
            probability(right),
            modules,
            steps=100,
        )
        largest = torch.stack([w.amax((1, 2)) for w in wanted]).numpy()
        total = torch.stack([w.sum((1, 2)) for w in wanted]).numpy()
        np.testing.assert_allclose(found["attribution"][row], largest, atol=1e-4)
        np.testing.assert_allclose(found["attribution_sum"][row], total, atol=1e-4)
        assert np.abs(total).max() > 0.01


@pytest.mark.parametrize("name", NAMES)
def test_every_family_gives_what_whole_passes_would(name):
    network, made = classifier(name).double(), batch(*LENGTHS)
    steps = 3
    found = grown(network, made, steps=steps)
    right = torch.from_numpy(OBJECTIVE.labels)
    edges = made.mask[:, None, :, None] & made.mask[:, None, None]
    for layer in range(sizes(network)[0]):
        worth = 0.0
        for scale, weight in zip(*steps_of(steps), strict=True):
            kept = {}

            def scaled(call, layer=layer, scale=scale, kept=kept):
                if call.layer == layer:
                    kept["whole"] = call.attention.detach()
                    kept["maps"] = (kept["whole"] * scale).requires_grad_()
                    call.attention = kept["maps"]

            with Instrument(network, interventions=[scaled]):
                logits = run_network(network, made.input_ids, made.mask, made.segment_ids).logits
            told = logits.softmax(-1)[range(3), right].sum()
            (slope,) = torch.autograd.grad(told, [kept["maps"]])
            worth = worth + kept["whole"] * slope * weight
        total = (worth * edges).sum((2, 3)).numpy()
        scale = max(np.abs(total).max(), 1e-3)
        np.testing.assert_allclose(found["attribution_sum"][:, layer], total, atol=1e-4 * scale)
        if name not in CAUSAL_OR_WINDOWED:  # else edges that are masked count as 0 here
            largest = worth.masked_fill(~edges, -torch.inf).amax((2, 3)).numpy()
            np.testing.assert_allclose(found["attribution"][:, layer], largest, atol=1e-4 * scale)


@pytest.mark.parametrize("name", ["BERT", "RoBERTa", "GPT-2"])
def test_the_attributions_of_a_layer_sum_up_to_what_the_answer_changes_without_it(name):
    found = grown(gentle(name), batch(*LENGTHS), steps=16)
    assert np.abs(found["change"]).max() > 1e-3
    np.testing.assert_allclose(found["attribution_sum"].sum(-1), found["change"], atol=1e-5)


def test_the_answer_without_a_layer_is_that_of_maps_of_nothing():
    network, made = classifier("BERT").double(), batch(*LENGTHS)
    change = grown(network, made, steps=2)["change"]

    def answers(off):
        def nothing(call):
            if call.layer == off:
                call.attention = call.attention * 0

        with Instrument(network, interventions=[nothing]):
            logits = forward(network, made.input_ids, made.mask, made.segment_ids).logits
        return logits.softmax(-1)[range(3), OBJECTIVE.labels].numpy()

    wanted = [answers(None) - answers(layer) for layer in range(sizes(network)[0])]
    np.testing.assert_allclose(change, np.stack(wanted, 1), atol=1e-12)


def test_more_steps_err_less():
    network, made = gentle("BERT"), batch(*LENGTHS)
    errors = []
    for steps in (1, 2, 4):
        found = grown(network, made, steps=steps)
        errors.append(np.abs(found["attribution_sum"].sum(-1) - found["change"]).max())
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 1e-2 * errors[0]
