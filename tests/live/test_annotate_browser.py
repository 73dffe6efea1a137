"""Can an annotator label maps in a real browser, by keys alone, and lose nothing?"""

from dataclasses import replace

import numpy as np
import pytest

from experiments.map_classifier.made import make_drawn, make_map
from headscope.analyses.patterns import CLASSES
from headscope.analyses.patterns.classes import NAMES
from headscope.draw.style import ramp
from headscope.experiments.map_classifier.annotation_session import Session
from headscope.live.annotation import annotation_page, picture
from views.hostile import HOSTILE

CANVAS = """() => {
  const { width, height } = document.getElementById("map");
  const image = document.getElementById("map").getContext("2d").getImageData(0, 0, width, height);
  return [width, height, [...image.data]];
}"""


@pytest.fixture
def opened(watched):
    """Opens the page of a server, when a map is drawn."""

    def start(server, width=1000, height=760, scheme="light", outlives=False):
        # A page that still asks for the next map would complain of the server's end.
        more = {} if outlives else {"closing": server.leaving.append}
        page = watched(
            server.address,
            within=(server.address,),
            width=width,
            height=height,
            color_scheme=scheme,
            **more,
        )
        page.wait_for_selector("body[data-shown]")
        return page

    start.complaints = watched.complaints
    return start


def on(page, number):
    """Returns once this map is drawn."""
    page.wait_for_selector(f"body[data-shown='{number}']")
    return page


def shown(page):
    """[row, column, channel] of the canvas."""
    width, height, data = page.evaluate(CANVAS)
    return np.array(data, np.uint8).reshape(height, width, 4)[..., :3]


def said(page, name):
    return page.locator(f"#{name}").text_content()


# --- labelling --------------------------------------------------------------------------------


def test_keys_1_to_5_label_map_after_map(opened, server):
    page = opened(server)
    for number, one in enumerate(CLASSES):
        on(page, number)
        assert said(page, "name") == f"Map {number} · no label yet"
        page.keyboard.press(one.key)
    on(page, 5)
    assert server.app.session.labels("a") == dict(enumerate(NAMES))
    assert said(page, "progress") == "5 of 6 labelled"
    assert page.locator("#bar").evaluate("bar => [bar.value, bar.max]") == [5, 6]
    assert said(page, "said") == "Map 4: heterogeneous."


def test_a_click_labels_too_and_says_so_on_the_button(opened, server):
    page = opened(server)
    page.get_by_role("button", name="Block").click()
    on(page, 1)
    assert server.app.session.labels("a") == {0: "block"}
    page.keyboard.press("ArrowLeft")
    pressed = on(page, 0).locator("[aria-pressed=true]")
    assert [b.get_attribute("data-name") for b in pressed.all()] == ["block"]


@pytest.mark.parametrize("key", ["u", "Backspace"])
def test_undo_goes_back_to_the_map_and_takes_its_label(opened, server, key):
    page = opened(server)
    for number in range(3):
        on(page, number).keyboard.press("1")
    on(page, 3).keyboard.press(key)
    on(page, 2).keyboard.press(key)
    assert said(on(page, 1), "name") == "Map 1 · no label yet"
    assert said(page, "said") == "The label of map 1 was taken back."
    assert server.app.session.labels("a") == {0: "vertical"}
    page.keyboard.press("4")
    on(page, 2)
    assert server.app.session.labels("a") == {0: "vertical", 1: "block"}


def test_where_there_is_nothing_to_undo_it_says_so(opened, server):
    page = opened(server)
    page.keyboard.press("u")
    page.get_by_text("There is nothing to undo.").wait_for()
    assert not server.app.session.label_file("a").exists()


def test_arrows_look_at_others_and_a_second_look_may_change_the_label(opened, server):
    page = opened(server)
    on(page, 0).keyboard.press("1")
    on(page, 1).keyboard.press("ArrowRight")
    on(page, 2).keyboard.press("ArrowLeft")
    on(page, 1).keyboard.press("ArrowLeft")
    on(page, 0).keyboard.press("ArrowLeft")  # there is none before it
    assert said(page, "name") == "Map 0 · vertical"
    page.keyboard.press("2")
    on(page, 1)  # the next that has none
    assert server.app.session.labels("a") == {0: "diagonal"}


def test_it_goes_on_where_it_was_left(opened, session, annotating):
    with annotating(session) as server:
        page = opened(server)
        on(page, 0).keyboard.press("1")
        on(page, 1).keyboard.press("ArrowRight")
        on(page, 2).keyboard.press("3")
        on(page, 3)
        page.reload()
        assert said(on(page, 1), "progress") == "2 of 6 labelled"
    with annotating(Session(session.folder)) as server:
        page = on(opened(server), 1)
        page.keyboard.press("ArrowLeft")
        assert said(on(page, 0), "name") == "Map 0 · vertical"
        page.get_by_role("button", name="Next without a label").click()
        on(page, 1)


