"""How do the tests look at a page: what it says, what it draws, what it stands for?"""

from __future__ import annotations

import base64
import io
import re

import numpy as np
from PIL import Image


def cell(page, layer, head, heads=12):
    """A thumbnail of the model view."""
    return page.locator("#cells [role=gridcell]").nth(layer * heads + head)


def settled(page):
    """Everything that is shown has been unpacked."""
    page.wait_for_selector("body[aria-busy=false]")
    return page


def said(page):
    return settled(page).locator("#readout").text_content()


def shown_weights(page, side):
    """The numbers beside the tokens of a side."""
    texts = settled(page).locator(f"#{side} .value").all_text_contents()
    return np.array([float(text.replace("−", "-")) for text in texts])


def shown_map(page, suffix=""):
    """[query, key] every number that the head view tells, pointing at one token after the other;
    NaN where it tells none."""
    rows = settled(page).evaluate(
        """(suffix) => [...document.querySelectorAll(`#from${suffix} [role=option]`)].map((one) => {
          one.dispatchEvent(new PointerEvent("pointerover", { bubbles: true }));
          const texts = document.querySelectorAll(`#to${suffix} .value`);
          return [...texts].map((text) => text.textContent);
        })""",
        suffix,
    )
    return np.array([[float(text.replace("−", "-") or "nan") for text in row] for row in rows])


def shown_tokens(page, side):
    return page.locator(f"#{side} .text").all_text_contents()


def point_at(page, query, key, shape, suffix=""):
    """The pointer on a cell of the heat map."""
    chart = settled(page).locator(f"#map{suffix}")
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    down, across = box["height"] / shape[0], box["width"] / shape[1]
    page.mouse.move(box["x"] + (key + 0.5) * across, box["y"] + (query + 0.5) * down)


def pixels(page, canvas):
    """What is drawn on a canvas: [row, column, red green blue alpha]."""
    url = settled(page).locator(canvas).evaluate("canvas => canvas.toDataURL()")
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(url.split(",")[1]))).convert("RGBA"))


def contrast(page, selector):
    """WCAG 2 contrast of an element's text with the page behind it."""
    text, back = page.locator(selector).first.evaluate(
        "one => [getComputedStyle(one).color,"
        " getComputedStyle(document.documentElement).backgroundColor]"
    )
    light = sorted(luminance(shade) for shade in (text, back))
    return (light[1] + 0.05) / (light[0] + 0.05)


def luminance(shade):
    numbers = [float(part) for part in re.findall(r"[\d.]+", shade)[:3]]
    tones = np.array(numbers) / (1 if shade.startswith("color(srgb") else 255)
    linear = np.where(tones <= 0.04045, tones / 12.92, ((tones + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])
