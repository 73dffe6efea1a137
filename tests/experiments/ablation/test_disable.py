"""Is a head that is disabled for good gone wherever the checkpoint is loaded?"""

from __future__ import annotations

import pytest
import torch

from experiments.ablation.classifiers import batch, classifier, sizes
from headscope.errors import ModelError
from headscope.experiments.ablation.pruned_checkpoint import check_disabled, disable, disabled
from headscope.model.model import forward
from headscope.model.variant_answers import naive
from headscope.model.variants import StandIn
from model.families.tiny import FAMILIES

GONE = frozenset({(0, 1), (1, 0), (1, 3)})
LENGTHS = (9, 6, 2)
NAMES = ["BERT", "DistilBERT", "RoBERTa", "ModernBERT", "GPT-2", "OPT", "Llama", "Gemma2", "Phi3"]


def answers(network, shown):
    return forward(network, shown.input_ids, shown.mask, shown.segment_ids).logits


@pytest.mark.parametrize("name", NAMES)
def test_a_disabled_head_adds_nothing(name):
    network, shown = classifier(name), batch(*LENGTHS)
    layers, heads = sizes(network)
    whole, wanted = naive(network, shown, [GONE], StandIn("zero"))
    disable(network, GONE, layers=layers, per_layer=heads)
    torch.testing.assert_close(answers(network, shown), wanted, atol=1e-5, rtol=1e-5)
    assert (whole - wanted).abs().max() > 1e-2


def test_inside_the_context_only():
    network, shown = classifier("BERT"), batch(*LENGTHS)
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    whole = answers(network, shown)
    with disabled(network, GONE, layers=2, per_layer=4):
        assert not torch.equal(answers(network, shown), whole)
    for name, tensor in network.state_dict().items():
        assert torch.equal(tensor, before[name])


def test_layers_that_share_weights_are_refused():
    with pytest.raises(ModelError, match="shares weights between layers"):
        disable(classifier("ALBERT"), GONE, layers=2, per_layer=4)


def test_a_family_off_the_registry_is_refused():
    with pytest.raises(ModelError, match="output projections of its own kind"):
        disable(FAMILIES["DeBERTa v2"].build(), GONE, layers=2, per_layer=4)


def test_a_projection_that_is_given_something_else_is_found_out():
    """Where what heads give is changed before it is projected, zeros in W_O are not enough."""
    network, shown = classifier("BERT"), batch(*LENGTHS)
    check_disabled(network, shown, GONE, layers=2, per_layer=4)
    dense = network.bert.encoder.layer[1].attention.output.dense
    dense.register_forward_pre_hook(lambda _m, inputs: (inputs[0].roll(8, -1),))
    with pytest.raises(ModelError, match="misreads its output projection"):
        check_disabled(network, shown, GONE, layers=2, per_layer=4)
