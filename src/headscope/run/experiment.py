"""The run folder of an experiment: of every command except `atlas` that runs a model.

    request = ExperimentRequest("ablate", model, corpus=of_task(data), examples=…, settings={…})
    run = run_experiment(request, compute, output="run")  # compute(run) -> {"ablation": dataset}

The folder is one of `headscope atlas` in every respect: the same manifest, atlas.nc, tables,
figures and page. A finished run of the same spec is opened, not computed again.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import torch
import xarray as xr

from headscope.claims.control import CONTROL
from headscope.claims.length_bands import BANDS, band_of, shortest_first
from headscope.core.accumulators import REPLICATES
from headscope.core.results import without_draws
from headscope.core.whole_file import sha256_of
from headscope.corpus.contents import EncodeCounts
from headscope.corpus.document import Example
from headscope.model.model import Model, evaluating
from headscope.model.request import BATCH_TOKENS
from headscope.run.compute import fastest_linears
from headscope.run.execution import Execution
from headscope.run.life_cycle import RunInProgress, run_in_progress
from headscope.run.manifest import (
    Manifest,
    deciding_versions,
    identity_of,
    new_manifest,
    training_history,
)
from headscope.run.processes import taking_part
from headscope.run.shared_parts import WrittenElsewhereError
from headscope.run.store import Run, folder_of
from headscope.tasks.task_data import TaskData


@dataclass(frozen=True)
class ExperimentRequest:
    """The request of an experiment; everything except `corpus` is its spec.

    command   name of the command: "ablate"
    model     the model that the run is about
    corpus    `kind`, and `files` with name and sha256, as `Corpus.describe`; see `of_task`
    examples  what the model is shown; each is taken for a document unless their ids say otherwise
    settings  everything else that decides the numbers: values that JSON knows
    cut       how many examples were shortened
    counts    further counts for the manifest: what was skipped, or read in windows
    batch_tokens  of a usual forward pass, by which "auto" linear maps are chosen
    notes     what makes the numbers doubtful
    divided   whether it is computed by `RunInProgress.parts`, so that processes can share it
    """

    command: str
    model: Model
    corpus: Mapping[str, Any]
    examples: Sequence[Example]
    settings: Mapping[str, Any]
    seed: int = 0
    replicates: int = REPLICATES
    cut: int = 0
    counts: Mapping[str, Any] = field(default_factory=dict)
    batch_tokens: int = BATCH_TOKENS
    divided: bool = False
    notes: Sequence[str] = ()


BESIDE = (CONTROL, BANDS)  # groups that are no analysis
T = TypeVar("T")
Compute = Callable[[RunInProgress], Mapping[str, xr.Dataset]]


def run_experiment(
    request: ExperimentRequest,
    compute: Compute,
    *,
    output: str | Path | None = None,
    execution: Execution | None = None,
) -> Run:
    """The run of a request: opened if finished, else computed and stored.

    compute    gives the results by group; `run.part` and `run.parts` keep what takes long
    output     run folder; None: in memory
    execution  as for `atlas`, but for `workers` and `threads`: it runs in this process, in as many
               threads as torch has; "auto" linear maps are chosen when a run begins
    raises     RunFolderError where the folder holds something else; RunStopped on Ctrl-C
    """
    spec, execution = _spec(request), execution or Execution()
    folder = folder_of(output, execution, divided=request.divided)
    begin = partial(_manifest, request, spec, execution)
    with (
        taking_part(Path(output or "."), execution.shard) as own,
        evaluating(request.model.network),
        run_in_progress(folder, spec, begin, overwrite=execution.overwrite, own=own) as run,
    ):
        run.note_linears(execution.linears)
        if (finished := run.finished()) is not None:
            return finished
        try:
            results = compute(run)
            names = sorted(name for name in results if "/" not in name and name not in BESIDE)
            run.manifest["analyses"] = names
            if not execution.keep_draws:
                results = {name: without_draws(result) for name, result in results.items()}
            return run.finish(results, title=f"headscope {request.command}")
        except WrittenElsewhereError:
            return run.elsewhere()


def in_parts(items: Iterable[T], size: Callable[[T], int], *, tokens: int) -> Iterator[list[T]]:
    """Items in order, in parts of about `most` tokens; `size` of an item."""
    part: list[T] = []
    held = 0
    for item in items:
        part.append(item)
        held += size(item)
        if held >= tokens:
            yield part
            part, held = [], 0
    if part:
        yield part


def of_task(data: TaskData) -> dict[str, Any]:
    """The data of a task as `ExperimentRequest.corpus`."""
    file = {"name": data.source, "sha256": data.sha256}
    return {
        "kind": f"task {data.task.name}",
        "files": [file],
        "counted": "examples",
        "rows_sha256": data.rows_sha256,
        "labels": list(data.task.labels),
        "notes": list(data.notes),
    }


def _spec(request: ExperimentRequest) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(json.dumps(dict(request.settings)))
    return {
        "versions": deciding_versions(),
        "command": request.command,
        "model": identity_of(request.model),
        "others": {},
        "corpus": {
            "inputs_sha256": digest_of(request.examples),
            "rows_sha256": request.corpus.get("rows_sha256"),
        },
        "settings": {**plain, "seed": request.seed, "replicates": request.replicates},
    }


def _manifest(request: ExperimentRequest, spec: dict[str, Any], execution: Execution) -> Manifest:
    counts = EncodeCounts(
        documents=len({e.document for e in request.examples}),
        examples=len(request.examples),
        tokens=sum(map(len, request.examples)),
    ).as_dict()
    lengths = shortest_first(Counter(band_of(len(e)) for e in request.examples))
    # Linear maps are timed on a batch of examples of middle length.
    middle = sorted(request.examples, key=len)[len(request.examples) // 2]
    batch = [middle] * max(1, request.batch_tokens // len(middle))
    linears = fastest_linears(request.model, batch, requested=execution.linears)
    manifest = new_manifest(
        spec,
        request.model,
        corpus=request.corpus,
        shards=0,
        counts={**counts, "lengths": lengths, "cut": request.cut, **request.counts},
        analyses=[],
        linears=linears,
        threads=torch.get_num_threads(),
        command=execution.command,
        notes=request.notes,
    )
    return manifest | {"history": training_history(request.model.name)}


def digest_of(examples: Sequence[Example]) -> str:
    """Hex sha256 over all inputs in order."""
    return sha256_of(
        part
        for one in examples
        for part in (
            f"{one.id}\x1f{one.document}\x1f",
            one.input_ids.tobytes(),
            "\x1e",
            one.segment_ids.tobytes(),
        )
    )
