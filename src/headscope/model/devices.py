"""Which devices a name can mean here, told without importing torch."""

import importlib.util
import runpy
import sys
from pathlib import Path
from typing import Any

from headscope.errors import ModelError, did_you_mean

# Types that torch 2.13 can compute on.
DEVICES = ("cpu", "cuda", "mps", "xpu", "hpu", "mtia", "maia", "xla", "privateuseone")
WANTED = "wanted cpu, or cuda, cuda:1, mps where the machine and this torch have it"


def refuse_impossible(name: str) -> None:
    """Raise ModelError for no device at all, and for one that this torch was built without.

    Whether the machine has one is seen when a model is loaded.
    """
    kind, colon, number = name.partition(":")
    if kind not in DEVICES or (colon and not number.isdecimal()):
        raise ModelError(f"no device {name!r} here{did_you_mean(kind, DEVICES) or ';'} {WANTED}")
    build = _build() if kind in ("cuda", "xpu") else {}
    lacking = bool(build) and not (build.get(kind) or (kind == "cuda" and build.get("hip")))
    if lacking or (kind == "mps" and sys.platform != "darwin"):
        raise ModelError(f"no device {name!r} here: this torch is built without it; {WANTED}")


def _build() -> dict[str, Any]:
    """What torch/version.py says, of which kinds of devices it was built for; {} where nothing."""
    spec = importlib.util.find_spec("torch")
    file = Path(spec.origin).with_name("version.py") if spec and spec.origin else None
    return runpy.run_path(str(file)) if file and file.is_file() else {}
