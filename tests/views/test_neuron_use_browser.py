"""Can the neuron view be used: from other views, by keyboard, on a phone, with any tokens?"""

from __future__ import annotations

import re
from functools import partial

import numpy as np
import pytest

from views.hostile import HOSTILE
from views.looking import contrast, point_at, said
from views.looking_at_neurons import ask, colours, column, named, open_head, row
from views.made_detail import make_payload, read_block

QUERY = 5


@pytest.fixture
def at_head(opened):
    """Opens a page at the neuron view of a head."""
    return partial(open_head, opened)


def test_a_chosen_key_far_down_is_brought_into_sight(at_head):
    payload = make_payload(200)
    page = at_head(payload)
    weight = read_block(payload)["weight"]
    query = int(next(q for q in range(200) if weight[q].argmax() > 150))
    ask(page, query)
    table = page.locator("#neuron-table").bounding_box()
    line = row(page, weight[query].argmax()).bounding_box()
    head = page.locator("#neuron-table .heads").bounding_box()
    assert head["y"] + head["height"] <= line["y"] <= table["y"] + table["height"] - line["height"]
    # Rows get their colours when they come into sight.
    page.locator("#neuron-table").evaluate("table => table.scrollTo(0, 0)")
    page.locator("#neuron-table").evaluate(
        "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
    )
    known = read_block(payload)
    product = known["q"][query] * known["k"][0]
    shade = colours(page, "#neuron-table [data-key='0'] .qk canvas")
    clear = np.abs(product) > 0.3
    np.testing.assert_array_equal((shade[:, 2] > shade[:, 0])[clear], (product > 0)[clear])


def test_heads_without_vectors_say_which_heads_have_them(at_head):
    page = at_head(make_payload(why="Only three heads are here."), layer=0, head=0)
    missing = page.locator("#neuron-missing")
    assert "L1·H1" in missing.text_content()
    assert "Only three heads are here." in missing.text_content()
    assert page.locator("#neuron-work").is_hidden()
    names = missing.locator("button").all_text_contents()
    assert names == ["L1·H2", "L2·H3", "L3·H1"]
    missing.locator("button").nth(1).click()
    page.locator("#neuron-work:visible").wait_for()
    assert page.locator("#neuron-work").is_visible()
    assert said(page).startswith("L2·H3")


@pytest.mark.parametrize("given", [{"detailed": ()}, {"vectors": False, "why": "Not shown."}])
def test_a_model_without_vectors_says_so(at_head, given):
    page = at_head(make_payload(**given))
    missing = page.locator("#neuron-missing")
    assert "are not on this page" in missing.text_content()
    assert missing.locator("button").count() == 0
    assert given.get("why", "") in missing.text_content()


def test_the_selection_is_taken_along(at_head):
    page = at_head(make_payload())
    page.click("#tab-head")
    page.locator("#from [role=option]").nth(7).click()
    page.click("#tab-neuron")
    selected = page.locator("#neuron-from [aria-selected=true]")
    assert selected.evaluate("one => [...one.parentNode.children].indexOf(one)") == 7
    ask(page, 9)
    page.click("#tab-head")
    kept = page.locator("#from [aria-selected=true]")
    assert kept.evaluate("one => [...one.parentNode.children].indexOf(one)") == 9


def question(page):
    page.locator("#why-here").click()
    page.locator("#neuron-answer:visible").wait_for()
    return page.locator("#neuron-question").text_content()


def test_the_other_views_ask_why_of_what_is_kept_there(at_head):
    payload = make_payload()
    page = at_head(payload)
    assert page.locator("#why-here").is_hidden()
    weight, tokens = read_block(payload)["weight"], payload["sides"][0]["tokens"]
    page.click("#tab-head")
    page.locator("#from [role=option]").nth(7).click()
    most = int(weight[7].argmax())
    asked = f"Why does ‘{tokens[7]}’ give ‘{tokens[most]}’ {weight[7, most]:.4f}?"
    assert question(page) == asked
    assert page.evaluate("document.activeElement.id") == "tab-neuron"


def press(page, query, key):
    """A click on a weight of the map of 14 tokens."""
    point_at(page, query, key, (14, 14))
    page.mouse.down()
    page.mouse.up()


