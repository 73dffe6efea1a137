"""Does the part on language say what the result says, whatever is missing or hostile in it?"""

from __future__ import annotations

import html as markup
import re

import numpy as np
import pytest

from headscope.analyses.coreference.figure import coreference_table
from headscope.analyses.dependency.tables import syntax_table
from headscope.analyses.features.figure import features_table
from headscope.analyses.frames.figure import frames_table
from headscope.claims.head_labels import head_labels, telling_heads
from headscope.claims.question import questions
from headscope.draw.figures import pictures
from headscope.page.sections import LANGUAGE as CHAPTER
from headscope.page.sections import sections_of
from headscope.report.build import render
from recorded import (
    ALONE,
    BOTH,
    DECODER,
    ENCODER,
    HOSTILE_RELATIONS,
    LANGUAGE,
    by_norm,
    changed,
    hostile,
    reading,
    recorded,
)

MINUS = "−"
FUNCTIONS = ("dependency", "coreference", "frames")
PARTS = [plan for one in questions() for plan in sections_of(one) if plan.chapter == CHAPTER]


@pytest.fixture(scope="module")
def page(whole_page):
    return whole_page


def rows_of(table):
    """First cell's text → (text, small) of all others, for every row of a table."""
    rows = [row for group in table.groups for row in group.rows]
    return {row[0].text: [(cell.text, cell.small) for cell in row[1:]] for row in rows}


def section(page, name):
    """The markup of one section."""
    start = page.index(f'<section id="{name}"')
    return page[start : page.index("</section>", start)]


def as_text(page):
    """What is read: the text without tags, characters as themselves, blanks as one."""
    plain = markup.unescape(re.sub(r"<[^>]*>", " ", page)).replace("\u00a0", " ")
    return re.sub(r"\s+", " ", plain)


def percent(value, low=np.nan, high=np.nan):
    """`86.8`, `[85.1, 88.2]`."""
    ends = f"[{100 * low:.1f}, {100 * high:.1f}]" if np.isfinite(low) else ""
    return f"{100 * value:.1f}".replace("-", MINUS), ends.replace("-", MINUS)


def test_a_relation_stands_with_head_accuracy_baseline_held_out_and_interval():
    tree = recorded(6, 12, groups=LANGUAGE)
    here = tree["dependency"].sel(relation="obj")
    cells = rows_of(syntax_table(reading(tree, "dependency")))["obj"]
    assert cells[:2] == [("178", ""), ("L3·H1", "")]
    for at, name in ((2, "best_accuracy"), (3, "baseline"), (5, "held_out")):
        parts = [float(here[name + end]) for end in ("", "_ci_low", "_ci_high")]
        assert cells[at] == percent(*parts)
    assert cells[4] == (f"{MINUS}2", "")
    assert cells[6][0] == f"+{100 * float(here['advantage']):.1f}"


def test_totals_come_first_then_relations_of_25_words_by_frequency():
    totals, single = syntax_table(reading(recorded(groups=LANGUAGE), "dependency")).groups
    assert [row[0].text for row in totals.rows] == ["all", "all but root and punctuation"]
    counts = recorded(groups=LANGUAGE)["dependency"]["count"].to_series()[2:]
    wanted = counts[counts >= 25].drop(["root", "punct"])
    assert [row[0].text for row in single.rows] == wanted.index.tolist()


def test_rare_relations_are_counted_and_where_they_stand_is_said():
    caption = syntax_table(reading(recorded(groups=LANGUAGE), "dependency")).caption
    assert "17 rarer relations stand in tables/best_heads.csv" in caption


def test_only_relations_that_beat_their_baseline_are_marked_and_not_by_colour_alone(whole, page):
    dataset, table = whole["dependency"], syntax_table(reading(whole, "dependency"))
    low = dict(zip(dataset["relation"].values, dataset["advantage_ci_low"].values, strict=True))
    for group in table.groups[1:]:
        for row in group.rows:
            assert bool(row[-1].mark) == (low[row[0].text] > 0)
    text = section(page, "syntax")
    marked = re.findall(r"▲</b><span class=\"unseen\">beats its baseline, </span>", text)
    assert len(marked) == sum(row[-1].mark != "" for group in table.groups for row in group.rows)


def test_the_direction_stands_in_words():
    tree = recorded(groups=("dependency",))
    turned = tree["dependency"].to_dataset()
    turned["best_direction"].loc[{"relation": ["advcl", "conj"]}] = 1
    tree["dependency"].dataset = turned
    small = {
        row[0].text: row[0].small
        for g in syntax_table(reading(tree, "dependency")).groups
        for row in g.rows
    }
    assert small["obj"] == "direct object → verb"
    assert small["advcl"] == "verb → its adverbial clause"
    assert small["conj"] == "first conjunct → its conjunct"


