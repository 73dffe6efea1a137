"""Of which class are the maps of each head: vertical, diagonal, both, block, or none of these?

Kovaleva et al. (2019), section 4.1: a small convolutional network, learned from maps that were
labelled by eye, tells every map's class. Theirs was not published; ours is
`patterns.measure_network`, and its card says how far it can be trusted.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import torch
import xarray as xr

from headscope.analyses.patterns.classes import NAMES
from headscope.analyses.patterns.measure_network import read_classifier, seen
from headscope.analyses.patterns.measure_typical import TypicalMapRecords
from headscope.core.accumulators import Float64, estimate
from headscope.core.labelled import Variable, labelled
from headscope.model.batch import Batch, to_float64
from headscope.model.layer import LayerView
from headscope.run.analysis import Analysis, Scope, ratio_of

AT_ONCE = 24  # maps: what their layers hold stays in the cache, which halves the time
LEAST_TOKENS = 10  # a smaller map shows no pattern: none was labelled


class Patterns(Analysis):
    """How often the maps of a head are of each class, how sure the classifier is, and examples.

    classifier    folder of another classifier (`headscope patterns train`); "" for the bundled one
    least_tokens  inputs of fewer are left out
    """

    name: ClassVar[str] = "patterns"
    needs: ClassVar[frozenset[str]] = frozenset({"attention"})
    summary: ClassVar[str] = "classes of maps: vertical, diagonal, both, block, heterogeneous"
    source: ClassVar[str] = "Kovaleva et al. 2019, §4.1"

    def __init__(
        self, scope: Scope, *, classifier: str = "", least_tokens: int = LEAST_TOKENS
    ) -> None:
        super().__init__(scope)
        if least_tokens < 1:
            raise ValueError(f"least_tokens is {least_tokens!r}; wanted 1 or more")
        self.least_tokens = least_tokens
        self.network, self.sha256 = read_classifier(classifier)
        self.maps = self.sums(scope.layers, scope.heads, len(NAMES))
        self.sure = self.sums(scope.layers, scope.heads)
        self.count = self.sums()
        self.typical = TypicalMapRecords(scope, NAMES)

    def observe(self, layer: LayerView, batch: Batch) -> None:
        """Tell the class of every map of the layer."""
        rows = np.flatnonzero(batch.lengths >= self.least_tokens)
        if not len(rows):
            return
        lengths = batch.lengths[rows]
        maps = [layer.attention[row, :, :n, :n] for row, n in zip(rows, lengths, strict=True)]
        told = self._told(maps)
        label, largest = told.argmax(-1), told.max(-1)  # [example, head]
        is_label = np.arange(len(NAMES)) == label[..., None]  # [example, head, class]
        weights = batch.bootstrap[rows]
        self.maps.add(is_label * 1.0, weights, at=(layer.index,))
        self.sure.add(largest, weights, at=(layer.index,))
        if layer.index == 0:
            self.count.add(np.ones(len(rows)), weights)
        for place, row in enumerate(rows.tolist()):
            scores = told[place] * is_label[place]
            self.typical.add(layer.index, batch.examples[row], scores, maps[place])

    def result(self) -> xr.Dataset:
        """share[layer, head, pattern], confidence[layer, head], and typical maps."""
        share = self.mean(self.maps, self.count)
        draws = ratio_of(self.maps, self.count)
        by_layer, whole = (
            estimate(draws.mean(axes), documents=self.scope.documents) for axes in (2, (1, 2))
        )
        told = "share of maps that are of the class"
        variables = {
            "share": Variable(
                share, ("layer", "head", "pattern"), told, "probability", self.source
            ),
            "layer_share": Variable(
                by_layer, ("layer", "pattern"), f"{told}, mean over heads", "probability",
                self.source,
            ),
            "model_share": Variable(
                whole, ("pattern",), f"{told}, mean over all heads", "probability", self.source
            ),
            "confidence": Variable(
                self.mean(self.sure, self.count), ("layer", "head"),
                "mean probability of the class that was told", "probability", self.source,
            ),
        }  # fmt: skip
        typical, coords = self.typical.variables(share.value, self.source)
        dataset = labelled({**variables, **typical}, coords={"pattern": NAMES})
        dataset["typical"].encoding = {"zlib": True}  # mostly NaN
        for name in typical:
            dataset[name].attrs["tidy"] = 0  # to be looked at, not to be counted
        told_by = {"classifier_sha256": self.sha256, "least_tokens": self.least_tokens}
        return dataset.assign_coords(coords).assign_attrs(told_by)

    def _told(self, maps: list[torch.Tensor]) -> Float64:
        """[example, head, class] probabilities; maps of each example [head, query, key]."""
        self.network.to(maps[0].device)
        pictures = torch.cat([seen(part.float()) for part in maps])  # [example·head, picture, …]
        with torch.inference_mode():
            logits = torch.cat([self.network(part) for part in torch.split(pictures, AT_ONCE)])
        probabilities = logits.double().softmax(-1).view(len(maps), -1, len(NAMES))
        return to_float64(probabilities)  # [example, head, class]
