"""Load a checkpoint with its classification head, and check that it fits the task.

As `headscope.load`, with the network's classification head: safetensors only, remote code off
unless asked for. The order of the classes is compared with the checkpoint's own configuration.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import transformers
from torch import nn

from headscope.errors import ModelError
from headscope.model import checkpoint, weights
from headscope.model.checkpoint import Checkpoint
from headscope.model.model import Model, checked
from headscope.model.placement import DeviceMap, Placement
from headscope.tasks.task import Task, known_task, own_task, plain

if TYPE_CHECKING:
    from transformers import PreTrainedModel


@dataclass(eq=False)
class TaskModel:
    """A model whose network has a head for the task.

    model  its `network` is transformers' AutoModelForSequenceClassification
    start   which weights are not the checkpoint's own: "checkpoint" (none), "new head", "random"
    origin  hash of the checkpoint's weights, as `headscope.load` gives it; "" for random ones
    notes  what the reader should know of it, say that the head is untrained
    """

    model: Model
    task: Task
    start: str = "checkpoint"
    origin: str = ""
    notes: tuple[str, ...] = ()


def load_for_task(
    name: str | Path,
    task: Task,
    *,
    device: str = "cpu",
    device_map: DeviceMap = None,
    dtype: str = "float32",
    revision: str | None = None,
    trust_remote_code: bool = False,
    random_init: bool = False,
    seed: int = 0,
    new_head: bool = False,
) -> TaskModel:
    """A checkpoint with its head for a task, in evaluation mode.

    random_init  new random weights; only the tokenizer and the shape are the checkpoint's
    new_head     a new head, and a pooler if the checkpoint lacks one
    seed         of what is drawn
    raises       ModelError as `headscope.load`; also without a classification head (unless a
                 new one is asked for), with classes of another number, name or order than the
                 task's, and for encoder-decoders
    """
    path, where = str(name), Placement(device, device_map)
    source = Checkpoint(path, revision=revision, trust_remote_code=trust_remote_code)
    with checkpoint.quietly(), torch.random.fork_rng():
        torch.manual_seed(seed)
        config, tokenizer = source.config, source.tokenizer
        fresh = random_init or new_head
        notes = [] if fresh else list(_checked_head(path, config, task))
        _state_task(config, tokenizer, task, anew=fresh)
        network = _random(source) if random_init else _read(source, dtype, where, new_head=new_head)
    if fresh:
        notes.append("all weights are random" if random_init else "the head is untrained")
    if random_init:
        network.to(device).eval()  # type: ignore[arg-type]
    origin = "" if random_init else source.weights_sha256(network)
    digest = weights.parameters_sha256(network) if fresh else origin
    doubts = () if random_init else source.doubts(network)
    model = checked(Model(network, tokenizer, source.name, source.commit, digest, doubts=doubts))
    start = "random" if random_init else "new head" if new_head else "checkpoint"
    return TaskModel(model, task, start, origin, tuple(notes))


def with_task_head(model: Model, task: Task) -> TaskModel:
    """A loaded model with its head for a task, which is loaded now where `load` left it out.

    raises  ModelError as `load_for_task`; for a loaded network that has none
    """
    if "SequenceClassification" in model.architecture:
        notes = tuple(_checked_head(model.name, model.network.config, task))
        _state_task(model.network.config, model.tokenizer, task, anew=False)
        return TaskModel(model, task, origin=model.sha256, notes=notes)
    if model.load_options is None:
        raise headless(model.name, f"it is a loaded {model.architecture}")
    return load_for_task(model.name, task, **model.head_options)


def task_of(source: str | Path, name: str, *, revision: str | None = None) -> Task:
    """The task of that name: GLUE's, or else one with the classes of the checkpoint.

    raises  ModelError if the configuration cannot be read, or names no classes
    """
    if (task := known_task(name)) is not None:
        return task
    config = Checkpoint(str(source), revision=revision, trust_remote_code=False).config
    if getattr(config, "problem_type", None) == "regression" or len(config.id2label) == 1:
        return own_task(name, None)
    return own_task(name, class_names(config.id2label))


# --- the configuration ----------------------------------------------------------------------


def class_names(id2label: Mapping[Any, str]) -> tuple[str, ...]:
    """A configuration's class names in the order of their ids."""
    return tuple(str(id2label[at]) for at in sorted(id2label, key=int))


