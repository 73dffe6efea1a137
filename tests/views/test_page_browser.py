"""Do the views work in a real browser: exact values, one selection, keyboard, hostile tokens?"""

from __future__ import annotations

import base64
import io
import re
from html import escape

import numpy as np
import pytest
from PIL import Image

from headscope.views.page import build_page
from views.made import make_payload, read_back

LAYERS, HEADS = 3, 12
HOSTILE = [
    "</script><script>alert(1)</script>", "<!--", "-->", "<img src=x onerror=alert(1)>",
    "<svg/onload=alert(1)>", "javascript:alert(1)", "{{constructor.constructor('alert(1)')()}}",
    "${alert(1)}", '"]}', "'\"><b>", "\u2028", "\u2029", "\ud800", "\udc00", "\u202e", "\x00",
    "\n", "", "   ", "&lt;b&gt;", "</title>", "</style>", "a" * 300, "עִבְרִית", "中文", "👩‍👩‍👧",
]  # fmt: skip


@pytest.fixture(scope="module")
def payload():
    return make_payload(22, LAYERS, HEADS)


@pytest.fixture(scope="module")
def values(payload):
    return read_back(payload["measures"][0], (LAYERS, HEADS, 22, 22))


@pytest.fixture
def opened(browser, payload, tmp_path):
    """Opens a page; afterwards, nothing may have been complained of or asked for."""
    complaints, contexts = [], []

    def start(width=1280, scheme="light", given=payload):
        place = tmp_path / "view.html"
        place.write_bytes(build_page(given))
        context = browser.new_context(
            viewport={"width": width, "height": 800}, color_scheme=scheme, offline=True
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(dialog.message))
        page.on("request", lambda request: asked(request.url, place.as_uri()))
        page.goto(place.as_uri())
        page.wait_for_function("performance.getEntriesByName('drawn').length === 1")
        return page

    def asked(url, expected):
        if url != expected:
            complaints.append(url)

    yield start
    for context in contexts:
        context.close()
    assert complaints == []


def cell(page, layer, head):
    return page.locator("#cells [role=gridcell]").nth(layer * HEADS + head)


def said(page):
    return page.locator("#readout").text_content()


def shown_weights(page, side):
    texts = page.locator(f"#{side} .value").all_text_contents()
    return np.array([float(text) for text in texts])


def test_the_weights_beside_the_tokens_are_those_of_the_maps(opened, values):
    page = opened()
    cell(page, 1, 4).click()
    page.locator("#from [role=option]").nth(9).hover()
    np.testing.assert_allclose(shown_weights(page, "to"), values[1, 4, 9], atol=0.0051)
    page.locator("#to [role=option]").nth(21).hover()
    np.testing.assert_allclose(shown_weights(page, "from"), values[1, 4, :, 21], atol=0.0051)


def test_a_token_is_told_with_the_token_that_it_attends_most_to(opened, payload, values):
    page = opened()
    cell(page, 1, 4).click()
    page.locator("#from [role=option]").nth(9).hover()
    most = int(values[1, 4, 9].argmax())
    tokens = payload["tokens"]
    wanted = f"token ‘{tokens[9]}’ attends most to ‘{tokens[most]}’, {values[1, 4, 9, most]:.2f}"
    assert said(page) == f"L2·H5 {wanted}"


def test_every_cell_pointed_at_in_the_matrix_tells_its_value(opened, payload, values):
    page = opened()
    cell(page, 2, 7).click()
    page.click("#tab-matrix")
    box = page.locator("#map").bounding_box()
    step = box["width"] / 22
    for query, key in [(0, 0), (3, 2), (9, 21), (12, 0)]:
        page.mouse.move(box["x"] + (key + 0.5) * step, box["y"] + (query + 0.5) * step)
        tokens = payload["tokens"]
        pair = f"‘{tokens[query]}’ → ‘{tokens[key]}’"
        assert said(page) == f"L3·H8 {pair}: {values[2, 7, query, key]:.3f}"


def test_the_other_measure_shows_its_own_values(opened, payload):
    page = opened()
    cell(page, 1, 4).click()
    page.check("input[name=measure][value='1']")
    page.locator("#from [role=option]").nth(9).hover()
    norms = read_back(payload["measures"][1], (LAYERS, HEADS, 22, 22))[1, 4, 9]
    np.testing.assert_allclose(shown_weights(page, "to"), norms, atol=0.00051)
    assert "has its largest weighted norm from" in said(page)


