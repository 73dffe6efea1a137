"""Which tables does a zoo write, so that any tool can read what was found?

claims   one row per claim and model        claims.json  the same with the definitions of the claims
layers   what is drawn over depth           best_heads   the best head of every relation
models   what was read
Layers and heads are 0-based, as in the data; depth runs from 0, the first layer, to 1, the last.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from headscope.analyses.language.best_head_tables import best_heads
from headscope.core.results import shape
from headscope.core.whole_file import write_whole
from headscope.papers.zoo.claims import CLAIMS, GROUPS, Claim
from headscope.papers.zoo.numbers import depths
from headscope.papers.zoo.verdict import Answer

if TYPE_CHECKING:
    from headscope.papers.zoo.found import Zoo


def claim_table(zoo: Zoo) -> pd.DataFrame:
    """One row per claim and model.

    returns  claim, group, model, verdict, value, ci_low, ci_high, unit, test, bound, n, layer,
             head, depth (of claims about one head), p, detail, why (it cannot be asked), number,
             source, bound_by, published
    """
    rows = [
        _row(zoo, claim, label, found)
        for claim in CLAIMS
        for label, found in zoo.answers[claim.name].items()
    ]
    table = pd.DataFrame(rows)
    return table.astype(dict.fromkeys(("n", "layer", "head"), "Int64"))


def layer_table(zoo: Zoo) -> pd.DataFrame:
    """One row per model, number and layer: quantity, layer, depth, value, ci_low, ci_high."""
    rows = []
    for label, found in zoo.lines.items():
        for quantity, line in found.items():
            layers = len(line.value)
            rows.append(pd.DataFrame({
                "model": label, "quantity": quantity, "layer": range(layers),
                "depth": depths(layers), "value": line.value, "ci_low": line.low,
                "ci_high": line.high,
            }))  # fmt: skip
    return pd.concat(rows, ignore_index=True) if rows else pd.DataFrame()


def head_table(zoo: Zoo) -> pd.DataFrame:
    """The best heads of all relations and models, as in each run, with their depth."""
    tables = []
    for label, run in zoo.runs.items():
        table = best_heads(run.tree)
        if len(table):
            deep = depths(shape(run.tree)[0])
            where = [np.nan if pd.isna(at) else deep[int(at)] for at in table["layer"]]
            tables.append(table.assign(model=label, depth=where))
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


def model_table(zoo: Zoo) -> pd.DataFrame:
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


def write_tables(zoo: Zoo) -> list[Path]:
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


def as_json(zoo: Zoo) -> dict[str, Any]:
    """The claims with their definitions and what every model says to them; missing is null."""
    claims = [
        {
            **asdict(claim),
            "answers": {
                label: {
                    key: _plain(value)
                    for key, value in _row(zoo, claim, label, found).items()
                    if key in _ANSWER
                }
                for label, found in zoo.answers[claim.name].items()
            },
        }
        for claim in CLAIMS
    ]
    return {
        "fingerprint": zoo.manifest["fingerprint"], "models": list(zoo.runs), "failed": zoo.failed,
        "headlines": zoo.headlines, "claims": claims,
    }  # fmt: skip


_ANSWER = ("verdict", "value", "ci_low", "ci_high", "n", "layer", "head", "depth", "p", "detail",
           "why")  # fmt: skip


def _row(zoo: Zoo, claim: Claim, label: str, found: Answer) -> dict[str, Any]:
    number = found.number
    layer, head = (None, None) if number is None or number.place is None else number.place
    deep = depths(shape(zoo.runs[label].tree)[0])
    return {
        "claim": claim.name, "group": GROUPS[claim.group], "model": label,
        "verdict": found.verdict,
        **dict(zip(("value", "ci_low", "ci_high"), _parts(found), strict=True)),
        "unit": claim.unit, "test": claim.test, "bound": claim.bound,
        "n": None if number is None else number.n, "layer": layer, "head": head,
        "depth": np.nan if layer is None else float(deep[layer]),
        "p": np.nan if number is None else number.p,
        "detail": "" if number is None else number.detail, "why": found.why,
        "number": claim.number, "source": claim.source, "bound_by": claim.bound_by,
        "published": claim.published,
    }  # fmt: skip


def _parts(found: Answer) -> tuple[float, float, float]:
    number = found.number
    return (np.nan,) * 3 if number is None else (number.value, number.low, number.high)


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _csv(table: pd.DataFrame, path: str) -> None:
    table.to_csv(path, index=False, encoding="utf-8", errors="backslashreplace")


def _parquet(table: pd.DataFrame, path: str) -> None:
    table.to_parquet(path, index=False)
