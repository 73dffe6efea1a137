"""Settings of a run, and the fingerprint of its spec: equal fingerprints give equal numbers."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, TypedDict

from headscope.core.accumulators import REPLICATES
from headscope.core.settings_table import SettingsTable
from headscope.corpus.encoder import LONG, SEGMENT_IDS, WORD_TOKENS
from headscope.errors import InputError, did_you_mean
from headscope.run.analysis import Scope, choose, measured_questions

BATCH_TOKENS = 2048
WHOLE_MAPS = 2048  # below about so many tokens whole maps are the fastest way
SHARD_TOKENS = 32_768
MOST = 2**63 - 1  # that files of results and random generators take


@dataclass(frozen=True, repr=False)
class Settings(SettingsTable):
    """How a corpus is read and run; everything here may change numbers, or their last bits.

    analyses      names, in any order; None for all that the model allows
    options       {analysis: {option: value}}
    max_length    tokens of an input at most; None: 128 for packed text, else 512
    long          what to do with longer inputs: "window", "skip" or "error"
    segment_ids   "auto" or "zeros"
    word_tokens   "auto", "text" or "alone", see `Encoder`
    batch_tokens  tokens of a batch at most, padding included
    shard_tokens  a shard ends once it holds this many tokens
    limit         read only this many documents
    seed          of packing, and of the queries that are sampled
    replicates    groups of documents at most, for intervals
    whole_maps    inputs of more tokens are read without making whole maps
    """

    analyses: tuple[str, ...] | None = None
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    max_length: int | None = None
    long: str = "window"
    segment_ids: str = "auto"
    word_tokens: str = "auto"
    batch_tokens: int = BATCH_TOKENS
    shard_tokens: int = SHARD_TOKENS
    limit: int | None = None
    seed: int = 0
    replicates: int = REPLICATES
    whole_maps: int = WHOLE_MAPS

    def __post_init__(self) -> None:
        """Raise InputError for anything that cannot be run, before a model is loaded."""
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if value is None and name in ("limit", "max_length"):
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise InputError(f"{name} is {value!r}; wanted a whole number, at least {least}")
            if value > MOST:
                raise InputError(f"{name} is {str(value)[:20]}…; wanted a whole number below 2**63")
        choices = {"long": LONG, "segment_ids": SEGMENT_IDS, "word_tokens": WORD_TOKENS}
        for name, known in choices.items():
            if getattr(self, name) not in known:
                raise InputError(
                    f"{name} is {getattr(self, name)!r}; wanted one of {', '.join(known)}"
                )
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


def _names(given: Any) -> tuple[str, ...]:
    if isinstance(given, str) or not all(isinstance(name, str) for name in given):
        raise InputError(f"analyses is {given!r}; wanted several names, as a tuple")
    if not given:
        raise InputError("no analysis was named; leave analyses out to run all")
    return tuple(given)


def _check_options(options: Any, names: list[str]) -> None:
    asked = {each.name: each for each in measured_questions()}
    for name, given in options.items():
        if name not in names:
            raise InputError(f"options for {name!r}, which is not run; run are {', '.join(names)}")
        known = asked[name].options
        for option in given:
            if option not in known:
                there = ", ".join(known) or "none"
                meant = did_you_mean(str(option), known) or ";"
                raise InputError(f"{name} has no option {option!r}{meant} there are: {there}")
        try:
            for option, value in given.items():
                known[option].check(option, value)
            if any(known[option].deep for option in given):
                asked[name].part("measure")(Scope(layers=1, heads=1, replicates=0), **given)
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
