"""What a report says of probes: opening, sections, tables."""

from __future__ import annotations

import numpy as np
import xarray as xr

from headscope.core.dictionary import name as plain_name
from headscope.core.results import estimate, model_name
from headscope.core.wording import capital
from headscope.experiments.probes.findings import (
    ARROWS,
    best_layer,
    head_influence_table,
    probe_findings,
    sentences_text,
)
from headscope.page.sections import FINDINGS, OpeningPlan, SectionPlan, of_group
from headscope.page.tabulate import Cell, Column, Rows, Table, measured, points, share

LISTED = 12  # heads and relations in a table; all are in the folder `tables`
LEAST_WORDS = 25  # of a relation that is shown


def _scores(probes: xr.Dataset) -> Table | None:
    if "uas" not in probes:
        return None
    words = {"uas": "UAS", "uas_with_punctuation": "with punctuation", "uuas": "UUAS",
             "uas_of_tree": "UAS of the tree"}  # fmt: skip
    shown = [name for name in words if name in probes]
    rows = [
        [Cell(capital(plain_name(name))), *(_share(probes, x, probe=name) for x in shown)]
        for name in map(str, probes["probe"].values)
    ]
    columns = [Column("Probe"), *(Column(words[x], "%", x) for x in shown)]
    caption = f"95 % intervals, bootstrap over test sentences; {sentences_text(probes)}."
    return Table("Scores of the probes", columns, [Rows(rows)], caption)


def _differences(probes: xr.Dataset) -> Table | None:
    names = [str(name) for name in probes["probe"].values] if "uas" in probes else []
    if len(names) < 2:
        return None
    rows = []
    for name in names:
        cells = [Cell(capital(plain_name(name)))]
        for other in names[:-1]:
            parts = estimate(probes, "difference", probe=name, probe_other=other)
            value, low, high = (float(x) for x in (parts.value, parts.low, parts.high))
            later = names.index(name) > names.index(other)
            cells.append(points(value, low, high) if later else Cell(""))
        rows.append(cells)
    columns = [Column("UAS less that of"), *(Column(plain_name(n), "points") for n in names[:-1])]
    caption = "Differences of UAS between probes, paired over test sentences."
    return Table("Differences between probes", columns, [Rows(rows[1:])], caption)


def _relations(probes: xr.Dataset) -> Table | None:
    if "uas" not in probes:
        return None
    counts = probes["count"].values
    shown = [at for at in range(len(counts)) if counts[at] >= LEAST_WORDS][:LISTED]
    names = [str(name) for name in probes["probe"].values]
    rows = [
        [
            Cell(str(probes["relation"].values[at]), code=True), Cell(f"{int(counts[at]):,}"),
            *(share(float(probes["relation_uas"].sel(probe=n)[at])) for n in names),
        ]
        for at in shown
    ]  # fmt: skip
    if not rows:
        return None
    columns = [Column("Relation"), Column("Words"), *(Column(plain_name(n), "%") for n in names)]
    caption = (
        f"Share of words whose head is found, the most frequent relations first, of at least "
        f"{LEAST_WORDS} words; all, with intervals: tables/probes."
    )
    return Table("Probes by relation", columns, [Rows(rows)], caption)


def _heads(tree: xr.DataTree) -> Table | None:
    probes = tree.children["probes"].to_dataset()
    table = head_influence_table(tree).head(LISTED)
    if table.empty:
        return None
    labelled = "head_label" in probes
    rows = [
        [
            Cell(f"{row['name']} {ARROWS[str(row['direction'])]}"),
            *(measured(float(row[x])) for x in ("influence", "weight", "spread")),
            *([Cell(str(row["label"]) or "–")] if labelled else []),
        ]
        for row in table.to_dict("records")
    ]
    columns = [
        Column("Head"), Column("Influence", term="head_influence"),
        Column("Weight", term="head_weight"), Column("Spread"),
        *([Column("In the atlas")] if labelled else []),
    ]  # fmt: skip
    caption = (
        "Heads that move the scores of the probe on attention most: weight times spread; d→h: "
        "attention from the word to the candidate, h→d: back. All: tables/probe_heads."
    )
    return Table("Heads that the probe leans on", columns, [Rows(rows)], caption)


def _layers(probes: xr.Dataset) -> Table | None:
    if best_layer(probes) is None:
        return None
    rows = []
    for layer in range(probes.sizes["layer"]):
        if not np.isfinite(float(probes["structural_uuas"][layer])):
            continue
        at = {"layer": layer}
        cells = [_share(probes, f"structural_{x}", **at) for x in ("uuas", "root")]
        cells += [_measured(probes, f"structural_{x}", **at) for x in ("distance", "depth")]
        rows.append([Cell(f"layer {layer + 1}"), *cells])
    columns = [
        Column("Output of"), Column("UUAS", "%", "uuas"), Column("Root", "%"),
        Column("Distances", "ρ"), Column("Depths", "ρ"),
    ]  # fmt: skip
    caption = f"The structural probe; {sentences_text(probes)}."
    return Table("Structural probe by layer", columns, [Rows(rows)], caption)


def _share(probes: xr.Dataset, variable: str, **choice: object) -> Cell:
    parts = estimate(probes, variable, **choice)
    return share(float(parts.value), float(parts.low), float(parts.high))


def _measured(probes: xr.Dataset, variable: str, **choice: object) -> Cell:
    parts = estimate(probes, variable, **choice)
    return measured(float(parts.value), float(parts.low), float(parts.high))


def _heading(tree: xr.DataTree) -> list[tuple[str, bool]]:
    return [("How much syntax probes find in the attention of ", False), (model_name(tree), True)]


OPENING = OpeningPlan(
    heading=_heading, findings=probe_findings,
)  # fmt: skip
SECTIONS = (
    SectionPlan(
        id="part-probes",
        title="Is the tree in the attention?",
        text=(
            "A probe that may only weigh the heads finds as much syntax as their attention shows. "
            "What it gains over the rule and over words with distances is the model’s own; what a "
            "random model gives is the probe’s."
        ),
        pictures=("probes",),
        tables=tuple(of_group("probes", make) for make in (_scores, _differences, _relations)),
        chapter=FINDINGS,
    ),
    SectionPlan(
        id="part-probe_heads",
        title="Which heads does the probe lean on?",
        text=(
            "Few strong cells mean that syntax sits in few heads; heads that do the same share it."
        ),
        pictures=("probe_heads",),
        tables=(_heads,),
        chapter=FINDINGS,
    ),
    SectionPlan(
        id="part-structural",
        title="Is the tree in the hidden states?",
        text=("The reference: a linear map of hidden states, which see more than attention shows."),
        pictures=("structural",),
        tables=(of_group("probes", _layers),),
        chapter=FINDINGS,
    ),
)
