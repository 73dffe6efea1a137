"""Networks of known heads: real transformers whose weights are written, not learned.

language ─► features ─► heads, catalogue ─► stream ─► networks ─► truth (what was said of them)

A head is wired to match one feature of a token against another, to look a fixed number of tokens
away, and to write what it reads somewhere, or nowhere (METHODS: Tracr, Lindner et al. 2023). So
what a tool says of the head can be right or wrong.
"""

from headscope.wired.features import HEAD_SLOT, SLOT, Feature
from headscope.wired.heads import Match, Said, Value, WiredHead
from headscope.wired.language import annotated_corpus, long_corpus, pair_corpus
from headscope.wired.networks import Wired, wire

__all__ = [
    "HEAD_SLOT",
    "SLOT",
    "Feature",
    "Match",
    "Said",
    "Value",
    "Wired",
    "WiredHead",
    "annotated_corpus",
    "long_corpus",
    "pair_corpus",
    "wire",
]
