"""Tables of a study."""

from __future__ import annotations

from typing import Any

import numpy as np

from headscope.claims.reading import Reading
from headscope.core.display import printable
from headscope.core.results import at, estimate, model_name
from headscope.core.wording import MISSING, capital, how_many
from headscope.experiments.ablation.terms import change_text, metric_name, points_text
from headscope.experiments.comparison.section import change_cells, compared_numbers
from headscope.experiments.study.features import feature_ends
from headscope.experiments.study.findings import share_text, study_findings
from headscope.experiments.study.terms import (
    TOGETHER,
    learned_seeds,
    learned_text,
    score_words,
    task_attrs,
    task_title,
    tasks_of,
    variants_of,
)
from headscope.experiments.study.trainings import PLAIN
from headscope.page.sections import OpeningPlan
from headscope.page.tabulate import Cell, Column, Rows, Table, measured, rows_table

LISTED = 6  # heads of a task
OVER = "95 % intervals over seeds and examples"


def heading(run: Reading) -> list[tuple[str, bool]]:
    """The title of the page: the model, the tasks, and how many seeds."""
    data = run.data
    tasks = ", ".join(task_title(data, task) for task in tasks_of(data))
    seeds = how_many(data.sizes["seed"], "seed")
    return [("What ", False), (model_name(run.tree), True), (f" learns: {tasks}, {seeds}", False)]


def scores_table(run: Reading, manifest: Any = None) -> Table | None:
    """Scores before and after each training, and whether it is at chance."""
    data, groups = run.data, list[Rows]()
    for variant in variants_of(data):
        rows = []
        for task in tasks_of(data):
            learned = learned_seeds(data, task, variant)
            for seed in data["seed"].values.tolist():
                choice = {"variant": variant, "seed": seed}
                rows.append(
                    [
                        Cell(task_title(data, task)),
                        Cell(str(seed)),
                        Cell(capital(metric_name(task_attrs(data, task)))),
                        _score(run, task, "score_before", choice),
                        _score(run, task, "score_after", choice),
                        Cell(score_words(data, task, "chance")),
                        Cell("learned" if seed in learned else "at chance"),
                    ]
                )
        groups.append(Rows(rows, variant if data.sizes["variant"] > 1 else ""))
    columns = [
        *map(Column, ("Task", "Seed", "Score", "Before", "After", "Constant answer")),
        Column("Verdict", term="learned"),
    ]
    caption = (
        "Score on dev with an untrained head, after training, and of the best constant answer. At "
        "chance: the interval after training reaches the constant answer. 95 % intervals over "
        "examples."
    )
    return Table("Scores", columns, groups, caption)


def _score(run: Reading, task: str, name: str, choice: dict[str, object]) -> Cell:
    text, _, interval = score_words(run.data, task, name, **choice).partition(" [")
    return Cell(text, f"[{interval}" if interval else "")


def heads_table(run: Reading) -> Table | None:
    """The heads whose absence costs most, with their replication rates."""
    data, groups = run.data, list[Rows]()
    for task in tasks_of(data):
        count = len(learned_seeds(data, task))
        effect = estimate(data, "mean_effect", task=task).value.ravel()
        if not count:
            continue
        order = np.argsort(np.nan_to_num(effect, nan=np.inf), kind="stable")[:LISTED]
        rows = [_head(run, task, unit, count) for unit in order.tolist()]
        groups.append(Rows(rows, task_title(data, task)))
    columns = [
        Column("Without"),
        Column("Score", "mean over seeds", "mean_effect"),
        Column("In each seed"),
        Column("Needed", "seeds", "needed_share"),
        Column("Loss", "mean over seeds"),
        Column("Needed by the loss", "seeds", "needed_share"),
    ]
    caption = (
        f"The {LISTED} heads of each task whose absence costs most. Changes are without the head "
        "less the whole checkpoint, over the seeds that learned the task, in points where the "
        f"score is a share. {OVER}, not corrected for the choice of heads. Needed: q < 0.05 in the "
        "seed, corrected for all heads; its interval is Clopper and Pearson’s. All heads: "
        "tables/study."
    )
    return Table("Heads", columns, groups, caption) if groups else None


