"""Which model and texts do the tests of replay share?"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from experiments.circuits.decoders import network, words
from headscope.corpus import Corpus
from headscope.experiments.replay.choosing import read_inputs
from headscope.experiments.replay.scored_model import ScoredModel
from headscope.experiments.replay.settings import ReplaySettings
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


def inputs_of(scored: ScoredModel, corpus: Corpus, settings: ReplaySettings) -> Any:
    """All inputs of a short corpus, and what was left out."""
    return read_inputs(scored.model, corpus, settings, enough=1000, limit=None, seed=settings.seed)
