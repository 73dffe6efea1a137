"""The public names for type checkers; each is imported when it is first used (`__init__.py`)."""

from headscope import corpus as corpus
from headscope import plugins as plugins
from headscope import prompts as prompts
from headscope.analyses.explained.rules_as_data import explain as explain
from headscope.analyses.flow.measure_one_text import flow as flow
from headscope.core.head_names import options as options
from headscope.corpus import corpus_of as corpus_of
from headscope.corpus import demo_corpus as demo_corpus
from headscope.draw.figures import run_figure as run_figure
from headscope.errors import HeadscopeError as HeadscopeError
from headscope.experiments.ablation.ablate import ablate as ablate
from headscope.experiments.ablation.prune import prune as prune
from headscope.experiments.circuits.circuits import circuits as circuits
from headscope.experiments.circuits.prompt_page import view_prompts as view_prompts
from headscope.experiments.comparison.compare import compare as compare
from headscope.experiments.evolution.evolve import evolve as evolve
from headscope.experiments.evolution.trainer_callback import HeadscopeCallback as HeadscopeCallback
from headscope.experiments.finetune.finetune import finetune as finetune
from headscope.experiments.importance.importance import importance as importance
from headscope.experiments.probes.probe import probe as probe
from headscope.experiments.replay.replay import replay as replay
from headscope.experiments.study.study import study as study
from headscope.experiments.trial.trial import trial as trial
from headscope.heads.head_frame import find_heads as find_heads
from headscope.heads.head_frame import head_frame as head_frame
from headscope.live.from_python import serve as serve
from headscope.model.instrument import Instrument as Instrument
from headscope.model.model import Model as Model
from headscope.model.model import load as load
from headscope.papers.reproduce import reproduce as reproduce
from headscope.papers.zoo.zoo import zoo as zoo
from headscope.report.build import write_report as write_report
from headscope.report.cite import cite as cite
from headscope.report.run_facts import run_summary as run_summary
from headscope.report.site import export_site as export_site
from headscope.run.atlas import atlas as atlas
from headscope.run.execution import Execution as Execution
from headscope.run.forecast import forecast as forecast
from headscope.run.settings import Settings as Settings
from headscope.run.store import Run as Run
from headscope.run.store import open_run as open_run
from headscope.views.view import view as view
from headscope.views.view_arrays import view_arrays as view_arrays

__version__: str
