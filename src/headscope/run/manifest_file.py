"""The manifest of a run as a file: of what kind its parts are, and the checksum of its content."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headscope.errors import RunFolderError
from headscope.model.request import model_place

RESULTS, MANIFEST = "atlas.nc", "manifest.json"

# Of what kind the parts of a manifest are that anything reads; and of a run that has results.
KINDS: dict[str, Any] = {
    "spec": dict,
    "fingerprint": str,
    "versions": dict,
    "corpus": dict,
    "analyses": list,
    "command": str,
    "model": dict,
    "counts": dict,
    "shards": int,
    "notes": list,
}
_COUNTS = ("documents", "examples", "tokens", "skipped", "windowed")
KINDS_OF_RESULTS: dict[str, Any] = {
    "model": {"name": str, "sha256": str, "layers": int, "heads": int},
    "counts": {**dict.fromkeys(_COUNTS, int), "reasons": dict},
}
CHECKSUM = "checksum"  # in the manifest, of everything else in it


def run_place(name: str | Path) -> Path:
    """The folder of a run; RunFolderError for one that holds none, before xarray is imported."""
    if not holds_run(name):
        raise RunFolderError(no_run(name))
    return Path(name)


def holds_run(folder: str | Path) -> bool:
    """Whether a folder holds a run, complete or not."""
    return any((Path(folder) / file).is_file() for file in (RESULTS, MANIFEST))


def is_run(what: object) -> bool:
    """Whether something is a run, or the name of a folder that holds one, and no model."""
    if not isinstance(what, str | Path):
        return hasattr(what, "manifest")
    return holds_run(what) and not (Path(what) / "config.json").is_file()


def model_or_run(name: str) -> str:
    """The name of a run folder, or of a model as `model_place` takes it."""
    return name if is_run(name) else model_place(name)


def no_run(name: str | Path) -> str:
    """The message for a folder that holds no run."""
    return f"{name} is no run folder: it has no {RESULTS}; give the -o of atlas"


def check_kinds(part: Mapping[str, Any], kinds: Mapping[str, Any]) -> None:
    """Raises TypeError for a field of the wrong type."""
    for name, kind in kinds.items():
        inner = isinstance(kind, dict)
        if name in part and not isinstance(part[name], dict if inner else kind):
            raise TypeError(f"its {name} is a {type(part[name]).__name__}")
        if inner and name in part:
            check_kinds(part[name], kind)


def sealed(manifest: Mapping[str, Any]) -> bytes:
    """The content of the file, with its checksum."""
    whole = {**manifest, CHECKSUM: checksum_of(manifest)}
    text = json.dumps(whole, indent=2, ensure_ascii=False, sort_keys=True)
    return text.encode("utf-8", "backslashreplace") + b"\n"


def checksum_of(manifest: Mapping[str, Any]) -> str:
    """Hex sha256 of a manifest without its checksum."""
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()