def test_a_click_on_a_weight_opens_its_answer_beside_the_map(at_head):
    payload = make_payload()
    page = at_head(payload)
    weight, tokens = read_block(payload)["weight"], payload["sides"][0]["tokens"]

    def asked(query, key):
        pair = named(tokens, query), named(tokens, key)
        return "Why does {} give {} {:.4f}?".format(*pair, weight[query, key])

    page.click("#tab-matrix")
    answer = page.locator("#view-matrix #neuron-answer")
    box = page.locator("#map").bounding_box()
    for query, key in ((9, 2), (9, 5)):
        press(page, query, key)
        assert answer.locator("h2").inner_text() == asked(query, key)
    assert page.locator("#map").bounding_box() == box
    assert answer.bounding_box()["x"] > box["x"] + box["width"]
    assert "headscope serve" in answer.inner_text()
    page.mouse.move(0, 0)
    assert page.locator("#point").is_visible()  # on the weight that was asked for
    press(page, 9, 5)
    assert answer.is_hidden()
    assert page.locator("#rows .kept").count() == 0
    # By keyboard, from where the cursor is.
    page.locator("#matrix").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert answer.locator("h2").inner_text() == asked(10, 5)
    page.click("#tab-neuron")
    assert page.locator("#neuron-work h2").first.inner_text() == asked(10, 5)
    page.click("#tab-matrix")
    assert answer.is_visible()
    page.locator("#matrix").focus()
    page.keyboard.press("Escape")
    assert answer.is_hidden()
    page.keyboard.press("Shift+Enter")
    assert answer.is_hidden()
    assert page.locator("#columns .kept").count() == 1


@pytest.mark.parametrize(
    ("made", "words"),
    [
        ({"detailed": ((1, 2),)}, "L1·H2 are not on this page: headscope serve has those of every"),
        ({"vectors": False, "why": "Not shown."}, "L1·H2 are not on this page: Not shown."),
        ({"window": 3}, "does not see"),
    ],
)
def test_a_weight_without_an_answer_says_what_has_one(at_head, made, words):
    page = at_head(make_payload(**made))
    page.click("#tab-matrix")
    press(page, 9, 2)
    assert words in page.locator("#unanswered").text_content()
    assert page.locator("#neuron-answer").is_hidden()
    page.locator("#matrix").focus()
    page.keyboard.press("Escape")
    assert page.locator("#unanswered").text_content() == ""


def test_a_weight_of_a_later_token_is_not_asked_for(at_head):
    page = at_head(make_payload(causal=True))
    page.click("#tab-matrix")
    press(page, 9, 2)
    assert page.locator("#neuron-answer").is_visible()
    press(page, 2, 9)
    assert page.locator("#neuron-answer").is_hidden()
    assert page.locator("#unanswered").text_content() == ""
    assert said(page).endswith("later, not seen")


def test_a_key_that_is_kept_is_asked_about_where_it_gets_most(at_head):
    payload = make_payload(pair=False)
    page = at_head(payload)
    weight, side = read_block(payload)["weight"], payload["sides"][0]
    page.click("#tab-head")
    page.locator("#to [role=option]").nth(4).click()
    most = int(np.where(side["special"], -1, weight[:, 4]).argmax())
    asked = f"Why does ‘{side['tokens'][most]}’ give ‘{side['tokens'][4]}’ {weight[most, 4]:.4f}?"
    assert question(page) == asked


def test_words_and_removed_tokens_do_not_change_it_and_it_says_so(at_head):
    payload = make_payload(22)  # has a word of two tokens
    page = at_head(payload)
    ask(page, QUERY)
    before = column(page, "weight")
    page.check("input[name=level][value=word]", force=True)
    page.select_option("#special", "removed")
    np.testing.assert_array_equal(column(page, "weight"), before)
    note = page.locator("#neuron-note").text_content()
    assert "works on tokens" in note
    assert "Special tokens stay" in note


