"""How important is each head to a loss, by its gradients?

run = importance(load_for_task("my-checkpoint", task), read_task("rte", "glue/RTE"), output="run")
run["importance"]["head_importance"].sel(method="michel")

run = importance_to_text(load_language_model("bert-base-uncased"), TextCorpus(["wiki.txt"]))
run["gradients"]["magnitude"].sel(category="sep")
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from pathlib import Path

from headscope.core.results import printable
from headscope.corpus import Corpus
from headscope.experiments.importance.correlation import effect_of
from headscope.experiments.importance.language import LanguageModel
from headscope.experiments.importance.masking import causal, masked
from headscope.experiments.importance.objectives import OfTask
from headscope.experiments.importance.result import METHODS
from headscope.experiments.importance.settings import QUICK, Running, Settings
from headscope.experiments.importance.work import Work
from headscope.run import settings as spec
from headscope.run.experiment import digest_of, of_task
from headscope.run.finished_run import Run
from headscope.run.plan import encoder_for
from headscope.tasks.predict import MAX_LENGTH, encode
from headscope.tasks.task_data import TaskData
from headscope.tasks.task_model import TaskModel


def importance(
    model: TaskModel,
    data: TaskData,
    *,
    output: str | Path | None = None,
    settings: Settings | None = None,
    ablation: Run | None = None,
    running: Running | None = None,
) -> Run:
    """How much a task's loss depends on each head of a checkpoint.

    output    run folder; an interrupted run of the same spec there goes on. None: in memory
    ablation  of the same checkpoint and task, to hold the importances against
    raises    InputError and its kinds before anything is computed
    """
    settings, running = settings or Settings(), running or Running()
    settings = replace(
        settings, methods=settings.methods or METHODS,
        max_length=settings.max_length or MAX_LENGTH,
    )  # fmt: skip
    encoded = encode(model, data, max_length=settings.max_length or MAX_LENGTH)
    effect = None
    if ablation is not None:
        inputs = digest_of(encoded.examples)
        effect = effect_of(ablation, model.model, task=printable(data.task.name), inputs=inputs)
    objective = OfTask(data.task, encoded.labels)
    work = Work(model.model, encoded.examples, objective, settings, running.progress, effect)
    about = {"ablation": None if effect is None else effect.about}
    return work.run(of_task(data), output, running, about, cut=encoded.cut)


def importance_to_text(
    model: LanguageModel,
    corpus: Corpus,
    *,
    output: str | Path | None = None,
    settings: Settings | None = None,
    running: Running | None = None,
) -> Run:
    """How much the loss of a language model depends on each head.

    Otherwise as `importance`. Raises CorpusError where nothing can be asked.
    """
    settings, running = settings or Settings(), running or Running()
    settings = replace(settings, methods=settings.methods or QUICK)
    reading = spec.Settings(
        max_length=settings.max_length, long=settings.long, segment_ids=settings.segment_ids,
        seed=settings.seed,
    )  # fmt: skip
    encoder = encoder_for(model.model, reading)
    examples = [e for document in islice(corpus, settings.limit) for e in encoder.encode(document)]
    if model.kind == "masked":
        told = masked(model.model, examples, seed=settings.seed)
    else:
        told = causal(examples)
    notes = {
        "windowed": encoder.counts.windowed, "skipped": encoder.counts.skipped,
        "left_out": told.left_out,
    }  # fmt: skip
    work = Work(model.model, told.examples, told.objective, settings, running.progress, notes=notes)
    return work.run(corpus.describe(), output, running, {"asked": told.objective.digest}, cut=0)
