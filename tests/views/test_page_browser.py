"""Does a page work in a real browser: by keyboard, at every width, in frames, at every size?"""

from __future__ import annotations

import re
from html import escape

import numpy as np
import pytest

from headscope.views.view_page import build_page
from headscope.views.view_text import frame_of
from views.looking import cell, contrast, point_at, said, shown_map, shown_tokens
from views.made import make_payload, make_three, read_back

VIEWS = ("model", "head", "neuron", "matrix")


SIGNS = {
    "": "∅", "  ": "␣␣", "\n": "↵", "a\tb": "a⇥b", "\x00": "␀", "\x7f": "␡", "\u200b": "U+200B",
    "\ufe0f": "U+FE0F", "\u202ea": "\ufffda", "\u0301": "◌\u0301", "👩‍👩‍👧": "👩‍👩‍👧",
    "می‌خواهم": "می‌خواهم", "中文": "中文",
}  # fmt: skip


def test_what_cannot_be_seen_is_shown_by_a_sign(opened):
    page = opened(given=make_payload(tokens=["[CLS]", *SIGNS, "x", "[SEP]"], layers=1, heads=2))
    page.click("#tab-head")
    assert shown_tokens(page, "from") == ["[CLS]", *SIGNS.values(), "x", "[SEP]"]


def test_right_to_left_tokens_do_not_turn_what_stands_beside_them(opened):
    page = opened(given=make_payload(tokens=["[CLS]", "שלום", "עולם", "[SEP]"], layers=1, heads=2))
    page.click("#tab-head")
    page.locator("#from [role=option]").nth(1).hover()
    assert "‘\u2068שלום\u2069’" in said(page)
    box = page.locator("#to [role=option]").nth(2)
    text, value = (
        box.locator(part).bounding_box()["x"] for part in (".text", ".value")
    )  # the number stays on the same side as for every other token
    assert text < value


def test_words_stand_as_they_were_written(opened):
    given = make_payload(tokens=["[CLS]", "un", "##known", "the", "[SEP]"], layers=1, heads=2)
    given["sides"][0] |= {
        "written": ["", "Un", "known", "  The", ""],
        "pieces": ["[CLS]", "un", "-known", "the", "[SEP]"],
    }
    page = opened(given=given)
    page.click("#tab-head")
    assert shown_tokens(page, "from") == ["[CLS]", "un", "-known", "the", "[SEP]"]
    page.check("input[name=level][value=word]", force=True)
    assert shown_tokens(page, "from") == ["[CLS]", "Unknown", "The", "[SEP]"]


def test_the_page_works_in_the_closed_frame_of_a_notebook(browser, payload):
    page = browser.new_page()
    frame = escape(build_page(payload).decode("utf-8"), quote=True)
    page.set_content(f'<iframe sandbox="allow-scripts" srcdoc="{frame}" width="900"></iframe>')
    page.frame_locator("iframe").locator("#cells [aria-selected=true]").click()
    readout = page.frame_locator("iframe").locator("#readout")
    assert readout.text_content().startswith("L1·H1")
    page.close()


HOSTS = {  # a notebook's own colours, and how it turns dark later
    "dark": "background:#111;color:oklch(0.95 0 0)",
    "light": "background:white;color:rgba(0, 0, 0, .87)",
}


@pytest.mark.parametrize("system", HOSTS)
def test_a_view_is_dark_in_a_dark_notebook_and_light_in_a_light_one(browser, payload, system):
    page = browser.new_page(color_scheme=system)
    first = "light" if system == "dark" else "dark"  # what the system does not say
    shown = frame_of(build_page(payload), "view")
    page.set_content(f'<body style="{HOSTS[first]}">{shown}')
    inside = page.frame_locator("iframe").locator("html")
    for turn, theme in enumerate((first, system, first)):
        if turn:  # the first is known as the frame has loaded
            page.evaluate("style => document.body.setAttribute('style', style)", HOSTS[theme])
        inside.locator(f"xpath=self::*[@data-scheme='{theme}']").wait_for(state="attached")
        shown = inside.evaluate("html => getComputedStyle(html).backgroundColor")
        red = int(re.search(r"\d+", shown)[0])
        assert (red < 60) == (theme == "dark"), (theme, shown)
        assert inside.evaluate("html => getComputedStyle(html).colorScheme") == theme
    page.close()


