"""Are heads paired with those that do the same, and functions counted over models?"""

from __future__ import annotations

import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
import xarray as xr
from safetensors.torch import load_file, save_file
from scipy.spatial.distance import jensenshannon
from transformers import AutoModel, BertConfig, BertModel

import headscope as hs
from headscope.claims.claim import Claim
from headscope.claims.verdict import Outcome, Verdict, known
from headscope.model.checkpoint import quietly
from headscope.papers.zoo import functions as functions_module
from headscope.papers.zoo.counterparts import (
    WORDS,
    counterpart_table,
    divergences,
    paired,
    pairs_summary,
)
from headscope.papers.zoo.functions import Function, Held, functions, summary
from made_models import HEADS, LAYERS, NEURONS, small_bert

ORDERS = ((2, 0, 3, 1), (1, 3, 0, 2))  # of the heads of either layer


def permuted(model, folder):
    """A copy whose heads are in another order within each layer: the same function."""
    shutil.copytree(model, folder)
    tensors = load_file(folder / "model.safetensors")
    for layer, order in enumerate(ORDERS):
        rows = torch.arange(HEADS * NEURONS).reshape(HEADS, NEURONS)[list(order)].flatten()
        start = f"encoder.layer.{layer}.attention."
        for part in ("query", "key", "value"):
            for kind in ("weight", "bias"):
                name = f"{start}self.{part}.{kind}"
                tensors[name] = tensors[name][rows].contiguous()
        name = f"{start}output.dense.weight"
        tensors[name] = tensors[name][:, rows].contiguous()
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    return folder


def untrained(model, folder, seed):
    """A network of the same architecture, as BERT draws its weights."""
    shutil.copytree(model, folder)
    with quietly(), torch.random.fork_rng():
        torch.manual_seed(seed)
        BertModel(BertConfig.from_pretrained(model)).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """A model, a copy with its heads in another order, and two that have learned nothing.

    The control is a third of these.
    """
    folder = tmp_path_factory.mktemp("seeds")
    one = small_bert(folder / "one")
    models = [one, permuted(one, folder / "copy")]
    models += [untrained(one, folder / f"raw{seed}", seed) for seed in (1, 2)]
    done = hs.zoo(
        models,
        hs.demo_corpus(),
        output=folder / "out",
        analyses=("surface", "entropy", "examples"),
        execution=hs.Execution(threads=1, linears="stock"),
        limit=4,
        replicates=10,
        reports=False,
        control=str(untrained(one, folder / "control", 3)),
    )
    done.report()
    return done


def pair_of(zoo, *names):
    return next(pair for pair in zoo.counterparts if pair.names == names)


def test_a_copy_with_heads_in_another_order_is_the_same_function(desk):
    """Else the test below would prove nothing."""
    folder, vectors = desk.path.parent, []
    ids = torch.tensor([[101, 2023, 2003, 1037, 6251, 102]])
    for name in ("one", "copy"):
        with quietly(), torch.inference_mode():
            vectors.append(AutoModel.from_pretrained(folder / name)(ids)[0])
    torch.testing.assert_close(vectors[0], vectors[1], atol=1e-5, rtol=1e-5)


def test_the_order_of_a_copys_heads_comes_out_exactly(desk):
    pair = pair_of(desk, "one", "copy")
    orders = {tuple(one): tuple(other) for one, other in pair.places.tolist()}
    expected = {(la, order[at]): (la, at) for la, order in enumerate(ORDERS) for at in range(HEADS)}
    assert orders == expected
    assert pair.alike == LAYERS * HEADS
    assert pair.js.value == pytest.approx(0, abs=1e-6)
    assert (pair.runner_up > 0.01).all()
    assert pair.unit == "tokens"


def test_two_networks_without_training_have_no_heads_and_no_function_in_common(desk):
    pair = pair_of(desk, "raw1", "raw2")
    assert pair.known
    assert pair.alike == 0
    assert not functions({name: desk.runs[name].tree for name in pair.names})


def test_the_page_and_the_tables_have_them(desk):
    page = (desk.path / "report.html").read_text("utf-8")
    assert 'id="counterparts"' in page
    table = counterpart_table(desk.counterparts)
    assert len(table) == 6 * LAYERS * HEADS
    own = table[(table["model"] == "one") & (table["other_model"] == "copy")]
    assert set(own["verdict"]) == {"alike"}
    assert (desk.path / "tables/counterparts.parquet").is_file()
    assert pairs_summary([pair_of(desk, "one", "copy")]).startswith("8 of 8 heads of one and copy")
    none = replace(pair_of(desk, "one", "copy"), verdicts=(Verdict(Outcome.CANNOT_TELL),) * 8)
    assert pairs_summary([none]).startswith("These texts cannot tell whether")
    assert pairs_summary([pair_of(desk, "one", "copy")] * 2).startswith("Of any two models 100 %")


