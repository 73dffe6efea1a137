"""Is a page safe and open to everybody: hostile strings are only text, and axe finds no fault?"""

from __future__ import annotations

import json
from xml.etree import ElementTree

import numpy as np
import pytest

import headscope as hs
from accessible import NARROW_AND_WIDE, faults
from headscope.views.view_page import payload
from views.hostile import HOSTILE
from views.made import make_three

VIEWS = ("model", "head", "neuron", "matrix")
TOKENS = ("[CLS]", *HOSTILE, "[SEP]")
FRIENDLY = [f"name{place}" for place in range(len(HOSTILE))]
FEW = ("[CLS]", "a", "small", "##er", "text", "[SEP]")
LISTS = {
    "head": "#from [role=option]",
    "neuron": "#neuron-from [role=option]",
    "matrix": "#rows > *, #columns > *",
}
IN_A_FIGURE = {"svg", "title", "desc", "g", "rect", "path", "line", "text", "tspan", "image"}

# Tag and attributes of an element; not those that say how large or long something is.
KIND = """(one) => {
  const sizes = ["class", "hidden", "style", "title"];
  const names = [...one.attributes].map((each) => each.name).sort();
  return [one.tagName, ...names.filter((name) => !sizes.includes(name))].join(" ");
}"""
ELEMENTS = f"""() => [...document.querySelectorAll("*")].map({KIND})"""
# All kinds of elements that there ever were while every so manieth entry of a list, and the last,
# got an event, or option of a choice was taken and all was laid out; a frame is drawn at the end.
# An observer hears of what is new or changed: to look at all elements after each event takes most
# of the time, and to draw a frame the rest.
EVER = f"""async ([list, event, step]) => {{
  const kinds = new Set(), see = (one) => kinds.add(({KIND})(one));
  const all = (root) => root.querySelectorAll("*").forEach(see);
  const hear = (changes) => {{
    const added = changes.flatMap(({{ addedNodes }}) => [...addedNodes]);
    const found = new Set([...changes.map(({{ target }}) => target), ...added]);
    for (const one of found) if (one.attributes) see(one);
    for (const one of added) if (one.attributes) all(one);
  }};
  const observer = new MutationObserver(hear);
  observer.observe(document, {{ subtree: true, childList: true, attributes: true }});
  all(document);
  const found = document.querySelectorAll(list);
  const strike = (one, name) => {{
    one.dispatchEvent(new PointerEvent(name, {{ bubbles: name !== "pointerenter" }}));
    if (name === "change") document.body.getBoundingClientRect(); // styles are those of now
    hear(observer.takeRecords());
  }};
  for (const [place, one] of [...found].entries()) {{
    if (place % step && place < found.length - 1) continue;
    const choice = event === "change" ? one.parentNode : one;
    if (choice !== one) choice.value = one.value;
    strike(choice, event);
  }}
  await new Promise(requestAnimationFrame);
  hear(observer.takeRecords());
  observer.disconnect();
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


def example(tokens, *, layers=1, heads=3, strings=None, measures=None):
    """A payload with vectors, norms, two sentences and words; names from `strings`, if given."""
    n, rng = len(tokens), np.random.default_rng(0)
    names = strings or ["a name"]
    maps = rng.dirichlet(np.full(n, 0.1), (layers, heads, n))  # [layer, head, query, key]
    edges = np.isin(np.arange(n), (0, n - 1))
    found = hs.view_arrays(
        tokens,
        maps,
        queries=rng.normal(0, 2, (layers, heads, n, 4)),
        keys=rng.normal(0, 2, (layers, heads, n, 4)),
        value_norm=maps.sum(2),
        measures=dict.fromkeys(measures or names, maps**2),
        special=edges,
        boundary=n // 2,
        words=np.where(edges, -1, np.arange(n) // 2),
        detail="all",
        labels=[
            [names[(layer * heads + head) % len(names)] for head in range(heads)]
            for layer in range(layers)
        ],
    )
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


# How many entries of a list are gone on by: harmless ones are alike, so that few of them do; and
# every hostile one is taken where the other map is not beside, so that few do there.
STEPS = (1, 25)
BESIDE = 5
PAGES = 3  # with the tokens shared among them: what a click costs grows with their number


@pytest.fixture
def hostile(opened):
    return opened(given=example(TOKENS))


def test_hostile_tokens_make_no_element_that_harmless_ones_do_not_make(opened):
    """In every view, with the other map beside, and with words; some at a time."""
    assert len(HOSTILE) >= 50
    some = -(-len(HOSTILE) // PAGES)
    texts = [HOSTILE[place : place + some] for place in range(0, len(HOSTILE), some)]
    texts[-1] += HOSTILE[: some - len(texts[-1])]  # all are as long
    assert set().union(*texts) == set(HOSTILE)
    tame = [f"token{place}" for place in range(some)]
    expected = in_every_view(opened(given=example(["[CLS]", *tame, "[SEP]"])), STEPS[1])
    for hostile in texts:
        page = opened(given=example(["[CLS]", *hostile, "[SEP]"]))
        assert in_every_view(page, STEPS[0]) == expected


def in_every_view(page, step):
    """The elements of each view as it is first shown, and the kinds that there ever were."""
    shown = [
        *((view, {}) for view in VIEWS),
        ("head", {"beside": True}),
        ("matrix", {"beside": True}),
        *((view, {"words": True}) for view in ("model", "head", "matrix")),
    ]
    found = []
    for view, choices in shown:
        show(page, view, **choices)
        found.append((view, choices, page.evaluate(ELEMENTS)))
        if view in LISTS:
            struck = [LISTS[view], "click", max(step, BESIDE if "beside" in choices else 1)]
            found.append((view, choices, page.evaluate(EVER, struck)))
        assert page.evaluate("document.documentElement.scrollWidth") <= 1280
    return found


def test_hostile_tokens_are_read_as_they_are(hostile):
    show(hostile, "head")
    shown = set(hostile.locator("#from .text").all_text_contents())
    plain = [t for t in HOSTILE if t.isascii() and t.isprintable() and t.strip()]
    assert len(plain) > 70
    assert set(plain) <= shown


def test_a_figure_with_hostile_tokens_is_well_formed_and_nothing_but_a_drawing(hostile, tmp_path):
    for view in VIEWS:
        show(hostile, view)
        if view == "head":
            hostile.locator("#from [role=option]").nth(5).click()
        for kind, opening in (("svg", b"<?xml"), ("png", b"\x89PNG")):
            with hostile.expect_download() as saving:
                hostile.click(f"#save-{kind}")
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


def test_hostile_names_of_heads_models_and_texts_make_no_element(opened):
    """As many heads as there are names."""
    pages = []
    for strings, step in zip((HOSTILE, FRIENDLY), STEPS, strict=True):
        page = opened(given=example(FEW, layers=12, heads=12, strings=strings, measures=["a"]))
        found = [page.evaluate(EVER, ["#cells [role=gridcell]", "pointerenter", step])]
        for view in VIEWS:
            show(page, view)
            if view == "head":
                page.locator("#from [role=option]").nth(2).click()
            if view != "model":
                found.append(page.evaluate(EVER, ["#layer option", "change", 1]))
            found.append(page.evaluate(ELEMENTS))
        pages.append(found)
    assert pages[0] == pages[1]


def test_hostile_names_of_measures_make_no_element(opened):
    pages = []
    for strings, step in zip((HOSTILE, FRIENDLY), STEPS, strict=True):
        page = opened(given=example(FEW, strings=strings, measures=strings))
        found = []
        for view in VIEWS:
            show(page, view)
            if view == "head":
                page.locator("#from [role=option]").nth(2).click()
            found += [page.evaluate(EVER, ["#measure option", "change", step])]
            found += [page.evaluate(ELEMENTS)]
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


@pytest.mark.parametrize(("width", "scheme"), NARROW_AND_WIDE)
def test_axe_finds_nothing_serious_in_light_and_dark(opened, axe, width, scheme):
    """In every view, and in the two that show the other map beside; a page is opened once."""
    page = opened(width, scheme, given=example(FEW, layers=2, heads=12))
    page.select_option("#special", "dimmed")
    found = {}
    for view in VIEWS:
        show(page, view)
        if view == "head":
            page.locator("#from [role=option]").nth(2).click()
        found[view] = faults(page, axe, schemes=[scheme], least="serious")
    for view in ("head", "matrix"):
        show(page, view, beside=True)
        found[f"{view}, beside"] = faults(page, axe, schemes=[scheme], least="serious")
    assert not any(found.values()), json.dumps(found, indent=1)


def test_axe_finds_nothing_serious_in_three_stacks_of_a_model_without_vectors(opened, axe):
    page = opened(400, given=make_three())
    for view in VIEWS:
        page.click(f"#tab-{view}")
        schemes = ["dark", "light"] if view == "model" else ["light"]  # the others share its bar
        assert faults(page, axe, schemes=schemes, least="serious") == []
