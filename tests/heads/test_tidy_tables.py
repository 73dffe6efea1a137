"""Do tidy tables hold every number of a result, under the contract's columns?"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from headscope.core.whole_file import write_whole
from headscope.errors import UnwrittenError
from headscope.heads.tables import tidy, write_tables
from recorded import ALONE, LANGUAGE, hostile, recorded

COLUMNS = "model revision analysis metric layer head value n ci_low ci_high"


@pytest.fixture(scope="module")
def tables():
    return tidy(recorded(2, 3))


@pytest.fixture(scope="module")
def language():
    """A run of the analyses of language, and its tables."""
    tree = recorded(2, 3, groups=LANGUAGE)
    return tree, tidy(tree)


def test_a_table_gives_back_the_array_it_came_from():
    tree = recorded(3, 4)
    table = tidy(tree)["surface"].query("metric == 'attention'")
    back = table.set_index(["layer", "head", "target"])["value"].to_xarray()
    original = tree["surface"]["attention"]
    np.testing.assert_array_equal(
        back.sel(target=original["target"].values).values.astype(float), original.values
    )


def test_intervals_stand_beside_their_value():
    tree = recorded(3, 4)
    table = tidy(tree)["entropy"]
    row = table.query("layer == 2 and head == 1 and query == 'cls'").iloc[0]
    cell = tree["entropy"].sel(layer=2, head=1, query="cls")
    assert (row["value"], row["ci_low"], row["ci_high"]) == (
        float(cell["entropy"]),
        float(cell["entropy_ci_low"]),
        float(cell["entropy_ci_high"]),
    )


@pytest.mark.parametrize("group", ["surface", "entropy", "norms", "mixing", "divergence"])
def test_every_table_starts_with_the_columns_of_the_contract(tables, group):
    table = tables[group]
    assert list(table.columns[:10]) == COLUMNS.split()
    assert set(table["analysis"]) == {group}
    assert set(table["n"]) == {14}


def test_no_interval_is_a_row_of_its_own(tables):
    metrics = {metric for table in tables.values() for metric in table["metric"]}
    assert not [metric for metric in metrics if metric.endswith(("_ci_low", "_ci_high"))]


def test_what_has_no_layer_has_a_missing_one(tables):
    table = tables["norms"]
    rho = table[table["metric"] == "spearman_attention_value_norm"]
    assert rho["layer"].isna().all()
    assert list(rho["category"]) == ["cls", "sep", "punctuation", "other"]


def test_units_are_told_as_layer_and_head(tables):
    table = tables["divergence"]
    row = table.query("metric == 'js' and unit == 4 and unit_other == 0").iloc[0]
    assert (row["layer"], row["head"]) == (1, 1)


def test_files_hold_the_tables(tmp_path):
    tree = recorded(2, 3)
    written = write_tables(tree, tmp_path / "tables")
    names = [*tree.children, "heads", "head_labels"]
    assert {path.name for path in written} >= {
        f"{name}.{kind}" for name in names for kind in ("parquet", "csv")
    }
    for group, table in tidy(tree).items():
        parquet = pd.read_parquet(tmp_path / "tables" / f"{group}.parquet")
        pd.testing.assert_frame_equal(parquet, table, check_dtype=False)
        file = tmp_path / "tables" / f"{group}.csv"
        read = pd.read_csv(file, dtype={"value": str})["value"].astype(
            float
        )  # pandas 2 reads roughly
        np.testing.assert_allclose(read, table["value"], rtol=1e-14)


def test_relations_directions_and_offsets_are_columns(language):
    tree, tables = language
    table = tables["dependency"]
    row = table.query(
        "metric == 'accuracy' and layer == 1 and head == 2 and relation == 'obj' "
        "and direction == 'head_to_dependent'"
    ).iloc[0]
    where = {"layer": 1, "head": 2, "relation": "obj", "direction": "head_to_dependent"}
    assert row["value"] == float(tree["dependency"]["accuracy"].sel(where))
    assert row["ci_high"] == float(tree["dependency"]["accuracy_ci_high"].sel(where))
    offset = table.query("metric == 'offset_accuracy' and offset == -2 and relation == 'obj'")
    (value,) = offset["value"]
    assert value == float(tree["dependency"]["offset_accuracy"].sel(offset=-2, relation="obj"))


@pytest.mark.parametrize("group", [name for name in LANGUAGE if name != "examples"])
def test_every_number_of_a_linguistic_group_has_a_row(language, group):
    tree, tables = language
    dataset, table = tree[group].to_dataset(), tables[group]
    for metric, rows in table.groupby("metric"):
        assert len(rows) == dataset[metric].size
        np.testing.assert_array_equal(np.sort(rows["value"]), np.sort(dataset[metric], axis=None))


def test_where_the_best_head_is_is_no_metric(language):
    metrics = set(language[1]["dependency"]["metric"])
    assert metrics == {
        "accuracy",
        "offset_accuracy",
        "count",
        "best_accuracy",
        "baseline",
        "held_out",
        "advantage",
        "left_out",
    }


def test_sentences_to_draw_and_strings_are_in_no_table():
    tree = recorded(2, 3, groups=LANGUAGE)
    assert "examples" not in tidy(tree)
    dataset = tree["frames"].to_dataset().assign(note=("layer", ["a", "b"]))
    tree["frames"].dataset = dataset
    assert "note" not in set(tidy(tree)["frames"]["metric"])


def test_best_heads_stand_beside_the_tidy_tables(tmp_path):
    tree = recorded(2, 3, groups=LANGUAGE)
    names = {path.name for path in write_tables(tree, tmp_path)}
    best = {"best_heads", "best_coreference_heads", "top_frame_heads"}
    assert {f"{name}.{kind}" for name in best for kind in ("csv", "parquet")} <= names
    papers = {"clark_table_1", "clark_table_2"}
    assert {f"{name}.{kind}" for name in papers for kind in ("csv", "md", "tex")} <= names
    written = pd.read_csv(tmp_path / "best_heads.csv", keep_default_na=False)
    again = pd.read_parquet(tmp_path / "best_heads.parquet")
    assert list(written["relation"]) == list(again["relation"])
    assert list(again["relation"]) == list(tree["dependency"]["relation"].values)


@pytest.mark.parametrize("group", LANGUAGE)
def test_each_linguistic_group_can_be_written_alone(tmp_path, group):
    tree = hostile(recorded(2, 3, groups=(group,), kind=ALONE))
    written = {path.stem for path in write_tables(tree, tmp_path)} - {"heads", "head_labels"}
    assert bool(written) == (group != "examples")


def test_a_failed_write_leaves_the_old_file_and_no_draft(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("old")

    def fail(draft: str) -> None:
        with open(draft, "w") as file:
            file.write("half")
        raise OSError("no space left")

    with pytest.raises(UnwrittenError, match="no space left"):
        write_whole(path, fail)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_hostile_names_survive_the_way_to_a_file(tmp_path):
    tree = recorded(2, 3, groups=("entropy",), model='a,"b"\n<script>')
    write_tables(tree, tmp_path)
    assert set(pd.read_csv(tmp_path / "entropy.csv")["model"]) == {'a,"b"\n<script>'}
