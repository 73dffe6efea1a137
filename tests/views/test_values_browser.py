"""Are the values that a page shows those of its payload: every stack, measure and level?

What is expected is worked out here from the payload, apart from the page.
"""

from __future__ import annotations

import numpy as np
import pytest

from views.looking import cell, pixels, point_at, said, shown_map, shown_tokens, shown_weights
from views.made import make_payload, make_three, read_back

WORDS = [
    "[CLS]",
    "the",
    "un",
    "##bel",
    "##iev",
    "cat",
    "[SEP]",
    "a",
    "dog",
    "look",
    "##ed",
    ".",
    "[SEP]",
]


def check(page, name):
    page.check(f"input[name={name.split('=')[0]}][value='{name.split('=')[1]}']", force=True)


def by_words(values, side):
    """[word, word] and the words: summed over the key's tokens, averaged over the query's."""
    groups = []
    for token, word in enumerate(side["word"]):
        if word >= 0 and groups and side["word"][groups[-1][0]] == word:
            groups[-1].append(token)
        else:
            groups.append([token])
    summed = np.stack([values[:, keys].sum(1) for keys in groups], 1)  # [token, word]
    return np.stack([summed[queries].mean(0) for queries in groups]), groups


# --- measures -----------------------------------------------------------------------------------


def test_the_weights_beside_the_tokens_are_those_of_the_maps(opened, payload):
    values = read_back(payload)
    page = opened()
    cell(page, 1, 4).click()
    np.testing.assert_allclose(shown_map(page), values[1, 4], atol=0.0051)
    page.locator("#to [role=option]").nth(21).hover()
    np.testing.assert_allclose(shown_weights(page, "from"), values[1, 4, :, 21], atol=0.0051)


@pytest.mark.parametrize("levels", [255, 127.5, 63.75])
def test_codes_of_fewer_levels_are_read(opened, levels):
    given = make_payload(12, 1, 2)
    measure = given["stacks"][0]["measures"][0]
    measure["levels"] = levels
    page = opened(given=given)
    page.click("#tab-head")
    np.testing.assert_allclose(shown_map(page), read_back(given)[0, 0], atol=0.0051)


def test_the_page_adds_no_error_of_its_own_to_exact_weights(opened):
    given = make_payload(12, 2, 4, detail=[(1, 2)])
    exact = read_back(given)[1, 2]
    page = opened(given=given)
    cell(page, 1, 2, 4).click()
    page.click("#tab-matrix")
    for query, key in [(0, 0), (3, 2), (9, 11)]:
        point_at(page, query, key, (12, 12))
        assert float(said(page).rsplit(" ", 1)[1]) == pytest.approx(exact[query, key], abs=6e-6)


def test_weighted_norms_are_worked_out_from_weights_and_norms(opened, payload):
    page = opened()
    cell(page, 1, 4).click()
    check(page, "measure=1")
    expected = read_back(payload, 1)[1, 4]
    np.testing.assert_allclose(shown_map(page), expected, atol=0.00051)
    page.locator("#from [role=option]").nth(9).hover()
    assert "has its largest weighted norm from" in said(page)


def test_a_head_that_did_not_change_differs_by_nothing(opened):
    """Also where its exact weights are on the page, and the other side's are rounded."""
    given = make_payload(12, 1, 2, measures=("difference",), detail=[(0, 1)])
    measures = given["stacks"][0]["measures"]
    measures[1]["data"] = measures[0]["data"]
    page = opened(given=given)
    cell(page, 0, 1, 2).click()
    page.click("#tab-matrix")
    check(page, "measure=2")
    for place in range(0, 12, 3):
        point_at(page, place, (place * 5) % 12, (12, 12))
        assert said(page).endswith(": 0.000")


def test_a_difference_has_signs(opened):
    given = make_payload(14, 2, 4, measures=("difference",))
    expected = read_back(given, 2)[1, 3]
    page = opened(given=given)
    cell(page, 1, 3, 4).click()
    check(page, "measure=2")
    np.testing.assert_allclose(shown_map(page), expected, atol=0.0051)
    tokens = given["sides"][0]["tokens"]
    query = 5
    page.locator("#from [role=option]").nth(query).hover()
    most = int(np.abs(expected[query]).argmax())
    word = "more" if expected[query, most] > 0 else "less"
    size = f"{abs(expected[query, most]):.2f}"
    assert said(page).endswith(
        f"token ‘{tokens[query]}’: to ‘{tokens[most]}’ {size} {word} than attention"
    )


