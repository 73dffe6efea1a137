"""The checkpoints of a training: folders, a Trainer's output, revisions on the hub; by step.

A Trainer writes `trainer_state.json` last, so a folder of its own without one is half written: it
is left out and named. Nothing here reads weights.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headscope.core.wording import grid_size
from headscope.errors import InputError
from headscope.model.request import id_and_revision

STATE, CONFIG = "trainer_state.json", "config.json"
INDEX = "model.safetensors.index.json"
SHAPE = (  # names of layers and heads in configurations
    ("num_hidden_layers", "n_layer", "n_layers", "num_layers"),
    ("num_attention_heads", "n_head", "n_heads", "num_heads"),
)
MOST_NAMED = 4
_OF_TRAINER = re.compile(r"checkpoint-(\d+)")
_STATED = re.compile(r"(\d+)=(.+)", re.DOTALL)
_COMMIT = re.compile(r"[0-9a-f]{7,40}")  # its digits are no step
_LAST_NUMBER = re.compile(r"(\d+)\D*$")


@dataclass(frozen=True, order=True)
class ListedCheckpoint:
    """A checkpoint by its step.

    place  a folder, or an id on the hub
    """

    step: int
    place: str
    revision: str | None = None

    @property
    def name(self) -> str:
        """As it is typed: `folder`, or `id@revision`."""
        return f"{self.place}@{self.revision}" if self.revision else self.place


def listed_checkpoints(
    names: Sequence[str | Path], revision: str | None = None
) -> tuple[list[ListedCheckpoint], list[str]]:
    """The checkpoints of a training by their steps, and in words which were left out.

    names     of each: a folder, a folder with folders `checkpoint-N`, `id@revision` of the hub; or
              `STEP=` before one of these
    revision  of ids without their own
    raises    InputError for none, for a step that cannot be read or comes twice, for two shapes
    """
    listed, left_out = list[ListedCheckpoint](), list[str]()
    for name in map(str, names):
        stated = _STATED.fullmatch(name)
        if stated and not Path(name).exists():
            listed.append(_one(stated[2], int(stated[1]), revision))
        elif inside := _of_trainer(Path(name)):
            lacking = {folder: lack for folder in inside if (lack := what_it_lacks(folder))}
            left_out += [f"{folder} is left out: {lack}" for folder, lack in lacking.items()]
            listed += [_one(str(one), None, None) for one in inside if one not in lacking]
        else:
            listed.append(_one(name, None, revision))
    if not listed:
        raise InputError(
            "; ".join(left_out) or "found no checkpoint; wanted folders, or id@revision of the hub"
        )
    listed.sort()
    _refuse_same_steps(listed)
    _refuse_other_shapes(listed)
    return listed, left_out


def what_it_lacks(folder: Path) -> str:
    """Why a checkpoint folder of a Trainer cannot be read yet, in words; "" for a whole one."""
    if not (folder / CONFIG).is_file():
        return f"it has no {CONFIG} (half written, or no checkpoint)"
    weights = ["model.safetensors"]
    if (folder / INDEX).is_file():
        weights = sorted(set(_read(folder / INDEX).get("weight_map", {}).values()))
    missing = [name for name in weights if not (folder / name).is_file()]
    if missing and not any(folder.glob("*.safetensors")):
        return "it has no *.safetensors (half written, or pickled weights)"
    if missing:
        return f"it is half written: {missing[0]} is not there yet"
    if _OF_TRAINER.fullmatch(folder.name) and not (folder / STATE).is_file():
        return f"it is half written: the Trainer writes {STATE} last, and it is not there yet"
    return ""


def _of_trainer(folder: Path) -> list[Path]:
    """The folders `checkpoint-N` in a folder, by N."""
    if not folder.is_dir():
        return []
    every = [one for one in folder.iterdir() if one.is_dir() and _OF_TRAINER.fullmatch(one.name)]
    is_one = (folder / CONFIG).is_file() or _OF_TRAINER.fullmatch(folder.name)
    if not every and not is_one:
        names = sorted(one.name for one in folder.iterdir())[:MOST_NAMED]
        raise InputError(
            f"{folder} holds no checkpoint (found {', '.join(names) or 'nothing'}); wanted folders "
            f"checkpoint-N, as a Trainer writes them, or {CONFIG} and model.safetensors"
        )
    return sorted(every, key=lambda one: int(one.name.partition("-")[2]))


def _one(name: str, step: int | None, revision: str | None) -> ListedCheckpoint:
    if Path(name).is_dir():
        if lack := what_it_lacks(Path(name)):
            raise InputError(f"{name} cannot be read: {lack}; leave it out, or wait for it")
        place, revision = name, None
    else:
        place, revision = id_and_revision(name, revision)
    step = _step_of(place, revision) if step is None else step
    if step is None:
        raise InputError(
            f"{name!r} does not say after which step it was saved; wanted a name that ends in the "
            f"step, a {STATE}, or STEP={name}"
        )
    return ListedCheckpoint(step, place, revision)


def _step_of(place: str, revision: str | None) -> int | None:
    """From the state of a Trainer, else the last number of the name; None without."""
    if revision is None and (said := _read(Path(place) / STATE).get("global_step")) is not None:
        return int(said)
    number = _LAST_NUMBER.search(revision or Path(place).resolve().name)
    is_commit = revision and _COMMIT.fullmatch(revision) and not revision.isdecimal()
    return int(number[1]) if number and not is_commit else None


def _refuse_same_steps(listed: Sequence[ListedCheckpoint]) -> None:
    by_step = dict[int, str]()
    for one in listed:
        if (other := by_step.setdefault(one.step, one.name)) != one.name or (
            sum(each == one for each in listed) > 1
        ):
            raise InputError(
                f"{other} and {one.name} are both of step {one.step}; name one of them, or write "
                "STEP=NAME"
            )


def _refuse_other_shapes(listed: Sequence[ListedCheckpoint]) -> None:
    """Raises InputError where configurations of folders name other numbers of layers or heads."""
    shapes = {one.name: shape for one in listed if (shape := _shape(Path(one.place)))}
    for name, shape in shapes.items():
        first = next(iter(shapes))
        if shape != shapes[first]:
            raise InputError(unlike(name, shape, first, shapes[first]))


def unlike(name: str, shape: tuple[int, ...], first: str, wanted: tuple[int, ...]) -> str:
    """What is said of a checkpoint of another shape; shapes are layers and heads."""
    own, other = (grid_size(*one) for one in (shape, wanted))
    return (
        f"{name} has {own}, and {first} has {other}; wanted checkpoints of one training, which "
        "have one shape: leave the others out"
    )


def _shape(folder: Path) -> tuple[int, ...]:
    """Layers and heads by the configuration; empty where it does not say so."""
    config = _read(folder / CONFIG)
    known = [next((config[key] for key in keys if key in config), None) for keys in SHAPE]
    return tuple(known) if all(isinstance(one, int) for one in known) else ()  # type: ignore[arg-type]


def _read(file: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(file.read_text("utf-8")))
    except (OSError, ValueError, TypeError):
        return {}
