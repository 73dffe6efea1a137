"""Is a page safe and open to everybody: hostile strings are only text, and axe finds no fault?"""

from __future__ import annotations

import json
from xml.etree import ElementTree

import numpy as np
import pytest

import headscope as hs
from headscope.views.view_page import payload
from views.hostile import HOSTILE
from views.made import make_three

VIEWS = ("model", "head", "neuron", "matrix")
TOKENS = ("[CLS]", *HOSTILE, "[SEP]")
TAME = ("[CLS]", *(f"token{place}" for place in range(len(HOSTILE))), "[SEP]")
FEW = ("[CLS]", "a", "small", "##er", "text", "[SEP]")
LISTS = {"head": "#from [role=option]", "neuron": "#neuron-from [role=option]",
         "matrix": "#rows > *, #columns > *"}  # fmt: skip
IN_A_FIGURE = {"svg", "title", "desc", "g", "rect", "path", "line", "text", "tspan", "image"}

# Tag and attributes of every element; not of those that say how large or long something is.
ELEMENTS = """() => {
  const sizes = ["class", "hidden", "style", "title"];
  const names = (one) => [...one.attributes].map((each) => each.name).sort();
  return [...document.querySelectorAll("*")].map((one) =>
    [one.tagName, ...names(one).filter((name) => !sizes.includes(name))].join(" "));
}"""
# Every entry of a list gets an event; all kinds of elements that there ever were.
STRUCK = f"""([list, event]) => {{
  const kinds = new Set();
  for (const one of document.querySelectorAll(list)) {{
    one.dispatchEvent(new PointerEvent(event, {{ bubbles: event === "click" }}));
    for (const kind of ({ELEMENTS})()) kinds.add(kind);
  }}
  return [...kinds].sort();
}}"""
# Every option of a choice is taken, and a frame drawn; likewise.
CHOSEN = f"""async (list) => {{
  const kinds = new Set();
  const choice = document.querySelector(list);
  for (const {{ value }} of [...choice.options]) {{
    choice.value = value;
    choice.dispatchEvent(new Event("change", {{ bubbles: true }}));
    await new Promise(requestAnimationFrame);
    for (const kind of ({ELEMENTS})()) kinds.add(kind);
  }}
  return [...kinds].sort();
}}"""
PWN = "window.pwned = true"
# What a script that got in would try; each must fail, and every failure is said.
ATTEMPTS = f"""async () => {{
  const add = (tag, set) => document.body.append(Object.assign(document.createElement(tag), set));
  add("script", {{ textContent: "{PWN}" }});
  add("script", {{ src: "https://example.org/x.js" }});
  add("img", {{ src: "https://example.org/x.png" }});
  add("iframe", {{ srcdoc: "<script>parent.pwned = true</script>" }});
  document.body.setAttribute("onclick", "{PWN}");
  document.body.click();
  document.body.setAttribute("style", "position: fixed");
  try {{ new WebSocket("wss://example.org"); new Worker("data:,{PWN}"); }} catch {{ /* said */ }}
  await new Promise(requestAnimationFrame); // evaluated from outside, eval is allowed until here
  const tries = [() => fetch("https://example.org"), () => new Function("{PWN}")()];
  const refused = await Promise.all(tries.map(async (one) => {{
    try {{ await one(); return false; }} catch {{ return true; }}
  }}));
  return [window.pwned ?? false, getComputedStyle(document.body).position, refused];
}}"""


