"""Do the shards hold every document once, whoever reads them in whatever order?"""

from dataclasses import asdict, replace

import numpy as np
import pytest

from forked import called_apart
from headscope.corpus import (
    Document,
    MemoryCorpus,
    Passage,
    TextCorpus,
    Word,
    demo_corpus,
    partitions,
)
from headscope.corpus.partitions import Partition
from headscope.errors import CorpusError
from headscope.model.model import load
from headscope.run.compute import Reader
from headscope.run.frequency_ranks import corpus_ranks, read_ranks
from headscope.run.plan import encoder_for, make_plan
from headscope.run.settings import Settings
from run.divided import Divided

SMALL = Settings(shard_tokens=400)


def same(first, second):
    return [(e.id, e.document, e.input_ids.tolist(), e.segment_ids.tolist()) for e in first] == [
        (e.id, e.document, e.input_ids.tolist(), e.segment_ids.tolist()) for e in second
    ]


def everything(model, corpus, settings):
    encoder = encoder_for(model, settings)
    return [example for document in corpus for example in encoder.encode(document)]


def test_shards_hold_all_documents_once_and_in_order(demo):
    corpus = demo_corpus()
    plan = make_plan(demo, corpus, SMALL)
    assert len(plan.shards) > 3
    assert [s.number for s in plan.shards] == list(range(len(plan.shards)))
    following = 0
    for shard in plan.shards:
        assert shard.first == following
        following += shard.documents
    assert following == plan.counts.documents == sum(1 for _ in corpus)
    every = sum(one.token_counts.sum() for one in plan.readings.values())
    assert sum(s.tokens for s in plan.shards) == plan.counts.tokens == every


def test_shards_give_the_same_examples_in_any_order(demo):
    corpus = demo_corpus()
    shards = make_plan(demo, corpus, SMALL).shards
    reader = Reader(demo, corpus, SMALL)
    forwards = [reader.examples(s) for s in shards]
    backwards = [reader.examples(s) for s in reversed(shards)][::-1]
    alone = [Reader(demo, corpus, SMALL).examples(s) for s in shards]
    for a, b, c in zip(forwards, backwards, alone, strict=True):
        assert same(a, b)
        assert same(a, c)
    assert same([e for part in forwards for e in part], everything(demo, corpus, SMALL))


def test_packed_text_is_cut_alike_in_any_shard(demo, tmp_path):
    """Where a window is split in two is drawn at random: the draw must not depend on the shard."""
    file = tmp_path / "text"
    file.write_text("\n\n".join("One thing. " * n + "Another thing." for n in range(2, 40)))
    corpus = TextCorpus(file)
    settings = Settings(shard_tokens=100, max_length=24)
    shards = make_plan(demo, corpus, settings).shards
    parts = [Reader(demo, corpus, settings).examples(s) for s in reversed(shards)][::-1]
    assert same([e for part in parts for e in part], everything(demo, corpus, settings))


def test_a_limit_reads_only_the_first_documents(demo):
    plan = make_plan(demo, demo_corpus(), Settings(limit=2))
    assert plan.counts.documents == sum(s.documents for s in plan.shards) == 2


def test_empty_documents_make_no_shards_and_hold_nothing_up(demo):
    texts = ["", "A cat.", "", "", "Two cats.", ""]
    settings = Settings(shard_tokens=1)
    plan = make_plan(demo, MemoryCorpus(texts), settings)
    assert [s.tokens > 0 for s in plan.shards] == [True, True]
    assert (plan.counts.documents, plan.counts.examples, plan.counts.skipped) == (6, 2, 4)
    reader = Reader(demo, MemoryCorpus(texts), settings)
    assert [len(reader.examples(s)) for s in plan.shards] == [1, 1]


def test_a_corpus_of_nothing_is_an_error_that_counts_it(demo):
    with pytest.raises(
        CorpusError, match=r"2 documents read, none with an input .*2 passages skipped"
    ):
        make_plan(demo, MemoryCorpus(["", "\ud800"]), Settings())


def test_a_corpus_that_the_tokenizer_does_not_know_is_refused(demo):
    with pytest.raises(CorpusError, match=r"cannot read this text: all 3 tokens are unknown"):
        make_plan(demo, MemoryCorpus(["ꙮꙮꙮꙮ", "🜨🜨🜨 ꙮꙮ"]), SMALL)
    assert make_plan(demo, MemoryCorpus(["ꙮꙮꙮꙮ", "A cat."]), SMALL).counts.unknown == 1


def test_the_digest_changes_with_words_and_with_annotations(demo):
    def digest(form="cats", relation="nsubj", name="d"):
        words = (Word(form, head=1, relation=relation), Word("sleep", relation="root"))
        corpus = MemoryCorpus([Document(name, (Passage("p", words=words),))])
        return make_plan(demo, corpus, Settings()).digest

    others = [digest(form="dogs"), digest(relation="obj"), digest(name="e")]
    assert digest() == digest()
    assert len({digest(), *others}) == 4


# --- partitions --------------------------------------------------------------------------------


