"""What does [CLS] attend to in the last layer, where classifiers read it?

Per head of the last layer the attention from [CLS] to the tokens of each kind, the largest of
them; then the mean over the inputs that have such tokens (Kovaleva et al. 2019, §4.5, on the heads
of fine-tuned models). What is a noun, a subject, a negation: as in `features`.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import torch
import xarray as xr

from headscope.analyses.features.measure import FEATURES as ALL
from headscope.analyses.features.measure import UNITS, token_features, token_groups
from headscope.analyses.features.negation import negation_words
from headscope.core.labelled import Variable, labelled
from headscope.model.batch import Batch
from headscope.model.layer import LayerView
from headscope.run.analysis import MEASURES, Analysis, Scope, check_option

FEATURES = tuple(name for name in ALL if name != "cls")
_TEXT = {
    "attention": "attention of [CLS] in the last layer",
    "weighted_norm": "weighted norm into [CLS] in the last layer",
}


class ClsAttention(Analysis):
    """Attention of [CLS] in the last layer to the most attended noun, verb, …, mark and [SEP].

    language  whose list of negation words is used; "none": no list
    negation  further negation words, separated by commas
    measure   "attention" or "weighted_norm"

    Only inputs with tags count, and only those that open with [CLS]: a model whose tokenizer has
    none gets NaN everywhere.
    """

    name: ClassVar[str] = "cls_attention"
    needs: ClassVar[frozenset[str]] = frozenset({"attention", "words", "tags"})
    summary: ClassVar[str] = "what [CLS] attends to in the last layer"
    source: ClassVar[str] = "Kovaleva et al. 2019, §4.5"

    def __init__(
        self,
        scope: Scope,
        *,
        language: str = "en",
        negation: str = "",
        measure: str = "attention",
    ) -> None:
        super().__init__(scope)
        check_option("measure", measure, MEASURES)
        self.negation = negation_words(language, negation)
        self.options = {"language": language, "negation": negation, "measure": measure}
        self.total = self.sums(scope.heads, len(FEATURES))
        self.count = self.sums(len(FEATURES))

    def observe(self, layer: LayerView, batch: Batch) -> None:
        """Add each input's largest weight from [CLS] to every kind, in the last layer."""
        if layer.index != self.scope.layers - 1:
            return
        features = token_features(batch, self.negation)  # [example, feature, token]
        features[~batch.is_cls.any(-1).cpu().numpy()] = False
        if not features.any():
            return
        groups = token_groups(np.delete(features, ALL.index("cls"), 1))
        at = batch.is_cls.int().argmax(-1)  # [example]
        every = torch.arange(len(at), device=at.device)
        rows = layer.measured(self.options["measure"])[every, :, at]  # [example, head, key]
        self.total.add(groups.largest(rows), batch.bootstrap)
        self.count.add(groups.present, batch.bootstrap)

    def result(self) -> xr.Dataset:
        """attention[head, feature]; count[feature], the inputs that have such tokens."""
        measure = self.options["measure"]
        variables = {
            "attention": Variable(
                self.mean(self.total, self.count), ("head", "feature"),
                _TEXT[measure], UNITS[measure], self.source,
            ),
            "count": Variable(
                self.count.sums[0].astype(np.int64), ("feature",),
                "inputs that have such tokens", "1", self.source,
            ),
        }  # fmt: skip
        return labelled(variables, coords={"feature": FEATURES}).assign_attrs(self.options)
