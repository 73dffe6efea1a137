"""Which maps does `headscope patterns annotate` draw for a new session, by its options?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from headscope.cli.annotating import annotate
from headscope.cli.options import CORPORA, read_corpus
from headscope.cli.terminal import say
from headscope.errors import CorpusError

if TYPE_CHECKING:
    from headscope.analyses.patterns.session import Drawn, Session
    from headscope.corpus import Corpus
    from headscope.corpus.document import Example
    from headscope.model.model import Model

LOADING = ("device", "dtype", "revision", "trust_remote_code")


def new_session(models: Sequence[str], given: Mapping[str, Any]) -> Session:
    """Draws maps from every model and text; all that can be wrong is found as early as it can."""
    if not models:
        raise click.UsageError(
            f"{given['output']} is no session yet; wanted a MODEL and a corpus to draw maps from"
        )
    models = list(dict.fromkeys(models))
    if given["maps"] < len(models):
        raise click.UsageError(f"found {len(models)} models; wanted at least as many --maps")
    texts = dict(corpora_by_name(given))
    from headscope.analyses.patterns.session import Session, shuffled

    for corpus in texts.values():
        for note in annotate(corpus, quiet=given["quiet"]):
            if not given["as_json"]:
                say(note)
    drawn: list[Drawn] = []
    for place, name in enumerate(models):
        share = (given["maps"] + place) // len(models)
        drawn += _drawn(name, texts, share, given)
    return Session.create(given["output"], shuffled(drawn, seed=given["seed"]))


def corpora_by_name(given: Mapping[str, Any]) -> Iterator[tuple[str, Corpus]]:
    """Each file as a corpus, named after itself; `demo` for the bundled one."""
    read_corpus(given, limit=given["limit"])  # complains of options that do not go together
    nothing = {**given, **dict.fromkeys(CORPORA, ()), "annotate": None}
    if given["demo"]:
        yield "demo", read_corpus({**nothing, "demo": True})
    files = [(option, file) for option in CORPORA[1:] for file in dict.fromkeys(given[option])]
    names = ["demo"] * bool(given["demo"]) + [file.name for _, file in files]
    for option, file in files:
        parser = given["annotate"] if option in ("text", "segments") else None
        name = file.name if names.count(file.name) == 1 else f"{option} {file}"
        one = {**nothing, option: (file,), "annotate": parser}
        yield name, read_corpus(one, limit=given["limit"])


def _drawn(
    name: str, texts: Mapping[str, Corpus], count: int, given: Mapping[str, Any]
) -> list[Drawn]:
    from headscope.analyses.patterns.sample import draw
    from headscope.model.model import load

    model = load(name, **{option: given[option] for option in LOADING})
    examples = {text: _examples(model, corpus, given) for text, corpus in texts.items()}
    for text, found in examples.items():
        if not found:
            raise CorpusError(f"{text}: nothing in it can be shown to {name}")
    return draw(model, examples, name=name, count=count, seed=given["seed"])


def _examples(model: Model, corpus: Corpus, given: Mapping[str, Any]) -> list[Example]:
    """Second segments are marked for every model: the eye sees them in maps of all."""
    from headscope.corpus import Encoder

    encoder = Encoder(
        model.tokenizer, model_limit=model.limit, has_segments=True,
        max_length=min(given["max_length"], model.limit), seed=given["seed"],
    )  # fmt: skip
    documents = islice(corpus, given["limit"])
    return [example for document in documents for example in encoder.encode(document)]
