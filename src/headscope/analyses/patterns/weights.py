"""Where are a classifier and its card read from, and written to?

A folder with `weights.safetensors` and `card.json`; headscope brings one of its own.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load, save

from headscope.analyses.patterns.classes import NAMES
from headscope.analyses.patterns.network import Classifier
from headscope.core.whole_file import write_whole
from headscope.errors import InputError

WEIGHTS, CARD = "weights.safetensors", "card.json"


def read_classifier(folder: str | Path = "") -> tuple[Classifier, str]:
    """A classifier ready to use, and the SHA-256 of its weights.

    folder  one that `headscope patterns train` wrote; "" for the bundled one
    raises  InputError where there is none, or one of another shape
    """
    try:
        content = _place(folder, WEIGHTS).read_bytes()
        network = Classifier()
        network.load_state_dict(load(content))
    except (OSError, SafetensorError, RuntimeError) as error:
        told = str(error).strip().splitlines() or [type(error).__name__]
        raise InputError(
            f"cannot read a classifier from {folder}: {told[0][:120]}; wanted a folder that "
            "`headscope patterns train -o FOLDER` wrote"
        ) from error
    return network.eval().requires_grad_(False), hashlib.sha256(content).hexdigest()


def read_card(folder: str | Path = "") -> dict[str, Any]:
    """What the classifier learned from, and how well it tells the classes."""
    found: dict[str, Any] = json.loads(_place(folder, CARD).read_text("utf-8"))
    return found


def write_classifier(network: Classifier, card: Mapping[str, Any], folder: Path) -> None:
    """Both files; each appears whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    content = save({name: tensor.contiguous() for name, tensor in network.state_dict().items()})
    text = json.dumps({"classes": NAMES, **card}, indent=1) + "\n"
    for name, data in ((WEIGHTS, content), (CARD, text.encode())):
        write_whole(folder / name, partial(_write, data))


def _place(folder: str | Path, name: str) -> Any:
    own = resources.files("headscope.analyses.patterns") / "data"
    return (Path(folder) if str(folder) else own) / name


def _write(content: bytes, path: str) -> None:
    Path(path).write_bytes(content)
