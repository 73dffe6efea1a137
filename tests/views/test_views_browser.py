"""Do the model, head and matrix views draw what they should, and answer as one?"""

from __future__ import annotations

import numpy as np
import pytest

from views.looking import cell, pixels, point_at, said, settled
from views.made import make_payload, read_back

LUMINANCE = [0.2126, 0.7152, 0.0722]


@pytest.fixture(scope="module")
def values(payload):
    return read_back(payload)


@pytest.fixture(scope="module")
def tokens(payload):
    return payload["sides"][0]["tokens"]


def test_a_token_is_told_with_the_token_that_it_attends_most_to(opened, tokens, values):
    page = opened()
    cell(page, 1, 4).click()
    page.locator("#from [role=option]").nth(9).hover()
    most = int(values[1, 4, 9].argmax())
    wanted = f"token ‘{tokens[9]}’ attends most to ‘{tokens[most]}’, {values[1, 4, 9, most]:.2f}"
    assert said(page) == f"L2·H5 {wanted}"
    page.locator("#to [role=option]").nth(0).hover()  # the right side tells what comes in
    most = int(values[1, 4, :, 0].argmax())
    assert said(page).endswith(
        f"‘[CLS]’ is attended most by ‘{tokens[most]}’, {values[1, 4, most, 0]:.2f}"
    )


def test_every_cell_pointed_at_in_the_matrix_tells_its_value(opened, tokens, values):
    page = opened()
    cell(page, 2, 7).click()
    page.click("#tab-matrix")
    for query, key in [(0, 0), (3, 2), (9, 21), (12, 0)]:
        point_at(page, query, key, (22, 22))
        pair = f"‘{tokens[query]}’ → ‘{tokens[key]}’"
        assert said(page) == f"L3·H8 {pair}: {values[2, 7, query, key]:.3f}"


def test_the_heat_map_is_darker_where_the_weight_is_larger(opened, values):
    page = opened()
    cell(page, 1, 4).click()
    page.click("#tab-matrix")
    shades = pixels(page, "#heat")[..., :3] @ LUMINANCE  # [query, key]
    assert shades.shape == (22, 22)
    order = np.argsort(values[1, 4].ravel(), kind="stable")
    assert np.all(np.diff(shades.ravel()[order]) <= 1.5)
    assert np.ptp(shades) > 150


def test_a_thumbnail_shows_the_whole_map(opened, values):
    """Dark where the largest weights of each query are."""
    page = opened()
    drawn = pixels(page, "#cells [role=gridcell]:nth-child(2) canvas >> nth=0")[..., :3]
    shades = drawn @ LUMINANCE
    assert shades.shape == (22, 22)
    assert (shades.argmin(1) == values[0, 0].argmax(1)).mean() > 0.9


def test_a_pixel_of_a_long_texts_thumbnail_is_its_largest_value(opened):
    """So that thin diagonals are not washed out."""
    given = make_payload(200, 1, 12)
    values = read_back(given)[0, 0]
    page = opened(given=given)
    shades = pixels(page, "#cells [role=gridcell] canvas >> nth=0")[..., :3] @ LUMINANCE
    size = len(shades)
    assert size < 200
    place = np.arange(200) * size // 200
    largest = np.zeros((size, size))
    np.maximum.at(largest, (place[:, None], place[None, :]), values)
    order = np.argsort(largest.ravel(), kind="stable")
    assert np.all(np.diff(shades.ravel()[order]) <= 1.5)
    assert np.ptp(shades) > 150


def test_pointing_at_a_thumbnail_shows_it_enlarged_with_its_largest_link(opened, tokens, values):
    page = opened()
    assert page.locator("#look").is_hidden()
    cell(page, 1, 3).hover()
    assert page.locator("#look-name").text_content().startswith("L2·H4")
    query, key = np.unravel_index(values[1, 3].argmax(), (22, 22))
    link = f"largest: ‘{tokens[query]}’ → ‘{tokens[key]}’, {values[1, 3, query, key]:.2f}"
    assert said(page).endswith(link)
    assert pixels(page, "#look-map").shape[:2] == (22, 22)
    page.mouse.move(2, 2)
    assert page.locator("#look").is_hidden()


def test_the_selection_stays_from_view_to_view(opened):
    page = opened()
    cell(page, 1, 4).click()
    page.locator(".chip").nth(10).click()
    page.locator("#to [role=option]").nth(7).click()
    page.check("input[name=measure][value='1']", force=True)
    page.click("#tab-matrix")
    assert page.locator("#columns .kept").evaluate_all("all => all.length") == 1
    assert page.locator("#columns span").nth(7).get_attribute("class") == "pointed kept"
    page.click("#tab-model")
    chosen = page.locator("#cells [aria-selected=true]")
    names = [name[:6] for name in chosen.evaluate_all("all => all.map((one) => one.ariaLabel)")]
    assert names == ["L2·H5,", "L2·H11"]
    page.click("#tab-head")
    kept = page.locator("#figure [aria-selected=true]")
    assert kept.count() == 1
    assert kept.evaluate("one => [...one.parentNode.children].indexOf(one)") == 7
    assert page.locator("input[name=measure]:checked").get_attribute("value") == "1"


