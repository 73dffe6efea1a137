"""Is a saved figure true to what the page shows: every line, cell and number, as SVG and PNG?"""

from __future__ import annotations

import io
import re
from html import escape
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from headscope.draw.style import LIGHT
from headscope.views.view_page import build_page
from views import made_detail
from views.hostile import HOSTILE
from views.made import make_payload, make_three, read_back
from views.saved_figure import (
    SVG,
    cell_frame,
    check_strip,
    drawn,
    drawn_of_kept,
    expected_lines,
    groups,
    hex_parts,
    matrix_colours,
    picture_of,
    shade,
    signed_shade,
    texts,
    thumbnail,
    tokens,
)

LAYERS, HEADS = 3, 12
VIEWS = ("model", "head", "matrix", "neuron")
STEP = 3  # tones at most from one shade to the next: a value may lie between two


@pytest.fixture(scope="module")
def payload():
    return make_payload(22, LAYERS, HEADS, measures=("difference",))


@pytest.fixture
def opened(watched, payload, tmp_path):
    """Opens a page, or one in a frame of it, when it is drawn."""

    def start(given=payload, scheme="light", view=None, frame=False):
        text = build_page(given).decode()
        place = tmp_path / "view.html"
        if frame:
            sandbox = 'sandbox="allow-scripts allow-downloads"'
            text = f'<iframe {sandbox} srcdoc="{escape(text)}" width=1200 height=700></iframe>'
        place.write_text(text, encoding="utf-8")
        own = ("blob:", "about:")
        page = watched(place.as_uri(), within=own, color_scheme=scheme, offline=True)
        inside = page.frames[1] if frame else page
        inside.locator("body[data-drawn]").wait_for(state="attached")
        if view:
            inside.click(f"#tab-{view}")
        return inside

    return start


def save(page, kind):
    """(name, bytes) of what a click on the button gives."""
    outer = getattr(page, "page", page)
    with outer.expect_download() as waiting:
        page.click(f"#save-{kind}")
    return waiting.value.suggested_filename, waiting.value.path().read_bytes()


def saved(page):
    """The root of the saved SVG, which is well formed, safe, and all text as text."""
    _, raw = save(page, "svg")
    root = ElementTree.fromstring(raw)
    for one in root.iter():
        name = one.tag.removeprefix(SVG)
        assert name in {"svg", "title", "desc", "g", "rect", "path", "text", "image"}
        for attribute, value in one.attrib.items():
            assert not attribute.startswith("on")
            if attribute == "href":
                assert value.startswith("data:image/png;base64,")
            assert "url(" not in value
    return root


def choose(page, layer, heads):
    page.locator("#cells [role=gridcell]").nth(layer * HEADS + heads[0]).click()
    for head in heads[1:]:
        page.locator(f".chip[data-head='{head}']").click()


# --- lines ------------------------------------------------------------------------------------


def test_every_line_of_a_head_has_the_opacity_of_its_weight(opened, payload):
    page = opened()
    choose(page, 1, [4])
    root = saved(page)
    found, colours = drawn(root, "L2·H5")
    np.testing.assert_allclose(found, expected_lines(read_back(payload)[1, 4]), atol=1e-4)
    assert colours == {LIGHT["purple"]}
    assert tokens(root, "query")[0] == tokens(root, "key")[0] == payload["sides"][0]["tokens"]


def test_several_heads_keep_their_colours_and_their_patterns(opened, payload):
    page = opened()
    choose(page, 1, [0, 1, 9])
    root = saved(page)
    for head, hue in ((0, "blue"), (1, "vermillion"), (9, "vermillion")):
        found, colours = drawn(root, f"L2·H{head + 1}")
        np.testing.assert_allclose(found, expected_lines(read_back(payload)[1, head]), atol=1e-4)
        assert colours == {LIGHT[hue]}
    dashes = [groups(root, f"lines L2·H{head}")[0][0].get("stroke-dasharray") for head in (2, 10)]
    assert dashes == [None, "7 3"]
    assert any(text.startswith("L2·H10") for text in texts(root))


