"""Are the model inputs those of the tokenizer itself, and is nothing cut or left out silently?"""

import json
import subprocess
import sys
import time

import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from headscope.corpus import (
    Document,
    EncodeCounts,
    Encoder,
    Mention,
    Passage,
    SegmentsCorpus,
    TextCorpus,
    TreebankCorpus,
    Word,
)
from headscope.corpus import encoder as encoding
from headscope.corpus.contents import unknown_words
from headscope.errors import CorpusError, InputError

from .conftest import KINDS

LARGE = 20  # seconds; each of these takes about one, and far more if anything is quadratic


def encoder(tokenizer, *, model_limit=512, has_segments=True, **options):
    return Encoder(tokenizer, model_limit=model_limit, has_segments=has_segments, **options)


def one(**passage):
    return Document("d", (Passage("p", **passage),))


def words(text):
    return tuple(Word(form) for form in text.split())


# What is made


def test_a_text_is_encoded_as_the_tokenizer_does(tokenizer):
    text = "The cat sat, didn't it?  Yes!"
    (example,) = encoder(tokenizer).encode(one(text=text))
    expected = tokenizer(text, return_special_tokens_mask=True)
    assert example.input_ids.tolist() == expected.input_ids
    assert example.special.tolist() == [bool(s) for s in expected.special_tokens_mask]
    assert example.segment_ids.tolist() == [0] * len(example)
    assert example.input_ids.dtype == np.int64
    assert example.word_index is None


def test_a_pair_is_encoded_as_the_tokenizer_does(tokenizer):
    pair = "The cat sat.", "It was tired, wasn't it?"
    (example,) = encoder(tokenizer).encode(one(text=pair[0], text_pair=pair[1]))
    expected = tokenizer(*pair, return_special_tokens_mask=True)
    assert example.input_ids.tolist() == expected.input_ids
    assert example.special.tolist() == [bool(s) for s in expected.special_tokens_mask]


def test_the_segments_of_a_bert_pair_are_its_token_types(bert):
    (example,) = encoder(bert).encode(one(text="A cat.", text_pair="It sat."))
    assert example.segment_ids.tolist() == bert("A cat.", "It sat.").token_type_ids


@pytest.mark.parametrize("options", [{"segment_ids": "zeros"}, {"has_segments": False}])
def test_segment_ids_are_zeros_on_request_and_for_models_without_segments(bert, options):
    for passage in ({"text": "a", "text_pair": "b"}, {"tokens": ("[CLS]", "a", "[SEP]", "b")}):
        (example,) = encoder(bert, **options).encode(one(**passage))
        assert not example.segment_ids.any()


def test_an_empty_second_text_is_no_second_segment(bert):
    (example,) = encoder(bert).encode(one(text="cat", text_pair=""))
    assert example.input_ids.tolist() == bert("cat", "").input_ids == bert("cat").input_ids


def test_shared_segments_from_text_are_exactly_their_tokens(bert, shared):
    path = shared / "data" / "segments" / "wikitext2_valid.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    ready = [e for d in SegmentsCorpus(path) for e in encoder(bert).encode(d)]
    assert len(ready) == len(rows) == 60
    for row, example in zip(rows, ready, strict=True):
        text = Passage(row["id"], text=row["text_a"], text_pair=row["text_b"])
        (made,) = encoder(bert).encode(Document(row["id"], (text,)))
        assert bert.convert_ids_to_tokens(made.input_ids) == row["tokens"]
        for field in ("input_ids", "segment_ids", "special"):
            np.testing.assert_array_equal(getattr(made, field), getattr(example, field))
        assert example.special.sum() == 3


# Words


def test_word_index_points_each_token_to_its_word(tokenizer):
    sentence = words("The cats didn't eat unbelievably warm cakes .")
    (example,) = encoder(tokenizer).encode(one(words=sentence))
    assert (example.word_index[example.special] == -1).all()
    inside = example.word_index[~example.special]
    assert sorted(set(inside.tolist())) == [*range(len(sentence))]
    assert (np.diff(inside) >= 0).all()
    for index, word in enumerate(sentence):
        piece = tokenizer.decode(example.input_ids[example.word_index == index])
        if tokenizer.unk_token not in piece:
            assert piece.replace(" ", "").lower() == word.form.lower()
    assert example.words == sentence


def test_words_keep_the_spaces_of_running_text_where_they_matter(gpt2_like):
    sentence = (
        Word("the"),
        Word("cat", space_after=False),
        Word(",", space_after=True),
        Word("tired"),
    )
    (example,) = encoder(gpt2_like).encode(one(words=sentence))
    assert example.input_ids.tolist() == gpt2_like("the cat, tired").input_ids


