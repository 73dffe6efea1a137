"""Are the gradients that pass by those that transformers' own eager attention would keep?"""

from __future__ import annotations

import numpy as np
import pytest
import torch
import transformers
from torch.nn import functional

from experiments.ablation.classifiers import CAUSAL, NAMES, batch, classifier, sizes
from headscope.core.head_names import HeadNames
from headscope.corpus.document import Example
from headscope.errors import ModelError
from headscope.experiments.importance.gradients import Streaming, following
from headscope.experiments.importance.result import GradientSums
from headscope.experiments.importance.task_loss import TaskLoss
from headscope.model.batch import CATEGORIES, Batch
from headscope.model.linears import linears
from headscope.model.model import run_network
from headscope.model.vocabulary import Vocabulary
from headscope.tasks.task import Task
from model.families.tiny import FAMILIES, sharpened
from reference.importance import maps_and_gradients, mean_magnitude, with_a_mask_on_heads

EVERY = HeadNames(())  # every layer attends
LENGTHS = (9, 4, 7)
LABELS = torch.tensor([0, 2, 1])
TASK = Task("made", ("a", "b", "c"), ("accuracy",))
# Their norms, rotations or softmax compute in float32 whatever they are given.
FLOAT32 = (
    "ModernBERT",
    "GPT-NeoX",
    "OPT",
    "OPT post-norm",
    "Llama",
    "Mistral",
    "Qwen3",
    "Gemma2",
    "Gemma3",
    "Phi3",
    "OLMo 2",
)


def losses(logits, right=LABELS):
    return functional.cross_entropy(logits, right, reduction="none")


def loss_of(row):
    """The loss of one example by itself."""
    return lambda logits: losses(logits, LABELS[row : row + 1]).sum()


def seen_by(network, made, observer=None):
    """[layer] LayerGradients of a batch, copied; the losses."""
    seen = {}

    def keep(layer):
        seen[layer.layer] = layer.attention.clone(), layer.gradient.clone(), layer.product.clone()
        if observer is not None:
            observer(layer)

    with Streaming(network, keep, EVERY) as stream:
        answer = run_network(network, made.input_ids, made.mask, made.segment_ids)
        told = losses(answer.logits)
        stream.backward(told.sum())
    return [seen[at] for at in range(len(seen))], told


@pytest.mark.parametrize("name", NAMES)
def test_gradients_are_those_of_plain_eager_attention_one_example_at_a_time(name):
    network, made = classifier(name).double(), batch(*LENGTHS)
    found, _ = seen_by(network, made)
    assert len(found) == sizes(network)[0]
    allowed = 1e-5 if name in FLOAT32 else 1e-9
    for row, example in enumerate(made.examples):
        maps, gradients = maps_and_gradients(network, example.input_ids, loss_of(row))
        n = len(example)
        for layer, (own, wanted) in enumerate(zip(maps, gradients, strict=True)):
            edges = own > 0
            assert edges.any()
            attention, gradient, product = (t[row, :, :n] for t in found[layer])
            scale = float(wanted.abs().max())
            gap = (gradient[..., :n] - wanted)[edges].abs().max()
            assert float(gap) <= allowed * scale
            torch.testing.assert_close(attention[..., :n], own, atol=allowed, rtol=allowed)
            torch.testing.assert_close(
                product, (own * wanted).sum(-1), atol=10 * allowed * scale, rtol=1e-4
            )


def test_float32_gives_the_same_to_five_digits():
    wanted, _ = seen_by(classifier("BERT").double(), batch(*LENGTHS))
    found, _ = seen_by(classifier("BERT"), batch(*LENGTHS))
    for one, other in zip(found, wanted, strict=True):
        scale = float(other[1].abs().max())
        torch.testing.assert_close(one[1].double(), other[1], atol=1e-5 * scale, rtol=1e-5)


def test_fast_linears_run_backwards_too():
    network = classifier("BERT")
    wanted, _ = seen_by(network, batch(*LENGTHS))
    with linears(network, "onednn"):
        found, _ = seen_by(network, batch(*LENGTHS))
    for one, other in zip(found, wanted, strict=True):
        scale = float(other[1].abs().max())
        torch.testing.assert_close(one[1], other[1], atol=1e-5 * scale, rtol=1e-4)


def test_fast_linears_leave_weights_that_are_trained_their_gradients():
    network, made = classifier("BERT"), batch(5)
    gradients = []
    for kind in ("stock", "onednn"):
        network.zero_grad()
        with linears(network, kind):
            run_network(network, made.input_ids, made.mask).logits.sum().backward()
        gradients.append(network.classifier.weight.grad.clone())
        assert network.bert.encoder.layer[0].intermediate.dense.weight.grad is not None
    torch.testing.assert_close(*gradients, atol=1e-5, rtol=1e-4)


def test_afterwards_the_network_is_as_it_was():
    network, made = classifier("BERT"), batch(5, 3)
    network.classifier.bias.requires_grad_(False)
    before = network.config._attn_implementation

    def stopped():
        with Streaming(network, print, EVERY):
            assert not any(p.requires_grad for p in network.parameters())
            run_network(network, made.input_ids, made.mask)
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        stopped()
    assert network.config._attn_implementation == before
    asking = {name for name, p in network.named_parameters() if p.requires_grad}
    assert set(dict(network.named_parameters())) - asking == {"classifier.bias"}
    assert all(p.grad is None for p in network.parameters())


@pytest.mark.parametrize("name", ["BART", "T5"])
def test_encoder_decoders_are_refused(name):
    with pytest.raises(ModelError, match="is an encoder-decoder; wanted an encoder or a decoder"):
        following(FAMILIES[name].build(), print, EVERY)


