"""Kovaleva et al. (2019): what they published of fine-tuning and disabling, §4.3 and §4.6."""

import numpy as np
import xarray as xr
from scipy.stats import binomtest, hypergeom

from headscope.claims.verdict import (
    above,
    all_of,
    beyond_chance,
    in_draws,
    known,
    opposite,
    some_above,
)
from headscope.core.accumulators import Float64
from headscope.core.intervals import estimate
from headscope.core.results import at, largest_first
from headscope.core.results import estimate as estimate_of
from headscope.core.wording import fixed, how_many
from headscope.papers import checkpoints, quantities
from headscope.papers.claim_engine import ClaimGroup, PaperClaim, signed
from headscope.papers.published import Published
from headscope.papers.quantities import BEFORE, Measure, Measured, PaperRun, PaperRuns, Unmeasured
from headscope.tasks.metrics import draws_of
from headscope.tasks.task import GLUE

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
    return f"{signed(100 * change)} points"


def _score(run: PaperRun, task: str, metric: str, when: str) -> tuple[float, float, float]:
    """A score with its interval, which a record holds for the task's main metric."""
    record, name = run.results("finetuned"), f"{metric}_{when}"
    if name not in record:
        raise Unmeasured(f"needs {metric} in the record of the training")
    value = float(record[name])
    if metric == GLUE[task].metrics[0]:
        return value, float(record[f"ci_low_{when}"]), float(record[f"ci_high_{when}"])
    if metric != "accuracy":
        return value, np.nan, np.nan
    n = int(record["dev_examples"])
    interval = binomtest(round(value * n), n).proportion_ci(SURE, "wilson")
    return value, float(interval.low), float(interval.high)


def _shown(score: tuple[float, float, float], metric: str) -> tuple[float, float, float]:
    """In the unit of its claim: a correlation is no share, the paper has it × 100."""
    scale = 100.0 if metric == "pearson" else 1.0
    return scale * score[0], scale * score[1], scale * score[2]


def _examples(run: PaperRun, *, trained: bool = True) -> str:
    record = run.results("finetuned")
    learned = f", {int(record['train_examples']):,} learned from" if trained else ""
    return f"{int(record['dev_examples']):,} examples{learned}"


@quantities.reads("tuned:", about=BEFORE)
def _before(run: PaperRun, task: str, metric: str) -> Measured:
    before = _score(run, task, metric, "before")
    return Measured(*_shown(before, metric), _examples(run, trained=False))


@quantities.reads("tuned:", "scratch:")
def _scratch(run: PaperRun, task: str, metric: str) -> Measured:
    scratch = run.beside.run(f"scratch:{task}")
    number, after = (_score(x, task, metric, "after") for x in (scratch, run))
    verdict = above(*quantities.less(after, number))
    return Measured(*_shown(number, metric), _examples(scratch), verdict=verdict)


@quantities.reads("tuned:")
def _tuned(run: PaperRun, task: str, metric: str) -> Measured:
    after = _score(run, task, metric, "after")
    others = [_score(run, task, metric, "before")]
    if f"scratch:{task}" in run.beside:
        others.append(_score(run.beside.run(f"scratch:{task}"), task, metric, "after"))
    there = [other for other in others if np.isfinite(other[0])]  # no correlation: always the same
    verdict = all_of(above(*quantities.less(after, other)) for other in there)
    return Measured(*_shown(after, metric), _examples(run), verdict=verdict)


def _gain(runs: PaperRuns) -> Measured:
    """Mean over tasks of the score after less that before; accuracy where a task has two."""
    gains, verdicts = [], []
    for task in TASKS:
        if f"tuned:{task}" in runs and checkpoints.tells(runs, task):
            run, of = runs.run(f"tuned:{task}"), GLUE[task]
            metric = of.metrics[0] if of.is_regression else of.metrics[-1]
            after, before = (_score(run, task, metric, when) for when in ("after", "before"))
            gains.append(after[0] - before[0])
            verdicts.append(above(*quantities.less(after, before)))
    if not gains:
        needs = "needs checkpoints that beat chance, of whole tasks"
        raise Unmeasured(runs.absent.get("tuned:rte", needs))
    few = f"{len(gains)} of 7 tasks" if len(gains) < len(TASKS) else ""
    many = how_many(len(gains), "task")
    return Measured(
        float(np.mean(gains)),
        n="" if few else many,
        verdict=all_of(verdicts),
        detail=", ".join(points(gain) for gain in gains),
        elsewhere=few,
    )


