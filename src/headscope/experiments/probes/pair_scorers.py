"""The probes that score every word of a sentence, and ROOT, as the head of every word.

    scores = AttentionProbe(units, constant_root=False)(look)    # [dependent, candidate]

Candidate 0 is ROOT, candidate i the i-th word. p(candidate | dependent) is the softmax of a row; a
word may be its own candidate (Clark et al. 2019, §5, and their code). Weights begin as TensorFlow
begins them there, by Glorot's uniform distribution, and biases at 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

HIDDEN = 256  # of the probe on distances
NEAR = (0, 1, -1, 2, -2)  # offsets that have an indicator of their own
DISTANCE_FEATURES = 2 + len(NEAR) + 1


@dataclass(frozen=True)
class ProbeInput:
    """One sentence as a probe sees it.

    words    how many there are
    maps     [word + 2, word + 2, unit] attention, see `attention_shape`; None where the
             probe needs none
    vectors  [word, dim] word vectors; None likewise
    """

    words: int
    maps: torch.Tensor | None = None
    vectors: torch.Tensor | None = None


class AttentionProbe(nn.Module):
    """Σ_k w_k α^k_ij + u_k α^k_ji, for dependent i and candidate j, over all heads k.

    weight         [direction, unit] w, then u
    root           the two scalars by which attention to (and from) the first and the last special
                   token makes that of ROOT, shared by all heads
    constant_root  for models without special tokens: ROOT's score is one learned number

    Clark et al. (2019), §5.
    """

    def __init__(self, units: int, *, constant_root: bool) -> None:
        super().__init__()
        self.weight = nn.Parameter(_uniform(2, units, fan=4 * units))
        self.root = nn.Parameter(torch.zeros(1) if constant_root else _uniform(2, fan=2))

    def forward(self, look: ProbeInput) -> torch.Tensor:
        """[dependent, candidate] scores."""
        to, back = both_ways(look, self.root)
        scores = to @ self.weight[0] + back @ self.weight[1]
        return with_constant_root(scores, self.root)


class AttentionAndWordsProbe(nn.Module):
    """As `AttentionProbe`, every weight a linear map, with bias, of the vectors of both words.

    dependent, candidate  [dim, direction·unit]; bias [direction·unit]
    legacy_root_shift     each candidate gets the vector of the next word, see `pair_vectors`

    Clark et al. (2019), §5. The weights of all pairs of words are never made: what the dependent
    and what the candidate adds are summed apart.
    """

    def __init__(
        self, units: int, dim: int, *, constant_root: bool, legacy_root_shift: bool
    ) -> None:
        super().__init__()
        fan = 2 * dim + 2 * units
        self.dependent = nn.Parameter(_uniform(dim, 2 * units, fan=fan))
        self.candidate = nn.Parameter(_uniform(dim, 2 * units, fan=fan))
        self.bias = nn.Parameter(torch.zeros(2 * units))
        self.root = nn.Parameter(torch.zeros(1) if constant_root else _uniform(2, fan=2))
        self.legacy_root_shift = legacy_root_shift

    def forward(self, look: ProbeInput) -> torch.Tensor:
        """[dependent, candidate] scores."""
        assert look.vectors is not None
        maps = torch.cat(both_ways(look, self.root), -1)  # [dependent, candidate, 2·unit]
        candidates, paired = pair_vectors(look.vectors, legacy_root_shift=self.legacy_root_shift)
        of_dependent = look.vectors @ self.dependent  # [dependent, 2·unit]
        of_candidate = candidates @ self.candidate  # [candidate, 2·unit]
        scores = torch.einsum("ijk,ik->ij", maps, of_dependent) * paired
        scores = scores + torch.einsum("ijk,jk->ij", maps, of_candidate) + maps @ self.bias
        return with_constant_root(scores, self.root)


class DistancesAndWordsProbe(nn.Module):
    """One layer of 256 tanh over the vectors of both words and where they stand.

    Clark et al. (2019), §5; no attention.
    """

    def __init__(self, dim: int, *, legacy_root_shift: bool) -> None:
        super().__init__()
        fan = DISTANCE_FEATURES + 2 * dim + HIDDEN
        self.place = nn.Parameter(_uniform(DISTANCE_FEATURES, HIDDEN, fan=fan))
        self.dependent = nn.Parameter(_uniform(dim, HIDDEN, fan=fan))
        self.candidate = nn.Parameter(_uniform(dim, HIDDEN, fan=fan))
        self.bias = nn.Parameter(torch.zeros(HIDDEN))
        self.out = nn.Parameter(_uniform(HIDDEN, fan=HIDDEN + 1))
        self.legacy_root_shift = legacy_root_shift

    def forward(self, look: ProbeInput) -> torch.Tensor:
        """[dependent, candidate] scores; the bias of a last layer would change no softmax."""
        assert look.vectors is not None
        candidates, paired = pair_vectors(look.vectors, legacy_root_shift=self.legacy_root_shift)
        of_dependent = (look.vectors @ self.dependent)[:, None] * paired[:, None]
        hidden = of_dependent + (candidates @ self.candidate)[None]
        hidden = hidden + distance_features(look.words) @ self.place + self.bias
        return torch.tanh(hidden) @ self.out  # [dependent, candidate]


def both_ways(look: ProbeInput, root: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """[dependent, candidate, unit] attention from the dependent to the candidate, and back.

    ROOT's is a mixture of that to (and from) the first and the last special token; 0 where its
    score is a constant.
    """
    assert look.maps is not None
    maps = look.maps.float()
    first, last = (root[0], root[1]) if len(root) == 2 else (root.new_zeros(()),) * 2
    found = []
    for one in (maps, maps.transpose(0, 1)):  # [word + 2, word + 2, unit]
        mixed = first * one[1:-1, 0] + last * one[1:-1, -1]  # [dependent, unit]
        found.append(torch.cat([mixed[:, None], one[1:-1, 1:-1]], 1))
    return found[0], found[1]


def with_constant_root(scores: torch.Tensor, root: torch.Tensor) -> torch.Tensor:
    """The scores [dependent, candidate], ROOT's the one number of `root` if it holds only one."""
    if len(root) == 2:
        return scores
    return torch.cat([root.expand(len(scores), 1), scores[:, 1:]], 1)


