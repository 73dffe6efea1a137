"""Stop a run once it knows what it was asked: `--until 0.02`, `--until labels`.

Documents are read in random order (`corpus.drawn`). After some numbers of shards, which depend on
nothing but how many there are, the run looks at the intervals of all that was read, which hold at
every look (`core.confidence`). It stops when each asked interval is narrower than a width, or when
every label is decided: its interval lies on one side of what makes a label, or is narrower than
NARROW across it. So any number of workers, and a run that was killed, stop at the same document.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from time import process_time
from typing import Any

import numpy as np
import xarray as xr

from headscope.claims.claim import LEAST_EFFECT, Claim
from headscope.claims.head_labels import open_labels
from headscope.claims.length_bands import BANDS
from headscope.core.confidence import holding_at_every_look, more_documents
from headscope.core.head_names import names_of
from headscope.core.progress import LOGGER
from headscope.core.results import LIMITS, Floats, estimates
from headscope.corpus import Corpus
from headscope.corpus.drawn import Draw, DrawnCorpus
from headscope.model.model import Model
from headscope.run.execution import LABELS
from headscope.run.merge_tree import looks
from headscope.run.plan import Plan, make_plan
from headscope.run.readings import CorpusReading
from headscope.run.settings import Settings

FEWEST_READ = 30  # ours: documents before the first look: of 20, rare events are seen too seldom
NARROW = LEAST_EFFECT  # of a label that stays undecided: what makes no difference elsewhere
LOOK_TOKENS = 4096  # ours: of a shard, at most
SAMPLE = 16_384  # ours: tokens of a forecast; of a smaller corpus a run warns after a quarter
FAR = 2  # ours: times the corpus; of a width that the sample calls farther off it warns
NAMED = 3  # of what is open, in words
Until = float | str
Results = Mapping[str, xr.Dataset]


@dataclass(frozen=True)
class Goal:
    """Where a run stops.

    until   a width, or LABELS
    sample  tokens after which it stops in any case, without results: for a forecast; 0 for a run
    """

    until: Until
    sample: int = 0


def in_random_order(corpus: Corpus, settings: Settings) -> tuple[DrawnCorpus, Settings]:
    """The corpus as it is drawn, and the settings of a run over it: with smaller shards."""
    drawn = DrawnCorpus(corpus, seed=settings.seed, limit=settings.limit)
    tokens = min(settings.shard_tokens, LOOK_TOKENS)
    return drawn, replace(settings, limit=None, shard_tokens=tokens)


def for_looks(model: Model, corpus: DrawnCorpus, settings: Settings) -> Plan:
    """The plan of a run that may stop early.

    Inputs that are shown are of the first shard, as later ones may not be read. Where only some
    partitions were drawn, each is one group: documents of one may be alike.
    """
    plan = make_plan(model, corpus, settings)
    first = first_shards(model, corpus, plan, settings, 1).readings
    shown = {
        kind: replace(reading, stored_inputs=first[kind].stored_inputs)
        for kind, reading in plan.readings.items()
    }
    return replace(plan, readings=shown, listed=corpus.draw.partition or plan.listed)


def first_shards(
    model: Model, corpus: DrawnCorpus, plan: Plan, settings: Settings, shards: int
) -> Plan:
    """The plan of the first shards of a plan: what a run that stopped there has read."""
    documents = sum(shard.documents for shard in plan.shards[:shards])
    first = make_plan(model, corpus, replace(settings, limit=documents))
    nothing = CorpusReading.new(len(plan.token_counts), seed=settings.seed)
    readings = {kind: first.readings.get(kind, nothing) for kind in plan.readings}
    return replace(first, readings=readings, whole=plan)


@dataclass(frozen=True)
class Look:
    """What is known after some shards.

    shards, documents, tokens  that were read
    needed    name of a number, or of an open label -> how many times narrower its widest interval
              must be: below 1 where it is narrow enough
    border    labels that stay undecided, as their intervals are narrow already
    missing   groups of results none of which has an interval yet
    measured  whether anything that was asked has an interval
    """

    shards: int
    documents: int
    tokens: int
    needed: Mapping[str, float] = field(default_factory=dict)
    border: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    measured: bool = False

    @property
    def open(self) -> tuple[str, ...]:
        """What is not known yet, the widest first."""
        names = (name for name, times in self.needed.items() if times >= 1)
        return (*self.missing, *sorted(names, key=lambda name: -self.needed[name]))

    @property
    def enough(self) -> bool:
        """Whether there is no more to know."""
        return self.measured and not self.open

    def tokens_needed(self) -> dict[str, float]:
        """About how many tokens it takes to know each of them."""
        return {
            name: self.tokens * more_documents(times, self.documents)
            for name, times in self.needed.items()
        }


class Stopping:
    """Looks at the sums of a run, and says when they are enough.

    results  (analyses by name) -> their results
    control  (shards) -> the groups of the run's control
    tree     (results) -> the labelled tree of a run
    seconds  of processor time that its looks took
    """

    def __init__(
        self,
        goal: Goal,
        plan: Plan,
        results: Callable[[Mapping[str, Any]], Results],
        control: Callable[[int], Results],
        tree: Callable[[Results], xr.DataTree],
    ) -> None:
        self.until, self.sample, self.plan = goal.until, goal.sample, plan
        self.results, self.control, self.tree = results, control, tree
        self.looks, self.seconds = list[Look](), 0.0

    def enough(self, shards: int, merged: Mapping[str, Any]) -> bool:
        """Whether the first shards tell what was asked; `merged` are their sums, by analysis."""
        start, read = process_time(), self.plan.shards[:shards]
        documents, tokens = (sum(getattr(s, n) for s in read) for n in ("documents", "tokens"))
        look = Look(shards, documents, tokens)
        if documents >= FEWEST_READ or shards == len(self.plan.shards):
            with holding_at_every_look(documents):
                look = self._looked(look, self.results(merged))
        if not self.sample and self.until != LABELS:
            self._warn(look)
        self.looks.append(look)
        self.seconds += process_time() - start
        return look.enough or (look.measured and 0 < self.sample <= tokens)

    def _looked(self, look: Look, results: Results) -> Look:
        width = NARROW if self.until == LABELS else float(self.until)
        wide = {
            name: times_narrower(result, width)
            for name, result in results.items()
            if not name.startswith(BANDS)
        }
        missing = tuple(n for n, some in wide.items() if not some and with_intervals(results[n]))
        measured = any(wide.values())
        if self.until != LABELS or missing:
            needed = {f"{n}.{v}": times for n, some in wide.items() for v, times in some.items()}
            return replace(look, needed=needed, missing=missing, measured=measured)
        tree = self.tree(results)
        opened, names = open_labels(tree), replace(names_of(tree), first=1)  # as files count
        if not any(map(_is_wide, opened)):  # untrained networks are read once all else is known
            opened = open_labels(self.tree({**results, **self.control(look.shards)}))
        named = {one: f"{names.head(one.layer, one.head)} {one.name}" for one in opened}
        needed = {named[one]: _narrower(one, at) for one, at in opened.items() if _is_wide(one)}
        border = tuple(named[one] for one in opened if not _is_wide(one))
        return replace(look, needed=needed, border=border, measured=measured)

    def _warn(self, look: Look) -> None:
        """Say once, from a sample, that a width is out of reach; the run goes on."""
        there = sum(shard.tokens for shard in self.plan.shards)
        before = max((one.tokens for one in self.looks if one.measured), default=0)
        if not (look.needed and before < min(SAMPLE, there / 4) <= look.tokens):
            return
        tokens = look.tokens_needed()
        name = max(tokens, key=tokens.__getitem__)
        if tokens[name] > FAR * there:
            LOGGER.warning(
                "by the first %s tokens, --until %g would take about %.2g tokens, for %s; the "
                "corpus has about %.2g, and all of it is read: stop this run, and ask for less, or "
                "for fewer --analyses",
                *(f"{look.tokens:,}", self.until, tokens[name], name, there),
            )

    def record(self, draw: Draw) -> dict[str, Any]:
        """What the manifest says of where the run stopped, and why."""
        last = self.looks[-1]
        documents, tokens = (
            sum(getattr(shard, name) for shard in self.plan.shards)
            for name in ("documents", "tokens")
        )
        of = round(draw.of / draw.share)
        return {
            "asked": self.until,
            "documents": last.documents,
            "of_documents": of,
            "tokens": last.tokens,
            "of_tokens": round(tokens * of / documents),
            "estimated": not draw.whole,
            "looks": 1 + looks(len(self.plan.shards)).index(last.shards),
            "known": last.enough,
            "measured": last.measured,
            "why": self._why(last, draw),
            "open": list(last.open),
            "border": list(last.border),
            "needed": dict(last.needed),
            "tokens_needed": last.tokens_needed() if self.sample else {},
        }

    def _why(self, last: Look, draw: Draw) -> str:
        every = "all" if draw.whole else "as much as a draw holds"
        if not last.measured:
            return f"{every} was read, as nothing that was asked has an interval"
        if self.until == LABELS:
            border = f"; {_some(last.border)} lie at the border, within {NARROW:g}" * bool(
                last.border
            )
            if last.open:
                return f"{every} was read, and not decided are {_some(last.open)}{border}"
            return f"every label is decided{border}"
        if last.open:
            return f"{every} was read, and wider than {self.until:g} are {_some(last.open)}"
        name = max(last.needed, key=last.needed.__getitem__)
        return (
            f"all intervals of {len(last.needed)} numbers are narrower than {self.until:g}; the "
            f"widest: {last.needed[name] * float(self.until):.2g} ({name})"
        )


def times_narrower(result: xr.Dataset, width: float) -> dict[str, float]:
    """How many times narrower the interval of each number of a group must be; the widest cell's.

    The scale of a width is 1 for what lies between -1 and 1, such as shares and correlations; else
    the largest value of any cell: of nats, norms and counts. Numbers without intervals are left
    out, and those whose intervals are over heads: these do not narrow with more documents. So are
    single cells without one, such as of rare relations.
    """
    out = dict[str, float]()
    for name in with_intervals(result):
        value, low, high = (result[f"{name}{end}"].values for end in ("", *LIMITS))
        if np.isfinite(high - low).any():
            share = result[name].attrs.get("units") in ("1", "probability")
            scale = max(float(np.nanmax(np.abs(value))), 1.0 if share else 0.0)
            out[name] = float(np.nanmax(_times(value, low, high, width * scale))) if scale else 0.0
    return out


def _times(value: Floats, low: Floats, high: Floats, width: float) -> Floats:
    """[*cell] how many times narrower an interval must be; below 1 where it is narrow enough.

    One of a positive number reaches farther upwards: it is even in its logarithm, so that its width
    falls much faster than the root of what is read. So it is compared there.
    """
    times = (high - low) / width
    with np.errstate(divide="ignore", invalid="ignore"):
        in_logs = np.log(high / low) / 2 / np.arcsinh(width / (2 * value))
    upwards = (times > 1) & (low > 0) & (high - value > value - low)
    return np.asarray(np.where(upwards, np.clip(in_logs, 1, times), times))


def with_intervals(result: xr.Dataset) -> list[str]:
    """The numbers of a group that may have an interval over documents."""
    return [
        name
        for name in estimates(result)
        if all(name + end in result for end in LIMITS)
        and "interval_over" not in result[name + LIMITS[0]].attrs
    ]


def _is_wide(claim: Claim) -> bool:
    return claim.high - claim.low > NARROW


def _narrower(claim: Claim, threshold: float) -> float:
    """How many times narrower its interval must be, to lie beside the threshold or be NARROW."""
    above = claim.value > threshold
    reach = claim.value - claim.low if above else claim.high - claim.value
    beside = reach / max(abs(claim.value - threshold), 1e-9)
    return max(1.0, min(beside, (claim.high - claim.low) / NARROW))


def _some(names: tuple[str, ...]) -> str:
    return f"{len(names)} ({', '.join(names[:NAMED])}{', …' if len(names) > NAMED else ''})"
