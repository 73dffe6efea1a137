"""The names for type checkers; each is imported when it is first used (`plugins.py`)."""

from headscope.claims.attention_rule import AttentionRule as AttentionRule
from headscope.claims.claim import Claim as Claim
from headscope.claims.plan import ClaimPlan as ClaimPlan
from headscope.claims.plan import Grid as Grid
from headscope.claims.plan import LabelRule as LabelRule
from headscope.claims.plan import PicturePlan as PicturePlan
from headscope.claims.question import Question as Question
from headscope.claims.reading import Reading as Reading
from headscope.claims.terms import Term as Term
from headscope.core.results import Variable as Variable
from headscope.core.results import labelled as labelled
from headscope.corpus.places import FileFormat as FileFormat
from headscope.draw.panel import Panel as Panel
from headscope.model.batch import Batch as Batch
from headscope.model.layer import LayerView as LayerView
from headscope.page.sections import SectionPlan as SectionPlan
from headscope.run.analysis import Analysis as Analysis
from headscope.run.analysis import Scope as Scope
from headscope.run.analysis import known_analyses as known_analyses
from headscope.run.analysis import register as register
from headscope.run.check_analysis import check_analysis as check_analysis
