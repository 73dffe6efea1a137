"""How a request differs from that of the run in a folder, in words: names, counts and settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from headscope.run.settings import differences

COUNTS = ("documents", "examples", "tokens")
# What the names and counts of a manifest say better than two hashes.
_OF_CORPUS = ("corpus.", "rows.")
_OF_WEIGHTS = ("model.sha256", "model.start_sha256")
_OF_METHOD = "method:"  # a number that is raised when the same is computed in another way


def other_request(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Where two manifests differ in what decides the numbers, one line each, both values in each.

    before, now  manifests; one may hold its spec alone
    """
    lines = differences(before["spec"], now["spec"])
    of_corpus = [line for line in lines if line.startswith(_OF_CORPUS)]
    of_weights = [line for line in lines if line.split(":")[0] in _OF_WEIGHTS]
    words = [*_corpora(before, now)] if of_corpus else []
    words += [*_weights(before, now)] if of_weights else []
    of_method = [line for line in lines if line.startswith(_OF_METHOD)]
    words += ["the method: headscope computes this in another way now"] if of_method else []
    said = {*of_corpus, *of_weights, *of_method}
    return words + [line for line in lines if line not in said]


def _corpora(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """What is read: files by name, those of one name that have changed, and how much they hold."""
    files = [
        {str(one["name"]): one.get("sha256") for one in some.get("corpus", {}).get("files", [])}
        for some in (before, now)
    ]
    names = [_few(list(some)) or _kind(of) for some, of in zip(files, (before, now), strict=True)]
    if names[0] != names[1]:
        yield f"the corpus: {names[0]}, now {names[1]}"
    for name in files[0].keys() & files[1].keys():
        if files[0][name] != files[1][name]:
            yield f"the content of {name} is another one"
    counts = [some.get("counts", {}) for some in (before, now)]
    apart = [name for name in COUNTS if counts[0].get(name) != counts[1].get(name)]
    if apart:
        sizes = [", ".join(f"{of.get(name, 0):,} {name}" for name in apart) for of in counts]
        yield f"what is read: {sizes[0]}, now {sizes[1]}"
    elif files[0] == files[1]:
        yield "the inputs: as many, but others (how they are read, or their order)"


def _weights(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    names = [str(some.get("model", {}).get("name", "a model")) for some in (before, now)]
    if names[0] != names[1]:
        yield f"the model: {names[0]}, now {names[1]}"
    else:
        yield f"the model: {names[0]}, whose weights are others now"


def _kind(manifest: Mapping[str, Any]) -> str:
    return str(manifest.get("corpus", {}).get("kind", "a corpus"))


def _few(names: list[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more
