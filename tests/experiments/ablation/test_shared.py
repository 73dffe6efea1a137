"""Are answers from a shared prefix those of full forward passes?"""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from transformers import BertConfig, BertForSequenceClassification
from transformers.models.bert.modeling_bert import BertLayer

from experiments.ablation.classifiers import NAMES, batch, classifier, examples, sizes
from headscope.model.linears import linears
from headscope.model.model import Model, forward
from headscope.model.shared_prefix import SharedPrefix
from headscope.model.variant_answers import Way, answering, choose_way, naive
from headscope.model.variants import WAYS, StandIn, single_heads, whole_layers
from model.families.tiny import sharpened

LENGTHS = (9, 6, 2)


def stand_in(how, network):
    layers, heads = sizes(network)
    generator = torch.Generator().manual_seed(3)
    if how != "mean":
        return StandIn(how)
    dim = getattr(network.config, "head_dim", None) or 32 // heads
    return StandIn("mean", torch.randn((layers, heads, dim), generator=generator))


def variants_of(network):
    layers, heads = sizes(network)
    several = [frozenset({(0, 1), (1, 0), (1, 3)}), frozenset({(0, 2), (layers - 1, 1)})]
    return [*single_heads(layers, heads), *whole_layers(layers, heads), *several]


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("name", NAMES)
def test_a_shared_prefix_gives_what_full_passes_give(name, how):
    network, shown = classifier(name), batch(*LENGTHS)
    variants, instead = variants_of(network), stand_in(how, classifier(name))
    wanted = naive(network, shown, variants, instead)
    for way in (Way("shared"), Way("shared with projections")):
        with answering(network, way, instead) as answers:
            found = answers(shown, variants)
        torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-5)
    moved = (wanted[1:] - wanted[0]).abs().amax((1, 2))
    assert (moved > 1e-3).sum() > len(variants) / 2  # else nothing was compared


def test_few_variants_at_once_and_all_at_once_are_the_same():
    network, shown = classifier("BERT"), batch(*LENGTHS)
    variants = variants_of(network)
    found = []
    for tokens in (1, 70, 10_000):
        with answering(network, Way("shared"), StandIn(), batch_tokens=tokens) as answers:
            found.append(answers(shown, variants))
    torch.testing.assert_close(found[0], found[2], atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(found[1], found[2], atol=1e-6, rtol=1e-5)


def test_packed_linear_maps_give_the_same_and_are_put_back():
    network, shown = classifier("DistilBERT"), batch(*LENGTHS)
    variants = variants_of(network)
    wanted = naive(network, shown, variants, StandIn())
    with linears(network, "onednn"):
        packed = {m: m.forward for m in network.modules() if "forward" in vars(m)}
        assert packed
        with answering(network, Way("shared"), StandIn()) as answers:
            found = answers(shown, variants)
        assert {m: m.forward for m in network.modules() if "forward" in vars(m)} == packed
    torch.testing.assert_close(found, wanted, atol=1e-4, rtol=1e-4)
    assert not [m for m in network.modules() if "forward" in vars(m)]


def test_layers_below_the_changed_one_do_not_run_again():
    network, shown = classifier("Llama"), batch(*LENGTHS)
    ran: list[int] = []
    for at, layer in enumerate(network.model.layers):
        layer.mlp.register_forward_hook(lambda *_, at=at: ran.append(at))
    projected: list[tuple[str, bool]] = []
    for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
        part = getattr(network.model.layers[1].self_attn, name)
        part.register_forward_hook(
            lambda _m, _a, output, name=name: projected.append((name, bool(output.any())))
        )
    with SharedPrefix(network, StandIn()) as prefix:
        kept = prefix.whole(shown)
        ran.clear()
        projected.clear()
        prefix.variants(shown, kept, 1, [frozenset({(1, 0)}), frozenset({(1, 1)})])
    assert ran == [1]
    # Queries, keys and values of the changed layer are not computed anew.
    assert projected == [(n, n == "o_proj") for n in ("q_proj", "k_proj", "v_proj", "o_proj")]


def test_the_network_is_as_it_was_also_after_an_error():
    network, shown = classifier("BERT"), batch(*LENGTHS)
    before = forward(network, shown.input_ids, shown.mask).logits
    implementation = network.config._attn_implementation
    shown_no_more = replace(shown, input_ids=shown.input_ids + 1000)  # not in the vocabulary
    with SharedPrefix(network, StandIn()) as prefix, pytest.raises(IndexError):
        prefix.whole(shown_no_more)
    assert network.config._attn_implementation == implementation
    assert not [m for m in network.modules() if "forward" in vars(m) or m._forward_hooks]
    assert torch.equal(forward(network, shown.input_ids, shown.mask).logits, before)


# --- networks for which it does not serve -----------------------------------------------------


class Skipping(BertForSequenceClassification):
    """Reads its answer off the first layer as well: past the layers, where nobody sees it."""

    def forward(self, *args, **kwargs):
        first: list[torch.Tensor] = []
        hook = self.bert.encoder.layer[0].register_forward_hook(
            lambda _m, _a, output: first.append(output[0] if type(output) is tuple else output)
        )
        try:
            answer = super().forward(*args, **kwargs)
        finally:
            hook.remove()
        answer.logits = answer.logits + self.classifier(first[0][:, 0])
        return answer


class Twice(BertLayer):
    """A layer that runs its attention twice."""

    def forward(self, hidden_states, *args, **kwargs):
        self.attention(hidden_states, *args, **kwargs)
        return super().forward(hidden_states, *args, **kwargs)


def skipping():
    options = {**classifier("BERT").config.to_dict(), "num_hidden_layers": 3}
    return sharpened(Skipping(BertConfig(**options))).eval()


def twice():
    network = classifier("BERT")
    for layer in network.bert.encoder.layer:
        layer.__class__ = Twice
    return network


def chosen(network, **how):
    model = Model(network, None, "tiny", "", "")
    model.__dict__["vocabulary"] = batch(2).vocabulary
    return choose_way(model, examples(*LENGTHS), variants_of(network), StandIn(), **how)


def test_a_usual_network_is_run_the_shared_way():
    assert chosen(classifier("BERT")) == Way("shared")
    assert chosen(classifier("GPT-2")) == Way("shared")


def test_what_gives_other_answers_is_run_the_naive_way_and_says_why():
    way = chosen(skipping())
    assert way.name == "naive"
    assert "differ by" in way.reason


def test_layers_with_two_attentions_are_run_the_naive_way_and_named():
    way = chosen(twice())
    assert way == Way(
        "naive",
        "BertForSequenceClassification ran 4 attentions in 2 layers; wanted one in each, in order",
    )


def test_a_value_that_is_no_projection_of_its_own_keeps_the_projections(monkeypatch):
    """Where zeros for queries, keys and values do not do, they are computed."""
    network = classifier("BERT")
    own = SharedPrefix.variants

    def broken(self, batch, kept, start, variants):
        found = own(self, batch, kept, start, variants)
        return found + 1 if self.skip else found

    monkeypatch.setattr(SharedPrefix, "variants", broken)
    way = chosen(network)
    assert way.name == "shared with projections"
    assert "differ by 1.0e+00" in way.reason
