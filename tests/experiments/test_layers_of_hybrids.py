"""Do experiments speak the model's own numbers where only some of its layers attend?

A Jamba of four layers, of which 1 and 3, counted from 0, attend.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from benchmarks.family_models import FAMILIES
from click.testing import CliRunner, Result
from matplotlib.text import Text
from safetensors.torch import load_file
from transformers import (
    JambaConfig,
    JambaForCausalLM,
    JambaForSequenceClassification,
    JambaModel,
)

import headscope as hs
from experiments.probes.made import treebank
from headscope.claims.reading import run_findings
from headscope.cli.main import group
from headscope.errors import InputError, ModelError
from headscope.experiments.alignment.translator import load_translator
from headscope.experiments.comparison.similarity import read_training
from headscope.model.checkpoint import quietly
from headscope.run.store import open_run
from headscope.views.view_page import payload
from model.families.tiny import sharpened
from tasks.made import MOOD, rows, tokenizer, write_tsv

OPTIONS: dict[str, Any] = {
    **FAMILIES["Jamba"][1],
    "num_hidden_layers": 4,
    "vocab_size": 13,
    "pad_token_id": 0,
    "bos_token_id": None,
    "eos_token_id": None,
}
NAMES = [f"L{layer}·H{head}" for layer in (2, 4) for head in (1, 2, 3, 4)]
FAST = ("--linears", "stock", "--replicates", "5", "--no-report")


def saved(folder: Path, kind: Any, *, seed: int = 0, **more: Any) -> Path:
    with torch.random.fork_rng(), quietly():
        torch.manual_seed(seed)
        network = sharpened(kind(JambaConfig(**OPTIONS | more)))
        network.save_pretrained(folder)
        tokenizer().save_pretrained(folder)
    return folder


def asked(*words: object) -> Result:
    return CliRunner().invoke(group, [str(word) for word in words])


def told(*words: object) -> str:
    result = asked(*words)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("hybrids")
    classes = {"id2label": dict(enumerate(MOOD.labels))}
    classes["label2id"] = {label: at for at, label in classes["id2label"].items()}
    saved(place / "mood", JambaForSequenceClassification, **classes)
    saved(place / "even", JambaModel)
    saved(place / "odd", JambaModel, seed=1, attn_layer_offset=0)
    write_tsv(place / "data" / "dev.tsv", rows(16))
    write_tsv(place / "data" / "train.tsv", rows(16, seed=1))
    return place


def task(folder: Path) -> tuple[object, ...]:
    return folder / "mood", "--task", "mood", "--data", folder / "data"


@pytest.fixture(scope="module")
def ablated(folder: Path) -> hs.Run:
    text = told("ablate", *task(folder), "--together", "2-1+4-3", "-o", folder / "ablated", *FAST)
    assert "layer 2" in text or "layer 4" in text
    assert "layer 1 " not in text
    assert "L1·" not in text
    run = open_run(folder / "ablated")
    run.report()
    return run


def test_heads_are_switched_off_by_the_models_numbers(folder: Path, ablated: hs.Run) -> None:
    found = ablated["ablation"]
    assert found["layer"].values.tolist() == [1, 3]
    assert found["group"].values.tolist() == ["L2·H1 + L4·H3"]
    assert ablated.path is not None
    effects = pd.read_csv(ablated.path / "tables" / "ablation_effects.csv")
    assert effects["name"].tolist() == [*NAMES, "L2", "L4", "L2·H1 + L4·H3"]
    assert effects["layer"].tolist()[:10] == [1, 1, 1, 1, 3, 3, 3, 3, 1, 3]
    page = (ablated.path / "report.html").read_text("utf-8")
    shown = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    assert set(re.findall(r"L(\d+)·H\d", shown.replace("L8·H10", ""))) == {"2", "4"}
    assert "layer 4" in shown
    assert "layer 1 " not in shown
    command = ("ablate", *task(folder), "--together", "3-1", "-o", folder / "no")
    refused = str(asked(*command).exception)
    assert refused == "layer 3 has no attention; wanted one of the layers 2, 4"


def test_what_is_off_is_the_layer_of_that_number(folder: Path, ablated: hs.Run) -> None:
    """Held against W_O of the named layer with the head's columns at 0, in stock transformers."""
    network = JambaForSequenceClassification.from_pretrained(folder / "mood").eval()
    told("ablate", *task(folder), "--replacement", "zero", "-o", folder / "zeroed", *FAST)
    found = open_run(folder / "zeroed")["ablation"]["loss"]
    losses = []
    with torch.no_grad():
        network.model.layers[3].self_attn.o_proj.weight[:, 16:24] = 0
        for row in rows(16):
            ids = tokenizer()(row.text_a, return_tensors="pt")["input_ids"]
            losses.append(float(-network(ids).logits[0].log_softmax(-1)[row.label]))
    assert float(found.sel(layer=3, head=2)) == pytest.approx(np.mean(losses), rel=1e-5)
    assert float(found.sel(layer=1, head=2)) != pytest.approx(np.mean(losses), rel=1e-3)


