"""Do layers keep the model's own numbers where only some of them attend, everywhere?"""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
import transformers
import xarray as xr
from benchmarks.family_models import BERT, FAMILIES, GROUPED, inputs, made
from click.testing import CliRunner
from matplotlib.text import Text
from transformers import JambaConfig, JambaModel

import headscope as hs
from counting import names_in
from headscope.claims.head_metrics import head_metrics
from headscope.cli.main import group
from headscope.core.results import own_layers
from headscope.core.wording import percent
from headscope.draw.figures import draw, pictures
from headscope.errors import InputError, ModelError
from headscope.heads.head_card import card_text, head_card
from headscope.heads.head_frame import find_heads
from headscope.heads.tables import head_table
from headscope.model.families.sites import other_layers
from headscope.model.instrument import Instrument
from headscope.model.layer import LayerView
from headscope.report.build import findings
from model.families.tiny import sharpened
from model.families.tokenizers_made import wordpiece
from recorded import recorded

MIXERS = {
    "Jamba": ((1,), {0: "JambaMambaMixer"}),
    "LFM2": ((1,), {0: "Lfm2ShortConv"}),
    "Qwen3-Next": ((1,), {0: "Qwen3NextGatedDeltaNet"}),
    "RecurrentGemma": ((2,), dict.fromkeys((0, 1), "RecurrentGemmaRecurrentBlock")),
    "MiniMax": ((0,), {1: "MiniMaxLightningAttention"}),
    "Zamba": ((1, 3), dict.fromkeys((0, 2), "ZambaMambaDecoderLayer")),  # one shared attention
}
CORPUS = ["the cat sat. a cat, b.", "the a b cats.", "b a the, a cat cats."]


@pytest.mark.parametrize("name", [*MIXERS, "BERT", "CTRL", "Swin", "UMT5"])
def test_layers_without_attention_are_numbered_and_named(name: str) -> None:
    network = made(name)
    views: list[LayerView] = []
    with torch.no_grad(), Instrument(network, observers=[views.append], stacks=None):
        network(**inputs(network, name))
    one = [view for view in views if view.stack == views[0].stack]
    paths = list(dict.fromkeys(view.site.path for view in one))
    assert name in FAMILIES
    assert other_layers(network, paths, len(one)) == MIXERS.get(name, ((), {}))


@pytest.fixture(scope="module")
def jamba() -> hs.Model:
    """Four layers, of which 1 and 3, counted from 0, attend."""
    options: dict[str, Any] = {**FAMILIES["Jamba"][1], "num_hidden_layers": 4}
    network = JambaModel(JambaConfig(**options))
    return hs.load(sharpened(network).eval(), tokenizer=wordpiece())


@pytest.fixture(scope="module")
def run(jamba: hs.Model, tmp_path_factory: pytest.TempPathFactory) -> hs.Run:
    folder = tmp_path_factory.mktemp("hybrid") / "run"
    corpus = hs.corpus.MemoryCorpus(CORPUS)
    return hs.atlas(jamba, corpus, output=folder, settings=hs.Settings(replicates=3))


def test_the_model_says_which_layers_attend(jamba: hs.Model) -> None:
    assert "2 layers × 4 heads, layers 2, 4; the other layers are JambaMambaMixer" in repr(jamba)
    assert jamba.shape.numbers == (1, 3)


@pytest.fixture(scope="module")
def page(run: hs.Run) -> str:
    """Of the run opened again, whose tables are written beside it; its figures are not."""
    assert run.path is not None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("headscope.report.build.save_figures", lambda *_, **__: [])
        return hs.open_run(run.path).report().read_text("utf-8")


@pytest.mark.usefixtures("page")
def test_data_and_tables_have_the_models_own_numbers(run: hs.Run) -> None:
    assert run.path is not None
    assert run["surface"]["layer"].values.tolist() == [1, 3]
    for name in ("surface", "heads", "head_labels"):
        table = pd.read_csv(run.path / "tables" / f"{name}.csv")
        assert set(table["layer"]) <= {1, 3}
    heads = pd.read_csv(run.path / "tables" / "heads.csv")
    assert heads["name"].tolist() == [
        f"L{layer}·H{head}" for layer in (2, 4) for head in (1, 2, 3, 4)
    ]
    units = pd.read_csv(run.path / "tables" / "divergence.csv")
    assert set(units["layer"].dropna()) == {1, 3}