def test_a_second_annotator_starts_anew_and_is_named(opened, session, annotating):
    session.label("a", 0, "block")
    with annotating(session, "Bea") as server:
        page = on(opened(server), 0)
        assert page.locator(".who").text_content() == "annotator Bea"
        assert said(page, "progress") == "0 of 6 labelled"
        page.keyboard.press("5")
        on(page, 1)
    assert session.labels("a") == {0: "block"}
    assert session.labels("Bea") == {0: "heterogeneous"}


def test_after_the_last_map_it_says_that_all_are_labelled(opened, server):
    for number in range(5):
        server.app.session.label("a", number, "block")
    page = on(opened(server), 5)
    page.keyboard.press("2")
    page.get_by_text("Map 5: diagonal. All maps are labelled.").wait_for()
    assert said(page, "progress") == "6 of 6 labelled"
    page.reload()
    page.wait_for_selector("body[data-shown='0']")
    assert said(page, "said") == "All maps are labelled."


# --- what must not label ----------------------------------------------------------------------


def test_a_key_held_down_labels_one_map(opened, server):
    page = opened(server)
    for _ in range(4):  # the browser marks all but the first as repeated
        page.keyboard.down("1")
    page.keyboard.up("1")
    on(page, 1).keyboard.press("u")
    on(page, 0)
    assert server.app.session.label_file("a").read_text() == "0,vertical\n0,undo\n"


def test_keys_of_the_browser_are_left_to_it(opened, server):
    page = opened(server)
    for key in ("Control+1", "Alt+2", "Meta+3", "6", "0", "x", "Enter"):
        page.keyboard.press(key)
    page.keyboard.press("ArrowRight")
    on(page, 1)
    assert server.app.session.labels("a") == {}


def test_a_key_labels_no_map_that_is_not_shown_yet(opened, server):
    page = opened(server)
    held = []

    def hold(route):
        held.append(route)

    page.route("**/label", hold)
    page.route("**/maps/1", hold)
    page.reload()
    on(page, 0)
    with page.expect_request("**/label"):
        page.keyboard.press("1")
    page.keyboard.press("2")  # while the server has not answered
    page.keyboard.press("ArrowRight")
    assert said(page, "name") == "Map 0 · no label yet"
    released(held, "label")
    page.get_by_text("Map 1 · no label yet").wait_for()
    page.keyboard.press("3")  # while map 1 is not here
    released(held, "maps/1")
    on(page, 1).keyboard.press("ArrowLeft")
    assert said(on(page, 0), "name") == "Map 0 · vertical"
    assert server.app.session.label_file("a").read_text() == "0,vertical\n"


def released(held, end):
    """Lets the requests go on that were held back."""
    for route in [route for route in held if route.request.url.endswith(end)]:
        held.remove(route)
        route.continue_()


# --- when something fails ---------------------------------------------------------------------


def test_a_server_that_is_gone_is_told_and_the_map_stays(opened, session, annotating):
    with annotating(session) as server:
        page = opened(server, outlives=True)
        page.keyboard.press("1")
        on(page, 1)
    page.keyboard.press("2")
    alert = page.get_by_role("alert")
    alert.wait_for()
    assert alert.text_content().startswith(
        "Map 1 was not labelled. The server does not answer. All labels up to here are kept"
    )
    assert said(page, "name") == "Map 1 · no label yet"
    assert said(page, "progress") == "1 of 6 labelled"
    assert session.labels("a") == {0: "vertical"}
    assert all("net::ERR_CONNECTION_REFUSED" in text for text in opened.complaints)
    opened.complaints.clear()


def test_a_label_that_could_not_be_kept_can_be_given_again(opened, server, monkeypatch):
    page = opened(server)
    with monkeypatch.context() as patched:
        patched.setattr(server.app.session, "label", fail)
        page.keyboard.press("1")
        page.get_by_role("alert").wait_for()
    assert "No space left" in page.get_by_role("alert").text_content()
    assert "503" in opened.complaints.pop()
    page.keyboard.press("1")
    assert page.get_by_role("alert").count() == 0 or on(page, 1)
    on(page, 1)
    assert page.locator("#failure").is_hidden()
    assert server.app.session.labels("a") == {0: "vertical"}


def fail(*_):
    raise OSError(28, "No space left on device")


# --- what is seen -----------------------------------------------------------------------------


