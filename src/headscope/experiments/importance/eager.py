"""How are gradients of attention taken where a family bypasses transformers' registry?

MPNet and DeBERTa hand out their maps as parts of the autograd graph: their gradients are asked for
there. All layers' maps and gradients are held at once, so it is slower and takes more memory than
`stream`, which it otherwise does the work of.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel

from headscope.core.reversible import Reversible
from headscope.errors import ModelError
from headscope.experiments.importance.stream import LayerGradient, Observer, Streaming, frozen
from headscope.model.families import find_sites, registered


def following(network: PreTrainedModel, observer: Observer) -> Streaming | EagerMaps:
    """A context for one forward and one backward pass, whose gradients the observer sees.

    raises  ModelError for encoder-decoders, and families that cannot be read
    """
    if network.config.is_encoder_decoder:
        raise ModelError(
            f"{type(network).__name__} is an encoder-decoder; wanted an encoder or a decoder for "
            "the gradients of its attention"
        )
    return (Streaming if registered(network) else EagerMaps)(network, observer)


class EagerMaps(Reversible):
    """As `Streaming`, for families that compute attention by themselves."""

    def __init__(self, network: PreTrainedModel, observer: Observer) -> None:
        self.network, self.observer = network, observer
        self.sites = find_sites(network)
        self._maps: tuple[torch.Tensor, ...] = ()

    def _open(self, stack: ExitStack) -> None:
        """Ask for maps, and for gradients down to the embedded tokens."""
        embeddings: Any = self.network.get_input_embeddings()
        stack.enter_context(torch.enable_grad())
        stack.enter_context(frozen(self.network))
        for hook in (
            embeddings.register_forward_hook(_asking),
            self.network.register_forward_pre_hook(_with_maps, with_kwargs=True),
            self.network.register_forward_hook(self._keep),
        ):
            stack.callback(hook.remove)

    def _forget(self) -> None:
        self._maps = ()

    def backward(self, loss: torch.Tensor) -> None:
        """Takes the gradient of a sum of losses and shows it, layer by layer."""
        asked = [maps for maps in self._maps if maps.requires_grad]
        if len(asked) != len(self.sites) or not loss.requires_grad:
            raise ModelError(
                f"{type(self.network).__name__} gave {len(asked)} maps of {len(self.sites)} "
                "layers that a loss depends on: gradients cannot be taken; please report this"
            )
        gradients = torch.autograd.grad(loss, asked)
        with torch.no_grad():
            for layer in reversed(range(len(asked))):
                maps, gradient = asked[layer].detach(), gradients[layer]
                product = (maps * gradient).sum(-1)  # [example, head, query]
                self.observer(LayerGradient(layer, maps, gradient, product, None))

    def _keep(self, _network: nn.Module, _args: Any, output: Any) -> None:
        self._maps = tuple(output.attentions or ())


def _asking(_embeddings: nn.Module, _args: Any, output: torch.Tensor) -> torch.Tensor:
    return output.requires_grad_()


def _with_maps(
    _network: nn.Module, args: Any, kwargs: dict[str, Any]
) -> tuple[Any, dict[str, Any]]:
    return args, {**kwargs, "output_attentions": True}
