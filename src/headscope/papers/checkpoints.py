"""When nothing can be concluded from what was trained: it is at chance, or learned from a part."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from headscope.claims.verdict import Outcome, Verdict, above
from headscope.core.results import at, estimate
from headscope.core.wording import fixed
from headscope.papers.quantities import NETWORK, RULE, Measure, Measured, PaperRuns, Unmeasured
from headscope.tasks.metrics import chance
from headscope.tasks.task import GLUE

TUNED = ("tuned:", "compare:", "told:", "ablate:")  # runs of a fine-tuned checkpoint


def check_checkpoints(runs: PaperRuns, names: Iterable[str]) -> None:
    """Raises Unmeasured where a run of these is of a checkpoint that does not beat chance."""
    for name in names:
        if name.startswith(TUNED) and (why := at_chance(runs, name.partition(":")[2])):
            raise Unmeasured(why)


def tells(runs: PaperRuns, task: str) -> bool:
    """Whether something can be concluded from the checkpoint for a task."""
    return task not in runs.learned and not at_chance(runs, task)


def of_a_part(
    verdict: Verdict, measured: Measured, measure: Measure, runs: PaperRuns
) -> tuple[Verdict, Measured]:
    """The verdict and its number; but `cannot tell`, with the reason, where a limit leaves another
    thing than the whole: reading more might turn the verdict round.
    """
    why = _cut_short(measure, measured, runs)
    if not why or not (verdict.holds or verdict.fails):
        return verdict, measured
    detail = "; ".join(filter(None, (measured.detail, why)))
    return Verdict(Outcome.CANNOT_TELL), replace(measured, detail=detail)


def _cut_short(measure: Measure, measured: Measured, runs: PaperRuns) -> str:
    if measure.about == RULE:
        count = measured.exact and runs.limit is not None
        return f"counted in {runs.limit:,} documents at most (--limit)" if count else ""
    keys = {key for name in measure.runs for key in (name, name.partition(":")[2])}
    keys |= {key.replace("tuned:", "scratch:") for key in keys}  # beside which it stands
    key = next((key for key in runs.learned if key in keys), "")
    if not key or measure.about != NETWORK:
        return ""
    start = "from random weights it " * key.startswith("scratch:")
    return f"{start}learned from {runs.learned[key]:,} examples only (--limit)"


def at_chance(runs: PaperRuns, task: str) -> str:
    """Why nothing is concluded from a checkpoint for a task; "" where it beats chance."""
    name, of = task.upper(), GLUE[task]
    if (tuned := runs.runs.get(f"tuned:{task}")) is not None:
        record = tuned["finetuned"]
        keys = of.metrics[0], "ci_low", "ci_high"
        value, low, high = (float(record[f"{key}_after"]) for key in keys)
        least = float(record["chance"])
        if np.isnan(least):  # of an older version: that of as many examples of each class
            least = chance(of, np.arange(len(of.labels)))
    elif (ablated := runs.runs.get(f"ablate:{task}")) is not None:
        value, low, high = at(estimate(ablated["ablation"], "baseline"))
        least = chance(of, ablated["ablation"]["label"].values)
    else:
        return f"whether the checkpoint for {name} beats chance: needs its finetuned.json"
    if above(value, low, high, least).holds:
        return ""
    ends = fixed(value, 2), fixed(least, 2)
    return f"the checkpoint for {name} is not shown to beat chance ({' against '.join(ends)})"
