"""What did Kovaleva et al. (2019) find by fine-tuning and disabling, §4.3 and §4.6?"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import xarray as xr

from headscope.core.accumulators import Float64, estimate
from headscope.core.wording import fixed
from headscope.papers.reproduce.line import Answer, Line, NotRun, Published, Results
from headscope.papers.reproduce.reading import counted, ends, named, percent, places_of
from headscope.tasks.metrics import resampled
from headscope.tasks.task import GLUE

Measure = Callable[[Results], Answer]
TASKS = ("mrpc", "sts-b", "sst-2", "qqp", "rte", "qnli", "mnli")
NAMES = {task: task.upper() for task in TASKS}
SURE = 0.95
SHARED = 10  # ours: heads of a task that cost most
LAST_KEPT = "qqp"  # the one task where the last two layers do not change most
# task, metric, its words: pre-trained without fine-tuning, random weights fine-tuned, fine-tuned
TABLE_1 = (
    ("mrpc", "f1", "F1", ("0", "81.2", "87.9")),
    ("mrpc", "accuracy", "accuracy", ("31.6", "68.3", "82.3")),
    ("sts-b", "pearson", "Pearson’s r × 100", ("33.1", "2.9", "82.7")),
    ("sst-2", "accuracy", "accuracy", ("49.1", "80.5", "92")),
    ("qqp", "f1", "F1", ("0", "0", "65.2")),
    ("qqp", "accuracy", "accuracy", ("60.9", "63.2", "78.6")),
    ("rte", "accuracy", "accuracy", ("52.7", "52.7", "64.6")),
    ("qnli", "accuracy", "accuracy", ("52.8", "49.5", "84.4")),
    ("mnli", "accuracy", "accuracy", ("31.7", "61.0", "78.6")),
)


def points(change: float) -> str:
    """A difference of scores as `+1.2 points`."""
    text = fixed(100 * change, 1)
    return f"{'+' if change > 0 and float(text.replace('−', '-')) else ''}{text} points"


# --- Table 1 ---------------------------------------------------------------------------------


def _score(found: xr.Dataset, metric: str, when: str) -> tuple[float, float, float]:
    """A score with its interval, which a record holds for the task's main metric."""
    name = f"{metric}_{when}"
    if name not in found:
        raise NotRun(f"needs {metric} in the record of the training")
    value = float(found[name])
    main = GLUE[str(found.attrs["task"])].metrics[0]
    limits = [float(found[f"{end}_{when}"]) if metric == main else np.nan
              for end in ("ci_low", "ci_high")]  # fmt: skip
    return value, limits[0], limits[1]


def _recorded(results: Results, part: str) -> xr.Dataset:
    return results.group(part, "finetuned").assign_attrs(task=part.partition(":")[2])


def _trained(found: xr.Dataset) -> str:
    return f"{int(found['dev_examples']):,} examples, {int(found['train_examples']):,} learned from"


def _table_1(task: str, metric: str, column: int) -> Measure:
    """Column 0: before, 1: from random weights, 2: fine-tuned."""

    def measure(results: Results) -> Answer:
        tuned = _recorded(results, f"tuned:{task}")
        after = _score(tuned, metric, "after")
        if column == 0:
            return Answer(*_score(tuned, metric, "before"),
                          f"{int(tuned['dev_examples']):,} examples")  # fmt: skip
        sure = after[1] if np.isfinite(after[1]) else after[0]
        if column == 1:
            scratch = _recorded(results, f"scratch:{task}")
            value = _score(scratch, metric, "after")
            return Answer(*value, _trained(scratch), holds=bool(value[0] < sure))
        others = [_score(tuned, metric, "before")[0]]
        if f"scratch:{task}" in results:
            others.append(_score(_recorded(results, f"scratch:{task}"), metric, "after")[0])
        holds = bool(sure > max(others)) if np.isfinite(others).all() else None
        return Answer(*after, _trained(tuned), holds=holds)

    return measure


