"""Our formats of corpora, announced as entry points; another package's are beside them."""

from headscope.corpus.coref.conll2012 import BEGIN
from headscope.corpus.coref.coref_corpus import CorefCorpus
from headscope.corpus.places import FileFormat
from headscope.corpus.plain_text import SegmentsCorpus
from headscope.corpus.treebank import TreebankCorpus

CONLL = (".conllu", ".conllx", ".conll", ".v4_gold_conll", ".v4_auto_conll")
TREES = FileFormat("trees", CONLL, TreebankCorpus)
COREFERENCE = FileFormat("coreference", CONLL, CorefCorpus, begins=BEGIN)
SEGMENTS = FileFormat("JSON lines", (".jsonl", ".ndjson"), SegmentsCorpus)