def test_the_lines_that_the_page_leaves_out_are_not_saved(opened, payload):
    page = opened()
    choose(page, 1, [4])
    page.select_option("#top", "2")
    page.select_option("#filter", "AB")
    found, _ = drawn(saved(page), "L2·H5")
    values, boundary = read_back(payload)[1, 4].copy(), payload["sides"][0]["boundary"]
    values[boundary:] = values[:, :boundary] = 0
    keep = np.argsort(-values, axis=1, kind="stable")[:, :2]
    wanted = np.zeros_like(values)
    np.put_along_axis(wanted, keep, np.take_along_axis(values, keep, 1), 1)
    np.testing.assert_allclose(found, expected_lines(wanted), atol=1e-4)


def test_a_token_that_is_kept_is_saved_with_its_lines_and_the_numbers(opened, payload):
    page = opened()
    choose(page, 1, [4])
    page.locator("#from [role=option]").nth(9).click()
    root = saved(page)
    found, _ = drawn_of_kept(root, 9)
    values = read_back(payload)[1, 4, 9]
    np.testing.assert_allclose(found, expected_lines(values), atol=1e-4)
    shown, _ = tokens(root, "key")
    numbers = [float(text) for text in shown if re.fullmatch(r"\d\.\d\d", text)]
    np.testing.assert_allclose(numbers, values, atol=0.0051)
    assert "Only the lines of" in root.find(f"{SVG}desc").text


def test_words_and_rows_that_were_renormalised_are_saved_as_such(opened, payload):
    page = opened()
    choose(page, 2, [3])
    page.select_option("#special", "renormalised")
    page.check("input[name=level][value=word]", force=True)
    found, _ = drawn(saved(page), "L3·H4")
    side, values = payload["sides"][0], read_back(payload)[2, 3]
    words = [w for w in dict.fromkeys(side["word"]) if w >= 0]
    members = np.array([[w == one for one in side["word"]] for w in words], float)
    folded = members / members.sum(1, keepdims=True) @ values @ members.T
    folded /= folded.sum(1, keepdims=True)
    np.testing.assert_allclose(found, expected_lines(folded), atol=1e-4)


def test_signed_lines_are_blue_above_and_vermillion_below(opened, payload):
    page = opened()
    choose(page, 1, [4])
    page.check("input[name=measure][value='2']", force=True)
    root = saved(page)
    values = read_back(payload, 2)[1, 4]
    top = payload["stacks"][0]["measures"][2]["scale"]
    found, colours = drawn(root, "L2·H5")
    np.testing.assert_allclose(found, expected_lines(np.abs(values) / top), atol=1e-4)
    assert colours == {LIGHT["blue"], LIGHT["vermillion"]}
    (group,) = groups(root, "lines L2·H5")
    above = sum(line.get("stroke") == LIGHT["blue"] for line in group)
    assert above == int((values / top >= 1 / 400).sum())


# --- maps -------------------------------------------------------------------------------------


def test_every_cell_of_a_matrix_has_the_colour_of_its_weight(opened, payload):
    page = opened()
    choose(page, 1, [4])
    page.click("#tab-matrix")
    values = read_back(payload)[1, 4]
    found = matrix_colours(saved(page), values.shape)
    np.testing.assert_allclose(found, shade(values, values.max()), atol=STEP)


def test_what_is_dimmed_or_not_among_the_sentences_shown_is_so_in_the_figure(opened, payload):
    page = opened()
    choose(page, 1, [4])
    page.click("#tab-matrix")
    page.select_option("#special", "dimmed")
    page.select_option("#filter", "AB")
    values, side = read_back(payload)[1, 4], payload["sides"][0]
    wanted, special = shade(values, values.max()), np.array(side["special"])
    aside = special[:, None] | special[None]
    wanted[aside] = 255 + 0.3 * (wanted[aside] - 255)
    second = np.arange(22) >= side["boundary"]
    wanted[second[:, None] | ~second[None]] = 255 + 0.35 * (hex_parts(LIGHT["rule"]) - 255)
    np.testing.assert_allclose(matrix_colours(saved(page), values.shape), wanted, atol=STEP)


