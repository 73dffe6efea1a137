"""One text as a model reads it."""

from __future__ import annotations

from headscope.corpus.document import Document, Example, Passage
from headscope.corpus.encoder import Encoder
from headscope.errors import CorpusError, InputError
from headscope.model.model import Model


def encoded(model: Model, text: str, text_pair: str | None) -> Example:
    """The text as the model reads it; raises InputError for one that is empty or does not fit."""
    if not text.strip():
        raise InputError("found an empty text; wanted something to read")
    # Segments as the tokenizer cuts them, also where the model does not tell them apart.
    encoder = Encoder(model.tokenizer, model_limit=model.limit, has_segments=True, long="error")
    document = Document("text", (Passage("the text", text=text, text_pair=text_pair),))
    try:
        examples = encoder.encode(document)
    except CorpusError as error:  # its advice is for corpora
        told = str(error).partition(";")[0]
        raise InputError(f"{told}; wanted a text that fits whole: shorten it") from error
    if not examples:
        raise InputError(
            f"the tokenizer gives no tokens for {text[:40]!r}; wanted text it can read"
        )
    return examples[0]
