"""Is a page open to everybody? What axe finds, of one page in light and dark."""

from __future__ import annotations

import json

# What of axe's rules the colours can change: in a second scheme, no other can tell of more.
OF_COLOUR = ["color-contrast", "link-in-text-block"]
# Each width in one scheme: no style sets a colour by the width.
NARROW_AND_WIDE = [(390, "dark"), (1280, "light")]
ELEMENTS = """() => [...document.querySelectorAll("*")].map((one) => (
  [one.tagName, ...one.getAttributeNames().filter((name) => name !== "style")].join(" ")
))"""


def faults(page, axe, *, schemes=("dark", "light"), part=None, least="minor"):
    """What axe finds, by scheme: the rule, the elements it is about, and why.

    schemes  all rules in the last one; in one before it the elements are the same
    part     selector of what is looked at; by default all
    least    "minor", or "serious": how bad
    """
    if not page.evaluate("'axe' in window"):
        page.evaluate(axe)
    found, elements = [], []
    for scheme in schemes:
        rules = {} if scheme == schemes[-1] else {"runOnly": OF_COLOUR}
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
    assert elements[0] == elements[-1]
    return found
