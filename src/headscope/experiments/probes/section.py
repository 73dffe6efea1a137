"""What a report says of probes: opening, sections, tables."""

import numpy as np
import xarray as xr

from headscope.core.dictionary import name as plain_name
from headscope.core.results import at, estimate, layer_name
from headscope.core.wording import capital
from headscope.experiments.probes import findings
from headscope.page.sections import FINDINGS, OpeningPlan, SectionPlan, heading_of, of_group
from headscope.page.tabulate import Cell, Column, Rows, Table, measured, points, share

LISTED = 12  # heads and relations in a table; all are in the folder `tables`
LEAST_WORDS = 25  # of a relation that is shown


def _scores(probes: xr.Dataset) -> Table | None:
    names = findings.probe_names(probes)
    if not names:
        return None
    words = {"uas": "UAS", "uas_with_punctuation": "with punctuation", "uuas": "UUAS",
             "uas_of_tree": "UAS of the tree"}  # fmt: skip
    shown = [name for name in words if name in probes]
    rows = [
        [Cell(capital(plain_name(n))), *(share(*at(estimate(probes, x, probe=n))) for x in shown)]
        for n in names
    ]
    columns = [Column("Probe"), *(Column(words[x], "%", x) for x in shown)]
    caption = f"95 % intervals over test sentences; {findings.sentences_text(probes)}."
    return Table("Scores of the probes", columns, [Rows(rows)], caption)


def _differences(probes: xr.Dataset) -> Table | None:
    names = findings.probe_names(probes)
    if len(names) < 2:
        return None
    rows = []
    for later, name in enumerate(names[1:], start=1):
        cells = [
            points(*at(estimate(probes, "difference", probe=name, probe_other=other)))
            for other in names[:later]
        ]
        empty = [Cell("")] * (len(names) - 1 - later)
        rows.append([Cell(capital(plain_name(name))), *cells, *empty])
    columns = [Column("UAS less that of"), *(Column(plain_name(n), "points") for n in names[:-1])]
    caption = "Differences of UAS between probes, paired over test sentences."
    return Table("Differences between probes", columns, [Rows(rows)], caption)


def _relations(probes: xr.Dataset) -> Table | None:
    names = findings.probe_names(probes)
    rows = [
        [
            Cell(str(one["relation"].values), code=True), Cell(f"{int(one['count']):,}"),
            *(share(float(one["relation_uas"].sel(probe=name))) for name in names),
        ]
        for one in (probes.isel(relation=at) for at in range(probes.sizes.get("relation", 0)))
        if int(one["count"]) >= LEAST_WORDS
    ]  # fmt: skip
    if not rows:
        return None
    columns = [Column("Relation"), Column("Words"), *(Column(plain_name(n), "%") for n in names)]
    caption = (
        f"Share of words whose head is found, the most frequent relations first, of at least "
        f"{LEAST_WORDS} words; all, with intervals: tables/probes."
    )
    return Table("Probes by relation", columns, [Rows(rows[:LISTED])], caption)


def _heads(tree: xr.DataTree) -> Table | None:
    table = findings.head_influence_table(tree).head(LISTED)
    if table.empty:
        return None
    labelled = "head_label" in tree.children["probes"]
    rows = [
        [
            Cell(f"{row['name']} {findings.ARROWS[str(row['direction'])]}"),
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
    if findings.best_layer(probes) is None:
        return None
    kinds = {"uuas": share, "root": share, "distance": measured, "depth": measured}
    rows = [
        [Cell(f"layer {layer_name(layer)}"),
         *(cell(*at(estimate(probes, f"structural_{x}"), layer)) for x, cell in kinds.items())]
        for layer in np.flatnonzero(np.isfinite(probes["structural_uuas"].values)).tolist()
    ]  # fmt: skip
    columns = [
        Column("Output of"), Column("UUAS", "%", "uuas"), Column("Root", "%"),
        Column("Distances", "ρ"), Column("Depths", "ρ"),
    ]  # fmt: skip
    caption = f"The structural probe; {findings.sentences_text(probes)}."
    return Table("Structural probe by layer", columns, [Rows(rows)], caption)


OPENING = OpeningPlan(
    heading=heading_of("How much syntax probes find in the attention of "),
    findings=findings.probe_findings,
)
SECTIONS = (
    SectionPlan(
        id="part-probes", title="Is the tree in the attention?", chapter=FINDINGS,
        text="A probe that may only weigh the heads finds as much syntax as their attention shows. "
        "What it gains over the rule and over words with distances is the model’s own; what a "
        "random model gives is the probe’s.",
        pictures=("probes",),
        tables=tuple(of_group("probes", make) for make in (_scores, _differences, _relations)),
    ),
    SectionPlan(
        id="part-probe_heads", title="Which heads does the probe lean on?", chapter=FINDINGS,
        text="Few strong cells mean that syntax sits in few heads; heads that do the same share "
        "it.",
        pictures=("probe_heads",), tables=(_heads,),
    ),
    SectionPlan(
        id="part-structural", title="Is the tree in the hidden states?", chapter=FINDINGS,
        text="The reference: a linear map of hidden states, which see more than attention shows.",
        pictures=("structural",), tables=(of_group("probes", _layers),),
    ),
)  # fmt: skip
