"""Trains and tests probes that score every word, and ROOT, as the head of a word.

    scores = AttentionProbe(units, constant_root=False)(look)    # [dependent, candidate]

Candidate 0 is ROOT, candidate i the i-th word. p(candidate | dependent) is the softmax of a row; a
word may be its own candidate (Clark et al. 2019, §5, and their code). Weights begin as TensorFlow
begins them there, by Glorot's uniform distribution, and biases at 0.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import nn

from headscope.core.accumulators import Ints, generator
from headscope.experiments.probes import trees
from headscope.experiments.probes.feature_files import FeatureFolder
from headscope.experiments.probes.probe_plan import NETWORK, ProbePlan, ProbeTraining
from headscope.experiments.probes.resumable_training import LearningSchedule, drawn_with, train
from headscope.experiments.probes.settings import NEED_WORDS
from headscope.run.shard_files import State

HIDDEN = 256  # of the probe on distances
NEAR = (0, 1, -1, 2, -2)  # offsets that have an indicator of their own
DISTANCE_FEATURES = 2 + len(NEAR) + 1
NO_ANSWER = -2  # as a head: never right


@dataclass(frozen=True)
class ProbeInput:
    """One sentence as input of a probe.

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
    """

    def __init__(self, units: int, *, constant_root: bool) -> None:
        super().__init__()
        self.weight = nn.Parameter(_uniform(2, units, fan=4 * units))
        self.root = _root(constant_root)

    def forward(self, look: ProbeInput) -> torch.Tensor:
        """[dependent, candidate] scores."""
        to, back = both_ways(look, self.root)
        scores = to @ self.weight[0] + back @ self.weight[1]
        return with_constant_root(scores, self.root)


class AttentionAndWordsProbe(nn.Module):
    """As `AttentionProbe`, every weight a linear map, with bias, of the vectors of both words.

    dependent, candidate  [dim, direction·unit]; bias [direction·unit]
    legacy_root_shift     each candidate gets the vector of the next word, see `pair_vectors`

    The weights of all pairs of words are never made: what the dependent
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
        self.root = _root(constant_root)
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
    """A layer of 256 tanh units over both word vectors and their distance; reads no attention."""

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
    attention = []
    for one in (maps, maps.transpose(0, 1)):  # [word + 2, word + 2, unit]
        mixed = first * one[1:-1, 0] + last * one[1:-1, -1]  # [dependent, unit]
        attention.append(torch.cat([mixed[:, None], one[1:-1, 1:-1]], 1))
    return attention[0], attention[1]


def with_constant_root(scores: torch.Tensor, root: torch.Tensor) -> torch.Tensor:
    """The scores [dependent, candidate], with ROOT's column replaced if `root` is one number."""
    if len(root) == 2:
        return scores
    return torch.cat([root.expand(len(scores), 1), scores[:, 1:]], 1)


