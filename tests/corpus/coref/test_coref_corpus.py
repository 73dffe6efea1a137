"""Is the format of a file with coreference told from its content?"""

import pytest

from corpus.rows import entities, row, sentence
from headscope.corpus import CorefCorpus, Encoder
from headscope.errors import CorpusError, InputError

CONLL = "#begin document (c); part 0\n" + "c 0 0 a NN * - - - - * (1)\n\n#end document\n"
COREFUD = entities("(e1)", comments=["# newdoc id = u"])
GAP = (
    "ID\tText\tPronoun\tPronoun-offset\tA\tA-offset\tA-coref\tB\tB-offset\tB-coref\n"
    "g\tAnn, Eve: she\tshe\t10\tAnn\t0\tTRUE\tEve\t5\tFALSE\n"
)


def test_files_of_three_formats_are_one_corpus_whatever_their_names(write):
    files = [write(CONLL, "a.txt"), write("\n# x\n" + COREFUD, "b.tsv"), write(GAP, "c.conll")]
    corpus = CorefCorpus(files)
    assert [(d.id, len(d.passages[0].mentions)) for d in corpus] == [
        ("c part 0", 1),
        ("u", 1),
        ("g", 3),
    ]
    assert list(corpus) == list(corpus)


def test_a_byte_order_mark_hides_no_format(write):
    for text in (CONLL, COREFUD, GAP):
        assert len(list(CorefCorpus(write(b"\xef\xbb\xbf" + text.encode())))) == 1


NEITHER = {
    "plain text": ("Once upon a time.\n", r":1: found 'Once upon a time\.'; looked for"),
    "rows without a document": (CONLL.split("\n")[1], ":1: found 'c 0 0 a.*looked for"),
    "a treebank": (sentence(row(1, "a", 0)), " has rows like CoNLL-U and no Entity= mark; looked"),
    "only comments": ("# a\n\n# b\n", ":1: found '# a'"),
    "only white space": (" \n\n", " is blank"),
    "not UTF-8": (b"\xff\xfe", r":1: found '\\udcff\\udcfe'"),
}


@pytest.mark.parametrize(("text", "reason"), NEITHER.values(), ids=NEITHER)
def test_a_file_of_no_format_is_named_with_what_was_looked_for(write, text, reason):
    bad, good = write(text, "bad"), write(GAP, "good")
    with pytest.raises(CorpusError, match="bad" + reason) as caught:
        list(CorefCorpus([bad, good]))
    assert "#begin document" in str(caught.value)
    assert "Entity=" in str(caught.value)
    assert "ID, Text, Pronoun" in str(caught.value)
    first, second = (d.passages[0] for d in CorefCorpus([bad, good], on_error="skip"))
    assert first.fault == str(caught.value)
    assert second.fault is None


def test_documents_of_one_name_in_two_files_are_told_apart(write):
    corpus = CorefCorpus([write(CONLL, "a"), write(CONLL, "b")])
    assert [d.id for d in corpus] == ["c part 0", "c part 0 (b:1)"]


def test_the_policy_is_described_where_it_is_not_the_default(write):
    path = write(GAP, "g.tsv")
    plain = CorefCorpus(path).describe()
    assert plain["kind"] == "coreference"
    assert plain["files"][0]["name"] == "g.tsv"
    assert set(plain) == {"kind", "files"}
    assert CorefCorpus(path, on_error="skip").describe() == {**plain, "on_error": "skip"}
    with pytest.raises(InputError, match="on_error"):
        CorefCorpus(path, on_error="no")


def test_reading_is_lazy(write):
    documents = iter(CorefCorpus(write(CONLL + CONLL.replace("(1)", "1)"))))
    assert next(documents).id == "c part 0"


def test_what_was_skipped_is_counted_and_named(write, bert):
    encoder = Encoder(bert, model_limit=64, has_segments=True)
    path = write(CONLL + CONLL.replace("(1)", "1)"), "c.conll")
    examples = [e for d in CorefCorpus(path, on_error="skip") for e in encoder.encode(d)]
    assert [len(e.mentions) for e in examples] == [1]
    assert encoder.counts.reasons["malformed"].total == 1
    assert (
        "c.conll:6: coreference bracket '1' is closed but not open"
        in (encoder.counts.reasons["malformed"].first[0])
    )
