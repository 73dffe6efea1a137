"""How is each part of a battery run that needs only the model and texts?

A maker gives the run of a part, or raises NotRun with what is missing.
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
from headscope.papers.reproduce.data import Source
from headscope.papers.reproduce.desk import Desk
from headscope.papers.reproduce.line import NotRun
from headscope.papers.reproduce.reading import layer_at
from headscope.run.engine.compute import threads_of
from headscope.run.finished_run import Run
from headscope.run.plan import encoder_for, read_ranks

SNIFFED = 65_536  # characters of a text in which a heading is looked for
SEGMENT = 128  # tokens of an input, Clark et al. 2019, §3; documents of Table 2 are cut there too
STRUCTURAL_LAYER = 7  # of 12: where Hewitt and Manning's probe does best on BERT-base
BERT_RANKS = {1: "the", 2: ".", 3: ","}  # the rank file's first tokens


def surface(desk: Desk, part: str) -> Run:
    """Where heads look, how broadly, and which are alike (Clark et al. 2019, §3 and §6)."""
    return desk.atlas(part, texts(desk), "surface", "entropy", "divergence")


def norms(desk: Desk, part: str) -> Run:
    """Weights and norms (Kobayashi et al. 2020) and mixing ratios (2021)."""
    ranks = desk.data.get("frequency")
    file = ranks.paths[0] if ranks and fits(ranks.paths[0], desk.model) else None
    return desk.atlas(part, texts(desk), "norms", "mixing", frequency=file)


def dependency(desk: Desk, part: str) -> Run:
    """Which head finds the syntactic head (Clark et al. 2019, §4.2)."""
    return desk.atlas(part, trees(desk.data.need("treebank")), "dependency")


def coreference(desk: Desk, part: str) -> Run:
    """Which head finds an antecedent (Clark et al. 2019, §4.3)."""
    corpus = CorefCorpus(desk.data.need("coref").paths, on_error="skip")
    return desk.atlas(part, corpus, "coreference", max_length=SEGMENT)


def frames(desk: Desk, part: str) -> Run:
    """Which head links a frame's element to its target (Kovaleva et al. 2019, §4.2)."""
    folder = release(desk.data.need("frames").paths[0])
    return desk.atlas(part, FramesCorpus(folder, on_error="skip"), "frames")


def words(desk: Desk, part: str) -> Run:
    """What words of a kind draw, before fine-tuning, and maps (Kovaleva et al. 2019, §4.4-4.5)."""
    corpus = trees(desk.data.need("treebank"))
    return desk.atlas(part, corpus, "features", "pairs", "patterns")


def texts(desk: Desk) -> Corpus:
    """Ready segments, or plain text cut into such."""
    if "segments" in desk.data:  # the user's choice: no substitute is taken for it
        return SegmentsCorpus(desk.data.need("segments").paths)
    source = desk.data.need("text")
    headed = any(_has_headings(path) for path in source.paths)
    return TextCorpus(source.paths, documents="heading" if headed else "blank_line")


def trees(source: Source) -> Corpus:
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
    found = read_ranks(ranks, len(model.tokenizer))
    for rank, token in BERT_RANKS.items():
        at = [int(place) for place in (found == rank).nonzero()[0]]
        if not at or list(model.tokens(at)) != [token]:
            return False
    return True


def _has_headings(path: Path) -> bool:
    with path.open(encoding="utf-8", errors="replace") as file:
        lines = file.read(SNIFFED).splitlines()
    return any(TOP_HEADING.fullmatch(line.strip()) for line in lines)


def alignment(desk: Desk, part: str) -> Run:
    """Which words cross-attention aligns (Kobayashi et al. 2020, §5), of another model."""
    given, translator = (desk.data.need(key) for key in ("alignment", "translator"))
    from headscope.experiments.alignment.align import align
    from headscope.experiments.alignment.gold_alignments import read_gold
    from headscope.experiments.alignment.translator import load_translator

    gold = read_gold(given.paths)
    # a revision is one of the model that the rest is about
    loading = {**desk.loading, "revision": None}
    model = load_translator(str(translator.paths[0]), languages=gold.languages, **loading)
    with threads_of(desk.execution.threads_each), keeping_draws():
        return align(
            model, gold, output=desk.place(part), limit=desk.limit, replicates=desk.replicates,
            seed=desk.seed, overwrite=desk.overwrite,
        )  # fmt: skip


