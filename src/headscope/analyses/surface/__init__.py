"""The question surface: how much attention goes to neighbours and special tokens?"""

from headscope.core.head_attention import NEIGHBOURS, SELF, WORD_KINDS
from headscope.core.question import Question

POSITIONS = tuple(f"attention.{target}" for target in NEIGHBOURS)
KINDS = (
    "attention.cls|attention.first",
    "attention.sep",
    "attention.punctuation",
    "attention.no_token",
)
WORDS = tuple(f"word_attention.{kind}" for kind in WORD_KINDS)
SHOWN = (*POSITIONS, f"attention.{SELF}", *KINDS, *WORDS, "own_evenness")
QUESTION = Question(
    name="surface", package=__name__, title="Attention", place=10, measure="measure:Surface",
    figures="figure:FIGURES", section="figure:SECTIONS", terms="claims:TERMS",
    labels="claims:LABELS",
    shown={"table": SHOWN, "overview": (*POSITIONS, *KINDS), "card": SHOWN, "change": SHOWN},
    compared="Where heads attend", claims="claims:claims", rules="claims:RULES",
    roles="claims:roles",
)  # fmt: skip