def running(passage):
    return "".join(w.form + " " * w.space_after for w in passage.words).strip()


@pytest.fixture(scope="session")
def ewt(shared):
    path = next((shared / "data" / "ud_english_ewt").glob("*dev*.conllu"))
    return [p for d in TreebankCorpus(path) for p in d.passages][:300]


def test_words_of_english_ewt_are_nearly_their_text_where_each_is_read_alone(bert, gpt2_like, ewt):
    for tokenizer in (bert, gpt2_like):
        same = 0
        for passage in ewt:
            made = encoder(tokenizer, word_tokens="alone")
            (example,) = made.encode(Document("d", (passage,)))
            same += example.input_ids.tolist() == tokenizer(running(passage)).input_ids
            assert set(example.word_index[~example.special]) == {*range(len(passage.words))}
        # Treebank words cut what a tokenizer keeps together in a few sentences ("do" + "n't").
        assert same > 0.85 * len(ewt)


def smollm_like(lines):
    """Single digits, then GPT-2's pieces, as SmolLM2 has them; merges over "don", ").", "its"."""
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(False)]
    )
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=2000,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=alphabet,
        show_progress=False,
    )
    backend.train_from_iterator(lines, trainer)
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(tokenizer_object=backend, bos_token="<|endoftext|>")


def test_byte_level_words_of_english_ewt_have_the_ids_of_the_running_text(ewt):
    """Read one by one, "do" + "n't" gave other ids than "don't", in one sentence of eleven."""
    tokenizer = smollm_like([running(passage) for passage in ewt])
    alone, text = encoder(tokenizer, word_tokens="alone"), encoder(tokenizer)
    differ, missing = 0, 0
    for passage in ewt:
        whole = tokenizer(running(passage), return_offsets_mapping=True)
        (example,) = text.encode(Document("d", (passage,)))
        assert example.input_ids.tolist() == whole.input_ids
        (other,) = alone.encode(Document("d", (passage,)))
        differ += other.input_ids.tolist() != whole.input_ids
        missing += len({*range(len(passage.words))} - {*example.word_index})
        spans = spans_of(passage)
        for (start, end), index in zip(whole.offset_mapping, example.word_index, strict=True):
            first = start + (running(passage)[start:end][:1] == " ")
            assert spans[index][0] <= first < spans[index][1]
    assert 0.05 * len(ewt) < differ
    assert text.counts.without_token == missing > 0
    assert alone.counts.without_token == 0


def spans_of(passage):
    """Where each word stands in the running text."""
    spans, at = [], 0
    for word in passage.words:
        spans.append((at, at + len(word.form)))
        at += len(word.form) + word.space_after
    return spans


@pytest.mark.parametrize("kind", [*KINDS])
def test_glued_words_have_the_ids_of_the_text_wherever_spaces_matter(kind):
    tokenizer = KINDS[kind]()
    sentence = (Word("the"), Word("cat", space_after=False), Word(","), Word("tired"))
    (example,) = encoder(tokenizer).encode(one(words=sentence))
    assert example.input_ids.tolist() == tokenizer("the cat, tired").input_ids
    assert sorted({*example.word_index[~example.special].tolist()}) == [0, 1, 2, 3]


def test_wordpiece_words_are_read_one_by_one_unless_the_text_is_asked_for(bert):
    """As Clark et al. did for their treebank; "didn't" is cut elsewhere in running text."""
    sentence = (Word("did", space_after=False), Word("n't"), Word("eat"))
    for how, tokens in (("auto", "did n ' t eat"), ("text", "didn ' t eat")):
        (example,) = encoder(bert, word_tokens=how).encode(one(words=sentence))
        content = example.input_ids[~example.special]
        assert bert.convert_ids_to_tokens(content) == tokens.split()
        assert example.word_index.tolist()[1:-1] == [0, *[1] * (len(content) - 2), 2]


def test_characters_of_several_bytes_and_forms_with_spaces_keep_their_words(gpt2_like):
    forms = ("日本", "1 000", "🙂", "ﬁn")
    (example,) = encoder(gpt2_like).encode(one(words=tuple(Word(form) for form in forms)))
    for index, form in enumerate(forms):
        assert gpt2_like.decode(example.input_ids[example.word_index == index]).strip() == form


def test_a_word_without_any_token_leaves_the_others_in_place(bert):
    (example,) = encoder(bert).encode(one(words=words("a \u200b\u200d b")))
    assert example.word_index.tolist() == [-1, 0, 2, -1]