def test_a_run_opened_again_has_the_same_names(page: str) -> None:
    assert '"numbers":[1,3]' in page.replace(" ", "")
    assert "layers 2, 4; the other layers are JambaMambaMixer, without attention maps" in page
    read = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    read = read.replace("L8·H10", "")  # how heads are written
    assert {"4"} <= set(re.findall(r"L(\d+)·H\d", read)) <= {"2", "4"}


def _names(tree: xr.DataTree) -> dict[str, list[tuple[int, int]]]:
    """What a finding, a card, tables and an error call heads, and a figure the layers."""
    ticks = draw(tree, "surface_by_layer").axes[0].get_xticklabels()
    with pytest.raises(InputError) as refusal:
        head_card(tree, 3, 0)
    texts = {
        "claim": " ".join(one.text for one in findings(tree, [])),
        "card": card_text(tree, head_card(tree, 0, 2)).splitlines()[0],
        "heads": " ".join(head_table(tree)["name"]),
        "claimed": " ".join(find_heads(tree, "previous token")["name"]),
        "error": str(refusal.value).partition("; wanted")[2],
        "figure": " ".join(f"L{tick.get_text()}H1" for tick in ticks),
    }
    return {what: names_in(text) for what, text in texts.items()}


def test_whatever_names_a_head_has_the_models_own_number_without_any_context() -> None:
    places, own = recorded(3, 4), recorded(3, 4, layer_numbers="1 3 5")
    own = own.map_over_datasets(lambda group: own_layers(group, (1, 3, 5)) if group else group)
    by_place = _names(places)
    assert all(by_place.values())
    assert _names(own) == {
        what: [(2 * layer, head) for layer, head in some] for what, some in by_place.items()
    }


def test_a_head_is_asked_for_by_the_models_own_number(run: hs.Run) -> None:
    def ask(head: str) -> Any:
        return CliRunner().invoke(group, ["head", str(run.path), head, "--json"])

    told = json.loads(ask("L4H2").stdout)
    assert told["name"] == "L4·H2"
    missing = str(ask("L1H2").exception)
    assert missing == "layer 1 has no attention; wanted one of the layers 2, 4"


def test_flow_is_refused_where_tokens_are_mixed_otherwise(jamba: hs.Model) -> None:
    with pytest.raises(ModelError, match="some layers mix tokens without attention"):
        hs.flow(jamba, "the cat sat.")
    with pytest.raises(ModelError, match="some layers mix tokens without attention"):
        hs.view(jamba, "the cat sat.", flow=["rollout"])
    with pytest.raises(InputError, match="flow needs every_layer"):
        hs.atlas(jamba, hs.corpus.MemoryCorpus(CORPUS), settings=hs.Settings(analyses=("flow",)))
    alone = hs.flow(jamba, "the cat sat.", paths="none")
    assert alone["layer"].values.tolist() == [1, 3]
    np.testing.assert_allclose(alone.sum("key"), 1, atol=1e-6)