def ids(examples):
    return [(example.document, example.id) for example in examples]


def facts(plan):
    return {
        "counts": asdict(plan.counts),
        "tokens": plan.token_counts.tolist(),
        "annotations": (plan.annotations.documents, plan.annotations.relations),
        "stored": ids(plan.stored_inputs),
        "listed": list(plan.listed.items()),
        "sample": ids(plan.sample.within(900)),
        "longest": plan.longest,
        "examples": sum(shard.examples for shard in plan.shards),
    }


@pytest.mark.parametrize("few", [{}, {"replicates": 4}, {"limit": 7}])
def test_partitions_give_what_one_reader_of_all_would_find(demo, few, monkeypatch):
    monkeypatch.setattr("headscope.run.readings.MOST_SAMPLED", 1000)
    divided, settings = Divided(), replace(SMALL, **few)
    plan, whole = (make_plan(demo, c, settings) for c in (divided, MemoryCorpus(divided.documents)))
    assert facts(plan) == facts(whole)
    assert [s.number for s in plan.shards] == list(range(len(plan.shards)))
    places = [divided.CUTS[s.partition] + s.first for s in plan.shards]
    assert places == sorted(places)
    if not few:
        assert {s.partition for s in plan.shards} == {0, 1, 3, 4, 5}
        assert plan.digest != whole.digest


def test_a_reader_opens_the_partition_of_a_shard_and_no_other(demo, monkeypatch):
    corpus = Divided()
    plan, opened = make_plan(demo, corpus, SMALL), []
    read = Partition.__iter__
    monkeypatch.setattr(Partition, "__iter__", lambda p: opened.append(p.name) or read(p))
    last = max(plan.shards, key=lambda shard: shard.partition)
    Reader(demo, corpus, SMALL).examples(last)
    assert opened == [f"part {last.partition}"]
    reader = Reader(demo, corpus, SMALL)
    forwards = [reader.examples(shard) for shard in plan.shards]
    backwards = [reader.examples(shard) for shard in plan.shards[::-1]][::-1]
    everything_ = everything(demo, MemoryCorpus(corpus.documents), SMALL)
    for parts in (forwards, backwards):
        assert same([e for part in parts for e in part], everything_)


def test_several_processes_make_the_plan_of_one(tmp_path):
    called_apart(several_make_the_plan_of_one, cwd=tmp_path)


def several_make_the_plan_of_one():
    demo, corpus = load("demo"), Divided()
    alone, together = (make_plan(demo, corpus, SMALL, workers=n) for n in (1, 2))
    assert together.shards == alone.shards
    assert together.digest == alone.digest
    assert facts(together) == facts(alone)


def test_a_partition_that_changes_or_vanishes_is_named(demo, tmp_path, monkeypatch):
    monkeypatch.setattr(partitions, "PARTITION", 60)
    for name in "abc":
        (tmp_path / f"{name}.txt").write_text("A cat sat on the mat, and a dog slept by it.\n")
    corpus = TextCorpus(tmp_path)
    plan = make_plan(demo, corpus, SMALL)
    assert len(plan.shards) == len(corpus.partitions()) == 3
    (tmp_path / "a.txt").write_text("A dog sat on the mat, and a cat slept by it.\n")
    (tmp_path / "b.txt").unlink()
    reader = Reader(demo, corpus, SMALL)
    with pytest.raises(CorpusError, match=r"has changed .* documents 1 to 1, from .*a.txt on"):
        reader.examples(plan.shards[0])
    with pytest.raises(CorpusError, match=r"b.txt cannot be read: No such file"):
        reader.examples(plan.shards[1])
    assert len(reader.examples(plan.shards[2])) == 1


def test_ranks_count_from_the_most_frequent_and_ties_share_their_mean():
    counts = np.array([5, 0, 9, 5, 0, 0])
    np.testing.assert_array_equal(corpus_ranks(counts), [2.5, 5, 1, 2.5, 5, 5])


def test_ranks_are_read_and_the_unlisted_come_last(tmp_path):
    file = tmp_path / "ranks"
    file.write_text("1 900 2\n2 40 0\n3 7 99\n")
    np.testing.assert_array_equal(read_ranks(file, 4), [2, 4, 1, 4])


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"1 900 2\n2 40\n", "ranks:2: '2 40'; wanted 'rank count token-id'"),
        (b"1 900 2\n\n", "ranks:2: ''"),
        (b"1 900 -2\n", "ranks:1: "),
        (b"one 900 2\n", "ranks:1: "),
        (b"", "is empty"),
        (b"1 2 \xff\n", "cannot read frequency ranks"),
    ],
)
def test_malformed_ranks_are_refused_with_file_and_line(tmp_path, content, says):
    file = tmp_path / "ranks"
    file.write_bytes(content)
    with pytest.raises(CorpusError, match=says):
        read_ranks(file, 4)


def test_missing_ranks_are_named(tmp_path):
    with pytest.raises(CorpusError, match="nowhere"):
        read_ranks(tmp_path / "nowhere", 4)
