"""Do windows hold every sentence once, in order, and as full as they may be?"""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headscope.corpus import Document, Encoder, Passage
from headscope.corpus.packing import fill, split_point, windows

LENGTHS = st.lists(st.integers(1, 40), max_size=40)
SENTENCE = st.lists(
    st.sampled_from(["the", "cat", "sat", "tired", "?", "mat", "unbelievably", "מה", "é"]),
    min_size=1,
    max_size=30,
).map(" ".join)


@given(LENGTHS, st.integers(1, 50))
def test_runs_cover_every_sentence_once_in_order(lengths, capacity):
    assert [i for run in fill(lengths, capacity=capacity) for i in run] == [*range(len(lengths))]


@given(LENGTHS, st.integers(1, 50))
def test_a_run_overfills_only_if_it_is_one_long_sentence(lengths, capacity):
    for run in fill(lengths, capacity=capacity):
        assert len(run) == 1 or sum(lengths[i] for i in run) <= capacity


@given(LENGTHS, st.integers(1, 50))
def test_no_run_would_have_held_the_next_sentence_too(lengths, capacity):
    for run in fill(lengths, capacity=capacity):
        assert run.stop == len(lengths) or sum(lengths[i] for i in [*run, run.stop]) > capacity


@given(st.integers(0, 300), st.integers(1, 50))
def test_windows_without_words_are_full_but_the_last(length, capacity):
    sizes = [cut.stop - cut.start for cut in windows(length, capacity=capacity)]
    assert sum(sizes) == length
    assert all(size == capacity for size in sizes[:-1])


@given(st.lists(st.integers(1, 12), max_size=30), st.integers(1, 20))
def test_windows_end_between_words_unless_a_word_fills_one_alone(pieces, capacity):
    word_index = np.repeat(np.arange(len(pieces)), pieces)
    cuts = list(windows(len(word_index), capacity=capacity, word_index=word_index))
    assert [i for cut in cuts for i in range(cut.start, cut.stop)] == [*range(len(word_index))]
    for cut in cuts:
        assert cut.stop - cut.start <= capacity
        splits = cut.stop < len(word_index) and word_index[cut.stop] == word_index[cut.stop - 1]
        assert not splits or len(set(word_index[cut])) == 1


def test_split_points_are_spread_evenly_and_never_leave_a_side_empty():
    drawn = [split_point(4, seed=0, document=f"d{i}", index=0) for i in range(3000)]
    assert np.bincount(drawn, minlength=4)[1:] == pytest.approx(1000, abs=100)
    assert set(drawn) == {1, 2, 3}


def test_a_split_point_depends_on_seed_document_and_index():
    def points(seed, document, start):
        return [split_point(1000, seed=seed, document=document, index=start + i) for i in range(5)]

    assert points(0, "a", 0) == points(0, "a", 0)
    assert points(0, "a", 0) != points(1, "a", 0)
    assert points(0, "a", 0) != points(0, "b", 0)
    assert points(0, "a", 0) != points(0, "a", 1)


def packed(sentences, name="d"):
    passages = (Passage(f"{name}:{i}", text=s, packable=True) for i, s in enumerate(sentences))
    return Document(name, tuple(passages))


def content(examples):
    return np.concatenate([e.input_ids[~e.special] for e in examples]).tolist()


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(SENTENCE, min_size=1, max_size=12), st.sampled_from([8, 16, 40]))
def test_no_token_is_lost_or_doubled_by_packing(tokenizer, sentences, length):
    encoder = Encoder(tokenizer, model_limit=64, has_segments=True, max_length=length)
    examples = encoder.encode(packed(sentences))
    running = tokenizer(" ".join(sentences), add_special_tokens=False).input_ids
    assert content(examples) == running
    assert max(map(len, examples)) <= length


def test_packed_windows_are_pairs_of_consecutive_text(bert):
    encoder = Encoder(bert, model_limit=512, has_segments=True)
    sentences = [f"sentence number {n} of the page ." for n in range(60)]
    examples = encoder.encode(packed(sentences))
    for example in examples:
        tokens = bert.convert_ids_to_tokens(example.input_ids)
        first = tokens.index("[SEP]")
        assert (tokens[0], tokens[-1], tokens.count("[SEP]")) == ("[CLS]", "[SEP]", 2)
        assert tokens[first - 1] == "." == tokens[-2]
        assert example.segment_ids.tolist() == [0] * (first + 1) + [1] * (len(tokens) - first - 1)
    assert [e.id for e in examples] == [f"d#{i}" for i in range(len(examples))]
    assert all(len(e) > 128 - 8 for e in examples[:-1])


def test_a_window_of_one_sentence_has_one_segment(bert):
    encoder = Encoder(bert, model_limit=512, has_segments=True)
    (example,) = encoder.encode(packed(["The cat sat."]))
    assert bert.decode(example.input_ids) == "[CLS] the cat sat. [SEP]"
    assert example.segment_ids.tolist() == [0] * 6


def test_one_sentence_may_fill_the_room_of_the_second_separator(bert):
    encoder = Encoder(bert, model_limit=512, has_segments=True, long="error")
    (example,) = encoder.encode(packed(["the " * 126]))
    assert len(example) == 128


def test_packing_does_not_depend_on_what_was_read_before(bert):
    def encoder():
        return Encoder(bert, model_limit=512, has_segments=True, max_length=32, seed=5)

    documents = [packed([f"{n} cats sat ." for n in range(40)], name=name) for name in "abc"]
    used = encoder()
    forwards = [e.input_ids.tolist() for d in documents for e in used.encode(d)]
    alone = [e.input_ids.tolist() for d in documents for e in encoder().encode(d)]
    assert forwards == alone


def test_another_seed_splits_elsewhere_but_reads_the_same(bert):
    document = packed([f"{n} cats sat ." for n in range(80)])
    one, two = (
        Encoder(bert, model_limit=512, has_segments=True, seed=seed).encode(document)
        for seed in (0, 1)
    )
    assert content(one) == content(two)
    assert [e.segment_ids.sum() for e in one] != [e.segment_ids.sum() for e in two]


def test_sentences_of_two_documents_never_share_a_window(bert):
    encoder = Encoder(bert, model_limit=512, has_segments=True)
    assert [len(encoder.encode(packed(["One."], name=n))) for n in "ab"] == [1, 1]


def test_a_passage_that_may_not_be_packed_parts_the_run(bert):
    encoder = Encoder(bert, model_limit=512, has_segments=True)
    one, alone, two = (
        Passage("d:0", text="one .", packable=True),
        Passage("d:1", text="alone ."),
        Passage("d:2", text="two .", packable=True),
    )
    examples = encoder.encode(Document("d", (one, alone, two)))
    assert [e.id for e in examples] == ["d#0", "d:1", "d#1"]
