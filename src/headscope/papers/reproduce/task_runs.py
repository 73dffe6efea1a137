"""Runs behind a paper's claims that need a fine-tuned checkpoint.

Such a run is named `compare:rte`: what is done, and on which task. Checkpoints are those of the
user, or are made here, in OUT/checkpoints, where the task's data are there.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from headscope.errors import CorpusError
from headscope.experiments.ablation.ablate import AblationSettings as Ablating
from headscope.experiments.ablation.ablate import ablate
from headscope.experiments.comparison.compare import compare
from headscope.experiments.comparison.same_inputs import TaskCorpus
from headscope.experiments.finetune.finetune import finetune
from headscope.model.model import load
from headscope.papers.quantities import SURFACE, Unmeasured
from headscope.papers.reproduce.paper_runs import in_memory, trees
from headscope.papers.reproduce.workspace import Workspace
from headscope.run.engine.compute import threads_of
from headscope.run.finished_run import Run
from headscope.run.manifest import TRAINING_RECORD
from headscope.tasks.find_split import file_of_split
from headscope.tasks.task import find_task, plain
from headscope.tasks.task_data import TaskData, read_task
from headscope.tasks.task_model import load_for_task

SAMPLED = 1000  # examples at most, Kovaleva et al. 2019, §4.1
LENGTH = 128  # tokens of an example
ADDRESS = "https://dl.fbaipublicfiles.com/glue/data"
FILES = {
    "sst-2": "SST-2.zip", "sts-b": "STS-B.zip", "rte": "RTE.zip", "qnli": "QNLIv2.zip",
    "qqp": "QQP-clean.zip", "mnli": "MNLI.zip",
}  # fmt: skip


def tuned(workspace: Workspace, name: str) -> Run:
    """The scores of a checkpoint before and after it was fine-tuned."""
    return recorded(checkpoint(workspace, _task(name)))


def scratch(workspace: Workspace, name: str) -> Run:
    """The scores of one that began from random weights."""
    return recorded(checkpoint(workspace, _task(name), scratch=True))


def compared(workspace: Workspace, name: str) -> Run:
    """What fine-tuning changes, on the task's own examples (Kovaleva et al. 2019, §4.1, §4.3)."""
    data = examples(workspace, _task(name), limit=SAMPLED)
    second = load(str(checkpoint(workspace, _task(name))), **workspace.loading)
    length = min(LENGTH, workspace.model.limit, second.limit)
    corpus = TaskCorpus(workspace.model, second, data, max_length=length)
    settings = replace(
        workspace.settings, analyses=(SURFACE, "patterns"), max_length=length, limit=None
    )
    return compare(
        workspace.model, second, corpus, output=workspace.place(name), settings=settings,
        execution=workspace.execution,
    )  # fmt: skip


def feature_change(workspace: Workspace, name: str) -> Run:
    """What words of a kind draw, before and after (§4.4), and what the last [CLS] looks at (§4.5).

    On the sentences of a treebank, whose words have tags; the paper parsed the task's own.
    """
    corpus = trees(workspace.data.need("treebank"))
    second = load(str(checkpoint(workspace, _task(name))), **workspace.loading)
    settings = replace(workspace.settings, analyses=("features", "cls_attention"))
    return compare(
        workspace.model, second, corpus, output=workspace.place(name), settings=settings,
        execution=workspace.execution,
    )  # fmt: skip


def ablated(workspace: Workspace, name: str) -> Run:
    """The task without each head and each layer (§4.6)."""
    data = examples(workspace, _task(name))
    model = load_for_task(checkpoint(workspace, _task(name)), data.task, **workspace.loading)
    settings = Ablating(replicates=workspace.replicates, seed=workspace.seed)
    with threads_of(workspace.execution.threads_each):
        return ablate(
            model, data, output=workspace.place(name), settings=settings, asked_linears="stock",
            overwrite=workspace.overwrite,
        )  # fmt: skip


def checkpoint(workspace: Workspace, task: str, *, scratch: bool = False) -> Path:
    """The folder of a checkpoint: the user's, or one trained here; raises Unmeasured."""
    name = f"{task}-scratch" if scratch else task
    given = workspace.data.get("checkpoints")
    for folder in given.paths if given else ():
        for place in sorted(path for path in folder.iterdir() if path.is_dir()):
            if plain(place.name) == plain(name):
                _check_origin(workspace, place, scratch=scratch)
                return place
    train, dev = (examples(workspace, task, split=split) for split in ("train", "dev"))
    weights = " from scratch" if scratch else ""
    workspace.tell(f"fine-tuning {workspace.model_name} for {task}{weights} …")
    start = load_for_task(
        workspace.model_name, train.task, new_head=True, random_init=scratch, seed=workspace.seed,
        **workspace.loading,
    )  # fmt: skip
    place = workspace.folder / "checkpoints" / name
    with threads_of(workspace.execution.threads_each):
        finetune(start, train, dev, place, seed=workspace.seed)
    return place


def examples(
    workspace: Workspace, task: str, *, split: str = "dev", limit: int | None = None
) -> TaskData:
    """A split of a task of GLUE; raises Unmeasured with the address of its data."""
    where = f"{ADDRESS}/{FILES[task]}" if task in FILES else "https://gluebenchmark.com/tasks"
    wanted = f"needs checkpoints, or glue with a folder {task.upper()}: {where}"
    if "glue" not in workspace.data:
        raise Unmeasured(wanted)
    folder = workspace.data.need("glue").paths[0]
    try:
        file_of_split(folder, task, split)
    except CorpusError as error:
        raise Unmeasured(wanted) from error
    most = min((x for x in (workspace.limit, limit) if x is not None), default=None)
    return read_task(task, folder, split=split, limit=most, seed=workspace.seed)


def _task(name: str) -> str:
    return find_task(name.partition(":")[2]).name


def _check_origin(workspace: Workspace, place: Path, *, scratch: bool) -> None:
    """Raises Unmeasured where headscope wrote down that it was trained from another model."""
    record = place / TRAINING_RECORD
    if scratch or not record.is_file():
        return
    start = json.loads(record.read_text("utf-8")).get("model", {})
    origin = start.get("sha256") if "start_sha256" in start else None  # older: with the new head
    if origin and workspace.model.sha256 and origin != workspace.model.sha256:
        raise Unmeasured(
            f"needs checkpoints: {place.name} there was trained from another model "
            f"({start.get('name', 'unknown')}); headscope finetune MODEL --task {place.name}"
        )


def recorded(place: Path) -> Run:
    """finetuned.json as a run in memory, group `finetuned`: METRIC_before, METRIC_after, …"""
    file = place / TRAINING_RECORD
    if not file.is_file():
        raise Unmeasured(
            f"needs {TRAINING_RECORD} beside the checkpoint, which headscope finetune writes"
        )
    record = json.loads(file.read_text("utf-8"))
    numbers: dict[str, Any] = {}
    for when in ("before", "after"):
        for name, value in record["metrics"][when].items():
            numbers[f"{name}_{when}"] = float("nan") if value is None else value
    numbers |= {f"{name}_examples": split["examples"] for name, split in record["data"].items()}
    return in_memory("finetuned", **numbers)
