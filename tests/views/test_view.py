"""What do hs.view and `headscope view` give: pages, figures, labels, comparisons?"""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from click.testing import CliRunner

import headscope as hs
from headscope.claims.head_labels import run_labels, with_label
from headscope.cli.main import group
from headscope.errors import InputError
from headscope.model.model import Model
from headscope.views.view_page import payload
from model.families.tiny import tiny
from model.families.tokenizers_made import wordpiece
from views.test_page import island_of

CAT = "The cat sat on the mat unbelievably."


def test_a_view_saves_a_page_and_shows_itself_in_a_frame_of_its_own(demo, tmp_path):
    shown = hs.view(demo, CAT, "</script><b>it</b>")
    page = shown.save(tmp_path / "cat.html").read_bytes()
    assert page == shown.page
    with pytest.raises(InputError, match=r"cannot save a page as 'cat\.png'; wanted .* \.html"):
        shown.save(tmp_path / "cat.png")
    assert b"<b>it" not in page
    bundle = shown._repr_mimebundle_()
    assert bundle["text/html"].startswith("<iframe")
    frame, script = bundle["text/html"].split("<script>")  # ours; the page is escaped in srcdoc
    assert frame.endswith("</iframe>")
    assert "cat" not in script
    assert bundle["text/plain"].startswith("<headscope.View demo: 6 layers × 12 heads")


def test_the_name_of_a_file_is_no_text(demo, tmp_path):
    (tmp_path / "cat.story").write_text(CAT)
    for name in ("cat.txt", str(tmp_path / "cat.story")):
        for texts in ({"text": name}, {"text": CAT, "text_pair": name}):
            with pytest.raises(InputError, match=r"which names a file; wanted a text"):
                hs.view(demo, **texts)


# --- beside an untrained network --------------------------------------------------------------


def detail_of(view):
    return json.loads(island_of(view.page.decode()))["stacks"][0]["detail"]


def test_the_untrained_network_is_one_of_its_configuration_without_training(demo, tmp_path):
    view = hs.view(demo, CAT, detail=[(2, 3)], untrained=True)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        fresh = type(demo.network)(demo.network.config)
    fresh.save_pretrained(tmp_path)
    demo.tokenizer.save_pretrained(tmp_path)
    alone = hs.view(str(tmp_path), CAT, detail=[(2, 3)])
    own, other = (one.shown.stacks[0] for one in (view, alone))
    for name in ("queries", "keys"):
        mine, theirs = getattr(own.untrained.vectors, name), getattr(other.vectors, name)
        np.testing.assert_allclose(mine, theirs, atol=1e-6)
        assert np.abs(mine - getattr(own.vectors, name)).max() > 0.1
    detail = detail_of(view)
    assert detail["untrained"] == detail_of(alone)["blocks"]
    plain = hs.view(demo, CAT, detail=[(2, 3)])
    assert "untrained" not in detail_of(plain)
    assert detail["blocks"] == detail_of(plain)["blocks"]


def test_an_untrained_network_without_neurons_to_show_is_refused(demo):
    with pytest.raises(InputError, match="found untrained and detail none"):
        hs.view(demo, CAT, detail="none", untrained=True)


# --- comparisons ------------------------------------------------------------------------------


def test_two_texts_differ_where_their_maps_differ(demo):
    a, b = "The cat sat on the mat.", "The dog sat on the mat."
    view = hs.view(demo, a, versus_text=b)
    mine, theirs = (hs.view(demo, text).shown.stacks[0].attention for text in (a, b))
    (stack,) = payload(view.shown)["stacks"]
    names = [measure["name"] for measure in stack["measures"]]
    assert names == ["attention", "weighted_norm", "versus", "difference"]
    difference = stack["measures"][3]
    assert (difference["minuend"], difference["subtrahend"]) == (0, 2)
    assert difference["scale"] == pytest.approx(np.abs(mine - theirs).max())
    np.testing.assert_array_equal(view.shown.stacks[0].versus.maps, theirs)
    assert "cat/dog" in view.shown.sides[0].tokens
    assert "mat" in view.shown.sides[0].tokens


def test_texts_of_different_length_are_not_compared(demo):
    with pytest.raises(InputError, match="8 and 9 tokens"):
        hs.view(demo, "The cat sat on a mat", versus_text="The cat sat on a red mat")


