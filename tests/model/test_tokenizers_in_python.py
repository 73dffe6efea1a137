"""Are models read whose tokenizers transformers runs in Python: ESM, ByT5, BERTweet, Marian …?"""

from __future__ import annotations

import numpy as np
import pytest

import headscope as hs
from headscope.corpus.tokenizer import TokenizerReader
from headscope.errors import ModelError
from headscope.experiments.alignment.translator import Translator
from slow_tokenizers import KINDS, TEXT, saved

TREE = """1\tthe\t_\tDET\t_\t_\t2\tdet\t_\t_
2\tcat\t_\tNOUN\t_\t_\t3\tnsubj\t_\t_
3\tsat\t_\tVERB\t_\t_\t0\troot\t_\tSpaceAfter=No
4\t.\t_\tPUNCT\t_\t_\t3\tpunct\t_\t_
"""
WORDS = ["the", "cat", "was", "n't", "tired", ",", "it", "ate", "."]
GLUED = [3, 5, 8]


@pytest.fixture(scope="module", params=[*KINDS])
def folder(request, tmp_path_factory):
    return saved(tmp_path_factory.mktemp("slow"), request.param)


@pytest.fixture(scope="module")
def model(folder):
    return hs.load(folder)


def test_every_word_has_its_tokens_and_the_text_its_ids(model):
    reader = TokenizerReader(model.tokenizer)
    assert not model.tokenizer.is_fast
    ids, word = reader.running_words(WORDS, glued=GLUED)
    text = "the cat wasn't tired, it ate."
    assert ids.tolist() == model.tokenizer(text, add_special_tokens=False).input_ids
    whole, special, _ = reader.frame.wrap(ids, None)
    assert whole.tolist() == model.tokenizer(text).input_ids
    assert (~special).sum() == len(ids)
    _alone, own = reader.words(WORDS, glued=GLUED)
    assert sorted({*own}) == list(range(len(WORDS)))
    if model.tokenizer.unk_token_id not in ids:  # ESM knows amino acids, no English
        assert sorted({*word}) == list(range(len(WORDS)))
        each = [model.tokenizer.decode(ids[word == at]).replace(" ", "") for at in range(9)]
        assert [one.replace("@@", "") for one in each] == WORDS


def test_text_and_trees_are_analysed(model, tmp_path):
    (tmp_path / "t.conllu").write_text((TREE + "\n") * 4)
    of_text = hs.atlas(model, [TEXT, TEXT], analyses=["surface"], control="none")
    shares = of_text.tree["surface"]["attention"].sel(target=["self", "previous", "next"])
    assert np.isfinite(shares.values).all()
    corpus = hs.corpus.TreebankCorpus(tmp_path / "t.conllu")
    of_trees = hs.atlas(model, corpus, analyses=["dependency"], control="none")
    counts = of_trees.tree["dependency"]["count"]
    assert int(counts.sel(relation="nsubj")) == 4


def test_a_view_shows_the_words_between_spaces(model):
    (side, *_) = hs.view(model, TEXT).shown.sides
    content = side.word[~side.special]
    assert content.max() + 1 == len(TEXT.split())
    assert (np.diff(content) >= 0).all()
    assert side.tokens


@pytest.mark.parametrize("folder", ["ByT5", "Marian", "M2M100", "PLBart"], indirect=True)
def test_a_decoder_reads_its_text_as_a_target(model):
    reader = TokenizerReader(model.tokenizer, target=True)
    whole = reader.frame.wrap(reader.text(TEXT), None)[0]
    assert whole.tolist() == model.tokenizer(text_target=TEXT).input_ids
    assert len(Translator(model.network, model.tokenizer, "m", "", "").readers) == 2
    assert hs.view(model, TEXT, TEXT).shown.sides[1].word.max() + 1 == len(TEXT.split())


def test_a_package_that_a_tokenizer_needs_is_named(folder, monkeypatch):
    """transformers refuses such a tokenizer in four lines; the package is what counts."""
    import transformers

    def lacking(*_args, **_options):
        raise ImportError("\nX requires the SentencePiece library but it was not found\nhere.\n")

    monkeypatch.setattr(transformers.AutoTokenizer, "from_pretrained", lacking)
    with pytest.raises(ModelError, match=r"needs the package sentencepiece.*pip install sentence"):
        hs.load(folder)


def test_opening_and_closing_tokens_of_xlm_are_two(tmp_path):
    """Its `cls_token` is the closing `</s>`: attention to it was told as that to the opening."""
    model = hs.load(saved(tmp_path, "XLM"))
    assert model.special_tokens == {"cls": "<s>", "sep": "</s>"}
    assert {*model.tokens(model.vocabulary.punctuation)} == {".", ","}
