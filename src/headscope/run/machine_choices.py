"""Keep what timing decides, once per machine: which linear maps are faster for a network's sizes.

Timed in each run, the choice could change, and with it the last bits of the results. So the
first process that times one keeps it in the user's cache folder, in a file for each kind of machine
and each list of sizes. Whoever comes later, or second, takes what the first has kept.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from torch import nn

from headscope.core.display import printable
from headscope.core.whole_file import names_in, sha256_of, user_cache, write_whole
from headscope.errors import InputError, UnwrittenError
from headscope.model.linears import KINDS, map_sizes
from headscope.run.processes import processor

FOLDER, LARGEST = "machine", 1 << 16  # bytes of a kept choice at most
CACHE, AGAIN = "the cache folder", "linear maps are timed on this machine"


@dataclass(frozen=True)
class LinearsChoice:
    """The kind of linear maps of a run.

    kind     "onednn" or "stock"
    by       who chose it: `requested`, `the only kind here`, `timed now`, `timed on DATE`
    trouble  what is wrong with the cache, in words; "" where nothing is
    """

    kind: str
    by: str = "requested"
    trouble: str = ""


def this_machine() -> dict[str, str]:
    """What the fastest kind of linear maps depends on, beside the sizes of a network."""
    capability = torch.backends.cpu.get_cpu_capability()
    return {"processor": processor(), "instructions": capability, "torch": torch.__version__}


def chosen_here(network: nn.Module, choose: Callable[[str], str]) -> LinearsChoice:
    """The kind that is kept for this machine and network; else it is timed now, and kept.

    choose  "auto", "onednn" -> the kind; raises InputError if "onednn" is not right here
    """
    if not (sizes := map_sizes(network)):
        return LinearsChoice(choose("auto"), "the only kind here")
    try:
        path = _place(sizes)
        kept, trouble = _read(path)
    except UnwrittenError as error:
        return LinearsChoice(choose("auto"), "timed now", _not_kept(error))
    if kept is None:
        words = trouble or _of_others(path)
        return _kept_now(path, sizes, choose("auto"), replaces=bool(trouble), trouble=words)
    return LinearsChoice(_tried(kept["linears"], choose), f"timed on {kept['made']}")


def kept_for(network: nn.Module) -> tuple[str, str]:
    """What is kept for this machine and network: the kind, and the day; or "" and why not."""
    if not (sizes := map_sizes(network)):
        return "stock", "the only kind here"
    try:
        kept, trouble = _read(path := _place(sizes))
    except UnwrittenError as error:
        return "", str(error)
    if kept is None:
        return "", trouble or _of_others(path) or "not timed yet: the first run does that"
    return kept["linears"], f"timed on {kept['made']}"


def _tried(kind: str, choose: Callable[[str], str]) -> str:
    """The kept kind, if it is right for these weights."""
    try:
        return kind if kind == "stock" else choose(kind)
    except InputError:
        return "stock"


def _kept_now(
    path: Path, sizes: list[str], kind: str, *, replaces: bool, trouble: str
) -> LinearsChoice:
    made = datetime.now(UTC).strftime("%Y-%m-%d")
    content = {"linears": kind, "made": made, "machine": this_machine(), "sizes": sizes}
    try:
        write_whole(path, json.dumps(content, indent=1).encode(), anew=not replaces)
    except FileExistsError:  # another process was first: both run what that has kept
        kept, fault = _read(path)
        kind = kind if kept is None else kept["linears"]
        return LinearsChoice(kind, "timed now", fault)
    except UnwrittenError as error:
        return LinearsChoice(kind, "timed now", _not_kept(error))
    return LinearsChoice(kind, "timed now", trouble)


def _place(sizes: list[str]) -> Path:
    machine, folder = sha256_of([json.dumps(this_machine(), sort_keys=True)]), user_cache(FOLDER)
    if not folder.is_absolute():  # without a home, or by a variable that says too little
        raise UnwrittenError(f"found the cache folder {str(folder)!r}; wanted a whole path")
    return folder / f"linears-{sha256_of(sizes)[:16]}-{machine[:16]}.json"


def _read(path: Path) -> tuple[dict[str, Any] | None, str]:
    """What is kept there; or None, and what is wrong with it in words ("": nothing is there)."""
    try:
        with path.open("rb") as file:
            content = json.loads(file.read(LARGEST))
    except FileNotFoundError:
        return None, ""
    except (OSError, ValueError, RecursionError):
        content = None
    whole = isinstance(content, dict) and content.get("linears") in KINDS
    if not whole or not isinstance(content.get("made"), str):
        return None, f"{CACHE} holds a file that cannot be read ({path.name}): {AGAIN}"
    if content.get("machine") != this_machine():
        return None, f"{CACHE} holds a choice of {_named(content)} under this one's name: {AGAIN}"
    return content | {"made": printable(content["made"])[:10]}, ""


def _of_others(path: Path) -> str:
    """Which other machines have kept a choice for the same sizes; "" for none."""
    others = sorted({_named(one) for one in _others(path)})
    return f"{CACHE} holds choices of {' and of '.join(others)}: {AGAIN}" if others else ""


def _others(path: Path) -> Iterator[Any]:
    sizes = path.name.rpartition("-")[0]
    for name in sorted(names_in(path.parent)):
        if name.startswith(f"{sizes}-") and name != path.name:
            try:
                yield json.loads((path.parent / name).read_bytes()[:LARGEST])
            except (OSError, ValueError, RecursionError):
                continue


def _named(content: Any) -> str:
    machine = content.get("machine") if isinstance(content, dict) else None
    if not isinstance(machine, dict):
        return "an unknown machine"
    processor_, torch_ = (printable(str(machine.get(one)))[:80] for one in ("processor", "torch"))
    return f"another machine ({processor_}, torch {torch_})"


def _not_kept(error: UnwrittenError) -> str:
    reason = getattr(error.__cause__, "strerror", None) or str(error)
    return f"{CACHE} (XDG_CACHE_HOME) cannot be written ({reason}): another run may differ"