def test_two_pages_in_one_document_have_each_their_own_selection(browser):
    payloads = make_payload(8, 2, 3), make_payload(6, 2, 3)
    frames = "".join(
        f'<iframe sandbox="allow-scripts" width="700" height="600" '
        f'srcdoc="{escape(build_page(one).decode("utf-8"), quote=True)}"></iframe>'
        for one in payloads
    )
    page = browser.new_page()
    page.set_content(frames)
    first, second = (page.frame_locator("iframe").nth(place) for place in (0, 1))
    first.locator("#cells [role=gridcell]").nth(4).click()
    second.locator("#cells [role=gridcell]").nth(2).click()
    assert first.locator("#readout").text_content().startswith("L2·H2")
    assert second.locator("#readout").text_content().startswith("L1·H3")
    assert first.locator("#from [role=option]").count() == 8
    assert second.locator("#from [role=option]").count() == 6
    page.close()


@pytest.mark.parametrize("tokens", [22, 128])
def test_no_view_scrolls_sideways(opened, tokens):
    page = opened(given=make_payload(tokens, 1, 12, measures=("weighted_norm", "difference")))
    for view, beside in (*((one, False) for one in VIEWS), ("head", True), ("matrix", True)):
        page.click(f"#tab-{view}")
        if beside:
            page.check("#beside")
        for width in (360, 768, 1280):
            page.set_viewport_size({"width": width, "height": 800})
            page.wait_for_function(  # it is laid out anew after the size has changed
                "width => innerWidth === width && document.documentElement.scrollWidth <= width",
                arg=width,
            )


def test_encoder_and_decoder_fit_a_narrow_page(opened):
    page = opened(360, given=make_three())
    for stack in (0, 1, 2):
        page.check(f"input[name=stack][value='{stack}']", force=True)
        for view in VIEWS:
            page.click(f"#tab-{view}")
            assert page.evaluate("document.documentElement.scrollWidth") <= 360, view


def test_light_and_dark_follow_the_system(opened):
    page = opened()
    for scheme, shade in (("light", "rgb(255, 255, 255)"), ("dark", "rgb(20, 22, 26)")):
        page.emulate_media(color_scheme=scheme)
        found = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        assert found == shade


def test_words_stand_out_from_the_page(opened):
    page = opened()
    page.click("#tab-head")
    page.select_option("#special", "dimmed")
    page.check("#beside")
    selectors = (
        ".about",
        ".side",
        ".chip span",
        ".text",
        ".dimmed .text",
        ".choice",
        ".note",
        ".caption",
        ".switch input:not(:checked) + span",
    )
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        for selector in selectors:
            assert contrast(page, selector) >= 4.5, (selector, scheme)


