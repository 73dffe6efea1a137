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
        build   gives the network, in its size, of the tensors that will be its own
        raises  InputError where there is none, or one of another shape
        """
        try:
            content = ((Path(folder) if str(folder) else _own()) / self.weights).read_bytes()
            tensors = load(content)
            network = build(tensors)
            network.load_state_dict(tensors)
        except (OSError, SafetensorError, RuntimeError, IndexError) as error:
            told = str(error).strip().splitlines() or [type(error).__name__]
            raise InputError(
                f"cannot read a classifier from {folder}: {told[0][:120]}; wanted a folder that "
                f"`{self.train} -o FOLDER` wrote"
            ) from error
        return network.eval().requires_grad_(False), hashlib.sha256(content).hexdigest()

    def write(self, network: nn.Module, card: Mapping[str, Any], folder: Path) -> None:
        """Weights and card; each file appears whole or not at all."""
        folder.mkdir(parents=True, exist_ok=True)
        content = save({name: tensor.contiguous() for name, tensor in network.state_dict().items()})
        text = json.dumps({"classes": NAMES, **card}, indent=1) + "\n"
        for name, data in ((self.weights, content), (self.card, text.encode())):
            write_whole(folder / name, data)

    def bundled_card(self) -> dict[str, Any]:
        """The card of the bundled classifier."""
        card: dict[str, Any] = json.loads((_own() / self.card).read_text("utf-8"))
        return card


def _own() -> Any:
    return resources.files("headscope.analyses.patterns") / "data"
