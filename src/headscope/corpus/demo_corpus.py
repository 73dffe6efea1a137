"""Which corpus does headscope bring along, to try it without any data?"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from headscope.corpus.conllu import TreebankCorpus

FOLDER = "demo"


def demo_corpus() -> TreebankCorpus:
    """The bundled English documents, in the order of their names.

    Each gives its sentences, with UD trees, and then the whole document once more, with mentions.
    They were written for headscope and stand under its licence.
    """
    folder = Path(str(files("headscope.corpus"))) / FOLDER
    return TreebankCorpus(sorted(folder.glob("*.conllu")), coreference=True)
