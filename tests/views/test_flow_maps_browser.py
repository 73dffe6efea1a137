"""Does a page show the maps of layers under every head, and say whose they are?"""

from __future__ import annotations

import numpy as np
import pytest

from views.looking import cell, pixels, point_at, said, shown_map
from views.made import coded, make_maps, make_payload


@pytest.fixture
def flowing():
    """A payload with a rollout, one map a layer, and its maps [layer, query, key]."""
    given = make_payload(16, 3, 4)
    maps = make_maps(16, 16, 3, 1, seed=9)  # [layer, 1, query, key]
    names = {"name": "rollout", "label": "attention rollout", "unit": "probability"}
    given["stacks"][0]["measures"].append({**coded(maps, **names), "heads": 1})
    return given, maps[:, 0]


def choose(page):
    page.check("input[name=measure][value='2']", force=True)


def test_every_head_shows_the_map_of_its_layer(opened, flowing):
    given, maps = flowing
    page = opened(given=given)
    cell(page, 1, 3, 4).click()
    choose(page)
    for layer in (1, 2):
        page.select_option("#layer", index=layer)
        np.testing.assert_allclose(shown_map(page), maps[layer], atol=0.0087)
    page.click("#tab-matrix")
    point_at(page, 5, 2, (16, 16))
    assert said(page).startswith("Layer 3 ")
    assert float(said(page).rsplit(" ", 1)[1]) == pytest.approx(maps[2, 5, 2], abs=0.004)


def test_the_thumbnails_of_a_layer_are_alike(opened, flowing):
    page = opened(given=flowing[0])
    choose(page)
    page.wait_for_selector("body[aria-busy=false]")
    for number in range(12):
        cell(page, 0, number).locator("canvas").evaluate(f"one => {{ one.id = 'cell{number}' }}")
    drawn = [pixels(page, f"#cell{number}") for number in (4, 7, 8)]
    assert np.array_equal(drawn[0], drawn[1])
    assert not np.array_equal(drawn[0], drawn[2])


def test_the_page_says_that_a_map_is_of_a_layer(opened, flowing):
    given, maps = flowing
    page = opened(given=given)
    assert page.locator("#note").is_hidden()
    choose(page)
    note = page.locator("#note").text_content()
    assert "All heads of a layer show the same attention rollout" in note
    cell(page, 0, 1, 4).click()
    page.locator("#from [role=option]").nth(3).hover()
    tokens = given["sides"][0]["tokens"]
    most = tokens[int(maps[0, 3].argmax())]
    assert f"Layer 1 token ‘{tokens[3]}’ takes most from ‘{most}’" in said(page)
