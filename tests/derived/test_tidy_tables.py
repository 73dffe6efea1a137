"""Do tidy tables hold every number of a result, under the contract's columns?"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from headscope.derived import tidy, write_tables
from headscope.whole_file import write_whole
from report.synthetic import make_tree

COLUMNS = "model revision analysis metric layer head value n ci_low ci_high"


def test_a_table_gives_back_the_array_it_came_from():
    tree = make_tree(3, 4)
    table = tidy(tree)["surface"]
    back = table.set_index(["layer", "head", "target"])["value"].to_xarray()
    original = tree["surface"]["attention"]
    np.testing.assert_array_equal(
        back.sel(target=original["target"].values).values.astype(float), original.values
    )


def test_intervals_stand_beside_their_value():
    tree = make_tree(3, 4)
    table = tidy(tree)["entropy"]
    row = table.query("layer == 2 and head == 1 and query == 'cls'").iloc[0]
    cell = tree["entropy"].sel(layer=2, head=1, query="cls")
    assert (row["value"], row["ci_low"], row["ci_high"]) == (
        float(cell["entropy"]),
        float(cell["entropy_ci_low"]),
        float(cell["entropy_ci_high"]),
    )


@pytest.mark.parametrize("group", ["surface", "entropy", "norms", "mixing", "divergence"])
def test_every_table_starts_with_the_columns_of_the_contract(group):
    table = tidy(make_tree(2, 3))[group]
    assert list(table.columns[:10]) == COLUMNS.split()
    assert set(table["analysis"]) == {group}
    assert set(table["n"]) == {26}


def test_no_interval_is_a_row_of_its_own():
    metrics = {metric for table in tidy(make_tree(2, 3)).values() for metric in table["metric"]}
    assert not [metric for metric in metrics if metric.endswith(("_ci_low", "_ci_high"))]


def test_what_has_no_layer_has_a_missing_one():
    table = tidy(make_tree(2, 3))["norms"]
    rho = table[table["metric"] == "spearman_attention_value_norm"]
    assert rho["layer"].isna().all()
    assert list(rho["category"]) == ["cls", "sep", "punctuation", "other"]


def test_units_are_told_as_layer_and_head():
    table = tidy(make_tree(2, 3))["divergence"]
    row = table.query("metric == 'js' and unit == 4 and unit_other == 0").iloc[0]
    assert (row["layer"], row["head"]) == (1, 1)


def test_files_hold_the_tables(tmp_path):
    tree = make_tree(2, 3)
    written = write_tables(tree, tmp_path / "tables")
    assert {path.name for path in written} == {
        f"{group}.{kind}" for group in tree.children for kind in ("parquet", "csv")
    }
    for group, table in tidy(tree).items():
        parquet = pd.read_parquet(tmp_path / "tables" / f"{group}.parquet")
        pd.testing.assert_frame_equal(parquet, table, check_dtype=False)
        csv = pd.read_csv(tmp_path / "tables" / f"{group}.csv")
        np.testing.assert_allclose(csv["value"], table["value"], rtol=1e-14)


def test_a_failed_write_leaves_the_old_file_and_no_draft(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("old")

    def fail(draft: str) -> None:
        with open(draft, "w") as file:
            file.write("half")
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        write_whole(path, fail)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_hostile_names_survive_the_way_to_a_file(tmp_path):
    tree = make_tree(2, 3, groups=("entropy",), model='a,"b"\n<script>')
    write_tables(tree, tmp_path)
    assert set(pd.read_csv(tmp_path / "entropy.csv")["model"]) == {'a,"b"\n<script>'}
