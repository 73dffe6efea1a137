"""Is a report whole, self-contained and safe, whatever names and gaps the run has?"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
import sys
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pytest
import xarray as xr

from headscope.claims.bibliography import SOURCES
from headscope.claims.dictionary import terms
from headscope.claims.head_labels import head_labels
from headscope.claims.question import in_run
from headscope.core.display import title_name
from headscope.draw.label_kinds import label_kinds
from headscope.page.shell import island, split_caption, unbroken
from headscope.report.build import _used_terms, build_report, render
from headscope.report.run_facts import run_summary
from recorded import ALL, ALONE, GENERAL, manifest_of, recorded, with_pair

HOSTILE = [
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(1)>",
    "\"'><svg/onload=alert(1)>",
    "{{ 7 * 7 }}",
    "<!--<script>",
    "a\u2028b\x00\ud800",
]


class Page(HTMLParser):
    """What a browser would see: elements with attributes, and the text of some of them."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.texts, self._open = [], {}, []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self._open.append(tag)

    def handle_data(self, data):
        if self._open:
            self.texts.setdefault(self._open[-1], []).append(data)

    def handle_endtag(self, tag):
        while self._open and self._open.pop() != tag:
            pass

    def tags(self, name):
        return [attrs for tag, attrs in self.elements if tag == name]


@pytest.fixture(scope="module")
def html(whole_page):
    return whole_page


@pytest.fixture(scope="module")
def page(html):
    return Page(html)


def test_nothing_is_loaded_from_anywhere(page):
    for tag, attrs in page.elements:
        for name, value in attrs.items():
            if name in ("src", "srcset", "data", "action", "poster", "xlink:href"):
                pytest.fail(f"{tag} has {name}={value}")
            if name == "href" and not (value or "").startswith("#"):
                assert tag == "a", f"{tag} href={value}"
                assert value in {source.link for source in SOURCES.values()}
    assert not page.tags("link")
    assert not page.tags("iframe")


def test_styles_load_nothing(page):
    style = "".join(page.texts["style"])
    assert "@import" not in style
    assert not re.search(r"url\((?!#)", style)


def test_the_policy_allows_this_script_and_style_and_nothing_else(html):
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)[1].replace("&#39;", "'")
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    for tag, directive in (("style", "style-src"), ('script type="module"', "script-src")):
        text = re.search(rf"<{tag}>(.*?)</{tag.split()[0]}>", html, re.DOTALL)[1]
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{directive} 'sha256-{digest}'" in policy


def test_there_are_no_inline_styles_and_handlers(page):
    for tag, attrs in page.elements:
        assert "style" not in attrs, tag
        assert not [name for name in attrs if name.startswith("on")], tag


def test_ids_are_unique_and_links_within_the_page_arrive(page):
    ids = [attrs["id"] for _, attrs in page.elements if "id" in attrs]
    assert len(ids) == len(set(ids))
    for tag, attrs in page.elements:
        if attrs.get("href", "").startswith("#"):
            assert attrs["href"][1:] in ids, (tag, attrs["href"])


@pytest.fixture(scope="module")
def harmless():
    """The elements of a page with harmless names."""
    tree = recorded(2, 3, groups=("surface",))
    return {tag for tag, _ in Page(render(tree, manifest_of(tree))).elements}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_stay_text(name, harmless):
    tree = recorded(
        2,
        3,
        groups=("surface",),
        model=name,
        corpus=name,
        sep_token=name[:20],
        revision=name,
    )
    manifest = manifest_of(
        tree,
        command=name,
        corpus={"kind": "text", "files": [{"name": name, "sha256": name}]},
        spec={name: {name: name}},
        counts={"reasons": {name: 3}, "skipped": 3},
    )
    text = render(tree, manifest)
    text.encode("utf-8")
    page = Page(text)
    assert len(page.tags("script")) == 2
    assert not page.tags("img")
    assert not [attrs for _, attrs in page.elements if any(key.startswith("on") for key in attrs)]
    assert {tag for tag, _ in page.elements} <= harmless


@pytest.mark.usefixtures("no_pictures")
def test_names_are_shown_as_they_are():
    name = "<b>model</b> & 'co'"
    page = Page(render(recorded(2, 3, groups=("entropy",), model=name), {}))
    assert name in "".join(page.texts["span"])


@pytest.mark.parametrize("name", HOSTILE[:5])
def test_no_string_can_end_the_data_island(name):
    text = island({"name": name})
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text) == {"name": name}


def test_the_data_island_is_json_without_nan(page):
    data = json.loads(next(text for text in page.texts["script"] if text.startswith("{")))
    assert data["layers"] == data["heads"] == 12
    assert len(data["kind"]) == len(data["map"]) == 144
    assert all(len(metric["value"]) == len(metric["text"]) == 144 for metric in data["metrics"])


