"""Is every token of its word, and every link the one that the model's own attention gives?"""

from __future__ import annotations

import numpy as np
import pytest
import torch
import transformers as T

from experiments.alignment.made import Slow, fast, gold_folder, translator
from headscope.errors import ModelError
from headscope.experiments.alignment.align import counts_of, links_of
from headscope.experiments.alignment.gold_alignments import SentencePair, read_gold
from headscope.experiments.alignment.translator import PairSide, _tell_languages, encode
from headscope.model.instrument import Instrument


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    return read_gold([gold_folder(tmp_path_factory.mktemp("gold"))]).pairs


def side(*word: int) -> PairSide:
    return PairSide(np.zeros(len(word), np.int64), np.array(word))


# --- tokens and words -----------------------------------------------------------------------


@pytest.mark.parametrize("tokenizer", [fast(), Slow()], ids=["fast", "slow"])
def test_tokens_know_their_words_with_a_fast_and_with_a_slow_tokenizer(tokenizer, pairs):
    one = encode(translator("Marian", tokenizer), pairs[0])
    names = tokenizer.convert_ids_to_tokens(one.source.ids.tolist())
    assert names == ["der", "hund", "sieht", "katz", "##e", "##n", ".", "</s>"]
    assert one.source.word.tolist() == [0, 1, 2, 3, 3, 3, 4, -1]
    assert one.target.word.tolist() == [0, 1, 2, 2, 3, 3, 4, -1]
    assert one.decoder_ids.tolist() == [0, *one.target.ids[:-1]]


def test_a_sign_for_a_space_that_stands_alone_is_of_the_word_behind_it():
    vocabulary = [
        ("<pad>", 0.0),
        ("</s>", 0.0),
        ("<unk>", 0.0),
        ("▁a", -1.0),
        ("▁", -2.0),
        ("b", -1.5),
        ("▁c", -1.0),
    ]
    t5 = translator("T5", T.T5Tokenizer(vocab=vocabulary, extra_ids=0))
    one = encode(t5, SentencePair("1", ("a", "bb", "c"), ("b",), frozenset(), frozenset()))
    assert t5.tokenizer.convert_ids_to_tokens(one.source.ids.tolist()) == [
        "▁a",
        "▁",
        "b",
        "b",
        "▁c",
        "</s>",
    ]
    assert one.source.word.tolist() == [0, 1, 1, 1, 2, -1]


def test_the_prefix_of_a_task_is_of_no_word(pairs):
    t5 = translator("T5")
    task = {"translation_de_to_en": {"prefix": "translate german to english : "}}
    t5.network.config.task_specific_params = task
    one = encode(t5, pairs[3], ("de", "en"))
    assert one.source.word.tolist() == [-1] * 5 + [0, 0, 1, -1]
    assert encode(t5, pairs[3]).source.word.tolist() == [0, 0, 1, -1]


def test_a_tokenizer_of_many_languages_is_told_which_by_the_names_of_the_files(pairs):
    vocabulary = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁", -1.0)]
    tokenizer = T.MBartTokenizer(vocab=vocabulary)
    _tell_languages(tokenizer, ("de", "en"), "m")
    assert (tokenizer.src_lang, tokenizer.tgt_lang) == ("de_DE", "en_XX")
    assert tokenizer.convert_ids_to_tokens(tokenizer("x").input_ids)[-1] == "de_DE"
    for languages in (None, ("de", "xx")):
        with pytest.raises(ModelError, match="needs the names of two"):
            _tell_languages(tokenizer, languages, "m")


def test_a_decoder_that_reads_its_target_otherwise_is_refused(pairs, monkeypatch):
    bart = translator("BART")
    monkeypatch.setattr(
        type(bart.network), "prepare_decoder_input_ids_from_labels", lambda self, x: x
    )
    with pytest.raises(ModelError, match="does not read each target token one place after"):
        encode(bart, pairs[0])


# --- links of maps --------------------------------------------------------------------------


def test_pieces_are_summed_over_the_source_and_averaged_over_the_target():
    """Source words a (2 pieces) and b; target word x (2 pieces) and y; by hand."""
    source, target = side(0, 0, 1, -1), side(0, 0, 1, -1)
    rows = [0.3, 0.3, 0.4, 0], [0.1, 0.1, 0.7, 0.1], [0.2, 0.2, 0.3, 0.3], [0, 0, 0, 1.0]
    maps = np.array(rows)
    # x: a (.6 + .2)/2 = .4, b (.4 + .7)/2 = .55; y: a .4, b .3, </s> .3
    assert links_of(maps, source, target, later=False).tolist() == [1, 0]
    # one row later, x: a (.2 + .4)/2 = .3, b .5; y: </s> 1
    assert links_of(maps, source, target, later=True).tolist() == [1, -1]


def test_links_of_the_word_read_are_those_of_the_word_generated_one_row_later():
    maps = np.random.default_rng(0).random((5, 7, 6))
    source, target = side(0, 0, 1, 2, 3, -1), side(0, 1, 1, 2, 3, 4, -1)
    later = links_of(maps, source, target, later=True)
    assert (later == links_of(np.roll(maps, -1, axis=1), source, target, later=False)).all()
    assert (later != links_of(maps, source, target, later=False)).any()


def test_a_row_that_looks_at_a_token_of_no_word_gives_no_link():
    maps = np.array([[0.4, 0.6, 0, 0], [0, 0.2, 0.5, 0.3], [0.2, 0.2, 0.2, 0.4]])
    found = links_of(maps, side(-1, 0, 1, -1), side(0, 1, 2), later=False)
    assert found.tolist() == [0, 1, -1]


