"""What a package that adds to headscope needs: analyses, rules, formats of files.

    import headscope as hs

    class Largest(hs.plugins.Analysis): ...

Each name is imported when it is first used: words and pictures of a question need no torch.
"""

from headscope import imported_when_used

_WHERE = {
    "Analysis": "headscope.run.analysis",
    "AttentionRule": "headscope.claims.attention_rule",
    "Batch": "headscope.model.batch",
    "Claim": "headscope.claims.claim",
    "ClaimPlan": "headscope.claims.plan",
    "FileFormat": "headscope.corpus.places",
    "Grid": "headscope.claims.plan",
    "LabelRule": "headscope.claims.plan",
    "LayerView": "headscope.model.layer",
    "Panel": "headscope.draw.panel",
    "PicturePlan": "headscope.claims.plan",
    "Question": "headscope.claims.question",
    "Reading": "headscope.claims.reading",
    "Scope": "headscope.run.analysis",
    "SectionPlan": "headscope.page.sections",
    "Term": "headscope.claims.terms",
    "Variable": "headscope.core.results",
    "check_analysis": "headscope.run.check_analysis",
    "known_analyses": "headscope.run.analysis",
    "labelled": "headscope.core.results",
    "register": "headscope.run.analysis",
}
__all__ = sorted(_WHERE)  # noqa: PLE0605
__getattr__ = imported_when_used("headscope.plugins", _WHERE)


def __dir__() -> list[str]:
    return __all__
