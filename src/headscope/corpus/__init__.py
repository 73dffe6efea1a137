"""Read texts, treebanks and other annotated corpora, and turn them into model inputs.

Readers (re-iterable, one document at a time) ─► Document ─► Encoder ─► Example ─► batches
"""

from headscope.corpus.annotate import Annotator
from headscope.corpus.annotate.annotated import AnnotatedCorpus
from headscope.corpus.columns import ColumnCorpus, DatasetCorpus
from headscope.corpus.contents import EncodeCounts
from headscope.corpus.coref.coref_corpus import CorefCorpus
from headscope.corpus.document import (
    Concatenation,
    Corpus,
    Document,
    Example,
    Frame,
    FrameElement,
    MemoryCorpus,
    Mention,
    Passage,
    Word,
)
from headscope.corpus.encoder import Encoder
from headscope.corpus.framenet import FramesCorpus
from headscope.corpus.framenet_exemplars import FrameFilters
from headscope.corpus.given_corpus import CorpusLike, corpus_of
from headscope.corpus.packing import batches
from headscope.corpus.plain_text import SegmentsCorpus, TextCorpus
from headscope.corpus.treebank import TreebankCorpus, demo_corpus

__all__ = [
    "AnnotatedCorpus", "Annotator", "ColumnCorpus", "Concatenation", "CorefCorpus", "Corpus",
    "CorpusLike", "DatasetCorpus", "Document", "EncodeCounts", "Encoder", "Example", "Frame",
    "FrameElement", "FrameFilters", "FramesCorpus", "MemoryCorpus", "Mention", "Passage",
    "SegmentsCorpus", "TextCorpus", "TreebankCorpus", "Word", "batches", "corpus_of", "demo_corpus",
]  # fmt: skip
