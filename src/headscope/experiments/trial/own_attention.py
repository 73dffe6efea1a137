"""Where a head itself looks most, in the place of a rule: for labels that say what a head does with
whatever token it reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import torch

from headscope.claims.attention_rule import TOKEN, AttentionRule, Rows, RuleInput
from headscope.claims.plan import OWN_KEYS, OWN_NEXT
from headscope.core.head_names import Head
from headscope.corpus.document import Example
from headscope.experiments.trial.hypotheses import own_keys
from headscope.model.layer import LayerView
from headscope.model.model import Model, show_layers

LEAST_WEIGHT = 0.25  # ours: of a query's attention


@dataclass
class OwnAttention:
    """Reads the attention of a model in its inputs; the maps of the latest one are kept."""

    model: Model
    examples: Sequence[Example]
    _kept: tuple[bytes, list[torch.Tensor]] = field(default=(b"", []), init=False)

    def rule_of(self, head: Head, which: str = OWN_KEYS) -> AttentionRule:
        """A query's row is its key of most weight, of LEAST_WEIGHT or more, that is another token
        than itself, the first and special ones.

        which  OWN_NEXT: only where that token comes next in the text
        """
        rows = partial(self._rows, head, which == OWN_NEXT)
        return AttentionRule(own_keys(head, which), TOKEN, rows)

    def _rows(self, head: Head, comes_next: bool, read: RuleInput) -> Rows:
        layer, number = head
        weight = self._maps(read)[layer][number, : len(read), : len(read)].double().numpy().copy()
        weight[:, read.special] = 0
        weight[:, 0] = 0
        np.fill_diagonal(weight, 0)
        there, most = weight.max(-1) >= LEAST_WEIGHT, weight.argmax(-1)
        if comes_next:
            there[:-1] &= read.ids[most[:-1]] == read.ids[1:]
            there[-1:] = False
        return np.asarray(there[:, None] * (most[:, None] == np.arange(len(read))), np.float64)

    def _maps(self, read: RuleInput) -> list[torch.Tensor]:
        """[layer][head, query, key] of an input of `examples`."""
        ids = read.ids.tobytes()
        if self._kept[0] != ids:
            maps = list[torch.Tensor]()

            def look(view: LayerView) -> None:
                maps.append(view.attention[0].cpu())

            example = next(one for one in self.examples if one.input_ids.tobytes() == ids)
            show_layers(self.model, self.model.batch([example]), look)
            self._kept = ids, maps
        return self._kept[1]