def pair_vectors(
    vectors: torch.Tensor, *, legacy_root_shift: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """The vector of every candidate, and whether the dependent's stands beside it.

    vectors  [word, dim]
    returns  [candidate, dim], 0 for ROOT; [candidate] 1.0, and 0.0 for ROOT

    With `legacy_root_shift` the zeros stand behind the last word and not in ROOT's place, so that
    ROOT gets the first word's vector, the first word the second's, and so on: the original code.
    """
    none, one = vectors.new_zeros(1, vectors.shape[1]), vectors.new_ones(len(vectors))
    if legacy_root_shift:
        return torch.cat([vectors, none]), torch.cat([one, one.new_zeros(1)])
    return torch.cat([none, vectors]), torch.cat([one.new_zeros(1), one])


def distance_features(words: int) -> torch.Tensor:
    """[dependent, candidate, feature] where a candidate stands from a dependent.

    Distance/n to a candidate behind, to one before, indicators of the offsets NEAR, and of ROOT,
    which has no other.
    """
    at = torch.arange(words)
    offset = at[None] - at[:, None]  # [dependent, word]
    parts = [offset.clamp_min(0) / words, (-offset).clamp_min(0) / words]
    parts += [(offset == near).float() for near in NEAR]
    of_words = torch.stack([*parts, torch.zeros(words, words)], -1)  # [dependent, word, feature]
    of_root = torch.zeros(words, 1, DISTANCE_FEATURES)
    of_root[..., -1] = 1
    return torch.cat([of_root, of_words], 1)  # [dependent, candidate, feature]


def _uniform(*shape: int, fan: int) -> torch.Tensor:
    """Glorot and Bengio (2010): uniform within ±√(6 / (inputs + outputs)); `fan` is that sum."""
    limit = (6 / fan) ** 0.5
    return torch.empty(shape).uniform_(-limit, limit)