def test_two_models_of_one_shape_are_compared():
    first, second = (Model(tiny("BERT"), wordpiece(), name, "", "") for name in ("a", "b"))
    view = hs.view(first, "the cat a b", versus_model=second)
    stack = view.shown.stacks[0]
    np.testing.assert_array_equal(stack.attention, stack.versus.maps)
    assert stack.versus.label == "attention, b"


def test_models_that_do_not_fit_are_not_compared(demo):
    first = Model(tiny("BERT"), wordpiece(), "a", "", "")
    decoder = Model(tiny("Llama"), wordpiece(), "b", "", "")
    with pytest.raises(InputError, match="wanted the same tokens"):
        hs.view(demo, "the catkin", versus_model=first)
    deeper = Model(tiny("ModernBERT"), wordpiece(), "c", "", "")
    with pytest.raises(InputError, match="wanted the same layers and heads"):
        hs.view(first, "the cat", versus_model=deeper)
    with pytest.raises(InputError, match="one of the two"):
        hs.view(first, "the cat", versus_model=decoder, versus_text="a b")


# --- what a page opens with ---------------------------------------------------------------------


def start_of(view):
    return json.loads(island_of(view.page.decode("utf-8")))["start"]


def test_a_view_opens_on_all_heads_or_with_the_head_asked_for(demo):
    assert start_of(hs.view(demo, CAT))["view"] == "model"
    for head in ("L3H9", "L3·H9", "3-9", "2.8", (2, 8)):
        view = hs.view(demo, CAT, head=head)
        start = start_of(view)
        assert (start["view"], start["layer"], start["heads"]) == ("head", 2, [8])
    assert payload(view.shown, head=view.head)["stacks"][0]["detail"]["heads"][0] == [2, 8]


@pytest.mark.parametrize("head", ["L7H1", "L1H13", (6, 0), (-1, 0), "6.0"])
def test_a_head_that_is_not_there_is_not_opened(demo, head):
    with pytest.raises(InputError, match=r"found no head .*; wanted one of 6 layers × 12 heads"):
        hs.view(demo, CAT, head=head)


def test_a_comparison_opens_on_the_difference(demo):
    view = hs.view(demo, "The cat sat.", versus_text="The dog sat.")
    measures = payload(view.shown)["stacks"][0]["measures"]
    assert measures[start_of(view)["measure"]]["name"] == "difference"
    assert view.shown.text == "The cat/dog sat."
    assert start_of(hs.view(demo, "The cat sat."))["measure"] == 0


# --- an atlas names the heads -------------------------------------------------------------------


@pytest.fixture(scope="module")
def known(demo):
    """What a run in memory tells of the demo's heads, as far as views ask."""
    return hs.atlas(
        demo,
        hs.demo_corpus(),
        analyses=("surface", "dependency", "neurons"),
        limit=5,
        replicates=20,
        execution=hs.Execution(linears="stock", threads=1),
    )


def test_an_atlas_names_the_heads(demo, known):
    view = hs.view(demo, CAT, atlas=known)
    assert view.labels == [run_labels(known.tree)]
    found = np.argwhere(with_label(known.tree, "previous"))
    assert len(found)
    assert any("previous token" in view.labels[0][layer][head] for layer, head in found)


def test_an_atlas_says_which_neurons_matter(demo, known):
    detail = payload(hs.view(demo, CAT, atlas=known).shown)["stacks"][0]["detail"]
    importance = known["neurons"].neuron_importance.transpose("layer", "head", "neuron").values
    for (layer, head), marked in zip(detail["heads"], detail["importance"], strict=True):
        np.testing.assert_allclose(marked, importance[layer, head], rtol=1e-3)


def test_an_atlas_of_another_model_is_refused(demo, known):
    other = Model(tiny("BERT"), wordpiece(), "a", "", "0" * 64)
    with pytest.raises(InputError, match="another model"):
        hs.view(other, "the cat", atlas=known)


# --- figures --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["lines", "matrix", "neurons"])
def test_each_kind_of_picture_names_its_head_and_shows_its_tokens(demo, kind):
    figure = hs.view(demo, CAT).picture((2, 8), kind=kind)
    texts = [text.get_text() for text in figure.findobj(lambda a: hasattr(a, "get_text"))]
    assert any("L3·H9" in text for text in texts)
    assert any("mat" in text for text in texts)