def _head(run: Reading, task: str, unit: int, count: int) -> list[Cell]:
    data, about = run.data, task_attrs(run.data, task)
    effect, loss = (
        at(estimate(data, name, task=task).map(np.ravel), unit)
        for name in ("mean_effect", "mean_loss_effect")
    )
    each = [
        points_text(
            about,
            float(
                estimate(data, "effect", variant=PLAIN, task=task, seed=seed).value.ravel()[unit]
            ),
            signed=True,
        ).removesuffix(" points")
        for seed in learned_seeds(data, task)
    ]
    shares = (
        Cell(*share_text(data, name, task, unit, count))
        for name in ("needed_share", "loss_needed_share")
    )
    needed, by_loss = shares
    name = run.names.unit(unit, data.sizes["head"])
    return [
        Cell(name),
        _change(about, effect),
        Cell(", ".join(each)),
        needed,
        measured(*loss),
        by_loss,
    ]


def _change(about: Any, three: tuple[float, float, float]) -> Cell:
    if not np.isfinite(three[0]):
        return Cell(MISSING)
    text, _, interval = change_text(about, *three).replace(" points", "").partition(" ")
    return Cell(text, interval)


def features_table(run: Reading) -> Table | None:
    """Every number before and after the plain trainings, mean over all heads and over seeds."""
    data, groups = run.data, list[Rows]()
    for task in tasks_of(data):
        choice, rows = {"variant": PLAIN, "task": task}, list[list[Cell]]()
        for key in sum(compared_numbers(data["quantity"].values.tolist()).values(), list[str]()):
            before, after, change = feature_ends(run, key, **choice)
            label, unit = (str(data[name].sel(quantity=key).values) for name in ("label", "unit"))
            if np.isfinite(change.value):
                rows.append(change_cells(printable(label), unit, before, after, change))
        if rows:
            groups.append(Rows(rows, task_title(data, task)))
    columns = [Column("Number"), Column("Before"), Column("After"), Column("Change")]
    caption = (
        "Plain trainings, mean over all heads and seeds: attention in per cent, its changes in "
        f"percentage points, read on dev by both models. {OVER}, not corrected for the rows. All "
        "trainings: tables/study_features."
    )
    return Table("Before and after", columns, groups, caption) if groups else None


def layers_table(run: Reading) -> Table | None:
    """Layers by gradients, moved weights and change of maps, of plain trainings."""
    data = run.data
    names = ("gradient_norm", "relative_change", "layer_map_change")
    groups = [
        Rows(
            [
                [
                    Cell(run.names.layer(layer)),
                    *(
                        measured(
                            *at(estimate(data, f"mean_{name}", variant=PLAIN, task=task), layer)
                        )
                        for name in names
                    ),
                ]
                for layer in range(data.sizes["layer"])
            ],
            task_title(data, task),
        )
        for task in tasks_of(data)
    ]
    columns = [
        Column("Layer"),
        Column("Gradient", term="gradient_norm"),
        Column("Weights moved", "of their norm", "relative_change"),
        Column("Maps changed", "1 − cosine", "map_change"),
    ]
    caption = (
        "Plain trainings, mean over seeds. Gradient: norm of all gradients of the layer before "
        "they are cut, mean over steps. 95 % intervals over seeds, of maps over seeds and examples."
    )
    return Table("Layers", columns, groups, caption)