def test_pruned_heads_are_named_and_gone_by_the_models_numbers(folder: Path) -> None:
    command = ("prune", *task(folder), "--orders", "alone", "--remove", "3", "--step", "3")
    told(*command, "-o", folder / "pruned", "--linears", "stock", "--replicates", "5")
    note = json.loads((folder / "pruned" / "pruned.json").read_text("utf-8"))
    gone = [tuple(place) for place in note["removed_from_0"]]
    assert {layer for layer, _ in gone} <= {1, 3}
    assert note["removed"] == [f"L{layer + 1}·H{head + 1}" for layer, head in gone]
    weights = load_file(folder / "pruned" / "model.safetensors")
    for layer in (1, 3):
        w_o = weights[f"model.layers.{layer}.self_attn.o_proj.weight"].view(32, 4, 8)
        off = (w_o == 0).all(-1).all(0)
        assert off.nonzero().ravel().tolist() == [head for at, head in gone if at == layer]


def test_an_importance_of_other_layers_is_refused(folder: Path) -> None:
    """As many layers of as many heads, but not the same ones."""
    classes = {"id2label": dict(enumerate(MOOD.labels))}
    classes["label2id"] = {label: at for at, label in classes["id2label"].items()}
    other = saved(folder / "other", JambaForSequenceClassification, attn_layer_offset=0, **classes)
    told(
        "importance",
        other,
        *task(folder)[1:],
        "--methods",
        "michel",
        "-o",
        folder / "of-other",
        *FAST,
    )
    command = ("prune", *task(folder), "--importance", folder / "of-other", "-o", folder / "no")
    refused = str(asked(*command).exception)
    assert refused == "the importance is of the layers 1, 3; wanted 2, 4: that of the same model"


def test_importance_is_of_the_models_numbers(folder: Path, ablated: hs.Run) -> None:
    text = told(
        "importance",
        *task(folder),
        "--ablation",
        ablated.path,
        "--methods",
        "michel",
        "-o",
        folder / "important",
        *FAST,
    )
    named = text.partition("michel: ")[2].splitlines()[0].split(", ")
    assert set(named) <= set(NAMES)
    found = open_run(folder / "important")["importance"]
    assert found["layer"].values.tolist() == [1, 3]
    most = found["head_importance"].sel(variant="michel").stack(unit=("layer", "head"))
    layer, head = most["unit"].values[int(most.values.argmax())]
    assert named[0] == f"L{layer + 1}·H{head + 1}"


def test_a_language_model_that_routes_is_read(folder: Path) -> None:
    """Found here: mixtures of experts hand `output_router_logits` to their attention."""
    saved(folder / "language", JambaForCausalLM)
    (folder / "text.txt").write_text("the cat sat. a cat, b.\n\nthe a b cats.\n", "utf-8")
    command = ("importance", folder / "language", "--text", folder / "text.txt")
    told(*command, "--methods", "michel", "-o", folder / "language-run", *FAST)
    assert open_run(folder / "language-run")["gradients"]["layer"].values.tolist() == [1, 3]


def test_a_comparison_says_which_layers_are_held_against_which(folder: Path) -> None:
    base, tuned = hs.load(folder / "even"), hs.load(folder / "odd")
    corpus = hs.corpus.MemoryCorpus(["the cat sat. a cat, b.", "the a b cats."] * 3)
    settings = hs.Settings(replicates=6, analyses=("surface",))
    run = hs.compare(base, tuned, corpus, settings=settings)
    assert run["similarity"]["layer"].values.tolist() == [0, 2]
    assert run.tree.attrs["base_layer_numbers"] == "1 3"
    assert run_findings(run.tree)[0] == (
        "Attention stands in other layers in both: layer 2 against 1, 4 against 3, of even "
        "against odd; names are those of odd."
    )
    same = hs.compare(base, base, corpus, settings=settings)
    assert "base_layer_numbers" not in same.tree.attrs
    assert not any("other layers" in line for line in run_findings(same.tree))


