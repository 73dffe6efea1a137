"""Is the page one file that keeps its data as data, whatever the tokens are?"""

from __future__ import annotations

import html
import json
import re

import pytest

from headscope.views.view_page import build_page
from views.made import make_payload

BREAKOUTS = [
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "<img src=x onerror=alert(1)>",
    "{{ 7*7 }}",
    "\u2028",
    "\u2029",
    "\ud800",
    "\x00",
    "&lt;",
    "]]>",
]


def island_of(page):
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    return found[1]


def test_the_payload_comes_back_out_of_the_page_unchanged():
    payload = make_payload(6, 2, 3, tokens=["[CLS]", *BREAKOUTS, "[SEP]"])
    page = build_page(payload).decode("utf-8")
    assert json.loads(island_of(page)) == payload


@pytest.mark.parametrize("token", BREAKOUTS)
def test_no_token_adds_markup_to_the_page(token):
    def tags(token):
        payload = make_payload(tokens=["[CLS]", token, "[SEP]"], layers=1, heads=1, title=token)
        return re.findall(r"<[a-z!/][^\s>]*", build_page(payload).decode("utf-8"), re.I)

    assert tags(token) == tags("plain")


def test_nothing_in_the_page_points_outside():
    page = build_page(make_payload()).decode("utf-8")
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    policy = html.unescape(policy)
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    addresses = set(re.findall(r"https?://[^\s\"']+", page))
    names = {"http://www.w3.org/2000/svg", "http://www.w3.org/XML/1998/namespace"}
    assert addresses <= names  # names of vocabularies, not places that are asked


def test_a_number_that_json_lacks_is_refused():
    payload = make_payload(6, 1, 1)
    payload["stacks"][0]["measures"][0]["scale"] = float("nan")
    with pytest.raises(ValueError, match="JSON"):
        build_page(payload)


def test_the_same_payload_gives_the_same_bytes():
    assert build_page(make_payload()) == build_page(make_payload())
