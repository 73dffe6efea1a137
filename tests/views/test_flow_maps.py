"""Are flows in the views those of `hs.flow`, stored once a layer, and refused with a reason?"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import headscope as hs
from headscope.analyses.flow import LABELS, METHODS
from headscope.cli.main import group
from headscope.errors import InputError, ModelError
from headscope.model.model import Model
from headscope.views.view_page import payload
from model.families.tiny import tiny
from model.families.tokenizers_made import wordpiece
from views.test_payload import raw

CAT = "The cat sat on the mat unbelievably."


def measures(view: hs.views.view_text.View) -> dict:
    return {measure["name"]: measure for measure in payload(view.shown)["stacks"][0]["measures"]}


@pytest.mark.parametrize("method", [*METHODS, "max_flow"])
def test_a_page_shows_what_the_function_gives(demo, method):
    view = hs.view(demo, CAT, "It was tired.", flow=[method])
    (measure,) = view.shown.stacks[0].measures
    if method == "max_flow":
        expected = hs.flow(demo, CAT, "It was tired.", paths="max_flow", layers=range(6))
    else:
        expected = hs.flow(demo, CAT, "It was tired.", method=method)
    np.testing.assert_allclose(measure.maps[:, 0], expected, rtol=0, atol=1e-6)
    stored = measures(view)[method]
    n = len(view.shown.sides[0])
    codes = np.stack([np.frombuffer(raw(text), np.uint8) for text in stored["data"]])
    codes = codes.reshape(6, n, n).swapaxes(1, 2)  # [layer, query, key]
    values = (codes / stored["levels"]) ** 2 * np.array(stored["scale"])[:, None, None]
    largest = expected.values.max((1, 2))[:, None, None]
    assert (np.abs(np.sqrt(values / largest) - np.sqrt(expected / largest)) < 0.51 / 255).all()
    assert stored["heads"] == 1
    assert stored["label"] == LABELS.get(method, "maximum flow")


def test_several_flows_may_be_given_as_one_text(demo):
    view = hs.view(demo, CAT, flow="alti, globenc")
    assert [m.name for m in view.shown.stacks[0].measures] == ["alti", "globenc"]


def test_flows_take_one_map_a_layer(demo):
    plain, with_flow = (hs.view(demo, CAT, flow=names) for names in ((), ("rollout", "globenc")))
    before, after = (payload(view.shown, detail="none") for view in (plain, with_flow))
    attention = sum(map(len, before["stacks"][0]["measures"][0]["data"]))
    grown = len(json.dumps(after)) - len(json.dumps(before))
    assert grown < attention / 2  # of 12 heads; two flows are a sixth, and pack less well


def test_without_a_flow_nothing_is_added(demo):
    assert hs.view(demo, CAT).shown.stacks[0].measures == ()


def test_of_a_window_paths_through_the_tokens_outside_count(demo):
    """Cut out of the flow of the whole text, not made from what is cut out of the layers."""
    whole = hs.flow(demo, CAT, method="globenc").values
    (measure,) = hs.view(demo, CAT, window=(2, 6), flow=["globenc"]).shown.stacks[0].measures
    np.testing.assert_allclose(measure.maps[:, 0], whole[:, 2:6, 2:6], rtol=0, atol=1e-6)


def test_of_an_encoder_decoder_the_encoder_has_them():
    model = Model(tiny("BART"), wordpiece(), "bart", "", "")
    shown = hs.view(model, "the cat a b", "b a", flow=["alti"]).shown
    assert [len(stack.measures) for stack in shown.stacks] == [1, 0, 0]
    expected = hs.flow(model, "the cat a b", method="alti")
    np.testing.assert_allclose(shown.stacks[0].measures[0].maps[:, 0], expected, atol=1e-6)


def test_what_has_no_meaning_for_a_model_is_refused():
    model = Model(tiny("Llama"), wordpiece(), "llama", "", "")
    with pytest.raises(ModelError, match="globenc is not there for LlamaAttention"):
        hs.view(model, "the cat a b", flow=["globenc"])
    with pytest.raises(InputError, match=r"found 'rolout'; wanted methods among .*, max_flow"):
        hs.view(model, "the cat a b", flow=["rolout"])


@pytest.mark.parametrize("kind", ["lines", "matrix"])
def test_a_flow_is_drawn_for_its_layer(demo, kind):
    view = hs.view(demo, CAT, flow=["globenc"])
    figure = view.picture((4, 0), kind=kind, measure="globenc")
    texts = [text.get_text() for text in figure.findobj(lambda a: hasattr(a, "get_text"))]
    assert any("GlobEnc rollout" in text for text in texts)
    if kind == "matrix":
        assert any("Layer 5" in text for text in texts)


# --- the command ----------------------------------------------------------------------------------


def run(*line: str):
    return CliRunner().invoke(group, ["view", *line])


def test_the_command_shows_and_draws_flows(tmp_path: Path):
    page, svg = tmp_path / "cat.html", tmp_path / "cat.svg"
    line = ["demo", CAT, "-o", str(page), "--flow", "rollout,max_flow", "--svg", str(svg)]
    done = run(*line, "--picture", "matrix", "--heads", "6-1", "--measure", "max_flow")
    assert done.exit_code == 0, done.output
    assert "maximum flow" in svg.read_text("utf-8")
    assert "attention rollout" in page.read_text("utf-8")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--flow", "rolout"], "found 'rolout'; wanted methods among rollout"),
        (["--flow", ","], "found no method"),
        (["--measure", "alti"], "--measure 'alti'; wanted one of attention, weighted_norm"),
    ],
)
def test_wrong_flows_are_refused_before_the_model_is_loaded(given, words):
    done = run("no/such-model", CAT, *given)
    assert isinstance(done.exception, InputError)
    assert words in str(done.exception)
