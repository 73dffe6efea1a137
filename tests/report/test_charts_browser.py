"""Does every mark that is a head answer, and is a chosen head marked in all charts?"""

from __future__ import annotations

import re

import pytest

from accessible import faults
from headscope.report.build import render
from recorded import manifest_of, recorded

GROUPS = ("surface", "entropy", "divergence", "dependency", "patterns")
FIRST = "#surface .plot svg.answers"


@pytest.fixture(scope="module")
def tree():
    return recorded(groups=GROUPS)


@pytest.fixture(scope="module")
def report(tree, tmp_path_factory):
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
          const words = series.t.split("\\n")[at];
          return [m.e + m.a * series.x[at], m.f + m.d * series.y[at], unit, words];
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
    marked = charts.evaluate_all(
        """all => all
          .filter((one) => JSON.parse(one.dataset.heads).some(({ u }) => !u || u.includes(14)))
          .map((one) => one.querySelector(".chosen-mark").getAttribute("d"))"""
    )
    assert len(marked) >= 5
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


def pair_of(page, row, column):
    """Where a cell of the matrix of clusters is on the screen, its two heads and its words."""
    return page.evaluate(
        """([row, column]) => {
          const svg = document.querySelector("#clusters svg.answers"), m = svg.getScreenCTM();
          const [{ x, y, u, t }] = JSON.parse(svg.dataset.heads);
          const words = t.split("\\n")[(row * (row - 1)) / 2 + column];
          return [m.e + m.a * x[column], m.f + m.d * y[row], u[row], u[column], words];
        }""",
        [row, column],
    )


def short(unit):
    return f"L{unit // 12 + 1}H{unit % 12 + 1}"


def test_a_cell_of_the_cluster_matrix_tells_both_heads_and_how_far_apart_they_are(opened, tree):
    page = opened("#clusters")
    x, y, own, other, _ = pair_of(page, 40, 12)
    page.mouse.move(x, y)
    told = page.locator(".tip").text_content().replace("·", "")
    assert told.startswith(f"{short(own)} and {short(other)} ")
    apart = float(re.search(r"\(nats\): ([\d.]+)", told)[1])
    js = tree["divergence"]["js"].transpose("unit", "unit_other").values
    assert apart == pytest.approx(js[own, other], abs=0.006)
    page.mouse.click(x, y)
    assert page.evaluate("location.hash") == f"#clusters&head={short(own)}.{short(other)}"
    current = page.locator("#cells [aria-current]").evaluate_all("all => all.map((one) => one.id)")
    assert sorted(current) == sorted(f"cell-{short(one)}" for one in (own, other))
    assert page.locator("#heads tr.chosen").count() == 2
    page.mouse.move(2, 2)
    page.keyboard.press("Escape")
    page.mouse.click(x, y)  # again: none
    assert page.evaluate("location.hash") == "#clusters"


def test_keys_go_through_the_cluster_matrix_and_an_address_opens_a_pair(opened):
    page = opened("#clusters")
    *_, own, other, _ = pair_of(page, 40, 12)
    page = opened(f"#clusters&head={short(own)}.{short(other)}")
    assert page.locator("#cells [aria-current]").count() == 2
    page.locator("#clusters svg.answers").focus()
    for key, (row, column) in {
        "Home": (40, 0),
        "ArrowRight": (40, 1),
        "ArrowDown": (41, 1),
        "End": (41, 40),
    }.items():
        if key == "Home":  # from any cell of the row
            x, y, *_ = pair_of(page, 40, 12)
            page.mouse.move(x, y)
        page.keyboard.press(key)
        *_, own, other, words = pair_of(page, row, column)
        told = page.locator(".tip").text_content().replace("·", "")
        assert told.startswith(f"{short(own)} and {short(other)} ")
        assert told.endswith(words)


def test_marks_of_all_charts_have_intervals_where_the_results_do(opened):
    """Values that no replicate gives an interval for are few, and named here."""
    page = opened()
    without = page.locator("svg[data-heads]").evaluate_all(
        """all => all.filter((svg) => !svg.dataset.heads.includes(" ["))
          .map((svg) => svg.closest("section[id], details[id]").id)"""
    )
    assert set(without) <= {"cluster-number", "map"}


def test_charts_that_answer_pass_axe(opened, axe):
    page = opened("#surface&head=L3H4")
    page.locator(FIRST).first.focus()
    assert faults(page, axe, schemes=["light"], part="#surface") == []