COLUMNS = (  # key, how the model came to be, its measure, the direction
    ("before", "pre-trained, not fine-tuned", _before, ""),
    ("scratch", "random weights, fine-tuned", _scratch, "below the fine-tuned model, by intervals"),
    ("tuned", "pre-trained, fine-tuned", _tuned, "above both others, by all intervals"),
)
SCORES = ClaimGroup(
    "tasks",
    "Tasks, before and after fine-tuning (Table 1)",
    "Fine-tuning helps on every task, and what was learned in pre-training is needed for it.",
    (
        *(
            PaperClaim(
                f"table1-{task}-{metric}-{key}",
                "Table 1",
                f"{NAMES[task]}, {words}: {how}",
                measure(task, metric),
                (Published(text),),
                "" if metric == "pearson" else "%",
                direction,
            )
            for task, metric, words, values in TABLE_1
            for (key, how, measure, direction), text in zip(COLUMNS, values, strict=True)
        ),
        PaperClaim(
            "table1-gain",
            "§4.3",
            "Mean gain by fine-tuning",
            Measure((), _gain),
            (Published("35.9"),),
            "points",
            "a gain on every task",
        ),
    ),
)


@quantities.reads("compare:")
def _last_two(run: PaperRun, task: str) -> Measured:
    results = run.results("similarity")
    first = float(results["last_are_first"])
    layers = results["layer_cosine"].values
    order = [int(at) for at in np.argsort(layers)[:2]]
    detail = f"least alike: layers {' and '.join(str(at + 1) for at in sorted(order))}"
    if np.isfinite(first):
        detail += (
            f"; the last two first in {quantities.percent_text(first, 0)} of corpora drawn anew"
        )
    number = quantities.stored(results, "last_minus_other")
    most = all_of([in_draws(first), above(*number)])
    verdict = opposite(most) if task == LAST_KEPT else most
    return Measured(*number, run.counted, verdict=verdict, detail=detail)


def _last_layers(task: str) -> PaperClaim:
    words = "change most"
    direction = "both change more than every layer before in 95 % of corpora drawn anew"
    if task == LAST_KEPT:
        words = "do not change most"
        direction = "they do not, in 95 % of corpora drawn anew"
    text = f"{NAMES[task]}: the last two layers {words}: their 1 − cosine above that of the others"
    return PaperClaim(
        f"last-layers-{task}", "§4.3, Figure 5", text, _last_two(task), direction=direction
    )


CHANGE = ClaimGroup(
    "change",
    "Change by fine-tuning (§4.3)",
    "The last two layers change most, on all tasks but QQP.",
    tuple(map(_last_layers, TASKS)),
)


@quantities.reads("ablate:")
def _best_head(run: PaperRun, _: str) -> Measured:
    results = run.results("ablation")
    change = results["difference"].values
    layer, head = largest_first(change)[0]
    parts = estimate_of(results, "difference")
    number = at(parts, layer, head)
    sure = int((results["verdict"] == "harmful").sum())
    raising = int((change > 0).sum())
    detail = f"{run.names.head(layer, head)}; {raising} heads raise it, {sure} of them surely"
    verdict = known(True) if sure else some_above(parts)
    return Measured(*number, run.counted, verdict=verdict, detail=detail)


@quantities.reads("ablate:")
def _mean_head(run: PaperRun, task: str) -> Measured:
    """What a random head's absence changes, with an interval over examples."""
    results = run.results("ablation")
    number = (float(np.nanmean(results["difference"].values)), *_mean_interval(results, task))
    return Measured(*number, run.counted, verdict=above(*number))


