"""The models of a zoo as they were named: checked, and given labels and folders."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from headscope.core.display import printable, title_name
from headscope.core.whole_file import file_sha256
from headscope.errors import InputError

if TYPE_CHECKING:
    from headscope.model.model import Model

MODELS = "models"  # where their runs are, below the folder of the zoo
LONGEST = 60  # characters of a folder's name: some file systems end at 255 bytes
_STRANGE = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True)
class ListedModel:
    """One model of a zoo.

    given   as it was named, or loaded
    label   what tables and pictures call it
    folder  of its run, below OUT/models
    """

    given: str | Model
    label: str
    folder: str


def listed_models(models: Sequence[str | Path | Model]) -> list[ListedModel]:
    """The models in the order given; raises InputError for none, or for one that is named twice."""
    if isinstance(models, str):
        raise InputError(f"models is {models!r}; wanted several, say ['demo', 'gpt2']")
    named = [str(model) if isinstance(model, Path) else model for model in models]
    if not named:
        raise InputError("found no model; wanted at least one: a hub id, a local folder, or demo")
    # a loaded model has its weights' hash beside its name, which nobody typed
    names = [m if isinstance(m, str) else f"{m.name} {m.sha256[:8]}" for m in named]
    for name, count in Counter(map(_place, names)).items():
        if count > 1:
            raise InputError(f"found the model {name!r} {count} times; name each once")
    titles = [title_name(printable(name)) for name in names]
    listed = []
    for model, name, title in zip(named, names, titles, strict=True):
        alone = titles.count(title) == 1
        label = title if alone else printable(name)
        listed.append(ListedModel(model, label, folder_name(name, alone=alone)))
    return listed


def refuse_control(listed: Sequence[ListedModel], control: str | Path | None) -> None:
    """Raises InputError where the control is one of the models, which would be held to itself.

    One under another path is known by its weights, where the same files hold them.
    """
    place = _place(str(control))
    for entry in listed:
        if not isinstance(entry.given, str):
            continue
        own = _place(entry.given)
        if own == place or _same_weights(own, place):
            raise InputError(
                f"{entry.given!r} is one of the models and their control, and no model is compared "
                "with itself; leave it out of the models, or give another control, say random"
            )


def _same_weights(one: str, other: str) -> bool:
    """Whether two local folders hold equal files of weights; those of other sizes are not read."""
    try:
        files = [list(Path(place).glob("*.safetensors")) for place in (one, other)]
        sizes = [sorted(file.stat().st_size for file in some) for some in files]
        if not sizes[0] or sizes[0] != sizes[1]:
            return False
        digests = [sorted(map(file_sha256, some)) for some in files]
        return digests[0] == digests[1]
    except (OSError, ValueError):  # loading says what cannot be read
        return False


def folder_name(model: str, *, alone: bool = True) -> str:
    """A name that any file system takes; with a hash where it alone would not tell models apart."""
    title = title_name(model)
    plain = _STRANGE.sub("-", title.replace("/", "--")).strip(".-")[:LONGEST]
    if alone and plain == title.replace("/", "--"):
        return plain
    digest = hashlib.sha256(model.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{plain}-{digest}" if plain else digest


def _place(name: str) -> str:
    """A local folder by where it really is: it may be named in several ways."""
    try:
        return str(Path(name).resolve()) if Path(name).is_dir() else name
    except (OSError, ValueError):
        return name
