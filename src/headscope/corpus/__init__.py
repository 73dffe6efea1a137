"""Read texts, treebanks and other annotated corpora, and turn them into model inputs.

Readers (re-iterable, one document at a time) ─► Document ─► Encoder ─► Example ─► batches

Each name is imported when it is first used: one reader needs none of the others.
"""

from headscope import imported_when_used

_WHERE = {
    "AnnotatedCorpus": "headscope.corpus.annotate.annotated",
    "Annotator": "headscope.corpus.annotate",
    "ColumnCorpus": "headscope.corpus.columns",
    "Concatenation": "headscope.corpus.document",
    "CorefCorpus": "headscope.corpus.coref.coref_corpus",
    "Corpus": "headscope.corpus.document",
    "CorpusLike": "headscope.corpus.given_corpus",
    "DatasetCorpus": "headscope.corpus.columns",
    "Document": "headscope.corpus.document",
    "EncodeCounts": "headscope.corpus.contents",
    "Encoder": "headscope.corpus.encoder",
    "Example": "headscope.corpus.document",
    "Frame": "headscope.corpus.document",
    "FrameElement": "headscope.corpus.document",
    "FrameFilters": "headscope.corpus.framenet_exemplars",
    "FramesCorpus": "headscope.corpus.framenet",
    "MemoryCorpus": "headscope.corpus.document",
    "Mention": "headscope.corpus.document",
    "Passage": "headscope.corpus.document",
    "SegmentsCorpus": "headscope.corpus.plain_text",
    "TextCorpus": "headscope.corpus.plain_text",
    "TreebankCorpus": "headscope.corpus.treebank",
    "Word": "headscope.corpus.document",
    "batches": "headscope.corpus.packing",
    "corpus_of": "headscope.corpus.given_corpus",
    "demo_corpus": "headscope.corpus.treebank",
}
__all__ = sorted(_WHERE)  # noqa: PLE0605
__getattr__ = imported_when_used(__name__, _WHERE)


def __dir__() -> list[str]:
    return __all__
