"""Does the page show what the model does, in a real browser: typed, changed, and kept?"""

from __future__ import annotations

import http.client
import json
import socket
import threading
from dataclasses import replace

import numpy as np
import pytest
import torch

import headscope as hs
from commands import PATIENCE
from headscope.live.requests import Changes, ReadRequest
from live.conftest import TOKEN, serving
from live.test_access import Model
from live.test_live_model import WORDS, unfolded
from views.hostile import HOSTILE
from views.looking_at_neurons import named

TEXT = "The cat sat on the mat."
CELLS = "#cells [role=gridcell]"
PICTURES = "[...document.querySelectorAll('#cells canvas')].map((one) => one.toDataURL())"


@pytest.fixture(scope="module")
def of_encoder(encoder):
    with serving(encoder, TEXT) as server:
        yield server


@pytest.fixture(scope="module")
def of_decoder(decoder):
    with serving(decoder, WORDS) as server:
        yield server


def origin(server):
    return f"http://127.0.0.1:{server.port}/{TOKEN}/"


@pytest.fixture
def opened(watched):
    yield from opening(watched)
    # The browser's own words on a text that is refused, and on one that a newer text has replaced
    # before it was answered, as on a slow machine.
    status = "Failed to load resource: the server responded with a status of"
    expected = (f"{status} 422", f"{status} 409")
    watched.complaints[:] = [one for one in watched.complaints if not one.startswith(expected)]


def opening(watched):
    def open_(server, rest="", **more):
        page = watched(server.address + rest, within=(origin(server),), **more)
        page.wait_for_selector("body[data-answers]")
        return page

    yield open_


def typed(page, text, field="#text"):
    """Type a text, and wait for the answer to it."""
    before = int(page.locator("body").get_attribute("data-answers") or 0)
    page.fill(field, text)
    page.wait_for_selector(f"body[data-answers='{before + 1}']")
    return page


def answers_after(page, act):
    before = int(page.locator("body").get_attribute("data-answers"))
    act()
    page.wait_for_selector(f"body[data-answers='{before + 1}']")


def test_the_maps_of_what_is_typed_are_drawn_as_in_the_file_of_a_view(
    opened, of_encoder, tiny, watched, tmp_path
):
    page = typed(opened(of_encoder), "A dog barked at it.")
    live = page.evaluate(PICTURES)
    file = hs.view(tiny, "A dog barked at it.").save(tmp_path / "view.html")
    page = watched(file.as_uri())
    page.wait_for_selector("body[data-drawn]")
    assert live == page.evaluate(PICTURES)
    assert len(set(live)) == 8


def shares(page):
    """[(token, before, after)] of the table, in per cent."""
    rows = page.locator(".told tr").all()
    told = []
    for row in rows:
        before, _, after = row.locator("td").nth(1).inner_text().partition(" → ")
        told.append((row.locator("bdi").inner_text(), before, after))
    return told


def per_cent(value):
    if value >= 0.1:
        return f"{100 * value:.0f} %"
    return f"{100 * value:.1f} %" if value >= 0.001 else "< 0.1 %"


def test_a_head_that_is_switched_off_changes_the_answer_as_the_instrument_says(
    opened, of_decoder, decoder
):
    page = opened(of_decoder)
    assert {after for _, _, after in shares(page)} == {""}
    page.locator(CELLS).nth(6).focus()  # L2·H3
    answers_after(page, lambda: page.keyboard.press("o"))

    def mine(call):
        if call.layer == 1:
            call.attention = call.attention.clone()
            call.attention[:, 2] = 0

    ids = decoder.model.tokenizer(WORDS, return_tensors="pt").input_ids
    wanted = []
    for one in ([], [mine]):
        with torch.inference_mode(), hs.Instrument(decoder.model.network, interventions=one):
            wanted.append(decoder.model.network(input_ids=ids).logits[0, -1].softmax(-1))
    for name, before, after in shares(page):
        number = decoder.model.tokenizer.convert_tokens_to_ids(name.removeprefix("·"))
        assert before == per_cent(float(wanted[0][number]))
        assert after == per_cent(float(wanted[1][number]))
    assert page.locator(CELLS).nth(6).get_attribute("data-way") == "off"
    assert page.evaluate("document.activeElement.getAttribute('role')") == "gridcell"
    assert page.locator("#folded").inner_text() == (
        "Layer 1 stands before the change: no weight moves there."
    )
    answers_after(page, lambda: page.keyboard.press("o"))
    assert {after for _, _, after in shares(page)} == {""}