def pair_vectors(
    vectors: torch.Tensor, *, legacy_root_shift: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """The vector of every candidate, and a flag for those paired with the dependent's vector.

    vectors  [word, dim]
    returns  [candidate, dim], 0 for ROOT; [candidate] 1.0, and 0.0 for ROOT

    With `legacy_root_shift` the zeros stand behind the last word and not in ROOT's place, so that
    ROOT gets the first word's vector, the first word the second's, and so on: the original code.
    """
    place = (0, 1) if legacy_root_shift else (1, 0)  # zeros before and behind the words
    paired = nn.functional.pad(vectors.new_ones(len(vectors)), place)
    return nn.functional.pad(vectors, (0, 0, *place)), paired


def distance_features(words: int) -> torch.Tensor:
    """[dependent, candidate, feature] position of a candidate relative to a dependent.

    Distance/n to a candidate behind, to one before, indicators of the offsets NEAR, and of ROOT,
    which has no other.
    """
    at = torch.arange(words)
    offset = at[None] - at[:, None]  # [dependent, word]
    features = torch.zeros(words, words + 1, DISTANCE_FEATURES)
    features[:, 0, -1] = 1  # ROOT
    features[:, 1:, 0] = offset.clamp_min(0) / words
    features[:, 1:, 1] = (-offset).clamp_min(0) / words
    features[:, 1:, 2:-1] = (offset[..., None] == torch.tensor(NEAR)).float()
    return features


def _uniform(*shape: int, fan: int) -> torch.Tensor:
    """Initial weights (Glorot and Bengio 2010): uniform in ±√(6 / fan), fan = inputs + outputs."""
    limit = (6 / fan) ** 0.5
    return torch.empty(shape).uniform_(-limit, limit)


def _root(constant: bool) -> nn.Parameter:
    return nn.Parameter(torch.zeros(1) if constant else _uniform(2, fan=2))


# --- training and testing ---------------------------------------------------------------------


@dataclass(frozen=True)
class _SeenSplit:
    probe: str
    features: FeatureFolder
    part: int

    @property
    def sentences(self) -> Sequence[trees.TreeSentence]:
        return self.features.plan.splits[self.part].sentences

    def look(self, at: int) -> ProbeInput:
        maps = rows = None
        kind, vectors = NETWORK.get(self.probe), self.features.plan.vectors
        if kind is not None:
            maps = torch.from_numpy(self.features.of(kind)[self.part].read(at).copy())
        if vectors is not None and self.probe in NEED_WORDS:
            rows = torch.from_numpy(vectors.table[vectors.rows(self.sentences[at].forms)])
        return ProbeInput(len(self.sentences[at]), maps, rows)

    def loss(self, scorer: nn.Module, items: Sequence[int]) -> torch.Tensor:
        losses = [
            nn.functional.cross_entropy(
                scorer(self.look(at)),
                torch.from_numpy(self.sentences[at].head),
                ignore_index=trees.UNASKED,
                reduction="sum",
            )
            for at in items
        ]
        return torch.stack(losses).sum()


def trial(job: ProbeTraining, features: FeatureFolder) -> State:
    """Trains and tests a probe.

    returns  head [word of all test sentences] the likeliest; edges [sentence] arcs of the gold tree
             that the undirected tree has; with settings.tree, tree [word] heads in the likeliest
             directed tree; of the probe `attention`, weight [direction, unit]
    """
    plan, settings = features.plan, features.plan.settings
    with drawn_with(settings.seed, job.probe, str(job.seed)):
        scorer = _new_scorer(job.probe, plan)
    first, dev, test = (_SeenSplit(job.probe, features, part) for part in range(3))
    drawn = generator(settings.seed, "training set").permutation(plan.size)[: job.size]
    name = f"{job.probe}-{job.size}-{job.seed}"
    schedule = LearningSchedule(
        settings.epochs, 1, settings.rate, settings.patience, seed=settings.seed + job.seed
    )
    train(
        scorer,
        (lambda items: first.loss(scorer, drawn[list(items)].tolist()), partial(dev.loss, scorer)),
        (job.size, len(dev.sentences)),
        schedule,
        state=features.scratch(name),
        key=f"{features.key} {name}",
        progress=features.advance,
    )
    with torch.no_grad():
        scores = [scorer(test.look(at)).numpy() for at in range(len(test.sentences))]
    heads = [one.argmax(1) for one in scores]
    state = _state(heads, map(trees.undirected_weights, scores), test.sentences)
    if settings.tree:
        state["tree"] = np.concatenate([trees.arborescence(one) for one in scores]).astype(np.int32)
    if isinstance(scorer, AttentionProbe):
        state["weight"] = scorer.weight.detach().numpy()
    return state


def _new_scorer(probe: str, plan: ProbePlan) -> nn.Module:
    constant, shift = plan.constant_root, plan.settings.legacy_root_shift
    units = plan.model.shape.layers * plan.model.shape.heads
    if probe == "attention":
        return AttentionProbe(units, constant_root=constant)
    assert plan.vectors is not None
    dim = plan.vectors.dim
    if probe == "distances_words":
        return DistancesAndWordsProbe(dim, legacy_root_shift=shift)
    return AttentionAndWordsProbe(units, dim, constant_root=constant, legacy_root_shift=shift)


def right_branching(sentences: Sequence[trees.TreeSentence], *, tree: bool) -> State:
    """Predictions of the rule that a word's head is the next word; the last word has none.

    Its undirected tree joins every word to the next, punctuation left out.
    """
    places = [np.arange(len(sentence)) for sentence in sentences]
    heads = [np.where(at + 1 < len(at), at + 2, NO_ANSWER) for at in places]
    nearness = (-np.abs(at[:, None] - at[None]).astype(np.float64) for at in places)
    state = _state(heads, nearness, sentences)
    return state | ({"tree": state["head"]} if tree else {})


def _state(
    heads: Sequence[Ints], weights: Iterable[trees.Floats], sentences: Sequence[trees.TreeSentence]
) -> State:
    edges = [trees.undirected_right(one, s) for one, s in zip(weights, sentences, strict=True)]
    return {
        "head": np.concatenate(heads).astype(np.int32),
        "edges": np.array(edges, np.int32),
    }


def head_spread(features: FeatureFolder) -> State:
    """How much each head's attention differs between the candidates of a word, on the test set.

    returns  spread [direction, unit] the root of the mean over words of the variance over the other
             words: what all candidates have in common moves no softmax
    """
    store = features.of("model")[2]
    total, count = np.zeros(()), 0
    for at, sentence in enumerate(features.plan.splits[2].sentences):
        if len(sentence) < 3:
            continue
        maps = store.read(at).astype(np.float64)[1:-1, 1:-1]  # [word, word, unit]
        other = ~np.eye(len(sentence), dtype=bool)
        parts = []
        for one in (maps, maps.transpose(1, 0, 2)):
            rows = one[other].reshape(len(sentence), -1, one.shape[-1])  # [word, other word, unit]
            parts.append(rows.var(1).sum(0))
        total, count = total + np.stack(parts), count + len(sentence)  # [direction, unit]
    return {"spread": np.sqrt(total / max(count, 1))}