def expected(number, *, dark):
    """[row, column, channel] of a map of the session, worked out with numpy."""
    steps = np.array([list(bytes.fromhex(step[1:])) for step in ramp(dark=dark)])
    places = picture(make_map(number, 10 + number)) / 255 * (len(steps) - 1)
    return np.stack(
        [np.interp(places, np.arange(len(steps)), steps[:, channel]) for channel in range(3)], -1
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_cell_has_the_colour_of_its_root_on_the_pages_ramp(opened, server, scheme):
    page = opened(server, scheme=scheme)
    page.keyboard.press("ArrowRight")
    on(page, 1)
    wanted = expected(1, dark=scheme == "dark")
    np.testing.assert_allclose(shown(page), wanted, atol=0.51)
    assert len(np.unique(wanted.reshape(-1, 3), axis=0)) > 50


def test_the_map_is_redrawn_when_the_system_turns_dark(opened, server):
    page = opened(server, scheme="light")
    page.emulate_media(color_scheme="dark")
    # Pages are told of a change before the next frame.
    page.evaluate("new Promise((told) => requestAnimationFrame(() => requestAnimationFrame(told)))")
    np.testing.assert_allclose(shown(page), expected(0, dark=True), atol=0.51)


@pytest.mark.parametrize("scale", [1, 2])
def test_every_token_gets_the_same_whole_number_of_pixels(browser, server, scale):
    page = browser.new_page(viewport={"width": 1000, "height": 760}, device_scale_factor=scale)
    page.goto(server.address)
    on(page, 0).keyboard.press("ArrowRight")
    on(page, 1)  # of 11 tokens
    side = page.locator("#map").bounding_box()["width"] * scale
    assert side % 11 == 0
    assert side >= 400 * scale
    assert page.locator("#map").evaluate("c => getComputedStyle(c).imageRendering") == "pixelated"
    page.close()


def test_marks_stand_where_the_second_segment_begins(opened, server):
    page = opened(server)  # map 0: 10 tokens, the second segment begins at 4
    chart = page.locator("#map").bounding_box()
    ticks = [tick.bounding_box() for tick in page.locator("#ticks i:not([data-kind])").all()]
    across = [t["x"] + t["width"] / 2 for t in ticks[:2]]
    down = [t["y"] + t["height"] / 2 for t in ticks[2:]]
    assert across == pytest.approx([chart["x"] + 0.4 * chart["width"]] * 2, abs=1)
    assert down == pytest.approx([chart["y"] + 0.4 * chart["height"]] * 2, abs=1)
    assert page.locator("#second").is_visible()
    page.keyboard.press("ArrowRight")
    on(page, 1)
    assert page.locator("#ticks i:not([data-kind])").count() == 0
    assert page.locator("#second").is_hidden()


def test_a_thin_line_of_a_map_larger_than_the_screen_is_not_lost(opened, tmp_path, annotating):
    line = np.eye(450, dtype=np.float16)
    drawn = [replace(one, map=line, boundary=-1) for one in make_drawn(1)]
    with annotating(Session.create(tmp_path / "large", drawn)) as server:
        page = opened(server, width=360)
        pixels = shown(page)
    assert len(pixels) < 400
    darkest = np.array(list(bytes.fromhex(ramp()[-1][1:])))
    assert (pixels[np.arange(len(pixels)), np.arange(len(pixels))] == darkest).all()


def test_nothing_below_the_map_moves_from_map_to_map(opened, server):
    page = opened(server, width=400)
    places = []
    for number in range(4):
        places.append(on(page, number).get_by_role("button", name="Block").bounding_box())
        page.keyboard.press("ArrowRight")
    assert all(place == places[0] for place in places)


# --- for everybody ----------------------------------------------------------------------------


def test_no_name_reaches_the_page_whatever_it_holds(opened, tmp_path, annotating):
    hostile = [
        replace(one, model=name, text=name, document=name, example=name)
        for name, one in zip(HOSTILE, make_drawn(len(HOSTILE)), strict=True)
    ]
    session = Session.create(tmp_path / "hostile", hostile)
    plain = Session.create(tmp_path / "plain", make_drawn(len(HOSTILE)))
    assert annotation_page(session, "a") == annotation_page(plain, "a")
    kept = [row["document"] for row in session.provenance]
    assert kept == [n.encode("utf-8", "backslashreplace").decode() for n in HOSTILE]
    with annotating(session) as server:
        page = opened(server)
        page.keyboard.press("1")
        on(page, 1)
    assert session.labels("a") == {0: "vertical"}


@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (1000, "light")])
def test_the_page_is_accessible_and_fits(opened, server, axe, width, scheme):
    page = opened(server, width=width, scheme=scheme)
    on(page, 0).keyboard.press("3")
    on(page, 1).keyboard.press("ArrowLeft")
    on(page, 0)
    page.evaluate(axe)
    found = page.evaluate("axe.run({ resultTypes: ['violations'] })")
    assert [(v["id"], v["nodes"][0]["html"]) for v in found["violations"]] == []
    assert page.evaluate("document.documentElement.scrollWidth") == width


def test_all_five_classes_stand_on_the_first_screen_of_a_phone(opened, server):
    page = opened(server, width=360, height=780)
    last = page.get_by_role("button", name="Heterogeneous").bounding_box()
    assert last["y"] + last["height"] <= 780


def test_every_button_is_reached_by_tab_and_worked_by_enter(opened, server):
    page = opened(server)
    on(page, 0).keyboard.press("1")
    on(page, 1)
    reached = []
    for _ in range(9):
        page.keyboard.press("Tab")
        reached.append(
            page.evaluate("document.activeElement.id || document.activeElement.dataset.name")
        )
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline == "solid"
        if reached[-1] == "block":
            break
    assert reached == ["back", "on", "vertical", "diagonal", "vertical_diagonal", "block"]
    page.keyboard.press("Enter")
    on(page, 2)
    assert server.app.session.labels("a") == {0: "vertical", 1: "block"}
