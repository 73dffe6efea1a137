"""headscope tells what every attention head of a transformer does.

    import headscope as hs
    run = hs.atlas(hs.load("demo"), hs.demo_corpus())
    run["entropy"]

This page lists what is public; each name is imported when it is first used.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_WHERE = {
    "Analysis": "headscope.analysis",
    "AnnotatedCorpus": "headscope.corpus",
    "Batch": "headscope.batch",
    "CorefCorpus": "headscope.corpus",
    "Execution": "headscope.run",
    "FrameFilters": "headscope.corpus",
    "FramesCorpus": "headscope.corpus",
    "HeadscopeError": "headscope.errors",
    "Instrument": "headscope.instrument",
    "LayerView": "headscope.layer",
    "MemoryCorpus": "headscope.corpus",
    "Model": "headscope.model",
    "Run": "headscope.finished_run",
    "Scope": "headscope.analysis",
    "SegmentsCorpus": "headscope.corpus",
    "Settings": "headscope.spec",
    "TextCorpus": "headscope.corpus",
    "TreebankCorpus": "headscope.corpus",
    "Variable": "headscope.result",
    "atlas": "headscope.run",
    "check_analysis": "headscope.testing",
    "compare": "headscope.comparison.compare",
    "demo_corpus": "headscope.corpus",
    "flow": "headscope.flows.of_text",
    "known_analyses": "headscope.analysis",
    "labelled": "headscope.result",
    "load": "headscope.model",
    "open_run": "headscope.finished_run",
    "register": "headscope.analysis",
    "view": "headscope.views.view",
    "view_arrays": "headscope.views.arrays",
    "zoo": "headscope.zoos.zoo",
}
__all__ = sorted(_WHERE)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"headscope has no {name!r}; public are {', '.join(__all__)}")
    return getattr(import_module(_WHERE[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
