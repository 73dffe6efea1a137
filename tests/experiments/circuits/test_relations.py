"""Do heads whose weights turn a word into a related one get that relation, and no other?"""

from __future__ import annotations

from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
import torch
import transformers as T
from tokenizers import Tokenizer, models, pre_tokenizers

import headscope as hs
from experiments.circuits.decoders import TOKENIZERS, made_tokenizer, network
from headscope.claims.head_labels import head_labels
from headscope.claims.reading import Reading, run_findings
from headscope.draw.label_kinds import label_kinds
from headscope.errors import CorpusError, InputError
from headscope.experiments.circuits import CIRCUITS, relation_claims, relations
from headscope.experiments.circuits.made_inputs import WordPairs
from headscope.experiments.circuits.own_relations import read_relations
from headscope.experiments.circuits.relation_claims import CARD, EMBEDDED
from headscope.experiments.circuits.relations import (
    NEXT,
    TOKENS,
    WORDS,
    most_tokens,
    related_words,
    relation_hits,
    relation_result,
    relations_of,
)
from headscope.experiments.circuits.settings import FEWEST, CircuitSettings
from headscope.experiments.circuits.verdicts import verdicts
from headscope.experiments.circuits.weight_maps import WeightMaps
from headscope.model.language_model import LanguageModel
from headscope.model.model import load

AMONG, MANY = 10, 20
PAIRS = WordPairs([*range(12)], [(at,) for at in range(12)], [*"abcdefghijkl"])
QUICK: dict[str, Any] = {
    "sequences": 10,
    "length": 5,
    "haystack": 0,
    "composition": False,
    "control": "none",
}


def tokenizer(*relations: str) -> T.PreTrainedTokenizerFast:
    """One token for each word of these relations."""
    words = ["<s>", *(word for name in relations for pair in WORDS[name] for word in pair)]
    known = {word: at for at, word in enumerate(dict.fromkeys([*words, ".", ","]))}
    core = Tokenizer(models.WordLevel(known, unk_token="."))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return T.PreTrainedTokenizerFast(tokenizer_object=core, bos_token="<s>", model_max_length=64)


def random(seed: int, *relations: str, family: str = "GPT-2") -> Any:
    """A random decoder of two layers that knows their words, and none other."""
    known = tokenizer(*relations)
    return load(network(family, vocab_size=len(known), seed=seed), tokenizer=known)


def scores(model: Any, *, replicates: int = 50) -> Any:
    """The result of all relations of a model."""
    settings = CircuitSettings(relations=AMONG, replicates=replicates)
    return related_words(model, WeightMaps(model), settings)


@torch.no_grad()
def wired() -> LanguageModel:
    """Head 0.0 writes the plural of a word, 0.1 the word, 0.2 against its opposite, and 0.3
    twenty plurals, whatever the word.
    """
    known = tokenizer("plural", "opposite")
    size, ids = len(known), known.get_vocab()
    width = 4 * size
    config = T.GPT2Config(
        vocab_size=size, n_positions=64, n_embd=width, n_layer=1, n_head=4, n_inner=8,
        bos_token_id=0, eos_token_id=0, tie_word_embeddings=False,
    )  # fmt: skip
    net: Any = T.GPT2LMHeadModel(config).eval()
    for parameter in net.parameters():
        parameter.zero_()
    for module in net.modules():
        if isinstance(module, torch.nn.LayerNorm):
            module.weight.fill_(1)
    net.transformer.wte.weight[:, :size] = torch.eye(size)
    net.lm_head.weight[:, size : 2 * size] = torch.eye(size)
    plural, opposite, always = torch.zeros(3, size, size)
    for word, to in WORDS["plural"]:
        plural[ids[word], ids[to]] = 1
    for word, to in WORDS["opposite"]:
        opposite[ids[word], ids[to]] = -1
    for _, to in list(WORDS["plural"])[:MANY]:
        always[:, ids[to]] = 1
    attention = net.transformer.h[0].attn
    for head, what in enumerate((plural, torch.eye(size), opposite, always)):
        start = head * size
        attention.c_attn.weight[:size, 2 * width + start : 2 * width + start + size] = torch.eye(
            size
        )
        attention.c_proj.weight[start : start + size, size : 2 * size] = what
    return LanguageModel(load(net, tokenizer=known), "causal")


@pytest.fixture(scope="module")
def run():
    """A run on it."""
    return hs.circuits(wired(), **QUICK, relations=MANY)


# --- wired by hand ------------------------------------------------------------------------------


