"""The live page: type a text, see every head, switch some off; and a run's pages, over HTTP."""

from importlib.util import find_spec

from headscope.errors import HeadscopeError


def refuse_without_packages() -> None:
    """Raise HeadscopeError where the packages that serve a page are not installed."""
    if missing := [name for name in ("starlette", "uvicorn") if find_spec(name) is None]:
        raise HeadscopeError(
            f"headscope serve needs {' and '.join(missing)}, not installed here\n"
            "pip install 'headscope[serve]'"
        )
