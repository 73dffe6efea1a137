"""headscope tells what every attention head of a transformer looks at.

    import headscope as hs
    run = hs.atlas("demo", ["The cat sat on the mat.", "It slept."])
    run["flow"]

This page lists what is public; each name is imported when it is first used. Readers of corpora with
their options are in `hs.corpus`, what asks single prompts of a decoder is in `hs.prompts`, what a
package that adds to headscope needs is in `hs.plugins`.
"""

import os
import sys
import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

# Otherwise MKL, torch's products on Intel processors, splits small products among its threads, and
# their last bits depend on how many there are. MKL reads this at its first product.
os.environ.setdefault("MKL_CBWR", "AUTO,STRICT")

__version__ = "0.1.0"

_WHERE = {
    "Execution": "headscope.run.execution",
    "HeadscopeCallback": "headscope.experiments.evolution.trainer_callback",
    "HeadscopeError": "headscope.errors",
    "Instrument": "headscope.model.instrument",
    "Model": "headscope.model.model",
    "Run": "headscope.run.store",
    "Settings": "headscope.run.settings",
    "ablate": "headscope.experiments.ablation.ablate",
    "atlas": "headscope.run.atlas",
    "circuits": "headscope.experiments.circuits.circuits",
    "cite": "headscope.report.cite",
    "compare": "headscope.experiments.comparison.compare",
    "corpus_of": "headscope.corpus",
    "demo_corpus": "headscope.corpus",
    "finetune": "headscope.experiments.finetune.finetune",
    "evolve": "headscope.experiments.evolution.evolve",
    "explain": "headscope.analyses.explained.rules_as_data",
    "export_site": "headscope.report.site",
    "forecast": "headscope.run.forecast",
    "flow": "headscope.analyses.flow.measure_one_text",
    "importance": "headscope.experiments.importance.importance",
    "load": "headscope.model.model",
    "open_run": "headscope.run.store",
    "options": "headscope.core.head_names",
    "probe": "headscope.experiments.probes.probe",
    "prune": "headscope.experiments.ablation.prune",
    "replay": "headscope.experiments.replay.replay",
    "reproduce": "headscope.papers.reproduce",
    "serve": "headscope.live.from_python",
    "study": "headscope.experiments.study.study",
    "trial": "headscope.experiments.trial.trial",
    "view": "headscope.views.view",
    "view_arrays": "headscope.views.view_arrays",
    "view_prompts": "headscope.experiments.circuits.prompt_page",
    "zoo": "headscope.papers.zoo.zoo",
}
# What methods of a run do, in rooms that a run does not know.
_OF_RUNS = {
    "find_heads": "headscope.heads.head_frame",
    "head_frame": "headscope.heads.head_frame",
    "run_figure": "headscope.draw.figures",
    "run_summary": "headscope.report.run_facts",
    "write_report": "headscope.report.build",
}
_ROOMS = ("corpus", "plugins", "prompts")  # that are used by their names
__all__ = sorted([*_WHERE, *_ROOMS])  # noqa: PLE0605


def _without(name: str) -> str:
    for room in _ROOMS:
        if name in import_module(f"headscope.{room}").__all__:
            return f"headscope has no {name!r}; wanted headscope.{room}.{name}"
    return f"headscope has no {name!r}; its public names are {', '.join(__all__)}"


def imported_when_used(module: str, where: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a module whose names are imported when they are first used.

    where  name -> module that has it
    """

    def get(name: str) -> Any:
        if name not in where:
            raise AttributeError(
                f"{module} has no {name!r}; its public names are {', '.join(sorted(where))}"
            )
        return getattr(import_module(where[name]), name)

    return get


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"headscope.{name}")
    where = _WHERE | _OF_RUNS
    if name not in where:
        raise AttributeError(_without(name))
    with warnings.catch_warnings():  # without widgets bars are of text
        warnings.filterwarnings("ignore", "IProgress not found")
        if "ipykernel" in sys.modules:  # once imported it warns no more
            import_module("tqdm.auto")
        return getattr(import_module(where[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
