"""Which heads of two models do the same? They are paired one to one by their attention.

Both have read the same inputs, of which the group `examples` keeps all maps. Heads are compared
token by token where both tokenizers cut the inputs alike, else word by word. Any two networks can
be paired; so a pair counts only where both heads are surely less than half as far from each other
as from the nearest head of a network that has learned nothing.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
import xarray as xr
from scipy.optimize import linear_sum_assignment
from scipy.special import entr

from headscope.claims.control import controls
from headscope.claims.head_labels import head_labels
from headscope.claims.verdict import Outcome, Verdict, above, all_of, not_asked
from headscope.core.accumulators import Float64, Ints
from headscope.core.head_names import names_of
from headscope.core.intervals import Estimate, estimate, left_one_out
from headscope.core.results import Floats, group, shape
from headscope.core.stored_maps import stored_inputs
from headscope.core.wording import percent

NEAR = 0.5  # ours: of the distance to the nearest head without training
TOKENS, WORDS = "tokens", "words"
NO_CONTROL = "networks without training to compare with"
Text = tuple[str, ...]
Maps = Sequence[tuple[Text, Floats]]  # of each input its tokens or words, and [unit, query, key]


@dataclass(frozen=True, eq=False)
class Counterparts:
    """The heads of two models, one to one; those of the larger model may be left over.

    names      of both models
    layers     that attend, of both
    places     [pair, model, 2] place of the layer, and head, from 0
    heads      [pair] both heads as they are printed
    js         [pair] Jensen-Shannon divergence of their attention, in nats, mean over inputs
    untrained  [pair, model] that of either head and the nearest head without training; NaN: none
    runner_up  [pair] that of the first head and the second nearest of the other model's
    verdicts   [pair] whether they do the same
    shared     [pair] labels that both have
    unit       what was compared: tokens, or words
    inputs     how many
    """

    names: tuple[str, str]
    layers: tuple[int, int]
    places: Ints
    heads: tuple[tuple[str, str], ...]
    js: Estimate
    untrained: Float64
    runner_up: Float64
    verdicts: tuple[Verdict, ...]
    shared: tuple[tuple[str, ...], ...]
    unit: str
    inputs: int

    @property
    def known(self) -> bool:
        """Whether networks without training were there to compare with."""
        return any(verdict.outcome is not Outcome.NOT_ASKED for verdict in self.verdicts)

    @property
    def alike(self) -> int:
        """How many pairs surely do the same."""
        return sum(verdict.holds for verdict in self.verdicts)

    @property
    def sharing(self) -> int:
        """How many of these have a label in common."""
        both = zip(self.verdicts, self.shared, strict=True)
        return sum(verdict.holds and bool(labels) for verdict, labels in both)


def counterparts(trees: dict[str, xr.DataTree]) -> list[Counterparts]:
    """Every two models of which the maps of the same inputs are stored, by name."""
    pairs = (paired((a, b), (trees[a], trees[b])) for a, b in combinations(trees, 2))
    return [pair for pair in pairs if pair is not None]


def pairs_summary(pairs: Sequence[Counterparts]) -> str:
    """How many heads do the same as one of another model, in one sentence; "" of no models."""
    known = [pair for pair in pairs if pair.known]
    if not known:
        return ""
    if all(one.outcome is Outcome.CANNOT_TELL for pair in known for one in pair.verdicts):
        return "These texts cannot tell whether heads of two models do the same."
    if len(known) == 1:
        (pair,) = known
        heads = f"{len(pair.verdicts)} heads of {' and '.join(pair.names)}"
        do = "does" if pair.alike == 1 else "do"
        label = f", {pair.sharing} of them with a label in common" if pair.alike else ""
        return f"{pair.alike} of {heads} surely {do} the same{label}."
    shares = sorted((pair.alike / len(pair.verdicts), pair.names) for pair in known)
    (least, fewest), (most, largest) = shares[0], shares[-1]
    if least == most:
        return f"Of any two models {percent(least)} of the heads surely do the same."
    return (
        f"Of two models {percent(least)} ({' and '.join(fewest)}) to {percent(most)} "
        f"({' and '.join(largest)}) of the heads surely do the same."
    )


def counterpart_table(pairs: Sequence[Counterparts]) -> pd.DataFrame:
    """One row per pair of heads; layers and heads are places from 0, divergences in nats."""
    rows = [
        {
            "model": pair.names[0],
            "other_model": pair.names[1],
            "layer": pair.places[at, 0, 0],
            "head": pair.places[at, 0, 1],
            "name": pair.heads[at][0],
            "other_layer": pair.places[at, 1, 0],
            "other_head": pair.places[at, 1, 1],
            "other_name": pair.heads[at][1],
            "verdict": {Outcome.HOLDS: "alike", Outcome.FAILS: "not alike"}.get(
                verdict.outcome, str(verdict.outcome)
            ),
            "js": pair.js.value[at],
            "ci_low": pair.js.low[at],
            "ci_high": pair.js.high[at],
            "untrained": pair.untrained[at, 0],
            "other_untrained": pair.untrained[at, 1],
            "runner_up": pair.runner_up[at],
            "labels": "; ".join(pair.shared[at]),
            "inputs": pair.inputs,
            "by": pair.unit,
        }
        for pair in pairs
        for at, verdict in enumerate(pair.verdicts)
    ]
    return pd.DataFrame(rows)


def paired(names: tuple[str, str], trees: tuple[xr.DataTree, xr.DataTree]) -> Counterparts | None:
    """The heads of two runs, so that the divergences of all pairs add up to least; None: no maps.

    Where the run of either has no control, nothing is said of its pairs.
    """
    unit, reads = TOKENS, _by_token
    first, second = map(reads, trees)
    if not first or [text for text, _ in first] != [text for text, _ in second]:
        unit, reads = WORDS, _by_word
        first, second = map(reads, trees)
    js = divergences(first, second)  # [input, unit, unit]
    if not len(js):
        return None
    there = {text for text, _ in first} & {text for text, _ in second}
    chosen = linear_sum_assignment(js.mean(0))
    least = [
        _nearest_untrained(tree, reads, units, there)
        for tree, units in zip(trees, chosen, strict=True)
    ]
    own, others = js[:, *chosen], js.mean(0)[chosen[0]]  # [input, pair], [pair, unit]
    others[np.arange(len(others)), chosen[1]] = np.inf
    heads = [
        [divmod(at, shape(tree)[1]) for at in units.tolist()]
        for tree, units in zip(trees, chosen, strict=True)
    ]
    printed = [
        [names_of(tree).head(*place) for place in some]
        for tree, some in zip(trees, heads, strict=True)
    ]
    return Counterparts(
        names,
        (shape(trees[0])[0], shape(trees[1])[0]),
        np.array(heads, np.int64).swapaxes(0, 1),
        tuple(zip(*printed, strict=True)),
        estimate(left_one_out(own)),
        np.stack([far.mean(0) for far in least], -1),
        others.min(1),
        tuple(_verdicts([estimate(left_one_out(NEAR * far - own)) for far in least])),
        tuple(_shared(trees, heads)),
        unit,
        len(js),
    )


def _verdicts(apart: Sequence[Estimate]) -> Iterator[Verdict]:
    """[pair] whether both numbers, of either head, lie above 0."""
    for ends in zip(
        *(zip(one.value, one.low, one.high, strict=True) for one in apart), strict=True
    ):
        known = all(np.isfinite(value) for value, *_ in ends)
        yield all_of(above(*map(float, one)) for one in ends) if known else not_asked(NO_CONTROL)


def _shared(
    trees: Sequence[xr.DataTree], heads: Sequence[Sequence[tuple[int, int]]]
) -> Iterator[tuple[str, ...]]:
    """[pair] the labels that both heads have."""
    for places in zip(*heads, strict=True):
        one, other = (
            [label.name for label in head_labels(tree)[place].labels]
            for tree, place in zip(trees, places, strict=True)
        )
        yield tuple(name for name in one if name in other)


def divergences(one: Maps, other: Maps) -> Float64:
    """[input, unit, unit] divergence of heads of two models on the inputs that both have, in nats.

    Mean over rows of Jensen and Shannon's, as Clark et al. (2019, §6) compare heads of one model.
    """
    known = dict(other)
    both = [(maps, known[text]) for text, maps in one if text in known]
    every = [_divergence(*maps) for maps in both]
    return np.stack(every) if every else np.empty((0, 0, 0))


def _divergence(one: Floats, other: Floats) -> Float64:
    """[unit, unit] for maps [unit, query, key]."""
    rows = one.shape[1]
    a, b = (maps.reshape(len(maps), -1) for maps in (one, other))
    both = np.stack([entr((row + b) / 2).sum(1) for row in a])
    apart = both - (entr(a).sum(1)[:, None] + entr(b).sum(1)) / 2
    return np.asarray(np.maximum(apart.astype(np.float64) / rows, 0))


def _nearest_untrained(
    tree: xr.DataTree, reads: Callable[[xr.DataTree], Maps], units: Ints, texts: Collection[Text]
) -> Float64:
    """[input, pair] divergence of heads and the nearest one of all networks of the run's control.

    NaN without any.
    """
    own = [(text, maps[units]) for text, maps in reads(tree) if text in texts]
    every = [divergences(own, reads(network)) for network in controls(tree)]
    read = [js for js in every if len(js) == len(own)]  # [input, pair, unit]
    if not read:
        return np.full((len(own), len(units)), np.nan)
    together = np.concatenate(read, -1)
    nearest = together.mean(0).argmin(-1)
    return np.asarray(np.take_along_axis(together, nearest[None, :, None], -1)[..., 0])


def _by_token(tree: xr.DataTree) -> Maps:
    read = stored_inputs(tree)
    return [(one.tokens, one.attention.reshape(-1, *one.attention.shape[2:])) for one in read]


def _by_word(tree: xr.DataTree) -> Maps:
    """Maps between words; what goes elsewhere, to special tokens, is a last column."""
    dataset = group(tree, "examples")
    if dataset is None or dataset.attrs.get("measure", "attention") != "attention":
        return []
    maps = dataset["attention"].transpose("example", "layer", "head", "word", "word_other").values
    known = list[tuple[Text, Floats]]()
    for text, every in zip(dataset["text"].transpose("example", "word").values, maps, strict=True):
        words = tuple(filter(None, map(str, text)))
        between = every[..., : len(words), : len(words)]
        if words and np.isfinite(between).all():
            rest = np.clip(1 - between.sum(-1, keepdims=True), 0, 1)
            whole = np.concatenate([between, rest], -1)
            known.append((words, whole.reshape(-1, *whole.shape[2:])))
    return known