def test_a_token_of_value_zero_and_an_even_head_hold_together_and_are_taken_back(
    opened, of_decoder, decoder
):
    page = opened(of_decoder)
    answers_after(page, lambda: page.locator("#strips button").nth(2).click())
    page.locator(CELLS).nth(1).focus()
    answers_after(page, lambda: page.keyboard.press("e"))
    both = Changes(even=frozenset({(0, 0, 1)}), zero=frozenset({(0, 2)}))
    (row,) = decoder.read(ReadRequest(WORDS, "", both), lambda: None).outcome["rows"]
    assert [after for *_, after in shares(page)] == [per_cent(one[2]) for one in row["told"]]
    assert page.locator("#changed li").count() == 3
    # In one layer only, which the address keeps.
    answers_after(page, lambda: page.select_option("#zero-layer", label="in layer 2"))
    second = ReadRequest(WORDS, "", replace(both, layer=1))
    (row,) = decoder.read(second, lambda: None).outcome["rows"]
    there = [per_cent(one[2]) for one in row["told"]]
    assert [after for *_, after in shares(page)] == there
    page.reload()
    page.wait_for_selector("body[data-answers]")
    assert [after for *_, after in shares(page)] == there
    assert "zero in layer 2" in page.locator("#changed").inner_text()
    answers_after(page, lambda: page.select_option("#zero-layer", label="in all layers"))
    page.locator("#most button").first.click()
    first = decoder.read(ReadRequest(WORDS, "", both), lambda: None).outcome["most"][0]
    assert page.locator("#which").inner_text() == f"L{first[1] + 1}·H{first[2] + 1}"
    answers_after(page, lambda: page.get_by_text("undo all").click())
    assert page.locator("#changed li").count() == 0


def test_a_link_keeps_the_text_the_changes_and_what_is_looked_at(opened, of_decoder):
    page = opened(of_decoder)
    typed(page, "cat dog tree <b> & é")
    page.locator(CELLS).nth(6).focus()
    answers_after(page, lambda: page.keyboard.press("o"))
    answers_after(page, lambda: page.locator("#strips button").nth(1).click())
    page.click("#tab-matrix")
    page.wait_for_url("**text=cat**")
    link, pictures = page.url, page.evaluate("document.querySelector('#matrix canvas').toDataURL()")
    page.reload()
    page.wait_for_selector("body[data-answers]")
    assert page.url == link
    assert page.input_value("#text") == "cat dog tree <b> & é"
    assert page.locator("#changed li").count() == 3
    assert page.evaluate("document.querySelector('#matrix canvas').toDataURL()") == pictures
    page.goto("about:blank")
    page.goto(of_decoder.address + "#" + link.partition("#")[2])
    page.wait_for_selector("body[data-answers]")
    assert page.url == link


def test_who_has_a_wrong_token_sees_a_page_in_its_own_style(watched, of_decoder):
    page = watched(f"http://127.0.0.1:{of_decoder.port}/wrong/")
    assert page.inner_text("h1") == "This link does not open this server"
    assert page.evaluate("getComputedStyle(document.querySelector('h1')).fontWeight") == "650"
    watched.complaints[:] = [one for one in watched.complaints if "status of 403" not in one]


def test_an_address_made_up_by_somebody_opens_the_page_as_it_is(opened, of_decoder):
    page = opened(of_decoder, "#off=L9H9")
    assert page.locator("#changed li").count() == 0
    page.goto("about:blank")
    page.goto(origin(of_decoder) + "#L9H9&off=L1H1.x&even=<b>&zero=0&in=x&tab=none&measure=secret")
    page.wait_for_selector("body[data-answers]")
    assert page.locator("#changed li").count() == 0
    assert "secret" not in page.content()


def test_hostile_texts_are_text(opened, of_encoder):
    page = opened(of_encoder)
    kinds = "script, style, img, iframe, svg *:not(line), object, base"
    elements = f"document.querySelectorAll('{kinds}').length"
    before = page.evaluate(elements)
    for at in range(0, len(HOSTILE), 12):
        text = " ".join(HOSTILE[at : at + 12])[:180] + f" {at}"
        page.evaluate("document.body.dataset.answers = ''")
        page.fill("#text", text)
        page.wait_for_selector("body:not([data-answers='']), #refused:not([hidden])")
    for view in ("head", "neuron", "matrix", "model"):
        page.click(f"#tab-{view}")
    assert page.evaluate(elements) == before
    assert page.evaluate("window.alert.toString().includes('native')")


