"""What exactly is to be computed? Two runs with the same fingerprint give the same numbers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from headscope.accumulate import REPLICATES
from headscope.analysis import analyses, choose, options_of
from headscope.errors import InputError

BATCH_TOKENS = 2048
SHARD_TOKENS = 32_768


@dataclass(frozen=True)
class Settings:
    """How a corpus is read and run; everything here may change a number or its last bits.

    analyses      names; None for all that the model allows
    options       {analysis: {option: value}}
    max_length    tokens of an input at most; None: 128 for packed text, 512 otherwise
    long          "window", "skip" or "error" for what is longer
    segment_ids   "auto" or "zeros"
    batch_tokens  tokens of a batch at most, padding included
    shard_tokens  a shard is closed once it holds this many tokens
    limit         read only this many documents
    seed          of packing, row sampling and the bootstrap
    replicates    bootstrap replicates
    """

    analyses: tuple[str, ...] | None = None
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    max_length: int | None = None
    long: str = "window"
    segment_ids: str = "auto"
    batch_tokens: int = BATCH_TOKENS
    shard_tokens: int = SHARD_TOKENS
    limit: int | None = None
    seed: int = 0
    replicates: int = REPLICATES

    def __post_init__(self) -> None:
        """Raises InputError for anything that cannot be run, before a model is loaded."""
        for name, least in (("batch_tokens", 1), ("shard_tokens", 1), ("replicates", 0)):
            if getattr(self, name) < least:
                raise InputError(f"{name} is {getattr(self, name)}; wanted at least {least}")
        if self.limit is not None and self.limit < 1:
            raise InputError(f"limit is {self.limit}; wanted at least 1 document")
        names = choose(self.analyses)
        for name, options in self.options.items():
            if name not in names:
                raise InputError(f"options for {name!r}, which is not run; run are {names}")
            known = options_of(analyses()[name])
            for option in options:
                if option not in known:
                    there = ", ".join(known) or "none"
                    raise InputError(f"{name} has no option {option!r}; there are: {there}")

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for the manifest."""
        plain: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return plain


def fingerprint(spec: Mapping[str, Any]) -> str:
    """Hex sha256 of a spec's canonical JSON."""
    text = json.dumps(spec, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def differences(found: Mapping[str, Any], wanted: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Where two specs differ: "settings.seed: 0, now 1"."""
    out: list[str] = []
    for key in sorted({*found, *wanted}):
        a, b = found.get(key), wanted.get(key)
        if isinstance(a, Mapping) and isinstance(b, Mapping):
            out += differences(a, b, f"{prefix}{key}.")
        elif a != b:
            out.append(f"{prefix}{key}: {_short(a)}, now {_short(b)}")
    return out


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "…"