def test_every_label_is_told_once_with_name_and_interval(html):
    items = re.findall(
        r'<a class="head"[^>]*>(.*?)</a>\s*<span class="sentence">(.*?)</span>', html
    )
    assert len(items) == len({sentence for _, sentence in items}) == 10
    assert all(re.fullmatch(r"L\d+·H\d+", name) for name, _ in items)
    assert all(re.search(r"\[[\d.]+,\u00a0[\d.]+\]", sentence) for _, sentence in items)


def test_every_section_stands_in_order(html):
    order = ["answer", "grid", "telling", "examples", "surface", "entropy", "norms", "cancellation"]
    order += ["frequency", "mixing", "flow", "neurons", "neuron-sources"]
    order += ["patterns", "clusters", "cluster-number", "layers-alike", "language", "syntax"]
    order += ["coreference", "frames", "features"]
    order += ["map", "table", "terms", "run"]
    places = [html.index(f'id="{name}"') for name in order]
    assert places == sorted(places)
    assert html.count("Not part of this run") == 1  # explained: recorded runs are older


@pytest.mark.parametrize("group", [*GENERAL, None])
def test_a_section_without_its_group_says_so(group):
    groups = tuple(name for name in GENERAL if name == group)
    html = render(recorded(3, 4, groups=groups), {})
    assert "Not part of this run" in html


@pytest.mark.usefixtures("no_pictures")
def test_a_single_document_has_no_intervals_but_a_report():
    """Its pictures say no nan either: test_every_figure_is_drawn."""
    html = render(recorded(3, 4, kind=ALONE), {})
    assert "nan" not in html.lower().replace("nano", "").replace("nanda", "")
    assert "n = 1 document," in html


def test_the_manifest_is_told(page):
    text = " ".join(part for parts in page.texts.values() for part in parts)
    for words in (
        "ffb93f3bd404",
        "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        "2 skipped (empty: 2); 1 cut into windows because too long",
        "headscope atlas demo --text valid.txt",
        "14 documents, 195 examples, 3,385 tokens",
        "95 %, over documents; none where fewer than 5",
        "2.13.0",
    ):
        assert words in text


@pytest.mark.usefixtures("no_pictures")
def test_what_was_skipped_is_told_with_its_reason():
    counts = {"skipped": 3, "reasons": {"malformed": {"total": 2, "first": ["a", "b"]}}}
    assert "3 skipped (malformed: 2)" in render(recorded(2, 3, groups=()), {"counts": counts})


def test_the_glossary_has_the_terms_of_the_page_and_no_others(html, whole):
    told, _, glossary = html.partition('<dl class="terms">')
    told = told.partition('<header id="answer">')[2]
    told = unescape(re.sub(r"<[^>]*>", " ", told.rpartition('<section id="terms"')[0])).lower()
    held = set(re.findall(r'id="term-(\w+)"', glossary))
    assert held <= set(terms())
    assert {"label", "interval", "entropy", "value_norm", "accuracy", "held_out"} <= held
    named = {
        word
        for word, term in terms(in_run(whole)).items()
        if re.search(rf"(?<![\w-]){re.escape(term.name.lower())}s?(?!\w)", told)
    }
    assert named <= held
    assert held - named <= set(re.findall(r'href="#term-(\w+)"', html))
    plain = render(recorded(2, 3, groups=("entropy",)), {})
    assert 'id="term-entropy"' in plain
    assert 'id="term-jaccard"' not in plain


def test_a_word_of_a_question_that_was_not_asked_is_not_explained_by_it():
    """Accuracy on a task is no share of words; nor is p there of frame elements moved about."""
    made = xr.DataTree.from_dict({"norms": xr.Dataset()})
    page = "<p>The accuracy of a task, its p, its cross-entropy, attention sinks.</p>"
    assert set(_used_terms(made, page)) == {"attention", "sink"}


def test_captions_have_sixty_words_at_most_and_lose_none(html, whole):
    shown = [
        re.sub(r"<[^>]*>", "", caption.partition("<details")[0])
        for caption in re.findall(r"<figcaption>(.*?)</figcaption>", html, re.DOTALL)
    ]
    assert len(shown) > 15
    assert max(len(caption.split()) for caption in shown) <= 60
    long = "One (a; b) and Clark et al. (2019), then more words; the rest is here. And n = 3."
    first, rest = split_caption(long, 11)
    assert (first, rest) == (
        "One (a; b) and Clark et al. (2019), then more words.",
        "The rest is here. And n = 3.",
    )
    assert split_caption("Short.") == ("Short.", "")
    assert split_caption("One two three; ρ is so. Four", 4) == ("One two three.", "ρ is so. Four")


