"""Hostile strings in every place of every page: a browser must find no element that names make.

Words, tags, relations, documents, the tokens of the model and the names of models are hostile. The
same pages with harmless strings say which elements and attributes there may be; a page may say
nothing to the console, open no dialog and ask for nothing. A string hits a page that shows it.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from trials.file_operations import memory
from trials.hostile_results import CODE, IN_A_TABLE, reports, site
from trials.outcomes import Tally

SPLIT = "\ue000"  # between the tokens of a text
# A tokenizer that knows no text is refused: this one knows the first that it is asked for.
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "The cat sat on the mat.")
IN_A_BATCH = 110
IN_A_VIEW, IN_A_SENTENCE = (
    40,
    14,
)  # tokens of a text; words, of which a report shows eight times so many
# What pages show of the strings: a card has few of any batch, a comparison not all that differ.
COMPARED, MOST = 0.6, {"head card": 15, "site": IN_A_TABLE}
FEW = ("surface", "entropy", "features")  # analyses
MADE = ("report", "compare", "head card", "view", "annotation page")  # of a run of a made model
KEPT = {"code cells": reports, "site": site}  # of a real one
KINDS = (*MADE, *KEPT)
# What a script, a picture or a link of its own would be: (element, attribute) pairs and handlers
FOUND = """() => {
  const found = new Set();
  for (const one of document.querySelectorAll("*")) {
    found.add(one.localName);
    for (const attribute of one.attributes) found.add(`${one.localName} ${attribute.name}`);
    for (const name of ["src", "href", "action", "data", "srcdoc"]) {
      const value = one.getAttribute(name);
      if (value !== null && !value.startsWith("#")) found.add(`${one.localName} ${name}=${value}`);
    }
  }
  for (const name of ["script", "style", "meta", "base", "form", "title"]) {
    found.add(`${document.querySelectorAll(name).length} of ${name}`);
  }
  return [...found];
}"""
TEXT = """() => [
  document.documentElement.textContent,
  ...[...document.querySelectorAll("*")].flatMap(one => [...one.attributes].map(a => a.value)),
].join("\\n")"""
PIECES = (
    "<script>", "</script>", "<", ">", "</", "/>", "<!--", "-->", "]]>", "<![CDATA[", "'", '"', "`",
    "&lt;", "&#60;", "&", ";", "=", " onerror=alert(1) ", "<img src=x", "<svg", "<math>",
    "</title>", "</style>", "{{", "}}", "{%", "%}", "${", "}", "\\", "\\u003c", "\u2028", "\u2029",
    "\x00", "\n", "\t", " ", "\u202e", "\ufeff", "javascript:", "//x", "$", "$\\frac{", "_", "^",
    "é", "中", "\ud800", "__proto__", "data:text/html,", "/*", "*/", "url(", "@import ", "a",
    "word", "#data", "\\\"",
)  # fmt: skip


@click.command("pages")
@click.option("--generated", default=2000, show_default=True, help="Strings beside the known ones.")
@click.option("--seed", default=0, show_default=True, help="Seed of the generated ones.")
@click.option("--keep", default="trials-failed", show_default=True, type=click.Path(path_type=Path))
def command(generated: int, seed: int, keep: Path) -> None:
    """Hostile strings in reports, cells of tables, cards, views, sites, comparisons, annotation."""
    with Tally(keep.absolute()).told() as tally, launched() as browser:
        attempt_all(browser, payloads(generated, seed=seed), tally)


def payloads(generated: int, *, seed: int = 0) -> list[str]:
    """The known hostile strings, and so many made of their pieces."""
    from views.hostile import HOSTILE

    draws = random.Random(seed)
    made = ("".join(draws.choices(PIECES, k=draws.randint(1, 8))) for _ in range(generated))
    return [*HOSTILE, *made]


def attempt_all(
    browser: Any,
    strings: Sequence[str],
    tally: Tally,
    *,
    size: int = IN_A_BATCH,
    kinds: Sequence[str] = KINDS,
) -> None:
    """All pages with the strings, so many at once; one batch after the harmless one."""
    tally.share["compare"] = COMPARED
    with tempfile.TemporaryDirectory(prefix="trial-", dir=memory()) as folder:
        tame = [f"word{n}" for n in range(size)]
        harmless = dict(looked(browser, tame, Path(folder) / "tame", kinds))
        for kind, (_, complaints, _) in harmless.items():
            if complaints:
                raise RuntimeError(f"{kind} complains of harmless strings: {complaints}")
        for number, begin in enumerate(range(0, len(strings), size)):
            batch = strings[begin : begin + size]
            place = Path(folder) / str(number)
            words = [word for word in map(squeezed, tokens_of(batch)) if word]
            for kind, (found, complaints, text) in looked(browser, batch, place, kinds):
                more = sorted(found - harmless[kind][0])
                outcome = "wrong" if more or complaints else "only text"
                what = f"strings {begin} to {begin + len(batch)}: {more} {complaints}"
                tries = min(len(words), MOST.get(kind, len(words)))
                # An annotation page never says what its maps are of.
                shown = words if kind == "annotation page" else [w for w in words if w in text]
                hits = min(tries, len(shown))
                tally.add(kind, outcome, what, hits, tries, files=place)


@contextmanager
def launched() -> Iterator[Any]:
    """A Chromium, closed at the end of the context."""
    from playwright.sync_api import sync_playwright

    from conftest import CHROMIUM

    with sync_playwright() as player:
        browser = player.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


def looked(
    browser: Any, strings: Sequence[str], folder: Path, kinds: Sequence[str]
) -> Iterator[tuple[str, tuple[set[str], list[str], str]]]:
    """(kind of page, (elements and attributes, complaints, text)) of the pages with the strings."""
    for kind, files in pages(strings, folder, kinds).items():
        if kind == "annotation page":
            yield kind, ({file.read_text("utf-8") for file in files}, [], "")
            continue
        seen = [looked_at(browser, file, CODE if kind == "code cells" else TEXT) for file in files]
        found = set[str]().union(*(each[0] for each in seen))
        complaints = [words for each in seen for words in each[1]]
        yield kind, (found, complaints, squeezed("".join(each[2] for each in seen)))


def looked_at(browser: Any, file: Path, text_of: str) -> tuple[set[str], list[str], str]:
    """Elements and attributes, complaints and text of a page."""
    complaints, own = list[str](), file.as_uri()
    page = browser.new_page()
    page.on("console", lambda message: complaints.append(message.text[:200]))
    page.on("pageerror", lambda error: complaints.append(str(error)[:200]))
    page.on("dialog", lambda dialog: (complaints.append("dialog"), dialog.dismiss()))
    page.on("request", lambda sent: sent.url == own or complaints.append(sent.url[:200]))
    page.goto(own)
    found, text = set(page.evaluate(FOUND)), page.evaluate(text_of)
    page.evaluate("() => document.querySelectorAll('details').forEach(d => d.open = true)")
    for view in page.locator("[role=tab]").all():  # the views of one text
        view.click()
        found |= set(page.evaluate(FOUND))
        text += page.evaluate(text_of)
    page.close()
    return found, complaints, text


def squeezed(text: str) -> str:
    """The text without what pages may change of it: white space, and what has no sign."""
    return "".join(sign for sign in text if sign.isprintable() and sign != " ")


def pages(strings: Sequence[str], folder: Path, kinds: Sequence[str]) -> dict[str, list[Path]]:
    """Pages of each kind that show the strings."""
    import headscope as hs
    from headscope.experiments.map_classifier.annotation_session import Session
    from headscope.heads.head_card import head_card
    from headscope.live.annotation import annotation_page
    from headscope.report.card_page import build_card

    folder.mkdir()
    with without_pictures():
        files = {
            kind: make(tokens_of(strings), folder) for kind, make in KEPT.items() if kind in kinds
        }
    if not set(MADE) & set(kinds):
        return files
    model = hostile_model(strings, seed=0)
    execution = hs.Execution(linears="stock", threads=1, command=tuple(strings[:20]))
    corpus = hs.corpus.MemoryCorpus(documents(strings))
    run = hs.atlas(
        model,
        corpus,
        output=folder / "run",
        replicates=2,
        control="none",
        execution=execution,
        shard_tokens=1 << 20,
        analyses=None if "report" in kinds else FEW,
    )
    with without_pictures():
        if "report" in kinds:
            files["report"] = [run.report()]
        if "compare" in kinds:
            pair = hs.compare(
                model,
                hostile_model(strings, seed=1),
                corpus,
                output=folder / "pair",
                execution=execution,
                settings=hs.Settings(analyses=FEW, replicates=2),
            )
            files["compare"] = [pair.report()]
    files["head card"] = [build_card(run.tree, head_card(run.tree, 0, 1), folder / "card.html")]
    words = tokens_of(strings)
    files["view"] = [
        hs.view(model, SPLIT.join(words[at : at + IN_A_VIEW]), atlas=run).save(
            folder / f"view-{at}.html"
        )
        for at in range(0, len(words), IN_A_VIEW)
    ]
    session = Session.create(folder / "session", drawn(strings))
    (folder / "annotate.html").write_bytes(annotation_page(session, "a")[0])
    files["annotation page"] = [folder / "annotate.html"]
    return {kind: files[kind] for kind in kinds}


class without_pictures:
    """Inside, pages have no figures: these have tests of their own, and take most of the time."""

    def __enter__(self) -> None:
        from headscope.report import build

        self.kept = build.pictures, build.save_figures
        build.pictures, build.save_figures = dict, lambda *_, **__: []  # type: ignore[assignment]

    def __exit__(self, *_: object) -> None:
        from headscope.report import build

        build.pictures, build.save_figures = self.kept


def tokens_of(strings: Sequence[str]) -> list[str]:
    """The strings that a tokenizer can hold, each once."""
    valid = (s.encode("utf-8", "ignore").decode().replace(SPLIT, "") for s in strings)
    return [s for s in dict.fromkeys(valid) if s.strip() and len(s) < 500]


def hostile_model(strings: Sequence[str], *, seed: int) -> Any:
    """A tiny model that knows exactly the strings; its name is one."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import BertModel, PreTrainedTokenizerFast

    import headscope as hs
    from tasks.made import config

    words = [*SPECIAL, *(t for t in tokens_of(strings) if t not in SPECIAL)]
    core = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="[UNK]"))
    core.pre_tokenizer = pre_tokenizers.Split(SPLIT, "removed")
    core.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_max_length=48,
    )
    torch.manual_seed(seed)
    network = BertModel(config(vocab_size=len(words)))
    model = hs.load(network, tokenizer=tokenizer)
    return replace(model, name=strings[(7 + seed) % len(strings)], revision=strings[-1 - seed])


def documents(strings: Sequence[str]) -> list[Any]:
    """Sentences of the strings as words; each is a tag, a relation and a document, too."""
    from headscope.corpus import Document, Mention, Passage, Word
    from headscope.corpus.document import Frame, FrameElement

    words, found = tokens_of(strings), []
    for begin in range(0, len(words), IN_A_SENTENCE):
        some = words[begin : begin + IN_A_SENTENCE]
        if len(some) < 4:
            continue
        sentence = tuple(
            Word(word, upos=word, xpos=word, head=place - 1, relation=word)
            for place, word in enumerate(some)
        )
        name = strings[begin % len(strings)]
        mentions = tuple(Mention(name, n, n, n, "nominal") for n in (0, 2))
        frames = (Frame(name, 1, 1, (FrameElement(some[0], 2, 3),)),)
        passage = Passage(name, words=sentence, mentions=mentions, frames=frames)
        found += [Document(f"{name} {begin} {again}", (passage,)) for again in range(2)]
    return found


def drawn(strings: Sequence[str]) -> list[Any]:
    """Maps to label, of hostile models and texts."""
    from experiments.map_classifier.made import make_drawn

    names = tuple(strings[at % len(strings)] for at in range(4))
    return make_drawn(4, names=names)
