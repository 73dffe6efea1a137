"""Does a report hold the views of its inputs once, small and harmless?"""

from __future__ import annotations

import base64
import hashlib
import json
import re

import numpy as np
import pytest

from headscope.claims.head_labels import run_labels
from headscope.core.stored_maps import stored_inputs
from headscope.page.shell import content_policy
from headscope.report import example_views as module
from headscope.report.build import render
from headscope.report.example_views import example_views
from headscope.views.view_page import build_page, page_script, page_style
from recorded import BOTH, manifest_of, recorded, with_pair
from views.made import read_back


@pytest.fixture(scope="module")
def tree():
    return with_pair(recorded(groups=BOTH))


@pytest.fixture(scope="module")
def html(tree):
    """The report without pictures, which have no part in the views."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("headscope.report.build.pictures", dict)
        return render(tree, manifest_of(tree))


def views(html):
    return json.loads(re.search(r'id="views">(.*?)</script>', html, re.DOTALL)[1])


def digest(text):
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def test_style_and_script_of_the_views_are_in_a_report_once(html):
    held = views(html)
    assert held["script"] == page_script()
    assert held["style"] == page_style()
    assert html.count("function tellFrame") == 1


def test_the_policy_lets_the_frames_run_what_they_hold_and_nothing_else(html):
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)[1].replace("&#39;", "'")
    scripts = re.search("script-src ([^;]*);", policy)[1].split()
    styles = re.search("style-src ([^;]*);", policy)[1].split()
    assert scripts[1:] == [f"'{digest(page_script())}'"]
    assert styles[1:] == [f"'{digest(page_style())}'"]
    assert policy.startswith("default-src 'none';")
    assert "frame-src" not in policy  # default-src: no address may be framed
    assert "unsafe" not in policy


def test_a_policy_without_frames_has_one_style_and_one_script():
    policy = content_policy(style="a", script="b")
    assert f"style-src '{digest('a')}'; script-src '{digest('b')}'; " in policy


def test_the_parts_of_a_page_give_the_page(tree):
    held = example_views(tree, model="m").data
    for page in held["pages"]:
        whole = build_page(page["payload"]).decode()
        assert page["parts"][0] + held["style"] + page["parts"][1] in whole
        assert whole.endswith(held["script"] + page["parts"][3])
        assert len(page["parts"]) == 4


def test_the_maps_of_a_report_are_those_that_were_kept(tree):
    kept = stored_inputs(tree)
    held = example_views(tree, model="m").data
    assert len(held["pages"]) == len(kept)
    for one, page in zip(kept, held["pages"], strict=True):
        found = read_back(page["payload"])
        assert np.sqrt(found) == pytest.approx(np.sqrt(one.attention), abs=1 / 255)
        side = page["payload"]["sides"][0]
        assert side["tokens"] == list(one.tokens)
        assert side["special"] == one.special.tolist()
        names = [measure["name"] for measure in page["payload"]["stacks"][0]["measures"]]
        assert names == ["attention", "weighted_norm"]
    assert held["labels"] == run_labels(tree)


def test_a_pair_keeps_its_boundary(tree):
    side = example_views(tree, model="m").data["pages"][-1]["payload"]["sides"][0]
    assert side["boundary"] == 6


def test_inputs_beyond_the_room_are_left_out_and_no_head_is_opened_there(tree, monkeypatch):
    whole = example_views(tree, model="m")
    assert len(whole.texts) == 5
    monkeypatch.setattr(module, "ROOM", 1)
    one = example_views(tree, model="m")
    assert len(one.texts) == len(one.data["pages"]) == 1
    assert {example for example, _ in one.looks} == {0}
    assert len(one.looks) == 72


def test_long_texts_are_named_by_their_beginning():
    assert module._cut("a" * 60) == "a" * 60
    assert module._cut("word " * 20) == "word " * 10 + "word…"
    assert module._cut("a" * 61) == "a" * 59 + "…"


@pytest.mark.usefixtures("no_pictures")
def test_a_run_of_an_older_version_has_a_report_without_views():
    old = recorded(groups=BOTH)
    old["examples"].dataset = old["examples"].to_dataset().drop_dims(["input", "token"])
    html = render(old, {})
    assert 'id="views"' not in html
    assert 'data-look="' not in html
    assert 'id="examples"' in html
    assert page_script() not in html


def test_what_was_folded_is_told(tree):
    changed = tree.copy(deep=True)
    changed["examples"]["token_count"].values[-1, 3] = 88
    page = example_views(changed, model="m").data["pages"][-1]["payload"]
    assert page["left_out"].startswith("Of 100 tokens, 88 in the middle stand at one place")
    assert [m["name"] for m in page["stacks"][0]["measures"]] == ["attention", "weighted_norm"]
    changed["examples"]["value_norm"].values[-1, :, :, 3] = np.nan
    page = example_views(changed, model="m").data["pages"][-1]["payload"]
    assert [m["name"] for m in page["stacks"][0]["measures"]] == ["attention"]
