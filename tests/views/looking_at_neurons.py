"""How do the tests look at the neuron view: what it tells of a query, and in which colours?"""

from __future__ import annotations

import numpy as np

from views.looking import pixels


def open_head(opened, payload, *, layer=0, head=1, **window):
    """A page at the neuron view of a head."""
    page = opened(given=payload, **window)
    page.click("#tab-neuron")
    page.select_option("#layer", index=layer)
    page.click(f"[data-head='{head}']")
    page.locator("#neuron-work:visible, #neuron-missing:visible").first.wait_for()
    return page


def ask(page, query):
    page.locator("#neuron-from [role=option]").nth(query).click()


def named(tokens, index):
    """The token in quotation marks; of several equal ones, which."""
    alike = [at for at, token in enumerate(tokens) if token == tokens[index]]
    if len(alike) == 1:
        return f"‘{tokens[index]}’"
    place = ("1st", "2nd", "3rd", "4th")[alike.index(index)]
    return f"‘{tokens[index]}’ ({place} of {len(alike)})"


def row(page, key):
    return page.locator(f"#neuron-table [data-key='{key}']")


def value(text):
    return float(text.replace("−", "-").replace("+", ""))


def column(page, name):
    texts = page.locator(f"#neuron-table [data-key]:visible .{name}").all_text_contents()
    return np.array([value(text) for text in texts])


def colours(page, selector):
    """[neuron, red green blue] of a vector's canvas."""
    return pixels(page, selector)[0, :, :3].astype(float)