def test_mentions_stay_with_their_words(bert):
    mention = Mention("e1", 0, 1, 1)
    (example,) = encoder(bert).encode(one(words=words("The cat"), mentions=(mention,)))
    assert example.mentions == (mention,)


# Ready tokens


def test_ready_tokens_are_used_as_they_are(bert):
    tokens = ("[CLS]", "a", "[UNK]", "[SEP]", "[MASK]", "b", "[SEP]")
    (example,) = encoder(bert).encode(one(tokens=tokens))
    assert bert.convert_ids_to_tokens(example.input_ids) == list(tokens)
    assert example.segment_ids.tolist() == [0, 0, 0, 0, 1, 1, 1]
    # [UNK] and [MASK] stand for content: they are tokens of the text.
    assert example.special.tolist() == [True, False, False, True, False, False, True]


def test_ready_tokens_of_another_vocabulary_are_refused(bert, gpt2_like):
    with pytest.raises(CorpusError, match="another vocabulary: p holds 'Ġcat'"):
        encoder(bert).encode(one(tokens=("[CLS]", "Ġcat", "[SEP]")))
    with pytest.raises(CorpusError, match=r"another vocabulary: p holds '\[CLS\]'"):
        encoder(gpt2_like).encode(one(tokens=("[CLS]", "the")))


def test_ready_tokens_over_the_limit_become_windows_with_the_frame(bert):
    a, b = ["cat"] * 20, ["dog"] * 9
    tokens = ("[CLS]", *a, "[SEP]", *b, "[SEP]")
    made = encoder(bert, max_length=16)
    examples = made.encode(one(tokens=tokens))
    assert [bert.decode(e.input_ids) for e in examples] == [
        "[CLS] " + "cat " * 13 + "[SEP]",
        "[CLS] " + "cat " * 7 + "[SEP] " + "dog " * 6 + "[SEP]",
        "[CLS] " + "dog " * 3 + "[SEP]",
    ]
    assert examples[1].segment_ids.tolist() == [0] * 9 + [1] * 7
    assert made.counts.windowed == 1


# What is too long


@pytest.mark.parametrize("pair", [False, True])
def test_windows_hold_all_content_in_order_and_their_own_frame(tokenizer, pair):
    text, second = "the cat sat on the mat " * 40, "a dog ate " * 30 if pair else None
    made = encoder(tokenizer, max_length=32)
    examples = made.encode(one(text=text, text_pair=second))
    whole = tokenizer(text, add_special_tokens=False).input_ids
    whole += tokenizer(second, add_special_tokens=False).input_ids if second else []
    assert np.concatenate([e.input_ids[~e.special] for e in examples]).tolist() == whole
    assert all(len(e) <= 32 for e in examples)
    assert [e.id for e in examples] == [f"p#{i}" for i in range(len(examples))]
    assert made.counts.windowed == 1
    assert made.counts.skipped == 0


def test_windows_of_words_end_between_words_and_keep_their_numbers(bert):
    sentence = words("unbelievably " * 30)
    examples = encoder(bert, max_length=16).encode(one(words=sentence))
    seen = [sorted(set(e.word_index[~e.special].tolist())) for e in examples]
    assert [w for window in seen for w in window] == [*range(30)]
    assert all(e.words == sentence for e in examples)


def test_long_passages_can_be_skipped_and_are_named(bert):
    made = encoder(bert, max_length=16, long="skip")
    assert made.encode(one(text="cat " * 15)) == []
    assert len(made.encode(one(text="cat " * 14))) == 1
    assert made.counts.as_dict() == {
        "documents": 2,
        "examples": 1,
        "tokens": 16,
        "skipped": 1,
        "windowed": 0,
        "without_token": 0,
        "content": 14,
        "unknown": 0,
        "reasons": {"longer than 16 tokens": {"total": 1, "first": ["p"]}},
    }


@pytest.mark.parametrize(
    "passage",
    [
        {"text": "cat " * 15},
        {"text": "cat " * 15, "packable": True},
        {"words": words("cat " * 15)},
        {"tokens": ("[CLS]", *["cat"] * 15, "[SEP]")},
    ],
)
def test_long_passages_can_be_an_error(bert, passage):
    with pytest.raises(CorpusError, match="p has 17 tokens and 16 fit; choose long=window"):
        encoder(bert, max_length=16, long="error").encode(one(**passage))


