"""Does the address of a report hold the number of the grid, the card, the example and its view?"""

from __future__ import annotations

import pytest

TOOK = "() => location.hash === %r"
ENTROPY = "entropy.entropy.all"


@pytest.fixture
def opened(watched, hostile_report):
    """Opens the report at an address within it."""

    def start(address=""):
        return watched(hostile_report.as_uri() + address, offline=True)

    return start


def took(page, address):
    page.wait_for_function(TOOK % address)


def titled(page, name):
    page.locator("#card-title").filter(has_text=name).wait_for()


def framed(page):
    """The views of the example that is looked at, when they are drawn."""
    frame = page.frame_locator(".look iframe")
    frame.locator("body[aria-busy=false]").wait_for(state="attached")
    return frame


def tab_of(frame):
    return frame.locator("[role=tab][aria-selected=true]").get_attribute("data-view")


def number_shown(page):
    return page.locator("#metric").evaluate("one => one.value")


def test_the_number_of_the_grid_is_in_the_address_and_back_undoes_it(opened):
    page = opened()
    usual = number_shown(page)
    page.select_option("#metric", "surface.attention.cls")
    page.select_option("#metric", ENTROPY)
    took(page, f"#measure={ENTROPY}")
    page.go_back()
    took(page, "#measure=surface.attention.cls")
    assert number_shown(page) == "surface.attention.cls"
    page.go_back()
    took(page, "")
    assert number_shown(page) == usual


def test_a_report_opens_at_a_part_with_the_number_asked_for(opened):
    page = opened(f"#table&measure={ENTROPY}")
    assert number_shown(page) == ENTROPY
    assert page.locator("#table-title").evaluate("one => one.getBoundingClientRect().top") < 300


def test_a_link_leads_to_a_card_and_leaves_what_was_chosen(opened):
    page = opened(f"#measure={ENTROPY}")
    page.locator("#cells a").nth(40).click()
    titled(page, "L4·H5")
    took(page, f"#L4H5&measure={ENTROPY}")
    page.go_back()
    page.locator("#card").wait_for(state="hidden")
    took(page, f"#measure={ENTROPY}")
    assert number_shown(page) == ENTROPY


def test_an_example_and_what_its_views_show_are_in_the_address(opened):
    page = opened("#L4H5")
    titled(page, "L4·H5")
    page.locator("#card button.look-at").click()
    frame = framed(page)
    assert tab_of(frame) == "head"
    frame.locator("#tab-matrix").click()
    page.wait_for_function("location.hash.includes('view=')")
    deep = page.evaluate("location.hash")
    page.go_back()
    frame.locator("#tab-head[aria-selected=true]").wait_for()
    page.go_back()
    page.locator(".look").wait_for(state="detached")
    took(page, "#L4H5")
    again = opened(deep)
    titled(again, "L4·H5")
    assert tab_of(framed(again)) == "matrix"
    assert again.evaluate("location.hash") == deep


def test_closing_an_example_takes_it_from_the_address(opened):
    page = opened("#examples&example=2")
    framed(page)
    assert page.locator("#examples li").nth(1).locator(".look").count() == 1
    page.locator(".look .close").click()
    took(page, "#examples")


@pytest.fixture(scope="module")
def usual_number(browser, hostile_report):
    page = browser.new_page()
    page.goto(hostile_report.as_uri())
    number = number_shown(page)
    page.close()
    return number


@pytest.mark.parametrize(
    "address",
    [
        "#&measure=no.such.number",
        "#&measure=__proto__",
        "#&example=999",
        "#&example=0.L1H1",
        "#&example=1.L9H9",
        "#&example=<img src=x onerror=alert(1)>",
        "#&view=L1H1",
        "#&=&%00=%FF",
    ],
)
def test_an_unknown_word_counts_as_absent(opened, usual_number, address):
    page = opened(address)
    assert number_shown(page) == usual_number
    assert page.locator("#card").is_hidden()
    assert page.locator(".look").count() == 0
    assert page.locator("main img").count() == 0
    page.select_option("#metric", ENTROPY)  # the next choice leaves nothing of it behind
    took(page, f"#measure={ENTROPY}")


def test_what_the_views_are_asked_to_show_may_be_anything(opened):
    page = opened("#L4H5")
    titled(page, "L4·H5")
    page.locator("#card button.look-at").click()
    page.wait_for_function("location.hash.includes('example=')")
    plain = page.evaluate("location.hash")
    again = opened(f"{plain}&view=%3Cscript%3Ealert(1)%3C/script%3E%26tab%3D%3Cb%3E")
    assert tab_of(framed(again)) == "head"
    again.wait_for_function(TOOK % plain)
