"""Runs behind a paper's claims that need only the model and texts.

A maker gives the run of a name, or raises Unmeasured with what is missing.
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from headscope.core.labelled import keeping_draws
from headscope.corpus import (
    CorefCorpus,
    Corpus,
    FramesCorpus,
    SegmentsCorpus,
    TextCorpus,
    TreebankCorpus,
)
from headscope.corpus.plain_text import TOP_HEADING
from headscope.corpus.treebank import HeadLabelCorpus, is_head_label
from headscope.errors import ModelError
from headscope.model.model import Model
from headscope.papers.quantities import (
    DEPENDENCY,
    DIVERGENCE,
    ENTROPY,
    MIXING,
    NORMS,
    SURFACE,
    Unmeasured,
    layer_at,
)
from headscope.papers.reproduce.paper_data import DataSource
from headscope.papers.reproduce.workspace import Workspace
from headscope.run.engine.compute import threads_of
from headscope.run.finished_run import Run
from headscope.run.plan import encoder_for, read_ranks

SNIFFED = 65_536  # characters of a text in which a heading is looked for
SEGMENT = 128  # tokens of an input, Clark et al. 2019, §3; documents of Table 2 are cut there too
STRUCTURAL_LAYER = 7  # of 12: where Hewitt and Manning's probe does best on BERT-base
BERT_RANKS = {1: "the", 2: ".", 3: ","}  # the rank file's first tokens


def surface(workspace: Workspace, name: str) -> Run:
    """Where heads look, how broadly, and which are alike (Clark et al. 2019, §3 and §6)."""
    return workspace.atlas(name, texts(workspace), SURFACE, ENTROPY, DIVERGENCE)


def norms(workspace: Workspace, name: str) -> Run:
    """Weights and norms (Kobayashi et al. 2020) and mixing ratios (2021)."""
    ranks = workspace.data.get("frequency")
    file = ranks.paths[0] if ranks and fits(ranks.paths[0], workspace.model) else None
    return workspace.atlas(name, texts(workspace), NORMS, MIXING, frequency=file)


def dependency(workspace: Workspace, name: str) -> Run:
    """Which head finds the syntactic head (Clark et al. 2019, §4.2)."""
    return workspace.atlas(name, trees(workspace.data.need("treebank")), DEPENDENCY)


def coreference(workspace: Workspace, name: str) -> Run:
    """Which head finds an antecedent (Clark et al. 2019, §4.3)."""
    corpus = CorefCorpus(workspace.data.need("coref").paths, on_error="skip")
    return workspace.atlas(name, corpus, "coreference", max_length=SEGMENT)


def frames(workspace: Workspace, name: str) -> Run:
    """Which head links a frame's element to its target (Kovaleva et al. 2019, §4.2)."""
    folder = release(workspace.data.need("frames").paths[0])
    return workspace.atlas(name, FramesCorpus(folder, on_error="skip"), "frames")


def words(workspace: Workspace, name: str) -> Run:
    """What words of a kind draw, before fine-tuning, and maps (Kovaleva et al. 2019, §4.4-4.5)."""
    corpus = trees(workspace.data.need("treebank"))
    return workspace.atlas(name, corpus, "features", "pairs", "patterns")


def texts(workspace: Workspace) -> Corpus:
    """Ready segments, or plain text cut into such."""
    if "segments" in workspace.data:  # the user's choice: no substitute is taken for it
        return SegmentsCorpus(workspace.data.need("segments").paths)
    source = workspace.data.need("text")
    headed = any(_has_headings(path) for path in source.paths)
    return TextCorpus(source.paths, documents="heading" if headed else "blank_line")


def trees(source: DataSource) -> Corpus:
    """CoNLL-U, CoNLL-X, or a word and `head-label` per line."""
    if all(is_head_label(path) for path in source.paths):
        return HeadLabelCorpus(source.paths)
    return TreebankCorpus(source.paths, on_error="skip")


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
    return any(TOP_HEADING.fullmatch(line.strip()) for line in lines)


def alignment(workspace: Workspace, name: str) -> Run:
    """Which words cross-attention aligns (Kobayashi et al. 2020, §5), of another model."""
    given, translator = (workspace.data.need(key) for key in ("alignment", "translator"))
    from headscope.experiments.alignment.align import align
    from headscope.experiments.alignment.gold_alignments import read_gold
    from headscope.experiments.alignment.translator import load_translator

    gold = read_gold(given.paths)
    # a revision is one of the model that the rest is about
    loading = {**workspace.loading, "revision": None}
    model = load_translator(str(translator.paths[0]), languages=gold.languages, **loading)
    with threads_of(workspace.execution.threads_each), keeping_draws():
        return align(
            model, gold, output=workspace.place(name), limit=workspace.limit,
            replicates=workspace.replicates, seed=workspace.seed, overwrite=workspace.overwrite,
        )  # fmt: skip


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
        "tokens", inputs=inputs, tokens=int(sums[0]), separators=float(sums[1] / inputs),
        punctuation_pairs=int(sums[2]), other_pairs=int(sums[3]),
    )  # fmt: skip


def gradients(workspace: Workspace, name: str) -> Run:
    """|∂loss/∂α| by category of key (Clark et al. 2019, Figure 3)."""
    corpus = texts(workspace)
    from headscope.experiments.importance.importance import ImportanceSettings, importance_to_text
    from headscope.experiments.importance.language_model import load_language_model
    from headscope.run.atlas import Execution

    try:
        model = load_language_model(workspace.model_name, **workspace.loading)
    except ModelError as error:
        raise Unmeasured(f"needs a model with a language-model head: {error}") from error
    settings = ImportanceSettings(
        methods=("gradient",),
        limit=workspace.limit,
        replicates=workspace.replicates,
        seed=workspace.seed,
    )
    execution = Execution(linears="stock", overwrite=workspace.overwrite)
    with threads_of(workspace.execution.threads_each), keeping_draws():
        return importance_to_text(
            model, corpus, output=workspace.place(name), settings=settings, execution=execution
        )


def probes(workspace: Workspace, name: str) -> Run:
    """Heads in combination (Clark et al. 2019, §5)."""
    train, test = (workspace.data.need(key) for key in ("probe_train", "probe_test"))
    from headscope.experiments.probes.probe import probe
    from headscope.experiments.probes.settings import ProbeSettings

    layer = layer_at(STRUCTURAL_LAYER, workspace.model.shape.layers)
    settings = ProbeSettings(
        structural_layers=(layer,), limit=workspace.limit, test_limit=workspace.limit,
        replicates=workspace.replicates, seed=workspace.seed,
    )  # fmt: skip
    words = workspace.data.get("words")
    with threads_of(workspace.execution.threads_each):
        return probe(
            workspace.model, train.paths, test.paths, words=words.paths[0] if words else None,
            output=workspace.place(name), settings=settings, asked_linears="stock",
            overwrite=workspace.overwrite, tell=workspace.tell,
        )  # fmt: skip


def in_memory(group: str, **numbers: float) -> Run:
    """A run of a few numbers that need no folder."""
    dataset = xr.Dataset({name: xr.DataArray(value) for name, value in numbers.items()})
    return Run(xr.DataTree.from_dict({group: dataset}), {})
