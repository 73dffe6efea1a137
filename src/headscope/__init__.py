"""headscope tells what every attention head of a transformer looks at.

    import headscope as hs
    run = hs.atlas("demo", ["The cat sat on the mat.", "It slept."])
    run["flow"]

This page lists what is public; each name is imported when it is first used.
"""

import os
import sys
import warnings
from importlib import import_module
from typing import Any

# Otherwise MKL, torch's products on Intel processors, splits small products among its threads, and
# their last bits depend on how many there are. MKL reads this at its first product.
os.environ.setdefault("MKL_CBWR", "AUTO,STRICT")

__version__ = "0.1.0"

_WHERE = {
    "Analysis": "headscope.run.analysis",
    "AnnotatedCorpus": "headscope.corpus",
    "Batch": "headscope.model.batch",
    "Claim": "headscope.claims.claim",
    "ClaimPlan": "headscope.claims.plan",
    "ColumnCorpus": "headscope.corpus",
    "CorefCorpus": "headscope.corpus",
    "DatasetCorpus": "headscope.corpus",
    "Execution": "headscope.run.execution",
    "FrameFilters": "headscope.corpus",
    "FramesCorpus": "headscope.corpus",
    "HeadscopeError": "headscope.errors",
    "Instrument": "headscope.model.instrument",
    "LabelRule": "headscope.claims.plan",
    "LayerView": "headscope.model.layer",
    "MemoryCorpus": "headscope.corpus",
    "Model": "headscope.model.model",
    "Panel": "headscope.draw.panel",
    "PicturePlan": "headscope.claims.plan",
    "Question": "headscope.claims.question",
    "Reading": "headscope.claims.reading",
    "Run": "headscope.run.store",
    "Scope": "headscope.run.analysis",
    "SectionPlan": "headscope.page.sections",
    "SegmentsCorpus": "headscope.corpus",
    "Settings": "headscope.run.settings",
    "Term": "headscope.claims.terms",
    "TextCorpus": "headscope.corpus",
    "TreebankCorpus": "headscope.corpus",
    "Variable": "headscope.core.results",
    "ablate": "headscope.experiments.ablation.ablate",
    "atlas": "headscope.run.atlas",
    "check_analysis": "headscope.run.check_analysis",
    "circuits": "headscope.experiments.circuits.circuits",
    "cite": "headscope.report.cite",
    "compare": "headscope.experiments.comparison.compare",
    "corpus_of": "headscope.corpus",
    "demo_corpus": "headscope.corpus",
    "direct_logits": "headscope.experiments.circuits.direct_logits",
    "finetune": "headscope.experiments.finetune.finetune",
    "explain": "headscope.analyses.explained.rules_as_data",
    "export_site": "headscope.report.site",
    "find_heads": "headscope.heads.head_frame",
    "flow": "headscope.analyses.flow.measure_one_text",
    "function_vectors": "headscope.experiments.circuits.head_paths",
    "head_frame": "headscope.heads.head_frame",
    "importance": "headscope.experiments.importance.importance",
    "knockouts": "headscope.experiments.circuits.head_paths",
    "known_analyses": "headscope.run.analysis",
    "labelled": "headscope.core.results",
    "load": "headscope.model.model",
    "open_run": "headscope.run.store",
    "options": "headscope.core.head_names",
    "patch_heads": "headscope.experiments.circuits.patching",
    "path_patch": "headscope.experiments.circuits.head_paths",
    "probe": "headscope.experiments.probes.probe",
    "prune": "headscope.experiments.ablation.prune",
    "register": "headscope.run.analysis",
    "replay": "headscope.experiments.replay.replay",
    "reproduce": "headscope.papers.reproduce",
    "run_figure": "headscope.draw.figures",
    "run_summary": "headscope.report.run_facts",
    "switch_off": "headscope.experiments.circuits.switched_off",
    "trial": "headscope.experiments.trial.trial",
    "view": "headscope.views.view",
    "view_arrays": "headscope.views.view_arrays",
    "view_prompts": "headscope.experiments.circuits.prompt_page",
    "write_report": "headscope.report.build",
    "zoo": "headscope.papers.zoo.zoo",
}
__all__ = sorted(_WHERE)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(
            f"headscope has no {name!r}; its public names are {', '.join(__all__)}"
        )
    with warnings.catch_warnings():  # without widgets bars are of text
        warnings.filterwarnings("ignore", "IProgress not found")
        if "ipykernel" in sys.modules:  # once imported it warns no more
            import_module("tqdm.auto")
        return getattr(import_module(_WHERE[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
