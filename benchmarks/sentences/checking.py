"""Find the pattern of each sentence of a report, and hold its numbers against what is so."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .judging import Printed, faults
from .page import Said
from .pattern import Pattern
from .patterns import PATTERNS
from .world import World


@dataclass(frozen=True)
class Result:
    """What became of a sentence: no pattern, or its faults; none if it is true."""

    said: Said
    text: str
    pattern: str = ""
    faults: tuple[str, ...] = ()


def check(
    said: Iterable[Said], world: World, patterns: Sequence[Pattern] = PATTERNS
) -> list[Result]:
    """A result for every sentence that says a number; each sentence once."""
    results = list[Result]()
    seen = set[str]()
    for one in said:
        text = one.text.strip().removesuffix(".") if one.text.startswith("L") else one.text.strip()
        for sentence in sentences(text):
            if sentence in seen or not any(map(str.isdigit, sentence)):
                continue
            seen.add(sentence)
            results += check_one(one, sentence, world, patterns)
    return results


def sentences(text: str) -> list[str]:
    """A finding with a title before its head says two things: the title, and what the head does."""
    title, colon, rest = text.partition(" heads: L")
    if colon:
        return [f"{title} heads: L{rest}", f"L{rest}".removesuffix(".")]
    return [text]


def check_one(said: Said, text: str, world: World, patterns: Sequence[Pattern]) -> list[Result]:
    results = []
    for pattern in patterns:
        if pattern.within and not re.search(pattern.within, text):
            continue
        for match in pattern.pattern.finditer(text):
            got = {**match.groupdict(), "where": said.where}
            wrong = list[str]()
            for group, truth in pattern.numbers.items():
                if not got.get(group):
                    continue
                printed = Printed(
                    _digits(got[group]),
                    got.get(f"{group}_low") or "",
                    got.get(f"{group}_high") or "",
                )
                try:
                    true = truth(world, got)
                except KeyError as absent:
                    wrong.append(f"nothing is known of {absent}")
                    continue
                percent = pattern.is_percent(group)
                share = percent and group not in pattern.unbounded
                wrong += [
                    f"{group}: {w}" for w in faults(printed, true, percent=percent, share=share)
                ]
            if pattern.also and not any(one.startswith("nothing is known") for one in wrong):
                wrong += pattern.also(world, got)
            results.append(
                Result(said, match[0] if pattern.name else text, pattern.name, (*wrong,))
            )
    return results or [Result(said, text)]


def _digits(text: str) -> str:
    return {"no": "0", "one": "1"}.get(text, text)
