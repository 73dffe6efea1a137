"""Does the card of a head work in a real browser: address, keys, numbers, maps, phone?"""

from __future__ import annotations

import re

import numpy as np
import pytest

from accessible import NARROW_AND_WIDE, faults
from headscope.analyses.patterns.typical_maps import head_maps
from headscope.heads.head_card import head_card
from headscope.report.card_page import LEVELS, build_card
from recorded import reading, recorded, with_maps

EVIL = ["[CLS]", "</script><img src=x onerror=alert(1)>", "\u202egnp", "\ud800", "[SEP]"]


@pytest.fixture
def tree(hostile_tree):
    return hostile_tree


@pytest.fixture
def report(hostile_report):
    return hostile_report


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The card of L2·H3, by classes of maps, as a page of its own."""
    tree = with_maps(recorded(3, 4, model="<b>m</b>"), tokens=EVIL)
    return build_card(tree, head_card(tree, 1, 2), tmp_path_factory.mktemp("card") / "card.html")


@pytest.fixture
def opened(watched):
    """Opens a page, at an address within it."""

    def start(path, address="", width=1280, **options):
        return watched(path.as_uri() + address, width=width, offline=True, **options)

    return start


def drawn(page):
    """The card, when its maps are there."""
    card = page.locator("#card")
    card.locator(".map svg").first.wait_for()
    return card


def titled(page, name):
    """Waits until the card of a head is there."""
    page.locator("#card-title").filter(has_text=re.compile(f"^{re.escape(name)}$")).wait_for()


# --- addresses ------------------------------------------------------------------------------


def test_an_address_opens_the_card_in_the_place_of_the_report(opened, report):
    page = opened(report, "#L4H5")
    titled(page, "L4·H5")
    assert page.title().startswith("L4·H5, ")
    assert not page.locator("#telling").is_visible()
    page.evaluate("location.hash = 'table'")
    page.locator("#card").wait_for(state="hidden")
    assert page.locator("#table").is_visible()
    assert page.title() == "demo: what every head looks at"


@pytest.mark.parametrize("address", ["#L0H1", "#L7H1", "#L1H13", "#L1", "#<img src=x>", "#%00"])
def test_an_address_that_names_no_head_leaves_the_report(opened, report, address):
    page = opened(report, address)
    assert page.locator("#card").is_hidden()
    assert page.locator("#telling").is_visible()


def test_a_row_of_the_table_leads_to_its_card_and_back_to_where_one_was(opened, report):
    page = opened(report, "#table")
    link = page.locator("#heads tbody th a").nth(40)
    link.scroll_into_view_if_needed()
    before = page.evaluate("scrollY")
    assert before > 500
    link.click()
    titled(page, "L4·H5")
    assert page.evaluate("scrollY") == 0
    page.go_back()
    page.locator("#card").wait_for(state="hidden")
    assert page.evaluate("scrollY") == pytest.approx(before, abs=2)
    assert page.locator("#cells [aria-current]").get_attribute("aria-label").startswith("L4·H5")


def test_panel_and_map_name_heads_by_links_to_their_cards(opened, report):
    page = opened(report, "#map")
    page.locator("#cells a").nth(40).hover()
    assert page.locator("#panel h3 a").get_attribute("href") == "#L4H5"
    page.locator("#places .place").nth(3).focus()
    link = page.locator("#readout a")
    name = link.text_content()
    link.click()
    titled(page, name)


def test_keys_walk_through_the_cards(opened, report):
    page = opened(report, "#L4H5")
    page.locator("#card-title:focus").wait_for()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    titled(page, "L4·H6")
    page.locator("#card-title:focus").wait_for()
    page.get_by_role("link", name="‹ L4·H5").press("Enter")
    titled(page, "L4·H5")
    first, last = opened(report, "#L1H1"), opened(report, "#L6H12")
    assert first.locator(".walk a").all_text_contents() == [
        "All heads",
        "Table of heads",
        "L1·H2 ›",
    ]
    assert last.locator(".walk a").all_text_contents() == [
        "All heads",
        "Table of heads",
        "‹ L6·H11",
    ]


# --- what it says ---------------------------------------------------------------------------


def test_the_card_says_what_the_results_say(opened, report, tree):
    page, card = opened(report, "#L4H5"), head_card(tree, 3, 4)
    shown = page.locator("#card .labels b").all_text_contents()
    assert shown == [label.label for label in card.labels.labels]
    rows = page.locator("#card .numbers tbody tr:not(.group)")
    assert rows.count() == len(card.numbers)
    at = next(i for i, n in enumerate(card.numbers) if n.metric.key == "surface.attention.cls")
    cells = rows.nth(at).locator("td").all_text_contents()
    value, rank = card.numbers[at].ends[0], card.numbers[at].rank
    assert cells[0].startswith(f"{100 * value:.0f}")
    assert cells[1] == f"{rank} of 72"
    relations = page.locator("#card .rows tbody th").all_text_contents()
    assert relations == [one["words"] for one in card.data["relations"]]
    near = page.locator("#card .nearest a").all_text_contents()
    assert near == [f"L{one['layer'] + 1}·H{one['head'] + 1}" for one in card.data["nearest"]]
    page.locator("#card .nearest a").first.click()
    titled(page, near[0])


def test_a_strip_has_a_mark_for_every_head_and_one_for_this(opened, report, tree):
    page = opened(report, "#L4H5")
    values = tree["surface"].attention.sel(target="previous").values
    row = page.locator("#card .numbers tbody tr", has_text="to previous token")
    marks = re.findall(r"M([\d.]+) 2.5", row.locator("path.heads").get_attribute("d"))
    assert len(marks) == 72
    own = float(re.match(r"M([\d.]+)", row.locator("path.value").get_attribute("d"))[1])
    low = min(values.min(), float(tree["surface"].attention_ci_low.sel(target="previous")[3, 4]))
    wanted = 100 * (values[3, 4] - low) / (values.max() - low)
    assert own == pytest.approx(wanted, abs=0.2)


def test_an_unlabelled_head_says_so_and_what_stands_out_most(opened, report, tree):
    place, found = next(
        (place, card.labels)
        for place in np.ndindex(6, 12)
        if not (card := head_card(tree, *place)).labels.labels and card.labels.closest
    )
    page = opened(report, f"#L{place[0] + 1}H{place[1] + 1}")
    assert page.get_by_text("unlabelled No rule is passed.").is_visible()
    assert found.closest.sentence in page.locator("#card .closest").text_content()


def test_maps_are_drawn_as_they_are(opened, report, tree):
    page, maps = opened(report, "#L4H5"), head_maps(reading(tree, "patterns")).of(3, 4)
    card = drawn(page)
    assert card.locator(".map").count() == 3
    for at, one in enumerate(maps):
        found = (
            card.locator(".map")
            .nth(at)
            .evaluate(
                """figure => Object.fromEntries([...figure.querySelectorAll("path.cell")]
              .map(path => [
              Number(/--ramp-(\\d+)/.exec(path.getAttribute("style") ?? path.style.cssText)[1]),
              path.getAttribute("d")]))"""
            )
        )
        n = len(one.tokens)
        shades = np.zeros((n, n), int)
        for shade, path in found.items():
            for x, y in re.findall(r"M(\d+) (\d+)h1", path):
                shades[int(y), int(x)] = int(shade)
        levels = np.rint(np.sqrt(one.weights) * LEVELS)
        assert np.abs(shades - levels / LEVELS * 23).max() <= 0.5 + 1e-6
        words = card.locator(".map").nth(at).locator(".links li").all_text_contents()
        assert len(words) == len(one.links())
    said = card.locator(".map svg").first.get_attribute("aria-label")
    assert said.startswith(f"Map of {len(maps[0].tokens)} tokens; strongest links: ")


def test_a_cell_is_read_where_the_pointer_is(opened, report):
    card = drawn(opened(report, "#L4H5"))
    frame = card.locator(".map .frame").first
    frame.hover(position={"x": 3, "y": 3}, force=True)
    assert re.match(r"\[CLS\] → \[CLS\] about [\d.]+ %", card.locator("p.cell").first.inner_text())


def test_the_head_opens_in_the_views_from_its_card(opened, report):
    page = opened(report, "#L4H5")
    page.locator("#card button.look-at").click()
    frame = page.frame_locator("#card .look iframe")
    frame.locator("body[aria-busy=false]").wait_for(state="attached")
    assert frame.locator("#head-name").text_content() == "L4·H5"
    page.get_by_role("link", name="L4·H6 ›").click()
    titled(page, "L4·H6")
    assert page.locator("#card iframe").count() == 0
    page.locator("#card button.look-at").click()
    assert page.locator("#card iframe").count() == 1


def test_hostile_tokens_stay_text(opened, report):
    page = opened(report)
    shown = set()
    for unit in range(0, 72, 5):
        page.evaluate(f"location.hash = 'L{unit // 12 + 1}H{unit % 12 + 1}'")
        titled(page, f"L{unit // 12 + 1}·H{unit % 12 + 1}")
        card = drawn(page)
        shown |= set(card.locator(".map text").all_text_contents())
    assert any(text.startswith("</scr") for text in shown)
    assert page.locator("main img").count() == 0
    assert page.locator("script").count() == 3


# --- a page of its own ----------------------------------------------------------------------


def test_the_page_of_one_head_opens_with_it_and_leads_to_others(opened, alone):
    page = opened(alone)
    card = drawn(page)
    titled(page, "L2·H3")
    assert card.locator(".map .kind").all_text_contents() == [
        "diagonal, 90 % sure",
        "vertical + diagonal, 60 % sure",
    ]
    assert page.locator("main img, main b script").count() == 0
    tokens = card.locator(".map").first.locator("text").all_text_contents()
    assert tokens[2].startswith("</scr")
    page.get_by_role("link", name="L2·H4 ›").click()
    titled(page, "L2·H4")
    assert "<b>m</b>" in page.locator(".kicker").text_content()


def test_without_scripts_the_page_says_what_it_needs(opened, alone):
    page = opened(alone, java_script_enabled=False)
    assert page.locator("main noscript").is_visible()


def test_nothing_scrolls_sideways(opened, report, alone):
    for path in (report, alone):
        page = opened(path, "#L2H3")
        drawn(page)
        for width in (360, 768, 1280):
            page.set_viewport_size({"width": width, "height": 800})
            assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize(("width", "scheme"), NARROW_AND_WIDE)
def test_the_card_passes_axe(opened, report, axe, width, scheme):
    page = opened(report, "#L4H5", width, color_scheme=scheme)
    drawn(page)
    page.locator("#card summary").first.click()
    assert faults(page, axe, schemes=[scheme], part="#card") == []


def test_maps_follow_the_page_into_the_dark(opened, report):
    page = opened(report, "#L4H5")
    cell = drawn(page).locator("path.cell").last
    light = cell.evaluate("path => getComputedStyle(path).fill")
    page.emulate_media(color_scheme="dark")
    assert cell.evaluate("path => getComputedStyle(path).fill") != light