def test_the_record_of_a_training_is_read_at_the_layers_that_attend(tmp_path: Path) -> None:
    parts = [{"layer": None, "gradient_norm": 9.0}]
    parts += [{"layer": at, "gradient_norm": float(at)} for at in range(4)]
    (tmp_path / "finetuned.json").write_text(json.dumps({"layers": parts}), "utf-8")
    found = read_training(tmp_path, layers=4, numbers=(1, 3))
    assert found is not None
    assert found["gradient_norm"].tolist() == [1, 3]
    with pytest.raises(ModelError, match="lists 4 layers, and the checkpoint has 3"):
        read_training(tmp_path, layers=3, numbers=(1, 2))


def test_probes_read_the_layer_of_that_number(folder: Path) -> None:
    treebank(folder / "train.conllu", 12)
    treebank(folder / "test.conllu", 8, seed=1)
    command = ("probe", folder / "even", "--train", folder / "train.conllu")
    command += ("--test", folder / "test.conllu", "--probes", "attention,structural")
    text = told(
        *command,
        "--structural-layers",
        "4",
        "--structural-epochs",
        "1",
        "-o",
        folder / "probed",
        "--keep-features",
        *FAST,
    )
    assert "best of the layers by UUAS: layer 4" in text
    assert "L1·" not in text
    probes = open_run(folder / "probed")["probes"]
    assert probes["layer"].values.tolist() == [1, 3]
    assert np.isfinite(probes["structural_uuas"].values).tolist() == [False, True]
    refused = str(asked(*command, "--structural-layers", "1", "-o", folder / "no").exception)
    assert refused == "layer 1 has no attention; wanted one of the layers 2, 4"


def test_the_best_head_of_a_relation_is_of_the_models_number(folder: Path) -> None:
    model = hs.load(folder / "even")
    treebank(folder / "atlas.conllu", 12)
    settings = hs.Settings(replicates=5, analyses=("dependency",))
    corpus = hs.corpus.TreebankCorpus([folder / "atlas.conllu"])
    run = hs.atlas(model, corpus, settings=settings, output=folder / "relations")
    found = run["dependency"]
    accuracy = found["accuracy"].sel(relation="dep").max("direction")
    best = accuracy.stack(unit=("layer", "head"))
    layer, head = best["unit"].values[int(np.nanargmax(best.values))]
    own = found.sel(relation="dep")
    assert (int(own["best_layer"]), int(own["best_head"])) == (layer, head)
    assert layer in (1, 3)
    run.report()
    table = pd.read_csv(folder / "relations" / "tables" / "best_heads.csv")
    assert table.set_index("relation")["layer"]["dep"] == layer
    page = (folder / "relations" / "report.html").read_text("utf-8")
    assert f"L{layer + 1}·H{head + 1}" in page


def test_a_translator_is_wanted_where_words_are_aligned(folder: Path) -> None:
    with pytest.raises(ModelError, match="no encoder-decoder"):
        load_translator(str(folder / "even"), languages=("de", "en"))


def test_a_view_is_asked_for_heads_by_the_models_number(folder: Path) -> None:
    command = ("view", folder / "even", "the cat sat.", "-o", folder / "view.html")
    told(*command, "--svg", folder / "view.svg", "--heads", "4-2", "--detail", "2-1")
    assert "L4·H2" in (folder / "view.svg").read_text("utf-8")
    refused = str(asked(*command, "--detail", "1-1").exception)
    assert refused == "layer 1 has no attention; wanted one of the layers 2, 4"


def test_a_view_speaks_the_models_numbers_in_python_too(folder: Path) -> None:
    shown = hs.view(hs.load(folder / "even"), "the cat sat.", detail=[(1, 0)])
    assert shown.detail == [(0, 0)]
    page = payload(shown.shown, detail=shown.detail)
    assert page["stacks"][0]["detail"]["heads"] == [[0, 0]]
    words = [text.get_text() for text in shown.picture((3, 1)).findobj(Text)]
    assert any("L4·H2" in word for word in words)
    assert any(
        "L4·H2" in text.get_text() for text in shown.picture((3, 1), kind="matrix").findobj(Text)
    )
    wanted = "layer 1 has no attention; wanted one of the layers 2, 4"
    for ask in (
        lambda: shown.picture((0, 1)),
        lambda: hs.view(folder / "even", "a", detail=[(0, 1)]),
    ):
        with pytest.raises(InputError, match=wanted):
            ask()
