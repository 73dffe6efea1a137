"""One folder per question that is asked of every head."""

from headscope.analyses.cls_attention.measure import ClsAttention
from headscope.analyses.coreference.measure import Coreference
from headscope.analyses.dependency.measure import Dependency
from headscope.analyses.divergence.measure import Divergence
from headscope.analyses.entropy.measure import Entropy
from headscope.analyses.examples.measure import Examples
from headscope.analyses.features.measure import Features
from headscope.analyses.flow.measure import Flow
from headscope.analyses.frames.measure import Frames
from headscope.analyses.mixing.measure import Mixing
from headscope.analyses.neurons.measure import Neurons
from headscope.analyses.norms.measure import Norms
from headscope.analyses.pairs.measure import Pairs
from headscope.analyses.patterns.measure import Patterns
from headscope.analyses.surface.measure import Surface
