"""Do the views in a report open on the right head, in a real browser, offline and harmless?"""

from __future__ import annotations

import pytest

from headscope.analyses.examples.clearest_input import clearest_inputs
from headscope.claims.head_labels import telling_heads
from headscope.core.stored_maps import stored_inputs
from recorded import reading
from report.conftest import EVIL


@pytest.fixture
def tree(hostile_tree):
    return hostile_tree


@pytest.fixture
def report(hostile_report):
    return hostile_report


@pytest.fixture
def opened(watched, report):
    """Opens the report."""

    def start(at="", *, width=1280, **options):
        return watched(report.as_uri() + at, width=width, offline=True, **options)

    return start


def frame_of(page):
    """The frame, when its views are drawn."""
    frame = page.frame_locator(".look iframe")
    frame.locator("body[aria-busy=false]").wait_for(state="attached")
    return frame


def look_at(page, unit):
    page.locator(f'.telling button[data-look="{unit}"]').click()
    page.mouse.move(0, 0)  # a token below the pointer would show its own weights
    return frame_of(page)


def told(tree, *, kind):
    """(unit, look) of the first telling head of a kind."""
    looks = clearest_inputs(reading(tree, "examples"), stored_inputs(tree))
    units = [c.layer * 12 + c.head for c in telling_heads(tree) if c.kind == kind]
    return units[0], looks[units[0]]


def test_a_telling_head_opens_in_its_input_with_the_values_that_were_kept(opened, tree):
    page = opened()
    claims = [c for c in telling_heads(tree) if c.kind == "dependency"]
    looks, kept = (
        clearest_inputs(reading(tree, "examples"), stored_inputs(tree)),
        stored_inputs(tree),
    )
    claim, (example, query) = next(
        (c, looks[c.layer * 12 + c.head])
        for c in claims
        if looks[c.layer * 12 + c.head][1] is not None
    )
    frame = look_at(page, claim.layer * 12 + claim.head)
    assert frame.locator("#tab-head").get_attribute("aria-selected") == "true"
    assert frame.locator("#head-name").text_content() == f"L{claim.layer + 1}·H{claim.head + 1}"
    asks = frame.locator("#from .kept .text").all_text_contents()
    assert asks == [kept[example].tokens[query]]
    shown = [float(text) for text in frame.locator("#to .value").all_text_contents()]
    wanted = kept[example].attention[claim.layer, claim.head, query]
    assert shown == pytest.approx(wanted.tolist(), abs=0.009)
    assert max(shown) > 0.2


def test_a_head_that_looks_at_a_position_opens_with_all_its_lines(opened, tree):
    page = opened()
    unit, (example, _) = told(tree, kind="previous")
    frame = look_at(page, unit)
    assert frame.locator("#from .kept").count() == 0
    tokens = stored_inputs(tree)[example].tokens
    assert frame.locator("#from [role=option]").count() == len(tokens)


def test_labels_in_the_views_are_those_of_the_run(opened, tree):
    page = opened()
    unit, _ = told(tree, kind="previous")
    frame = look_at(page, unit)
    assert frame.locator("#head-does").text_content().startswith("previous token")


def test_one_frame_is_open_at_a_time_and_the_button_says_so(opened):
    page = opened()
    first, second = (page.locator(".telling button.look-at").nth(at) for at in (0, 1))
    assert first.get_attribute("aria-expanded") == "false"
    first.click()
    frame_of(page)
    assert first.get_attribute("aria-expanded") == "true"
    second.click()
    frame_of(page)
    assert page.locator("iframe").count() == 1
    assert first.get_attribute("aria-expanded") == "false"
    second.click()
    assert page.locator("iframe").count() == 0
    assert second.get_attribute("aria-expanded") == "false"


def test_focus_goes_into_the_frame_and_back_to_the_button(opened):
    page = opened()
    button = page.locator(".telling button.look-at").nth(2)
    name = button.text_content()
    assert name.startswith("Look at L")
    button.focus()
    page.keyboard.press("Enter")
    frame = frame_of(page)
    assert page.evaluate("document.activeElement.tagName") == "IFRAME"
    title = page.locator("iframe").get_attribute("title")
    assert title == name.removeprefix("Look at ")
    page.keyboard.press("Tab")
    assert frame.locator("#tab-head:focus").count() == 1
    page.get_by_role("button", name="Close").press("Enter")
    assert page.evaluate("document.activeElement.textContent") == name


