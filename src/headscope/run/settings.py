"""Settings of a run, and the fingerprint of its spec: equal fingerprints give equal numbers."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from headscope.core.options import comma_separated, option
from headscope.core.whole_file import content_sha256
from headscope.errors import InputError, did_you_mean
from headscope.run.execution import ReadingOptions


def parse_options(texts: Sequence[str]) -> dict[str, dict[str, Any]]:
    """`flow.layers=3` as {"flow": {"layers": 3}}; InputError for a text of another form."""
    options: dict[str, dict[str, Any]] = {}
    for text in texts:
        place, equals, value = text.partition("=")
        analysis, dot, name = place.partition(".")
        if not (equals and dot and analysis and name):
            raise InputError(f"--set {text!r}; wanted ANALYSIS.OPTION=VALUE")
        options.setdefault(analysis, {})[name] = _parsed(value)
    return options


def _parsed(text: str) -> Any:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _names_of_analyses() -> list[str]:
    from headscope.claims.question import questions

    return [one.name for one in questions() if one.measure is not None]


def analyses_option(usual: str) -> Any:
    """The field of `--analyses`; `usual` says which are run by default."""
    return option(
        f"Comma-separated names; {usual}.",
        reads=comma_separated,
        values=_names_of_analyses,
        python="In Python several names, in any order.",
        heading="What to compute",
        before="whole_maps",
    )


class Settings(ReadingOptions):
    """How a corpus is read and run; everything here may change numbers, or their last bits."""

    analyses: tuple[str, ...] | list[str] | None = analyses_option(
        "all by default (`headscope analyses`)"
    )
    options: Mapping[str, Mapping[str, Any]] = option(
        "ANALYSIS.OPTION=VALUE, repeatable.",
        dict,
        names="--set",
        many=True,
        type=str,
        gathers=parse_options,
        python="In Python {analysis: {option: value}}.",
        before="whole_maps",
    )

    def __post_init__(self) -> None:
        """Raise InputError for anything that cannot be run, before a model is loaded."""
        super().__post_init__()
        from headscope.run.known_analyses import choose

        if self.analyses is not None:
            object.__setattr__(self, "analyses", _names(self.analyses))
        _check_options(self.options, choose(self.analyses))

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for the manifest, with the digests of files that they name."""
        plain: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return plain | ({"files": files} if (files := self.files()) else {})

    def options_of(self, names: Sequence[str]) -> dict[str, dict[str, Any]]:
        """The options of these analyses, defaults included, as plain values; and what is set."""
        from headscope.run.known_analyses import measured_questions

        defaults = {
            one.name: {key: option.default for key, option in one.options.items()}
            for one in measured_questions()
            if one.name in names and one.options
        }
        own = {name: dict(values) for name, values in self.options.items()}
        every = {name: defaults.get(name, {}) | own.get(name, {}) for name in {**defaults, **own}}
        plain: dict[str, dict[str, Any]] = json.loads(json.dumps(every, default=str))
        return plain

    def files(self) -> dict[str, str]:
        """ANALYSIS.OPTION -> SHA-256 of the file, or files of the folder, that it names."""
        from headscope.run.known_analyses import measured_questions

        known = {one.name: one.options for one in measured_questions()}
        return {
            f"{name}.{key}": content_sha256(Path(str(value)))
            for name, values in self.options.items()
            for key, value in values.items()
            if value and known[name][key].files
        }


class CorpusSettings(Settings):
    """The same, where three options of analyses that several have are given once for all."""

    relations: str | None = option(
        "Dependency relations to score, say nsubj,obj; all by default.",
        metavar="LABELS",
        heading="What to compute",
        before="whole_maps",
    )
    subtypes: Literal["keep", "fold"] | None = option(
        "nsubj:pass as a relation of its own (keep, the default) or as nsubj (fold).",
        before="whole_maps",
    )
    measure: Literal["attention", "weighted_norm"] | None = option(
        "Score heads by attention (default) or by the weighted norm ‖αf(x)‖.",
        before="whole_maps",
    )

    def __post_init__(self) -> None:
        """Put the three among the options; InputError where they contradict them, or fit none."""
        from headscope.run.known_analyses import choose, measured_questions

        options = {name: dict(own) for name, own in self.options.items()}
        names = choose(None if self.analyses is None else _names(self.analyses))
        for name in ("relations", "subtypes", "measure"):
            value = getattr(self, name)
            if value is None:
                continue
            takers = [one.name for one in measured_questions() if name in one.options]
            if not set(takers) & set(names):
                raise InputError(
                    f"found --{name} {value}, but no requested analysis has this option; add "
                    f"{' or '.join(takers)} to --analyses"
                )
            for analysis in filter(takers.__contains__, names):
                if options.setdefault(analysis, {}).setdefault(name, value) != value:
                    raise InputError(
                        f"--{name} {value} contradicts --set {analysis}.{name}="
                        f"{options[analysis][name]}; give one of them"
                    )
        object.__setattr__(self, "options", options)
        super().__post_init__()


def _names(analyses: Any) -> tuple[str, ...]:
    if isinstance(analyses, str) or not all(isinstance(name, str) for name in analyses):
        raise InputError(f"analyses is {analyses!r}; wanted several names, as a tuple")
    if not analyses:
        raise InputError("no analysis was named; leave analyses out to run all")
    return tuple(analyses)


def _check_options(options: Any, names: list[str]) -> None:
    from headscope.run.known_analyses import measured_questions

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
                from headscope.run.analysis import Scope

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
