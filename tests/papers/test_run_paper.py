"""Does a paper run from end to end, go on where it stopped, and show hostile names as text?"""

from __future__ import annotations

import csv
import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from counting import names_in
from headscope.cli.main import group
from headscope.papers.own_models import own_model
from headscope.papers.paper_data import KEYS
from headscope.papers.quantities import Unmeasured
from headscope.papers.run_paper import papers
from headscope.papers.workspace import make_runs
from tasks.made import checkpoint

ROOT = Path(__file__).resolve().parents[2]
HOSTILE = '<img src=x onerror=alert(1)>&"'
# Six documents, none like another: with fewer than five there are no intervals.
TEXT = "the cat a b . the cats , a b .\nthe cat .\n\na cat , the cat a b .\n\nb the cats a .\n\n"
TEXT += TEXT.replace("the", "b")


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """A tiny model and text with names that a page must escape, and the folder of a first run."""
    folder = tmp_path_factory.mktemp("desk")
    checkpoint(folder / HOSTILE)
    (folder / f"{HOSTILE}.txt").write_text(TEXT)
    return folder


def words(desk, out: str) -> list[str]:
    return [
        "reproduce",
        "kobayashi2020",
        "--model",
        str(desk / HOSTILE),
        "--data",
        f"text={desk / HOSTILE}.txt",
        "--replicates",
        "10",
        "--threads",
        "1",
        "--no-report",
        "-o",
        str(desk / out),
    ]


def run(desk, *more: str, out: str = "out"):
    return CliRunner().invoke(group, [*words(desk, out), *more])