@pytest.mark.parametrize("name", ["MPNet", "DeBERTa v2"])
def test_families_off_the_registry_have_the_gradients_of_their_own_maps(name):
    family = FAMILIES[name]
    options = {**family.options, "num_labels": 3, "attn_implementation": "eager"}
    made = getattr(transformers, f"{family.name}ForSequenceClassification")
    network = sharpened(made(getattr(transformers, f"{family.name}Config")(**options))).eval()
    network, shown = network.double(), batch(*LENGTHS)
    seen = {}
    with following(network, lambda layer: seen.__setitem__(layer.layer, layer), EVERY) as stream:
        logits = run_network(network, shown.input_ids, shown.mask, shown.segment_ids).logits
        stream.backward(losses(logits).sum())
    assert list(seen) == [1, 0]
    for row, example in enumerate(shown.examples):
        maps, gradients = maps_and_gradients(network, example.input_ids, loss_of(row))
        n = len(example)
        for layer, (own, wanted) in enumerate(zip(maps, gradients, strict=True)):
            found = seen[layer].gradient[row, :, :n, :n]
            scale = float(wanted.abs().max())
            torch.testing.assert_close(found, wanted, atol=1e-6 * scale, rtol=1e-6)
            product = seen[layer].product[row, :, :n]
            torch.testing.assert_close(product, (own * wanted).sum(-1), atol=1e-5, rtol=1e-5)
    assert not any(module._forward_hooks for module in network.modules())


def test_a_loss_that_does_not_depend_on_attention_is_refused():
    network, made = classifier("BERT"), batch(5)
    with Streaming(network, print, EVERY) as stream:
        run_network(network, made.input_ids, made.mask)
        with pytest.raises(ModelError, match="does not depend on it"):
            stream.backward(torch.zeros(()))


# --- sums over edges ------------------------------------------------------------------------

CLS, SEP, STOP = 5, 6, 7


def marked(*lengths, seed=0):
    """A batch with special tokens and punctuation; categories [example][key] as numbers."""
    rng = np.random.default_rng(seed)
    examples, kinds = [], []
    for at, length in enumerate(lengths):
        ids = rng.integers(8, 80, length)
        ids[0], ids[-1], ids[length // 2] = CLS, SEP, STOP
        kinds.append(np.select([ids == CLS, ids == SEP, ids == STOP], [0, 1, 2], 3))
        zeros = np.zeros(length, np.int64)
        examples.append(Example(str(at), str(at), ids, zeros, zeros.astype(bool)))
    made = Batch.of(examples, Vocabulary(CLS, SEP, (STOP,)), replicates=0)
    return made, kinds


@pytest.mark.parametrize("name", ["BERT", *CAUSAL])
def test_sums_by_category_count_real_edges_only(name):
    network, (made, kinds) = classifier(name).double(), marked(*LENGTHS)
    layers, heads = sizes(network)
    gather = GradientSums(made, layers=layers, heads=heads)
    seen_by(network, made, gather)
    for row, example in enumerate(made.examples):
        maps, gradients = maps_and_gradients(network, example.input_ids, loss_of(row))
        sums, edges = mean_magnitude(gradients, kinds[row], causal=name in CAUSAL)
        np.testing.assert_allclose(gather.magnitude[row], sums, rtol=1e-4, atol=1e-9)
        np.testing.assert_array_equal(gather.edges[row], np.tile(edges, (layers, 1)))
        attention = np.stack([m.numpy().sum(1) for m in maps]) @ np.eye(len(CATEGORIES))[kinds[row]]
        np.testing.assert_allclose(gather.attention[row], attention, rtol=1e-5, atol=1e-7)


def test_a_window_takes_edges_away():
    network, (made, _) = classifier("Mistral"), marked(9, 7)
    gather = GradientSums(made, layers=sizes(network)[0], heads=sizes(network)[1])
    with Streaming(network, gather, EVERY) as stream:
        logits = run_network(network, made.input_ids, made.mask, made.segment_ids).logits
        stream.backward(losses(logits, LABELS[:2]).sum())
    within = [min(query + 1, network.config.sliding_window) for query in range(9)]
    assert gather.edges[0].sum(-1).tolist() == [sum(within)] * len(gather.edges[0])


def test_michel_is_the_gradient_of_a_mask_on_each_head():
    network, made = classifier("BERT").double(), batch(*LENGTHS)
    layers, heads = sizes(network)
    gather = GradientSums(made, layers=layers, heads=heads)
    seen_by(network, made, gather)
    projections = [layer.attention.output.dense for layer in network.bert.encoder.layer]
    for row, example in enumerate(made.examples):
        wanted = with_a_mask_on_heads(
            network,
            example.input_ids,
            loss_of(row),
            projections,
            heads=heads,
        )
        np.testing.assert_allclose(gather.product[row], wanted, rtol=1e-9, atol=1e-12)


def test_an_example_has_the_same_gradients_in_any_batch():
    network = classifier("BERT").double()
    together, (made, _) = [], marked(*LENGTHS)
    for rows in ([0, 1, 2], [1]):
        few = Batch.of([made.examples[at] for at in rows], made.vocabulary, replicates=0)
        gather = GradientSums(few, layers=sizes(network)[0], heads=sizes(network)[1])
        objective = TaskLoss(TASK, LABELS.numpy())
        with Streaming(network, gather, EVERY) as stream:
            logits = run_network(network, few.input_ids, few.mask, few.segment_ids).logits
            stream.backward(objective.losses(logits, rows).sum())
        together.append(gather.magnitude[rows.index(1)])
    np.testing.assert_allclose(together[0], together[1], rtol=1e-9)