def _gain(results: Results) -> Answer:
    """Mean over tasks of the score after less that before; accuracy where a task has two."""
    gains = []
    for task in TASKS:
        if f"tuned:{task}" not in results:
            continue
        found = _recorded(results, f"tuned:{task}")
        metric = GLUE[task].metrics[-1] if not GLUE[task].is_regression else GLUE[task].metrics[0]
        gains.append(_score(found, metric, "after")[0] - _score(found, metric, "before")[0])
    if not gains:
        raise NotRun(results.absent.get("tuned:rte", "needs checkpoints"))
    short = f"{len(gains)} of 7 tasks" if len(gains) < len(TASKS) else ""
    value = float(np.mean(gains))
    return Answer(value, n=f"{len(gains)} tasks", holds=min(gains) > 0, elsewhere=short,
                  shown=", ".join(points(gain) for gain in gains))  # fmt: skip


def table_1() -> tuple[Line, ...]:
    """Scores of three kinds of models on every task."""
    columns = (
        ("before", "pre-trained, not fine-tuned", ""),
        ("scratch", "random weights, fine-tuned", "below the fine-tuned model’s interval"),
        ("tuned", "pre-trained, fine-tuned", "its interval lies above both others"),
    )
    lines = [
        Line(f"table1-{task}-{metric}-{key}", "Table 1", f"{NAMES[task]}, {words}: {how}",
             (f"tuned:{task}", *((f"scratch:{task}",) if key == "scratch" else ())),
             _table_1(task, metric, at), (Published(values[at]),), unit="%", direction=direction)
        for task, metric, words, values in TABLE_1
        for at, (key, how, direction) in enumerate(columns)
    ]  # fmt: skip
    gain = Line("table1-gain", "§4.3", "Mean gain by fine-tuning", (), _gain,
                (Published("35.9"),), unit="points", direction="a gain on every task")  # fmt: skip
    return (*lines, gain)


def _last_two(task: str) -> Measure:
    def measure(results: Results) -> Answer:
        part = f"compare:{task}"
        found = results.group(part, "similarity")
        value = ends(found, "last_minus_other")
        first = float(found["last_are_first"])
        layers = found["layer_cosine"].values
        order = [int(at) for at in np.argsort(layers)[:2]]
        shown = f"least alike: layers {' and '.join(str(at + 1) for at in sorted(order))}"
        if np.isfinite(first):
            shown += f"; the last two first in {percent(first, 0)} of resamples"
            most = first >= SURE
        else:
            most = set(order) == {len(layers) - 2, len(layers) - 1}
        holds = most if task != LAST_KEPT else not most
        return Answer(*value, counted(results.run(part)), holds=holds, shown=shown)

    return measure


def last_layers() -> tuple[Line, ...]:
    """Figure 5."""
    return tuple(
        Line(f"last-layers-{task}", "§4.3, Figure 5", f"{NAMES[task]}: the last two layers "
             f"{'do not change most' if task == LAST_KEPT else 'change most'}: their 1 − cosine "
             "above that of the others", (f"compare:{task}",), _last_two(task),
             direction=f"both change more than every layer before in {SURE:.0%} of resamples"
             .replace("%", " %") if task != LAST_KEPT else "they do not, in more than 5 % of "
             "resamples")
        for task in TASKS
    )  # fmt: skip


# --- §4.6 ------------------------------------------------------------------------------------


def _ablation(results: Results, task: str) -> tuple[xr.Dataset, str]:
    found = results.group(f"ablate:{task}", "ablation")
    return found, counted(results.run(f"ablate:{task}"))


def _best_head(task: str) -> Measure:
    """The head without which the score is highest."""

    def measure(results: Results) -> Answer:
        found, n = _ablation(results, task)
        change = found["difference"].values
        at = places_of(change)[0]
        value = ends(found.isel(layer=at[0], head=at[1]), "difference")
        sure = int((found["verdict"] == "harmful").sum())
        up = int((change > 0).sum())
        shown = f"{named(*at)}; {up} heads raise it, {sure} of them surely"
        return Answer(*value, n, holds=sure > 0, shown=shown)

    return measure


