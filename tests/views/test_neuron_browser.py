"""Does the neuron view tell where a weight comes from: the vectors, their product, the softmax?"""

from __future__ import annotations

import re
from functools import partial

import numpy as np
import pytest

from views.looking import pixels, said
from views.looking_at_neurons import ask, colours, column, named, open_head, row, value
from views.made import make_side, packed, softmax
from views.made_detail import make_payload, make_stack, read_block, signed, wrapped

QUERY = 5


@pytest.fixture
def at_head(opened):
    """Opens a page at the neuron view of a head."""
    return partial(open_head, opened)


def test_scores_and_weights_are_those_of_the_vectors(at_head):
    payload = make_payload()
    page = at_head(payload)
    ask(page, QUERY)
    known = read_block(payload)
    np.testing.assert_allclose(
        column(page, "dot"), 0.25 * known["k"] @ known["q"][QUERY], atol=0.0051
    )
    np.testing.assert_allclose(column(page, "weight"), known["weight"][QUERY], atol=0.000051)
    # The vectors are rounded, so the softmax of their scores is near the weights, no more.
    np.testing.assert_allclose(column(page, "weight"), softmax(column(page, "dot")), atol=0.05)


def test_vectors_of_16_bits_give_the_weights_themselves(at_head):
    payload = make_payload(bits=16, bias=True)
    page = at_head(payload)
    ask(page, QUERY)
    known = read_block(payload)
    dot = 0.25 * known["k"] @ known["q"][QUERY]
    np.testing.assert_allclose(column(page, "dot"), dot, atol=0.0051)
    # Two rounded numbers make a score.
    shares = softmax(column(page, "score"))
    np.testing.assert_allclose(column(page, "weight"), shares, atol=0.005)
    page.click("#neuron-why")
    assert "own weight" not in page.locator("#neuron-rounding").text_content()


def test_bias_and_cap_stand_between_the_product_and_the_weight(at_head):
    payload = make_payload(bias=True, softcap=3.0)
    page = at_head(payload)
    ask(page, QUERY)
    known = read_block(payload)
    dot = 0.25 * known["k"] @ known["q"][QUERY]
    capped = 3 * np.tanh(dot / 3)
    for name, wanted in {
        "dot": dot,
        "capped": capped,
        "bias": known["bias"][QUERY],
        "score": capped + known["bias"][QUERY],
        "weight": known["weight"][QUERY],
    }.items():
        np.testing.assert_allclose(column(page, name), wanted, atol=0.0051, err_msg=name)
    np.testing.assert_allclose(column(page, "weight"), softmax(column(page, "score")), atol=0.05)


def point(page, key, place, cell, neurons=16):
    box = row(page, key).locator(f".{cell} canvas").bounding_box()
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + (place + 0.5) * box["width"] / neurons, middle)


@pytest.mark.parametrize("cell", ["k", "qk"])
def test_a_neuron_pointed_at_is_told_with_its_product(at_head, cell):
    payload = make_payload()
    page = at_head(payload)
    ask(page, QUERY)
    known, tokens = read_block(payload), payload["sides"][0]["tokens"]
    for key, neuron in [(0, 0), (3, 7), (9, 15)]:
        point(page, key, neuron, cell)
        q, k = known["q"][QUERY, neuron], known["k"][key, neuron]
        start = f"L1·H2 {named(tokens, QUERY)} → {named(tokens, key)}, neuron {neuron + 1}: "
        assert said(page).startswith(start)
        numbers = [value(text) for text in re.findall(r"−?\d+\.\d+", said(page))]
        np.testing.assert_allclose(numbers, [q, k, q * k, q * k / 4], atol=0.0051)
        assert "÷ 4 =" in said(page)
        for line, vector in (("first", "k"), ("second", "qk")):  # one cursor through both
            mark = page.locator(f"#neuron-table .line.{line}").bounding_box()
            strip = row(page, key).locator(f".{vector} canvas").bounding_box()
            left = strip["x"] + neuron * strip["width"] / 16
            assert mark["x"] == pytest.approx(left, abs=0.6)