def test_the_default_length_is_128_for_packed_text_and_the_models_limit_for_the_rest(bert):
    text = "cat " * 500
    assert max(map(len, encoder(bert).encode(one(text=text)))) == 502
    assert max(map(len, encoder(bert).encode(one(text=text, packable=True)))) == 128
    small = encoder(bert, model_limit=64)
    assert max(map(len, small.encode(one(text=text, packable=True)))) == 64


@pytest.mark.parametrize("options", [{"max_length": 600}, {"max_length": 4}, {"long": "cut"}])
def test_lengths_and_options_that_cannot_be_are_refused(bert, options):
    with pytest.raises(InputError, match="wanted"):
        encoder(bert, **options)
    with pytest.raises(InputError, match="wanted one of auto, zeros"):
        encoder(bert, segment_ids="ones")


# What cannot be read


def test_lone_surrogates_are_skipped_and_counted_not_fatal(tokenizer):
    made = encoder(tokenizer)
    bad = "a\ud800b"
    passages = (
        Passage("p0", text=bad),
        Passage("p1", text="a", text_pair=bad),
        Passage("p2", words=(Word("a"), Word(bad))),
        Passage("p3", tokens=(bad,)),
        Passage("p4", text=bad, packable=True),
        Passage("p5", text="the cat", packable=True),
    )
    (example,) = made.encode(Document("d", passages))
    assert example.input_ids.tolist() == tokenizer("the cat").input_ids
    reason = made.counts.reasons["not valid Unicode"]
    assert (reason.total, reason.first) == (5, ["p0", "p1", "p2", "p3", "p4"])


@pytest.mark.parametrize(
    "passage",
    [
        {"text": ""},
        {"text": "", "packable": True},
        {"text": "", "text_pair": ""},
        {"words": ()},
        {"tokens": ()},
    ],
)
def test_passages_without_content_are_skipped_as_empty(tokenizer, passage):
    made = encoder(tokenizer)
    assert made.encode(one(**passage)) == []
    assert made.counts.reasons["empty"].first == ["p"]


def test_what_gives_no_token_but_special_ones_is_empty(bert):
    made = encoder(bert)
    assert made.encode(one(text="\0 \u200b")) == []
    assert made.encode(one(text="\0", packable=True)) == []
    assert made.encode(one(words=words("\0"))) == []
    assert made.encode(one(tokens=("[CLS]", "[SEP]"))) == []
    assert made.counts.skipped == 4


MIXED = [
    Document(
        "packed", tuple(Passage(f"s{n}", text=f"The cat sat {n}.", packable=True) for n in "12")
    ),
    Document("pair", (Passage("p", text="The cat sat.", text_pair="It slept."),)),
    Document("again", (Passage("p", text="The cat sat.", text_pair=""), Passage("q", text=""))),
    Document("words", (Passage("w", words=words("The cat sat ."), mentions=()),)),
    Document("none", ()),
    Document("bad", (Passage("b", text="a\ud800b"), Passage("c", text="\ud800", packable=True))),
    Document("fault", (Passage("f", fault="a.txt:1: broken"),)),
    Document("long", (Passage("l", text="a cat " * 400), Passage("m", text="cat", packable=True))),
]


@pytest.mark.parametrize("ahead", [1, 50, 1 << 15])
def test_documents_that_are_read_together_are_those_read_one_by_one(tokenizer, ahead, monkeypatch):
    monkeypatch.setattr(encoding, "AHEAD", ahead)
    together, alone = encoder(tokenizer), encoder(tokenizer)
    found, expected = [*together.encode_each(MIXED * 2)], [alone.encode(d) for d in MIXED * 2]
    assert together.counts == alone.counts
    assert [list(map(repr, one)) for one in found] == [list(map(repr, one)) for one in expected]


def test_many_documents_take_few_calls_of_the_tokenizer(bert, monkeypatch):
    made, calls = encoder(bert), []
    plain = made.reader._call
    monkeypatch.setattr(made.reader, "_call", lambda *g, **o: calls.append(g) or plain(*g, **o))
    documents = [Document(str(n), one(text=f"the cat {n}").passages) for n in range(300)]
    packed = [Document(str(n), MIXED[0].passages) for n in range(300)]
    assert sum(map(len, made.encode_each(documents + packed))) == 600
    assert len(calls) == 2


def test_documents_before_an_error_are_read_before_it(bert):
    def broken():
        yield one(text="the cat")
        raise CorpusError("cut off")

    each = encoder(bert).encode_each(broken())
    assert len(next(each)) == 1
    with pytest.raises(CorpusError, match="cut off"):
        next(each)