def test_measures_side_by_side_are_saved_side_by_side(opened, payload):
    page = opened()
    choose(page, 1, [4])
    page.click("#tab-matrix")
    page.check("#beside")
    page.select_option("#second", "2")
    root = saved(page)
    values, differences = read_back(payload)[1, 4], read_back(payload, 2)[1, 4]
    np.testing.assert_allclose(
        matrix_colours(root, values.shape, 0), shade(values, values.max()), atol=STEP
    )
    top = np.abs(differences).max()
    np.testing.assert_allclose(
        matrix_colours(root, values.shape, 1), signed_shade(differences, top), atol=STEP
    )
    assert {"attention", "difference"} <= set(texts(root))


def test_the_model_view_is_saved_with_the_map_of_every_head(opened, payload):
    root = saved(opened())
    values = read_back(payload)
    for layer in range(LAYERS):
        for head in range(HEADS):
            (group,) = groups(root, f"head L{layer + 1}·H{head + 1}")
            one = values[layer, head]
            x, y, wide = cell_frame(group)
            found = thumbnail(group, one.shape, (x, y), wide)
            np.testing.assert_allclose(found, shade(one, one.max()), atol=STEP)


def test_a_large_map_is_saved_as_a_picture_with_a_dot_for_every_cell(opened):
    given = make_payload(160, 1, 1)
    page = opened(given, view="matrix")
    root = saved(page)
    values = read_back(given)[0, 0]
    (one, *_) = root.iter(f"{SVG}image")
    np.testing.assert_allclose(picture_of(one), shade(values, values.max()), atol=STEP)
    assert len(tokens(root, "query")[0]) == 160


def test_cross_attention_is_saved_with_the_tokens_of_both_sides(opened):
    given = make_three()
    page = opened(given)
    page.check("input[name=stack][value='2']", force=True)
    page.click("#tab-matrix")
    root = saved(page)
    values = read_back(given, 0, 2)[0, 0]
    assert values.shape == (7, 11)
    np.testing.assert_allclose(
        matrix_colours(root, values.shape), shade(values, values.max()), atol=STEP
    )
    sides = [side["tokens"] for side in given["sides"]]
    assert tokens(root, "query")[0] == sides[1]
    assert tokens(root, "key")[0] == sides[0]
    assert "Cross" in root.find(f"{SVG}title").text


# --- neurons ----------------------------------------------------------------------------------


def test_the_neuron_view_is_saved_with_its_vectors_and_numbers(opened):
    given = made_detail.make_payload(
        12, layers=2, heads=4, detailed=[(0, 0)], bias=True, softcap=20
    )
    page = opened(given, view="neuron")
    page.locator("#neuron-from [role=option]").nth(5).click()
    root = saved(page)
    block = made_detail.read_block(given)
    rows = groups(root, "row")
    assert len(rows) == 12
    dot = given["stacks"][0]["detail"]["scaling"][0] * block["k"] @ block["q"][5]
    capped = 20 * np.tanh(dot / 20)
    wanted = [dot, capped, block["bias"][5], capped + block["bias"][5]]
    for key, row in enumerate(rows):
        name, *numbers = texts(row)
        assert name == given["sides"][0]["tokens"][key]
        found = [float(number.replace("−", "-")) for number in numbers]
        np.testing.assert_allclose(found[:4], [one[key] for one in wanted], atol=0.00501)
        assert found[4] == pytest.approx(block["weight"][5, key], abs=0.000051)
        products = block["q"][5] * block["k"][key]
        for values, strip in ((block["k"][key], 0), (products, 1)):
            check_strip(groups(row, "cells")[strip], values)


def test_where_there_are_no_vectors_nothing_is_saved_and_that_is_said(opened):
    page = opened(view="neuron")
    page.click("#save-svg")
    assert "nothing to save" in page.locator("#saved").text_content()