def test_colour_tells_sign_and_size(at_head):
    payload = make_payload()
    page = at_head(payload)
    ask(page, QUERY)
    known = read_block(payload)
    vectors = {
        ".query .k canvas": known["q"][QUERY],
        "[data-key='3'] .k canvas": known["k"][3],
        "[data-key='3'] .qk canvas": known["q"][QUERY] * known["k"][3],
    }
    for selector, values in vectors.items():
        shade = colours(page, f"#neuron-table {selector}")
        blue = shade[:, 2] - shade[:, 0]
        clear = np.abs(values) > 0.05 * np.abs(values).max()
        np.testing.assert_array_equal(blue[clear] > 0, values[clear] > 0)
        for sign in (1, -1):
            side = values * sign > 0
            depth = 765 - shade[side].sum(1)
            assert np.all(np.diff(depth[np.argsort(np.abs(values[side]))]) >= -1)


def contributions(known, query, key, seen):
    others = [other for other in seen if other != key]
    return 0.25 * known["q"][query] * (known["k"][key] - known["k"][others].mean(0))


def test_bars_show_what_every_neuron_adds_to_the_chosen_key(at_head):
    payload = make_payload()
    page = at_head(payload)
    ask(page, QUERY)
    row(page, 3).click()
    drawn = pixels(page, "#neuron-profile")
    middle, cell = drawn.shape[0] // 2, drawn.shape[1] / 16
    columns = ((np.arange(16) + 0.4) * cell).astype(int)
    strip = drawn[:, columns].astype(int)
    inked = (strip[..., 3] > 0) & (np.abs(strip[..., 2] - strip[..., 0]) > 60)
    height = inked[: middle - 1].sum(0) - inked[middle + 1 :].sum(0)
    parts = contributions(read_block(payload), QUERY, 3, range(14))
    np.testing.assert_allclose(height / middle, parts / np.abs(parts).max(), atol=0.11)
    assert page.locator("#neuron-remark bdi").text_content() == payload["sides"][0]["tokens"][3]


def told_order(page, key):
    """Neurons in the order in which they stand, as the keyboard meets them."""
    row(page, key).focus()
    page.keyboard.press("Home")
    found = []
    for _ in range(16):
        found.append(int(re.search(r"neuron (\d+):", said(page))[1]) - 1)
        page.keyboard.press("ArrowRight")
    return found


def test_neurons_can_stand_in_the_order_of_what_they_add_to_a_key(at_head):
    payload = make_payload()
    page = at_head(payload)
    ask(page, QUERY)
    assert told_order(page, 3) == list(range(16))
    row(page, 3).click()
    canvases = [".query .k canvas", "[data-key='6'] .k canvas", "[data-key='6'] .qk canvas"]
    before = [colours(page, f"#neuron-table {canvas}") for canvas in canvases]
    page.select_option("#neuron-order", "key")
    order = np.argsort(-contributions(read_block(payload), QUERY, 3, range(14)))
    assert told_order(page, 3) == list(order)
    for canvas, shade in zip(canvases, before, strict=True):
        np.testing.assert_array_equal(colours(page, f"#neuron-table {canvas}"), shade[order])


def test_important_neurons_are_marked_and_can_stand_first(at_head):
    payload = make_payload(importance=True)
    page = at_head(payload, layer=1, head=2)
    order = np.argsort(-np.array(payload["stacks"][0]["detail"]["importance"][1]))
    cell = page.locator(".query .k canvas").bounding_box()["width"] / 16
    marks = page.locator(".query .k .mark").evaluate_all("all => all.map((one) => one.offsetLeft)")
    places = sorted(int(left / cell) for left in marks)
    assert places == sorted(order[:8])
    page.select_option("#neuron-order", "importance")
    row(page, 2).focus()
    assert told_order(page, 2) == list(order)


