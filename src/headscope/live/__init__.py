"""Pages over HTTP: a live one of a model, those of a run, and one to label maps on."""

from importlib.util import find_spec

from headscope.errors import HeadscopeError


def refuse_without_packages(command: str) -> None:
    """Raise HeadscopeError where the packages that serve the page of a command are missing."""
    if missing := [name for name in ("starlette", "uvicorn") if find_spec(name) is None]:
        raise HeadscopeError(
            f"{command} needs {' and '.join(missing)}, not installed here\n"
            "pip install 'headscope[serve]'"
        )
