"""One file per analysis; importing this package registers them all."""

from headscope.analyses.divergence import Divergence
from headscope.analyses.entropy import Entropy
from headscope.analyses.mixing import Mixing
from headscope.analyses.norms import Norms
from headscope.analyses.surface import Surface

__all__ = ["Divergence", "Entropy", "Mixing", "Norms", "Surface"]
