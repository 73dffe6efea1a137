"""Which texts can headscope read, and how do they become model inputs?

Readers (re-iterable, one document at a time) ─► Document ─► Encoder ─► Example ─► batches
"""

from headscope.corpus.annotate.annotated import AnnotatedCorpus
from headscope.corpus.annotate.annotator import Annotator
from headscope.corpus.batches import batches
from headscope.corpus.conllu import TreebankCorpus
from headscope.corpus.coref.reader import CorefCorpus
from headscope.corpus.counts import EncodeCounts
from headscope.corpus.demo_corpus import demo_corpus
from headscope.corpus.document import (
    Corpus,
    Document,
    Example,
    Frame,
    FrameElement,
    Mention,
    Passage,
    Word,
)
from headscope.corpus.encode import Encoder
from headscope.corpus.framenet.exemplars import FrameFilters
from headscope.corpus.framenet.reader import FramesCorpus
from headscope.corpus.memory import Concatenation, MemoryCorpus
from headscope.corpus.segments import SegmentsCorpus
from headscope.corpus.text import TextCorpus

__all__ = [
    "AnnotatedCorpus",
    "Annotator",
    "Concatenation",
    "CorefCorpus",
    "Corpus",
    "Document",
    "EncodeCounts",
    "Encoder",
    "Example",
    "Frame",
    "FrameElement",
    "FrameFilters",
    "FramesCorpus",
    "MemoryCorpus",
    "Mention",
    "Passage",
    "SegmentsCorpus",
    "TextCorpus",
    "TreebankCorpus",
    "Word",
    "batches",
    "demo_corpus",
]
