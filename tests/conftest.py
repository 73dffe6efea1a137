"""What do all tests share? The data beside the checkout, the demo model, and a browser."""

import shutil
from pathlib import Path

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real corpora, models and oracles beside the checkout."""
    if not SHARED.is_dir():
        pytest.skip("needs the folder 'shared' (real corpora, models, oracles) beside the checkout")
    return SHARED


@pytest.fixture(scope="session")
def demo():
    """The demo model, loaded once."""
    import headscope

    return headscope.load("demo")


@pytest.fixture(scope="session")
def whole(demo, tmp_path_factory):
    """A finished run of all analyses on the bundled corpus, with its report."""
    import headscope as hs
    from commands import WHOLE

    run = hs.atlas(
        demo, hs.demo_corpus(), output=tmp_path_factory.mktemp("whole") / "run", **WHOLE,
        execution=hs.Execution(linears="stock", threads=1),
    )  # fmt: skip
    run.report()
    return run


@pytest.fixture(scope="module")
def browser():
    """A real Chromium."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine")
    with api.sync_playwright() as player:
        running = player.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield running
        running.close()
