"""Place a network's weights: on one device, on several, offloaded, or in parallel.

accelerate places modules by a device map. An offloaded module holds no weights (they are on torch's
device "meta") but while it runs; whoever reads a weight asks `held`, never `module.weight`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from headscope.errors import InputError, ModelError, told_as
from headscope.model.request import device_named

if TYPE_CHECKING:
    from transformers import PreTrainedModel

DeviceMap = str | Mapping[str, Any] | None
NUMBERS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
INSTALL = "pip install 'headscope[large]'"
# How a head's queries, keys and values come whole to each process, though their weights are split.
_GATHERED = {"colwise": "colwise_gather_output", "rowwise": "rowwise_split_input"}


@dataclass(frozen=True)
class Placement:
    """Where weights go when they are read.

    device      of a network that is whole on one
    device_map  "auto" and the like, or {path of a module: device, "cpu" or "disk"}, for accelerate
    tp_plan     "auto": split over the processes that torchrun started
    raises      ModelError for what does not go together, or needs accelerate where it is not
    """

    device: str = "cpu"
    device_map: DeviceMap = None
    tp_plan: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "device", device_named(self.device))
        requested = {"device_map": self.device_map, "tp_plan": self.tp_plan}
        requested["device"] = None if self.device == "cpu" else self.device
        named = [f"{name}={value!r}" for name, value in requested.items() if value is not None]
        if len(named) > 1 or self.tp_plan not in (None, "auto"):
            raise ModelError(
                f"found {' and '.join(named)}; wanted one of device, device_map, tp_plan='auto'"
            )
        device_of(self.device)
        if self.device_map is not None or self.tp_plan is not None:
            _need_accelerate(f"{named[0]} needs")

    def options(self, config: Any) -> dict[str, Any]:
        """With which transformers' loaders read a checkpoint of this configuration so."""
        how = getattr(config, "quantization_config", None)
        method = how.get("quant_method") if isinstance(how, dict) else None
        if method is not None and not _known(how):
            # transformers would take the stored numbers for the weights
            raise ModelError(
                f"found weights quantised by {method!r}, which this transformers cannot read; "
                "wanted one of its methods, or the model before it was quantised"
            )
        if self.tp_plan is not None:
            return {"distributed_config": _split_over_ranks(config)}
        if self.device_map is not None:
            where = self.device_map if isinstance(self.device_map, str) else dict(self.device_map)
            return {"device_map": where, "offload_folder": _disk().name}
        if how is None:
            return {}
        _need_accelerate("quantised weights need")
        return {"device_map": {"": self.device}}  # they cannot be moved afterwards


@cache
def _disk() -> TemporaryDirectory[str]:
    """For weights on "disk" that cannot be read as the checkpoint has them; gone at the end."""
    return TemporaryDirectory(prefix="headscope-")


def device_of(name: str) -> torch.device:
    """The torch device of a name; ModelError where this machine has none such."""
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise ModelError(
            f"no device {name!r} here ({str(error).splitlines()[0][:120]}); "
            "wanted cpu, or cuda, cuda:1, mps where the machine and this torch have it"
        ) from error
    return device


def _known(quantization: Any) -> bool:
    """Whether transformers reads weights that are quantised so."""
    from transformers.quantizers.auto import AutoHfQuantizer

    supported: Any = AutoHfQuantizer.supports_quant_method
    return bool(supported(quantization))


def _need_accelerate(what: str) -> None:
    if find_spec("accelerate") is None:
        raise ModelError(f"{what} the package accelerate, which is not installed\n{INSTALL}")


def _split_over_ranks(config: Any) -> Any:
    """The family's plan, but for attention, which each process sees whole, with all its heads."""
    with told_as(lambda said: ModelError(f"{said}; wanted a newer transformers for tp_plan")):
        from transformers.distributed.configuration_utils import DistributedConfig
    family = getattr(config, "model_type", "unknown")
    whole = dict(getattr(config, "base_model_tp_plan", None) or {})
    own = {path: style for path, style in whole.items() if "attn" in path or "attention" in path}
    if not own or not set(own.values()) <= _GATHERED.keys():
        other = ", ".join(sorted(set(own.values()) - _GATHERED.keys())) or "none"
        raise ModelError(
            f"the family {family!r} splits its attention over processes in ways that headscope "
            f"does not gather ({other}); wanted {' and '.join(_GATHERED)}, or device_map='auto'"
        )
    return DistributedConfig(tp_plan=whole | {path: _GATHERED[own[path]] for path in own})


def refuse_spread(network: nn.Module, what: str) -> None:
    """Raises InputError for a network on several devices or offloaded; `what` needs it whole."""
    if spread(network):
        raise InputError(
            f"found a model that a device map has placed; wanted one on one device, {what}: leave "
            "out --device-map"
        )


def spread(network: nn.Module) -> bool:
    """Whether accelerate has placed the network's modules, on several devices or offloaded."""
    return any("_hf_hook" in vars(module) for module in network.modules())


def place_alike(network: nn.Module, other: PreTrainedModel, device: torch.device) -> None:
    """Move a network on the host to where another of its shape is; what is on disk stays here.

    device  of a network that is whole on one
    """
    places = getattr(other, "hf_device_map", None) if spread(other) else None
    if places is None:
        network.to(device)
        return
    from accelerate import dispatch_model

    here = {path: "cpu" if place == "disk" else place for path, place in places.items()}
    dispatch_model(network, device_map=here, skip_keys=other._skip_keys_device_placement)


def split(network: nn.Module) -> bool:
    """Whether processes share the network's weights (tensor parallel)."""
    return any(hasattr(parameter, "full_tensor") for parameter in network.parameters())


def input_device(network: PreTrainedModel) -> torch.device:
    """Where a network wants its inputs."""
    if spread(network):
        hook = vars(network.get_input_embeddings()).get("_hf_hook")
        for one in getattr(hook, "hooks", (hook,)):
            if (device := getattr(one, "execution_device", None)) is not None:
                return torch.device(device)
    return network.device


@contextmanager
def at_hand(module: nn.Module) -> Iterator[None]:
    """Inside the context a module holds its own weights, also if they are offloaded."""
    if "_hf_hook" not in vars(module):
        yield
        return
    from accelerate.utils import align_module_device

    with align_module_device(module):
        yield


def held(module: nn.Module, name: str) -> torch.Tensor | None:
    """A weight of a module by its name, whole and where the module computes; None if it has none.

    raises  ModelError for one that is neither there nor known to be offloaded
    """
    with at_hand(module):
        weight = getattr(module, name, None)
        if not isinstance(weight, torch.Tensor):
            return None
        # Of torchao's weights inference mode gives no such view.
        weight = weight.detach() if type(weight) is nn.Parameter else weight
    if weight.is_meta:
        raise ModelError(
            f"{name} of a {type(module).__name__} is on the device 'meta', without numbers; wanted "
            "weights that are loaded, or offloaded by accelerate"
        )
    return local_whole(weight)


def tensor_of(network: nn.Module, name: str) -> torch.Tensor:
    """The parameter or buffer of this path, as `held` has it."""
    path, _, own = name.rpartition(".")
    there = held(network.get_submodule(path), own)
    assert there is not None
    return there


def local_whole(weight: torch.Tensor) -> torch.Tensor:
    """A weight that is split over processes, whole on each; any other as it is."""
    whole = getattr(weight, "full_tensor", None)
    return weight if whole is None else whole()


def plain(weight: torch.Tensor) -> bool:
    """Whether a weight is stored as the numbers that it means: not quantised, not split."""
    return type(weight) in (torch.Tensor, nn.Parameter) and weight.dtype in NUMBERS
