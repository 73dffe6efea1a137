"""Which functions do all models of a zoo have, and which one alone?

A function is what a label says: previous token, direct object → verb. A model has it if at least
one of its heads has that label: a number that lies with its whole interval above the threshold of
the label and above every head without training.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import xarray as xr

from headscope.claims.claim import LEAST_DEPARTURE, Claim
from headscope.claims.head_labels import all_claims, label_rules
from headscope.claims.verdict import Outcome, Verdict, above, any_of, known, not_asked
from headscope.core.results import token_names
from headscope.core.wording import how_many, listed

MOST_NAMED = 6  # functions in a sentence
PAPERS = {"cls": "[CLS]", "sep": "[SEP]"}  # what a tokenizer's own tokens are called across models
Key = tuple[str, str]  # kind and name


@dataclass(frozen=True)
class Held:
    """Whether a model has a function.

    heads  how many of its heads have the label
    best   the head with the largest number; None where no head comes near
    """

    verdict: Verdict
    heads: int = 0
    best: Claim | None = None


@dataclass(frozen=True)
class Function:
    """One function, and the models that have it; `models`: by name, in order."""

    kind: str
    name: str
    models: Mapping[str, Held]

    @property
    def holders(self) -> list[str]:
        """The models that have it."""
        return [name for name, held in self.models.items() if held.verdict.holds]

    @property
    def asked(self) -> list[Held]:
        """What every model says that could be asked."""
        outcomes = self.models.values()
        return [held for held in outcomes if held.verdict.outcome is not Outcome.NOT_ASKED]

    @property
    def in_all(self) -> bool:
        """Whether every model that could be asked has it, of two or more."""
        return len(self.asked) > 1 and all(held.verdict.holds for held in self.asked)

    @property
    def alone(self) -> str:
        """The one model that has it where all others that were asked surely have not; else ""."""
        others = [held.verdict for held in self.asked if not held.verdict.holds]
        sole = len(self.holders) == 1 and others and all(verdict.fails for verdict in others)
        return self.holders[0] if sole else ""

    @property
    def words(self) -> str:
        """Who has it: `every model`, `demo alone`, `2 of 3 models`, `cannot tell`."""
        if self.in_all:
            return "every model"
        if self.alone:
            return f"{self.alone} alone"
        if all(held.verdict.holds or held.verdict.fails for held in self.asked):
            return f"{len(self.holders)} of {len(self.asked)} models"
        return str(Outcome.CANNOT_TELL)


def functions(trees: Mapping[str, xr.DataTree]) -> list[Function]:
    """The functions that any of the models has, those first that most have."""
    by_model = {name: _by_key(tree) for name, tree in trees.items()}
    examples = {key: some[0] for claims in by_model.values() for key, some in claims.items()}
    every = [
        Function(
            *key,
            {name: _held(trees[name], by_model[name].get(key, ()), one, key[1]) for name in trees},
        )
        for key, one in examples.items()
    ]
    some = [function for function in every if function.holders]
    return sorted(some, key=lambda one: (-len(one.holders), -_heads(one), one.name))


def summary(every: list[Function]) -> str:
    """Which functions all models have, and which one alone, in one sentence; "" without any."""
    common = [f"“{one.name}”" for one in every if one.in_all]
    alone = [f"“{one.name}” ({one.alone})" for one in every if one.alone]
    unsure = sum(one.words == Outcome.CANNOT_TELL for one in every)
    parts = [
        f"every model has heads for {_named(common)}" if common else "none is in every model",
        f"one model alone has heads for {_named(alone)}" if alone else "none is in one alone",
        *([f"of {unsure} these texts cannot tell"] if unsure else []),
    ]
    count = how_many(len(every), "function")
    return f"Of {count} of heads, {'; '.join(parts)}." if every else ""


def function_table(every: Sequence[Function]) -> pd.DataFrame:
    """One row per function and model; the number is that of the best head, a share."""
    rows = [
        {
            "function": function.name,
            "kind": function.kind,
            "who": function.words,
            "model": name,
            "verdict": str(held.verdict.outcome),
            "heads": held.heads,
            "layer": held.best.layer if held.best else None,
            "head": held.best.head if held.best else None,
            "value": held.best.value if held.best else np.nan,
            "ci_low": held.best.low if held.best else np.nan,
            "ci_high": held.best.high if held.best else np.nan,
            "why": held.verdict.needs,
        }
        for function in every
        for name, held in function.models.items()
    ]
    table = pd.DataFrame(rows)
    return table.astype({"layer": "Int64", "head": "Int64"}) if rows else table


def _named(names: list[str]) -> str:
    if len(names) > MOST_NAMED + 1:
        return f"{', '.join(names[:MOST_NAMED])} and {len(names) - MOST_NAMED} more"
    return listed(names)


def _heads(function: Function) -> int:
    return sum(held.heads for held in function.models.values())


def _by_key(tree: xr.DataTree) -> dict[Key, list[Claim]]:
    """The claims of a run by kind and name, in which tokens go by the names of the papers."""
    own = {token: PAPERS[kind] for kind, token in token_names(tree).items() if token}
    claims = dict[Key, list[Claim]]()
    for claim in all_claims(tree):
        name = claim.name
        for token, paper in own.items():
            name = name.replace(token, paper)
        claims.setdefault((claim.kind, name), []).append(claim)
    return claims


def _held(tree: xr.DataTree, claims: Sequence[Claim], function: Claim, name: str) -> Held:
    """Whether a model has a function, of which another model's claim is an example."""
    if not claims:
        return Held(_missing(tree, function, name))
    threshold, verdicts = label_rules()[function.kind].least, list[Verdict]()
    for claim in claims:
        least = float(np.fmax(threshold, claim.control + LEAST_DEPARTURE))
        verdicts.append(above(claim.value, claim.low, claim.high, least))
    heads = sum(verdict.holds for verdict in verdicts)
    return Held(any_of(verdicts), heads, max(claims, key=lambda claim: claim.surely))


def _missing(tree: xr.DataTree, function: Claim, name: str) -> Verdict:
    """No head comes near, or nothing was asked: the tokenizer lacks the token, or the run all."""
    tokens = token_names(tree)
    for kind, paper in PAPERS.items():
        if paper in name and not tokens[kind]:
            return not_asked(f"its tokenizer adds no {paper}")
    if function.kind == "first" and tokens["cls"]:
        return not_asked(f"its first token is {tokens['cls']}")
    there = function.analysis in tree.children
    return known(False) if there else not_asked(f"no {function.analysis} in its run")
