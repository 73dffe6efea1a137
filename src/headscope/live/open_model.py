"""Opens the model of a live page: with its head, if the checkpoint has one, and if memory suffices.

A decoder comes with its language-model head, a masked language model, an encoder-decoder and a
classifier likewise, so that the page can tell what the model answers. Any other checkpoint is
opened as by `headscope.load`: of it the output vectors are seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from transformers import AutoModel

from headscope.errors import ModelError
from headscope.model.checkpoint import Checkpoint, dtype_of, quietly
from headscope.model.language_model import CAUSAL, MASKED, WRITTEN, load_language_model
from headscope.model.model import Model, load
from headscope.run.memory import free_bytes
from headscope.tasks.task_model import class_names, load_for_task, task_of

# What a model answers.
NEXT, MASK, CLASSES, VECTORS = "next", "mask", "classes", "vectors"


@dataclass(frozen=True, eq=False)
class OpenedModel:
    """A model and what it answers.

    answers  "next" token, "mask": the hidden token, "classes", or "vectors": it has no head
    classes  their names
    """

    model: Model
    answers: str = VECTORS
    classes: tuple[str, ...] = ()


def open_model(name: str, **loading: Any) -> OpenedModel:
    """The model, with its head where it has one.

    loading  device, device_map, dtype, revision and trust_remote_code, as `headscope.load` has them
    raises   ModelError as `headscope.load`; also, before weights are read, where memory is short
    """
    own = {name: loading[name] for name in ("revision", "trust_remote_code")}
    with quietly():
        config = Checkpoint(name, **own).config
        _refuse_too_large(name, config, loading)
    answers = _answers(config, " ".join(getattr(config, "architectures", None) or []))
    try:
        if answers == CLASSES:
            task = task_of(name, "classes of the checkpoint", revision=loading["revision"])
            model = load_for_task(name, task, **loading).model
            return OpenedModel(model, CLASSES, task.labels or ())
        if answers != VECTORS:
            kind = "written" if getattr(config, "is_encoder_decoder", False) else None
            return OpenedModel(load_language_model(name, **loading, kind=kind).model, answers)
    except ModelError:
        pass  # its head is not there, or not whole; or `load` says what else is wrong
    return OpenedModel(load(name, **loading))


def open_again(model: Model) -> OpenedModel:
    """A loaded model: as it is, or, if `headscope.load` found it by its name, with its head."""
    if model.load_options is not None:
        return open_model(model.name, **model.head_options)
    config = model.network.config
    answers = _answers(config, model.architecture)
    classes = class_names(config.id2label or {}) if answers == CLASSES else ()
    return OpenedModel(model, answers, classes)


def _answers(config: Any, kinds: str) -> str:
    """What a network of these classes answers."""
    if getattr(config, "is_encoder_decoder", False):
        return NEXT if any(ending in kinds for ending in WRITTEN) else VECTORS
    if "ForSequenceClassification" in kinds and _chooses_one_class(config):
        return CLASSES
    if any(ending in kinds for ending in MASKED):
        return MASK
    return NEXT if any(ending in kinds for ending in CAUSAL) else VECTORS


def _chooses_one_class(config: Any) -> bool:
    """Whether its outputs are one softmax, neither a number nor several labels."""
    other = getattr(config, "problem_type", None) in ("regression", "multi_label_classification")
    return not other and len(config.id2label) > 1


def _refuse_too_large(name: str, config: Any, loading: dict[str, Any]) -> None:
    """Raises ModelError for a model whose weights do not fit; says nothing where that is unknown.

    A device map may put a part elsewhere, and quantised weights are smaller than they look.
    """
    device, dtype = torch.device(loading["device"]), dtype_of(loading["dtype"])
    free, count = free_bytes(device), parameter_count(config)
    quantised = getattr(config, "quantization_config", None) is not None
    if free is None or count is None or quantised or loading["device_map"] is not None:
        return
    stored = getattr(config, "dtype", None) if dtype == "auto" else dtype
    size = stored.itemsize if isinstance(stored, torch.dtype) else 4
    if count * size > free:
        raise ModelError(
            f"{name!r} has {count / 1e6:,.0f} million parameters of {size} bytes, "
            f"{count * size / 1e9:.1f} GB, and {free / 1e9:.1f} GB are free on {device}; wanted a "
            "model that fits: --dtype bfloat16, --device-map auto, or a smaller one"
        )


def parameter_count(config: Any) -> int | None:
    """Parameters of a network of this configuration; None where transformers cannot make one."""
    try:
        with torch.device("meta"):
            network: Any = AutoModel.from_config(config)  # type: ignore[no-untyped-call]
    except Exception:  # whatever a family's own code may need: `load` says what is wrong
        return None
    return sum(int(parameter.numel()) for parameter in network.parameters())
