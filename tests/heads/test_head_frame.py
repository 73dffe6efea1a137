"""Does a run tell of its heads as a data frame, and find those that do something?"""

import numpy as np
import pandas as pd
import pytest

import headscope as hs
from heads.test_functions import surpassing
from heads.test_notable_heads import plant, quiet_tree
from headscope.claims.head_labels import head_labels
from headscope.errors import InputError, RunFolderError
from headscope.heads.head_frame import find_heads
from headscope.heads.tables import label_table
from recorded import LANGUAGE, recorded


@pytest.fixture(scope="module")
def five(tiny) -> hs.Run:
    """A run in memory, of enough documents for labels."""
    return hs.atlas(tiny, hs.demo_corpus(), limit=5, analyses=["surface", "entropy", "dependency"])


def test_every_head_has_a_row_with_what_the_tables_say_of_it(five: hs.Run) -> None:
    frame, labels = five.heads(), label_table(five.tree)
    assert list(zip(frame.layer, frame["head"], strict=True)) == list(np.ndindex(2, 4))
    assert list(frame.name[:2]) == ["L1·H1", "L1·H2"]
    first = labels[labels["rank"] == 1].set_index(["layer", "head"])
    assert len(first)
    for row in frame.itertuples():
        if (row.layer, row.head) not in first.index:
            assert row.labels == "unlabelled"
            assert pd.isna([row.label, row.value, row.n]).all()
            continue
        wanted = first.loc[(row.layer, row.head)]
        told = (row.label, row.n, row.effect, row.value)
        assert told == (wanted.label, 5, wanted.effect, wanted.value)
        assert row.ci_low <= row.value <= row.ci_high


def test_further_numbers_come_with_their_intervals(five: hs.Run) -> None:
    frame = five.heads("entropy.entropy.all", "surface.attention.previous")
    of_data = five["entropy"].sel(query="all")
    for end in ("", "_ci_low", "_ci_high"):
        values = frame[f"entropy.entropy.all{end}"].to_numpy().reshape(2, 4)
        np.testing.assert_array_equal(values, of_data[f"entropy{end}"].values)
    previous = five["surface"].attention.sel(target="previous", layer=1, head=2)
    assert frame["surface.attention.previous"][6] == float(previous)
    with pytest.raises(InputError, match=r"did you mean entropy\.entropy\.all"):
        five.heads("entropy.entrpy.all")


def test_heads_are_found_by_what_is_said_of_them_labels_first(five: hs.Run) -> None:
    said = {
        (layer, head, label.name)
        for (layer, head), one in head_labels(five.tree).items()
        for label in one.labels
    }
    name = sorted(name for *_, name in said)[0]
    found = five.find(name.upper())
    assert found.label.str.casefold().str.contains(name.casefold(), regex=False).all()
    labels = found[found.is_label]
    assert {(r.layer, r.head, r.label) for r in labels.itertuples()} >= {
        one for one in said if one[2] == name
    }
    assert found.is_label.is_monotonic_decreasing
    assert labels.effect.is_monotonic_decreasing
    assert found[~found.is_label].effect.is_monotonic_decreasing


def test_a_relation_is_found_by_its_name_in_the_data_and_in_words() -> None:
    tree = surpassing(recorded(groups=LANGUAGE))
    data = find_heads(tree, "nsubj")
    assert len(data)
    assert find_heads(tree, "NSUBJ").equals(data)
    words = find_heads(tree, "subject")
    assert set(data.label) <= set(words.label)
    assert all("subject" in label for label in words.label)


def test_what_nothing_is_said_of_is_refused_with_near_names() -> None:
    tree = plant(
        quiet_tree(), "surface", "attention", 0.87, 0.85, 0.89, layer=0, head=1, target="previous"
    )
    (row,) = find_heads(tree, "previous").itertuples()
    assert (row.name, row.is_label, row.label, row.ci_low) == (
        "L1·H2",
        True,
        "previous token",
        0.85,
    )
    with pytest.raises(InputError, match="claim 'previos token'; did you mean previous token"):
        find_heads(tree, "previos token")
    with pytest.raises(InputError, match="claim ' '; there are: previous token"):
        find_heads(tree, " ")


def test_a_run_in_memory_has_a_report_as_one_page_or_in_a_folder(tiny, short, tmp_path) -> None:
    run = hs.atlas(tiny, ["The cat sat.", "A dog barked."], analyses=["surface"])
    page = run.report(tmp_path / "x.html")
    assert page == tmp_path / "x.html"
    assert [file.name for file in tmp_path.iterdir()] == ["x.html"]
    assert "<svg" in page.read_text("utf-8")
    assert run.report(tmp_path / "folder") == tmp_path / "folder/report.html"
    assert (tmp_path / "folder/tables/surface.csv").is_file()
    with pytest.raises(RunFolderError, match="holds another run"):
        run.report(short.path)
    with pytest.raises(InputError, match="in memory; give report"):
        run.report()
