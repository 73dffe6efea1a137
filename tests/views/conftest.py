"""What do the browser tests of the views share? A page opened, and complaints collected."""

from __future__ import annotations

import pytest

from headscope.views.page import build_page
from views.made import make_payload


@pytest.fixture(scope="module")
def payload():
    return make_payload(22, 3, 12)


@pytest.fixture
def opened(browser, payload, tmp_path):
    """Opens a page; afterwards, nothing may have been complained of or asked for."""
    complaints, contexts = [], []

    def start(width=1280, scheme="light", given=payload):
        place = tmp_path / "view.html"
        place.write_bytes(build_page(given))
        context = browser.new_context(
            viewport={"width": width, "height": 800}, color_scheme=scheme, offline=True
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(dialog.message))
        page.on("request", lambda request: asked(request.url, place.as_uri()))
        page.goto(place.as_uri())
        page.wait_for_selector("body[data-drawn]", timeout=60_000)
        return page

    def asked(url, expected):
        if url != expected:
            complaints.append(url)

    yield start
    for context in contexts:
        context.close()
    assert complaints == []
