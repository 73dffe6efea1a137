"""What a package that adds to headscope needs: analyses, rules, formats of files, papers.

    import headscope as hs

    class Largest(hs.plugins.Analysis): ...

Each name is imported when it is first used: words and pictures of a question need no torch.
Networks of known heads, to try an analysis on, are in `hs.plugins.wired`.
"""

from importlib import import_module
from typing import Any

from headscope import imported_when_used

_WHERE = {
    "Analysis": "headscope.run.analysis",
    "AttentionRule": "headscope.claims.attention_rule",
    "Batch": "headscope.model.batch",
    "Claim": "headscope.claims.claim",
    "ClaimGroup": "headscope.papers.claim_engine",
    "ClaimPlan": "headscope.claims.plan",
    "DrawnPanel": "headscope.claims.plan",
    "FileFormat": "headscope.corpus.places",
    "Grid": "headscope.claims.plan",
    "LabelRule": "headscope.claims.plan",
    "LayerLines": "headscope.claims.plan",
    "LayerMarks": "headscope.claims.plan",
    "LayerView": "headscope.model.layer",
    "Measured": "headscope.papers.quantities",
    "Panel": "headscope.draw.panel",
    "Paper": "headscope.papers.claim_engine",
    "PaperClaim": "headscope.papers.claim_engine",
    "PaperRun": "headscope.papers.quantities",
    "PicturePlan": "headscope.claims.plan",
    "Question": "headscope.claims.question",
    "Reading": "headscope.claims.reading",
    "Scope": "headscope.run.analysis",
    "SectionPlan": "headscope.page.sections",
    "Source": "headscope.claims.bibliography",
    "Term": "headscope.claims.terms",
    "Variable": "headscope.core.results",
    "Workspace": "headscope.papers.workspace",
    "check_analysis": "headscope.run.check_analysis",
    "known_analyses": "headscope.run.known_analyses",
    "labelled": "headscope.core.results",
    "reads": "headscope.papers.quantities",
    "register": "headscope.run.known_analyses",
}
_ROOMS = ("wired",)
__all__ = sorted([*_WHERE, *_ROOMS])  # noqa: PLE0605
_get = imported_when_used("headscope.plugins", _WHERE)


def __getattr__(name: str) -> Any:
    return import_module(f"headscope.{name}") if name in _ROOMS else _get(name)


def __dir__() -> list[str]:
    return __all__
