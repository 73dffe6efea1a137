"""Do the tables in the layout of Clark et al. hold the result's numbers, and nothing unescaped?"""

from __future__ import annotations

import numpy as np
import pytest

from headscope.analyses.coreference.tables import clark_table_2
from headscope.analyses.dependency.tables import best_heads, clark_table_1
from headscope.heads.tables import latex, markdown
from report.synthetic import make_tree
from report.synthetic_language import UD, make_language_tree


def test_all_comes_first_then_relations_of_100_words_without_root_and_punctuation():
    table = clark_table_1(make_language_tree())[0]
    wanted = sorted(
        (row for row in UD if row[1] >= 100 and row[0] not in ("root", "punct")),
        key=lambda row: -row[1],
    )
    assert list(table.columns) == ["Relation", "Head", "Accuracy", "Baseline"]
    assert list(table["Relation"]) == ["All", *(row[0] for row in wanted)]


def test_a_row_reads_as_in_the_paper():
    table = clark_table_1(make_language_tree())[0].set_index("Relation")
    assert list(table.loc["obj"]) == ["4-10", "78.0", "42.0 (-2)"]
    assert list(table.loc["case"]) == ["4-9", "93.0", "41.0 (1)"]


def test_how_many_words_a_relation_needs_can_be_set():
    relations = set(clark_table_1(make_language_tree(), least=9)[0]["Relation"])
    assert {"vocative", "appos", "compound:prt"} <= relations


def test_what_was_never_asked_about_is_a_dash():
    tree = make_language_tree(2, 3)
    dataset = tree["dependency"].to_dataset().copy(deep=True)
    for name in ("layer", "head", "direction", "offset", "accuracy"):
        dataset[f"best_{name}"][...] = np.nan
    dataset["baseline"][...] = np.nan
    tree["dependency"].dataset = dataset
    assert set(clark_table_1(tree)[0].drop(columns="Relation").values.ravel()) == {"–"}


def test_coreference_rows_are_the_systems_and_the_one_head_that_is_best_for_all():
    tree = make_language_tree(6, 12)
    table = clark_table_2(tree)[0]
    assert list(table.columns) == ["Model", "All", "Pronoun", "Proper", "Nominal"]
    assert list(table["Model"]) == ["Nearest", "Head match", "Rule based", "Head 5-4"]
    assert list(table.iloc[1]) == ["Head match", "52.0", "47.0", "67.0", "40.0"]
    same = tree["coreference"]["accuracy"].sel(layer=4, head=3).values
    assert list(table.iloc[3])[1:] == [f"{100 * share:.1f}" for share in same]


def test_the_note_names_the_relations_that_are_found_from_the_head():
    tree = make_language_tree()
    turned = best_heads(tree).query("direction == 'head_to_dependent' and count >= 100")
    assert f"from head to dependent for {', '.join(turned['relation'])}." in clark_table_1(tree)[1]


@pytest.mark.parametrize("table", [clark_table_1, clark_table_2])
def test_notes_say_which_measure_it_was(table):
    assert "by weighted norm" in table(make_language_tree(2, 3, measure="weighted_norm"))[1]
    assert "norm" not in table(make_language_tree(2, 3))[1]


def test_markdown_and_latex_hold_the_same_cells():
    table = clark_table_2(make_language_tree())[0]
    text = markdown(table, "A note.")
    assert text.splitlines()[2] == "| Nearest | 27.0 | 29.0 | 29.0 | 19.0 |"
    assert text.endswith("\n\nA note.\n")
    rows = latex(table, "A note.").splitlines()
    assert rows[0] == "% A note."
    assert r"Nearest & 27.0 & 29.0 & 29.0 & 19.0 \\" in rows


@pytest.mark.parametrize(
    ("name", "tex", "md"),
    [
        ("a_b", r"a\_b", r"a\_b"),
        (
            "50 % & $x^2$ #1 {~}",
            r"50 \% \& \$x\textasciicircum{}2\$ \#1 \{\textasciitilde{}\}",
            None,
        ),
        ("\\input{x}", r"\textbackslash{}input\{x\}", r"\\input\{x\}"),
        ("a|b<img>", "a|b<img>", r"a\|b\<img\>"),
    ],
)
def test_hostile_names_stay_text(name, tex, md):
    table = clark_table_1(make_language_tree(2, 3))[0].iloc[:1].assign(Relation=name)
    assert latex(table, "").splitlines()[5].startswith(tex + " & ")
    if md is not None:
        assert markdown(table, "").splitlines()[2].startswith(f"| {md} | ")


def test_no_name_ends_a_line_of_a_table():
    tree = make_language_tree(2, 3)
    dataset = tree["dependency"].to_dataset()
    names = dataset["relation"].values.astype(object)
    names[3] = "a\nb\r\x00"
    tree["dependency"].dataset = dataset.assign_coords(relation=names)
    table, note = clark_table_1(tree)
    assert "a�b��" in set(table["Relation"])
    for text in (markdown(table, note), latex(table, note)):
        text.encode("utf-8")
        assert len([line for line in text.splitlines() if "a�b" in line]) in (1, 2)


def test_runs_without_the_analyses_have_empty_tables():
    tree = make_tree(2, 3, groups=("entropy",))
    assert clark_table_1(tree)[0].empty
    assert clark_table_2(tree)[0].empty
    assert clark_table_1(tree)[1] == clark_table_2(tree)[1] == ""