def split(desk: Desk, part: str) -> Run:
    """How many words of the trees the tokenizer cuts; in memory, as it takes a second."""
    source = desk.data.need("treebank")
    tokenizer: Any = desk.model.tokenizer
    forms = [
        word.form
        for document in islice(trees(source), desk.limit)
        for passage in document.passages
        for word in passage.words or ()
    ]
    ids = tokenizer(forms, add_special_tokens=False)["input_ids"] if forms else []
    if not ids:
        raise NotRun("needs a treebank with words")
    share = float(np.mean([len(found) > 1 for found in ids]))
    return in_memory("split", share=share, words=len(ids))


def tokens(desk: Desk, part: str) -> Run:
    """Counts by which a text is known; in memory, as reading it is all there is to it."""
    corpus, words = texts(desk), desk.model.vocabulary
    encoder = encoder_for(desk.model, desk.settings)
    sums = np.zeros(4, np.int64)  # tokens, separators, pairs with punctuation, with another token
    inputs = 0
    for document in islice(corpus, desk.limit):
        for example in encoder.encode(document):
            ids, length = example.input_ids, len(example)
            marks, ends = np.isin(ids, words.punctuation).sum(), (ids == words.sep).sum()
            rest = length - marks - ends - (ids == words.cls).sum()
            sums += (length, ends, length * marks, length * rest)
            inputs += 1
    if not inputs:
        raise NotRun("needs a text with an input that fits the model")
    return in_memory(
        "tokens", inputs=inputs, tokens=int(sums[0]), separators=float(sums[1] / inputs),
        punctuation_pairs=int(sums[2]), other_pairs=int(sums[3]),
    )  # fmt: skip


def gradients(desk: Desk, part: str) -> Run:
    """|∂loss/∂α| by category of key (Clark et al. 2019, Figure 3)."""
    corpus = texts(desk)
    from headscope.experiments.importance.importance import ImportanceSettings, importance_to_text
    from headscope.experiments.importance.language_model import load_language_model
    from headscope.run.atlas import Execution

    try:
        model = load_language_model(desk.model_name, **desk.loading)
    except ModelError as error:
        raise NotRun(f"needs a model with a language-model head: {error}") from error
    settings = ImportanceSettings(
        methods=("gradient",), limit=desk.limit, replicates=desk.replicates, seed=desk.seed
    )
    execution = Execution(linears="stock", overwrite=desk.overwrite)
    with threads_of(desk.execution.threads_each), keeping_draws():
        return importance_to_text(
            model, corpus, output=desk.place(part), settings=settings, execution=execution
        )


def probes(desk: Desk, part: str) -> Run:
    """Heads in combination (Clark et al. 2019, §5)."""
    train, test = (desk.data.need(key) for key in ("probe_train", "probe_test"))
    from headscope.experiments.probes.probe import probe
    from headscope.experiments.probes.settings import ProbeSettings

    layer = layer_at(STRUCTURAL_LAYER, desk.model.shape.layers)
    settings = ProbeSettings(
        structural_layers=(layer,), limit=desk.limit, test_limit=desk.limit,
        replicates=desk.replicates, seed=desk.seed,
    )  # fmt: skip
    words = desk.data.get("words")
    with threads_of(desk.execution.threads_each):
        return probe(
            desk.model, train.paths, test.paths, words=words.paths[0] if words else None,
            output=desk.place(part), settings=settings, asked_linears="stock",
            overwrite=desk.overwrite, tell=desk.tell,
        )  # fmt: skip


def in_memory(group: str, **numbers: float) -> Run:
    """A run of a few numbers that need no folder."""
    dataset = xr.Dataset({name: xr.DataArray(value) for name, value in numbers.items()})
    return Run(xr.DataTree.from_dict({group: dataset}), {})