def test_a_head_has_the_relation_that_it_is_wired_for_and_no_other(run):
    found = run["circuits"].sel(layer=0)
    raised, lowered = found.relation_score, found.suppression_score
    np.testing.assert_allclose(raised.sel(relation="plural"), [1, 0, 0, MANY / 35], atol=1e-9)
    np.testing.assert_allclose(raised.sel(relation="opposite"), 0, atol=1e-9)
    np.testing.assert_allclose(lowered.sel(relation="opposite")[:3], [0, 0, 1], atol=1e-9)
    null = found.relation_score_null.sel(relation="plural")
    np.testing.assert_allclose(null[:3], 0, atol=1e-9)
    assert float(null[3]) == pytest.approx(MANY / 35)


def test_labels_and_sentences_name_the_relation_and_a_head_that_copies_has_none(run):
    labels = {place: [c.name for c in one.labels] for place, one in head_labels(run.tree).items()}
    of_relations = {place: [n for n in names if " the " in n] for place, names in labels.items()}
    assert of_relations[0, 0] == ["raises the plural"]
    assert of_relations[0, 2] == ["lowers the opposite"]
    assert not of_relations[0, 1]
    assert not of_relations[0, 3]
    said = " ".join(run_findings(run.tree))
    assert "Raises a related word by weights: L1·H1 plural 100 % [" in said
    assert "Lowers a related word by weights: L1·H3 opposite 100 % [" in said
    assert verdicts(run.tree)["relation"].holds


def test_the_table_has_a_row_for_each_relation_and_says_what_was_left_out(run):
    table = relation_claims.relations_table(Reading(run.tree, CIRCUITS))
    rows = [[cell.text for cell in row] for row in table.groups[0].rows]
    wanted = [["plural", "35", "L1·H1"], ["opposite", "40", rows[1][2]]]
    assert [row[:3] for row in rows[:2]] == wanted
    assert [row[0] for row in rows[2:]] == [f"plural{EMBEDDED}", f"opposite{EMBEDDED}"]
    assert [row[1:] for row in rows[2:]] == [row[1:] for row in rows[:2]]  # of one layer
    assert rows[1][5] == "L1·H3"
    assert "left out: capitalised form (" in table.caption
    assert "next in order (0)" in table.caption


def test_relations_can_be_left_out():
    run = hs.circuits(wired(), **QUICK, relations=0)
    assert "relation_score" not in run["circuits"]
    assert relation_claims.relations_table(Reading(run.tree, CIRCUITS)) is None
    assert verdicts(run.tree)["relation"].needs


def test_words_of_a_user_stand_in_for_ours_and_of_several_related_words_each_is_right(tmp_path):
    path, model = tmp_path / "own.csv", wired()
    rows = [("many", *pair) for pair in WORDS["plural"]]
    rows += [("either", word, other) for word, to in WORDS["plural"] for other in (to, "cold")]
    path.write_text("\n".join(map(",".join, [("relation", "word", "related"), *rows])), "utf-8")
    run = hs.circuits(model, **QUICK, relations=1, relation_pairs=str(path))
    found = run["circuits"]
    assert found["relation"].values.tolist()[:2] == ["many", "either"]
    assert found["relation_pairs"].values.tolist() == [35] * 4
    np.testing.assert_allclose(found.relation_score.sel(layer=0, relation="many")[0], 1)
    np.testing.assert_allclose(found.relation_score.sel(layer=0, relation="either")[0], 1)
    # One head of one kind, whatever the relations.
    said = next(one for one in run_findings(run.tree) if "Raises a related word" in one)
    assert said.count("·H") == 1
    raises = [kind for kind in label_kinds(run.tree) if kind.title.startswith("raises")]
    assert [(kind.title, kind.count) for kind in raises] == [
        ("raises a related word by weights", 1)
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("relation,word\nmany,cat", "no column 'related'; wanted relation, word, related"),
        ("relation,word,related\nmany,cat,", "line 2: an empty cell; wanted a relation and its"),
        ("relation,word,related\n", "found no row in"),
        (f"relation,word,related\na,b,c\na{EMBEDDED},b,c", "wanted another name"),
    ],
)
def test_a_table_of_related_words_that_is_none_is_refused(text, words, tmp_path):
    path = tmp_path / "own.csv"
    path.write_text(text, "utf-8")
    with pytest.raises((CorpusError, InputError), match=words):
        read_relations(path)


