"""Run a layer again on its recorded input, with other value vectors.

The whole layer runs: attention with the weights that were seen, residual, norms, feed-forward. Its
hooks are set aside meanwhile, ours and everyone's, so that nobody takes it for another layer.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

import torch
import transformers
from torch import nn

from headscope.errors import ModelError
from headscope.model.attention import AttentionCall, listening
from headscope.model.layer import LayerView

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_HOOKS = ("_forward_hooks", "_forward_pre_hooks")


def run_again(view: LayerView, *, example: int, values: torch.Tensor) -> torch.Tensor:
    """[copy, token, model] what the whole layer gives for one example of the batch, for each copy.

    values  [copy, head, key, dim]  take the place of the example's value vectors
    raises  ModelError where the layer's input is not known
    """
    inputs = view.given
    if inputs is None:
        raise ModelError(
            f"{view.site.path} cannot be run again: the inputs of its layer are unknown for this "
            "family; wanted a family on transformers' attention registry"
        )
    copies, examples = len(values), len(view.attention)
    args = _copied(inputs.args, example, copies, examples)
    kwargs = _copied(inputs.kwargs, example, copies, examples)
    swap = _Swap(view, view.attention[example : example + 1], values)
    network = cast("PreTrainedModel", inputs.model)
    with (
        torch.inference_mode(),
        listening(network, swap.before, alone=True),
        _without_hooks(inputs.block),
    ):
        output = inputs.block.forward(*args, **kwargs)
    hidden = output[0] if isinstance(output, tuple) else output
    if not swap.used or hidden.shape[:2] != (copies, view.attention.shape[2]):
        raise ModelError(
            f"{type(inputs.block).__name__} gave {tuple(hidden.shape)} when it was run again "
            f"{copies} times; wanted one row for each: please report this model"
        )
    return cast(torch.Tensor, hidden)


class _Swap:
    """A listener that puts in weights and values; cross-attention in the layer stays as it is."""

    def __init__(self, view: LayerView, attention: torch.Tensor, values: torch.Tensor) -> None:
        self.view, self.attention, self.values = view, attention, values
        self.used = False

    def before(self, call: AttentionCall) -> None:
        if call.module is self.view.site.attention:
            self.used = True
            examples, heads, queries, _ = call.query.shape
            shape = (examples, heads, queries, call.key.shape[2])
            call.attention = self.attention.to(call.query.dtype).expand(shape)
            call.values = self.values.to(call.value.dtype)


def _copied(value: Any, example: int, copies: int, examples: int) -> Any:
    """One example of the batch, repeated; what it has in common with the others stays.

    Caches of keys and values are left out: the layer reads its whole input.
    """
    if isinstance(value, torch.Tensor) and value.ndim > 1 and len(value) == examples:
        return value[example : example + 1].expand(copies, *value.shape[1:])  # [copy, …]
    if isinstance(value, dict):
        return {key: _copied(one, example, copies, examples) for key, one in value.items()}
    if type(value) in (tuple, list):
        return type(value)(_copied(one, example, copies, examples) for one in value)
    return None if isinstance(value, transformers.Cache) else value


@contextmanager
def _without_hooks(block: nn.Module) -> Iterator[None]:
    """Inside the context no hook of the modules in a block is called."""
    kept = [(vars(part), name, vars(part)[name]) for part in block.modules() for name in _HOOKS]
    try:
        for state, name, _ in kept:
            state[name] = OrderedDict()
        yield
    finally:
        for state, name, hooks in kept:
            state[name] = hooks
