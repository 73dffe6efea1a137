"""Do the tables in the layout of Clark et al. hold the result's numbers, and nothing unescaped?"""

from __future__ import annotations

import numpy as np
import pytest

from headscope.analyses.coreference.figure import clark_table_2
from headscope.analyses.dependency.tables import best_heads, clark_table_1
from headscope.heads.tables import latex, markdown
from recorded import LANGUAGE, by_norm, reading, recorded


def test_all_comes_first_then_relations_of_100_words_without_root_and_punctuation():
    table = clark_table_1(reading(recorded(groups=LANGUAGE), "dependency"))[0]
    counts = recorded(groups=LANGUAGE)["dependency"]["count"].to_series().drop(["root", "punct"])
    wanted = counts[2:][counts[2:] >= 100].sort_values(ascending=False, kind="stable")
    assert list(table.columns) == ["Relation", "Head", "Accuracy", "Held out", "Baseline"]
    assert list(table["Relation"]) == ["All", *wanted.index]


def test_a_row_reads_as_in_the_paper():
    tree = recorded(groups=LANGUAGE)
    table, stored = (
        clark_table_1(reading(tree, "dependency"))[0].set_index("Relation"),
        tree["dependency"].to_dataset(),
    )
    for relation, row in (
        ("obj", ["3-1", "70.7", "32.0 (-2)"]),
        ("case", ["3-9", "78.5", "43.8 (1)"]),
    ):
        head, accuracy, held_out, baseline = table.loc[relation]
        here = 100 * stored.sel(relation=relation)
        assert [head, accuracy.partition(" ")[0], baseline] == row
        for cell, name in ((accuracy, "best_accuracy"), (held_out, "held_out")):
            value, low, high = (float(here[name + end]) for end in ("", "_ci_low", "_ci_high"))
            assert cell == f"{value:.1f} [{low:.1f}, {high:.1f}]"


def test_how_many_words_a_relation_needs_can_be_set():
    relations = set(
        clark_table_1(reading(recorded(groups=LANGUAGE), "dependency"), least=2)[0]["Relation"]
    )
    assert {"vocative", "appos", "compound:prt"} <= relations


def test_what_was_never_asked_about_is_a_dash():
    tree = recorded(2, 3, groups=LANGUAGE)
    dataset = tree["dependency"].to_dataset().copy(deep=True)
    for name in ("layer", "head", "direction", "offset", "accuracy"):
        dataset[f"best_{name}"][...] = np.nan
    for name in ("baseline", "held_out"):
        dataset[name][...] = np.nan
    tree["dependency"].dataset = dataset
    assert set(
        clark_table_1(reading(tree, "dependency"))[0].drop(columns="Relation").values.ravel()
    ) == {"–"}


def test_coreference_rows_are_the_systems_and_the_one_head_that_is_best_for_all():
    tree = recorded(6, 12, groups=LANGUAGE)
    table = clark_table_2(reading(tree, "coreference"))[0]
    assert list(table.columns) == ["Model", "All", "Pronoun", "Proper", "Nominal"]
    assert list(table["Model"]) == ["Nearest", "Head match", "Rule based", "Head 3-5"]
    assert list(table.iloc[1]) == ["Head match", "44.7", "36.0", "50.0", "70.3"]
    same = tree["coreference"]["accuracy"].sel(layer=2, head=4).values
    assert list(table.iloc[3])[1:] == [f"{100 * share:.1f}" for share in same]


def test_the_note_names_the_relations_that_are_found_from_the_head():
    tree = recorded(groups=LANGUAGE)
    tree["dependency"]["best_direction"].loc[{"relation": ["obj", "advmod"]}] = 1
    turned = best_heads(reading(tree, "dependency")).query(
        "direction == 'head_to_dependent' and count >= 100"
    )
    assert (
        f"from head to dependent for {', '.join(turned['relation'])}."
        in clark_table_1(reading(tree, "dependency"))[1]
    )


@pytest.mark.parametrize(
    ("table", "name"), [(clark_table_1, "dependency"), (clark_table_2, "coreference")]
)
def test_notes_say_which_measure_it_was(table, name):
    plain, weighted = (recorded(2, 3, groups=LANGUAGE) for _ in range(2))
    assert "by weighted norm" in table(reading(by_norm(weighted), name))[1]
    assert "norm" not in table(reading(plain, name))[1]


def test_markdown_and_latex_hold_the_same_cells():
    table = clark_table_2(reading(recorded(groups=LANGUAGE), "coreference"))[0]
    text = markdown(table, "A note.")
    assert text.splitlines()[2] == "| Nearest | 31.0 | 38.7 | 7.7 | 14.8 |"
    assert text.endswith("\n\nA note.\n")
    rows = latex(table, "A note of 5 %.").splitlines()
    assert rows[0] == r"% \usepackage{booktabs}"
    assert rows[1:5] == [
        r"\begin{table}",
        r"\centering",
        r"\caption{A note of 5 \%.}",
        r"\begin{tabular}{lrrrr}",
    ]
    assert rows[-2:] == [r"\end{tabular}", r"\end{table}"]
    assert r"Nearest & 31.0 & 38.7 & 7.7 & 14.8 \\" in rows


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
    table = (
        clark_table_1(reading(recorded(2, 3, groups=LANGUAGE), "dependency"))[0]
        .iloc[:1]
        .assign(Relation=name)
    )
    assert latex(table, "").splitlines()[8].startswith(tex + " & ")
    if md is not None:
        assert markdown(table, "").splitlines()[2].startswith(f"| {md} | ")


def test_no_name_ends_a_line_of_a_table():
    tree = recorded(2, 3, groups=LANGUAGE)
    dataset = tree["dependency"].to_dataset()
    names = dataset["relation"].values.astype(object)
    names[3] = "a\nb\r\x00"
    tree["dependency"].dataset = dataset.assign_coords(relation=names)
    table, note = clark_table_1(reading(tree, "dependency"))
    assert "a�b��" in set(table["Relation"])
    for text in (markdown(table, note), latex(table, note)):
        text.encode("utf-8")
        assert len([line for line in text.splitlines() if "a�b" in line]) in (1, 2)