def test_words_without_tokens_have_no_links_and_the_first_of_equals_is_taken():
    maps = np.array([[0.5, 0.5, 0], [0.5, 0.25, 0.25]])
    assert links_of(maps, side(0, 2, -1), side(0, 2), later=False).tolist() == [0, -1, 0]


# --- links of models ------------------------------------------------------------------------


def stock(model, one):
    """[layer][head][query][key] weights of stock attention, and f(x) of each head by the network's
    own modules: [layer][head][key][model], float64."""
    with torch.no_grad():
        out = model.network(
            input_ids=torch.from_numpy(one.source.ids)[None],
            decoder_input_ids=torch.from_numpy(one.decoder_ids)[None],
            output_attentions=True,
        )
    decoder = model.network.get_decoder()
    vectors = []
    for block in getattr(decoder, "block", None) or decoder.layers:
        if hasattr(block, "encoder_attn"):
            value, project = block.encoder_attn.v_proj, block.encoder_attn.out_proj
        else:
            value, project = block.layer[1].EncDecAttention.v, block.layer[1].EncDecAttention.o
        with torch.no_grad():
            values = value(out.encoder_last_hidden_state)[0].double()  # [key, head·dim]
        heads = out.cross_attentions[0].shape[1]
        parts = values.chunk(heads, 1), project.weight.detach().double().chunk(heads, 1)
        vectors.append([(v @ w.T).numpy() for v, w in zip(*parts, strict=True)])
    return [a[0].double().numpy() for a in out.cross_attentions], vectors


def linked(row, source):
    """The word at which a row is largest, token by token in plain Python; None for no word."""
    total = {}
    for token, weight in enumerate(row):
        word = int(source.word[token])
        place = ("word", word) if word >= 0 else ("token", token)
        total[place] = total.get(place, 0.0) + float(weight)
    kind, found = max(total, key=total.get)
    return found if kind == "word" else None


def expected(maps, one, later):
    """{(source, target)} links of one map."""
    found = set()
    for word in range(int(one.target.word.max()) + 1):
        rows = [maps[t + later] for t in np.flatnonzero(one.target.word == word)]
        if (source := linked(sum(rows) / len(rows), one.source)) is not None:
            found.add((source, word))
    return found


@pytest.mark.parametrize("name", ["Marian", "BART", "mBART", "T5"])
def test_links_and_norms_are_those_of_the_stock_model_by_plain_loops(name, pairs):
    """Run in one padded batch, and compared with each pair run alone."""
    model = translator(name, Slow() if name == "Marian" else None)
    batch = [encode(model, pair) for pair in pairs]
    state = counts_of(model, batch)
    different = 0
    for row, one in enumerate(batch):
        weights, vectors = stock(model, one)
        for layer, (alpha, f) in enumerate(zip(weights, vectors, strict=True)):
            weighted = [a[:, :, None] * v[None] for a, v in zip(alpha, f, strict=True)]
            norms = [np.linalg.norm(v, axis=-1) for v in weighted]
            maps = {
                "weight": [*alpha, np.mean(alpha, 0)],
                "norm": [*norms, np.linalg.norm(sum(weighted), axis=-1)],
            }
            np.testing.assert_allclose(
                state["norm"][row, layer], [n.sum() for n in norms], rtol=1e-4
            )
            for m, every in enumerate(maps.values()):
                for s, later in enumerate((0, 1)):
                    for head, one_map in enumerate(every):
                        links = expected(one_map, one, later)
                        whole = head == len(alpha)
                        counts = state["layer" if whole else "head"][row, layer]
                        counts = counts[s, m] if whole else counts[head, s, m]
                        wanted = [
                            len(links),
                            len(links & one.pair.possible),
                            len(links & one.pair.sure),
                        ]
                        assert counts.tolist() == wanted
                        different += wanted[1] > 0
        assert state["cells"][row] == alpha[0].size
        assert state["wanted"][row] == len(one.pair.sure)
    assert different > 50  # links that are right do occur


@pytest.mark.parametrize(("setting", "later"), [("AWO", 0), ("AWI", 1)])
def test_attention_that_copies_the_gold_links_makes_no_error(setting, later):
    """Cross-attention is replaced: the row that generates, or reads, word i looks at word i."""
    bart = translator("BART")
    links = frozenset((i, i) for i in range(4))
    pair = SentencePair(
        "1", ("der", "hund", "sieht", "."), ("the", "dog", "see", "."), links, links
    )

    def copy(call):
        if call.site.stack == "cross":
            rows, keys = call.attention.shape[-2:]
            at = (torch.arange(rows) - later).clamp_min(0)
            call.attention = torch.eye(keys)[at].expand_as(call.attention).clone()

    with Instrument(bart.network, interventions=[copy]):
        state = counts_of(bart, [encode(bart, pair)])
    at = ["AWO", "AWI"].index(setting)
    assert (state["head"][..., at, :, :] == 4).all()
    assert (state["layer"][..., at, :, :] == 4).all()
    assert (state["layer"][..., 1 - at, 0, 1:] < 4).all()


def test_the_stack_that_is_looked_at_is_the_decoders_cross_attention():
    shape = translator("T5").shape
    assert (shape.stack, shape.layers, shape.heads) == ("cross", 3, 4)  # the encoder has 2 layers
