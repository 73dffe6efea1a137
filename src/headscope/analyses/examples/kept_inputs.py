"""How does every head attend within a few inputs, token by token, special tokens included?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from headscope.core.accumulators import Float64
from headscope.core.labelled import Variable
from headscope.corpus.document import Example
from headscope.corpus.showcase import Ints, places, segments
from headscope.model.batch import Batch
from headscope.model.layer import LayerView
from headscope.run.analysis import AnalysisPart, Scope

MOST_WEIGHTS = 2**23  # 64 MiB of sums; inputs beyond are not kept
PLACES = ("input", "token")


class KeptInputs(AnalysisPart):
    """The maps of some inputs, and the norms ‖f(x)‖ where the family gives them.

    An input of more than 40 tokens is folded: its middle stands at one place, which is attended to
    by the sum over its tokens and attends by their mean; its norm is NaN.
    """

    def __init__(self, scope: Scope, examples: Sequence[Example]) -> None:
        named = scope.showcase_tokens or [tuple(map(str, e.input_ids)) for e in scope.showcase]
        names = {(e.document, e.id): t for e, t in zip(scope.showcase, named, strict=True)}
        self.examples = _few(examples, scope.layers * scope.heads)
        self.names = [names[e.document, e.id] for e in self.examples]
        self.at = {(e.document, e.id): at for at, e in enumerate(self.examples)}
        self.places = [places(e) for e in self.examples]
        self.counts = np.array([len(p) for p in self.places], np.int64)
        # One row of numbers for all inputs, so that none is filled up to the longest.
        self.rows = np.cumsum([0, *self.counts])
        self.squares = np.cumsum([0, *self.counts**2])
        grid = (scope.layers, scope.heads)
        self.weights = scope.sums(*grid, int(self.squares[-1]), replicates=0)
        self.norms = scope.sums(*grid, int(self.rows[-1]), replicates=0)
        self.seen = scope.sums(len(self.examples), replicates=0)
        self.normed = scope.sums(len(self.examples), replicates=0)

    def observe(self, layer: LayerView, batch: Batch) -> None:
        """Keep what is to be kept of one layer; an input seen again is averaged."""
        has_norms = {"values", "projection"} <= layer.offers
        for row, example in enumerate(batch.examples):
            at = self.at.get((example.document, example.id))
            if at is None:
                continue
            n, once, where = len(example), batch.bootstrap[[row]], (layer.index,)
            maps = layer.attention[row, :, :n, :n].double().cpu().numpy()
            weights = folded(maps, self.places[at])  # [head, place, place]
            self.weights.add(_among(weights, self.squares, at), once, at=where)
            if has_norms:
                norms = layer.value_norm[row, :, :n].double().cpu().numpy()  # [head, token]
                chosen = norms[:, self.places[at]]  # [head, place]
                self.norms.add(_among(chosen, self.rows, at), once, at=where)
            if layer.index == 0:
                self.seen.add(np.ones(1), once, at=(at,))
                self.normed.add(np.full(1, float(has_norms)), once, at=(at,))

    def variables(self, source: str) -> dict[str, Variable]:
        """token_attention[input, layer, head, token, token_other], value_norm[…, token]."""
        layers, heads = self.weights.sums.shape[1:3]
        most = int(self.counts.max(initial=0))
        maps = np.full((len(self.counts), layers, heads, most, most), np.nan, np.float32)
        norms = np.full((len(self.counts), layers, heads, most), np.nan, np.float32)
        for at, count in enumerate(self.counts.tolist()):
            times, normed = self.seen.sums[0, at], self.normed.sums[0, at]
            if times > 0:
                flat = self.weights.sums[0, ..., self.squares[at] : self.squares[at + 1]] / times
                maps[at, :, :, :count, :count] = flat.reshape(layers, heads, count, count)
            if normed > 0:
                norms[at, :, :, :count] = (
                    self.norms.sums[0, ..., self.rows[at] : self.rows[at + 1]] / normed
                )
                norms[at, :, :, :count][..., self._sizes(at) > 1] = np.nan
        dims = ("input", "layer", "head", "token")
        words = "attention between the tokens of an input"
        return {
            "token_attention": Variable(
                maps, (*dims, "token_other"), words, "probability", source
            ),
            "value_norm": Variable(
                norms, dims, "norm of f(x) of a token", "1", "Kobayashi et al. 2020, eq. 4"
            ),
        }  # fmt: skip

    def coords(self) -> dict[str, tuple[tuple[str, ...], npt.NDArray[np.generic], dict[str, str]]]:
        """What stands at the places [input, token]."""
        size = (len(self.counts), int(self.counts.max(initial=0)))
        token, form = np.full(size, "", object), np.full(size, "", object)
        word = np.full(size, -1)
        special, segment, count = (np.zeros(size, np.int64) for _ in range(3))
        for at, example in enumerate(self.examples):
            first, n = self.places[at], self.counts[at]
            sizes = self._sizes(at)
            count[at, :n], segment[at, :n] = sizes, segments(example)[first]
            special[at, :n] = example.special[first] & (sizes == 1)
            names = zip(first.tolist(), sizes.tolist(), strict=True)
            token[at, :n] = [
                self.names[at][place] if size == 1 else f"… {size} tokens …"
                for place, size in names
            ]
            if example.words is not None and example.word_index is not None:
                word[at, :n] = np.where(sizes == 1, example.word_index[first], -1)
                text = [w.form + " " * w.space_after for w in example.words]
                form[at, :n] = ["" if w < 0 else text[w] for w in word[at, :n].tolist()]
        told = {
            "token_text": (token.astype(str), "as the vocabulary has it"),
            "word_text": (form.astype(str), "the word of the token, with the space after it"),
            "token_count": (count, "tokens at a place; 0: no place"),
            "token_word": (word, "-1: none"),
            "special": (special, "1: added by the tokenizer"),
            "segment": (segment, "0 or 1"),
        }
        return {
            name: (PLACES, array, {"long_name": words}) for name, (array, words) in told.items()
        }

    def _sizes(self, at: int) -> Ints:
        """[place] how many tokens stand there."""
        return np.diff(self.places[at], append=len(self.examples[at]))


def _few(examples: Sequence[Example], heads: int) -> list[Example]:
    """The first inputs, as far as there is room for the maps of so many heads."""
    sizes = np.cumsum([len(places(e)) ** 2 for e in examples])
    return [e for e, size in zip(examples, sizes, strict=True) if size * heads <= MOST_WEIGHTS]


def folded(maps: Float64, first: Ints) -> Float64:
    """[head, query, key] → [head, place, place]: sums over keys, means over queries."""
    to = np.add.reduceat(maps, first, axis=2)  # [head, query, place]
    sizes = np.diff(first, append=maps.shape[1])
    folded: Float64 = np.add.reduceat(to, first, axis=1) / sizes[:, None]  # [head, place, place]
    return folded


def _among(values: Float64, starts: Ints, at: int) -> Float64:
    """[1, head, number] what one input gives, [head, …], at its part of the row of all inputs."""
    row = np.zeros((1, len(values), int(starts[-1])))
    row[0, :, starts[at] : starts[at + 1]] = values.reshape(len(values), -1)  # [head, number]
    return row
