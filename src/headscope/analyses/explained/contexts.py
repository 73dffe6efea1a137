"""Where a head uses a rule little, and where much: a query of each tenth, in the text around it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from headscope.claims.reading import Reading
from headscope.core.accumulators import Bools
from headscope.core.display import printable

AROUND = 8  # ours: tokens on either side of the query
NAMED = (0, 4, 9)  # ours: tenths on a card in text
LEAST_SPREAD = 0.02  # ours: of use between the tenths; below it no context tells of it
MOST = 6000  # ours: contexts of a page; of more heads fewer tenths are shown
STEPS = (1, 3, 9)  # from tenth to tenth


@dataclass(frozen=True)
class Taken:
    """A token that a query takes from.

    share    of what the query gathers, or attends to
    of_rule  whether it is a key of the rule
    """

    token: str
    share: float
    of_rule: bool


@dataclass(frozen=True)
class Context:
    """A query that a rule applies to.

    tenth          of such queries by use, from 0, the least used
    use            the share that it takes from keys of the rule
    before, after  the text around it
    takes          the tokens it takes most from
    """

    tenth: int
    use: float
    before: str
    query: str
    after: str
    takes: tuple[Taken, ...]

    @property
    def text(self) -> str:
        """`40 %  … as «it» was tired …  takes from “cat”* 40 %`; the rule’s keys are starred."""
        takes = ", ".join(
            f"“{one.token}”{'*' * one.of_rule} {_percent(one.share)}" for one in self.takes
        )
        return f"{_percent(self.use)}  {self.before}«{self.query}»{self.after}  takes from {takes}"

    @property
    def row(self) -> dict[str, Any]:
        """The same for programs."""
        return asdict(self)


class Contexts:
    """The contexts of the rules of all heads of a run."""

    def __init__(self, run: Reading) -> None:
        self.data = run.data if "context_use" in run.data else None
        if self.data is None:
            return
        self.use = self.data["context_use"].values
        self.query, self.key, self.weight, self.own = (
            self.data[f"context_{name}"].values for name in ("query", "key", "weight", "own")
        )
        self.input = self.data["scored_input"].values
        tokens = [printable(token) for token in self.data["scored_token"].values.tolist()]
        self.tokens = spaced(tokens, self.data["scored_special"].values > 0)

    def there(self, layer: int, head: int, slot: int) -> list[int]:
        """The tenths that have a context; none where all uses are alike."""
        if self.data is None or slot < 0:
            return []
        use = self.use[layer, head, slot]
        known = np.flatnonzero(np.isfinite(use))
        return known.tolist() if len(known) and np.ptp(use[known]) >= LEAST_SPREAD else []

    def of(self, layer: int, head: int, slot: int) -> Iterator[Context]:
        """Those of one rule, by its place among those of the head; the least used first."""
        for tenth in self.there(layer, head, slot):
            place = (layer, head, slot, tenth)
            query = int(self.query[place])
            same = np.flatnonzero(self.input == self.input[query])
            first, last = max(same[0], query - AROUND), min(same[-1], query + AROUND)
            before = "".join(self.tokens[first:query]) + " " * self.tokens[query].startswith(" ")
            yield Context(
                tenth,
                float(self.use[place]),
                "… " * bool(first > same[0]) + before.lstrip(),
                self.tokens[query].strip(),
                "".join(self.tokens[query + 1 : last + 1]) + " …" * bool(last < same[-1]),
                tuple(
                    Taken(self.tokens[key].strip(), float(weight), bool(own))
                    for key, weight, own in self._taken(place)
                ),
            )

    def _taken(self, place: tuple[int, ...]) -> Iterator[tuple[int, float, bool]]:
        for key, weight, own in zip(
            self.key[place], self.weight[place], self.own[place], strict=True
        ):
            if weight >= 0.005:  # 1 % when rounded
                yield int(key), float(weight), bool(own)

    def lines(self, layer: int, head: int, slot: int, name: str) -> Iterator[str]:
        """How much the rule is used by each tenth of its queries, and some of these."""
        every = list(self.of(layer, head, slot))
        if not every:
            return
        used = ", ".join(_percent(one.use) for one in every)
        yield f"use of “{name}”, a query of each tenth, the least first: {used}"
        yield from (f"  {one.text}" for one in every if one.tenth in NAMED)

    def page(self, slots: Sequence[tuple[int, int, list[int]]]) -> dict[str, Any]:
        """What the script of a page draws contexts from.

        slots    (layer, head, places of its rules)
        tokens   of all inputs, with the spaces before them; starts: where each input begins
        of       for each of `slots` and its rules rows of query, use in per cent, and of what it
                 takes from (token, per cent, 1 for a key of the rule)
        """
        if self.data is None:
            return {"tokens": [], "starts": [], "of": [[[] for _ in one[2]] for one in slots]}
        every = [[self.there(layer, head, at) for at in places] for layer, head, places in slots]
        count = sum(len(tenths) for rows in every for tenths in rows)
        step = next((one for one in STEPS if count / one <= MOST), STEPS[-1])
        return {
            "tokens": self.tokens,
            "starts": np.flatnonzero(np.diff(self.input, prepend=-1)).tolist(),
            "of": [
                [
                    [self._row((layer, head, at, tenth)) for tenth in tenths[::step]]
                    for at, tenths in zip(places, rows, strict=True)
                ]
                for (layer, head, places), rows in zip(slots, every, strict=True)
            ],
        }

    def _row(self, place: tuple[int, ...]) -> list[Any]:
        taken = [[key, round(100 * share), int(own)] for key, share, own in self._taken(place)]
        return [int(self.query[place]), round(100 * float(self.use[place])), taken]


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def spaced(tokens: Sequence[str], special: Bools) -> list[str]:
    """Tokens with the spaces that stand before them in a text."""
    marked = any(token[:1] in ("Ġ", "▁") for token in tokens)
    made = []
    for token, added in zip(tokens, special.tolist(), strict=True):
        begins = added or (token[:1] in ("Ġ", "▁") if marked else token[:2] != "##")
        bare = token if added else token[1:] if marked and begins else token
        bare = bare.removeprefix("##") if not (marked or begins) else bare
        made.append(" " * begins + bare.replace("Ċ", "↵"))
    return made
