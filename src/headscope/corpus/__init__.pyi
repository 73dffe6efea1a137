"""The names for type checkers; each is imported when it is first used (`__init__.py`)."""

from headscope.corpus.annotate import Annotator as Annotator
from headscope.corpus.annotate.annotated import AnnotatedCorpus as AnnotatedCorpus
from headscope.corpus.columns import ColumnCorpus as ColumnCorpus
from headscope.corpus.columns import DatasetCorpus as DatasetCorpus
from headscope.corpus.contents import EncodeCounts as EncodeCounts
from headscope.corpus.coref.coref_corpus import CorefCorpus as CorefCorpus
from headscope.corpus.document import Concatenation as Concatenation
from headscope.corpus.document import Corpus as Corpus
from headscope.corpus.document import Document as Document
from headscope.corpus.document import Example as Example
from headscope.corpus.document import Frame as Frame
from headscope.corpus.document import FrameElement as FrameElement
from headscope.corpus.document import MemoryCorpus as MemoryCorpus
from headscope.corpus.document import Mention as Mention
from headscope.corpus.document import Passage as Passage
from headscope.corpus.document import Word as Word
from headscope.corpus.encoder import Encoder as Encoder
from headscope.corpus.framenet import FramesCorpus as FramesCorpus
from headscope.corpus.framenet_exemplars import FrameFilters as FrameFilters
from headscope.corpus.given_corpus import CorpusLike as CorpusLike
from headscope.corpus.given_corpus import corpus_of as corpus_of
from headscope.corpus.packing import batches as batches
from headscope.corpus.plain_text import SegmentsCorpus as SegmentsCorpus
from headscope.corpus.plain_text import TextCorpus as TextCorpus
from headscope.corpus.treebank import TreebankCorpus as TreebankCorpus
from headscope.corpus.treebank import demo_corpus as demo_corpus
