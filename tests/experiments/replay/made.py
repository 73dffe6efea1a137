"""Which model and texts do the tests of replay share?"""

from __future__ import annotations

from functools import cache

import numpy as np

from experiments.circuits.decoders import network, words
from headscope.model.language_model import LanguageModel
from headscope.model.model import Model
from headscope.run.execution import Execution

STOCK = Execution(linears="stock")
FEW = {"inputs": 6, "choosing": 6, "replicates": 20}


def texts(count: int = 12, *, seed: int = 0, tokens: int = 10) -> list[str]:
    """Texts of drawn words, some of which come again."""
    rng = np.random.default_rng(seed)
    return [
        " ".join(f"w{at}" for at in rng.integers(2, 20, tokens + row % 3)) for row in range(count)
    ]


@cache
def exact(name: str = "Llama") -> LanguageModel:
    """A tiny decoder in float64."""
    return LanguageModel(Model(network(name, exact=True), words(), name, "", name), "causal")