def test_the_divergence_of_maps_is_scipys():
    random = np.random.default_rng(0)
    one, other = (random.dirichlet(np.ones(5), size=(heads, 5)) for heads in (2, 3))
    (js,) = divergences([(("a",), one)], [(("b",), other), (("a",), other)])
    for a, b in np.ndindex(2, 3):
        rows = [jensenshannon(*both) ** 2 for both in zip(one[a], other[b], strict=True)]
        assert js[a, b] == pytest.approx(np.mean(rows))


def words_of(orders, tokens):
    """A run of which only the maps between words are alike: head h looks at word `orders[h]`."""
    maps = np.zeros((6, 1, len(orders), 4, 4))
    for example in range(6):
        for head, word in enumerate(orders):
            maps[example, 0, head, :, word] = 0.6 + 0.05 * example
    text = [[f"{example}{word}" for word in "abcd"] for example in range(6)]
    dims = ("example", "layer", "head", "word", "word_other")
    dataset = xr.Dataset({"attention": (dims, maps)}, {"text": (("example", "word"), text)})
    attrs = {"layers": 1, "heads": len(orders), "sep_token": tokens}
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs=attrs), "examples": dataset})


def test_models_of_two_tokenizers_are_compared_by_words():
    one, other = words_of((0, 1, 2), "[SEP]"), words_of((2, 0, 3, 1), "</s>")
    pair = paired(("one", "other"), (one, other))
    assert pair.unit == WORDS
    assert pair.places[:, :, 1].tolist() == [[0, 1], [1, 3], [2, 0]]
    assert not pair.known  # no control: nothing is said of them
    assert pairs_summary([pair]) == ""


def claim(value, control=np.nan, kind="previous", name="previous token"):
    """A claim about one head, ten points unsure."""
    words = {"name": name, "label": name, "sentence": name, "analysis": "surface"}
    ends = {"value": value, "low": value - 0.1, "high": value + 0.1, "control": control}
    return Claim(layer=0, head=0, kind=kind, effect=0.5, reference=0, n=9, **words, **ends)


def test_a_model_has_a_function_by_the_rule_of_its_label(monkeypatch):
    """The threshold is a half; two heads count where both have the label."""
    claims = {
        "two": [claim(0.7), claim(0.8), claim(0.2)],
        "near": [claim(0.55)],
        "raw": [claim(0.7, control=0.9)],
        "far": [claim(0.3)],
        "without": [],
    }
    trees = {
        name: xr.DataTree.from_dict({"/": xr.Dataset(attrs={"name": name}), "surface": None})
        for name in claims
    }
    trees["unasked"] = xr.DataTree(xr.Dataset(attrs={"name": "unasked"}))
    by_name = {"unasked": [], **claims}
    monkeypatch.setattr(functions_module, "all_claims", lambda tree: by_name[tree.attrs["name"]])
    (one,) = functions(trees)
    assert one.models["two"].heads == 2
    said = {name: held.verdict.outcome for name, held in one.models.items()}
    fails = dict.fromkeys(("raw", "far", "without"), Outcome.FAILS)
    assert said == fails | {
        "two": Outcome.HOLDS,
        "near": Outcome.CANNOT_TELL,
        "unasked": Outcome.NOT_ASKED,
    }
    trees.pop("near")
    assert functions(trees)[0].alone == "two"


def test_separators_of_two_tokenizers_are_one_function(monkeypatch):
    names = {"bert": "[SEP]", "roberta": "</s>", "gpt": ""}
    trees = {
        name: xr.DataTree.from_dict({"/": xr.Dataset(attrs={"sep_token": token}), "surface": None})
        for name, token in names.items()
    }

    def of_tokens(tree):
        token = tree.attrs["sep_token"]
        return [claim(0.9, kind="sep", name=token)] if token else []

    monkeypatch.setattr(functions_module, "all_claims", of_tokens)
    (one,) = functions(trees)
    assert (one.name, one.in_all) == ("[SEP]", True)
    assert one.models["gpt"].verdict.needs == "its tokenizer adds no [SEP]"


def of_models(*outcomes):
    verdicts = {Outcome.HOLDS: known(True), Outcome.FAILS: known(False)}
    verdicts |= {one: Verdict(one) for one in (Outcome.NOT_ASKED, Outcome.CANNOT_TELL)}
    held = {f"m{at}": Held(verdicts[one], 1) for at, one in enumerate(outcomes)}
    return Function("previous", "previous token", held)


@pytest.mark.parametrize(
    ("outcomes", "words"),
    [
        ("HOLDS HOLDS HOLDS", "every model"),
        ("HOLDS NOT_ASKED HOLDS", "every model"),
        ("FAILS HOLDS FAILS", "m1 alone"),
        ("FAILS HOLDS CANNOT_TELL", "cannot tell"),
        ("HOLDS HOLDS FAILS", "2 of 3 models"),
        ("HOLDS HOLDS CANNOT_TELL", "cannot tell"),
        ("NOT_ASKED HOLDS NOT_ASKED", "1 of 1 models"),
    ],
)
def test_who_has_a_function(outcomes, words):
    function = of_models(*(Outcome[one] for one in outcomes.split()))
    assert function.words == words
    said = summary([function])
    assert ("every model has heads for “previous token”" in said) == (words == "every model")
    assert ("(m1)" in said) == (words == "m1 alone")