def test_everything_is_reached_by_keyboard(opened, payload):
    tokens, values = payload["sides"][0]["tokens"], read_back(payload)
    page = opened()
    page.locator("#cells [tabindex='0']").focus()
    for key in ("ArrowDown", "ArrowRight", "ArrowRight", "ArrowLeft"):
        page.keyboard.press(key)
    assert said(page).startswith("L2·H2")
    assert page.locator("#look").is_visible()
    page.keyboard.press("Escape")
    assert page.locator("#look").is_hidden()
    page.keyboard.press("Enter")
    assert page.locator("#tab-head").get_attribute("aria-selected") == "true"
    page.locator("#from [tabindex='0']").focus()
    for key in ("ArrowDown", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    assert said(page).startswith(f"L2·H2 token ‘{tokens[2]}’ attends")
    page.keyboard.press("ArrowRight")
    assert said(page).startswith(f"L2·H2 token ‘{tokens[2]}’ is attended most by")
    page.locator("#tab-head").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.locator("#matrix").focus()
    page.keyboard.press("ArrowDown")  # enters at the kept token's strongest partner
    assert said(page).endswith(f": {values[1, 1, 2].max():.3f}")
    page.keyboard.press("ArrowDown")
    assert f"‘{tokens[3]}’ →" in said(page)


@pytest.mark.parametrize("name", ["measure", "level"])
def test_choices_are_reached_by_keyboard(opened, name):
    given = make_payload(22)
    page = opened(given=given)
    page.locator(f"input[name={name}]:checked").focus()
    page.keyboard.press("ArrowRight")
    assert page.locator(f"input[name={name}]").nth(1).is_checked()
    style = page.locator(f"input[name={name}]:checked + span").evaluate(
        "one => getComputedStyle(one).outlineStyle"
    )
    assert style == "solid"


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


def test_512_tokens_stay_in_hand(opened):
    """Every view opens, answers to the pointer, and tells the values of the payload."""
    given = make_payload(512, 2, 12)
    values = read_back(given)
    page = opened(given=given)
    cell(page, 1, 4).hover()
    assert page.locator("#look").is_visible()
    cell(page, 1, 4).click()
    assert page.locator("#top").input_value() == "3"  # of 512 lines per token, the largest
    page.locator("#from [role=option]").nth(300).hover()
    texts = page.locator("#to .value").all_text_contents()
    np.testing.assert_allclose([float(text) for text in texts], values[1, 4, 300], atol=0.0051)
    page.click("#tab-matrix")
    page.check("#whole")
    point_at(page, 400, 399, (512, 512))
    assert said(page).endswith(f": {values[1, 4, 400, 399]:.3f}")
    assert page.locator("#matrix").evaluate("one => one.scrollWidth <= one.clientWidth + 1")


@pytest.mark.parametrize(
    ("layers", "heads", "width"), [(24, 16, 1280), (32, 32, 360), (1, 1, 360), (1, 1, 1280)]
)
def test_many_or_few_heads_are_laid_out(opened, layers, heads, width):
    page = opened(width, given=make_payload(8, layers, heads))
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    last = cell(page, layers - 1, heads - 1, heads)
    last.scroll_into_view_if_needed()
    box = last.locator("canvas").bounding_box()
    assert 12 <= box["width"] <= 200
    last.click()
    assert said(page).startswith(f"L{layers}·H{heads}")
    page.locator("[data-heads=all]").click()
    styles = page.locator(".chip").evaluate_all(
        "all => all.map((chip) => getComputedStyle(chip.querySelector('path')).stroke + '/'"
        " + chip.querySelector('path').getAttribute('stroke-dasharray'))"
    )
    assert len(set(styles)) == heads


def test_maps_that_do_not_fit_the_tokens_are_told(browser, tmp_path):
    given = make_payload(8, 1, 2)
    given["sides"][0]["tokens"].append("more")
    for name in ("special", "segment", "word"):
        given["sides"][0][name].append(0)
    place = tmp_path / "view.html"
    place.write_bytes(build_page(given))
    page = browser.new_page()
    page.goto(place.as_uri())
    page.get_by_text("can be shown: maps and tokens do not fit together").wait_for()
    page.close()


def test_a_text_of_special_tokens_only_is_still_shown(opened):
    page = opened(given=make_payload(tokens=["[CLS]", "[SEP]"], layers=1, heads=2))
    page.click("#tab-head")
    assert np.isfinite(shown_map(page)).all()
    enabled = "all => all.filter((one) => !one.disabled).map((one) => one.value)"
    assert page.locator("#special option").evaluate_all(enabled) == ["shown", "dimmed"]
