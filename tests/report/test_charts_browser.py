"""Does every mark that is a head answer, and is a chosen head marked in all charts?"""

from __future__ import annotations

import pytest

from accessible import faults
from headscope.report.build import render
from recorded import manifest_of, recorded

GROUPS = ("surface", "entropy", "divergence", "patterns")
FIRST = "#surface .plot svg.answers"


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    tree = recorded(groups=GROUPS)
    path = tmp_path_factory.mktemp("charts") / "report.html"
    path.write_text(render(tree, manifest_of(tree)), "utf-8")
    return path


@pytest.fixture
def opened(watched, report):
    def start(at="", width=1280):
        return watched(report.as_uri() + at, width=width, height=900, offline=True)

    return start


def place_of(page, chart, at):
    """Where a mark is on the screen, and its unit and words."""
    return page.evaluate(
        """([chart, at]) => {
          const svg = document.querySelector(chart), m = svg.getScreenCTM();
          const series = JSON.parse(svg.dataset.heads)[0];
          const unit = series.u ? series.u[at] : at;
          return [m.e + m.a * series.x[at], m.f + m.d * series.y[at], unit, series.t[at]];
        }""",
        [chart, at],
    )


def test_a_mark_tells_head_and_interval_to_the_pointer(opened):
    page = opened("#surface")
    x, y, unit, words = place_of(page, FIRST, 40)
    page.mouse.move(x, y)
    told = page.locator(".tip").text_content()
    assert told.startswith(f"L{unit // 12 + 1}·H{unit % 12 + 1}")
    assert words in told
    assert "[" in told
    page.mouse.move(2, 2)
    assert page.locator(".tip").is_hidden()


def test_arrow_keys_go_from_head_to_head_and_enter_chooses_one_everywhere(opened):
    page = opened("#surface")
    page.keyboard.press("Tab")
    page.locator(FIRST).first.focus()
    for key in ("ArrowDown", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    assert page.locator(".tip b").text_content() == "L2·H3"
    page.keyboard.press("Enter")
    assert page.locator("#cells [aria-current]").get_attribute("id") == "cell-L2H3"
    assert page.locator("#heads tr.chosen th").text_content() == "L2·H3"
    charts = page.locator("svg.answers")
    assert charts.count() >= 5
    marked = charts.evaluate_all(
        "all => all.map((one) => one.querySelector('.chosen-mark').getAttribute('d'))"
    )
    assert all(marked)
    assert "head=L2H3" in page.evaluate("location.hash")
    page.keyboard.press("Escape")
    assert page.locator(".tip").is_hidden()


def test_a_tap_tells_and_chooses(opened):
    page = opened("#surface", width=390)
    page.locator(FIRST).first.scroll_into_view_if_needed()
    x, y, unit, _ = place_of(page, FIRST, 5)
    page.locator(FIRST).first.dispatch_event(
        "click", {"clientX": x, "clientY": y, "pointerType": "touch", "bubbles": True}
    )
    assert page.locator(".tip b").text_content() == f"L{unit // 12 + 1}·H{unit % 12 + 1}"
    assert "head=" in page.evaluate("location.hash")


def test_an_address_chooses_a_head_and_an_unknown_one_chooses_none(opened):
    page = opened("#surface&head=L3H4")
    assert page.locator("#cells [aria-current]").get_attribute("id") == "cell-L3H4"
    assert page.locator("#card").is_hidden()
    page = opened("#surface&head=<img src=x onerror=alert(1)>")
    assert page.locator("#cells [aria-current]").count() == 0


def test_charts_that_answer_pass_axe(opened, axe):
    page = opened("#surface&head=L3H4")
    page.locator(FIRST).first.focus()
    assert faults(page, axe, schemes=["light"], part="#surface") == []
