"""The outcome of a zoo: its runs, the claims tested on each, in sentences and as tables."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from headscope.analyses.dependency import QUESTION as DEPENDENCY
from headscope.analyses.dependency.tables import best_heads
from headscope.claims.reading import Reading
from headscope.claims.verdict import Outcome, counts_of
from headscope.core.head_names import names_of
from headscope.core.intervals import Estimate
from headscope.core.results import shape
from headscope.core.whole_file import write_whole
from headscope.core.wording import fixed, heaviest_first, percent
from headscope.papers import claim_engine
from headscope.papers.claim_engine import ClaimOutcome, PaperClaim
from headscope.papers.quantities import Measured, PaperRun, PaperRuns
from headscope.papers.zoo.claims import CLAIMS, GROUPS, RELATIONS, relation_key
from headscope.papers.zoo.counterparts import (
    Counterparts,
    counterpart_table,
    counterparts,
    pairs_summary,
)
from headscope.papers.zoo.functions import Function, function_table, functions, summary
from headscope.papers.zoo.measures import MODEL_RUN, depth_curves, depths
from headscope.run.store import Run

TITLES = {group.id: group.title for group in GROUPS}
MOST_NAMED = 3
Answers = Mapping[str, ClaimOutcome]


@dataclass
class ZooOutcome:
    """The runs of a list of models on one corpus, and what they say to the claims.

    path      folder of the zoo
    runs      by what the page calls the model, in the order in which they were named
    manifest  what was asked; `failed` says of every model that could not be read why
    elsewhere whether another process has written it, of several that filled the folder together
    """

    path: Path
    runs: dict[str, Run]
    manifest: Mapping[str, Any] = field(repr=False)
    elsewhere: bool = field(default=False, kw_only=True, repr=False)

    @cached_property
    def asked(self) -> dict[str, PaperRun]:
        """The runs as claims read them."""
        runs = self.runs.items()
        return {label: PaperRuns({MODEL_RUN: run}).run(MODEL_RUN) for label, run in runs}

    @cached_property
    def answers(self) -> dict[str, dict[str, ClaimOutcome]]:
        """The outcome of every claim for every model: [key of the claim][model]."""
        return {
            claim.key: {
                label: claim_engine.judge(claim, run.beside, group.id)
                for label, run in self.asked.items()
            }
            for group in GROUPS
            for claim in group.claims
        }

    @cached_property
    def curves(self) -> dict[str, dict[str, Estimate]]:
        """The numbers over depth of every model, see `depth_curves`: [model][number]."""
        return {label: depth_curves(run) for label, run in self.asked.items()}

    @cached_property
    def functions(self) -> list[Function]:
        """What heads do, by label, and which models have a head for it; none of a single model."""
        trees = {label: run.tree for label, run in self.runs.items()}
        return functions(trees) if len(trees) > 1 else []

    @cached_property
    def counterparts(self) -> list[Counterparts]:
        """Heads that do the same in two models, of every two whose maps are stored."""
        return counterparts({label: run.tree for label, run in self.runs.items()})

    @property
    def failed(self) -> dict[str, str]:
        """Models that could not be read, and why."""
        return dict(self.manifest.get("failed", {}))

    @cached_property
    def headlines(self) -> list[str]:
        """On functions, and on heads that do the same; one sentence per claim that has one, those
        of most weight first; and one on relations.

        `In 4 of 5 models more than half of the attention … (not in x: 35 %; cannot tell of y: 52 %;
        not asked of z: no separator).`
        """
        claims = [claim for claim in CLAIMS if claim.headline]
        said = ((_headline(one, self.answers[one.key]), self.answers[one.key]) for one in claims)
        weighted = heaviest_first((text, weight(answers)) for text, answers in said)
        own = filter(None, [summary(self.functions), pairs_summary(self.counterparts)])
        return [*own, *weighted, *_relations(self.answers)]


def _headline(claim: PaperClaim, answers: Answers) -> str:
    exceptions, outcomes = _exceptions(claim, answers), {a.outcome for a in answers.values()}
    if outcomes & {Outcome.HOLDS, Outcome.FAILS}:
        return f"In {how_many(answers)} {claim.headline}{exceptions}."
    if Outcome.CANNOT_TELL in outcomes:
        return f"These texts cannot tell of any model whether {claim.headline}{exceptions}."
    why = next(iter(answers.values())).verdict.needs
    return f"Whether {claim.headline} was not asked of any model: {why}."


def weight(answers: Answers) -> float:
    """How far numbers lie from the bound of a claim, mean over models; 0 of one without a verdict.

    From 0, at the bound, to 1: shares and correlations as they are, else as a share
    of the number or of the bound, whichever is larger.
    """
    sure = [one for one in answers.values() if one.outcome in (Outcome.HOLDS, Outcome.FAILS)]
    return sum(map(_apart, sure)) / len(answers) if answers else 0.0


def _apart(answer: ClaimOutcome) -> float:
    if answer.measured is None or answer.claim.bound is None:
        return 0.0
    number, bound = answer.measured.value, answer.claim.bound.value
    scale = max(abs(number), abs(bound)) if answer.claim.unit in ("heads", "nats") else 1.0
    return min(abs(number - bound) / scale, 1.0) if scale else 0.0


def held(answers: Answers) -> tuple[int, int]:
    """For how many models a claim holds, and how many could be asked."""
    counts = counts_of(answer.verdict for answer in answers.values())
    return counts[Outcome.HOLDS], len(answers) - counts[Outcome.NOT_ASKED]


def how_many(answers: Answers) -> str:
    """`all 6 models`, `none of 6 models`, `4 of 6 models`: those that could be asked."""
    holding, answered = held(answers)
    if answered == 1:
        return "the only model asked" + " it is not so that" * (not holding)
    if holding == answered:
        return f"all {holding} models" if holding > 2 else "both models"
    return f"{holding or 'none'} of {answered} models"


def value_words(claim: PaperClaim, value: float) -> str:
    """A number in the unit of its claim, without interval."""
    if claim.unit == "share":
        return percent(value)
    if claim.unit == "points":
        text = fixed(100 * value, 1)
        return f"{'+' if value > 0 else ''}{text} points"
    return fixed(value, 2)


def _exceptions(claim: PaperClaim, answers: Answers) -> str:
    """In brackets the models for which it does not hold, has no verdict, holds without training
    too, or was not asked.
    """
    parts = []
    for outcome, start in ((Outcome.FAILS, "not in"), (Outcome.CANNOT_TELL, "cannot tell of")):
        words = [
            name if claim.unit == "heads" else f"{name}: {value_words(claim, a.measured.value)}"
            for name, a in answers.items()
            if a.outcome is outcome and a.measured is not None
        ]
        parts += [f"{start} {_listed(words)}"] if words else []
    silent = sorted(
        (a.verdict.needs, name) for name, a in answers.items() if a.outcome is Outcome.NOT_ASKED
    )
    also = [
        f"{name}: {value_words(claim, a.untrained_value)}"
        for name, a in answers.items()
        if a.untrained
    ]
    parts += [f"also in an untrained network of {_listed(also)}"] if also else []
    for why, group in groupby(silent, key=lambda pair: pair[0]):
        parts.append(f"not asked of {_listed([name for _, name in group])}: {why}")
    return f" ({'; '.join(parts)})" if parts else ""


def _relations(answers: Mapping[str, Answers]) -> list[str]:
    counts = [(relation.name, *held(answers[relation_key(relation)])) for relation in RELATIONS]
    words = [f"{name} {holding} of {answered}" for name, holding, answered in counts if answered]
    if not words:
        return []
    return [
        "The best head beats the best fixed offset, on documents that it was not chosen on, in "
        f"these numbers of models: {', '.join(words)}."
    ]


def _listed(names: list[str]) -> str:
    if len(names) <= MOST_NAMED + 1:
        return ", ".join(names)
    return f"{', '.join(names[:MOST_NAMED])} and {len(names) - MOST_NAMED} more"


def claim_table(zoo: ZooOutcome) -> pd.DataFrame:
    """One row per claim and model; depth: of claims about one head; why: it cannot be asked."""
    columns = (
        "claim",
        "group",
        "model",
        "verdict",
        "value",
        "ci_low",
        "ci_high",
        "unit",
        "test",
        "bound",
        "smallest",
        "n",
        "layer",
        "head",
        "depth",
        "p",
        "detail",
        "why",
        "number",
        "source",
        "bound_by",
        "published",
        "untrained",
        "untrained_value",
    )
    rows = [
        _definition(outcome.claim, outcome.group)
        | _answer(zoo, label, outcome)
        | {"claim": key, "group": TITLES[outcome.group], "model": label}
        | claim_engine.untrained_columns(claim_engine.untrained_record(outcome))
        for key, answers in zoo.answers.items()
        for label, outcome in answers.items()
    ]
    table = pd.DataFrame(rows, columns=columns)
    return table.astype(dict.fromkeys(("n", "layer", "head"), "Int64"))


def layer_table(zoo: ZooOutcome) -> pd.DataFrame:
    """One row per model, number and layer: quantity, layer, depth, value, ci_low, ci_high."""
    rows = [
        pd.DataFrame(
            {
                "model": label,
                "quantity": quantity,
                "layer": _numbers(zoo, label),
                "depth": depths(len(curve.value)),
                "value": curve.value,
                "ci_low": curve.low,
                "ci_high": curve.high,
            }
        )
        for label, curves in zoo.curves.items()
        for quantity, curve in curves.items()
    ]
    return pd.concat(rows, ignore_index=True) if rows else pd.DataFrame()


def head_table(zoo: ZooOutcome) -> pd.DataFrame:
    """The best heads of all relations and models, as in each run, with their depth."""
    tables = []
    for label, run in zoo.runs.items():
        reading = Reading(run.tree, DEPENDENCY)
        if reading.there:
            table = best_heads(reading)
            deep = dict(zip(_numbers(zoo, label), depths(shape(run.tree)[0]), strict=True))
            tables.append(table.assign(model=label, depth=table["layer"].map(deep)))
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


def model_table(zoo: ZooOutcome) -> pd.DataFrame:
    """One row per model: what it is, and what it read."""
    rows = []
    for label, run in zoo.runs.items():
        model, counts = run.manifest["model"], run.manifest["counts"]
        rows.append(
            {
                "model": label,
                **{
                    k: model[k]
                    for k in ("revision", "sha256", "architecture", "stack", "layers", "heads")
                },
                **{f"{k}_token": model["special_tokens"].get(k, "") for k in ("cls", "sep")},
                **{
                    k: counts[k] for k in ("documents", "examples", "tokens", "skipped", "windowed")
                },
                "analyses": ",".join(run.manifest["analyses"]),
            }
        )
    return pd.DataFrame(rows)


def write_tables(zoo: ZooOutcome) -> list[Path]:
    """Writes claims.csv and claims.json into the folder, all others into `tables`."""
    claims = claim_table(zoo)
    text = json.dumps(as_json(zoo), ensure_ascii=False, indent=1).encode("utf-8", "replace")
    written = [
        write_whole(zoo.path / "claims.csv", partial(_csv, claims)),
        write_whole(zoo.path / "claims.json", text),
    ]
    others = {
        "layers": layer_table(zoo),
        "best_heads": head_table(zoo),
        "models": model_table(zoo),
        "functions": function_table(zoo.functions),
        "counterparts": counterpart_table(zoo.counterparts),
    }
    for name, table in {"claims": claims, **others}.items():
        if len(table):
            path, parquet = zoo.path / "tables" / name, partial(table.to_parquet, index=False)
            written.append(write_whole(path.with_suffix(".csv"), partial(_csv, table)))
            written.append(write_whole(path.with_suffix(".parquet"), parquet))
    return written


def as_json(zoo: ZooOutcome) -> dict[str, Any]:
    """The claims with their definitions and what every model says to them; missing is null."""
    claims = [
        {
            **_definition(claim, group.id),
            "answers": {
                label: {k: _plain(value) for k, value in _answer(zoo, label, outcome).items()}
                for label, outcome in zoo.answers[claim.key].items()
            },
        }
        for group in GROUPS
        for claim in group.claims
    ]
    return {
        "fingerprint": zoo.manifest["fingerprint"],
        "models": list(zoo.runs),
        "failed": zoo.failed,
        "headlines": zoo.headlines,
        "claims": claims,
    }


def _definition(claim: PaperClaim, group: str) -> dict[str, Any]:
    bound = claim.bound
    return {
        "name": claim.key,
        "group": group,
        "text": claim.text,
        "number": claim.number,
        "unit": claim.unit,
        "test": bound.test if bound else "",
        "bound": bound.value if bound else math.nan,
        "source": claim.place,
        "bound_by": bound.by if bound else "",
        "published": claim.published_text,
        "headline": claim.headline,
    }


def _answer(zoo: ZooOutcome, label: str, outcome: ClaimOutcome) -> dict[str, Any]:
    number = outcome.measured or Measured()
    layer, head = number.head or (None, None)
    deep = depths(shape(zoo.runs[label].tree)[0])
    return {
        "verdict": str(outcome.outcome),
        "smallest": outcome.verdict.smallest,
        "value": number.value,
        "ci_low": number.low,
        "ci_high": number.high,
        "n": number.count if outcome.measured else None,
        "head": head,
        "layer": None if layer is None else _numbers(zoo, label)[layer],
        "depth": np.nan if layer is None else float(deep[layer]),
        "p": number.p,
        "detail": number.detail,
        "why": outcome.verdict.needs,
        "untrained": claim_engine.untrained_record(outcome),
    }


def _numbers(zoo: ZooOutcome, label: str) -> Sequence[int]:
    """[layer] the model's own numbers of the layers that attend, from 0."""
    tree = zoo.runs[label].tree
    return names_of(tree).numbers or range(shape(tree)[0])


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _csv(table: pd.DataFrame, path: str) -> None:
    table.to_csv(path, index=False, encoding="utf-8", errors="backslashreplace")