def _mean_head(task: str) -> Measure:
    """What a random head's absence changes, with an interval over examples."""

    def measure(results: Results) -> Answer:
        found, n = _ablation(results, task)
        value = float(np.nanmean(found["difference"].values))
        low, high = _mean_interval(found, task)
        return Answer(value, low, high, n, holds=bool((low if np.isfinite(low) else value) > 0))

    return measure


def _mean_interval(found: xr.Dataset, task: str) -> tuple[float, float]:
    """Of the mean over heads: all heads answer the same resampled examples."""
    of, labels = GLUE[task], found["label"].values
    told = found["prediction"].values.reshape(-1, len(labels))  # [unit, example]
    whole = found["baseline_prediction"].values

    def drawn(answers: Float64) -> Float64:
        outputs = answers if of.is_regression else np.eye(len(of.labels))[answers.astype(int)]
        return resampled(of, labels, outputs, replicates=200, seed=0)

    change = np.mean([drawn(answers) for answers in told], axis=0) - drawn(whole)
    parts = estimate(change, documents=len(labels))
    return float(parts.low), float(parts.high)


def _layer(task: str, layer: int) -> Measure:
    def measure(results: Results) -> Answer:
        found, n = _ablation(results, task)
        value = ends(found.isel(layer=layer), "layer_difference")
        low = value[1] if np.isfinite(value[1]) else value[0]
        return Answer(*value, n, holds=bool(low > 0))

    return measure


def _worst_layer(task: str) -> Measure:
    def measure(results: Results) -> Answer:
        found, n = _ablation(results, task)
        at = int(np.nanargmin(found["layer_difference"].values))
        value = ends(found.isel(layer=at), "layer_difference")
        return Answer(*value, n, holds=bool(value[0] < 0), shown=f"layer {at + 1}")

    return measure


def _shared(results: Results) -> Answer:
    """How many of the heads that cost STS-B and RTE most are the same."""
    from scipy.stats import hypergeom

    both = []
    for task in ("sts-b", "rte"):
        found, _ = _ablation(results, task)
        both.append(places_of(-found["difference"].values)[:SHARED])
    same = [at for at in both[0] if at in both[1]]
    heads = results.group("ablate:rte", "ablation")["difference"].size
    p = float(hypergeom.sf(len(same) - 1, heads, SHARED, SHARED))
    shown = f"{', '.join(named(*at) for at in same) or 'none'}; p = {fixed(p, 3)}"
    if results.own:
        return Answer(len(same), holds={(3, 0), (1, 11)} <= set(same), shown=shown)
    return Answer(len(same), holds=p < 0.05, shown=shown)


def disabling() -> tuple[Line, ...]:
    """Figures 8 and 9."""
    best = {"sts-b": Published("0.1"), "mrpc": Published("1.2")}
    return (
        *(Line(f"best-head-{task}", "§4.6", f"{NAMES[task]}: some head helps by its absence: the "
               "largest gain", (f"ablate:{task}",), _best_head(task),
               (best.get(task, Published("0.1–1.2")),), unit="points",
               direction="at least one head, q < 0.05 after correction for all heads")
          for task in TASKS),
        *(Line(f"mean-head-{task}", "§4.6", f"{NAMES[task]}: a random head’s absence helps on "
               "average: mean over heads", (f"ablate:{task}",), _mean_head(task), unit="points",
               direction="the interval lies above 0") for task in ("mrpc", "rte")),
        Line("layer-1-rte", "§4.6", "RTE: layer 1 disabled", ("ablate:rte",), _layer("rte", 0),
             (Published("3.2"),), unit="points", direction="the interval lies above 0"),
        *(Line(f"layers-{task}", "§4.6", f"{NAMES[task]}: a layer disabled costs little: the "
               "largest loss", (f"ablate:{task}",), _worst_layer(task), (Published("−0.2"),),
               unit="points", direction="a loss") for task in ("qnli", "mnli")),
        Line("shared-heads", "§4.6", "STS-B and RTE share heads that matter (4-1, 2-12): of the "
             f"{SHARED} that cost most, in both", ("ablate:sts-b", "ablate:rte"), _shared,
             direction="4-1 and 2-12 among them; in another model, more than chance, p < 0.05"),
    )  # fmt: skip