def test_counts_of_labels_are_the_same_in_legend_table_and_findings(whole, html):
    kinds = [kind for kind in label_kinds(whole) if kind.claims]
    heads = head_labels(whole).values()
    for kind in kinds:
        said = {(claim.kind, claim.about if claim.replaces else "") for claim in kind.claims}
        having = [
            one
            for one in heads
            if any((c.kind, c.about if c.replaces else "") in said for c in one.labels)
        ]
        assert len(having) == kind.count
        assert f"{kind.title} ({kind.count})" in html
    assert sum(len(kind.units) for kind in label_kinds(whole)) == 144


def test_every_term_names_a_source_that_is_listed():
    for word, term in terms().items():
        assert term.source, word
        assert term.source.startswith((*SOURCES, "headscope")), word


def test_pictures_take_their_colours_from_the_page(html):
    drawings = re.findall(r"<svg .*?</svg>", html, re.DOTALL)
    assert len(drawings) > 30
    for drawing in drawings:
        assert not re.search(r"#[0-9a-f]{6}\b", drawing)
    classes = re.search(r"(\.m0\{.*?)</style>", html, re.DOTALL)[1]
    assert "var(--ink)" in classes
    assert not re.search(r":#[0-9a-fA-F]{6}", classes)


def test_the_page_is_light_enough(html):
    views = re.search(r'id="views">(.*?)</script>', html, re.DOTALL)[1].encode()
    assert len(html.encode()) - len(views) < 2_700_000
    assert len(views) < 1_000_000


@pytest.mark.usefixtures("no_pictures")
def test_the_same_run_gives_the_same_page():
    """All but its pictures: those, test_every_figure_is_drawn draws twice."""
    one, other = (with_pair(recorded(3, 4, ALL)) for _ in range(2))
    assert render(one, manifest_of(one)) == render(other, manifest_of(other))


def test_the_file_appears_whole(tmp_path):
    path = build_report(recorded(2, 3, groups=("mixing",)), {}, tmp_path / "new")
    assert path == tmp_path / "new" / "report.html"
    assert path.read_text(encoding="utf-8").rstrip().endswith("</html>")
    assert [file.name for file in path.parent.iterdir()] == ["report.html"]


@pytest.mark.usefixtures("no_pictures")
def test_missing_numbers_are_a_dash_and_sort_last():
    tree = recorded(2, 3, groups=("entropy",))
    entropy = tree["entropy"].to_dataset().copy(deep=True)
    entropy["entropy"].loc[{"layer": 0, "head": 0}] = np.nan
    tree["entropy"].dataset = entropy
    assert '<td data-order="">–</td>' in render(tree, {})


@pytest.mark.parametrize(
    ("model", "title"),
    [
        ("../models/e5-small/", "e5-small"),
        ("C:\\models\\e5", "e5"),
        ("intfloat/e5-small", "intfloat/e5-small"),
        ("demo", "demo"),
        ("/", "/"),
    ],
)
def test_a_local_model_is_titled_by_its_folder(model, title):
    assert title_name(model) == title


def test_intervals_do_not_break_over_lines():
    assert unbroken("[SEP], 87 % [85, 89] of") == "[SEP], 87\u00a0% [85,\u00a089] of"


@pytest.mark.usefixtures("no_pictures")
def test_an_analysis_of_ones_own_joins_grid_and_panel():
    tree = recorded(2, 3, groups=("entropy",))
    values = (("layer", "head"), np.ones((2, 3)), {"long_name": "my number", "units": "1"})
    tree["mine"] = xr.DataTree(xr.Dataset({"number": values}))
    page = Page(render(tree, {}))
    data = json.loads("".join(text for text in page.texts["script"] if text.startswith("{")))
    assert [metric["label"] for metric in data["metrics"]][-1] == "my number"


def test_a_notebook_sees_the_run_in_short():
    tree = recorded(6, 12, model="<b>m</b>")
    html = run_summary(tree, {})
    assert "headscope atlas of &lt;b&gt;m&lt;/b&gt;" in html
    assert html.count("<tr>") == 5
    assert not {"script", "style", "b"} - {"b"} & {tag for tag, _ in Page(html).elements}


def test_drawing_and_reporting_do_not_wait_for_torch():
    code = (
        "import sys, headscope.report, headscope.draw, headscope.heads; "
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_intervals_are_spoken_of_only_where_some_stand():
    """A report of three documents had none, and said that they stand in brackets."""
    tree = recorded(2, 3, ("surface",))
    page = render(tree, manifest_of(tree)).replace("\xa0", " ")
    assert "intervals</a> in brackets" in page
    assert "Brackets hold 95 % intervals" in page
    assert "95 % intervals over documents" in page
    dataset = tree["surface"].to_dataset().copy(deep=True)
    for name in dataset.data_vars:
        if str(name).endswith(("_ci_low", "_ci_high")):
            dataset[name][...] = np.nan
    tree["surface"].dataset = dataset
    page = render(tree, manifest_of(tree)).replace("\xa0", " ")
    assert "in brackets" not in page
    assert "Brackets hold" not in page
    assert "intervals over documents" not in page
    assert "95 % intervals (none here)" in page
