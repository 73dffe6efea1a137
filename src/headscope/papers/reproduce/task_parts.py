"""How is each part of a battery run that needs a fine-tuned checkpoint?

A part is named `compare:rte`: what is done, and on which task. Checkpoints are those of the
user, or are made here, in OUT/checkpoints, where the task's data are there.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from headscope.errors import CorpusError
from headscope.experiments.ablation.ablate import Settings as Ablating
from headscope.experiments.ablation.ablate import ablate
from headscope.experiments.comparison.compare import compare
from headscope.experiments.comparison.inputs import TaskCorpus
from headscope.experiments.finetune.finetune import finetune
from headscope.experiments.finetune.saving import RECORD
from headscope.model.model import load
from headscope.papers.reproduce.desk import Desk
from headscope.papers.reproduce.line import NotRun
from headscope.papers.reproduce.parts import in_memory, trees
from headscope.run.engine.compute import threads_of
from headscope.run.finished_run import Run
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


def tuned(desk: Desk, part: str) -> Run:
    """The scores of a checkpoint before and after it was fine-tuned."""
    return _recorded(checkpoint(desk, _task(part)))


def scratch(desk: Desk, part: str) -> Run:
    """The scores of one that began from random weights."""
    return _recorded(checkpoint(desk, _task(part), scratch=True))


def compared(desk: Desk, part: str) -> Run:
    """What fine-tuning changes, on the task's own examples (Kovaleva et al. 2019, §4.1, §4.3)."""
    data = examples(desk, _task(part), limit=SAMPLED)
    second = load(str(checkpoint(desk, _task(part))), **desk.loading)
    length = min(LENGTH, desk.model.limit, second.limit)
    corpus = TaskCorpus(desk.model, second, data, max_length=length)
    settings = replace(
        desk.settings, analyses=("surface", "patterns"), max_length=length, limit=None
    )
    return compare(
        desk.model, second, corpus, output=desk.place(part), settings=settings,
        execution=desk.execution,
    )  # fmt: skip


def told(desk: Desk, part: str) -> Run:
    """What words of a kind draw, before and after (§4.4), and what the last [CLS] looks at (§4.5).

    On the sentences of a treebank, whose words have tags; the paper parsed the task's own.
    """
    corpus = trees(desk.data.need("treebank"))
    second = load(str(checkpoint(desk, _task(part))), **desk.loading)
    settings = replace(desk.settings, analyses=("features", "cls_attention"))
    return compare(
        desk.model, second, corpus, output=desk.place(part), settings=settings,
        execution=desk.execution,
    )  # fmt: skip


def ablated(desk: Desk, part: str) -> Run:
    """The task without each head and each layer (§4.6)."""
    data = examples(desk, _task(part))
    model = load_for_task(checkpoint(desk, _task(part)), data.task, **desk.loading)
    settings = Ablating(replicates=desk.replicates, seed=desk.seed)
    with threads_of(desk.execution.threads_each):
        return ablate(
            model, data, output=desk.place(part), settings=settings, asked_linears="stock",
            overwrite=desk.overwrite,
        )  # fmt: skip


def checkpoint(desk: Desk, task: str, *, scratch: bool = False) -> Path:
    """The folder of a checkpoint: the user's, else one made here; raises NotRun without data."""
    name = f"{task}-scratch" if scratch else task
    given = desk.data.get("checkpoints")
    for folder in given.paths if given else ():
        for place in sorted(path for path in folder.iterdir() if path.is_dir()):
            if plain(place.name) == plain(name):
                _check_origin(desk, place, scratch=scratch)
                return place
    train, dev = (examples(desk, task, split=split) for split in ("train", "dev"))
    desk.tell(f"fine-tuning {desk.model_name} for {task}{' from scratch' if scratch else ''} …")
    start = load_for_task(
        desk.model_name, train.task, new_head=True, random_init=scratch, seed=desk.seed,
        **desk.loading,
    )  # fmt: skip
    place = desk.folder / "checkpoints" / name
    with threads_of(desk.execution.threads_each):
        finetune(start, train, dev, place, seed=desk.seed)
    return place


def examples(desk: Desk, task: str, *, split: str = "dev", limit: int | None = None) -> TaskData:
    """A split of a task of GLUE; raises NotRun with the address of its data."""
    where = f"{ADDRESS}/{FILES[task]}" if task in FILES else "https://gluebenchmark.com/tasks"
    wanted = f"needs checkpoints, or glue with a folder {task.upper()}: {where}"
    if "glue" not in desk.data:
        raise NotRun(wanted)
    folder = desk.data.need("glue").paths[0]
    try:
        file_of_split(folder, task, split)
    except CorpusError as error:
        raise NotRun(wanted) from error
    most = min((x for x in (desk.limit, limit) if x is not None), default=None)
    return read_task(task, folder, split=split, limit=most, seed=desk.seed)


def _task(part: str) -> str:
    return find_task(part.partition(":")[2]).name


def _check_origin(desk: Desk, place: Path, *, scratch: bool) -> None:
    """Raises NotRun where headscope wrote down that it was trained from another model."""
    record = place / RECORD
    if scratch or not record.is_file():
        return
    start = json.loads(record.read_text("utf-8")).get("model", {})
    origin = start.get("sha256") if "start_sha256" in start else None  # older: with the new head
    if origin and desk.model.sha256 and origin != desk.model.sha256:
        raise NotRun(
            f"needs checkpoints: {place.name} there was trained from another model "
            f"({start.get('name', 'unknown')}); headscope finetune MODEL --task {place.name}"
        )


def _recorded(place: Path) -> Run:
    """finetuned.json as a run in memory, group `finetuned`: METRIC_before, METRIC_after, …"""
    file = place / RECORD
    if not file.is_file():
        raise NotRun(f"needs {RECORD} beside the checkpoint, which headscope finetune writes")
    record = json.loads(file.read_text("utf-8"))
    numbers: dict[str, Any] = {}
    for when in ("before", "after"):
        for name, value in record["metrics"][when].items():
            numbers[f"{name}_{when}"] = float("nan") if value is None else value
    numbers |= {f"{name}_examples": split["examples"] for name, split in record["data"].items()}
    return in_memory("finetuned", **numbers)