def _checked_head(name: str, config: Any, task: Task) -> Iterator[str]:
    """Raises ModelError unless the head's classes are the task's; yields what cannot be known."""
    if config.is_encoder_decoder:
        raise ModelError(
            f"{name!r} is an encoder-decoder ({config.model_type}); wanted an encoder or a decoder "
            "with a classification head"
        )
    classes, kinds = class_names(config.id2label), config.architectures or []
    if len(classes) != task.outputs:
        if _unnamed(classes) and "Classification" not in "".join(kinds):
            raise headless(name, f"it is a {kinds[0]}" if kinds else "no class is named")
        raise ModelError(
            f"{name!r} has {len(classes)} classes ({', '.join(classes[:6])}), and {task.name} has "
            f"{len(task.labels) or 'none: it is a regression'}"
            f"{' (' + ', '.join(task.labels) + ')' if task.labels else ''}\n"
            f"wanted a checkpoint for this task: headscope finetune {name} --task {task.name}"
        )
    if task.is_regression:
        return
    if _unnamed(classes):
        yield (
            f"{name!r} does not name its classes ({', '.join(classes)}): taken as "
            f"{', '.join(task.labels)}"
        )
    elif [plain(label) for label in classes] != [plain(label) for label in task.labels]:
        raise ModelError(
            f"{name!r} has the classes {', '.join(classes)} (id2label in config.json), and "
            f"{task.name} has {', '.join(task.labels)}, in this order\n"
            "every answer would count as another class: give the order of the checkpoint, "
            f"--task NAME --labels {','.join(classes)}, or correct id2label if only words differ"
        )


def headless(name: str, reason: str) -> ModelError:
    """The error for a checkpoint that was not trained for any task."""
    return ModelError(
        f"{name!r} has no classification head ({reason}); wanted a checkpoint fine-tuned for the "
        f"task\nmake one: headscope finetune {name} --task TASK --data FOLDER -o CKPT"
    )


def _unnamed(labels: tuple[str, ...]) -> bool:
    return all(plain(label) == f"label{at}" for at, label in enumerate(labels))


def _state_task(config: Any, tokenizer: Any, task: Task, *, anew: bool) -> None:
    """Writes the task into the configuration, and which token fills a batch."""
    if config.is_encoder_decoder and anew:
        raise ModelError(
            f"{config.model_type} is an encoder-decoder; wanted an encoder or a decoder for a task"
        )
    if anew:
        names = task.labels or (task.name,)
        config.id2label = dict(enumerate(names))
        config.label2id = {label: at for at, label in enumerate(names)}
    config.problem_type = "regression" if task.is_regression else "single_label_classification"
    # Decoders answer at the last token that is not padding, so they must know the padding token.
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token or tokenizer.unk_token
    if getattr(config, "pad_token_id", None) is None:
        config.pad_token_id = tokenizer.pad_token_id


# --- the weights ----------------------------------------------------------------------------


def _read(source: Checkpoint, dtype: str, where: Placement, *, new_head: bool) -> PreTrainedModel:
    network: PreTrainedModel
    network, missing = source.network(
        transformers.AutoModelForSequenceClassification,
        dtype,
        where,
        ignore_mismatched_sizes=new_head,
    )
    head = {key for key in missing if not key.startswith(f"{network.base_model_prefix}.")}
    if head and not new_head:
        raise headless(source.name, f"its weights lack {min(head)}")
    if new_head and not head:
        _draw_head(network)  # the checkpoint has one already, of another task
    weights.refuse_incomplete(source.name, missing - head, pooler=not new_head)
    return network


def _random(source: Checkpoint) -> PreTrainedModel:
    network: PreTrainedModel = checkpoint.attempt(
        source.name,
        transformers.AutoModelForSequenceClassification.from_config,
        source.config,
        attn_implementation="eager",
        dtype=torch.float32,
        trust_remote_code=source.options["trust_remote_code"],
    )
    return network


def _draw_head(network: PreTrainedModel) -> None:
    spread = float(getattr(network.config, "initializer_range", None) or 0.02)
    for name, child in network.named_children():
        if name == network.base_model_prefix:
            continue
        for module in child.modules():
            if isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, 0.0, spread)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
