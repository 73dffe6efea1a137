"""Which maps of a page say where representations come from, over all layers below?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headscope.analyses.flow.measure_one_text import Floats as Float64
from headscope.analyses.flow.measure_one_text import LayerMatrices
from headscope.analyses.flow.methods import LABELS
from headscope.model.batch import Batch
from headscope.views.example import Measure

MAX_FLOW = "max_flow"
OF = "rollout"  # whose layer matrices the maximum flow runs through (Abnar & Zuidema 2020)
NAMES = {**LABELS, MAX_FLOW: "maximum flow"}


@dataclass(frozen=True)
class Following:
    """The flows that a page shows of one example.

    names  of `flows.METHODS`, and MAX_FLOW
    watch  sees every layer
    """

    names: Sequence[str]
    watch: LayerMatrices

    @classmethod
    def of(cls, names: Sequence[str], batch: Batch) -> Following:
        """Nothing seen yet; `batch` is the one example as it is run."""
        methods = dict.fromkeys(OF if name == MAX_FLOW else name for name in names)
        return cls(names, LayerMatrices(tuple(methods), batch))

    def measures(self, window: slice) -> tuple[Measure, ...]:
        """One measure for each name: maps [layer, 1, query, key] of the tokens in the window.

        raises  InputError where a maximum flow is of too many tokens
        """
        return tuple(self._measure(name, window) for name in self.names)

    def _measure(self, name: str, window: slice) -> Measure:
        maps, unit = self._maps(name), "1" if name == MAX_FLOW else "probability"
        cut = maps[:, None, window, window]  # [layer, 1, query, key]
        return Measure(name, NAMES[name], unit, cut.astype("float32"))

    def _maps(self, name: str) -> Float64:
        """[layer, query, key] over all layers up to each."""
        if name != MAX_FLOW:
            return self.watch.rollout(name)
        return self.watch.max_flow(OF, range(len(self.watch.matrices(OF))))