def together_table(run: Reading) -> Table | None:
    """Rank correlations over layers, by task and variant."""
    data = run.data
    rows = [
        [
            task_title(data, task),
            variant,
            *(
                measured(*at(estimate(data, f"mean_{name}", variant=variant, task=task)))
                for name in TOGETHER
            ),
        ]
        for task in tasks_of(data)
        for variant in variants_of(data)
    ]
    columns = [
        "Task",
        "Training",
        "Maps and depth",
        "Maps and gradients",
        "Maps and moved weights",
        "Gradients and depth",
    ]
    caption = (
        f"Spearman’s ρ over {data.sizes['layer']} layers, mean over seeds. 95 % intervals over "
        "seeds. If the last layers change because gradients are larger there, the second and the "
        "fourth number are above 0. Other kinds of training say what the task, the rates and the "
        "start have to do with it."
    )
    return rows_table("What goes together over layers", columns, rows, caption)


def gains_table(run: Reading) -> Table | None:
    """What is left elsewhere of the gain of each seed's best head to switch off."""
    data, rows = run.data, list[list[object]]()
    replacements = [str(name) for name in data["replacement"].values]
    for task in tasks_of(data):
        about = task_attrs(data, task)
        for seed in learned_seeds(data, task):
            place = {"variant": PLAIN, "task": task, "seed": seed}
            unit = float(data["best_unit"].sel(place))
            cells = [
                _change(about, at(estimate(data, name, **place)))
                for name in ("gain", "gain_elsewhere", "gain_half", "gain_held_out")
            ]
            cells += [
                _change(about, at(estimate(data, "gain_replaced", **place, replacement=name)))
                for name in replacements
            ]
            cells.append(_change(about, at(estimate(data, "gain_beside", **place))))
            head = run.names.unit(int(unit), data.sizes["head"]) if np.isfinite(unit) else MISSING
            rows.append([task_title(data, task), seed, head, *cells])
    columns = [
        "Task",
        "Seed",
        "Best head",
        "Gain",
        "Other seeds",
        "Half that chose",
        Column("Other half", term="gain_held_out"),
        *(f"By {name}" for name in replacements),
        "Rest of the layer",
    ]
    caption = (
        "The head whose absence raises the score of a seed most. Gain: on the examples that chose "
        "it. Other seeds: the same head there. Halves: one half chooses a head, the other tries "
        "it, mean of both ways. Then the same head with another replacement, and the mean of the "
        "other heads of its layer. 95 % intervals over examples; of other seeds also over seeds."
    )
    return rows_table("Gains", columns, rows, caption)


def variants_table(run: Reading) -> Table | None:
    """How many heads each kind of training needs, and the held-out gain without its best head."""
    data, groups = run.data, list[Rows]()
    for task in tasks_of(data) if data.sizes["variant"] > 1 else []:
        rows = []
        for variant in variants_of(data):
            choice = {"variant": variant, "task": task}
            counts = (
                estimate(data, f"mean_{name}", **choice)
                for name in ("heads_needed", "heads_needed_by_loss", "heads_harmful")
            )
            gain = estimate(data, "mean_gain_held_out", **choice)
            rows.append(
                [
                    Cell(variant),
                    Cell(learned_text(data, task, variant)),
                    *(measured(*at(one), digits=1) for one in counts),
                    _change(task_attrs(data, task), at(gain)),
                ]
            )
        groups.append(Rows(rows, task_title(data, task)))
    columns = [
        Column("Training"),
        Column("Learned", term="learned"),
        Column("Needed by the score", "heads"),
        Column("Needed by the loss", "heads"),
        Column("Better without", "heads"),
        Column("Held-out gain", term="gain_held_out"),
    ]
    caption = (
        f"Heads of {data.sizes['layer'] * data.sizes['head']}, mean over the seeds that learned "
        "the task. Needed: q < 0.05 in the seed, corrected for all heads; better without: the "
        "score rises, likewise. 95 % intervals over seeds, none where all counts are equal; of "
        "gains over seeds and examples. Nothing is said of trainings at chance."
    )
    return Table("Heads by training", columns, groups, caption) if groups else None


OPENING = OpeningPlan(heading=heading, findings=study_findings, tables=(scores_table,))