def test_coreference_has_rules_the_best_head_strict_mode_and_the_held_out_figure():
    tree = recorded(6, 12, groups=LANGUAGE)
    dataset, rows = tree["coreference"], rows_of(coreference_table(reading(tree, "coreference")))
    parts = ("", "_ci_low", "_ci_high")
    for at, kind in enumerate(dataset["mention_type"].values):
        here = dataset.sel(mention_type=kind)
        nearest = [float(here[f"baseline{end}"].sel(system="nearest")) for end in parts]
        assert rows["Nearest mention"][at] == percent(*nearest)
        best = [float(here[f"accuracy{end}"].sel(layer=2, head=4)) for end in parts]
        assert rows["L3·H5"][at] == percent(*best)
        strict = [float(here[f"accuracy_strict{end}"].sel(layer=2, head=4)) for end in parts]
        assert rows["L3·H5, any word"][at] == percent(*strict)
        assert rows["Held out"][at] == percent(*(float(here[f"held_out{end}"]) for end in parts))
        ahead = here["advantage_ci_low"]
        names = {"nearest": "nearest", "head_match": "head match", "rule_based": "rules"}
        beaten = [name for system, name in names.items() if float(ahead.sel(system=system)) > 0]
        assert rows["Held out beats"][at][0] == (", ".join(beaten) or "none")


def test_frames_come_by_score_with_chance_p_and_percentiles():
    tree = recorded(6, 12, groups=LANGUAGE)
    here = tree["frames"].sel(layer=5, head=4)
    cells = rows_of(frames_table(reading(tree, "frames")))["L6·H5"]
    parts = [float(here[f"score{end}"]) for end in ("", "_ci_low", "_ci_high")]
    assert cells[0] == percent(*parts)
    assert cells[1] == percent(float(here["chance"]))
    assert cells[2][0] == f"{float(here['p_value']):.3f}"
    spread = [float(value) for value in here["score_quantile"]]
    assert [cell[0] for cell in cells[3:8]] == [percent(value)[0] for value in spread]
    assert "n = 100 sentences" in frames_table(reading(tree, "frames")).caption


def test_kinds_of_words_name_their_strongest_head_and_the_mean_of_all():
    tree = recorded(6, 12, groups=LANGUAGE)
    attention = tree["features"]["attention"].sel(feature="negation")
    unit = int(attention.values.argmax())
    row = rows_of(features_table(reading(tree, "features")))["subject to verb"]
    assert row[0] == ("178", "")
    first = {r[0].text: r for r in features_table(reading(tree, "features")).groups[0].rows}[
        "negation"
    ]
    assert first[2].text == f"L{unit // 12 + 1}·H{unit % 12 + 1}"
    assert first[3].text == percent(float(attention.max()))[0]
    assert first[4].text == percent(float(attention.mean()))[0]


def test_last_layer_heads_are_numbered_in_the_last_layer():
    tree = recorded(6, 12, groups=LANGUAGE)
    assert {
        row[2].text.split("·")[0]
        for row in features_table(reading(tree, "features")).groups[1].rows
    } == {"L6"}


def test_every_number_of_a_table_is_on_the_page(whole, page):
    for name, table in (
        ("syntax", syntax_table(reading(whole, "dependency"))),
        ("coreference", coreference_table(reading(whole, "coreference"))),
        ("frames", frames_table(reading(whole, "frames"))),
        ("features", features_table(reading(whole, "features"))),
    ):
        shown = as_text(section(page, name))
        for group in table.groups:
            for row in group.rows:
                for cell in row:
                    assert cell.text in shown
                    assert cell.small in shown


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.id)
@pytest.mark.usefixtures("no_pictures")
def test_what_is_not_in_the_run_is_told_in_one_line_with_its_option(part):
    tree = recorded(2, 3, groups=part.groups)
    page = render(tree, {})
    absent = re.search(r'<p class="absent">(Not part of this run: [^<]*--[^<]*)</p>', page)[1]
    for other in PARTS:
        assert (f'<section id="{other.id}"' in page) == (other is part)
        assert (other.wanted in absent) == (other is not part)
    assert absent.count("--coref") == (part.id != "coreference")


@pytest.mark.usefixtures("no_pictures")
def test_without_any_annotation_the_section_is_one_line():
    text = as_text(section(render(recorded(2, 3), {}), "language"))
    assert text.strip().startswith("Language Not part of this run: syntax (trees: --treebank")
    for option in ("--treebank", "--annotate", "--coref", "--frames"):
        assert option in text


def test_with_everything_nothing_is_missing(page):
    assert page.count("Not part of this run") == 1  # explained: recorded runs are older


def test_every_picture_of_language_is_on_the_page(page):
    names = [name for part in PARTS for name in part.pictures]
    assert set(names) <= pictures().keys()
    whole = page[page.index('<section id="language"') : page.index('<section id="map"')]
    assert whole.count("<figcaption><b>Figure") == len(names)
    assert whole.count("<figcaption><b>Table") == len(PARTS)


@pytest.mark.usefixtures("no_pictures")
def test_a_measure_other_than_attention_is_said():
    assert "Judged by the weighted norm" not in render(recorded(2, 3, groups=LANGUAGE), {})
    page = render(by_norm(recorded(2, 3, groups=LANGUAGE)), {})
    assert page.count("Judged by the weighted norm") == len(PARTS)


