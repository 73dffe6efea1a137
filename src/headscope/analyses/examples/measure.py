"""How does every head attend within a few inputs that are worth looking at?

They are chosen before the model runs (`corpus.showcase`), so that a report can show them from the
results alone.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import xarray as xr

from headscope.analyses.examples.kept_inputs import KeptInputs
from headscope.core.labelled import Variable, labelled
from headscope.core.results import printable
from headscope.corpus.contents import label
from headscope.corpus.document import Example
from headscope.corpus.showcase import is_sentence
from headscope.model.batch import Batch
from headscope.model.layer import LayerView
from headscope.model.words import PIECES
from headscope.run.analysis import MEASURES, Analysis, Scope, check_option

BEYOND = -2  # as head of a word that the sentence does not have


class Examples(Analysis):
    """Maps of the scope's showcase: of all inputs by token, of sentences with trees by word too.

    By word, special tokens are left out; by token, the measure is attention (`KeptInputs`). The
    sentences are the first of the inputs.

    pieces, measure  by word, as for `dependency`
    """

    name: ClassVar[str] = "examples"
    needs: ClassVar[frozenset[str]] = frozenset({"attention"})
    summary: ClassVar[str] = "attention within a few inputs, to look at"
    source: ClassVar[str] = "Clark et al. 2019, §4.2"

    def __init__(self, scope: Scope, *, pieces: str = "mean", measure: str = "attention") -> None:
        super().__init__(scope)
        check_option("pieces", pieces, PIECES)
        check_option("measure", measure, MEASURES)
        self.options = {"measure": measure, "pieces": pieces}
        self.sentences = [e for e in scope.showcase if is_sentence(e)]
        others = [e for e in scope.showcase if not is_sentence(e)]
        self.inputs = KeptInputs(scope, [*self.sentences, *others])
        self.shown = {(e.document, e.id): at for at, e in enumerate(self.sentences)}
        self.most = max((len(e.words or ()) for e in self.sentences), default=0)
        shape = (len(self.shown), scope.layers, scope.heads, self.most, self.most)
        self.maps = self.sums(*shape, replicates=0)
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
            found = np.zeros((1, len(maps), self.most, self.most))
            between = maps.double().cpu().numpy()[:, place[there][:, None], place[there]]
            found[0][:, there[:, None], there] = between
            self.maps.add(found, batch.bootstrap[[row]], at=(at, layer.index))
            if layer.index == 0:
                self.times.add(np.ones(1), batch.bootstrap[[row]], at=(at,))

    def result(self) -> xr.Dataset:
        """attention[example, layer, head, word, word_other], token_attention[input, …]."""
        times = self.times.sums[0][:, None, None, None, None]
        maps = np.full(self.maps.sums.shape[1:], np.nan)
        np.divide(self.maps.sums[0], times, out=maps, where=times > 0)
        size = (len(self.sentences), self.most)
        words, relations = np.full(size, "", object), np.full(size, "", object)
        heads = np.full(size, BEYOND)
        for at, example in enumerate(self.sentences):
            n = len(example.words or ())
            words[at, :n], relations[at, :n], heads[at, :n] = _columns(example)
            maps[at, :, :, n:] = maps[at, ..., n:] = np.nan
        unit = "probability" if self.options["measure"] == "attention" else "1"
        dims = ("example", "layer", "head", "word", "word_other")
        attention = Variable(
            maps.astype(np.float32), dims, "attention between the words of a sentence", unit,
            self.source,
        )  # fmt: skip
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


def _columns(example: Example) -> tuple[list[str], list[str], list[int]]:
    """Forms, relations and heads of a sentence."""
    words = example.words or ()
    relations = [label(example, index) for index in range(len(words))]
    return [word.form for word in words], relations, [word.head for word in words]