def test_what_cannot_be_read_is_told_and_the_last_maps_stay(opened, of_encoder):
    page = opened(of_encoder)
    maps = page.evaluate(PICTURES)
    page.fill("#text", "word " * 80)
    page.wait_for_selector("#refused:not([hidden])")
    assert "found 82 tokens; wanted 64 at most" in page.inner_text("#refused")
    assert page.evaluate(PICTURES) == maps
    typed(page, TEXT)
    assert page.locator("#refused").is_hidden()
    # A link that opens with such a text has no maps, and nothing to press, until there is another.
    page.goto("about:blank")
    page.goto(origin(of_encoder) + "#text=" + "word+" * 80)
    page.wait_for_selector("#refused:not([hidden])")
    assert page.locator("#layer-off").is_hidden()
    assert page.locator("#tab-head").is_hidden()
    page.fill("#text", TEXT)
    page.wait_for_selector("body[data-answers]")
    assert page.locator("#layer-off").is_visible()


def test_on_a_wide_screen_all_four_views_show_what_is_chosen_in_one(opened, of_encoder, encoder):
    page = opened(of_encoder)
    page.wait_for_selector("#neuron-table [data-key]")
    views = ("model", "head", "neuron", "matrix")
    assert all(page.locator(f"#view-{view}").is_visible() for view in views)
    page.locator(CELLS).nth(6).click()  # L2·H3
    (stack,) = encoder.read(ReadRequest(TEXT), lambda: None).shown.stacks
    weights = stack.attention[1, 2]
    page.locator("#map").click(
        position={"x": 1, "y": page.locator("#map").bounding_box()["height"] / 2}
    )
    (row,) = page.locator("#from .kept").all()
    query = page.locator("#from [role=option]").all_inner_texts().index(row.inner_text())
    assert query == len(weights) // 2
    assert page.locator("#neuron-from [aria-selected=true]").inner_text() == row.inner_text()
    assert page.locator("#neuron-table [aria-selected=true]").get_attribute("data-key") == "0"
    shown = page.locator("#neuron-table [data-key] .weight span").all_inner_texts()
    np.testing.assert_allclose([float(one) for one in shown], weights[query], atol=1e-3)
    assert page.locator("#head-name").inner_text() == "L2·H3"
    assert page.inner_text("#export-title") == "Save the matrix view"
    page.set_viewport_size({"width": 800, "height": 800})
    page.wait_for_selector("#view-matrix", state="hidden")
    assert [page.locator(f"#view-{view}").is_visible() for view in views] == [True] + [False] * 3
    assert page.locator("#tab-all").is_hidden()


def test_vectors_that_come_after_their_text_is_gone_are_not_shown(opened, of_encoder):
    """The texts have as many tokens, so that nothing but the numbers would tell."""

    def weights():
        page.wait_for_selector("#neuron-work:not([hidden]) [data-key]")
        return page.locator("#neuron-table [data-key] .weight span").all_inner_texts()

    page = typed(opened(of_encoder, width=800), "A cat ran.")
    page.click("#tab-neuron")
    own = weights()
    page.click("#tab-model")
    typed(page, "The dog sat.")
    held = []
    page.route("**/*", lambda one: held.append(one) if len(held) < 2 else one.continue_())
    with page.expect_request("**/read*"):
        page.fill("#text", "A cat ran.")
    with page.expect_request("**/head*"):  # of the dog, while the cat is read
        page.click("#tab-neuron")
    reading, late = held
    answers_after(page, reading.continue_)
    assert weights() == own
    with page.expect_response("**/head*"):
        late.continue_()
    page.evaluate("new Promise(requestAnimationFrame)")
    assert weights() == own


def test_the_neuron_view_is_there_for_every_head(opened, of_encoder):
    page = opened(of_encoder)
    page.locator(CELLS).nth(7).click()
    page.click("#tab-neuron")
    page.wait_for_selector("#neuron-table [data-key]")
    page.click("#neuron-why")
    assert page.locator("#neuron-answer").is_visible()


@pytest.mark.parametrize("served", ["of_encoder", "of_decoder"])
def test_a_click_on_a_weight_says_what_wrote_the_query_and_the_key(opened, request, served):
    page = opened(request.getfixturevalue(served))
    page.locator(CELLS).nth(5).click()
    page.click("#tab-neuron")
    page.wait_for_selector("#neuron-table [data-key]")
    with page.expect_response("**/score"):
        page.click("#neuron-why")
    page.wait_for_selector("#neuron-writers table")
    titles = page.locator("#neuron-writers h3").all_inner_texts()
    assert [title.partition(" at ")[0] for title in titles] == [
        "What wrote the query",
        "What wrote the key",
    ]
    keys = page.locator("#neuron-table [data-key]")
    with page.expect_response("**/score"):  # one of both was not chosen
        keys.nth(0).click()
        keys.nth(1).click()
    page.wait_for_selector("#neuron-writers table")
    assert "embedding" in page.locator("#neuron-writers").inner_text()


