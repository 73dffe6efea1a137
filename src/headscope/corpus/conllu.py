"""How do dependency treebanks in CoNLL-U or CoNLL-X become documents?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from headscope.corpus.coref.corefud import document_passage
from headscope.corpus.document import Document, Passage
from headscope.corpus.files import Files, UniqueNames, checked_files, described, labels
from headscope.corpus.policy import OnError, checked_policy, described_policy, left_out, obeyed
from headscope.corpus.sentences import Sentence, documents


@dataclass(frozen=True, init=False)
class TreebankCorpus:
    """CoNLL-U or CoNLL-X files; every sentence is a passage of syntactic words.

    on_error     what to do with a malformed sentence: `stop`, or `skip` it and go on (the encoder
                 counts it as malformed, with its place)
    coreference  whether each document is read once more, behind its sentences, as one passage
                 `…/document` of bare words with the mentions that CorefUD `Entity=` marks give

    A document starts at each `# newdoc`. In a file without any, each sentence is a document of
    its own. Words are the numbered rows: multiword ranges and empty nodes are left out. Labels may
    be anything; a sentence may have several roots. The sentences carry no mentions: coreference is
    asked of whole documents.
    """

    files: tuple[Path, ...]
    on_error: OnError
    coreference: bool

    def __init__(
        self, files: Files, *, on_error: OnError = "stop", coreference: bool = False
    ) -> None:
        object.__setattr__(self, "files", checked_files(files))
        object.__setattr__(self, "on_error", checked_policy(on_error))
        object.__setattr__(self, "coreference", coreference)

    def __iter__(self) -> Iterator[Document]:
        """Yields the documents of all files, in order.

        raises  CorpusError with file, line and sentence for a row, head or tree that is malformed,
                unless on_error is `skip`
        """
        return obeyed(self._documents(), self.on_error)

    def describe(self) -> dict[str, Any]:
        """What was read: `kind`, `files` (name and sha256 of each), options beside the default."""
        extra = {"coreference": True} if self.coreference else {}
        policy = described_policy(self.on_error)
        return {"kind": "treebank", "files": described(self.files), **extra, **policy}

    def _documents(self) -> Iterator[Document]:
        names = UniqueNames()
        for path, label in zip(self.files, labels(self.files), strict=True):
            found = False
            for name, sentences in documents(path, label):
                found = True
                unique = names.of(name, place=sentences[0].name)
                passages = [_passage(sentence) for sentence in sentences]
                if self.coreference:
                    whole = document_passage(name, sentences)
                    passages.append(replace(whole, id=f"{unique}/document"))
                yield Document(unique, tuple(passages))
            if not found:
                yield left_out(label, f"{path} holds no sentence; wanted CoNLL-U rows")


def _passage(sentence: Sentence) -> Passage:
    if sentence.fault is not None:
        return Passage(sentence.name, fault=sentence.fault)
    return Passage(sentence.name, words=sentence.words)
