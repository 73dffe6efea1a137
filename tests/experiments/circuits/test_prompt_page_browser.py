"""Does the page of prompts say what was found, and work in a real browser: keys, themes, phone?"""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import headscope as hs
from accessible import NARROW_AND_WIDE, faults
from headscope.core.results import Variable, labelled
from headscope.core.wording import fixed
from headscope.errors import InputError
from headscope.experiments.circuits.prompt_page import PromptView, opening, write_prompts
from headscope.experiments.circuits.prompt_views import FOLLOWED
from headscope.run.store import Run
from recorded import reading
from views.hostile import HOSTILE

TOKENS = ["Then", ",", " Mary", " and", " John", " met", " to"]
LOUD = [*HOSTILE[:40], "\u202eevil", "\ud800", "{{ 7 * 7 }}"]


def made(tokens=TOKENS, *, prompts=2, layers=3, heads=4, items=12, surely=((1, 2),), paths=True):
    """A run of made numbers; of the heads `surely` the first writes the answer, others carry it."""
    rng, n = np.random.default_rng(0), len(tokens)
    over = (prompts, layers, heads)

    def draw(*size):
        return rng.normal(size=size)

    told = np.stack([rng.uniform(size=(prompts, n)), np.ones((prompts, n)), draw(prompts, n)], -1)
    told[:, 0] = np.nan
    source = draw(*over, n)
    values = {
        "token_text": (("prompt", "token"), np.array([tokens] * prompts)),
        "told": (("prompt", "number", "token"), told.swapaxes(1, 2)),
        "outcome_text": (("prompt", "end"), np.array([[tokens[2], tokens[4]]] * prompts)),
        "outcome": (("prompt", "number", "end"), np.abs(draw(prompts, 3, 2))),
        "choices": (("prompt", "end"), np.array([[1, 3]] * prompts)),
        "difference": (("prompt",), draw(prompts)),
        "direct": (("prompt", "layer", "head"), source.sum(-1)),
        "rest": (("prompt", "part"), draw(prompts, 3)),
        "lost": (("prompt", "layer", "head"), draw(*over)),
        "lost_mean": (("prompt", "layer", "head"), draw(*over)),
        "source": (("prompt", "layer", "head", "token"), source),
        "to_answer": (("prompt", "layer", "head", "token"), draw(*over, n)),
        "attention": (("prompt", "layer", "head", "token"), rng.dirichlet(np.ones(n), over)),
    }
    if paths:
        units = np.arange(layers * heads)[-FOLLOWED:]
        above = np.where(units[:, None] // heads < units // heads, 1.0, np.nan)[None, ..., None]
        values |= {
            "followed": (("sender",), units),
            "gap": (("prompt",), np.full(prompts, 2.0)),
            "looked_at": (("prompt", "sender"), rng.integers(0, n, (prompts, len(units)))),
            "writer": (
                ("prompt", "sender", "side", "place"),
                np.broadcast_to(
                    ["token embedding", "L1·H3", "MLP 1", "<b>x</b>", ""],
                    (prompts, len(units), 2, 5),
                ),
            ),
            "wrote": (("prompt", "sender", "side", "place"), draw(prompts, len(units), 2, 5)),
            "path": (
                ("prompt", "sender", "receiver", "via"),
                above * draw(prompts, len(units), len(units), 3),
            ),
        }
    shown = labelled(
        {name: Variable(array, dims, name, "1", "made") for name, (dims, array) in values.items()},
        coords={"via": ("q", "k", "v")},
    ).assign_attrs(prompts="mine.tsv", tidy=0)
    one = np.zeros((layers, heads))
    share, effect, q = one.copy(), one.copy(), one + 1
    for at, place in enumerate(surely):
        share[place], effect[place], q[place] = 0.0 if at else 0.35, 0.3, 0.001
    writes = {"effect_q": (("layer", "head"), q)}
    for name, numbers in (("direct_share", share), ("effect", effect)):
        for end, more in (("", 0.0), ("_ci_low", -0.1), ("_ci_high", 0.1)):
            writes[name + end] = (("layer", "head"), numbers + np.where(numbers, more, 0))
    counts = {
        "prompts": "mine.tsv",
        "prompt_count": prompts,
        "n": items,
        "notes": "few",
        "logits": "",
    }
    attrs = {"model": "a <b>model</b>", "layers": layers, "heads": heads, "documents": 4}
    return xr.DataTree.from_dict(
        {
            "/": xr.Dataset(attrs=attrs),
            "prompts": shown,
            "writes": xr.Dataset(writes, attrs=counts),
        }
    )


@pytest.fixture(scope="module")
def tree():
    return made(surely=((1, 2), (0, 1)))


@pytest.fixture
def opened(watched, tmp_path):
    """Opens the page of a tree, at an address within it, when it is drawn."""

    def start(tree, address="", **options):
        write_prompts(reading(tree, "circuits"), tmp_path)
        place = (tmp_path / "prompts.html").as_uri() + address
        page = watched(place, offline=True, **options)
        page.locator("#tokens tr").first.wait_for()
        return page

    return start


def number(value):
    return fixed(value, 2) if value < 0 else f"+{fixed(value, 2)}"


# --- in words -----------------------------------------------------------------------------------


def test_the_first_line_says_which_heads_write_and_carry_the_answer(tree):
    title, lede, writers = opening(tree)
    assert title == "L2·H3 writes the answer, L1·H2 carries it"
    assert lede == (
        "Of the logit difference between 2 prompts (mine.tsv) and their corrupted ones, L2·H3 "
        "writes 35 % [25, 45]; all heads of the model 35 %. Patched alone, L1·H2 brings back "
        "30 % [20, 40]."
    )
    assert [(one.layer, one.head) for one in writers] == [(1, 2)]


def test_nothing_is_claimed_without_a_sure_head_or_of_few_items():
    title, lede, writers = opening(made(surely=()))
    assert title == "No head writes or carries the answer"
    assert lede.startswith("2 prompts (mine.tsv): of 12 heads, none moves the answer by 5 %")
    assert not writers
    few = opening(made(items=4))
    assert few == ("What heads write to the answer", few[1], [])
    assert "nothing is claimed of any head. Few." in few[1]


def test_a_run_shows_its_page_in_a_notebook_and_says_if_it_has_none(tree, tmp_path):
    shown = hs.view_prompts(Run(tree, {}, None))
    assert len(repr(shown)) < 100
    assert 'title="prompts of a &lt;b&gt;model' in shown._repr_html_().partition(" srcdoc=")[0]
    assert shown.save(tmp_path / "page.html").read_bytes() == shown.page
    bare = Run(xr.DataTree.from_dict({"writes": tree["writes"].to_dataset()}), {}, None)
    with pytest.raises(InputError, match="this run has no prompts head by head; wanted a run of"):
        hs.view_prompts(bare)
    assert write_prompts(reading(bare.tree, "circuits"), tmp_path / "nowhere") == []


def test_eight_prompts_of_twenty_tokens_and_144_heads_take_less_than_a_megabyte():
    large = made([f" word{at}" for at in range(20)], prompts=8, layers=12, heads=12)
    assert len(PromptView(large).page) < 1_000_000


# --- in a browser -------------------------------------------------------------------------------


def test_the_numbers_are_those_of_the_run_and_keys_lead_through_them(opened, tree):
    page, found = opened(tree), tree["prompts"].to_dataset()
    assert page.locator("#head-name").text_content() == "L2·H3"
    page.locator("#cells [aria-current]").focus()
    for key in ("ArrowDown", "ArrowLeft", "Enter"):
        page.keyboard.press(key)
    page.get_by_role("heading", name="L3·H2", exact=True).wait_for()
    says = page.locator("#head-says").text_content()
    direct, lost = (float(found[name][0, 2, 1]) for name in ("direct", "lost"))
    assert says.startswith(
        f"Writes {number(direct)} logits to Mary less John and 2 more; switched off, "
    )
    assert f"{abs(lost):.2f} are {'lost' if lost > 0 else 'gained'}." in says
    written = page.locator("#tokens td:nth-child(6)").all_text_contents()
    assert written == [number(value) for value in found["source"][0, 2, 1].values.tolist()]
    attends = page.locator("#tokens td:nth-child(5)").all_text_contents()
    shares = [float(text.rstrip("\xa0%")) / 100 for text in attends]
    assert shares == pytest.approx(found["attention"][0, 2, 1].values.tolist(), abs=0.006)
    page.select_option("#which", "1")
    page.get_by_label("lost when switched off").check()
    cell = page.locator("#cells a").nth(9).get_attribute("aria-label")
    assert cell == f"L3·H2, {number(float(found['lost'][1, 2, 1]))} logits"
    assert page.evaluate("location.hash") == "#L3H2&prompt=2&shows=lost"


def test_paths_stand_with_the_strongest_first_and_lead_to_the_other_head(opened, tree):
    page, found = opened(tree, "#L2H3"), tree["prompts"].to_dataset()
    into = found["path"][0, :, found["followed"].values.tolist().index(6)]
    strongest = np.nanmax(np.abs(into))
    row = page.locator("#ways section").first.locator("li").first
    assert f"({100 * strongest / 2:.0f}\xa0%)" in row.text_content()
    sender, via = np.argwhere(np.abs(into.values) == strongest)[0]
    name = f"L1·H{int(found['followed'][sender]) + 1}"
    assert row.text_content().startswith(f"{name} → its {('queries', 'keys', 'values')[via]}")
    row.locator("a").click()
    page.get_by_role("heading", name=name, exact=True).wait_for()
    assert page.evaluate("document.activeElement.id") == "head-name"
    page.go_back()
    page.get_by_role("heading", name="L2·H3", exact=True).wait_for()


def test_what_wrote_the_strongest_score_stands_in_order_and_leads_to_its_head(opened, tree):
    page, found = opened(tree, "#L2H3"), tree["prompts"].to_dataset()
    unit = found["followed"].values.tolist().index(6)
    token = TOKENS[int(found["looked_at"][0, unit])].strip()
    page.get_by_role("heading", name=f"Why it looks at “{token}”", exact=True).wait_for()
    for side, name in enumerate(("query at “to”", f"key at “{token}”")):
        part = page.locator("#writers section").nth(side)
        assert part.locator("h4").text_content() == f"What wrote the {name}"
        values = found["wrote"][0, unit, side].values[:4]  # the fifth has no name
        names = ["token embedding", "L1·H3", "MLP 1", "<b>x</b>"]
        wanted = [f"{one}{number(value)}" for one, value in zip(names, values, strict=True)]
        assert part.locator("li").all_text_contents() == wanted
    page.locator("#writers a").first.click()
    page.get_by_role("heading", name="L1·H3", exact=True).wait_for()
    page.locator("#cells a").first.click()  # L1·H1 is not followed
    page.get_by_role("heading", name="L1·H1", exact=True).wait_for()
    assert not page.locator("#why").is_visible()


def test_paths_are_drawn_from_layer_to_layer_and_a_head_in_the_drawing_is_chosen(opened, tree):
    page, found = opened(tree, "#L2H3"), tree["prompts"].to_dataset()
    heads = page.locator("#graph a")
    assert heads.count() == FOLLOWED
    told = heads.nth(4).get_attribute("aria-label")  # units 2 to 11: the fifth is L2·H3
    paths = np.abs(found["path"][0].values) >= 0.005
    into, out = paths[:, 4].sum(), paths[4].sum()
    direct = float(found["direct"][0, 1, 2])
    assert told == f"L2·H3, writes {number(direct)} logits; {into} paths in, {out} out"
    assert page.locator("#graph .own:not(.out)").count() == into + out
    words = page.locator("#graph .own title").all_text_contents()
    assert f"L2·H3 writes {number(direct)} to Mary less John and 2 more" in words
    first = [float(heads.nth(at).locator("text").get_attribute("y")) for at in range(FOLLOWED)]
    assert len(set(first)) == 3  # a row for each layer, the first on top
    assert first == sorted(first)
    heads.nth(9).focus()
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="L3·H4", exact=True).wait_for()
    assert page.evaluate("document.activeElement.dataset.unit") == "11"
    assert page.locator("#graph [aria-current]").get_attribute("data-unit") == "11"


