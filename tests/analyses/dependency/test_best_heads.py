"""Do the tables of best heads hold what the result says, and only claims that hold?"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from headscope.analyses.coreference.figure import coreference_heads
from headscope.analyses.dependency.tables import best_heads
from headscope.analyses.frames.figure import top_frame_heads
from headscope.heads.tables import all_tables
from recorded import LANGUAGE, reading, recorded


def with_values(tree, group, **values):
    """Writes arrays over variables of one group of a run."""
    dataset = tree[group].to_dataset().copy(deep=True)
    for name, array in values.items():
        dataset[name][...] = array
    tree[group].dataset = dataset
    return tree


def test_every_relation_has_one_row_with_the_head_of_most_accuracy():
    table = best_heads(reading(recorded(groups=LANGUAGE), "dependency")).set_index("relation")
    dataset = recorded(groups=LANGUAGE)["dependency"].to_dataset()
    assert list(table.index[:2]) == ["all", "all_but_root_and_punctuation"]
    assert list(table.index) == dataset["relation"].values.tolist()
    for relation in ("obj", "det", "aux:pass"):
        here, row = dataset.sel(relation=relation), table.loc[relation]
        best = here["accuracy"].sel({key: row[key] for key in ("layer", "head", "direction")})
        assert float(best) == float(here["accuracy"].max()) == row["accuracy"]
        baseline = here["offset_accuracy"].sel(offset=row["baseline_offset"])
        assert float(baseline) == float(here["offset_accuracy"].max()) == row["baseline"]
        assert row["count"] == int(here["count"])


def test_numbers_and_their_intervals_are_those_of_the_result():
    tree = recorded(3, 4, groups=LANGUAGE)
    table, dataset = best_heads(reading(tree, "dependency")), tree["dependency"]
    for column, variable in (
        ("accuracy", "best_accuracy"),
        ("held_out", "held_out"),
        ("baseline", "baseline"),
        ("advantage", "advantage"),
    ):
        for end in ("", "_ci_low", "_ci_high"):
            np.testing.assert_array_equal(table[column + end], dataset[variable + end].values)


@pytest.mark.parametrize(
    ("low", "verdict"), [(0.01, True), (0.0, False), (-0.01, False), (np.nan, pd.NA)]
)
def test_a_head_beats_its_baseline_only_if_the_interval_lies_above_0(low, verdict):
    tree = with_values(recorded(2, 3, groups=LANGUAGE), "dependency", advantage_ci_low=low)
    assert set(best_heads(reading(tree, "dependency"))["beats_baseline"]) == {verdict}


def test_a_relation_that_was_never_asked_about_has_no_head():
    gone = {f"best_{name}": np.nan for name in ("layer", "head", "direction", "offset")}
    tree = with_values(recorded(2, 3, groups=LANGUAGE), "dependency", **gone)
    table = best_heads(reading(tree, "dependency"))
    assert table[["layer", "head", "direction", "baseline_offset"]].isna().all(axis=None)


def test_layers_and_heads_are_whole_numbers_from_0():
    table = best_heads(reading(recorded(2, 3, groups=LANGUAGE), "dependency"))
    assert table["layer"].dtype == table["head"].dtype == "Int64"
    assert table["layer"].min() == 0


def test_coreference_has_one_row_per_kind_of_mention_beside_every_system():
    tree = recorded(3, 4, groups=LANGUAGE)
    table, dataset = (
        coreference_heads(reading(tree, "coreference")).set_index("mention_type"),
        tree["coreference"],
    )
    assert list(table.index) == ["all", "pronoun", "proper", "nominal"]
    for kind, row in table.iterrows():
        here = dataset.sel(mention_type=kind)
        assert row["accuracy"] == float(here["best_accuracy"])
        assert row["count"] == int(here["count"])
        place = {"layer": row["layer"], "head": row["head"]}
        assert row["accuracy_strict"] == float(here["accuracy_strict"].sel(place))
        assert row["accuracy_strict_ci_low"] == float(here["accuracy_strict_ci_low"].sel(place))
        for system in ("nearest", "head_match", "rule_based"):
            assert row[f"baseline_{system}"] == float(here["baseline"].sel(system=system))
            low = float(here["advantage_ci_low"].sel(system=system))
            assert row[f"advantage_{system}_ci_low"] == low
            assert bool(row[f"beats_{system}"]) == (low > 0)


def test_frame_heads_come_by_score_with_chance_and_spread_of_the_same_head():
    tree = recorded(4, 5, groups=LANGUAGE)
    table, dataset = top_frame_heads(reading(tree, "frames"), count=6), tree["frames"]
    assert len(table) == 6
    assert table["score"].is_monotonic_decreasing
    assert table["score"][0] == float(dataset["score"].max())
    for _, row in table.iterrows():
        here = dataset.sel(layer=row["layer"], head=row["head"])
        for name in ("score", "score_ci_low", "score_reversed", "chance", "p_value_reversed"):
            assert row[name] == float(here[name])
        assert row["quantile_0.75"] == float(here["score_quantile"].sel(quantile=0.75))


def test_all_frame_heads_can_be_had_and_those_without_score_are_none():
    tree = recorded(2, 3, groups=LANGUAGE)
    score = tree["frames"]["score"].values.copy()
    score[1, 2] = np.nan
    tree = with_values(tree, "frames", score=score)
    assert len(top_frame_heads(reading(tree, "frames"), count=None)) == 5


OF_QUESTION = {
    "dependency": best_heads,
    "coreference": coreference_heads,
    "frames": top_frame_heads,
}


def test_a_run_without_the_analysis_has_no_table_of_it():
    of_run = all_tables(recorded(2, 3, groups=("entropy",)))
    assert set(of_run) == {"entropy", "heads", "head_labels"}


@pytest.mark.parametrize("name", OF_QUESTION)
def test_rows_name_their_model(name):
    table = OF_QUESTION[name](reading(recorded(2, 3, groups=LANGUAGE), name))
    assert set(table["model"]) == {"demo"}
