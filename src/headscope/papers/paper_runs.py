"""Runs behind a paper's claims.

A maker gives the run of a name, or raises Unmeasured with what is missing. A run that needs a
fine-tuned checkpoint is named `compare:rte`: what is done, and on which task. Checkpoints are those
of the user, or are made here, in OUT/checkpoints, where the task's data are there.
"""

import json
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from headscope import corpus as corpora
from headscope.corpus.plain_text import title_of_heading
from headscope.corpus.treebank import HeadLabelCorpus, is_head_label
from headscope.errors import CorpusError, ModelError
from headscope.experiments.ablation.ablate import ablate
from headscope.experiments.ablation.settings import AblationSettings
from headscope.experiments.alignment.align import align
from headscope.experiments.alignment.gold_alignments import read_gold
from headscope.experiments.alignment.translator import load_translator
from headscope.experiments.comparison.compare import compare
from headscope.experiments.comparison.paired_inputs import TaskCorpus
from headscope.experiments.finetune.teaching import teach
from headscope.experiments.importance.measuring import importance_to_text
from headscope.experiments.importance.settings import ImportanceSettings
from headscope.experiments.probes.probe import probe
from headscope.experiments.probes.settings import ProbeSettings
from headscope.model.language_model import load_language_model
from headscope.model.model import Model, load
from headscope.papers.paper_data import DataSource
from headscope.papers.quantities import Unmeasured, layer_at
from headscope.papers.workspace import Workspace
from headscope.run.frequency_ranks import read_ranks
from headscope.run.plan import encoder_for
from headscope.run.settings import Settings
from headscope.run.store import Run
from headscope.tasks.remembered_task import TRAINING_RECORD
from headscope.tasks.task import find_task, plain
from headscope.tasks.task_data import TaskData, file_of_split, read_task
from headscope.tasks.task_model import load_for_task

SNIFFED = 65_536  # characters of a text in which a heading is looked for
SEGMENT = 128  # tokens of an input, Clark et al. 2019, §3; documents of Table 2 are cut there too
STRUCTURAL_LAYER = 7  # of 12: where Hewitt and Manning's probe does best on BERT-base
BERT_RANKS = {1: "the", 2: ".", 3: ","}  # the rank file's first tokens
SAMPLED = 1000  # examples of a task at most, Kovaleva et al. 2019, §4.1
LENGTH = 128  # tokens of an example
ADDRESS = "https://dl.fbaipublicfiles.com/glue/data"
FILES = {
    "sst-2": "SST-2.zip",
    "sts-b": "STS-B.zip",
    "rte": "RTE.zip",
    "qnli": "QNLIv2.zip",
    "qqp": "QQP-clean.zip",
    "mnli": "MNLI.zip",
}


# --- of the model and texts -----------------------------------------------------------------


def surface(workspace: Workspace, name: str) -> Run:
    """Where heads look, how broadly, and which are alike (Clark et al. 2019, §3 and §6)."""
    kinds = ("surface", "entropy", "divergence", "examples")
    every = {"divergence": {"queries": "all"}}
    return workspace.atlas(name, texts(workspace), *kinds, options=every)


def norms(workspace: Workspace, name: str) -> Run:
    """Weights and norms (Kobayashi et al. 2020) and mixing ratios (2021)."""
    ranks = workspace.data.get("frequency")
    file = ranks.paths[0] if ranks and fits(ranks.paths[0], workspace.model) else None
    return workspace.atlas(name, texts(workspace), "norms", "mixing", frequency=file)


def dependency(workspace: Workspace, name: str) -> Run:
    """Which head finds the syntactic head (Clark et al. 2019, §4.2)."""
    return workspace.atlas(name, trees(workspace.data.need("treebank")), "dependency", "examples")


def coreference(workspace: Workspace, name: str) -> Run:
    """Which head finds an antecedent (Clark et al. 2019, §4.3)."""
    source = workspace.data.need("coref")
    corpus: corpora.Corpus = corpora.demo_corpus()
    if not source.bundled:
        corpus = corpora.CorefCorpus(source.paths, on_error="skip")
    return workspace.atlas(name, corpus, "coreference", "examples", max_length=SEGMENT)


def frames(workspace: Workspace, name: str) -> Run:
    """Which head links a frame's element to its target (Kovaleva et al. 2019, §4.2)."""
    folder = release(workspace.data.need("frames").paths[0])
    corpus = corpora.FramesCorpus(folder, on_error="skip")
    return workspace.atlas(name, corpus, "frames", "examples")


