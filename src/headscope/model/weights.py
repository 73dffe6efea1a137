"""Find a checkpoint's weight files, check that they are safe to read, and hash them.

Only safetensors inside the checkpoint's own folder are read: a pickle can run code, and a name that
leads elsewhere would load what nobody asked for. The hash is over exactly the files that are read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import torch
from safetensors import safe_open
from torch import nn
from transformers.utils import SAFE_WEIGHTS_INDEX_NAME, SAFE_WEIGHTS_NAME

from headscope.core.whole_file import file_sha256, sha256_of
from headscope.errors import ModelError, told_as
from headscope.model.placement import local_whole, plain, tensor_of

if TYPE_CHECKING:
    from transformers import PreTrainedModel

DEEP = 256  # layers; the deepest models that are published have some 120


def weights_files(folder: Path, config: Any) -> list[Path]:
    """The files that transformers reads the weights of a folder from, in order of name.

    config  of the checkpoint; it may name the file
    raises  ModelError for a file or an index that leads out of the folder, names anything other
            than safetensors, or is no index
    """
    first = str(getattr(config, "transformers_weights", None) or "")
    if not first:
        whole = (folder / SAFE_WEIGHTS_NAME).is_file()
        first = SAFE_WEIGHTS_NAME if whole else SAFE_WEIGHTS_INDEX_NAME
    if not first.endswith(".index.json"):
        return [_own_file(folder, first, "config.json")]
    if ".." in PurePosixPath(first).parts or not (folder / first).is_file():
        there = ", ".join(sorted(p.name for p in folder.glob("*.safetensors"))[:3]) or "none"
        raise ModelError(
            f"{str(folder)!r} has no {SAFE_WEIGHTS_NAME} and no index of weights {first!r} "
            f"(*.safetensors there: {there}); save the model again with safetensors"
        )
    return [_own_file(folder, name, first) for name in _names_of_index(folder / first)]


def _names_of_index(index: Path) -> list[str]:
    try:
        named = json.loads(index.read_bytes())["weight_map"].values()
        names = sorted(set(named))
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ModelError(
            f"{str(index)!r} is no index of weights ({type(error).__name__}); wanted JSON with a "
            "weight_map from tensors to files: save the model again with safetensors"
        ) from error
    if not names or not all(isinstance(name, str) for name in names):
        raise ModelError(f"{str(index)!r} names no files; save the model again with safetensors")
    return names


def _own_file(folder: Path, name: str, source: str) -> Path:
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or ":" in name or "\0" in name:
        raise ModelError(
            f"{source} of {str(folder)!r} names the weights {name[:80]!r}, outside its folder; "
            "they are not read: save the model again into one folder"
        )
    if path.suffix != ".safetensors":
        raise ModelError(
            f"{source} of {str(folder)!r} names the weights {name[:80]!r}, which are not "
            "safetensors; pickled weights can run code and are refused: save the model again with "
            "safetensors"
        )
    return folder / name


def refuse_too_deep(name: str, files: Iterable[Path], config: Any) -> None:
    """Raises ModelError for a configuration of more layers than there are tensors for.

    transformers would build them all first. Layers that share their tensors may be as many as DEEP.
    """
    stated = [getattr(config, option, 0) for option in ("num_hidden_layers", "num_layers")]
    layers = max((n for n in stated if isinstance(n, int)), default=0)
    if layers <= DEEP:
        return
    with told_as(lambda said: ModelError(f"the weights of {name!r} cannot be read: {said}")):
        tensors = 0
        for file in files:
            with safe_open(file, framework="np") as opened:
                tensors += len(opened.keys())
    if layers > tensors:
        raise ModelError(
            f"config.json of {name!r} says {layers} layers, and its weights are {tensors} tensors; "
            "wanted the configuration that was saved with them"
        )


def refuse_incomplete(name: str, missing: Iterable[str], *, pooler: bool = False) -> None:
    """Raises ModelError if tensors were not in the file: transformers fills them at random.

    pooler  whether it must be there: it reads what attention has done, and many checkpoints come
            without one
    """
    random = sorted(key for key in missing if pooler or "pooler" not in key)
    if random:
        raise ModelError(
            f"the weights of {name!r} lack {len(random)} of the network's tensors (first: "
            f"{random[0]}), which would be random; wanted the weights that fit config.json"
        )


def refuse_not_finite(name: str, network: nn.Module) -> None:
    """Raises ModelError, with the tensor's name, if a weight is NaN or infinite."""
    for tensor, _ in network.named_parameters():
        values = tensor_of(network, tensor)
        # A sum is quick; where it alone overflows, none of its terms is odd. Of quantised weights
        # the outputs are looked at, see `Model.identity_fault`.
        if not plain(values) or bool(torch.isfinite(values.sum())):
            continue
        if odd := int((~torch.isfinite(values)).sum()):
            raise ModelError(
                f"{name!r}: {odd:,} of {values.numel():,} weights in {tensor} are NaN or infinite; "
                "wanted finite weights: training diverged, the file is damaged, or --dtype is too "
                "narrow for them"
            )


def own_memory(network: nn.Module) -> None:
    """Copy weights into this process: the loader maps the file, and another may write to it."""
    for tensor in (*network.parameters(), *network.buffers()):
        if plain(tensor) and tensor.device.type == "cpu":
            tensor.data = tensor.data.clone()


def weights_sha256(place: str, network: PreTrainedModel) -> str:
    """Hash of the weights file; of several files, of their hashes in order of name."""
    folder: Path | None = Path(place)
    if not Path(place).is_dir():  # of the hub: in the local cache
        from huggingface_hub import try_to_load_from_cache

        commit = getattr(network.config, "_commit_hash", None)
        cached = try_to_load_from_cache(place, "config.json", revision=commit)
        folder = Path(cached).parent if isinstance(cached, str) else None
        if folder is None or not any(folder.glob("*.safetensors")):  # converted by the hub
            return parameters_sha256(network)
    assert folder is not None
    hashes = [file_sha256(file) for file in weights_files(folder, network.config)]
    return hashes[0] if len(hashes) == 1 else sha256_of(hashes)


def parameters_sha256(network: PreTrainedModel) -> str:
    """Hash of all parameters and persistent buffers, in order of name, as they are stored."""

    def parts() -> Iterator[str | bytes]:
        for name, tensor in sorted(network.state_dict().items()):
            if isinstance(tensor, torch.Tensor):  # torch's own quantised layers hold other things
                yield name
                yield from _bytes(tensor_of(network, name) if tensor.is_meta else tensor)

    return sha256_of(parts())


def _bytes(tensor: torch.Tensor) -> Iterator[bytes]:
    """The bytes of a tensor; of a quantised one those of its parts."""
    tensor = local_whole(tensor)
    if not hasattr(tensor, "__tensor_flatten__"):
        whole = tensor.detach().cpu().contiguous().reshape(-1)
        yield whole.view(torch.uint8).numpy().tobytes()
        return
    for part in tensor.__tensor_flatten__()[0]:
        yield from _bytes(getattr(tensor, part))