def test_what_is_written_to_one_token_and_what_the_mean_instead_costs(opened, tree):
    page, found = opened(tree, "#L2H3&to=rival&shows=mean"), tree["prompts"].to_dataset()
    rival = (found["to_answer"] - found["source"])[0, 1, 2].values
    written = page.locator("#tokens td:nth-child(6)").all_text_contents()
    assert written == [number(value) for value in rival.tolist()]
    says = page.locator("#head-says").text_content()
    lost = float(found["lost_mean"][0, 1, 2])
    assert f"{number(rival.sum())} logits to John and 2 more, above the mean of all tokens" in says
    assert f"With its mean instead, {abs(lost):.2f} are {'lost' if lost > 0 else 'gained'}." in says
    cell = page.locator("#cells a").nth(6).get_attribute("aria-label")
    assert cell == f"L2·H3, {number(lost)} logits"
    page.select_option("#to", "1")
    page.get_by_text("logits to Mary, above").wait_for()
    assert page.evaluate("location.hash") == "#L2H3&shows=mean&to=answer"


def test_prompts_without_corrupted_ones_have_no_paths_and_old_runs_no_means(opened):
    old = made(paths=False)
    old["prompts"] = old["prompts"].to_dataset().drop_vars(["to_answer", "lost_mean"])
    page = opened(old, "#shows=mean&to=rival")
    assert page.locator("#paths").is_hidden()
    assert page.locator("#mean").count() == 0
    assert page.locator("#to option").count() == 1
    assert "instead" not in page.locator("#head-says").text_content()


def test_hostile_tokens_are_text(opened):
    page = opened(made(LOUD))
    kinds = (
        "() => [...new Set([...document.querySelectorAll('*')].map((one) => one.tagName))].sort()"
    )
    wanted = page.evaluate(kinds)
    assert page.locator("#tokens tr").count() == len(LOUD)
    assert LOUD[0].strip() in page.locator("#tokens th").all_text_contents()
    assert page.locator("h1 b, h1 img, .kicker b").count() == 0
    tame = opened(made([f"t{at}" for at in range(len(LOUD))]))
    assert tame.evaluate(kinds) == wanted


@pytest.mark.parametrize(("width", "scheme"), NARROW_AND_WIDE)
def test_the_page_passes_axe_and_is_no_wider_than_its_window(opened, tree, axe, width, scheme):
    page = opened(tree, "#L2H3&shows=lost", width=width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert faults(page, axe, schemes=[scheme]) == []
