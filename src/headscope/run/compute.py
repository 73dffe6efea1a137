"""Read the inputs of one shard, and compute its sums."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, islice
from math import prod
from typing import Any

import numpy as np
import torch

from headscope.claims.length_bands import BANDS
from headscope.core.progress import Advance, phase, unheard
from headscope.corpus import Corpus, Document, Example, batches
from headscope.corpus.contents import READINGS
from headscope.corpus.partitions import partitions_of
from headscope.errors import CorpusError, memory_told
from headscope.model.batch import Batch
from headscope.model.instrument import Instrument
from headscope.model.language_model import last_logits
from headscope.model.layer import LayerView
from headscope.model.linears import choose, linears
from headscope.model.long_layer import LongLayerView
from headscope.model.model import Model, forward
from headscope.model.threads import threads_of, threads_of_torch
from headscope.run.analysis import LEADING, Analysis, Scope
from headscope.run.band_sums import GROUPS, BandSums, OfBand, banded
from headscope.run.execution import WHOLE_MAPS
from headscope.run.known_analyses import known_analyses
from headscope.run.machine_choices import LinearsChoice, chosen_here
from headscope.run.memory import free_bytes, what_fits
from headscope.run.plan import Shard, encoder_for
from headscope.run.settings import Settings

SMALL = 1 << 19  # ours: weights of a layer; of fewer, analyses take as long in one thread as in two


@dataclass(frozen=True)
class ShardJob:
    """Everything a process needs to compute any shard of a run, except the model.

    names    of the analyses
    linears  "onednn" or "stock", chosen once for the run
    threads  of one process
    options  by analysis
    long     some inputs are read without whole maps, those of more tokens than the settings say
    reads    by analysis, the kind of inputs that it is shown; all of one that is not there
    bands    by kind of inputs, the bands of lengths of which sums are kept apart
    draws    whether results keep the draws of their intervals
    """

    corpus: Corpus
    settings: Settings
    scope: Scope
    names: tuple[str, ...]
    stack: str
    linears: str = "stock"
    threads: int = 1
    options: dict[str, dict[str, Any]] = field(default_factory=dict)
    long: bool = False
    reads: Mapping[str, str] = field(default_factory=dict)
    bands: Mapping[str, Sequence[str]] = field(default_factory=dict)
    draws: bool = False

    def new_analyses(self) -> list[Analysis]:
        """New analyses with empty sums."""
        return [self.new(name) for name in self.names]

    def of_bands(self) -> dict[str, dict[str, OfBand]]:
        """New analyses for each length band, with the scope that claims compare."""
        few = replace(
            self.scope,
            replicates=min(self.scope.replicates, GROUPS),
            control=True,
            stored_inputs=(),
            stored_tokens=(),
        )
        apart = dict[str, dict[str, OfBand]]()
        for name in banded(self.names):
            for band in self.bands.get(self.reads.get(name, ""), ()):
                apart.setdefault(band, {})[name] = OfBand(replace(self, scope=few).new(name))
        return apart

    def new_parts(self) -> dict[str, Analysis]:
        """Everything with a state, by name: analyses, and those of bands."""
        return {a.name: a for a in self.new_analyses()} | _flat(self.of_bands())

    def new(self, name: str) -> Analysis:
        """A new analysis with empty sums."""
        kind = known_analyses()[name]
        return kind(self.scope_of(kind), **self.options.get(name, {}))

    def scope_of(self, kind: type[Analysis]) -> Scope:
        """The scope of an analysis; if it needs whole maps, of inputs that have them."""
        return self.scope.leading if kind.whole_maps and self.long else self.scope

    def by_reading(
        self, examples: Sequence[Example], analyses: Sequence[Analysis]
    ) -> Iterator[tuple[str, list[int], list[Analysis]]]:
        """Each kind of inputs, the places of its examples, and the analyses that read it."""
        places: dict[str, list[int]] = {}
        for at, example in enumerate(examples):
            places.setdefault(example.reading, []).append(at)
        read = set(self.reads.values())
        if any(analysis.every_reading for analysis in analyses):
            read |= {example.reading for example in self.scope.stored_inputs}
        for kind in sorted(places, key=list(READINGS).index):
            if not read or kind in read:
                shown = [a for a in analyses if self.reads.get(a.name, kind) == kind]
                yield kind, places[kind], shown


class Reader:
    """Encodes the documents of shards; cheap when the shards come in order.

    A partition is opened by itself, in the middle of the corpus.
    """

    def __init__(self, model: Model, corpus: Corpus, settings: Settings) -> None:
        self.encoder, self.partitions = encoder_for(model, settings), partitions_of(corpus)
        self._stream: Iterator[Document] = iter(())
        self._partition = self._next = -1

    def examples(self, shard: Shard) -> list[Example]:
        """All examples of a shard, in reading order.

        raises  CorpusError if they are not those that were planned
        """
        if shard.partition >= len(self.partitions):
            raise self._changed(shard, "the corpus")
        partition = self.partitions[shard.partition]
        if self._partition != shard.partition or self._next > shard.first:
            self._stream, self._partition, self._next = iter(partition), shard.partition, 0
        for _ in islice(self._stream, shard.first - self._next):
            pass
        documents = islice(self._stream, shard.documents)
        self._next = shard.first + shard.documents
        examples = [*chain.from_iterable(self.encoder.encode_each(documents))]
        digest = hashlib.sha256()
        for example in examples:
            digest.update(example.content_bytes)
        if digest.hexdigest() != shard.digest:
            raise self._changed(shard, partition.name)
        return examples

    def _changed(self, shard: Shard, where: str) -> CorpusError:
        behind = f", from {where} on," if len(self.partitions) > 1 else ""
        return CorpusError(
            f"the corpus has changed since this run was planned: documents {shard.first + 1} to "
            f"{shard.first + shard.documents}{behind} are different; their results are "
            "dropped\nput the old files back and run the same command again, or choose another "
            "folder with -o"
        )


class Computer:
    """Computes shards of one run with one loaded model."""

    def __init__(self, model: Model, job: ShardJob) -> None:
        self.model, self.job = model, job
        self.reader = Reader(model, job.corpus, job.settings)
        self.instrument = Instrument(
            model.network,
            observers=[self._observe],
            stacks=[job.stack],
            whole=job.settings.whole_maps if job.long else None,
        )
        self._analyses, self._of_bands = job.new_analyses(), job.of_bands()
        self._sums = dict[str, BandSums]()  # by kind of inputs
        self._showing: Showing | None = None
        self._longest = 0  # tokens of an input that was read
        self._new = True

    def compute(self, shard: Shard, advance: Advance = unheard) -> dict[str, np.ndarray[Any, Any]]:
        """The state of all analyses after one shard: {"analysis/accumulator": array}.

        The next shard overwrites the arrays: tens of megabytes allocated for each shard would leave
        holes in memory.

        advance  gets the number of finished inputs
        """
        parts = {a.name: a for a in self.read(self.reader.examples(shard), advance=advance)}
        return state_of(parts | _flat(self._of_bands))

    def read(
        self, examples: Sequence[Example], cheap: Sequence[Example] = (), advance: Advance = unheard
    ) -> list[Analysis]:
        """Run all analyses on these examples.

        cheap    further ones, which the costly analyses are not shown
        advance  gets the number of finished inputs
        """
        if not self._new:  # untouched zeros of large sums cost neither time nor memory
            for analysis in (*self._analyses, *_flat(self._of_bands).values()):
                analysis.reset()
        self._new = False
        few = [analysis for analysis in self._analyses if not analysis.costly]
        network, maps = self.model.network, self.job.linears
        with threads_of(self.job.threads), linears(network, maps), self.instrument:
            for inputs, analyses in ((examples, self._analyses), (cheap, few)):
                for kind, places, shown in self.job.by_reading(inputs, analyses):
                    if not shown:
                        advance(len(places))
                        continue
                    if kind not in self._sums:
                        self._sums[kind] = BandSums(shown, self._of_bands)
                    for some in self._sums[kind].apart(places, inputs):
                        self._run([inputs[at] for at in some], shown, advance)
        return self._analyses

    def show(
        self, examples: Sequence[Example], analysis: Analysis, advance: Advance = unheard
    ) -> None:
        """Show these examples to one analysis, whatever the job's are; its sums stay."""
        network, maps = self.model.network, self.job.linears
        with threads_of(self.job.threads), linears(network, maps), self.instrument:
            self._run(examples, [analysis], advance)

    @torch.inference_mode()
    def _run(
        self, examples: Sequence[Example], analyses: Sequence[Analysis], advance: Advance
    ) -> None:
        job = self.job
        # Longest first: buffers that grow a little each time would leave a hole in memory each.
        for rows in reversed(list(batches(examples, budget=job.settings.batch_tokens))):
            batch = self.model.batch(
                [examples[row] for row in rows],
                replicates=job.scope.replicates,
                seed=job.scope.seed,
                listed=job.scope.listed,
            )
            self._showing = Showing(job, batch, analyses)
            with memory_told(partial(self._advice, self._showing)):
                self._showing.read_by(self.model, self.instrument)
            self._longest = max(self._longest, int(batch.lengths.max()))
            advance(len(rows))

    def _observe(self, layer: LayerView) -> None:
        assert self._showing is not None
        self._showing.observe(layer)

    def _advice(self, showing: "Showing") -> str:
        """Advice after an out-of-memory error: the size of the batch, and what would fit."""
        (inputs, tokens), model = showing.batch.input_ids.shape, self.model
        whole = showing.leading is None
        wide = torch.promote_types(model.network.dtype, torch.float32).itemsize
        fits = what_fits(
            inputs, tokens, maps=model.shape.heads * wide * whole, free=free_bytes(model.device)
        )
        if whole and tokens > WHOLE_MAPS and not self.model.fallback:
            fits = f"--whole-maps {WHOLE_MAPS}, or {fits}"
        before = f"; inputs of up to {self._longest} tokens were read before" * bool(self._longest)
        return (
            f"found {inputs} x {tokens} tokens in a batch, read with{'' if whole else 'out'} whole "
            f"maps{before}; finished shards are kept; wanted {fits}"
        )