def test_words_of_a_user_that_are_no_tokens_are_refused_and_so_are_words_that_are_not_asked(
    tmp_path,
):
    path = tmp_path / "own.csv"
    path.write_text("relation,word,related\nmany,cat,cats\nodd,unknown,words", "utf-8")
    with pytest.raises(
        InputError, match="found 1 pair of the relation 'many' whose words are one token each"
    ):
        hs.circuits(wired(), **QUICK, relation_pairs=str(path))
    with pytest.raises(
        InputError, match="and relations=0, which leaves them out; wanted 1 or more"
    ):
        hs.circuits(wired(), **QUICK, relation_pairs=str(path), relations=0)


# --- against a reference ------------------------------------------------------------------------


@pytest.mark.parametrize("reads", ["", EMBEDDED])
@pytest.mark.parametrize("family", ["GPT-2", "Llama"])
def test_a_score_is_that_of_a_plain_loop_in_float64(family, reads):
    """The first layer reads embeddings, the second what the first feed-forward makes, too."""
    model = random(3, "past tense", family=family)
    weights, relations = WeightMaps(model), relations_of(model)
    pairs, net = relations["past tense"], model.network
    found = scores(model)
    with torch.no_grad():
        words = net.get_input_embeddings().weight[pairs.ids]
        if family == "GPT-2":
            block = net.transformer.h[0]
            second = block.mlp(block.ln_2(words))
        else:
            block = net.model.layers[0]
            second = block.mlp(block.post_attention_layernorm(words))
    speaks = weights.unembedding.double().numpy()
    read_by = (words, words if reads else second)
    for at, (layer, read) in enumerate(zip(weights.layers(), read_by, strict=False)):
        for head in range(len(layer.value)):
            raised = lowered = 0
            for row, right in zip(read.double().numpy(), pairs.right, strict=True):
                logits = speaks @ (row @ layer.value[head].numpy() @ layer.output[head].numpy())
                order = np.argsort(logits).tolist()
                raised += bool({*order[-AMONG:]} & {*right})
                lowered += bool({*order[:AMONG]} & {*right})
            place = {"layer": at, "head": head, "relation": f"past tense{reads}"}
            assert float(found.relation_score.sel(place)) == pytest.approx(raised / len(pairs.ids))
            assert float(found.suppression_score.sel(place)) == pytest.approx(
                lowered / len(pairs.ids)
            )


def test_the_shuffled_level_is_that_of_words_of_which_each_is_as_often_beside_others():
    pairs = WordPairs(
        [*range(13)], [(at,) if at else (0, 90) for at in range(13)], [*"abcdefghijklm"]
    )
    related = relations.right_and_others(pairs, 2).numpy()
    assert related[:, 0].tolist() == [[0, 90], *([at, at] for at in range(1, 13))]
    others = related[:, 1:, 0]
    assert (np.bincount(others.ravel(), minlength=13) == relations.OTHERS).all()
    for at, row in enumerate(others):
        assert len({at, *row.tolist()}) == 1 + relations.OTHERS
    hits = np.random.default_rng(0).random((13, 1 + relations.OTHERS, 1, 1, 2)) < 0.4
    found = relation_result({"plural": hits}, {"plural": pairs}, among=AMONG, replicates=0)
    null = [float(found[name].squeeze()) for name in relation_claims.NULL.values()]
    np.testing.assert_allclose(null, hits[:, 1:].mean((0, 1)).squeeze())


def test_the_level_above_the_shuffled_one_is_corrected_for_all_heads_relations_and_ends():
    """Reference: Bonferroni, by how much longer the interval is for four times as many numbers."""
    rng = np.random.default_rng(0)
    hits = rng.random((12, 6, 3, 5, 2)) < 0.4
    lengths = []
    for names in ("a", "abcd"):
        found = relation_result(
            dict.fromkeys(names, hits), dict.fromkeys(names, PAIRS), among=AMONG, replicates=12
        )
        gain = found.relation_score - found.relation_score_null
        lengths.append((gain - found.relation_score_above).sel(relation="a").values)
    normal = NormalDist().inv_cdf
    wanted = normal(0.025 / (4 * 30)) / normal(0.025 / 30)
    np.testing.assert_allclose(lengths[1] / lengths[0], wanted)


@pytest.mark.parametrize("relations", [["plural"], [*WORDS]])
def test_heads_of_random_weights_have_no_relation(relations):
    """Also where ten tokens are a seventh of the vocabulary."""
    for seed in range(8):
        found = scores(random(seed, *relations))
        for name in relation_claims.SCORES:
            low = found[f"{name}_ci_low"].values
            passes = low > relation_claims.LEAST
            assert np.isfinite(low).all()
            assert not (passes & (found[relation_claims.ABOVE[name]].values > 0)).any()


# --- tokens that are raised and lowered ---------------------------------------------------------


