"""The files of a classifier of maps: weights as safetensors, and a card of how good it is."""

import hashlib
import json
from collections.abc import Callable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import nn

from headscope.analyses.patterns.classes import NAMES
from headscope.core.whole_file import write_whole
from headscope.errors import InputError

Network = TypeVar("Network", bound=nn.Module)
LEVELS = 127  # of a byte, on each side of 0
LARGE = 10_000  # numbers of a tensor that is kept in bytes
SCALE = ".scale"


class ClassifierFiles(NamedTuple):
    """How the files of a kind of classifier are called, and how to train one."""

    weights: str
    card: str
    train: str

    def read(
        self, folder: str | Path, build: Callable[[Mapping[str, torch.Tensor]], Network]
    ) -> tuple[Network, str]:
        """A classifier ready to use, and the SHA-256 of its weights.

        folder  one that `headscope patterns train` wrote; "" for the bundled one
        build   makes the network, in its size, from its tensors
        raises  InputError where there is none, or one of another shape
        """
        try:
            content = ((Path(folder) if str(folder) else _own()) / self.weights).read_bytes()
            tensors = _whole(load(content))
            network = build(tensors)
            network.load_state_dict(tensors)
        except (OSError, SafetensorError, RuntimeError, LookupError) as error:
            reason = str(error).strip().splitlines() or [type(error).__name__]
            raise InputError(
                f"cannot read a classifier from {folder}: {reason[0][:120]}; wanted a folder that "
                f"`{self.train} -o FOLDER` wrote"
            ) from error
        return network.eval().requires_grad_(False), hashlib.sha256(content).hexdigest()

    def write(self, network: nn.Module, card: Mapping[str, Any], folder: Path) -> None:
        """Weights, rounded as in `small`, and card; each file appears whole or not at all."""
        folder.mkdir(parents=True, exist_ok=True)
        content = save(small(network.state_dict()))
        text = json.dumps({"classes": NAMES, **card}, indent=1) + "\n"
        for name, data in ((self.weights, content), (self.card, text.encode())):
            write_whole(folder / name, data)

    def bundled_card(self) -> dict[str, Any]:
        """The card of the bundled classifier."""
        card: dict[str, Any] = json.loads((_own() / self.card).read_text("utf-8"))
        return card


def small(tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Large weights in bytes, each output channel with its scale; smaller ones in float16.

    tensors  [out, in, row, column], [out, in] or [member, in, out]; one axis or none stays as it is
    """
    kept: dict[str, torch.Tensor] = {}
    for name, tensor in tensors.items():
        kept[name] = tensor.contiguous() if tensor.dim() < 2 else tensor.half()
        if tensor.dim() > 1 and tensor.numel() >= LARGE:
            inputs = (1,) if tensor.dim() == 3 else tuple(range(1, tensor.dim()))
            scale = (tensor.abs().amax(inputs, keepdim=True) / LEVELS).clamp_min(1e-30)
            kept |= {name: (tensor / scale).round().to(torch.int8), name + SCALE: scale}
    return kept


def _whole(kept: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The tensors of `small` in float32, or others as they are."""
    return {
        name: tensor * kept[name + SCALE] if tensor.dtype == torch.int8 else tensor.float()
        for name, tensor in kept.items()
        if not name.endswith(SCALE)
    }


def _own() -> Any:
    return resources.files("headscope.analyses.patterns") / "data"