@pytest.mark.parametrize(("width", "panel"), [(1280, "#view-neuron"), (800, "#view-matrix")])
def test_a_click_on_a_weight_of_the_map_answers_at_once_beside_it(
    opened, of_encoder, encoder, width, panel
):
    page = opened(of_encoder, width=width)
    page.locator(CELLS).nth(6).click()  # L2·H3
    if width < 1200:
        page.click("#tab-matrix")
    tokens = page.locator("#rows span bdi").all_inner_texts()
    side = page.locator("#map").bounding_box()["width"] / len(tokens)
    (stack,) = encoder.read(ReadRequest(TEXT), lambda: None).shown.stacks
    weights = stack.attention[1, 2, 3]
    key = int(weights.argmax())
    query, to = named(tokens, 3), named(tokens, key)
    with page.expect_response("**/score"):
        page.locator("#map").click(position={"x": (key + 0.5) * side, "y": 3.5 * side})
    page.wait_for_selector(f"{panel} #neuron-writers table")
    asked = f"Why does {query} give {to} {weights[key]:.4f}?"
    assert page.inner_text("#neuron-question") == asked
    assert page.locator("#neuron-writers h3").all_inner_texts() == [
        f"What wrote the query at {query}",
        f"What wrote the key at {to}",
    ]
    assert page.locator("#neuron-answer").is_visible()
    assert page.locator("#map").is_visible()
    page.locator("#matrix").focus()
    with page.expect_response("**/score"):
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
    assert f"‘{tokens[4]}’" in page.inner_text("#neuron-question")
    page.keyboard.press("Enter")
    assert page.locator("#neuron-answer").is_hidden()


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1280, "light")])
def test_the_page_is_accessible_and_not_wider_than_its_window(
    opened, of_decoder, axe, width, scheme
):
    page = opened(of_decoder, "#off=L2H3&zero=2", width=width, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.evaluate(axe)
    found = page.evaluate("axe.run().then((found) => found.violations)")
    assert [(one["id"], [n["html"] for n in one["nodes"]]) for one in found] == []


# --- without a browser, over real connections ---------------------------------------------------


def asked(server, text, page):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
    headers = {
        "X-Headscope-Page": page,
        "Content-Type": "application/json",
    }
    connection.request("POST", f"/{TOKEN}/read", json.dumps({"text": text}), headers)
    return connection


def test_ten_clients_at_once_get_each_their_own_answer(of_decoder, decoder):
    words = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "river"]
    texts = [f"cat dog {word} two" for word in words]
    waiting = [asked(of_decoder, text, f"page-{at}") for at, text in enumerate(texts)]
    for text, connection in zip(texts, waiting, strict=True):
        response = connection.getresponse()
        assert response.status == 200
        told, _ = unfolded(response.read())
        assert told["data"]["title"] == text
        connection.close()


def test_a_client_that_vanishes_is_not_worked_for_and_the_server_stays():
    model, left = Model(), threading.Event()
    with serving(model, "x") as server:
        leave = server.app.line.leave
        server.app.line.leave = lambda ticket: (leave(ticket), left.set())
        gone = asked(server, "gone", "a")
        assert model.begun.acquire(timeout=PATIENCE)
        gone.sock.shutdown(socket.SHUT_RDWR)
        gone.close()
        assert left.wait(20)
        after = asked(server, "after", "b")
        model.go.set()
        assert json.loads(after.getresponse().read())["found"] == "found after"
        after.close()
    assert model.read_texts == ["gone", "after"]


def test_the_untrained_network_is_asked_for_only_where_it_is_wanted(opened, of_encoder):
    page, bodies = opened(of_encoder), []
    page.on("request", lambda one: bodies.append(one.post_data or ""))
    page.click("#tab-neuron")
    page.locator("#all-note").wait_for()
    assert not page.is_checked("#all-untrained")
    assert not any('"untrained":true' in body for body in bodies)
    page.check("#all-untrained")
    page.locator("#all-panel.beside .untrained canvas").wait_for()
    assert "in an untrained network of this shape by" in page.locator("#all-note").text_content()
    strips = "[...document.querySelectorAll('#all-panel canvas')].map((one) => one.toDataURL())"
    own, untrained = page.evaluate(strips)
    assert own != untrained
    typed(page, "A dog barked at it.")
    page.locator("#all-panel.beside").wait_for()
    assert sum('"untrained":true' in body for body in bodies) == 2