def test_norms_are_no_percentages():
    tree = by_norm(recorded(6, 12, groups=LANGUAGE))
    score = float(tree["frames"]["score"].sel(layer=5, head=4))
    assert rows_of(frames_table(reading(tree, "frames")))["L6·H5"][0][0] == f"{score:.3f}"
    assert "weighted norm" in frames_table(reading(tree, "frames")).caption


@pytest.mark.usefixtures("no_pictures")
def test_what_was_left_out_is_told():
    tree = recorded(2, 3, groups=LANGUAGE)
    tree["dependency"]["left_out"][...] = [3, 0]
    tree["coreference"]["left_out"][...] = [14, 880, 31, 0]
    text = as_text(render(tree, {}))
    assert "Left out: 3 words with their syntactic head in another input." in text
    assert "14 mentions cut by the end of an input; 880 mentions of what was not" in text


@pytest.mark.usefixtures("no_pictures")
def test_malformed_passages_are_counted_and_the_first_named():
    faults = ["dev.conllu:17: <b>9 columns</b>", "dev.conllu:40: head 12", "x", "y"]
    counts = {"skipped": 4, "reasons": {"malformed": {"total": 4, "first": faults}}}
    page = render(recorded(2, 3, groups=LANGUAGE), {"counts": counts})
    assert "4 malformed passages were skipped, first: dev.conllu:17: <b>9" in as_text(page)
    assert "<b>9 columns" not in page


@pytest.mark.usefixtures("no_pictures")
def test_one_document_has_no_intervals_no_held_out_figure_and_no_mark():
    """Its pictures say no nan either: test_language_figures."""
    tree = changed(recorded(3, 4, LANGUAGE, kind=ALONE), "dependency", count=100)
    page = render(tree, {})
    assert not re.search(r"\bnan\b", as_text(page).lower())
    assert 'class="unseen"' not in page
    assert "[" not in as_text(section(page, "syntax").split("<figcaption>")[0]).replace("[CLS]", "")
    assert rows_of(syntax_table(reading(tree, "dependency")))["obj"][5] == ("–", "")


@pytest.mark.parametrize("group", LANGUAGE)
def test_any_group_alone_makes_a_page(group):
    for kind in (ENCODER, DECODER):
        page = render(recorded(2, 3, groups=(group,), kind=kind), {})
        assert "Not part of this run" in page


@pytest.mark.usefixtures("no_pictures")
def test_a_relation_never_asked_about_is_a_row_of_dashes():
    tree = recorded(2, 3, groups=LANGUAGE)
    dataset = tree["dependency"].to_dataset().copy(deep=True)
    here = {"relation": "obj"}
    for name in ("best_layer", "best_head", "best_direction", "best_offset", "best_accuracy"):
        dataset[name].loc[here] = np.nan
    tree["dependency"].dataset = dataset
    cells = rows_of(syntax_table(reading(tree, "dependency")))["obj"]
    assert [cells[at][0] for at in (1, 2, 4)] == ["–"] * 3
    render(tree, {})


def test_hostile_relations_and_words_stay_text(page, monkeypatch):
    language = {name for part in PARTS for name in part.pictures}
    known = {name: one for name, one in pictures().items() if name in language}
    monkeypatch.setattr("headscope.report.build.pictures", lambda: known)
    tree = hostile(recorded(3, 4, groups=BOTH))
    found = render(tree, {})
    found.encode("utf-8")
    tags = re.compile(r"<([a-zA-Z][\w-]*)")
    assert set(tags.findall(found)) <= set(tags.findall(page))
    assert len(re.findall(r"<script", found)) == 3  # with the views of inputs
    shown = as_text(section(found, "syntax"))
    for name in HOSTILE_RELATIONS:
        if name in rows_of(syntax_table(reading(tree, "dependency"))):
            assert name in shown


def test_a_page_with_fifty_relations_shows_them(whole, page):
    """And stays modest: test_report_html."""
    assert whole["dependency"].sizes["relation"] >= 50
    assert page.count("<code>x:made_up_") > 20


@pytest.mark.usefixtures("no_pictures")
def test_table_and_telling_list_say_what_heads_know(whole, page):
    assert '<th scope="col" data-sort="text" class="words">Labels</th>' in page
    listed, table = as_text(section(page, "telling")), as_text(section(page, "table"))
    told = [claim for claim in telling_heads(whole) if claim.kind in FUNCTIONS]
    assert told
    assert all(claim.sentence in listed for claim in told)
    known = [claim.label for found in head_labels(whole).values() for claim in found.labels]
    assert len(known) > len(told)
    assert all(label in table for label in known)


@pytest.mark.usefixtures("no_pictures")
def test_held_out_is_explained_only_where_best_heads_are_chosen():
    for name in LANGUAGE:
        page = render(recorded(2, 3, groups=(name,)), {})
        explained = 'href="#term-held_out">held out</a> stands beside it' in page
        assert explained == (name in ("dependency", "coreference"))