def test_weighted_norms_are_worked_out_from_weights_and_norms(opened, payload, values):
    """As `views.payload` gives them: the norm of every key instead of a second set of maps."""
    norm = np.random.default_rng(0).uniform(0.5, 3, (LAYERS, HEADS, 22))
    true = values * norm[:, :, None]
    largest = true.max((2, 3))
    measure = {
        "name": "weighted_norm", "label": "weighted norm", "unit": "1",
        "scale": largest.ravel().tolist(), "norm": norm.ravel().tolist(),
    }  # fmt: skip
    page = opened(given={**payload, "measures": [payload["measures"][0], measure]})
    cell(page, 1, 4).click()
    page.check("input[name=measure][value='1']")
    page.locator("#from [role=option]").nth(9).hover()
    found = shown_weights(page, "to")
    np.testing.assert_allclose(found, true[1, 4, 9], atol=0.004 * largest[1, 4] + 0.00051)


def pixels(page, canvas):
    """What is drawn on a canvas: [row, column, red green blue alpha]."""
    url = page.locator(f"#{canvas}").evaluate("canvas => canvas.toDataURL()")
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(url.split(",")[1]))).convert("RGBA"))


def test_the_heat_map_is_darker_where_the_weight_is_larger(opened, values):
    page = opened()
    cell(page, 1, 4).click()
    page.click("#tab-matrix")
    drawn = pixels(page, "heat")[..., :3]
    middles = ((np.arange(22) + 0.5) * drawn.shape[0] / 22).astype(int)
    shades = drawn[middles[:, None], middles[None, :]] @ [0.2126, 0.7152, 0.0722]
    order = np.argsort(values[1, 4].ravel(), kind="stable")
    assert np.all(np.diff(shades.ravel()[order]) <= 1.5)
    assert np.ptp(shades) > 150


def test_the_selection_stays_from_view_to_view(opened):
    page = opened()
    cell(page, 1, 4).click()
    page.locator(".chip").nth(10).click()
    page.locator("#to [role=option]").nth(7).click()
    page.check("input[name=measure][value='1']")
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


def pressed(page):
    chips = page.locator(".chip[aria-pressed=true]").all_text_contents()
    return [int(text) for text in chips]


def test_a_click_toggles_a_head_and_a_double_click_isolates_it(opened):
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
    assert len({tuple(mark) for mark in marks}) == HEADS
    assert len({color for color, _ in marks[:8]}) == 8


@pytest.mark.parametrize("way", ["AA", "BB", "AB", "BA"])
def test_a_filter_leaves_only_its_pairs_of_sentences(opened, payload, values, way):
    page = opened()
    cell(page, 1, 4).click()
    page.select_option("#filter", way)
    boundary = payload["boundary"]
    first = way[0] == "A"
    query = 2 if first else boundary + 1
    page.locator("#from [role=option]").nth(query).hover()
    texts = page.locator("#to .value").all_text_contents()
    told = [place for place, text in enumerate(texts) if text]
    assert told == list(range(boundary) if way[1] == "A" else range(boundary, 22))
    shown = np.array([float(texts[place]) for place in told])
    np.testing.assert_allclose(shown, values[1, 4, query, told], atol=0.0051)  # no renormalising
    page.locator("#from [role=option]").nth(boundary + 1 if first else 2).hover()
    assert "no weight among what is shown" in said(page)