def example(tokens, *, layers=1, heads=3, strings=None):
    """A payload with vectors, norms, two sentences and words; names from `strings`, if given."""
    n, rng = len(tokens), np.random.default_rng(0)
    names = strings or ["a name"]
    maps = rng.dirichlet(np.full(n, 0.1), (layers, heads, n))  # [layer, head, query, key]
    edges = np.isin(np.arange(n), (0, n - 1))
    found = hs.view_arrays(
        tokens, maps, queries=rng.normal(0, 2, (layers, heads, n, 4)),
        keys=rng.normal(0, 2, (layers, heads, n, 4)), value_norm=maps.sum(2),
        measures=dict.fromkeys(names, maps**2), special=edges, boundary=n // 2,
        words=np.where(edges, -1, np.arange(n) // 2), detail="all",
        labels=[[names[(layer * heads + head) % len(names)] for head in range(heads)]
                for layer in range(layers)],
    )  # fmt: skip
    made = payload(found.shown, labels=found.labels, detail=found.detail)
    if strings:
        text = " ".join(strings)
        made |= {"title": text, "model": {"name": text}, "left_out": text, "precision": text}
        made["sides"][0]["name"] = made["stacks"][0]["label"] = text
    return made


def show(page, view, *, beside=False, words=False):
    """A view with its choices made, once everything in it is there."""
    page.click(f"#tab-{view}")
    if words:
        page.check("input[name=level][value=word]", force=True)
    if beside:
        page.check("#beside")
        page.locator(
            {"head": "#to-beside > *", "matrix": "#rows-beside > *"}[view]
        ).first.wait_for()
    if view == "neuron":
        page.locator("#neuron-work:visible").wait_for()
        page.click("#neuron-why")


# --- hostile strings ----------------------------------------------------------------------------


@pytest.fixture
def both(opened):
    """The same page twice: with hostile tokens, and with harmless ones."""
    return [opened(given=example(tokens)) for tokens in (TOKENS, TAME)]


@pytest.mark.parametrize(
    ("view", "choices"),
    [
        *((view, {}) for view in VIEWS), ("head", {"beside": True}), ("matrix", {"beside": True}),
        *((view, {"words": True}) for view in ("model", "head", "matrix")),
    ],
)  # fmt: skip
def test_hostile_tokens_make_no_element_that_harmless_ones_do_not_make(both, view, choices):
    assert len(HOSTILE) >= 50
    there, ever = [], []
    for page in both:
        show(page, view, **choices)
        there.append(page.evaluate(ELEMENTS))
        ever.append(page.evaluate(STRUCK, [LISTS[view], "click"]) if view in LISTS else [])
        assert page.evaluate("document.documentElement.scrollWidth") <= 1280
    assert there[0] == there[1]
    assert ever[0] == ever[1]


def test_hostile_tokens_are_read_as_they_are(both):
    show(both[0], "head")
    shown = set(both[0].locator("#from .text").all_text_contents())
    plain = [t for t in HOSTILE if t.isascii() and t.isprintable() and t.strip()]
    assert len(plain) > 70
    assert set(plain) <= shown


@pytest.mark.parametrize("view", VIEWS)
def test_a_figure_with_hostile_tokens_is_well_formed_and_nothing_but_a_drawing(
    both, view, tmp_path
):
    page = both[0]
    show(page, view)
    if view == "head":
        page.locator("#from [role=option]").nth(5).click()
    for kind, opening in (("svg", b"<?xml"), ("png", b"\x89PNG")):
        with page.expect_download() as saving:
            page.click(f"#save-{kind}")
        saving.value.save_as(tmp_path / "figure")
        assert (tmp_path / "figure").read_bytes().startswith(opening)
        if kind == "svg":
            root = ElementTree.fromstring((tmp_path / "figure").read_bytes())
            check_figure(root)
            assert "<script>" in " ".join(root.itertext())


def check_figure(root):
    for one in root.iter():
        assert one.tag.removeprefix("{http://www.w3.org/2000/svg}") in IN_A_FIGURE
        for name, value in one.attrib.items():
            assert not name.startswith("on")
            assert "href" not in name or value.startswith("data:image/png;base64,")


def test_hostile_names_of_heads_measures_models_and_texts_make_no_element(opened):
    pages = []
    for strings in (HOSTILE, [f"name{place}" for place in range(len(HOSTILE))]):
        page = opened(given=example(FEW, layers=12, heads=12, strings=strings))
        found = [page.evaluate(STRUCK, ["#cells [role=gridcell]", "pointerenter"])]
        for view in VIEWS:
            show(page, view)
            if view == "head":
                page.locator("#from [role=option]").nth(2).click()
            if view != "model":
                found.append(page.evaluate(CHOSEN, "#layer"))
            found += [page.evaluate(CHOSEN, "#measure"), page.evaluate(ELEMENTS)]
        pages.append(found)
    assert pages[0] == pages[1]


def test_a_script_that_got_in_could_do_nothing(browser, opened):
    """The policy itself, tried on a page of its own: there the complaints are wanted."""
    place = opened().url
    page, said, asked, failed = browser.new_page(), [], [], {}
    page.on("console", lambda message: said.append(message.text))
    page.goto(place)
    page.on("request", lambda request: asked.append(request.url))
    page.on("requestfailed", lambda request: failed.update({request.url: request.failure}))
    pwned, position, refused = page.evaluate(ATTEMPTS)
    page.close()
    assert (pwned, position, refused) == (False, "static", [True, True])
    assert {failed.get(url) for url in asked if url.startswith("http")} == {"csp"}
    assert sum("Content Security Policy" in text for text in said) >= 8, said


# --- axe ----------------------------------------------------------------------------------------


def faults(page, axe):
    """What axe finds serious or critical: rule, and the elements it is about."""
    page.evaluate(axe)
    found = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
    assert len(found["passes"]) > 10
    return [
        f"{one['id']} ({one['impact']}): {node['target']} {node['failureSummary']}"
        for one in found["violations"] if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]  # fmt: skip


@pytest.mark.parametrize("width", [400, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(opened, axe, scheme, width):
    """In every view, and in the two that show the other map beside; a page is opened once."""
    page = opened(width, scheme, given=example(FEW, layers=2, heads=12))
    page.select_option("#special", "dimmed")
    found = {}
    for view in VIEWS:
        show(page, view)
        if view == "head":
            page.locator("#from [role=option]").nth(2).click()
        found[view] = faults(page, axe)
    for view in ("head", "matrix"):
        show(page, view, beside=True)
        found[f"{view}, beside"] = faults(page, axe)
    assert not any(found.values()), json.dumps(found, indent=1)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_in_three_stacks_of_a_model_without_vectors(opened, axe, scheme):
    page = opened(400, scheme, given=make_three())
    for view in VIEWS:
        page.click(f"#tab-{view}")
        assert faults(page, axe) == []