class Showing:
    """Shows the layers of one batch to analyses; where no whole map is made, as `LongLayerView`.

    Analyses that look at whole maps are then shown its first tokens alone.
    """

    def __init__(self, job: ShardJob, batch: Batch, analyses: Sequence[Analysis]) -> None:
        self.batch, self.analyses = batch, analyses
        long = job.long and batch.input_ids.shape[1] > job.settings.whole_maps
        self.leading = batch.leading(LEADING) if long else None

    def read_by(self, model: Model, instrument: Instrument) -> None:
        """Run a model on the batch, whose instrument calls `observe`; then end the batch."""
        together = any("projection" in analysis.needs for analysis in self.analyses)
        diagonals = next((a.diagonals for a in self.analyses if a.diagonals), None)
        instrument.long_reading = self.batch, together, diagonals
        forward(model.network, *self.batch.inputs, keep=self.leading is None)
        for analysis in self.analyses:
            analysis.finish(self._batch_of(analysis))

    def _batch_of(self, analysis: Analysis) -> Batch:
        return self.batch if self.leading is None or not analysis.whole_maps else self.leading

    def observe(self, layer: LayerView) -> None:
        """Show one layer to all analyses."""
        leading: LayerView | None = None
        with threads_of_torch(1) if prod(layer.shape) < SMALL else nullcontext():
            for analysis in self.analyses:
                shown = layer
                if analysis.whole_maps and isinstance(layer, LongLayerView):
                    shown = leading = layer.leading(LEADING) if leading is None else leading
                analysis.observe(shown, self._batch_of(analysis))