@pytest.mark.parametrize("family", ["GPT-2", "Llama"])
def test_the_tokens_of_a_head_are_those_of_the_mean_row_of_a_plain_loop(family):
    model = random(1, "plural", family=family)
    weights, words = WeightMaps(model), relations_of(model)["plural"].ids
    maps, speaks = list(weights.layers()), weights.unembedding.double().numpy()
    read = [weights.embedding[words].double(), weights.first_feed_forward(words).double()]
    found = most_tokens(maps, weights, words, count=5)
    for at, head in np.ndindex(found.shape[:2]):
        whole = maps[at].value[head].numpy() @ maps[at].output[head].numpy()
        mean = np.mean([speaks @ (row @ whole) for row in read[at].numpy()], 0)
        order = np.argsort(mean).tolist()
        np.testing.assert_array_equal(found[at, head], [order[:-6:-1], order[:5]])


def test_the_card_of_a_head_names_its_tokens_and_a_head_that_writes_nothing_has_none(run):
    plurals = {to for _, to in WORDS["plural"]}
    lines = CARD.lines(Reading(run.tree, CIRCUITS), 0, 3)
    raised, _ = (set(line.partition(": ")[2].strip("“”").split("”, “")) for line in lines)
    assert len(raised) == TOKENS
    assert raised <= plurals
    tree = run.tree.copy(deep=True)
    tree["circuits"] = tree["circuits"].to_dataset().drop_vars("most_tokens")
    assert not [*CARD.lines(Reading(tree, CIRCUITS), 0, 3)]
    assert not CARD.data(Reading(tree, CIRCUITS), 0, 3)


def test_hostile_tokens_are_printable_and_a_dead_head_has_no_tokens(monkeypatch):
    model = wired()
    with torch.no_grad():
        model.model.network.transformer.h[0].attn.c_proj.weight[: len(model.model.tokenizer)] = 0
    hostile = "\x1b[31m<script>\n\ud800"
    monkeypatch.setattr(type(model.model.tokenizer), "decode", lambda *_, **__: hostile)
    monkeypatch.setattr(
        "headscope.experiments.circuits.relations.relations_of", lambda *_: {"plural": PAIRS}
    )
    settings = CircuitSettings(sequences=10, relations=AMONG, replicates=0)
    found = related_words(model.model, WeightMaps(model.model), settings).most_tokens
    assert set(found[0, 0].values.ravel()) == {""}
    assert set(found[0, 1].values.ravel()) <= {"", "�[31m<script>��"}
    assert found[0, 1, 0, 0].item()


# --- tokenizers ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_pairs_are_single_tokens_and_no_token_is_read_or_right_twice(kind):
    known = made_tokenizer(kind)
    relations = relations_of(load(network("GPT-2", vocab_size=len(known)), tokenizer=known))
    assert len(relations["opposite"].ids) >= FEWEST
    assert len(relations["past tense"].ids) < FEWEST  # their words are cut
    for name, pairs in relations.items():
        assert len({*pairs.ids}) == len(pairs.ids)
        every = [one for right in pairs.right for one in right]
        assert len({*every}) == len(every)
        for one, right, words in zip(pairs.ids, pairs.right, pairs.words, strict=True):
            texts = [known.decode([token]).strip().casefold() for token in (one, *right)]
            before, _, after = words.casefold().partition(" → ")
            assert {texts[0]} == {before}
            assert {*texts[1:]} == {after}
            assert name == "same name" or one not in right


def test_a_tokenizer_without_capitals_has_no_capitalised_forms():
    known = made_tokenizer("WordPiece")
    relations = relations_of(load(network("GPT-2", vocab_size=len(known)), tokenizer=known))
    assert not relations["capitalised form"].ids
    assert not relations["upper-case letter"].ids


def test_the_lists_have_each_word_once():
    for name, pairs in WORDS.items():
        words, related = zip(*((one.casefold(), to.casefold()) for one, to in pairs), strict=True)
        assert len({*words}) == len(words), name
        assert len({*related}) == len(related), name
    assert NEXT not in WORDS


def test_looking_at_few_tokens_first_finds_what_all_of_them_do(monkeypatch):
    model = random(3, "plural", "opposite")
    weights, known = WeightMaps(model), relations_of(model)
    maps, hits = list(weights.layers()), []
    for some in (2 * AMONG, 10**6):
        monkeypatch.setattr(relations, "SOME", some)
        hits.append(relation_hits(maps, weights, known, among=AMONG))
    for name, whole in hits[1].items():
        assert 0.02 < whole.mean() < 0.5
        np.testing.assert_array_equal(hits[0][name], whole)
