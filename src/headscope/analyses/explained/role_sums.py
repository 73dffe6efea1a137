"""How much of all that a head gathers does each of its rules explain?

Here a query counts by how much it gathers, Σ_k α‖f(x_k)‖, where `rule_share` takes all queries
alike: one at rest on a token of which hardly anything is taken counts for little, whatever other
tokens that little is taken from.
"""

from __future__ import annotations

import numpy as np
import torch

from headscope.claims.terms import OURS
from headscope.core.accumulators import Float64, ratio
from headscope.core.results import Variable
from headscope.model.batch import to_float64


class RoleSums:
    """Sums over the queries of inputs that chose no rule.

    layers, heads, slots  how many; slots: places of rules, the rest last
    """

    def __init__(self, layers: int, heads: int, slots: int) -> None:
        self.gathered: Float64 = np.zeros((layers, heads))
        self.by_rule: Float64 = np.zeros((layers, heads, slots))

    def add(self, layer: int, explained: torch.Tensor, amount: torch.Tensor) -> None:
        """Add one input.

        explained  [head, slot, query] what each rule explains of the query's row of sum 1
        amount     [head, query] how much the query gathers
        """
        self.gathered[layer] += to_float64(amount.sum(-1))
        self.by_rule[layer] += to_float64(torch.einsum("hsq,hq->hs", explained, amount))

    def variables(self) -> dict[str, Variable]:
        """role_share[layer, head, slot], the rest last; NaN of a head that gathers nothing."""
        share = ratio(self.by_rule, self.gathered[..., None])
        dims = ("layer", "head", "slot")
        said = "share of all that the head gathers, queries by how much they do; the rest last"
        return {"role_share": Variable(share, dims, said, "probability", OURS, tidy=False)}