# --- the files --------------------------------------------------------------------------------


def neural(n=12, **options):
    return made_detail.make_payload(n, layers=2, heads=4, detailed=[(0, 0)], **options)


def test_a_png_is_the_svg_at_three_dots_a_unit(opened):
    page = opened(neural(12))
    for view in VIEWS:
        page.click(f"#tab-{view}")
        name, raw = save(page, "png")
        check_dots(Image.open(io.BytesIO(raw)).convert("RGB"), saved(page))
        assert name.endswith(f"{view}-L1H1{'' if view == 'neuron' else '-attention'}.png") or (
            view == "model" and name == "made-model-attention.png"
        )


def check_dots(picture, root):
    size = [float(root.get(side)) * 3 for side in ("width", "height")]
    np.testing.assert_allclose(picture.size, size, atol=1)
    dots = np.asarray(picture)
    assert (dots[0] == 255).all()
    assert (dots[:, 0] == 255).all()
    assert 0.005 < (dots < 200).any(-1).mean() < 0.6
    for cells in groups(root, "cells"):
        for box in list(cells)[::7]:
            x, y, width, height = (float(box.get(n)) * 3 for n in ("x", "y", "width", "height"))
            dot = dots[int(y + height / 3), int(x + width / 3)]
            np.testing.assert_allclose(dot, hex_parts(box.get("fill")), atol=60)


def test_a_figure_is_light_whatever_the_page_is(opened):
    pages = [opened(neural(12), scheme) for scheme in ("light", "dark")]
    for view in VIEWS:
        for page in pages:
            page.click(f"#tab-{view}")
        light, dark = (save(page, "svg")[1] for page in pages)
        assert light == dark
        assert b'fill="#ffffff"' in light


def test_hostile_tokens_are_text_in_every_figure(opened):
    given = {**neural(tokens=HOSTILE), "title": "".join(HOSTILE)}
    given["model"]["name"] = "../</title>\x00"
    page = opened(given)
    for view in VIEWS:
        page.click(f"#tab-{view}")
        root = saved(page)
        if view != "model":
            assert {"]]>", "<!--", "∅", "</svg>"} <= set(texts(root))
        if view in ("head", "matrix"):
            assert len(tokens(root, "query")[0]) == len(tokens(root, "key")[0]) == len(HOSTILE)
        name, raw = save(page, "png")
        assert re.fullmatch(r"[A-Za-z0-9-]+\.png", name)
        assert Image.open(io.BytesIO(raw)).size[0] > 300


def test_a_figure_says_what_it_shows(opened):
    page = opened()
    choose(page, 1, [4])
    root = saved(page)
    title, about = (root.find(SVG + name).text for name in ("title", "desc"))
    assert title == "L2·H5 of bert-made: attention, 22 tokens of “The cat sat”."
    assert about.startswith(title)
    caption = " ".join(text for one in groups(root, "caption") for text in texts(one))
    assert caption == about
    assert root.get("aria-labelledby") == "title about"
    assert root.get("font-family").endswith("sans-serif")


def test_a_notebook_gives_figures_out_of_its_frame(opened):
    frame = opened(frame=True)
    for kind, start in (("svg", b"<?xml"), ("png", b"\x89PNG")):
        name, raw = save(frame, kind)
        assert name == f"bert-made-model-attention.{kind}"
        assert raw.startswith(start)


def test_the_buttons_are_named_and_work_from_the_keyboard(opened):
    page = opened(view="head")
    page.focus("#save-svg")
    with page.expect_download() as waiting:
        page.keyboard.press("Enter")
    name = waiting.value.suggested_filename
    assert name == "bert-made-head-L1H1-attention.svg"
    assert page.locator("#saved").text_content() == f"Saved {name}"
    assert page.get_by_role("button", name="Save figure as PNG").is_visible()
    assert page.get_by_role("group", name="Save figure").is_visible()
