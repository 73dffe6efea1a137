"""What do the browser tests of the views share? A page opened, and complaints collected."""

from __future__ import annotations

import pytest

from headscope.views.view_page import build_page
from views.made import make_payload


@pytest.fixture(scope="module")
def payload():
    return make_payload(22, 3, 12)


@pytest.fixture
def opened(watched, payload, tmp_path):
    """Opens a page of views, when it is drawn."""

    def start(width=1280, scheme="light", given=payload):
        place = tmp_path / "view.html"
        place.write_bytes(build_page(given))
        page = watched(place.as_uri(), width=width, color_scheme=scheme, offline=True)
        page.wait_for_selector("body[data-drawn]")
        return page

    return start