def _mean_interval(results: xr.Dataset, task: str) -> tuple[float, float]:
    """Interval of the mean over heads: all heads answer the same examples."""
    of, labels = GLUE[task], results["label"].values
    answers = results["prediction"].values.reshape(-1, len(labels))  # [unit, example]

    def scores(answer: Float64) -> Float64:
        outputs = answer if of.is_regression else np.eye(len(of.labels))[answer.astype(int)]
        return draws_of(of, labels, outputs, replicates=200)

    whole = scores(results["baseline_prediction"].values)
    change = np.mean([scores(answer) for answer in answers], axis=0) - whole
    ends = estimate(change)
    return float(ends.low), float(ends.high)


@quantities.reads("ablate:")
def _layer(run: PaperRun, _: str, layer: int) -> Measured:
    number = quantities.stored(run.results("ablation").isel(layer=layer), "layer_difference")
    return Measured(*number, run.counted, verdict=above(*number))


@quantities.reads("ablate:")
def _worst_layer(run: PaperRun, _: str) -> Measured:
    results = run.results("ablation")
    parts = estimate_of(results, "layer_difference")
    layer = int(np.nanargmin(parts.value))
    verdict = some_above(parts, sign=-1)
    return Measured(*at(parts, layer), run.counted, verdict=verdict, detail=f"layer {layer + 1}")


@quantities.reads("ablate:sts-b", "ablate:rte")
def _shared(run: PaperRun) -> Measured:
    """How many of the heads that cost STS-B and RTE most are the same."""
    both = (run, run.beside.run("ablate:rte"))
    costs = [-one.results("ablation")["difference"].values for one in both]
    first, second = (largest_first(cost)[:SHARED] for cost in costs)
    same = [place for place in first if place in second]
    p = float(hypergeom.sf(len(same) - 1, costs[1].size, SHARED, SHARED))
    detail = f"{', '.join(run.names.head(*at) for at in same) or 'none'}; p = {fixed(p, 3)}"
    there = {(3, 0), (1, 11)} <= set(same) or not run.beside.own
    return Measured(len(same), verdict=beyond_chance(known(there), p), detail=detail)


GAINS = {"sts-b": "0.1", "mrpc": "1.2"}
ABOVE_0 = "the interval lies above 0"
DISABLING = ClaimGroup(
    "disabling",
    "Disabling heads and layers (§4.6)",
    "A head, or all heads of a layer, attends evenly instead. On some tasks that helps.",
    (
        *(
            PaperClaim(
                f"best-head-{task}",
                "§4.6",
                f"{NAMES[task]}: some head helps by its absence: the largest gain",
                _best_head(task),
                (Published(GAINS.get(task, "0.1–1.2")),),
                "points",
                "at least one head, q < 0.05 after correction for all heads",
            )
            for task in TASKS
        ),
        *(
            PaperClaim(
                f"mean-head-{task}",
                "§4.6",
                f"{NAMES[task]}: a random head’s absence helps on average: mean over heads",
                _mean_head(task),
                (),
                "points",
                ABOVE_0,
            )
            for task in ("mrpc", "rte")
        ),
        PaperClaim(
            "layer-1-rte",
            "§4.6",
            "RTE: layer 1 disabled",
            _layer("rte", 0),
            (Published("3.2"),),
            "points",
            ABOVE_0,
        ),
        *(
            PaperClaim(
                f"layers-{task}",
                "§4.6",
                f"{NAMES[task]}: a layer disabled costs little: the largest loss",
                _worst_layer(task),
                (Published("−0.2"),),
                "points",
                "a loss, of all layers at once",
            )
            for task in ("qnli", "mnli")
        ),
        PaperClaim(
            "shared-heads",
            "§4.6",
            f"STS-B and RTE share heads that matter (4-1, 2-12): of the {SHARED} that cost most, "
            "in both",
            _shared(),
            direction="more than chance, p < 0.05, and in the paper’s model 4-1 and "
            "2-12 among them",
        ),
    ),
)