def test_everything_is_reached_by_keyboard(at_head):
    payload = make_payload()
    page = at_head(payload)
    known, tokens = read_block(payload), payload["sides"][0]["tokens"]
    page.locator("#tab-neuron").focus()

    def tab_to(selector):
        for _ in range(40):
            page.keyboard.press("Tab")
            if page.evaluate("selector => document.activeElement.matches(selector)", selector):
                return page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        raise AssertionError(selector)

    assert tab_to("#neuron-from [role=option]") == "solid"
    page.keyboard.press("Home")
    for _ in range(QUERY):
        page.keyboard.press("ArrowRight")
    assert tab_to("#neuron-why") == "solid"
    page.keyboard.press("Enter")
    assert page.locator("#neuron-answer").is_visible()
    assert tab_to("[data-key]") == "solid"
    best = int(known["weight"][QUERY].argmax())
    assert said(page).startswith(f"L1·H2 {named(tokens, QUERY)} → {named(tokens, best)}: score")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert f"→ {named(tokens, best + 1)}, neuron 2: q" in said(page)
    page.keyboard.press("Enter")
    weight = known["weight"][QUERY, best + 1]
    assert page.locator("#neuron-question").text_content().endswith(f"{weight:.4f}?")
    page.keyboard.press("Escape")
    assert "neuron" not in said(page)


# Asks so many tokens, and why each gives itself what it gives.
ASKED = """(places) => places.forEach((place) => {
  document.querySelectorAll("#neuron-from [role=option]")[place].click();
  document.querySelector(`#neuron-table [data-key='${place}']`).click();
})"""


def test_hostile_tokens_are_only_text(at_head):
    """Every third is asked; harmless ones are alike, so that few of them and the last are."""
    kinds, last = [], 3 * ((len(HOSTILE) + 1) // 3)
    for tokens, step in ((HOSTILE, 3), ([f"word{place}" for place in range(len(HOSTILE))], 60)):
        page = at_head(make_payload(tokens=["[CLS]", *tokens, "[SEP]"], pair=False))
        page.click("#neuron-why")
        page.evaluate(ASKED, [*range(0, last, step), last])
        kinds.append(
            page.evaluate(
                "[...document.querySelectorAll('#view-neuron *')].map((one) => one.tagName)"
            )
        )
        assert page.evaluate("document.documentElement.scrollWidth") <= 1280
    assert sorted(kinds[0]) == sorted(kinds[1])


@pytest.mark.parametrize("neurons", [16, 256])
def test_it_fits_a_narrow_screen(at_head, neurons):
    page = at_head(make_payload(d=neurons, bias=True), width=360)
    page.click("#neuron-why")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    table = page.locator("#neuron-table")
    assert table.evaluate("one => one.scrollWidth <= one.clientWidth")
    right = page.locator("[data-key='3'] .weight").bounding_box()
    assert right["x"] + right["width"] <= 360


def test_what_can_be_used_has_a_role_and_a_name(at_head):
    page = at_head(make_payload())
    page.click("#neuron-why")
    assert page.get_by_role("button", name="Why this weight?", expanded=True).count() == 1
    assert page.get_by_role("combobox", name="Neurons").count() == 1
    assert page.get_by_role("listbox", name="Query").get_by_role("option").count() == 14
    grid = page.get_by_role("grid", name=re.compile("L1·H2"))
    assert grid.get_by_role("row").count() == 17
    assert grid.get_by_role("row", selected=True).count() == 1
    assert grid.get_by_role("columnheader").count() == 8
    for part in grid.get_by_role("row").all():
        kinds = part.evaluate("one => [...one.children].map((cell) => cell.getAttribute('role'))")
        assert set(kinds) <= {"rowheader", "columnheader", "gridcell"}
    assert page.get_by_role("region", name=re.compile("^Why does")).count() == 1


def test_words_stand_out_from_the_page(at_head):
    page = at_head(make_payload())
    page.click("#neuron-why")
    page.select_option("#filter", "AA")
    selectors = (
        "#neuron-from .outside",
        "#neuron-from .special",
        ".heads .k small",
        "#neuron-remark",
        ".weight span",
        "#neuron-note",
        "#neuron-told",
        "#neuron-parts td",
        "#neuron-scores .heads th",
    )
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        for selector in selectors:
            assert contrast(page, selector) >= 4.5, (selector, scheme)
