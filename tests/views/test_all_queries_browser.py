"""Does the neuron view show of all queries at once whether the same neurons decide?"""

from __future__ import annotations

import re
from functools import partial
from itertools import combinations

import numpy as np
import pytest

from headscope.analyses.neurons.measure_sets import SET, chance
from views.looking import pixels, said
from views.looking_at_neurons import ask, open_head, row
from views.made import make_side
from views.made_detail import make_payload, make_stack, read_block, wrapped

QUERY = 5
SAME = ["[CLS]", "the", "cat", "saw", "the", "dog", "[SEP]", "it", "saw", "the", "cat", "[SEP]"]


@pytest.fixture
def at_head(opened):
    """Opens a page at the neuron view of a head."""
    return partial(open_head, opened)


def with_equal_tokens(**how):
    return wrapped([make_side(SAME, pair=True)], [make_stack([SAME], **how)])


def known_parts(payload, keys=None):
    """[query, neuron] of each query what the neurons add to its key, beyond the mean key's."""
    known = read_block(payload)
    keys = known["weight"].argmax(1) if keys is None else keys
    return 0.25 * known["q"] * (known["k"][keys] - known["k"].mean(0))


def numbers(page):
    text = page.locator("#all-note").text_content()
    return [float(one) for one in re.findall(r"\d\.\d\d", text)]


def overlap(parts):
    sets = [set(np.argsort(-np.abs(one))[:SET].tolist()) for one in parts]
    return np.mean([len(a & b) / len(a | b) for a, b in combinations(sets, 2)])


def chosen(page, query):
    """Waits until a query is chosen."""
    page.locator(f"#neuron-from [aria-selected=true]:nth-child({query + 1})").wait_for(
        timeout=20_000
    )


def point_at(page, query, neuron=0, neurons=16):
    names = page.locator("#all-panel .of-query > span")
    names.nth(query).scroll_into_view_if_needed()
    rows, box = names.count(), page.locator("#all-panel canvas").bounding_box()
    x = box["x"] + (neuron + 0.5) * box["width"] / neurons
    page.mouse.move(x, box["y"] + (query + 0.5) * box["height"] / rows)
    chosen(page, query)


def ends(page):
    lines = page.locator("#all-panel line").all()
    return [float(line.get_attribute("y2")) - 0.5 for line in lines]


def test_the_overlap_of_the_largest_neurons_is_that_of_the_vectors(at_head):
    payload = make_payload()
    page = at_head(payload)
    wanted = [overlap(known_parts(payload)), chance(16)]
    np.testing.assert_allclose(numbers(page), wanted, atol=0.0051)
    assert ends(page) == read_block(payload)["weight"].argmax(1).tolist()
    row(page, 3).click()
    page.select_option("#all-key", "chosen")
    parts = known_parts(payload, np.full(14, 3))
    assert numbers(page)[0] == pytest.approx(overlap(parts), abs=0.0051)
    assert set(ends(page)) == {3}


def with_untrained():
    """A page with an untrained network beside, and that network's page by itself."""
    payload, other = make_payload(), make_payload(scaling=0.25, causal=False)
    blocks = other["stacks"][0]["detail"]["blocks"]
    other["stacks"][0]["detail"]["blocks"] = blocks[1:] + blocks[:1]
    payload["stacks"][0]["detail"]["untrained"] = blocks[1:] + blocks[:1]
    return payload, other


def test_an_untrained_network_stands_beside_row_by_row(at_head):
    payload, other = with_untrained()
    page = at_head(payload)
    page.locator("#all-panel.beside").wait_for()
    known = [overlap(known_parts(one)) for one in (payload, other)]
    assert abs(known[0] - known[1]) > 0.01
    np.testing.assert_allclose(numbers(page), [*known, chance(16)], atol=0.0051)
    own, beside = (
        page.locator(f"#all-panel .strip-of-all{kind} canvas").bounding_box()
        for kind in (":not(.untrained)", ".untrained")
    )
    assert (own["y"], own["height"]) == (beside["y"], beside["height"])
    assert beside["x"] + beside["width"] < own["x"]
    drawn = pixels(page, "#all-panel .untrained canvas")[..., :3].astype(int)
    parts = known_parts(other)
    clear = np.abs(parts) / np.abs(parts).max(1, keepdims=True) > 0.05
    blue = drawn[..., 2] - drawn[..., 0]
    np.testing.assert_array_equal(blue[clear] > 0, parts[clear] > 0)
    page.uncheck("#all-untrained")
    assert page.locator("#all-panel .untrained:visible").count() == 0
    assert len(numbers(page)) == 2


