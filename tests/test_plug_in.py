"""Is what a stranger's wheel brings, a question, command, format and paper, used as ours are?

The code is that of the docs, word for word but for a threshold that random weights can pass. Beside
the wheel stand four plug-ins that are impossible, put there by hand.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import headscope as hs
from forked import forked
from made_models import small_bert

ROOT = Path(__file__).resolve().parents[1]
COMMAND = '''
import click

@click.command("most")
@click.argument("run")
def most(run):
    """Name the largest weight of RUN."""
    import headscope as hs
    click.echo(f"{float(hs.open_run(run)['largest']['weight'].max()):.6f}")
'''
MORE_ENTRIES = """
[project.entry-points."headscope.commands"]
most = "largest.command:most"

[project.entry-points."headscope.formats"]
bars = "largest.bars:BARS"

[project.entry-points."headscope.papers"]
mine2026 = "largest.paper:PAPER"
"""
BROKEN = """
import numpy as np
from headscope.claims.plan import ClaimPlan, DrawnPanel, Grid, LabelRule, PicturePlan
from headscope.claims.question import Question
from headscope.claims.terms import Term
import headscope as hs

class Slips(hs.plugins.Analysis):
    name = "slips"

    def __init__(self, scope):
        super().__init__(scope)
        self.total, self.examples = self.sums(scope.layers, scope.heads, 2), self.sums()

    def observe(self, layer, batch):
        top = batch.mean_over_queries(layer.attention.amax(-1))
        self.total.add(np.stack([top, 1 - top], -1), batch.groups, at=(layer.index,))
        if layer.index == 0:
            self.examples.add(np.ones(len(top)), batch.groups)

    def result(self):
        words = ("largest and rest", "probability", "ours")
        mean = self.mean(self.total, self.examples)
        return hs.plugins.labelled(
            {"most": hs.plugins.Variable(mean, ("layer", "head", "part"), *words)},
            coords={"part": ["top", "rest"]},
        )

def slipping(run, axes):
    axes.plot([0], [0], markersizes=3)

SLIP = LabelRule("slip", number="x", least=0.0, source="ours", variable="most")
SLIPS = Question(
    name="slips",
    package=__name__,
    measure=Slips,
    terms={"most": Term("most", "What most gets.", "ours")},
    figures=(
        PicturePlan(
            name="slip_drawn",
            title="A panel that fails",
            panels=(
                DrawnPanel(title="Fails", needs="most.top", by=slipping),
                Grid(title="Drawn all the same", needs="most.top"),
            ),
            caption="Share {shere:%}.",
            text="A section with a slip.",
            finding="The most is {most.topp:%}.",
        ),
    ),
    claims=(
        ClaimPlan(
            kind="slip", rule=SLIP, share="most.topp", label="slip {share:%}", sentence="slips"
        ),
    ),
)
CLASH = Question(name="clash", terms={"stays": Term("stays put", "In place.", "ours")})
NOWHERE = Question(
    name="nowhere",
    terms={"most": Term("most", "What most gets.", "ours")},
    claims=(ClaimPlan(kind="x", rule=SLIP, share="mosts.top", label="x", sentence="x"),),
)

class Alone(hs.plugins.Analysis):
    name = "alone"
    summary = "an analysis class, announced without a question"

class Greedy(hs.plugins.Analysis):
    name = "greedy"
    needs = frozenset({"telepathy"})

FIGURE = PicturePlan(name="blank", title="Blank", panels=lambda run: [])
RULE = LabelRule("x", number="x", least=0.0, source="ours", variable="nowhere")
TWICE = Question(name="surface", title="Another surface")
UNCAPTIONED = Question(name="uncaptioned", figures=(FIGURE,))
UNFOUNDED = Question(
    name="unfounded", terms={"weight": Term("w", "w")}, claims=lambda tree: [], rules={"x": RULE}
)
GREEDY = Question(name="greedy", measure=Greedy)
"""
BROKEN_ENTRIES = """
[headscope.analyses]
alone = broken:Alone
twice = broken:TWICE
uncaptioned = broken:UNCAPTIONED
unfounded = broken:UNFOUNDED
greedy = broken:GREEDY
slips = broken:SLIPS
clash = broken:CLASH
nowhere = broken:NOWHERE
"""
# What a user does, in one process that finds the stranger's distribution.
SESSION = """
import json, sys, warnings
from click.testing import CliRunner

