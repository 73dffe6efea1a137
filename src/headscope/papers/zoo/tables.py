"""The outcome of a zoo as tables (CSV, Parquet) and as JSON."""

from __future__ import annotations

import json
import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from headscope.analyses.dependency.tables import best_heads
from headscope.core.results import shape
from headscope.core.whole_file import write_whole
from headscope.papers.claim_engine import ClaimOutcome, PaperClaim
from headscope.papers.quantities import Measured
from headscope.papers.zoo.claims import GROUPS
from headscope.papers.zoo.depth_curves import depths
from headscope.papers.zoo.outcome import ZooOutcome

TITLES = {group.id: group.title for group in GROUPS}


def claim_table(zoo: ZooOutcome) -> pd.DataFrame:
    """One row per claim and model.

    returns  claim, group, model, verdict, value, ci_low, ci_high, unit, test, bound, n, layer,
             head, depth (of claims about one head), p, detail, why (it cannot be asked), number,
             source, bound_by, published
    """
    rows = []
    for key, answers in zoo.answers.items():
        for label, outcome in answers.items():
            claim = _definition(outcome.claim, outcome.group)
            answer = _answer(zoo, label, outcome)
            rows.append({
                "claim": key, "group": TITLES[outcome.group], "model": label,
                **{k: answer[k] for k in ("verdict", "value", "ci_low", "ci_high")},
                **{k: claim[k] for k in ("unit", "test", "bound")},
                **{k: answer[k] for k in ("n", "layer", "head", "depth", "p", "detail", "why")},
                **{k: claim[k] for k in ("number", "source", "bound_by", "published")},
            })  # fmt: skip
    return pd.DataFrame(rows).astype(dict.fromkeys(("n", "layer", "head"), "Int64"))


def layer_table(zoo: ZooOutcome) -> pd.DataFrame:
    """One row per model, number and layer: quantity, layer, depth, value, ci_low, ci_high."""
    rows = []
    for label, curves in zoo.curves.items():
        for quantity, curve in curves.items():
            layers = len(curve.value)
            rows.append(pd.DataFrame({
                "model": label, "quantity": quantity, "layer": range(layers),
                "depth": depths(layers), "value": curve.value, "ci_low": curve.low,
                "ci_high": curve.high,
            }))  # fmt: skip
    return pd.concat(rows, ignore_index=True) if rows else pd.DataFrame()


def head_table(zoo: ZooOutcome) -> pd.DataFrame:
    """The best heads of all relations and models, as in each run, with their depth."""
    tables = []
    for label, run in zoo.runs.items():
        table = best_heads(run.tree)
        if len(table):
            deep = depths(shape(run.tree)[0])
            where = [np.nan if pd.isna(at) else deep[int(at)] for at in table["layer"]]
            tables.append(table.assign(model=label, depth=where))
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


def model_table(zoo: ZooOutcome) -> pd.DataFrame:
    """One row per model: what it is, and what it read."""
    rows = []
    for label, run in zoo.runs.items():
        model, counts = run.manifest["model"], run.manifest["counts"]
        rows.append({
            "model": label, **{k: model[k] for k in ("revision", "sha256", "architecture", "stack",
                                                     "layers", "heads")},
            **{f"{k}_token": model["special_tokens"].get(k, "") for k in ("cls", "sep")},
            **{k: counts[k] for k in ("documents", "examples", "tokens", "skipped", "windowed")},
            "analyses": ",".join(run.manifest["analyses"]),
        })  # fmt: skip
    return pd.DataFrame(rows)


def write_tables(zoo: ZooOutcome) -> list[Path]:
    """Writes claims.csv and claims.json into the folder, all others into `tables`."""
    claims = claim_table(zoo)
    text = json.dumps(as_json(zoo), ensure_ascii=False, indent=1).encode("utf-8", "replace")
    written = [
        write_whole(zoo.path / "claims.csv", partial(_csv, claims)),
        write_whole(zoo.path / "claims.json", lambda draft: Path(draft).write_bytes(text)),
    ]
    others = {"layers": layer_table(zoo), "best_heads": head_table(zoo), "models": model_table(zoo)}
    for name, table in {"claims": claims, **others}.items():
        if len(table):
            for kind, write in (("csv", _csv), ("parquet", _parquet)):
                path = zoo.path / "tables" / f"{name}.{kind}"
                written.append(write_whole(path, partial(write, table)))
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
        "fingerprint": zoo.manifest["fingerprint"], "models": list(zoo.runs), "failed": zoo.failed,
        "headlines": zoo.headlines, "claims": claims,
    }  # fmt: skip


def _definition(claim: PaperClaim, group: str) -> dict[str, Any]:
    bound = claim.bound
    return {
        "name": claim.key, "group": group, "text": claim.text, "number": claim.number,
        "unit": claim.unit, "test": bound.test if bound else "",
        "bound": bound.value if bound else math.nan, "source": claim.place,
        "bound_by": bound.by if bound else "",
        "published": " / ".join(value.text for value in claim.published),
        "headline": claim.headline,
    }  # fmt: skip


def _answer(zoo: ZooOutcome, label: str, outcome: ClaimOutcome) -> dict[str, Any]:
    number = outcome.measured or Measured()
    layer, head = number.head or (None, None)
    deep = depths(shape(zoo.runs[label].tree)[0])
    return {
        "verdict": outcome.verdict,
        "value": number.value, "ci_low": number.low, "ci_high": number.high,
        "n": number.count if outcome.measured else None, "layer": layer, "head": head,
        "depth": np.nan if layer is None else float(deep[layer]), "p": number.p,
        "detail": number.detail, "why": outcome.reason,
    }  # fmt: skip


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _csv(table: pd.DataFrame, path: str) -> None:
    table.to_csv(path, index=False, encoding="utf-8", errors="backslashreplace")


def _parquet(table: pd.DataFrame, path: str) -> None:
    table.to_parquet(path, index=False)