def words(workspace: Workspace, name: str) -> Run:
    """What words of a kind draw, before fine-tuning, and maps (Kovaleva et al. 2019, §4.4-4.5)."""
    corpus = trees(workspace.data.need("treebank"))
    return workspace.atlas(name, corpus, "features", "pairs", "patterns")


def texts(workspace: Workspace) -> corpora.Corpus:
    """Ready segments, or plain text cut into such."""
    if "segments" in workspace.data:  # the user's choice: no substitute is taken for it
        return corpora.SegmentsCorpus(workspace.data.need("segments").paths)
    source = workspace.data.need("text")
    if source.bundled:
        return corpora.demo_corpus()
    headed = any(_has_headings(path) for path in source.paths)
    return corpora.TextCorpus(source.paths, documents="heading" if headed else "blank_line")


def trees(source: DataSource) -> corpora.Corpus:
    """CoNLL-U, CoNLL-X, or a word and `head-label` per line; or the bundled trees."""
    if source.bundled:
        return corpora.demo_corpus()
    if all(is_head_label(path) for path in source.paths):
        return HeadLabelCorpus(source.paths)
    return corpora.TreebankCorpus(source.paths, on_error="skip")


def release(folder: Path) -> Path:
    """The release in a folder: itself, or as NLTK unpacks it below its data folder."""
    for place in (folder, *(folder / "corpora" / f"framenet_v1{x}" for x in (7, 5))):
        if (place / "luIndex.xml").is_file():
            return place
    return folder


def fits(ranks: Path, model: Model) -> bool:
    """Whether a rank file speaks of this model's tokens."""
    by_token = read_ranks(ranks, len(model.tokenizer))
    for rank, token in BERT_RANKS.items():
        at = [int(place) for place in (by_token == rank).nonzero()[0]]
        if not at or list(model.tokens(at)) != [token]:
            return False
    return True


def _has_headings(path: Path) -> bool:
    with path.open(encoding="utf-8", errors="replace") as file:
        lines = file.read(SNIFFED).splitlines()
    return any(title_of_heading(line.strip()) for line in lines)


def alignment(workspace: Workspace, name: str) -> Run:
    """Which words cross-attention aligns (Kobayashi et al. 2020, §5), of another model."""
    gold_data, translator = (workspace.data.need(key) for key in ("alignment", "translator"))
    gold = read_gold(gold_data.paths)
    # a revision is one of the model that the rest is about
    loading = {**workspace.loading, "revision": None}
    model = load_translator(str(translator.paths[0]), languages=gold.languages, **loading)
    return align(
        model,
        gold,
        output=workspace.place(name),
        limit=workspace.limit,
        execution=replace(workspace.execution, keep_draws=True),
        **workspace.chance,
    )


def split(workspace: Workspace, name: str) -> Run:
    """How many words of the trees the tokenizer cuts; in memory, as it takes a second."""
    source = workspace.data.need("treebank")
    tokenizer: Any = workspace.model.tokenizer
    forms = [
        word.form
        for document in islice(trees(source), workspace.limit)
        for passage in document.passages
        for word in passage.words or ()
    ]
    ids = tokenizer(forms, add_special_tokens=False)["input_ids"] if forms else []
    if not ids:
        raise Unmeasured("needs a treebank with words")
    share = float(np.mean([len(tokens) > 1 for tokens in ids]))
    return in_memory("split", share=share, words=len(ids))


def tokens(workspace: Workspace, name: str) -> Run:
    """Counts by which a text is known; in memory, as reading it is all there is to it."""
    corpus, words = texts(workspace), workspace.model.vocabulary
    encoder = encoder_for(workspace.model, workspace.settings)
    sums = np.zeros(4, np.int64)  # tokens, separators, pairs with punctuation, with another token
    inputs = 0
    for document in islice(corpus, workspace.limit):
        for example in encoder.encode(document):
            ids, length = example.input_ids, len(example)
            marks, ends = np.isin(ids, words.punctuation).sum(), (ids == words.sep).sum()
            rest = length - marks - ends - (ids == words.cls).sum()
            sums += (length, ends, length * marks, length * rest)
            inputs += 1
    if not inputs:
        raise Unmeasured("needs a text with an input that fits the model")
    return in_memory(
        "tokens",
        inputs=inputs,
        tokens=int(sums[0]),
        separators=float(sums[1] / inputs),
        punctuation_pairs=int(sums[2]),
        other_pairs=int(sums[3]),
    )


