"""Are gold links read as they were meant, and is it said where a file goes wrong?"""

from __future__ import annotations

import pytest

from experiments.alignment.made import LINKS, SENTENCES, gold_folder
from headscope.errors import CorpusError
from headscope.experiments.alignment.gold_alignments import read_gold

# The links of the second pair in LINKS, by hand, from 0.
SURE = {(0, 1), (1, 4), (2, 5), (3, 3), (4, 6)}
POSSIBLE = SURE | {(0, 0), (3, 2)}


def three(folder, source="a b\nc\n", target="x\ny z\n", links="0-0 1-0\n0p1\n"):
    """Three files of any names."""
    files = [folder / name for name in ("one", "two", "links")]
    for file, text in zip(files, (source, target, links), strict=True):
        file.write_text(text, "utf-8")
    return files


def test_the_folder_is_read_with_its_languages_and_its_empty_last_line(tmp_path):
    gold = read_gold([gold_folder(tmp_path)])
    assert (gold.languages, gold.first) == (("de", "en"), 1)
    assert [(" ".join(p.source), " ".join(p.target)) for p in gold.pairs] == list(SENTENCES)
    assert gold.pairs[1].sure == SURE
    assert gold.pairs[1].possible == POSSIBLE


def test_blocks_say_the_same_as_lines_whatever_they_count_from(tmp_path):
    wanted = read_gold([gold_folder(tmp_path)])
    for first in (0, 1):
        rows = []
        for at, pair in enumerate(wanted.pairs):
            rows.append(f"SENT: {at + first}")
            for source, target in sorted(pair.possible):
                kind = "S" if (source, target) in pair.sure else "P"
                rows.append(f"{kind} {source + first} {target + first}")
            rows.append("")
        (tmp_path / "alignmentDeEn").write_text("\n".join(rows))
        (tmp_path / "alignmentDeEn.talp").unlink(missing_ok=True)
        found = read_gold([tmp_path])
        assert found.pairs == wanted.pairs
        assert found.first == first
        assert found.sha256 == wanted.sha256


def test_files_of_any_name_are_read_in_the_order_source_target_links(tmp_path):
    gold = read_gold(three(tmp_path, links="0-0 1?0\n0p1\n"))
    assert (gold.languages, gold.first) == (None, 0)
    assert gold.pairs[0].possible == {(0, 0), (1, 0)}
    assert gold.pairs[0].sure == {(0, 0)}
    assert gold.pairs[1].sure == set()


def test_one_set_of_src_tgt_and_talp_is_found_in_a_folder(tmp_path):
    for file, end in zip(three(tmp_path), ("src", "tgt", "talp"), strict=True):
        file.rename(tmp_path / f"deen.v1.{end}")
    assert len(read_gold([tmp_path]).pairs) == 2
    (tmp_path / "other.src").write_text("a\n")
    (tmp_path / "other.talp").write_text("0-0\n")
    with pytest.raises(CorpusError, match="found 2 sets of files"):
        read_gold([tmp_path])


def test_latin_1_and_utf_8_give_the_same_words(tmp_path):
    """In Latin-1 the byte 0x85 ends no line, and a no-break space parts no word."""
    text, found = "daß m\u00a0b gr\u00f6\u00dfe \u0085\n", []
    for encoding in ("latin-1", "utf-8"):
        files = three(tmp_path, target="a b\n", links="0-0 3-1\n")
        files[0].write_bytes(text.encode(encoding))
        found.append(read_gold(files).pairs[0].source)
    assert found[0] == found[1] == ("daß", "m\u00a0b", "gr\u00f6\u00dfe", "\u0085")


BAD = (
    ({"links": "0-0 1:0\n0p1\n"}, r"links:1: found '1:0'; wanted links SOURCE-TARGET"),
    ({"links": "0-0\n1-1\n"}, r"links:2: found a link of word 1 to word 1; wanted words 0 to 0"),
    ({"links": "1-1\n0-0\n1-2\n"}, r"found 3 lines in .* for 2 pairs"),
    ({"links": "0-0\n"}, r"found 1 lines in .* for 2 pairs"),
    ({"links": "SENT: 0\nS 0 0\nSENT: 2\n"}, r"links:3: found 'SENT: 2'; wanted the 2 pairs"),
    ({"links": "SENT: 0\nX 0 0\n"}, r"links:2: found 'X 0 0'; wanted SENT: NUMBER"),
    ({"source": "a b\n"}, r"found 1 lines in .*one and 2 in .*two"),
    ({"source": "a b\n\nc\n", "target": "x\ny\nz\n"}, r"one:2: empty, but not in the other text"),
    (
        {"source": "a b c\n", "target": "x y z\n", "links": "1-1\n"},
        "words may count from 0 or from 1",
    ),
)


@pytest.mark.parametrize(("changed", "told"), BAD)
def test_what_does_not_fit_is_told_with_its_line(tmp_path, changed, told):
    with pytest.raises(CorpusError, match=told):
        read_gold(three(tmp_path, **changed))


def test_a_folder_of_something_else_is_told_what_is_wanted(tmp_path):
    with pytest.raises(CorpusError, match=r"no such files .* wanted a folder with de, en and"):
        read_gold([tmp_path])
    gold_folder(tmp_path, LINKS)
    (tmp_path / "en").unlink()
    with pytest.raises(CorpusError, match="en does not exist"):
        read_gold([tmp_path])
