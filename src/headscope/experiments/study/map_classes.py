"""Classes of maps before and after training (Kovaleva et al. 2019, Figure 2), over seeds."""

from __future__ import annotations

from functools import partial

import numpy as np

from headscope.analyses.patterns import CLASSES, QUESTION
from headscope.analyses.patterns.figure import draw_bars
from headscope.claims.reading import Reading
from headscope.core.intervals import Estimate
from headscope.core.results import at, estimate
from headscope.draw.panel import Panel
from headscope.experiments.study.terms import learned_text, task_title, tasks_of, variants_of
from headscope.experiments.study.trainings import FROM_SCRATCH, PLAIN
from headscope.page.tabulate import Cell, Column, Rows, Table, share

QUANTITIES = (*(f"patterns.share.{one.name}" for one in CLASSES), "patterns.unsure")
STARTS = {PLAIN: "before", FROM_SCRATCH: "random weights"}


def class_shares(run: Reading, task: str) -> list[tuple[str, str, list[Estimate]]]:
    """The model before training, then each kind of training: name, how many learned, and shares.

    returns  shares by QUANTITIES, of all maps; no row where no example is long enough for a map
    """
    data, rows = run.data, list[tuple[str, str, list[Estimate]]]()
    if not set(QUANTITIES) <= set(data["quantity"].values.tolist()):
        return rows
    for variant in variants_of(data):
        starts = {"before": STARTS[variant]} if variant in STARTS else {}
        for side, name in (starts | {"after": variant}).items():
            shares = [
                estimate(
                    data, f"mean_feature_{side}", variant=variant, task=task, quantity=quantity
                )
                for quantity in QUANTITIES
            ]
            learned = learned_text(data, task, variant) if side == "after" else ""
            if np.isfinite(shares[0].value):
                rows.append((name, learned, shares))
    return rows


def class_panels(run: Reading) -> list[Panel]:
    """A bar of the model before training and of each kind of training, for each task."""
    bars, shares = list[tuple[str, str]](), list[list[float]]()
    for task in tasks_of(run.data):
        for name, _, some in class_shares(run, task):
            bars.append((task_title(run.data, task), name))
            shares.append([float(one.value) for one in some[: len(CLASSES)]])
    draw = partial(draw_bars, bars, np.array(shares))
    return [Panel("Classes of maps", draw, height=0.4, key_above=True)] if bars else []


def class_caption(run: Reading) -> str:
    """How to read the bars."""
    return (
        "Each bar is cut into the shares of maps of each class, mean over all heads and "
        f"{run.data.sizes['seed']} seeds, before and after training. A network that learned from "
        "maps labelled by eye tells the class; of hatched maps none is certain. Examples of fewer "
        f"than {QUESTION.options['least_tokens'].default} tokens are left out. Intervals stand in "
        f"the table; {run.over()}. After Kovaleva et al. (2019), Figure 2."
    )


def classes_table(run: Reading) -> Table | None:
    """The shares with their intervals."""
    groups = [
        Rows(
            [
                [Cell(name), Cell(learned), *(share(*at(one)) for one in shares)]
                for name, learned, shares in rows
            ],
            task_title(run.data, task),
        )
        for task in tasks_of(run.data)
        if (rows := class_shares(run, task))
    ]
    columns = [
        Column("Training"),
        Column("Learned", term="learned"),
        *(Column(one.title, "% of maps", one.name) for one in CLASSES),
        Column("Unsure", "% of maps", "unsure"),
    ]
    starts = "Random weights: where from-scratch begins. "
    caption = (
        "Share of maps of each class, one map for each head and example of dev, mean over heads "
        f"and seeds. {starts if FROM_SCRATCH in variants_of(run.data) else ''}95 % intervals over "
        "seeds and examples, not corrected for the cells. Changes with their intervals: Table "
        "“Before and after”, and tables/study_features."
    )
    return Table("Classes of maps", columns, groups, caption) if groups else None