def gradients(workspace: Workspace, name: str) -> Run:
    """|∂loss/∂α| by category of key (Clark et al. 2019, Figure 3)."""
    corpus = texts(workspace)
    try:
        model = load_language_model(workspace.model_name, **workspace.loading)
    except ModelError as error:
        lacks = str(error).partition("\n")[0]
        raise Unmeasured(f"needs a model with a language-model head: {lacks}") from error
    settings = ImportanceSettings(methods=("gradient",), limit=workspace.limit, **workspace.chance)
    execution = replace(workspace.execution, threads=None, keep_draws=True)
    return importance_to_text(
        model, corpus, output=workspace.place(name), settings=settings, execution=execution
    )


def probes(workspace: Workspace, name: str) -> Run:
    """Heads in combination (Clark et al. 2019, §5)."""
    train, test = (workspace.data.need(key) for key in ("probe_train", "probe_test"))
    settings = ProbeSettings(
        structural_layers=(layer_at(STRUCTURAL_LAYER, workspace.model.shape.layers),),
        limit=workspace.limit,
        test_limit=workspace.limit,
        **workspace.chance,
    )
    words = workspace.data.get("words")
    run = probe(
        workspace.model,
        train.paths,
        test.paths,
        words=words.paths[0] if words else None,
        output=workspace.place(name),
        settings=settings,
        execution=workspace.execution,
        tell=workspace.tell,
    )
    learned = sum(int(run["probes"].attrs[f"{part}_sentences"]) for part in ("train", "dev"))
    if learned == workspace.limit:
        workspace.learned[name] = learned
    return run


def in_memory(group: str, **numbers: float) -> Run:
    """A run of a few numbers that need no folder."""
    dataset = xr.Dataset({name: xr.DataArray(value) for name, value in numbers.items()})
    return Run(xr.DataTree.from_dict({group: dataset}), {})


# --- of a task and a fine-tuned checkpoint ---------------------------------------------------


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
    settings = replace(workspace.settings, max_length=length, limit=None)
    return _compare(workspace, name, second, corpus, settings, "surface", "patterns")


def feature_change(workspace: Workspace, name: str) -> Run:
    """What words of a kind draw, before and after (§4.4), and what the last [CLS] looks at (§4.5).

    On the sentences of a treebank, whose words have tags; the paper parsed the task's own.
    """
    corpus = trees(workspace.data.need("treebank"))
    second = load(str(checkpoint(workspace, _task(name))), **workspace.loading)
    settings = workspace.settings
    return _compare(workspace, name, second, corpus, settings, "features", "cls_attention")


def _compare(
    workspace: Workspace, name: str, second: Model, corpus: Any, settings: Settings, *analyses: str
) -> Run:
    return compare(
        workspace.model,
        second,
        corpus,
        output=workspace.place(name),
        settings=replace(settings, analyses=analyses),
        execution=workspace.execution,
    )


def ablated(workspace: Workspace, name: str) -> Run:
    """The task without each head and each layer (§4.6)."""
    data = examples(workspace, _task(name))
    model = load_for_task(checkpoint(workspace, _task(name)), data.task, **workspace.loading)
    return ablate(
        model,
        data,
        output=workspace.place(name),
        settings=AblationSettings(**workspace.chance),
        execution=workspace.execution,
    )


def checkpoint(workspace: Workspace, task: str, *, scratch: bool = False) -> Path:
    """The folder of a checkpoint: the user's, or one trained here; raises Unmeasured."""
    name = f"{task}-scratch" if scratch else task
    folders = workspace.data.get("checkpoints")
    for folder in folders.paths if folders else ():
        for place in sorted(path for path in folder.iterdir() if path.is_dir()):
            if plain(place.name) == plain(name):
                _check_origin(workspace, place, scratch=scratch)
                return place
    train, dev = (examples(workspace, task, split=split) for split in ("train", "dev"))
    if len(train) == workspace.limit:
        workspace.learned[f"scratch:{task}" if scratch else task] = len(train)
    weights = " from scratch" if scratch else ""
    workspace.tell(f"fine-tuning {workspace.model_name} for {task}{weights} …")
    start = load_for_task(
        workspace.model_name,
        train.task,
        new_head=True,
        random_init=scratch,
        seed=workspace.seed,
        **workspace.loading,
    )
    place = workspace.folder / "checkpoints" / name
    teach(start, train, dev, place, seed=workspace.seed)
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
    numbers["chance"] = record.get("chance", float("nan"))
    numbers |= {f"{name}_examples": split["examples"] for name, split in record["data"].items()}
    return in_memory("finetuned", **numbers)
