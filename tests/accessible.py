"""Is a page open to everybody? What axe finds, of one page in light and dark."""

from __future__ import annotations

import json

# What of axe's rules the colours can change: where a page is dark, no other can tell of more.
OF_COLOUR = ["color-contrast", "link-in-text-block"]
ELEMENTS = """() => [...document.querySelectorAll("*")].map((one) => (
  [one.tagName, ...one.getAttributeNames().filter((name) => name !== "style")].join(" ")
))"""


def faults(page, axe, *, part=None, least="minor"):
    """What axe finds, by scheme: the rule, the elements it is about, and why.

    All rules where the page is light; where it is dark, its elements are the same.

    part   selector of what is looked at; by default all
    least  "minor", or "serious": how bad
    """
    if not page.evaluate("'axe' in window"):
        page.evaluate(axe)
    found, elements = [], []
    for scheme, rules in (("dark", {"runOnly": OF_COLOUR}), ("light", {})):
        page.emulate_media(color_scheme=scheme)
        elements.append(page.evaluate(ELEMENTS))
        options = {"resultTypes": ["violations"], **rules}
        where = "document" if part is None else json.dumps(part)
        told = page.evaluate(f"axe.run({where}, {json.dumps(options)})")
        passed = {one["id"] for one in told["passes"]}
        assert "color-contrast" in passed
        assert rules or len(passed) > 10
        found += [
            f"{scheme}: {one['id']} ({one['impact']}): {node['target']} {node['failureSummary']}"
            for one in told["violations"]
            if least == "minor" or one["impact"] in ("serious", "critical")
            for node in one["nodes"]
        ]
    assert elements[0] == elements[1]
    return found