def test_names_count_from_0_where_the_page_says_so(opened):
    page = opened(given=make_payload() | {"countsFrom": 0})
    cell(page, 1, 3).hover()
    assert page.locator("#look-name").text_content().startswith("L1·H3")
    headers = page.locator("#cells [role=columnheader]").all_text_contents()
    assert headers[1:] == [str(head) for head in range(12)]
    cell(page, 0, 0).click()
    assert page.locator(".chip").first.text_content() == "0"
    assert page.locator("#head-name").text_content() == "L0·H0"


def pressed(page):
    chips = page.locator(".chip[aria-pressed=true]").all_text_contents()
    return [int(text) for text in chips]


def test_a_click_toggles_a_head_and_a_double_click_isolates_or_restores(opened):
    page = opened()
    cell(page, 0, 0).click()
    page.locator(".chip").nth(8).click()
    assert pressed(page) == [1, 9]
    page.locator(".chip").nth(3).dblclick()
    assert pressed(page) == [4]
    page.locator(".chip").nth(3).dblclick()
    assert pressed(page) == list(range(1, 13))
    page.locator("[data-heads=only]").click()
    assert pressed(page) == [4]
    page.locator(".chip").nth(5).press("Enter")
    assert pressed(page) == [4, 6]
    page.locator(".chip").nth(8).press("Shift+Enter")
    assert pressed(page) == [9]


def test_a_ninth_head_has_a_pattern_beside_its_colour(opened):
    page = opened()
    marks = page.locator(".chip").evaluate_all(
        "all => all.map((chip) => [getComputedStyle(chip.querySelector('path')).stroke,"
        " chip.querySelector('path').getAttribute('stroke-dasharray')])"
    )
    assert len({tuple(mark) for mark in marks}) == 12
    assert len({color for color, _ in marks[:8]}) == 8


def line_count(page):
    return int((pixels(page, "#lines")[..., 3] > 0).sum())


def test_fewer_lines_per_token_and_a_threshold_clear_the_picture(opened):
    page = opened()
    cell(page, 0, 4).click()
    every = line_count(page)
    page.select_option("#top", "1")
    few = line_count(page)
    assert 0 < few < every / 3
    page.locator("#least").fill("100")
    assert line_count(page) == 0


def test_a_line_is_as_opaque_as_its_weight_is_large(opened, values):
    page = opened()
    page.click("#tab-head")
    page.select_option("#top", "1")
    for head, query in [(4, 9), (9, 13), (6, 3)]:
        page.click("#tab-model")
        cell(page, 1, head).click()
        page.locator("[data-heads=only]").click()
        page.locator("#from [role=option]").nth(query).hover()
        drawn = pixels(page, "#lines")[..., 3]
        halfway = drawn[:, drawn.shape[1] // 2].max() / 255
        assert halfway == pytest.approx(values[1, head, query].max(), abs=0.02)


def test_ink_can_be_full_at_the_largest_weight_that_the_head_has(opened, values):
    page = opened()
    cell(page, 0, 4).click()  # a broad head: nothing near 1
    page.select_option("#top", "1")
    page.select_option("#ink", "largest")
    query = int(values[0, 4].max(axis=1).argmax())
    page.locator("#from [role=option]").nth(query).hover()
    drawn = pixels(page, "#lines")[..., 3]
    assert values[0, 4].max() < 0.6
    assert drawn[:, drawn.shape[1] // 2].max() == 255


def test_beside_attention_the_darkest_line_of_norms_is_the_largest_shown(opened):
    page = opened()
    cell(page, 0, 4).click()
    page.check("#beside")
    settled(page)
    darkest = [pixels(page, f"#lines{suffix}")[..., 3].max() for suffix in ("", "-beside")]
    assert darkest[0] < 200 < 250 < darkest[1]
    shown = page.locator("#figure-beside .caption").text_content()
    assert "darkest line 0." in shown


def test_a_page_can_open_with_a_head_and_a_token(opened, payload, tokens, values):
    start = {"view": "head", "stack": 0, "layer": 1, "heads": [4], "query": 9}
    page = opened(given={**payload, "start": start})
    most = int(values[1, 4, 9].argmax())
    assert said(page).startswith(f"L2·H5 token ‘{tokens[9]}’ attends most to ‘{tokens[most]}’")
    page.click("#tab-model")
    assert cell(page, 1, 4).get_attribute("aria-selected") == "true"