@pytest.fixture(scope="module")
def done(desk):
    result = run(desk, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_every_line_has_a_status_in_the_order_of_the_paper(done, desk):
    assert sum(done["counts"].values()) == len(done["lines"])
    assert done["own_model"] is False
    assert not any(p["agrees"] for line in done["lines"] for p in line["published"])
    assert done["counts"]["not asked"] > 0
    with (desk / "out/lines.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert "published_other_model" in rows[0]
    assert list(dict.fromkeys(row["key"] for row in rows)) == [x["key"] for x in done["lines"]]
    assert json.loads((desk / "out/lines.json").read_text())["lines"] == done["lines"]


def test_lines_hold_numbers_with_intervals_and_what_they_need(done):
    lines = {line["key"]: line for line in done["lines"]}
    mean = lines["table1-mean-CV"]
    assert mean["ci_low"] <= mean["ours"] <= mean["ci_high"]
    assert mean["published"][0]["difference"] == pytest.approx(mean["ours"] - 0.22)
    assert lines["alignment-0"]["status"] == "not asked"
    assert lines["alignment-0"]["reason"].startswith("needs alignment: ")
    assert lines["data-inputs"]["ours"] == 6


def test_lines_are_held_against_networks_without_training(done, desk, no_control):
    assert all(line["untrained"] is None for line in done["lines"])
    result = run(desk, "--json", "--control", no_control, out="held")
    assert result.exit_code == 0, result.output
    lines = json.loads(result.stdout)["lines"]
    held = [line for line in lines if line["untrained"] is not None]
    assert held
    assert all(line["status"] == "holds" for line in held)
    also = {line["key"] for line in held if line["untrained"]}  # the model is random itself
    assert also
    with (desk / "held/lines.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["key"] for row in rows if row["untrained"] not in ("", "none")} == also
    page = (desk / "held/report.html").read_text("utf-8")
    assert page.count("<small>also in an untrained network") + page.count(
        "; also in an untrained network"
    ) == len(also)
    assert f'<span class="count">{len(also)}</span> hold, also in an untrained network' in page


def test_without_data_the_bundled_corpus_is_read_and_every_line_says_so(tmp_path):
    few = ["--limit", "6", "--replicates", "10", "--no-report", "--json", "-o", str(tmp_path / "k")]
    result = CliRunner().invoke(group, ["reproduce", "kobayashi2020", "--model", "demo", *few])
    assert result.exit_code == 0, result.output
    made = json.loads(result.stdout)
    counted = [line for line in made["lines"] if line["ours"] is not None]
    assert len(counted) > 10
    assert {line["other_data"] for line in counted} == {"headscope’s own short texts"}
    assert {one["name"] for one in made["data"]} == {"the bundled corpus"}
    page = (tmp_path / "k/report.html").read_text("utf-8")
    asked = len(made["lines"]) - made["counts"]["not asked"]
    hold = sum(line["status"] == "holds" for line in made["lines"])
    assert f"{hold} of the {asked} lines that could be asked of demo hold" in page


def test_names_that_are_markup_stay_text_and_nothing_leaves_the_page(done, desk):
    page = (desk / "out/report.html").read_text("utf-8")
    assert "<img" not in page
    assert "&lt;img src=x onerror=alert(1)&gt;" in page
    assert "default-src &#39;none&#39;" in page
    assert page.count("<script") == 0


def test_the_same_command_opens_what_is_finished(done, desk):
    file = desk / "out/runs/norms/atlas.nc"
    before = file.stat().st_mtime_ns
    built = {desk / "out/lines.csv", *(desk / "out/figures").iterdir()}
    for each in built:
        each.unlink()
    again = run(desk)
    assert again.exit_code == 0
    assert "published values are those of google-bert/bert-base-uncased" in again.output
    assert file.stat().st_mtime_ns == before
    assert all(each.is_file() for each in built)  # what was deleted is built again


def test_what_makes_a_run_doubtful_is_told(done, desk, tmp_path):
    """Every other command told it: here it stood in the manifests of the runs alone."""
    assert "notes" not in done
    (tmp_path / "twice.txt").write_text(TEXT)
    more = ("--data", f"text={tmp_path / 'twice.txt'}")
    result = run(desk, *more, out="twice")
    assert result.output.count("note: ") == 1
    assert "2 files hold the same, which is read 2 times" in result.output
    assert "2 files hold" in json.loads((desk / "twice/lines.json").read_text())["notes"][0]


def test_a_folder_of_another_model_or_limit_is_not_touched(done, desk):
    refused = run(desk, "--limit", "1")
    assert refused.exit_code != 0
    assert "holds a run with other settings (limit: null, now 1)" in str(refused.exception)


def test_a_folder_made_of_other_data_is_not_touched(done, desk):
    (desk / "more.txt").write_text(TEXT)
    refused = run(desk, "--data", f"text={desk / 'more.txt'}")
    assert refused.exit_code != 0
    assert "was made of other data: text was" in str(refused.exception)


def test_runs_without_a_page_are_not_linked_but_said_how_to_get(done, desk):
    page = (desk / "out/report.html").read_text("utf-8")
    assert "runs/norms/report.html" not in page
    assert f"<code>headscope report {desk}/out/runs/norms</code>" in page


def test_a_part_that_fails_is_told_and_the_others_go_on(desk):
    (desk / "ranks.txt").write_text("one two three\n")
    result = run(desk, "--data", f"frequency={desk / 'ranks.txt'}", "--json", out="failing")
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    lines = {line["key"]: line for line in found["lines"]}
    assert lines["table2-sep"]["failed"]
    assert "ranks.txt:1" in lines["table2-sep"]["reason"]
    assert lines["data-inputs"]["status"] == "not asked"  # a number alone, of another model
    assert "Failed: " in (desk / "failing/report.html").read_text("utf-8")


def test_every_option_and_every_key_of_data_is_in_its_page():
    text = (ROOT / "docs/reproduce.md").read_text("utf-8")
    options = group.get_command(None, "reproduce").params
    assert not [o for p in options for o in p.opts if o.startswith("--") and o not in text]
    assert not [key for key in KEYS if f"`{key}`" not in text]


@pytest.mark.parametrize(
    ("name", "revision", "heads", "tokens", "own"),
    [
        ("google-bert/bert-base-uncased", "c0ffee", 12, 30522, True),
        ("bert-base-uncased", "c0ffee", 12, 30522, True),
        ("/models/bert-base-uncased/", "", 12, 30522, True),
        ("/models/bert-base-uncased", "", 16, 30522, False),
        ("/models/bert-base-uncased", "", 12, 28996, False),
        ("somebody/bert-base-uncased", "c0ffee", 12, 30522, False),
        ("somebody/bert-base-uncased-mnli", "c0ffee", 12, 30522, False),
    ],
)
def test_the_papers_own_model_is_known_by_name_shape_and_vocabulary(
    name, revision, heads, tokens, own
):
    model = SimpleNamespace(
        name=name,
        revision=revision,
        shape=SimpleNamespace(layers=12, heads=heads),
        network=SimpleNamespace(config=SimpleNamespace(vocab_size=tokens)),
    )
    assert bool(own_model(papers()["kobayashi2020"].own, model)) is own


def test_names_on_the_page_count_from_0_if_asked(done, desk):
    """What a paper prints stays as it is; the page is written anew of the finished runs."""

    def page(*first: str) -> str:
        result = CliRunner().invoke(group, [*first, *words(desk, "out")])
        assert result.exit_code == 0, result.output
        return (desk / "out/report.html").read_text("utf-8")

    before, after = page(), page("--zero-based")
    assert names_in(before)
    assert names_in(after) == [(layer - 1, head - 1) for layer, head in names_in(before)]
    assert "from 0, as TransformerLens does: L7·H9 is\ntheir 8-10" in after


def test_a_reason_of_several_lines_is_told_on_one():
    """A page showed a broken character between "(BertModel)" and "wanted": the end of a line."""
    said = "needs a head: cannot load 'm': (BertModel)\nwanted one with a head"

    def lacking(*_):
        raise Unmeasured(said)

    def failing(*_):
        raise ValueError("size mismatch\n\tof a weight")

    desk = SimpleNamespace(
        tell=lambda _: None, reports=False, execution=SimpleNamespace(threads_each=1)
    )
    _, absent, _ = make_runs(desk, ["a", "b"], {"a": lacking, "b": failing})
    assert absent["a"] == said.replace("\n", "; ")
    assert absent["b"].endswith("ValueError: size mismatch; of a weight")