def test_a_picture_that_cannot_be_drawn_is_refused(demo):
    view = hs.view(demo, CAT)
    for words, given in [
        ("layer 7, head 1", {"heads": [(6, 0)]}),
        ("found 2 heads", {"heads": [(0, 0), (0, 1)], "kind": "matrix"}),
        ("kind is 'pie'", {"kind": "pie"}),
        ("measure 'rollout'", {"measure": "rollout"}),
        ("stack 'cross'", {"stack": "cross"}),
        ("the token 99", {"kind": "neurons", "query": 99}),
    ]:
        heads = given.pop("heads", [(0, 0)])
        with pytest.raises(InputError, match=words):
            view.picture(*heads, **given)


def test_cross_attention_is_drawn_between_its_two_sides():
    model = Model(tiny("BART"), wordpiece(), "bart", "", "")
    view = hs.view(model, "the cat a b", "b a")
    figure = view.picture((1, 2), kind="matrix", stack="cross")
    texts = {text.get_text() for text in figure.findobj(lambda a: hasattr(a, "get_text"))}
    assert {"the", "cat", "a", "b"} <= texts


# --- the command ----------------------------------------------------------------------------------


def run(*line: str):
    return CliRunner().invoke(group, ["view", *line])


def test_the_command_writes_the_page(tmp_path):
    path = tmp_path / "cat.html"
    done = run("demo", CAT, "-o", str(path), "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.output)["bytes"] == path.stat().st_size


@pytest.mark.parametrize("text", ["", " "])
def test_the_command_refuses_an_empty_text_before_the_model_is_loaded(text):
    assert run("no/such-model", text).exit_code == 2


def test_the_command_draws_the_chosen_heads(tmp_path):
    svg, png = tmp_path / "cat.svg", tmp_path / "cat.png"
    line = ["demo", CAT, "-o", str(tmp_path / "c.html"), "--svg", str(svg), "--png", str(png)]
    done = run(*line, "--heads", "3-9, 5-1")
    assert done.exit_code == 0, done.output
    assert "L3·H9" in svg.read_text("utf-8")
    assert "--heads L3·H9 (2.8 from 0), L5·H1 (4.0 from 0)" in done.output
    assert "L5·H1" in svg.read_text("utf-8")
    assert png.read_bytes().startswith(b"\x89PNG")


def test_a_figure_that_cannot_be_drawn_leaves_no_page_behind(tmp_path):
    page = tmp_path / "c.html"
    done = run("demo", CAT, "-o", str(page), "--svg", str(tmp_path / "c.svg"), "--heads", "9-1")
    assert isinstance(done.exception, InputError)
    assert not page.exists()


def test_the_command_opens_the_page_with_a_head_and_says_which(tmp_path):
    path = tmp_path / "cat.html"
    done = run("demo", CAT, "-o", str(path), "--open", "2.8")
    assert done.exit_code == 0, done.output
    assert "--open L3·H9 (2.8 from 0)" in done.output
    assert '"start":{"view":"head","stack":0,"layer":2,"heads":[8]' in path.read_text("utf-8")


def test_a_head_that_is_not_there_leaves_no_page_behind(tmp_path):
    page = tmp_path / "c.html"
    done = run("demo", CAT, "-o", str(page), "--open", "L9H1")
    assert isinstance(done.exception, InputError)
    assert "found no head L9·H1 (8.0 from 0)" in str(done.exception)
    assert not page.exists()


@pytest.mark.parametrize("heads", ["0-1", "3", "a-b", "3-"])
@pytest.mark.parametrize("option", ["--heads", "--detail", "--open"])
def test_heads_that_are_not_layer_head_from_one_are_refused(option, heads):
    assert isinstance(run("no/such-model", CAT, option, heads).exception, InputError)


@pytest.mark.parametrize("window", ["3", "0-4", "a-b", "3-"])
def test_a_window_that_is_not_first_last_from_one_is_refused(window):
    assert isinstance(run("no/such-model", CAT, "--window", window).exception, InputError)


def test_the_command_says_what_it_left_out(tmp_path):
    done = run("demo", CAT, "-o", str(tmp_path / "c.html"), "--window", "2-5")
    assert "Tokens 2 to 5 of" in done.output
