"""What do all tests share? The data beside the checkout, and the demo model."""

from pathlib import Path

import pytest

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