def line_count(page):
    return int((pixels(page, "lines")[..., 3] > 0).sum())


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
        drawn = pixels(page, "lines")[..., 3]
        halfway = drawn[:, drawn.shape[1] // 2].max() / 255
        assert halfway == pytest.approx(values[1, head, query].max(), abs=0.02)


def test_ink_can_be_full_at_the_largest_weight_that_the_head_has(opened, values):
    page = opened()
    cell(page, 0, 4).click()  # a broad head: nothing near 1
    page.select_option("#top", "1")
    page.select_option("#ink", "largest")
    query = int(values[0, 4].max(axis=1).argmax())
    page.locator("#from [role=option]").nth(query).hover()
    drawn = pixels(page, "lines")[..., 3]
    assert values[0, 4].max() < 0.6
    assert drawn[:, drawn.shape[1] // 2].max() == 255


def test_dimmed_special_tokens_are_left_aside_in_words(opened, payload, values):
    page = opened()
    cell(page, 1, 4).click()
    page.check("#dim")
    page.locator("#from [role=option]").nth(9).hover()
    plain = np.where(payload["special"], -1, values[1, 4, 9])
    most = int(plain.argmax())
    assert f"‘{payload['tokens'][most]}’, {plain[most]:.2f} (special tokens aside)" in said(page)


def test_dimming_pales_the_special_tokens_and_nothing_else(opened, payload):
    page = opened()
    cell(page, 1, 4).click()
    page.click("#tab-matrix")
    before = 255.0 - pixels(page, "heat")[..., 0]
    page.check("#dim")
    after = 255.0 - pixels(page, "heat")[..., 0]
    special = np.repeat(payload["special"], before.shape[0] // 22)
    either = special[:, None] | special[None, :]
    np.testing.assert_array_equal(after[~either], before[~either])
    np.testing.assert_allclose(after[either], 0.3 * before[either], atol=1)


def test_everything_is_reached_by_keyboard(opened, payload, values):
    page = opened()
    page.locator("#cells [tabindex='0']").focus()
    for key in ("ArrowDown", "ArrowRight", "ArrowRight", "ArrowLeft"):
        page.keyboard.press(key)
    assert said(page).startswith("L2·H2")
    page.keyboard.press("Enter")
    assert page.locator("#tab-head").get_attribute("aria-selected") == "true"
    page.locator("#from [tabindex='0']").focus()
    for key in ("ArrowDown", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    assert said(page).startswith(f"L2·H2 token ‘{payload['tokens'][2]}’ attends")
    page.keyboard.press("ArrowRight")
    assert said(page).startswith(f"L2·H2 token ‘{payload['tokens'][2]}’ is attended most by")
    page.locator("#tab-head").focus()
    page.keyboard.press("ArrowRight")
    page.locator("#matrix").focus()
    page.keyboard.press("ArrowDown")  # enters at the kept token's strongest partner
    assert said(page).endswith(f": {values[1, 1, 2].max():.3f}")
    page.keyboard.press("ArrowDown")
    assert f"‘{payload['tokens'][3]}’ →" in said(page)


def test_focus_is_seen(opened):
    page = opened()
    for place in ("#tab-model", "#cells [tabindex='0'] canvas"):
        page.keyboard.press("Tab")
        while page.evaluate(
            "place => !document.activeElement.matches(place.replace(' canvas', ''))", place
        ):
            page.keyboard.press("Tab")
        style = page.locator(place).evaluate("one => getComputedStyle(one).outlineStyle")
        assert style == "solid"


def test_hostile_tokens_are_only_text(opened):
    given = make_payload(tokens=["[CLS]", *HOSTILE, "[SEP]"], layers=2, heads=12, title=HOSTILE[0])
    plain = make_payload(len(HOSTILE) + 2, 2, 12)
    kinds = []
    for each in (plain, given):
        page = opened(given=each)
        page.locator("#cells [role=gridcell]").nth(3).click()
        for place in range(len(each["tokens"])):
            page.locator("#from [role=option]").nth(place).dispatch_event("click")
        page.click("#tab-matrix")
        page.click("#tab-model")
        kinds.append(page.evaluate("[...document.querySelectorAll('*')].map((one) => one.tagName)"))
        assert page.evaluate("document.documentElement.scrollWidth") <= 1280
    assert kinds[0] == kinds[1]


def test_the_page_works_in_the_closed_frame_of_a_notebook(browser, payload):
    page = browser.new_page()
    frame = escape(build_page(payload).decode("utf-8"), quote=True)
    page.set_content(f'<iframe sandbox="allow-scripts" srcdoc="{frame}" width="900"></iframe>')
    page.frame_locator("iframe").locator("#cells [aria-selected=true]").click()
    readout = page.frame_locator("iframe").locator("#readout")
    assert readout.text_content().startswith("L1·H1")
    page.close()


def test_later_tokens_are_not_seen_by_a_causal_model(opened):
    page = opened(given=make_payload(12, 2, 12, causal=True))
    page.locator("#cells [role=gridcell]").nth(4).click()
    assert page.locator("#filter").is_hidden()
    page.locator("#from [role=option]").nth(4).hover()
    texts = page.locator("#to .value").all_text_contents()
    assert [bool(text) for text in texts] == [True] * 5 + [False] * 7


@pytest.mark.parametrize("width", [360, 768, 1280])
@pytest.mark.parametrize("tokens", [22, 128])
def test_no_view_scrolls_sideways(opened, width, tokens):
    page = opened(width, given=make_payload(tokens, 1, 12))
    for view in ("model", "head", "matrix"):
        page.click(f"#tab-{view}")
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_light_and_dark_follow_the_system(opened):
    shades = [
        opened(scheme=scheme).evaluate("getComputedStyle(document.documentElement).backgroundColor")
        for scheme in ("light", "dark")
    ]
    assert shades == ["rgb(255, 255, 255)", "rgb(20, 22, 26)"]


def contrast(page, selector):
    """WCAG 2 contrast of an element's text with the page behind it."""
    text, back = page.locator(selector).first.evaluate(
        "one => [getComputedStyle(one).color,"
        " getComputedStyle(document.documentElement).backgroundColor]"
    )
    light = sorted(luminance(shade) for shade in (text, back))
    return (light[1] + 0.05) / (light[0] + 0.05)


def luminance(shade):
    numbers = [float(part) for part in re.findall(r"[\d.]+", shade)[:3]]
    tones = np.array(numbers) / (1 if shade.startswith("color(srgb") else 255)
    linear = np.where(tones <= 0.04045, tones / 12.92, ((tones + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_stand_out_from_the_page(opened, scheme):
    page = opened(scheme=scheme)
    page.click("#tab-head")
    page.check("#dim")
    for selector in (".about", ".side", ".chip span", ".text", ".dimmed .text", ".choice"):
        assert contrast(page, selector) >= 4.5, selector