def test_without_importance_nothing_is_marked_or_offered(at_head):
    page = at_head(make_payload())
    assert page.locator(".mark").count() == 0
    assert page.locator("#neuron-order option").count() == 2


def cells(page, table):
    return [
        [cell.text_content() for cell in line.locator("th, td").all()]
        for line in page.locator(f"#{table} tr").all()
    ]


def test_why_shows_how_scores_become_the_weight(at_head):
    payload = make_payload()
    page = at_head(payload)
    ask(page, QUERY)
    page.click("#neuron-why")
    known, tokens = read_block(payload), payload["sides"][0]["tokens"]
    score = 0.25 * known["k"] @ known["q"][QUERY]
    first, second = np.argsort(-score)[:2]
    power = np.exp(score - score.max())
    _, this, rival, rest, whole = cells(page, "neuron-scores")
    assert [this[0], rival[0], rest[0]] == [tokens[first], tokens[second], "12 others"]
    np.testing.assert_allclose(
        [value(x) for x in this[1:]], [score[first], 1, 1 / power.sum()], atol=0.0051
    )
    wanted = [score[second], power[second], power[second] / power.sum()]
    np.testing.assert_allclose([value(x) for x in rival[1:]], wanted, atol=0.0051)
    assert value(whole[2]) == pytest.approx(power.sum(), abs=0.0001)
    title = page.locator("#neuron-question").text_content()
    weight = known["weight"][QUERY, first]
    assert title == f"Why does {named(tokens, QUERY)} give {named(tokens, first)} {weight:.4f}?"
    told = page.locator("#neuron-told").text_content()
    assert f"Its score, {score[first]:.2f}, is the highest of 14 keys" in told


def test_why_adds_the_neurons_the_cap_and_the_bias_up_to_the_difference(at_head):
    payload = make_payload(bias=True, softcap=3.0)
    page = at_head(payload)
    ask(page, QUERY)
    row(page, 4).click()
    page.click("#neuron-why")
    known = read_block(payload)
    dot = 0.25 * known["k"] @ known["q"][QUERY]
    score = 3 * np.tanh(dot / 3) + known["bias"][QUERY]
    beyond = score[4] - np.delete(score, 4).mean()
    lines = {name: value(number) for name, _, number in cells(page, "neuron-parts")}
    assert lines.pop("together") == pytest.approx(beyond, abs=0.0051)
    assert sum(lines.values()) == pytest.approx(beyond, abs=0.06)  # nine rounded numbers
    parts = contributions(known, QUERY, 4, range(14))
    strongest = np.argsort(-np.abs(parts))[:6]
    assert list(lines)[:6] == [f"neuron {neuron + 1}" for neuron in strongest]
    for neuron in strongest:
        assert lines[f"neuron {neuron + 1}"] == pytest.approx(parts[neuron], abs=0.0051)
    bias = known["bias"][QUERY]
    assert lines["position bias"] == pytest.approx(bias[4] - np.delete(bias, 4).mean(), abs=0.0051)


def test_a_key_below_the_highest_is_told_by_how_much(at_head):
    payload = make_payload()
    page = at_head(payload)
    ask(page, QUERY)
    known, tokens = read_block(payload), payload["sides"][0]["tokens"]
    score = 0.25 * known["k"] @ known["q"][QUERY]
    first, last = int(score.argmax()), int(score.argmin())
    row(page, last).click()
    page.click("#neuron-why")
    told = page.locator("#neuron-told").text_content().replace("−", "-")
    gap = score[first] - score[last]
    assert f"is {gap:.2f} below the highest, {score[first]:.2f} of {named(tokens, first)}" in told


def test_later_keys_are_not_shown_to_a_causal_query(at_head):
    payload = make_payload(causal=True)
    page = at_head(payload)
    ask(page, QUERY)
    known = read_block(payload)
    assert len(column(page, "weight")) == QUERY + 1
    np.testing.assert_allclose(
        column(page, "weight"), known["weight"][QUERY, : QUERY + 1], atol=0.000051
    )
    assert "8 later tokens are not seen" in page.locator("#neuron-note").text_content()
    ask(page, 0)
    page.click("#neuron-why")
    assert "only key that is seen" in page.locator("#neuron-told").text_content()


