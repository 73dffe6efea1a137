"""Is a file that is no plain text told from one that is, by what it holds, then by its name?"""

from __future__ import annotations

import gzip
import json

import pytest

from headscope.corpus import TextCorpus, files
from headscope.errors import CorpusError, InputError

PROSE = "The cat sat on the mat.\nIt was tired, and slept.\n\nDogs bark. Nobody knows why.\n"
TREE = "# text = Hi\n1\tHi\thi\tINTJ\tUH\t_\t0\troot\t_\t_\n\n"
CAFE = "Ein Café in Köln, sehr gut.\nÄrger über Öl.\n"
OTHERS = {
    "paper.txt": (b"%PDF-1.7\n%\xe2\xe3\n1 0 obj", "is a PDF"),
    "book": (b"PK\x03\x04\x14\x00", "a ZIP archive"),
    "text": (gzip.compress(PROSE.encode()), "compressed by gzip"),
    "wide.txt": (PROSE.encode("utf-16-le"), "UTF-16 without a mark"),
    "nuls.txt": (PROSE.replace(" ", "\0 ").encode() * 20, "or binary"),
    "marked.txt": (PROSE.encode("utf-16"), "is UTF-16"),
    "mac.txt": (PROSE.replace("\n", "\r").encode(), "end in CR alone"),
    "page.txt": (b"\n<!DOCTYPE html>\n<html><p>Hi</p>", "is a web page"),
    "lines.txt": (b'{"text": "A cat."}\n{"text": "A dog."}\n', "is JSON; .* --segments"),
    "pretty.txt": (json.dumps({"text": ["A cat."]}, indent=1).encode(), "is JSON"),
    "trees.txt": (TREE.encode(), "is a treebank; .* --treebank"),
    "coref.txt": (b"#begin document (tale); part 0\n", "is coreference; .* --coref"),
    "rows.txt": (b"a\tb\n1\t2\n3\t4\n5\t6\n7\t8\n", "is a table; .* column"),
    "garbled.txt": (CAFE.encode().decode("cp1252").encode(), "decoded wrongly .*Windows-1252"),
    "table.csv": (b"text\nA cat sat.\n", "is a table by its name"),
    "run.py": (PROSE.encode(), "is a program by its name"),
}
SOUND = {
    "prose.txt": PROSE,
    "windows.txt": PROSE.replace("\n", "\r\n"),
    "accents.txt": CAFE * 3,
    "wrong letters.txt": PROSE + "It says “CafÃ©” where it should say “Café”.\n",
    "brackets.md": "[1] Smith says so.\n{ a set }\n# A heading\n",
    "europarl.tr": "Kedi uyuyor. Köpek havlıyor.\n",
    "tabs.txt": "One\ttwo three.\nFour five.\nSix.\nSeven\teight\tnine.\nTen.\n",
    "nul.txt": "a\0b and more of the same text\n",
    "numbers": "1\n2\n3\n4\n5\n6\n",
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_no_plain_text_is_refused_or_skipped_as_what_it_is(tmp_path, name):
    content, words = OTHERS[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(CorpusError, match=words):
        list(TextCorpus(tmp_path / name))
    documents = list(TextCorpus(tmp_path / name, on_error="skip"))
    assert [one.fault for document in documents for one in document.passages] != [None]
    assert len(documents) == 1


@pytest.mark.parametrize("name", SOUND)
def test_plain_text_is_read_whatever_it_speaks_of(tmp_path, name):
    (tmp_path / name).write_bytes(SOUND[name].encode())
    assert list(TextCorpus(tmp_path / name)) == list(TextCorpus(tmp_path / name, format="text"))


def test_a_format_that_is_named_overrules(tmp_path):
    (tmp_path / "x.py").write_text(PROSE)
    assert len(list(TextCorpus(tmp_path / "x.py", format="text"))) == 2
    with pytest.raises(InputError, match="wanted one of auto, text"):
        TextCorpus(tmp_path / "x.py", format="prose")


def test_a_line_without_end_is_refused_before_it_is_held(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "LONGEST", 1 << 16)
    with gzip.open(tmp_path / "bomb.txt.gz", "wb") as file:
        file.write(b"A cat.\n" + b"x" * (1 << 24))
    with pytest.raises(CorpusError, match=r"bomb.txt.gz:2 is a line of more than 0 MiB"):
        list(TextCorpus(tmp_path / "bomb.txt.gz"))
