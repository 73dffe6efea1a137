"""How does every head attend within a few inputs that are worth looking at?

They are chosen before the model runs (`corpus.stored_inputs`), so that a report can show them from
the results alone.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import xarray as xr

from headscope.analyses.examples import QUESTION
from headscope.core.accumulators import Ints, ratio
from headscope.core.display import printable
from headscope.core.results import Variable, labelled
from headscope.corpus.contents import label
from headscope.corpus.document import Example
from headscope.corpus.stored_inputs import folded, is_sentence, places, segments
from headscope.model.batch import Batch
from headscope.model.layer import LayerView
from headscope.model.model import Model, show_layers
from headscope.run.analysis import Analysis, AnalysisPart, Scope

BEYOND = -2  # as head of a word that the sentence does not have
MOST_WEIGHTS = 2**23  # 64 MiB of sums; inputs beyond are not kept
PLACES = ("input", "token")


class Examples(Analysis, question=QUESTION):
    """Maps of the stored inputs: of all by token, of sentences with trees by word too.

    By word, special tokens are left out; by token, the measure is attention (`StoredMaps`). The
    sentences are the first of the inputs.

    pieces, measure  by word, as for `dependency`
    """

    every_reading: ClassVar[bool] = True

    def __init__(self, scope: Scope, *, pieces: str = "mean", measure: str = "attention") -> None:
        super().__init__(scope)
        self.options = self.checked(measure=measure, pieces=pieces)
        self.sentences = [e for e in scope.stored_inputs if is_sentence(e)]
        others = [e for e in scope.stored_inputs if not is_sentence(e)]
        self.inputs = StoredMaps(scope, [*self.sentences, *others])
        self.shown = {(e.document, e.id): at for at, e in enumerate(self.sentences)}
        self.most = max((len(e.words or ()) for e in self.sentences), default=0)
        grid = (scope.layers, scope.heads)
        self.maps = self.sums(len(self.shown), *grid, self.most, self.most, replicates=0)
        self.times = self.sums(len(self.shown), replicates=0)

    def observe(self, layer: LayerView, batch: Batch) -> None:
        """Keep the maps of what is shown; a sentence seen again is averaged."""
        self.inputs.observe(layer, batch)
        for row, example in enumerate(batch.examples):
            at = self.shown.get((example.document, example.id))
            if at is None:
                continue
            maps = layer.word_maps(batch, **self.options)[row]  # [head, place, place]
            place = batch.words.place[row]
            there = np.flatnonzero(place >= 0)
            padded = np.zeros((1, len(maps), self.most, self.most))
            between = maps.double().cpu().numpy()[:, place[there][:, None], place[there]]
            padded[0][:, there[:, None], there] = between
            self.maps.add(padded, batch.groups[[row]], at=(at, layer.index))
            if layer.index == 0:
                self.times.add(np.ones(1), batch.groups[[row]], at=(at,))

    def result(self) -> xr.Dataset:
        """attention[example, layer, head, word, word_other], token_attention[input, …]."""
        maps = ratio(self.maps.total, self.times.total[:, None, None, None, None])
        size = (len(self.sentences), self.most)
        words, relations = np.full(size, "", object), np.full(size, "", object)
        heads = np.full(size, BEYOND)
        for at, example in enumerate(self.sentences):
            tokens = example.words or ()
            n = len(tokens)
            words[at, :n], heads[at, :n] = [w.form for w in tokens], [w.head for w in tokens]
            relations[at, :n] = [label(example, index) for index in range(n)]
            maps[at, :, :, n:] = maps[at, ..., n:] = np.nan
        unit = "probability" if self.options["measure"] == "attention" else "1"
        dims = ("example", "layer", "head", "word", "word_other")
        attention = Variable(
            maps.astype(np.float32),
            dims,
            "attention between the words of a sentence",
            unit,
            self.source,
        )
        by_word = ("example", "word")
        sentences = {
            "text": (by_word, words.astype(str)),
            "relation": (by_word, relations.astype(str)),
            "head_word": (by_word, heads, {"long_name": f"-1: root; {BEYOND}: no word"}),
        }
        ids = {
            "example": [printable(e.id) for e in self.sentences],
            "input": [printable(e.id) for e in self.inputs.examples],
        }
        variables = {"attention": attention, **self.inputs.variables(self.source)}
        dataset = labelled(variables, coords=ids).assign_coords(sentences)
        return dataset.assign_coords(self.inputs.coords()).assign_attrs(self.options, tidy=0)


class StoredMaps(AnalysisPart):
    """The maps of some inputs, and the norms ‖f(x)‖ where the family gives them.

    An input of more than 40 tokens is folded: its middle stands at one place, which is attended to
    by the sum over its tokens and attends by their mean; its norm is NaN.
    """

    def __init__(self, scope: Scope, examples: Sequence[Example]) -> None:
        named = scope.stored_tokens or [tuple(map(str, e.input_ids)) for e in scope.stored_inputs]
        names = {(e.document, e.id): t for e, t in zip(scope.stored_inputs, named, strict=True)}
        sizes = np.cumsum([len(places(e)) ** 2 for e in examples]) * scope.layers * scope.heads
        self.examples = [e for e, n in zip(examples, sizes, strict=True) if n <= MOST_WEIGHTS]
        self.names = [names[e.document, e.id] for e in self.examples]
        self.at = {(e.document, e.id): at for at, e in enumerate(self.examples)}
        self.places = [places(e) for e in self.examples]
        self.most = max(map(len, self.places), default=0)
        cells = (len(self.examples), scope.layers, scope.heads, self.most)
        self.weights = scope.sums(*cells, self.most, replicates=0)
        self.norms = scope.sums(*cells, replicates=0)
        self.seen, self.normed = (scope.sums(cells[0], replicates=0) for _ in range(2))

    def observe(self, layer: LayerView, batch: Batch) -> None:
        """Keep what is to be kept of one layer; an input seen again is averaged."""
        has_norms = {"values", "projection"} <= layer.offers
        for row, example in enumerate(batch.examples):
            at = self.at.get((example.document, example.id))
            if at is None:
                continue
            n, once, where = len(example), batch.groups[[row]], (at, layer.index)
            first, rest = self.places[at], (0, self.most - len(self.places[at]))
            maps = layer.attention[row, :, :n, :n].double().cpu().numpy()
            weights = np.pad(folded(maps, first), ((0, 0), rest, rest))  # [head, place, place]
            self.weights.add(weights[None], once, at=where)
            if has_norms:
                norms = layer.value_norm[row, :, :n].double().cpu().numpy()  # [head, token]
                self.norms.add(np.pad(norms[:, first], ((0, 0), rest))[None], once, at=where)
            if layer.index == 0:
                self.seen.add(np.ones(1), once, at=(at,))
                self.normed.add(np.full(1, float(has_norms)), once, at=(at,))

    def variables(self, source: str) -> dict[str, Variable]:
        """token_attention[input, layer, head, token, token_other], value_norm[…, token]."""
        seen, normed = self.seen.total, self.normed.total  # [input]
        maps = ratio(self.weights.total, seen[:, None, None, None, None])
        norms = ratio(self.norms.total, normed[:, None, None, None])
        for at, first in enumerate(self.places):
            n = len(first)
            maps[at, :, :, n:] = maps[at, ..., n:] = norms[at, ..., n:] = np.nan
            norms[at, ..., :n][..., self._sizes(at) > 1] = np.nan
        dims = ("input", "layer", "head", "token")
        return {
            "token_attention": Variable(
                maps.astype(np.float32),
                (*dims, "token_other"),
                "attention between the tokens of an input",
                "probability",
                source,
            ),
            "value_norm": Variable(
                norms.astype(np.float32),
                dims,
                "norm of f(x) of a token",
                "1",
                "Kobayashi et al. 2020, eq. 4",
            ),
        }

    def coords(self) -> dict[str, tuple[tuple[str, ...], npt.NDArray[np.generic], dict[str, str]]]:
        """What stands at the places [input, token]."""
        size = (len(self.examples), self.most)
        token, form = np.full(size, "", object), np.full(size, "", object)
        word, entity = np.full(size, -1), np.full(size, -1)
        special, segment, count, frame = (np.zeros(size, np.int64) for _ in range(4))
        for at, example in enumerate(self.examples):
            first, sizes = self.places[at], self._sizes(at)
            n = len(first)
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
                of_word, ends = entities(example), frame_ends(example)
                entity[at, :n] = np.where(word[at, :n] < 0, -1, of_word[word[at, :n]])
                frame[at, :n] = np.where(word[at, :n] < 0, 0, ends[word[at, :n]])
        texts = {
            "token_text": (token.astype(str), "as the vocabulary has it"),
            "word_text": (form.astype(str), "the word of the token, with the space after it"),
            "token_count": (count, "tokens at a place; 0: no place"),
            "token_word": (word, "-1: none"),
            "token_entity": (entity, "whom a mention with this head word speaks of; -1: none"),
            "token_frame": (frame, "1: core element of a frame; 2: evokes a frame; 0: neither"),
            "special": (special, "1: added by the tokenizer"),
            "segment": (segment, "0 or 1"),
        }
        return {
            name: (PLACES, array, {"long_name": words}) for name, (array, words) in texts.items()
        }

    def _sizes(self, at: int) -> Ints:
        """[place] how many tokens stand there."""
        return np.diff(self.places[at], append=len(self.examples[at]))


def entities(example: Example) -> Ints:
    """[word] the number of the entity of which the word heads a mention; -1: none."""
    numbers = np.full(len(example.words or ()), -1)
    known: dict[str, int] = {}
    for mention in example.mentions:
        numbers[mention.head] = known.setdefault(mention.entity, len(known))
    return numbers


def frame_ends(example: Example) -> Ints:
    """[word] 1 in a core element of a frame, 2 where the word evokes one, else 0."""
    ends = np.zeros(len(example.words or ()), np.int64)
    for frame in example.frames:
        for element in frame.elements:
            ends[element.first : element.last + 1] = element.core
    for frame in example.frames:
        ends[frame.first : frame.last + 1] = 2
    return ends


def capture_maps(model: Model, few: Sequence[Example], scope: Scope) -> xr.Dataset:
    """The group `examples`: all maps of a few inputs, each read by itself."""
    tokens = tuple(model.tokens(example.input_ids) for example in few)
    analysis = Examples(replace(scope, stored_inputs=tuple(few), stored_tokens=tokens))
    for example in few:
        batch = model.batch([example])
        show_layers(model, batch, partial(analysis.observe, batch=batch))
    return analysis.result()
