"""Does the address of a page of views hold what is chosen: opened with it, changed, gone back?"""

from __future__ import annotations

import numpy as np
import pytest

import headscope as hs
from headscope.views.view_page import build_page
from headscope.views.view_page import payload as payload_of
from views.hostile import HOSTILE
from views.looking import cell, said
from views.made import make_payload, make_three

TOOK = "() => location.hash === %r"


@pytest.fixture
def opened(watched, payload, tmp_path):
    """Opens a page of views at an address within it."""

    def start(address="", given=payload):
        place = tmp_path / "view.html"
        place.write_bytes(build_page(given))
        page = watched(place.as_uri() + address, offline=True)
        page.wait_for_selector("body[aria-busy=false]")
        return page

    return start


def chosen(page):
    """What the page shows of the choices that an address can hold."""
    return page.evaluate(
        """() => [document.querySelector("[role=tab][aria-selected=true]").dataset.view,
        document.getElementById("head-name").textContent,
        document.querySelectorAll(".chip[aria-pressed=true]").length,
        document.querySelector("input[name=measure]:checked").value,
        document.getElementById("beside").checked, document.getElementById("special").value,
        document.querySelector("input[name=level]:checked").value]"""
    )


USUAL = ["model", "L1·H1", 1, "0", False, "shown", "token"]


def back_to(page, address):
    page.go_back()
    page.wait_for_function(TOOK % address)
    return chosen(page)


def test_a_page_opens_as_its_address_says(opened, payload):
    page = opened(
        "#L2H5.L2H7&tab=head&measure=weighted_norm&beside=attention&special=dimmed&level=word"
        "&from=10"
    )
    assert chosen(page) == ["head", "L2·H5", 2, "1", True, "dimmed", "word"]
    assert f"‘{payload['sides'][0]['tokens'][9]}’" in said(page)


def test_each_choice_stands_in_the_address_and_back_undoes_it(opened):
    page = opened()
    seen = [(chosen(page), page.evaluate("location.hash"))]
    assert seen == [(USUAL, "")]
    for act in (
        lambda: cell(page, 2, 7).click(),
        lambda: page.click("#tab-matrix"),
        lambda: page.check("input[name=measure][value='1']", force=True),
        lambda: page.check("#beside"),
    ):
        act()
        seen.append((chosen(page), page.evaluate("location.hash")))
    assert [address for _, address in seen[1:]] == [
        "#L3H8&tab=head",
        "#L3H8&tab=matrix",
        "#L3H8&measure=weighted_norm&tab=matrix",
        "#L3H8&measure=weighted_norm&beside=attention&tab=matrix",
    ]
    for state, address in reversed(seen[:-1]):
        assert back_to(page, address) == state
    page.go_forward()
    page.wait_for_function(TOOK % "#L3H8&tab=head")
    assert chosen(page)[:2] == ["head", "L3·H8"]


def test_a_kept_token_is_in_the_address_and_no_step_back(opened):
    page = opened("#L2H5&tab=matrix")
    page.click("#tab-head")
    page.locator("#from [role=option]").nth(3).click()
    page.wait_for_function(TOOK % "#L2H5&tab=head&from=4")
    page.locator("#to [role=option]").nth(2).click()
    page.wait_for_function(TOOK % "#L2H5&tab=head&to=3")
    assert back_to(page, "#L2H5&tab=matrix")[0] == "matrix"


def test_heads_of_another_stack_are_found_among_its_own(opened):
    page = opened("#L2H4&stack=cross&tab=matrix", make_three())
    assert page.locator("#head-name").text_content() == "L2·H4"
    assert page.locator("input[name=stack]:checked").get_attribute("value") == "2"
    page = opened("#L3H8&stack=cross&tab=matrix", make_three())  # the encoder has it
    assert page.locator("#head-name").text_content() == "L1·H1"


@pytest.mark.parametrize(
    "address",
    [
        "#L0H1",
        "#L4H1",
        "#L1H13",
        "#L1H1.L2H1",
        "#L1H1.",
        "#L01H1",
        "#%4c1H2",
        "#&tab=none&measure=rollout&beside=x&level=page&special=renormalized&filter=CC&stack=cross",
        "#&from=0&to=-1",
        "#&from=1e1",
        "#&from=99999999",
        "#&tab",
        "#tab=%E0%A4%A",
        "#&&&==&=",
    ],
)
def test_an_unknown_word_counts_as_absent(opened, address):
    page = opened(address)
    assert chosen(page) == USUAL
    assert page.evaluate("location.hash") == ""


def test_no_hostile_address_is_run_or_shown(opened):
    """Dialogs, requests and errors of the script are complained of by the page itself."""
    page = opened()
    before = page.locator("body").evaluate("body => body.querySelectorAll('*').length")
    after = page.evaluate(
        """async (words) => {
          for (const word of words) {
            for (const hash of [`#${word}`, ...["tab", "measure", "stack", "from", "special"]
                .map((name) => `#&${name}=${encodeURIComponent(word.toWellFormed())}`)]) {
              location.hash = hash;
              await new Promise((done) => addEventListener("hashchange", done, { once: true }));
            }
          }
          return document.body.querySelectorAll("*").length;
        }""",
        ["a", *HOSTILE[:40:4], "__proto__", "constructor", "toString"],
    )
    assert after == before
    assert chosen(page) == USUAL


def test_an_address_changed_by_hand_is_followed(opened):
    page = opened("#L2H5&tab=matrix")
    page.evaluate("location.hash = 'L3H1&tab=head'")
    page.wait_for_function("document.getElementById('head-name').textContent === 'L3·H1'")
    assert chosen(page)[0] == "head"


def test_where_all_tokens_are_special_an_address_removes_none(opened):
    given = make_payload(tokens=["[CLS]", "[SEP]"], layers=1, heads=2)
    page = opened("#&special=removed", given)
    assert page.locator("#special").evaluate("one => one.value") == "shown"


def test_a_page_in_a_frame_leaves_the_address_alone(browser, payload):
    page = browser.new_page()
    frame = build_page(payload).decode("utf-8").replace("&", "&amp;").replace('"', "&quot;")
    page.set_content(f'<iframe sandbox="allow-scripts" srcdoc="{frame}" width="900"></iframe>')
    inside, before = page.frame_locator("iframe"), page.evaluate("history.length")
    inside.locator("#tab-matrix").click()
    inside.locator("#tab-matrix[aria-selected=true]").wait_for()
    assert page.evaluate("[location.href, history.length]") == ["about:blank", before]
    page.close()


def test_a_sink_is_removed_with_the_special_tokens_and_the_menu_names_it(opened):
    words = ["the", "cat", "sat", "on", "a", "mat"]
    maps = np.zeros((1, 2, 6, 6))
    maps[..., 0] = 0.9
    maps[..., 0, 0] = 1
    for query in range(1, 6):
        maps[..., query, query] = 0.1
    page = opened("#&tab=head&special=removed", payload_of(hs.view_arrays(words, maps).shown))
    assert "sink" in page.locator("label:has(#special)").inner_text()
    assert page.locator("#from [role=option]").all_inner_texts() == words[1:]
    assert "the first token as a sink, are removed" in page.locator("#note").inner_text()