site, model, run = sys.argv[1:]
sys.path.insert(0, site)
from headscope.cli.main import announced_commands, group
from headscope.claims import question
from headscope.corpus import places
from headscope.papers.run_paper import papers
from headscope.draw import saving

for known in (question._announced, places.formats, papers, announced_commands):
    known.cache_clear()  # of the process that this one is forked from
saving.RESOLUTION = 60  # as for all tests: see conftest.py
options = ["--text", "corpus.bars", "--analyses", "surface,largest,slips", "--replicates", "20"]
quick = ["--control", "none", "--quiet"]
asked = {
    "atlas": ["atlas", model, *options, "--linears", "stock", *quick, "--output", run],
    "help": ["--help"],
    "command": ["most", run],
    "paper": ["reproduce", "mine2026", "--model", model, "--no-report", *quick, "-o", "paper"],
    "analyses": ["analyses"],
    "doctor": ["doctor", model],
    "text": ["head", run, "L1H1"],
    "json": ["head", run, "L1H1", "--json"],
}
with warnings.catch_warnings(record=True) as warned:
    warnings.simplefilter("always")
    told = {name: CliRunner().invoke(group, args) for name, args in asked.items()}
failed = {name: repr(one.exception) + one.output for name, one in told.items() if one.exit_code}
texts = {name: one.stdout for name, one in told.items()}
print(json.dumps({"failed": failed, "texts": texts, "warned": [str(w.message) for w in warned]}))
"""


def files_of_the_docs(page: str = "your-own-analysis") -> dict[str, str]:
    """Path -> content of every file that a page asks for."""
    text = (ROOT / f"docs/{page}.md").read_text("utf-8")
    blocks = re.findall(r"```(?:python|toml)\n# (\S+)\n(.*?)```", text, flags=re.DOTALL)
    return dict(blocks)


def files_of_the_wheel() -> dict[str, str]:
    """Those of the question, and beside them a format and a paper of the docs, and a command."""
    files, python = files_of_the_docs(), (ROOT / "docs/python.md").read_text("utf-8")
    (bars,) = re.findall(r"```python\n(from pathlib[^`]*FileFormat\([^`]*)```", python)
    return files | {
        "pyproject.toml": files["pyproject.toml"] + MORE_ENTRIES,
        "largest/command.py": COMMAND,
        "largest/bars.py": f"import headscope as hs\n{bars}",
        "largest/paper.py": files_of_the_docs("reproduce")["mine.py"],
    }


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """A folder with the stranger's distribution, built and installed, and the broken one."""
    place = tmp_path_factory.mktemp("plug_in")
    broken = {
        "broken/__init__.py": BROKEN,
        "broken-1.0.dist-info/entry_points.txt": BROKEN_ENTRIES,
        "broken-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n",
    }
    for name, files in (("largest", files_of_the_wheel()), ("site", broken)):
        for path, text in files.items():
            file = place / name / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text.replace("least=0.5", "least=0.01"), "utf-8")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    pip += ["--no-build-isolation", "--disable-pip-version-check", "--target", str(place / "site")]
    project = str(place / "largest")
    done = subprocess.run([*pip, project], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return place


@pytest.fixture(scope="module")
def session(installed) -> dict:
    """What the commands said, and the run folder at `run`."""
    model, run = small_bert(installed / "model"), installed / "run"
    texts = [f"The cat number {number} sat on the mat, and slept." for number in range(6)]
    (installed / "corpus.bars").write_text("|".join(texts), "utf-8")
    with forked(installed / "site", model, run, cwd=installed, code=SESSION) as process:
        told, complaints = process.communicate()
    assert process.returncode == 0, complaints
    return {**json.loads(told.splitlines()[-1]), "run": run}


def test_the_plug_in_of_the_docs_is_small():
    files = files_of_the_docs()
    assert len([path for path in files if path.startswith("largest/")]) == 2
    assert sum(len(text.splitlines()) for text in files.values()) <= 100


def test_a_strangers_question_is_run_reported_drawn_and_tabled(session):
    assert session["failed"] == {}
    run = session["run"]
    page = (run / "report.html").read_text("utf-8")
    for words in (
        "A head that gives nearly all of its attention to one token has made a choice.",
        "Each cell is one head: the largest weight of a query",
        "largest weight of a query",
        "What the most attended token of a query gets.",
    ):
        assert words in page
    assert any("largest_weights" in file.name for file in run.rglob("*.svg"))
    table = (run / "tables/largest.csv").read_text("utf-8")
    assert len(table.splitlines()) == 1 + 2 * 4
    assert ",sure," in (run / "tables/head_labels.csv").read_text("utf-8")
    assert "largest " in session["texts"]["analyses"]


def test_a_strangers_numbers_and_labels_are_on_the_card_of_a_head(session):
    text, card = session["texts"]["text"], json.loads(session["texts"]["json"])
    assert "Largest weights" in text
    assert "largest weight of a query" in text
    assert "sure" in text
    (label,) = (label for label in card["labels"] if label["kind"] == "sure")
    assert label["analysis"] == "largest"
    assert "largest.weight" in {number["key"] for number in card["numbers"]}


def test_a_strangers_format_is_read_command_listed_and_run_and_paper_judged(session):
    run, texts = hs.open_run(session["run"]), session["texts"]
    assert run.manifest["counts"]["documents"] == 6
    assert "most     " in texts["help"].partition("doctor ")[2]
    assert texts["command"] == f"{float(run['largest']['weight'].max()):.6f}\n"
    paper = session["run"].parent / "paper"
    (line,) = json.loads((paper / "lines.json").read_text("utf-8"))["lines"]
    mean = hs.open_run(paper / "runs/sentences")["surface"]["attention"].sel(target="self").mean()
    assert line["ours"] == pytest.approx(100 * float(mean), abs=1e-4)
    assert line["status"] == "holds"
    assert "Heads look at themselves" in (paper / "report.html").read_text("utf-8")


def test_an_analysis_class_alone_is_known_too(session):
    assert "announced without a question" in session["texts"]["analyses"]


def test_a_part_that_fails_is_left_out_by_name_and_the_report_goes_on(session):
    page = (session["run"] / "report.html").read_text("utf-8")
    assert "A section with a slip." in page
    assert "Drawn all the same" in page
    warned = " ".join(session["warned"])
    for part, why in (
        ("the panel by", "AttributeError: Line2D.set() got an unexpected keyword argument"),
        ("the text 'Share {shere:%}.'", "found the number 'shere'; wanted one of most"),
        ("the text 'The most is {most.topp:%}.'", "wanted one of most.top, most.rest"),
        ("the claim 'slip'", "found 'most.topp'; wanted one of most.top, most.rest"),
    ):
        assert f"{part}" in warned
        assert why in warned


REFUSED = {
    "surface": "another question is called 'surface' already",
    "uncaptioned": "its figure 'blank' has no caption",
    "unfounded": "rests on a variable 'nowhere'",
    "greedy": "needs ['telepathy']",
    "clash": "its term 'stays' has another meaning already; rename it",
    "nowhere": "the share 'mosts.top' of its claim 'x' is no variable of its own (most)",
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_impossible_question_is_left_out_by_name_and_the_rest_goes_on(session, name):
    said = REFUSED[name]
    assert any(said in warning and name in warning for warning in session["warned"])
    for command in ("analyses", "doctor"):
        assert said in session["texts"][command]
    assert f"\n{name} " not in session["texts"]["analyses"] or name == "surface"
