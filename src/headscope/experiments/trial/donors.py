"""What a head gathers in other inputs, where its rule leads to the same token, or to another one.

If a head carries the token that its label names, the first may stand in for what it gathers here,
and the second may not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import torch

from headscope.corpus.document import Example
from headscope.experiments.trial.queries import Queries
from headscope.model.layer import LayerView
from headscope.model.model import Model, show_layers

SAME_TOKEN, OTHER_TOKEN = "same_token", "other_token"
KEPT = 16  # ours: inputs whose mixtures are held
READ = 120  # ours: inputs, the first ones, that may give


@dataclass
class Donors:
    """Queries of other inputs from which a rule leads to one token alone.

    units  [input] name of its document
    sites  rule -> (input, query, token id) of each
    """

    model: Model
    examples: Sequence[Example]
    units: Sequence[str]
    sites: dict[str, list[tuple[int, int, int]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Mixtures of the latest inputs are kept."""
        self.mixtures: Callable[[int], list[torch.Tensor]] = lru_cache(KEPT)(self._mixtures)

    def note(
        self, at: int, rows: Mapping[str, np.ndarray[tuple[int, int], np.dtype[np.float32]]]
    ) -> None:
        """Keep the queries of an input from which a rule leads to one token alone."""
        if at >= READ:
            return
        for rule, own in rows.items():
            for query in np.flatnonzero((own > 0).sum(-1) == 1).tolist():
                key = int(own[query].argmax())
                token = int(self.examples[at].input_ids[key])
                if token == self.model.tokenizer.mask_token_id:
                    continue  # it may stand for any
                self.sites.setdefault(rule, []).append((at, query, token))

    def pick(
        self, rule: str, at: int, there: Queries, rng: np.random.Generator
    ) -> tuple[Queries, dict[str, tuple[int, int]]] | None:
        """One of the queries of an input, and for it an (input, query) of SAME_TOKEN and of
        OTHER_TOKEN, of other documents; None where there are not both.
        """
        sites, ids = self.sites.get(rule, []), self.examples[at].input_ids
        free = [one for one in sites if self.units[one[0]] != self.units[at]]
        for number in rng.permutation(len(there)).tolist():
            keys = np.flatnonzero(there.keys[number])
            if len(keys) != 1:
                continue
            token = int(ids[keys[0]])
            same = [one for one in free if one[2] == token]
            other = [one for one in free if one[2] != token]
            if same and other:
                picked = {
                    name: some[int(rng.integers(len(some)))][:2]
                    for name, some in ((SAME_TOKEN, same), (OTHER_TOKEN, other))
                }
                return there.at(number), picked
        return None

    def _mixtures(self, at: int) -> list[torch.Tensor]:
        """[layer][head, token, dim] what each head gathers in an input, before W_O."""
        mixed = list[torch.Tensor]()

        def look(view: LayerView) -> None:
            assert view.values is not None
            mixed.append((view.attention[0] @ view.values[0]).clone())

        show_layers(self.model, self.model.batch([self.examples[at]]), look)
        return mixed

    def gathered(
        self, site: tuple[int, int], heads: Sequence[tuple[int, int]]
    ) -> list[torch.Tensor]:
        """[head][1, dim] what these heads gather at a query of an input."""
        mixed, query = self.mixtures(site[0]), site[1]
        return [mixed[layer][head, query : query + 1] for layer, head in heads]