def test_the_head_kept_in_the_grid_can_be_looked_at(opened, tree):
    page = opened()
    button = page.locator("#look-here")
    page.locator("#cells a").nth(40).press(" ")
    assert button.text_content().startswith("Look at L4·H5 in “")
    button.click()
    frame = frame_of(page)
    assert frame.locator("#head-name").text_content() == "L4·H5"
    page.locator("#cells a").nth(41).press(" ")
    frame.locator("#head-name", has_text="L4·H6").wait_for()
    assert button.text_content().startswith("Look at L4·H6")


def test_a_head_chosen_in_the_report_is_the_one_of_the_views_and_the_other_way_round(opened):
    page = opened("#examples")
    page.get_by_role("button", name="All heads").first.click()
    frame = frame_of(page)
    frame.locator("#cells [role=gridcell]").nth(30).click()  # L3·H7
    page.locator("#cell-L3H7[aria-current]").wait_for(state="attached")
    assert page.locator("#heads tr.chosen th").text_content() == "L3·H7"
    assert "head=L3H7" in page.evaluate("location.hash")
    page.locator("#cells a").nth(59).press(" ")  # L5·H12
    frame.locator("#head-name", has_text="L5·H12").wait_for()
    frame.locator("#tab-model").click()
    assert frame.locator("#cells .chosen").get_attribute("aria-label").startswith("L5·H12")
    page.wait_for_function("!location.hash.includes('tab')")
    again = opened(page.evaluate("location.hash"))
    assert frame_of(again).locator("#cells .chosen").count() == 1
    assert again.locator("#cells [aria-current]").get_attribute("id") == "cell-L5H12"


def test_an_input_opens_with_all_heads(opened, tree):
    page = opened("#examples")
    page.get_by_role("button", name="All heads").first.click()
    frame = frame_of(page)
    assert frame.locator("#tab-model").get_attribute("aria-selected") == "true"
    assert frame.locator("h1").text_content() == stored_inputs(tree)[0].text


def test_the_frame_is_as_high_as_what_it_holds(opened):
    page = opened()
    page.locator(".telling button.look-at").first.click()
    frame = frame_of(page)
    for tab in ("model", "matrix", "head"):
        frame.locator(f"#tab-{tab}").click()
        height = page.locator(".look iframe").evaluate(
            """(frame) => new Promise((tell) => {
              let steady = 0, last = 0;
              const look = () => {
                steady = frame.clientHeight === last ? steady + 1 : 0;
                last = frame.clientHeight;
                steady > 10 ? tell(last) : requestAnimationFrame(look);
              };
              look();
            })"""
        )
        inside = frame.locator("html").evaluate("whole => whole.offsetHeight")
        assert height == pytest.approx(min(inside, 1600), abs=2)


def test_nothing_scrolls_sideways(opened):
    page = opened()
    page.locator(".telling button.look-at").first.click()
    frame = frame_of(page)
    for width in (360, 768, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        inner = frame.locator("html").evaluate("whole => [whole.scrollWidth, whole.clientWidth]")
        assert inner[0] <= inner[1]


def test_the_views_are_light_or_dark_with_the_report(opened):
    for scheme, shade in (("light", "rgb(255, 255, 255)"), ("dark", "rgb(20, 22, 26)")):
        page = opened(color_scheme=scheme)
        page.locator(".telling button.look-at").first.click()
        found = frame_of(page).locator("html").evaluate("e => getComputedStyle(e).backgroundColor")
        assert found == shade


def test_hostile_tokens_stay_text(opened):
    page = opened("#examples")
    page.get_by_role("button", name="All heads").last.click()
    frame = frame_of(page)
    frame.locator("#tab-head").click()
    shown = frame.locator("#from .text").all_text_contents()
    assert shown[1:6] == EVIL[:5]
    assert shown[10:12] == ["\ufffdevil", EVIL[9]]
    assert frame.locator("img, iframe, script[src]").count() == 0
    assert frame.locator("script").count() == 2
    assert page.locator("main img").count() == 0


def test_a_page_outside_the_frame_cannot_change_its_height(opened):
    page = opened()
    page.locator(".telling button.look-at").first.click()
    frame_of(page)
    page.evaluate("postMessage({ height: 7 }, '*')")
    page.evaluate("new Promise((tell) => requestAnimationFrame(() => requestAnimationFrame(tell)))")
    assert page.locator(".look iframe").evaluate("frame => frame.clientHeight") > 100


def test_without_scripts_the_inputs_are_listed(opened, tree):
    page = opened(java_script_enabled=False)
    page.locator("#examples summary").click()
    listed = page.locator(".inputs li").all_text_contents()
    assert len(listed) == len(stored_inputs(tree))
    assert page.locator("#examples noscript").is_visible()
    assert page.locator("button.look-at:visible").count() == 0