def state_of(parts: Mapping[str, Analysis]) -> dict[str, np.ndarray[Any, Any]]:
    """The state of all parts by name, {"part/accumulator": array}, without copies."""
    return {f"{n}/{key}": array for n, part in parts.items() for key, array in part.state().items()}


def _flat(of_bands: Mapping[str, Mapping[str, OfBand]]) -> dict[str, Analysis]:
    """The analyses of all bands, by the names of their groups in the results."""
    return {f"{BANDS}/{band}/{n}": a for band, few in of_bands.items() for n, a in few.items()}


def fastest_linears(model: Model, examples: Sequence[Example], *, requested: str) -> LinearsChoice:
    """The fastest kind of linear maps: what is kept for this machine, else timed on a batch of
    these examples.

    In one thread, whatever the run will use: on a busy machine threads wait for each other longer
    than they compute, and the choice would change from run to run.

    requested  "auto", or the kind to use if it is possible; see `linears.choose`
    raises  InputError if that kind is not possible
    """
    if requested == "stock":
        return LinearsChoice(requested)
    batch = model.batch(examples)

    def once() -> torch.Tensor:
        # [example, token, neuron], or a class or the last logits of each example
        with last_logits(model.network):
            output: torch.Tensor = forward(model.network, *batch.inputs)[0]
        return output[batch.mask] if output.shape[:2] == batch.mask.shape else output

    def of(kind: str) -> str:
        return choose(model.network, once, requested=kind)

    with phase("warm up"), threads_of(1):
        return (
            chosen_here(model.network, of) if requested == "auto" else LinearsChoice(of(requested))
        )