def test_keys_that_the_model_masks_take_no_part(at_head):
    payload = make_payload(window=4)
    page = at_head(payload)
    ask(page, QUERY)
    assert len(column(page, "weight")) == 7  # three to each side
    np.testing.assert_allclose(column(page, "weight"), softmax(column(page, "dot")), atol=0.05)
    assert "7 keys are masked by the model" in page.locator("#neuron-note").text_content()


@pytest.mark.parametrize("way", ["AA", "AB"])
def test_a_filter_leaves_keys_out_and_says_what_the_rest_adds_up_to(at_head, way):
    payload = make_payload()
    page = at_head(payload)
    ask(page, QUERY)
    page.select_option("#filter", way)
    boundary = payload["sides"][0]["boundary"]
    part = read_block(payload)["weight"][
        QUERY, slice(0, boundary) if way[1] == "A" else slice(boundary, None)
    ]
    np.testing.assert_allclose(column(page, "weight"), part, atol=0.000051)
    note = page.locator("#neuron-note").text_content()
    assert f"their weights add up to {part.sum():.4f}, not to 1" in note


def test_a_query_of_the_other_sentence_is_said_to_be_left_out(at_head):
    page = at_head(make_payload())
    ask(page, QUERY)
    page.select_option("#filter", "BB")
    assert "is not among the sentences shown" in page.locator("#neuron-note").text_content()
    assert "is not among the sentences shown" in said(page)
    assert page.locator("#neuron-table [data-key]:visible").count() == 0


def test_a_window_of_a_longer_text_says_that_weight_is_elsewhere(at_head):
    """As where only a part of the tokens is on the page: rows of the part do not sum to one."""
    payload = make_payload()
    stack, longer = payload["stacks"][0], make_payload(20)
    known = read_block(longer)
    block = longer["stacks"][0]["detail"]["blocks"][0]
    assert block != stack["detail"]["blocks"][0]
    code = np.round(np.sqrt(known["weight"][:14, :14]) * 65535).astype(np.uint16)
    (q_scale, q), (k_scale, k) = signed(known["q"][:14]), signed(known["k"][:14])
    parts = [(code >> 8).astype("u1"), (code & 255).astype("u1"), q_scale, k_scale, q, k]
    stack["detail"]["blocks"][0] = packed(*parts)
    page = at_head(payload)
    ask(page, QUERY)
    given = known["weight"][QUERY, :14].sum()
    assert given < 0.95
    assert f"add up to {given:.4f}: the rest goes" in page.locator("#neuron-note").text_content()
    page.click("#neuron-why")
    _, this, *others, elsewhere, whole = cells(page, "neuron-scores")
    assert elsewhere[0] == "tokens not on this page"
    assert value(elsewhere[-1]) == pytest.approx(1 - given, abs=0.0001)
    powers = [value(line[2]) for line in (this, *others, elsewhere)]
    assert sum(powers) == pytest.approx(value(whole[2]), abs=0.0003)
    assert value(this[-1]) == pytest.approx(known["weight"][QUERY, :14].max(), abs=0.05)


def test_queries_and_keys_may_be_of_two_sides(at_head):
    tokens = [["ein", "Hund", "[SEP]"], ["a", "dog", "runs", "[SEP]"]]
    sides = [make_side(tokens[0], name="encoder"), make_side(tokens[1], name="decoder")]
    payload = wrapped(sides, [make_stack(tokens, queries=1, keys=0, name="cross")])
    page = at_head(payload)
    assert page.locator("#neuron-from [role=option]").all_text_contents() == tokens[1]
    assert page.locator("#neuron-table [data-key] .name").all_text_contents() == tokens[0]
    ask(page, 2)
    np.testing.assert_allclose(
        column(page, "weight"), read_block(payload)["weight"][2], atol=0.000051
    )
