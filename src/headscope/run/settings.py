"""Settings of a run, and the fingerprint of its spec: equal fingerprints give equal numbers."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, TypedDict

from headscope.core.options import MOST, option
from headscope.errors import InputError, did_you_mean
from headscope.run.analysis import Scope, choose, measured_questions
from headscope.run.execution import ReadingOptions


class Settings(ReadingOptions):
    """How a corpus is read and run; everything here may change numbers, or their last bits."""

    analyses: tuple[str, ...] | None = option(
        "Names, in any order; None for all that the model allows."
    )
    options: Mapping[str, Mapping[str, Any]] = option("{analysis: {option: value}}.", dict)

    def __post_init__(self) -> None:
        """Raise InputError for anything that cannot be run, before a model is loaded."""
        super().__post_init__()
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if value is None and name in ("limit", "max_length"):
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise InputError(f"{name} is {value!r}; wanted a whole number, at least {least}")
            if value > MOST:
                raise InputError(f"{name} is {str(value)[:20]}…; wanted a whole number below 2**63")
        if self.analyses is not None:
            object.__setattr__(self, "analyses", _names(self.analyses))
        _check_options(self.options, choose(self.analyses))

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for the manifest."""
        plain: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return plain


# Whole numbers and the least allowed; limit and max_length may also be None.
_LEAST = {
    "batch_tokens": 1,
    "shard_tokens": 1,
    "replicates": 0,
    "seed": 0,
    "limit": 1,
    "max_length": 1,
    "whole_maps": 1,
}


class SettingsFields(TypedDict, total=False):
    """The fields of `Settings`, as keywords."""

    analyses: tuple[str, ...] | list[str] | None
    options: Mapping[str, Mapping[str, Any]]
    max_length: int | None
    long: str
    segment_ids: str
    word_tokens: str
    batch_tokens: int
    shard_tokens: int
    limit: int | None
    seed: int
    replicates: int
    whole_maps: int


def _names(analyses: Any) -> tuple[str, ...]:
    if isinstance(analyses, str) or not all(isinstance(name, str) for name in analyses):
        raise InputError(f"analyses is {analyses!r}; wanted several names, as a tuple")
    if not analyses:
        raise InputError("no analysis was named; leave analyses out to run all")
    return tuple(analyses)


def _check_options(options: Any, names: list[str]) -> None:
    measured = {each.name: each for each in measured_questions()}
    for name, values in options.items():
        if name not in names:
            raise InputError(f"options for {name!r}, which is not run; run are {', '.join(names)}")
        known = measured[name].options
        for key in values:
            if key not in known:
                there = ", ".join(known) or "none"
                meant = did_you_mean(str(key), known) or ";"
                raise InputError(f"{name} has no option {key!r}{meant} there are: {there}")
        try:
            for key, value in values.items():
                known[key].check(key, value)
            if any(known[key].deep for key in values):
                measured[name].part("measure")(Scope(layers=1, heads=1, replicates=0), **values)
        except (TypeError, ValueError) as error:
            raise InputError(f"options of {name}: {error}") from error


def fingerprint(spec: Mapping[str, Any]) -> str:
    """Hex sha256 of the canonical JSON of a spec."""
    text = json.dumps(spec, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def differences(before: Mapping[str, Any], now: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Where two specs differ, one line each: "settings.seed: 0, now 1"."""
    out: list[str] = []
    for key in sorted({*before, *now}):
        a, b = before.get(key), now.get(key)
        if isinstance(a, Mapping) and isinstance(b, Mapping):
            out += differences(a, b, f"{prefix}{key}.")
        elif a != b:
            out.append(f"{prefix}{key}: {_short(a)}, now {_short(b)}")
    return out


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "…"