def test_without_an_untrained_network_nothing_is_said_of_one(at_head):
    page = at_head(make_payload())
    assert not page.locator("#all-untrained").is_visible()
    assert "untrained" not in page.locator("#all-note").text_content()


def test_each_row_is_full_of_colour_at_its_largest_neuron(at_head):
    payload = make_payload()
    page = at_head(payload)
    parts = known_parts(payload)
    drawn = pixels(page, "#all-panel canvas")[..., :3].astype(int)
    assert drawn.shape[:2] == parts.shape
    depth = 765 - drawn.sum(-1)
    share = np.abs(parts) / np.abs(parts).max(1, keepdims=True)
    for sign in (1, -1):
        side = parts * sign > 0
        ranked = depth[side][np.argsort(share[side])]
        assert np.all(np.diff(ranked) >= -3)
    clear = share > 0.05
    blue = drawn[..., 2] - drawn[..., 0]
    np.testing.assert_array_equal(blue[clear] > 0, parts[clear] > 0)


def test_pointing_chooses_the_query_until_the_pointer_leaves(at_head):
    payload = make_payload()
    page = at_head(payload)
    ask(page, QUERY)
    tokens = payload["sides"][0]["tokens"]
    point_at(page, 8, neuron=6)
    assert page.locator("#neuron-query").text_content() == tokens[8]
    assert f"‘{tokens[8]}’" in said(page)
    assert "neuron 7:" in said(page)
    assert page.locator("#all-panel .of-query .on").text_content() == tokens[8]
    page.mouse.move(2, 2)
    chosen(page, QUERY)
    assert "neuron 7:" not in said(page)
    point_at(page, 9)
    page.mouse.down()
    page.mouse.up()
    page.mouse.move(2, 2)
    point_at(page, 2)
    page.mouse.move(2, 2)
    chosen(page, 9)  # what was clicked stays


def test_a_chosen_key_stays_while_queries_are_pointed_at(at_head):
    page = at_head(make_payload(causal=True))
    ask(page, 13)
    row(page, 6).click()
    page.select_option("#all-key", "chosen")
    before = numbers(page)
    for query in (10, 3, 12):  # the fourth token does not see the seventh
        point_at(page, query)
        assert numbers(page) == before
    assert [end for end in ends(page) if end >= 0] == [6] * 8


def test_which_of_equal_tokens_is_meant_is_said(at_head):
    page = at_head(with_equal_tokens())
    ask(page, 4)
    row(page, 9).click()
    assert said(page).startswith("L1·H2 ‘the’ (2nd of 3) → ‘the’ (3rd of 3)")
    page.click("#neuron-why")
    title = page.locator("#neuron-question").text_content()
    assert title.startswith("Why does ‘the’ (2nd of 3) give ‘the’ (3rd of 3) ")
    named = page.locator("#all-panel .of-key [data-token='10']")
    assert named.get_attribute("data-which") == "2nd of 2"
    assert page.locator("#all-panel .of-key [data-token='5']").get_attribute("data-which") == ""
    ask(page, 5)
    assert "‘dog’ →" in said(page)


def test_a_rule_stands_between_the_sentences(at_head):
    page = at_head(with_equal_tokens())
    for names in ("#neuron-from > *", "#neuron-table [data-key]", "#all-panel .of-query > *"):
        marked = page.locator(names).evaluate_all(
            "all => all.flatMap((one, at) => one.classList.contains('second') ? [at] : [])"
        )
        assert marked == [7], names
    rule, strip = (
        page.locator(f"#all-panel {one}").bounding_box() for one in (".between", "canvas")
    )
    assert rule["y"] == pytest.approx(strip["y"] + strip["height"] * 7 / 12, abs=1)