def test_a_document_without_passages_gives_nothing(bert):
    made = encoder(bert)
    assert made.encode(Document("d", ())) == []
    assert made.counts == EncodeCounts(documents=1)


def test_one_token_is_enough(bert):
    for passage in ({"text": "cat"}, {"text": "cat", "packable": True}, {"tokens": ("cat",)}):
        (example,) = encoder(bert).encode(one(**passage))
        assert (~example.special).sum() == 1


@pytest.mark.parametrize(
    "text", ["a\0b", "שלום עולם", "مرحبا بالعالم", "\u202ecat", "日本語", "🙂"]
)
def test_odd_but_valid_text_is_encoded_as_the_tokenizer_does(tokenizer, text):
    expected = tokenizer(text).input_ids
    for passage in ({"text": text}, {"text": text, "packable": True}):
        (example,) = encoder(tokenizer).encode(one(**passage))
        assert example.input_ids.tolist() == expected


@pytest.mark.parametrize("kind", ["packed", "words"])
def test_a_word_of_many_letters_is_read_in_reasonable_time(tokenizer, kind):
    word = "a" * 200_000
    passage = {
        "packed": {"text": word, "packable": True},
        "words": {"words": (Word(word), Word("cat"))},
    }[kind]
    started = time.perf_counter()
    made = encoder(tokenizer)
    examples = made.encode(one(**passage))
    assert time.perf_counter() - started < LARGE
    whole = tokenizer(word, add_special_tokens=False).input_ids
    content = np.concatenate([e.input_ids[~e.special] for e in examples])
    assert content[: len(whole)].tolist() == whole
    assert len(content) - len(whole) < 10  # the word "cat", where there is one
    assert made.counts.skipped == 0


def test_a_word_of_a_megabyte_is_one_unknown_token_in_bert(bert):
    (example,) = encoder(bert).encode(one(text="a" * 1_000_000))
    assert bert.convert_ids_to_tokens(example.input_ids) == ["[CLS]", "[UNK]", "[SEP]"]


def test_a_document_of_ten_thousand_tokens_is_read_whole(tokenizer):
    started = time.perf_counter()
    passages = tuple(
        Passage(f"p{i}", text="the cat sat on it .", packable=True) for i in range(1700)
    )
    examples = encoder(tokenizer).encode(Document("d", passages))
    assert sum((~e.special).sum() for e in examples) >= 10_000
    assert time.perf_counter() - started < LARGE


# Counting


def test_counts_of_shards_add_up_to_those_of_the_whole(bert):
    documents = [Document(f"d{i}", (Passage(f"p{i}", text="cat " * (i % 40)),)) for i in range(120)]
    options = {"max_length": 16, "long": "skip"}
    whole = encoder(bert, **options)
    parts = [encoder(bert, **options) for _ in range(2)]
    for i, document in enumerate(documents):
        whole.encode(document)
        parts[i >= 50].encode(document)
    parts[0].counts.add(parts[1].counts)
    assert parts[0].counts == whole.counts
    assert len(whole.counts.reasons["longer than 16 tokens"].first) == 20 < whole.counts.skipped


def test_wikitext_in_128_token_windows_has_two_segments_nearly_everywhere(bert, shared):
    made = encoder(bert)
    corpus = TextCorpus(shared / "data" / "wikitext2" / "valid.txt", documents="heading")
    examples = [e for document in corpus for e in made.encode(document)]
    assert made.counts.documents == 60
    assert made.counts.tokens == sum(map(len, examples))
    assert made.counts.skipped == 0
    assert np.mean([e.segment_ids.any() for e in examples]) > 0.9
    assert np.mean([len(e) for e in examples]) > 100


def test_importing_the_corpus_imports_neither_torch_nor_transformers():
    code = (
        "import sys, headscope.corpus; sys.exit(bool({'torch', 'transformers'} & {*sys.modules}))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_text_of_which_the_tokenizer_knows_nothing_is_refused_and_of_which_little_is_told(bert):
    known, strange = "The cat sat on the mat.", "ꙮꙮꙮꙮ 🜨🜨🜨 ꙮꙮ " * 4
    made = encoder(bert)
    for text in (known, strange):
        made.encode(one(text=text))
    counts = made.counts.as_dict()
    assert counts["content"] > counts["unknown"] == 12
    assert unknown_words(counts).startswith(f"12 of {counts['content']} tokens (")
    assert not unknown_words(counts | {"unknown": 0})
    assert not unknown_words({"unknown": "<b>", "content": 1})
