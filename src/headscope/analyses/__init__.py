"""One file per analysis; importing this package registers them all."""

from headscope.analyses.cls_attention import ClsAttention
from headscope.analyses.coreference import Coreference
from headscope.analyses.dependency import Dependency
from headscope.analyses.divergence import Divergence
from headscope.analyses.entropy import Entropy
from headscope.analyses.examples import Examples
from headscope.analyses.features import Features
from headscope.analyses.flow import Flow
from headscope.analyses.frames import Frames
from headscope.analyses.mixing import Mixing
from headscope.analyses.neurons import Neurons
from headscope.analyses.norms import Norms
from headscope.analyses.pairs import Pairs
from headscope.analyses.patterns import Patterns
from headscope.analyses.surface import Surface

__all__ = [
    "ClsAttention",
    "Coreference",
    "Dependency",
    "Divergence",
    "Entropy",
    "Examples",
    "Features",
    "Flow",
    "Frames",
    "Mixing",
    "Neurons",
    "Norms",
    "Pairs",
    "Patterns",
    "Surface",
]
