"""Does the search of the built site find the right page, and do pictures follow dark mode?

`make site` asks, `make test` not.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus

import pytest

SITE = Path(os.environ.get("HEADSCOPE_SITE", Path(__file__).resolve().parents[1] / "build/site"))
SAID = "#search-results .search-summary"
FIRST = 3  # results among which the page has to be
# What people type, and the page that they want.
QUERIES = {
    "install": "install",
    "offline": "install",
    "out of memory": "troubleshooting",
    "confidence interval": "intervals",
    "jupyter": "python",
    "export figure": "share",
    "fine-tuning": "tasks",
    "own annotations": "language",
    "treebank": "notebooks/treebank-syntax",
    "coreference": "coreference",
    "entropy": "entropy",
    "attention sink": "sinks",
    "induction head": "tutorial-circuits",
    "clusters of heads": "clusters",
    "sentence pairs": "pairs",
    "prune heads": "reference/commands/prune",
    "random weights": "control",
    "probe syntax": "probes",
    "slurm": "scale",
    "dask": "scale",
    "TransformerLens": "coming-from",
    "BertViz": "coming-from-bertviz",
    "supported models": "families",
    "cite": "share",
}


@pytest.fixture(scope="module")
def page(browser) -> Iterator[Any]:
    with browser.new_context() as context:
        yield context.new_page()


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_finds_its_page_among_the_first(query: str, page: Any) -> None:
    page.goto(f"{(SITE / 'search.html').as_uri()}?q={quote_plus(query)}")
    page.wait_for_function(
        f"/found|did not match/.test(document.querySelector('{SAID}')?.innerText)"
    )
    links = page.query_selector_all("#search-results ul.search > li > a")
    names = [str(link.get_property("href").json_value()) for link in links]
    pages = [name.partition(f"{SITE.as_uri()}/")[2].partition(".html")[0] for name in names]
    assert QUERIES[query] in list(dict.fromkeys(pages))[:FIRST]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_first_page_and_its_pictures_are_dark_where_the_system_is(
    scheme: str, page: Any
) -> None:
    page.emulate_media(color_scheme=scheme)
    page.goto((SITE / "index.html").as_uri())
    inside = page.frame_locator(".first-view iframe").locator("html")
    inside.locator(f"xpath=self::*[@data-scheme='{scheme}']").wait_for(state="attached")
    look = "image => getComputedStyle(image).filter"
    filters = page.eval_on_selector_all(".gallery img", f"all => all.map({look})")
    assert len(filters) >= 10
    assert {"invert" in one for one in filters} == {scheme == "dark"}