def test_a_difference_is_blue_above_and_orange_below(opened):
    given = make_payload(14, 2, 4, measures=("difference",))
    expected = read_back(given, 2)[1, 3]
    page = opened(given=given)
    cell(page, 1, 3, 4).click()
    check(page, "measure=2")
    page.click("#tab-matrix")
    drawn = pixels(page, "#heat")[..., :3].astype(float)
    large = np.abs(expected) > 0.1 * np.abs(expected).max()
    bluer = drawn[..., 2] - drawn[..., 0]  # [query, key]
    assert large.sum() > 20
    assert (np.sign(bluer[large]) == np.sign(expected[large])).all()
    nothing = np.abs(expected) < 1e-5
    assert (drawn[nothing] > 245).all()
    page.click("#tab-head")
    for query in (int(find(expected)) // 14 for find in (np.argmax, np.argmin)):
        page.select_option("#top", "1")
        page.locator("#from [role=option]").nth(query).hover()
        line = pixels(page, "#lines")
        middle = line[:, line.shape[1] // 2]
        red, _, blue, _ = middle[middle[:, 3].argmax()].astype(int)
        strongest = expected[query][np.abs(expected[query]).argmax()]
        assert (blue > red) == (strongest > 0)


def test_heads_of_a_difference_are_told_apart_by_pattern(opened):
    page = opened(given=make_payload(14, 1, 8, measures=("difference",)))
    page.click("#tab-head")
    check(page, "measure=2")
    marks = page.locator(".chip path").evaluate_all(
        "all => all.map((one) => [getComputedStyle(one).stroke,"
        " one.getAttribute('stroke-dasharray')])"
    )
    assert len({color for color, _ in marks}) == 1
    assert len({dash for _, dash in marks}) == 8


# --- side by side -------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [400, 1280])
def test_two_measures_stand_side_by_side_with_one_selection(opened, payload, width):
    page = opened(width)
    cell(page, 1, 4).click()
    assert page.locator("#figure-beside").is_hidden()
    page.check("#beside")
    page.locator("#from [role=option]").nth(9).hover()
    weights, norms = read_back(payload)[1, 4, 9], read_back(payload, 1)[1, 4, 9]
    np.testing.assert_allclose(shown_weights(page, "to"), weights, atol=0.0051)
    np.testing.assert_allclose(shown_weights(page, "to-beside"), norms, atol=0.00051)
    page.locator("#to-beside [role=option]").nth(3).hover()  # and the other way round
    assert page.locator("#to .pointed").count() == 1
    np.testing.assert_allclose(
        shown_weights(page, "from"), read_back(payload)[1, 4, :, 3], atol=0.0051
    )
    boxes = [page.locator(one).bounding_box() for one in ("#figure", "#figure-beside")]
    stacked = boxes[1]["y"] >= boxes[0]["y"] + boxes[0]["height"]
    assert stacked == (width == 400)


def test_side_by_side_the_matrices_point_at_the_same_cell(opened, payload):
    page = opened()
    cell(page, 1, 4).click()
    page.check("#beside")
    page.click("#tab-matrix")
    point_at(page, 9, 3, (22, 22), "-beside")
    weight, norm = (read_back(payload, measure)[1, 4, 9, 3] for measure in (0, 1))
    assert said(page).endswith(f": {weight:.3f}; weighted norm {norm:.4f}")
    places = page.locator(".point").evaluate_all("all => all.map((one) => one.style.top)")
    assert places[0] == places[1]
    captions = page.locator("#view-matrix .caption").all_text_contents()
    assert captions == ["attention", "weighted norm"]


# --- tokens or words, and special tokens --------------------------------------------------------


@pytest.mark.parametrize("measure", [0, 1, 3])
def test_words_sum_over_keys_and_average_over_queries(opened, measure):
    given = make_payload(tokens=WORDS, layers=2, heads=4, measures=("weighted_norm", "difference"))
    expected, groups = by_words(read_back(given, measure)[1, 2], given["sides"][0])
    page = opened(given=given)
    cell(page, 1, 2, 4).click()
    page.select_option("#measure", str(measure))
    check(page, "level=word")
    assert shown_tokens(page, "from")[2] == "unbeliev"
    assert len(groups) == 10
    np.testing.assert_allclose(shown_map(page), expected, atol=0.0051)


def test_without_words_of_several_tokens_there_is_no_choice_of_level(opened):
    plain = make_payload(tokens=["[CLS]", "the", "cat", "[SEP]"], layers=1, heads=2)
    assert opened(given=plain).locator("#levels").is_hidden()
    unknown = make_payload(tokens=WORDS, layers=1, heads=2)
    unknown["sides"][0]["word"] = [-1] * len(WORDS)
    assert opened(given=unknown).locator("#levels").is_hidden()
    assert (
        opened(given=make_payload(tokens=WORDS, layers=1, heads=2)).locator("#levels").is_visible()
    )


@pytest.mark.parametrize("level", ["token", "word"])
@pytest.mark.parametrize("way", ["removed", "renormalised"])
def test_special_tokens_can_be_removed(opened, way, level):
    given = make_payload(tokens=WORDS, layers=2, heads=4)
    side, values = given["sides"][0], read_back(given)[1, 2]
    kept = ~np.array(side["special"])
    if level == "word":
        values, groups = by_words(values, side)
        kept = np.array([not side["special"][tokens[0]] for tokens in groups])
    expected = values[kept][:, kept]
    if way == "renormalised":
        expected = expected / expected.sum(1, keepdims=True)
    page = opened(given=given)
    cell(page, 1, 2, 4).click()
    if level == "word":
        check(page, "level=word")
    page.select_option("#special", way)
    assert "[SEP]" not in shown_tokens(page, "to")
    found = shown_map(page)
    np.testing.assert_allclose(found, expected, atol=0.0051)
    if way == "renormalised":
        np.testing.assert_allclose(found.sum(1), 1, atol=0.005 * len(found))
        assert "rows are divided by the sum" in page.locator("#note").text_content()
    else:
        assert "not renormalised" in page.locator("#note").text_content()


def test_norms_and_differences_are_not_renormalised(opened):
    given = make_payload(tokens=WORDS, layers=1, heads=2, measures=("weighted_norm", "difference"))
    page = opened(given=given)
    page.click("#tab-head")
    page.select_option("#special", "renormalised")
    for measure in (1, 3):
        page.select_option("#measure", str(measure))
        assert page.locator("#special").input_value() == "removed"
        assert page.locator("#special option[value=renormalised]").is_disabled()
        kept = ~np.array(given["sides"][0]["special"])
        expected = read_back(given, measure)[0, 0][kept][:, kept]
        np.testing.assert_allclose(shown_map(page), expected, atol=0.0051)


def test_dimmed_special_tokens_are_left_aside_in_words(opened, payload):
    side, values = payload["sides"][0], read_back(payload)
    page = opened()
    cell(page, 1, 4).click()
    page.select_option("#special", "dimmed")
    page.locator("#from [role=option]").nth(9).hover()
    plain = np.where(side["special"], -1, values[1, 4, 9])
    most = int(plain.argmax())
    assert f"‘{side['tokens'][most]}’, {plain[most]:.2f} (special tokens aside)" in said(page)


def test_dimming_pales_the_special_tokens_and_nothing_else(opened, payload):
    page = opened()
    cell(page, 1, 4).click()
    page.click("#tab-matrix")
    before = 255.0 - pixels(page, "#heat")[..., 0]
    page.select_option("#special", "dimmed")
    after = 255.0 - pixels(page, "#heat")[..., 0]
    special = np.array(payload["sides"][0]["special"])
    either = special[:, None] | special[None, :]
    np.testing.assert_array_equal(after[~either], before[~either])
    np.testing.assert_allclose(after[either], 0.3 * before[either], atol=1)


def test_what_is_kept_stays_kept_from_tokens_to_words(opened):
    page = opened(given=make_payload(tokens=WORDS, layers=1, heads=2))
    page.click("#tab-head")
    page.locator("#from [role=option]").nth(9).click()
    check(page, "level=word")
    assert page.locator("#from .kept .text").all_text_contents() == ["looked"]
    check(page, "level=token")
    assert page.locator("#from .kept .text").all_text_contents() == ["look"]
    page.locator("#from [role=option]").nth(6).click()
    page.select_option("#special", "removed")
    assert page.locator("#figure .kept").count() == 0


# --- stacks -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("stack", "left", "right"), [(0, 0, 0), (1, 1, 1), (2, 1, 0)])
def test_every_stack_shows_its_own_tokens_and_values(opened, stack, left, right):
    given = make_three()
    page = opened(given=given)
    check(page, f"stack={stack}")
    cell(page, 1, 3, given["stacks"][stack]["heads"]).click()
    assert shown_tokens(page, "from") == given["sides"][left]["tokens"]
    assert shown_tokens(page, "to") == given["sides"][right]["tokens"]
    expected = read_back(given, 0, stack)[1, 3]
    found = shown_map(page)
    hidden = np.isnan(found)
    np.testing.assert_allclose(found[~hidden], expected[~hidden], atol=0.0051)
    later = np.triu(np.ones(found.shape, bool), 1)
    assert (hidden == (later & (stack == 1))).all()


def test_cross_attention_is_folded_by_the_words_of_both_sides(opened):
    given = make_three()
    values = read_back(given, 0, 2)[0, 1]
    # German: <s> die Katze saß unglaub+lich still; English: <s> the cat sat un+bel+iev+ably …
    summed = np.concatenate([values[:, :4], values[:, 4:8].sum(1, keepdims=True), values[:, 8:]], 1)
    expected = np.concatenate([summed[:4], summed[4:6].mean(0, keepdims=True), summed[6:]])
    page = opened(given=given)
    check(page, "stack=2")
    cell(page, 0, 1, 4).click()
    check(page, "level=word")
    assert shown_tokens(page, "from")[4] == "unglaublich"
    np.testing.assert_allclose(shown_map(page), expected, atol=0.0051)
    page.click("#tab-matrix")
    assert pixels(page, "#heat").shape[:2] == expected.shape
    point_at(page, 4, 7, expected.shape)
    assert said(page) == f"L1·H2 ‘unglaublich’ → ‘</s>’: {expected[4, 7]:.3f}"


def test_a_smaller_stack_takes_over_what_it_has_of_the_selection(opened):
    page = opened(given=make_three())
    cell(page, 2, 7, 8).click()
    check(page, "measure=1")
    check(page, "stack=2")
    assert said(page).startswith("L2·H1")
    assert page.locator("input[name=measure]:checked").get_attribute("value") == "1"
    assert page.locator(".chip").count() == 4


def test_later_tokens_are_not_seen_by_a_causal_model(opened):
    page = opened(given=make_payload(12, 2, 12, causal=True))
    cell(page, 0, 4).click()
    assert page.locator("#filter").is_hidden()
    assert (np.isnan(shown_map(page)) == np.triu(np.ones((12, 12), bool), 1)).all()


@pytest.mark.parametrize("way", ["AA", "BB", "AB", "BA"])
def test_a_filter_leaves_only_its_pairs_of_sentences(opened, payload, way):
    values, boundary = read_back(payload)[1, 4], payload["sides"][0]["boundary"]
    page = opened()
    cell(page, 1, 4).click()
    page.select_option("#filter", way)
    second = np.arange(22) >= boundary
    shown = (second == (way[0] == "B"))[:, None] & (second == (way[1] == "B"))[None, :]
    found = shown_map(page)
    assert (~np.isnan(found) == shown).all()
    np.testing.assert_allclose(found[shown], values[shown], atol=0.0051)  # no renormalising
    page.locator("#from [role=option]").nth(boundary + 1 if way[0] == "A" else 2).hover()
    assert "no weight among what is shown" in said(page)