@pytest.mark.parametrize("name", ["Falcon-H1", "MobileBERT"])
def test_tokens_mixed_beside_attention_are_noticed(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Falcon-H1 adds a recurrence to the attention of every layer; MobileBERT's embeddings take in
    their neighbours.
    """
    mamba = {"mamba_d_ssm": 32, "mamba_n_heads": 4, "mamba_d_head": 8, "mamba_d_state": 4}
    monkeypatch.setitem(FAMILIES, "Falcon-H1", ("FalconH1", {**GROUPED, **mamba}))
    model = hs.load(made(name), tokenizer=wordpiece())
    assert model.shape.others == ()
    assert "every_layer" not in model.allows
    with pytest.raises(ModelError, match="some layers mix tokens without attention"):
        hs.flow(model, "the cat sat.")


@pytest.mark.parametrize("head", ["ForSequenceClassification", "ForMaskedLM"])
def test_the_head_of_a_task_is_not_taken_for_a_mixture(head: str) -> None:
    """Found in tests: the answers of a classifier were read as states of two tokens."""
    network = getattr(transformers, f"Bert{head}")(transformers.BertConfig(**BERT)).eval()
    assert "every_layer" in hs.load(network, tokenizer=wordpiece()).allows


def test_flow_is_left_out_of_a_run_that_does_not_ask_for_it(run: hs.Run) -> None:
    assert "flow" not in run
    assert {"surface", "entropy", "norms", "mixing", "divergence"} <= set(run)


def test_a_page_of_one_text_knows_the_numbers(jamba: hs.Model) -> None:
    page = hs.view(jamba, "the cat sat.").page.decode()
    assert '"numbers":[1,3]' in page.replace(" ", "")
    assert "layers 2, 4" not in page


# --- learned sinks ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sinking() -> hs.Model:
    return hs.load(made("gpt-oss"), tokenizer=wordpiece())


def test_what_goes_to_no_token_is_a_target_of_its_own(sinking: hs.Model) -> None:
    corpus = hs.corpus.MemoryCorpus(CORPUS)
    found = hs.atlas(sinking, corpus, settings=hs.Settings(replicates=3, analyses=("surface",)))
    rest: list[np.ndarray[Any, Any]] = []

    def keep(view: LayerView) -> None:
        rest.append((1 - view.attention.sum(-1)).mean(-1)[0].double().numpy())

    for text in CORPUS:
        ids = sinking.tokenizer(text, return_tensors="pt")["input_ids"]
        with torch.no_grad(), Instrument(sinking.network, observers=[keep]):
            sinking.network(ids)
    expected = np.stack(rest).reshape(len(CORPUS), 2, 4).mean(0)
    own = found["surface"]["attention"].sel(target="no_token")
    np.testing.assert_allclose(own, expected, atol=1e-6)
    assert float(own.max()) > 0.05


def test_the_share_of_no_token_is_drawn_and_named(sinking: hs.Model) -> None:
    corpus = hs.corpus.MemoryCorpus(CORPUS)
    run = hs.atlas(sinking, corpus, settings=hs.Settings(replicates=3, analyses=("surface",)))
    own = run["surface"]["attention"].sel(target="no_token").values
    figure = draw(run.tree, "surface_by_layer")
    told = {text.get_text() for text in figure.findobj(Text)}
    assert "a learned sink" in told
    assert any(text.endswith("To no token") for text in told)
    marks = [line.get_ydata() for axes in figure.axes for line in axes.lines]
    assert any(np.array_equal(y, own.ravel()) for y in marks)
    caption = pictures()["surface_by_layer"].caption(run.tree)
    assert f"no token at all, mean over heads {percent(float(own.mean()))}" in caption
    named = {metric.key: metric.label for metric in head_metrics(run.tree)}
    assert named["surface.attention.no_token"] == "what goes to no token, to a learned sink"


def test_what_needs_whole_rows_is_refused_with_sinks(sinking: hs.Model) -> None:
    with pytest.raises(ModelError, match="learned sink"):
        hs.flow(sinking, "the cat sat.")
    with pytest.raises(InputError, match="divergence needs whole_rows"):
        hs.atlas(
            sinking, hs.corpus.MemoryCorpus(CORPUS), settings=hs.Settings(analyses=("divergence",))
        )
    assert "goes to no token: to a learned sink" in hs.view(sinking, "the cat sat.").page.decode()


def test_other_models_have_no_such_target() -> None:
    model = hs.load(made("CTRL"), tokenizer=wordpiece())
    settings = hs.Settings(replicates=3, analyses=("surface",))
    found = hs.atlas(model, hs.corpus.MemoryCorpus(CORPUS), settings=settings)
    assert "no_token" not in found["surface"]["target"].values.tolist()
