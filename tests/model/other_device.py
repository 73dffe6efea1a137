"""What is a second device, on a machine that has one? Tensors that say they are elsewhere.

An `Elsewhere` holds an ordinary tensor and says that it is on "lazy:0", a device that this torch
knows of and cannot compute on. Inside `elsewhere()` every operation is done on what is held, and
one that mixes both devices is refused, as on an accelerator.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from accelerate.hooks import ModelHook, add_hook_to_module
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

HERE, THERE = torch.device("cpu"), torch.device("lazy", 0)
MAY_MIX = ("to", "_to_copy", "copy_", "index", "index_put", "index_put_")  # as accelerators may


class Elsewhere(torch.Tensor):
    held: torch.Tensor

    @staticmethod
    def __new__(cls, held: torch.Tensor) -> Elsewhere:
        return torch.Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls,
            held.shape,
            strides=held.stride(),
            storage_offset=held.storage_offset(),
            dtype=held.dtype,
            device=THERE,
        )

    def __init__(self, held: torch.Tensor) -> None:
        self.held = held

    @classmethod
    def __torch_dispatch__(cls, operation, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        return done(operation, args, kwargs or {})


class Dispatched(TorchDispatchMode):
    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        return done(operation, args, kwargs or {})


def done(operation: Any, args: Any, kwargs: Any) -> Any:
    """What an operation gives, on the device that it is asked for, or that its tensors are on."""
    given, _ = tree_flatten((args, kwargs))
    away = [one for one in given if isinstance(one, Elsewhere)]
    here = [t for t in given if isinstance(t, torch.Tensor) and not isinstance(t, Elsewhere)]
    name = operation._schema.name.removeprefix("aten::")
    if away and any(one.dim() for one in here) and name not in MAY_MIX:
        raise RuntimeError(f"tensors of two devices in {operation}")
    asked = next((one for one in given if isinstance(one, torch.device)), None)
    if not away and asked is None:
        return operation(*args, **kwargs)

    def as_held(one: Any) -> Any:
        if isinstance(one, Elsewhere):
            return one.held
        return HERE if isinstance(one, torch.device) else one

    found = operation(*tree_map(as_held, args), **tree_map(as_held, kwargs))
    if name.endswith("_") and not name.endswith("__"):
        return args[0]
    if "out" in kwargs:
        return kwargs["out"]
    there = bool(away) if asked is None else asked == THERE
    return tree_map(lambda t: moved(t, THERE) if there else t, found)


def moved(value: Any, device: torch.device) -> Any:
    """The same on a device, inside tuples, lists and dicts too."""
    if isinstance(value, Elsewhere):
        return value if device == THERE else value.held
    if isinstance(value, torch.Tensor):
        return Elsewhere(value) if device == THERE else value
    if isinstance(value, tuple | list):
        return type(value)(moved(one, device) for one in value)
    return {k: moved(v, device) for k, v in value.items()} if isinstance(value, dict) else value


class _At(ModelHook):
    """As accelerate's own hook: what a module is given is moved to where the module is."""

    def __init__(self, device: torch.device) -> None:
        self.execution_device = device

    def pre_forward(self, _module: nn.Module, *args: Any, **kwargs: Any) -> Any:
        return moved(args, self.execution_device), moved(kwargs, self.execution_device)


def place(module: nn.Module, device: torch.device) -> None:
    """Put a module and all inside on a device, in place."""
    for part in module.modules():
        for name, parameter in part._parameters.items():
            if parameter is not None:
                held = moved(parameter.data, device)
                part._parameters[name] = nn.Parameter(held, requires_grad=False)
    add_hook_to_module(module, _At(device))


@contextmanager
def elsewhere(monkeypatch: Any) -> Iterator[None]:
    """Inside the context there is a second device."""
    whole = torch.tensor

    def tensor(data: Any, *, device: Any = None, **more: Any) -> torch.Tensor:
        made = whole(data, **more)  # torch would put it there past all dispatch
        return made if device is None else moved(made, torch.device(device))

    with monkeypatch.context() as patched, Dispatched():
        patched.setattr(torch, "tensor", tensor)
        yield
