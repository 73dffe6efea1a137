"""One file per analysis; importing this package registers them all."""

from headscope.analyses.coreference import Coreference
from headscope.analyses.dependency import Dependency
from headscope.analyses.divergence import Divergence
from headscope.analyses.entropy import Entropy
from headscope.analyses.examples import Examples
from headscope.analyses.mixing import Mixing
from headscope.analyses.norms import Norms
from headscope.analyses.surface import Surface

__all__ = [
    "Coreference",
    "Dependency",
    "Divergence",
    "Entropy",
    "Examples",
    "Mixing",
    "Norms",
    "Surface",
]
