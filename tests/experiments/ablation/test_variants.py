"""Does a head that is switched off attend, or give, what is said?"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from experiments.ablation.classifiers import batch, classifier, sizes
from headscope.errors import InputError
from headscope.model.attention import visible
from headscope.model.instrument import Instrument
from headscope.model.model import forward
from headscope.model.variant_answers import naive
from headscope.model.variants import StandIn, even, mean_mixtures

LENGTHS = (9, 6, 2)


def seen(network, shown, *, off=None):
    """The layers of one forward pass, with an intervention or without."""
    views = []
    with Instrument(network, observers=[views.append], interventions=[off] if off else []):
        forward(network, shown.input_ids, shown.mask, shown.segment_ids)
    return views


@pytest.mark.parametrize("name", ["BERT", "DistilBERT", "ALBERT", "ELECTRA"])
def test_rows_of_an_even_head_are_1_over_L_on_real_tokens_and_0_on_padding(name):
    network, shown = classifier(name), batch(*LENGTHS)
    plain = seen(network, shown)
    views = seen(network, shown, off=StandIn("uniform").switching_off(frozenset({(1, 2)})))
    padded = shown.input_ids.shape[1]
    assert padded > max(LENGTHS)
    for example, length in enumerate(LENGTHS):
        wanted = np.concatenate([np.full(length, 1 / length), np.zeros(padded - length)])
        rows = views[1].attention[example, 2, :length].numpy()
        np.testing.assert_allclose(rows, np.tile(wanted, (length, 1)), rtol=1e-6, atol=0)
    # It was not even before, and no other head of the layer has changed.
    assert (plain[1].attention[:, 2] - views[1].attention[:, 2]).abs().max() > 0.1
    others = [0, 1, 3]
    torch.testing.assert_close(views[1].attention[:, others], plain[1].attention[:, others])
    torch.testing.assert_close(views[0].attention, plain[0].attention)


@pytest.mark.parametrize("name", ["GPT-2", "Llama", "GPT-NeoX"])
def test_an_even_head_of_a_decoder_looks_back_only(name):
    network, shown = classifier(name), batch(*LENGTHS)
    views = seen(network, shown, off=StandIn("uniform").switching_off(frozenset({(0, 1)})))
    for example, length in enumerate(LENGTHS):
        for query in range(length):
            row = views[0].attention[example, 1, query].numpy()
            np.testing.assert_allclose(row[: query + 1], 1 / (query + 1), rtol=1e-6)
            assert (row[query + 1 :] == 0).all()


def test_an_even_head_of_a_sliding_window_stays_in_it():
    network, shown = classifier("ModernBERT"), batch(12)
    plain = seen(network, shown)
    views = seen(network, shown, off=StandIn("uniform").switching_off(frozenset({(1, 0)})))
    reach = plain[1].attention[0].amax(0) > 0  # what any head can see in this layer
    assert 0 < reach.sum() < reach.numel()
    wanted = reach.float() / reach.sum(-1, keepdim=True)
    torch.testing.assert_close(views[1].attention[0, 0], wanted)


@pytest.mark.parametrize("name", ["BERT", "Llama"])
def test_a_zeroed_head_gives_nothing_and_the_others_what_they_gave(name):
    network, shown = classifier(name), batch(*LENGTHS)
    plain = seen(network, shown)[1]
    view = seen(network, shown, off=StandIn("zero").switching_off(frozenset({(1, 3)})))[1]
    weight, bias = plain.projection.weight, plain.projection.bias
    mixed = plain.attention @ plain.values  # [example, head, query, dim]
    without = torch.einsum("bhqd,hdm->bqm", mixed[:, :3], weight[:3])
    real = shown.mask
    wanted = without if bias is None else without + bias
    torch.testing.assert_close(view.output[real], wanted[real], atol=1e-5, rtol=1e-5)


def test_a_mean_head_gives_its_mean_over_all_real_queries_of_all_examples():
    network = classifier("BERT")
    batches = [batch(9, 6, 2, seed=1), batch(5, 5, seed=2)]
    total, count = 0.0, 0
    for shown in batches:
        view = seen(network, shown)[1]
        for example, length in enumerate(shown.lengths):
            attention = view.attention[example, 2, :length].numpy().astype(np.float64)
            total = total + (attention @ view.values[example, 2].numpy()).sum(0)
            count += int(length)
    means = mean_mixtures(network, batches)
    np.testing.assert_allclose(means[1, 2].numpy(), total / count, rtol=1e-5)
    off = StandIn("mean", means).switching_off(frozenset({(1, 2)}))
    view = seen(network, batches[0], off=off)[1]
    mixed = (view.attention @ view.values)[:, 2][batches[0].mask]  # [token, dim]
    wanted = means[1, 2].float().expand_as(mixed)
    torch.testing.assert_close(mixed, wanted, atol=1e-6, rtol=1e-5)


def test_a_key_that_softmax_leaves_nothing_of_is_still_seen_evenly():
    """The keys come from the mask: a weight of exactly 0 may be that of a real token."""
    scores = torch.zeros((1, 1, 1, 3))
    mask = torch.tensor([[[[0.0, 0.0, torch.finfo(torch.float32).min]]]])
    assert even(visible(mask, scores), torch.float32).tolist() == [[[[0.5, 0.5, 0.0]]]]
    assert even(visible(None, scores), torch.float32).sum() == pytest.approx(1)


def test_nothing_is_switched_off_without_a_head():
    network, shown = classifier("BERT"), batch(*LENGTHS)
    first, again = naive(network, shown, [frozenset()], StandIn())
    assert torch.equal(first, again)


def test_an_unknown_replacement_is_refused():
    with pytest.raises(InputError, match="uniform, zero, mean"):
        StandIn("median")
    with pytest.raises(InputError, match="mean"):
        StandIn("uniform", torch.zeros(1))
    assert sizes(classifier("BERT")) == (2, 4)
