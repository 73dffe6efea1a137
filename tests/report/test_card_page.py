"""Is the card's page whole, safe and small, and are its numbers those of the results?"""

from __future__ import annotations

import gzip
import json
import re
from base64 import b64decode

import numpy as np
import pytest

from headscope.analyses.patterns.typical_maps import head_maps
from headscope.heads.head_card import head_card
from headscope.report import card_page as module
from headscope.report.build import render
from headscope.report.card_page import LEVELS, build_card, cards, render_card
from recorded import BOTH, manifest_of, reading, recorded, with_maps
from report.test_report_html import HOSTILE, Page


@pytest.fixture(scope="module")
def tree():
    return recorded(6, 12, groups=BOTH)


@pytest.fixture(scope="module")
def held(tree):
    """What a page holds of the cards."""
    return cards(tree)


def data_of(html):
    return json.loads(re.search(r'id="data">(.*?)</script>', html, re.DOTALL)[1])


def test_the_maps_of_a_page_are_those_of_the_heads(tree, held):
    held, maps = held["maps"], head_maps(reading(tree, "patterns"))
    codes = np.frombuffer(gzip.decompress(b64decode(held["codes"])), np.uint8)
    at = 0
    for unit, rows in enumerate(held["heads"]):
        for (place, kind, sure, links), one in zip(rows, maps.of(*divmod(unit, 12)), strict=True):
            tokens, added = held["inputs"][place]
            assert tokens == list(one.pieces)
            assert added == np.flatnonzero(one.special).tolist()
            assert (kind, sure) == ("", "")
            assert [link[:2] for link in links] == [[q, k] for q, k, _ in one.links()]
            n = len(tokens)
            found = codes[at : at + n * n].reshape(n, n) / LEVELS  # [query, key]
            assert np.abs(found - np.sqrt(one.weights)).max() <= 0.5 / LEVELS + 1e-9
            at += n * n
    assert at == len(codes)


def test_fewer_maps_are_held_where_there_is_no_room(tree, held, monkeypatch):
    assert {len(rows) for rows in held["maps"]["heads"]} == {3}
    monkeypatch.setattr(module, "ROOM", 1)
    assert {len(rows) for rows in cards(tree)["maps"]["heads"]} == {1}


@pytest.mark.usefixtures("no_pictures")
def test_a_run_without_maps_relations_and_divergence_has_cards_all_the_same():
    held = cards(recorded(2, 3, groups=("entropy",)))
    assert held["maps"] is None
    assert held["nearest"] == held["relations"] == [[]] * 6
    assert 'id="card"' in render(recorded(2, 3, groups=("entropy",)), {})


@pytest.mark.usefixtures("no_pictures")
def test_cards_add_a_third_of_a_megabyte_at_most_to_a_report_of_144_heads():
    rng = np.random.default_rng(0)
    tokens = [f"token{at}" for at in range(39)]
    tree = with_maps(recorded(12, 12, BOTH), tokens=tokens)
    patterns = tree["patterns"].to_dataset().copy(deep=True)
    patterns["typical"][:, :, 0, :39, :39] = rng.dirichlet(np.full(39, 0.05), (12, 12, 39))
    tree["patterns"].dataset = patterns
    html = render(tree, manifest_of(tree))
    held = data_of(html)
    ours = {name: held[name] for name in ("cards", "labels", "closest", "rules")}
    ours["rank"] = [metric["rank"] for metric in held["metrics"]]
    size = len(json.dumps(ours, separators=(",", ":"), ensure_ascii=False).encode())
    script = len((html[html.index("// How do the most typical maps") :]).encode())
    assert size + script < 300_000


@pytest.fixture(scope="module")
def plain(tree):
    """The report, without pictures."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("headscope.report.build.pictures", dict)
        return render(tree, {})


@pytest.mark.usefixtures("no_pictures")
def test_the_page_of_a_head_holds_its_card_and_those_of_all(tree, plain, tmp_path):
    card = head_card(tree, 3, 4)
    path = build_card(tree, card, tmp_path / "new" / "card.html")
    html = path.read_text("utf-8")
    assert html == render_card(tree, card)
    held = data_of(html)
    assert held["card"] == 3 * 12 + 4
    assert held["labels"] == data_of(plain)["labels"]
    assert [label[0] for label in held["labels"][40]] == [
        label.label for label in card.labels.labels
    ]
    assert [file.name for file in path.parent.iterdir()] == ["card.html"]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_stay_text(name):
    tree = with_maps(recorded(2, 3, model=name, sep_token=name[:20]), tokens=[name, "b"])
    html = render_card(tree, head_card(tree, 0, 0))
    html.encode("utf-8", errors="backslashreplace")
    page = Page(html)
    assert len(page.tags("script")) == 2
    assert not page.tags("img")
    assert not [a for _, a in page.elements if "style" in a or any(k.startswith("on") for k in a)]
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)[1]
    assert policy.startswith("default-src &#39;none&#39;;")
    assert "unsafe" not in policy


def test_every_row_of_the_table_is_where_an_address_leads_without_scripts(plain):
    assert re.findall(r'<tr id="(L\d+H\d+)"', plain) == [
        f"L{layer}H{head}" for layer in range(1, 7) for head in range(1, 13)
    ]
    assert plain.count("unlabelled</span>") == sum(
        not labels for labels in data_of(plain)["labels"]
    )
