"""Check that the heads of each layer add up to its output: Σ_h Σ_j α f_h(x_j) + b_O."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch

from headscope.errors import ModelError
from headscope.model.decoder_stack import ReadsByDecoder
from headscope.model.families.sites import find_sites
from headscope.model.instrument import AttentionCall, Instrument
from headscope.model.layer import LayerView
from headscope.model.linears import refuse, rounding
from headscope.model.placement import held, input_device, plain, split

if TYPE_CHECKING:
    from transformers import PreTrainedModel


def identity_errors(
    network: PreTrainedModel, stack: str, run: Callable[[], Any]
) -> list[tuple[LayerView, float, float]]:
    """Each layer with W_O: the largest |Σ αf(x) + b_O - output| and |output|.

    run     passes a few tokens through the network
    raises  ModelError for attention or outputs that are NaN or infinite
    """
    errors = []

    def compare(view: LayerView) -> None:
        seen = [one for one in (view.attention, view.output) if one is not None]
        if not all(bool(one.isfinite().all()) for one in seen):
            raise ModelError(
                f"{view.site.path} of {type(network).__name__} gives NaN or infinite numbers in "
                f"{network.dtype}; wanted finite ones: use --dtype float32, bfloat16 instead of "
                "float16, or another quantisation"
            )
        if not {"values", "projection"} <= view.offers or view.output is None:
            return
        assert view.values is not None
        weight, bias = view.projection.weight, view.projection.bias
        wide = torch.promote_types(weight.dtype, torch.float32)
        mixed = (view.attention @ view.values).to(wide)
        whole = torch.einsum("bhqd,hdm->bqm", mixed, weight.to(wide))  # by our own cut into heads
        whole = whole if bias is None else whole + bias
        error = float((whole - view.output).abs().max())
        errors.append((view, error, float(view.output.abs().max())))

    with Instrument(network, observers=[compare], stacks=[stack]):
        run()
    return errors


def refuse_unlike(errors: Sequence[tuple[LayerView, float, float]]) -> str:
    """Name the first layer whose heads do not add up to its output; refuse norms of all such
    layers.

    errors  as `identity_errors`
    """
    faults = []
    for view, error, size in errors:
        module, output = view.site.projection, view.output
        assert module is not None
        assert output is not None
        weight = held(module, "weight")
        share = rounding(output.dtype, quantised=weight is None or not plain(weight))
        if not error <= share * size:
            refuse(module)
            faults.append(
                f"the heads of {view.site.path} do not add up to its output: off by "
                f"{error / size:.0%} of it"
            )
    return faults[0] if faults else ""


def refuse_part(network: PreTrainedModel, view: LayerView) -> None:
    """Raises ModelError where processes share the heads, and this one sees but its own."""
    heads = view.attention.shape[1]
    if split(network) and heads != view.site.heads:
        raise ModelError(
            f"{type(network).__name__} is split over processes, and this one sees {heads} of its "
            f"{view.site.heads} heads; wanted all of them: let headscope load it, "
            "load(NAME, tp_plan='auto') under torchrun"
        )


REACHED = 1e-2  # of the largest number of a state; rounding in half precision is less


def mixes_beside_attention(network: PreTrainedModel, forward: Callable[..., Any]) -> bool:
    """Whether a token still reaches another when each attends to itself alone.

    So it is where a layer adds a recurrence to its attention (Falcon-H1), or embeddings take in
    their neighbours (MobileBERT), and in a decoder that also attends to an encoder. False where
    attention cannot be changed, off the registry.

    forward  runs a network on ids and mask [example, token]; of an encoder-decoder the encoder
    """
    if isinstance(network, ReadsByDecoder):
        return True
    if any(site.eager for site in find_sites(network)):
        return False

    def alone(call: AttentionCall) -> None:
        call.attention = torch.eye(2).to(call.attention).expand_as(call.attention)

    padding = getattr(network.config, "pad_token_id", None)
    one, other = [token for token in range(3) if token != padding][:2]
    ids = torch.tensor([[one, one], [other, one]], device=input_device(network))
    body = network if network.config.is_encoder_decoder else network.base_model
    with Instrument(network, interventions=[alone]):
        output = forward(body, ids, torch.ones_like(ids))
    states = getattr(output, "last_hidden_state", None)
    if states is None or states.shape[:2] != ids.shape:
        return False
    last = states[:, 1].float()
    return bool((last[0] - last[1]).abs().max() > REACHED * last.abs().max())
