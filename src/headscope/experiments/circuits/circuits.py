"""Computes what each head of a decoder does on synthetic inputs.

run = circuits("my-decoder", output="run")
run["circuits"]["score"].sel(circuit="induction")
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import torch
import xarray as xr

from headscope.core.accumulators import REPLICATES, Float64
from headscope.core.control import CONTROL
from headscope.core.progress import phase
from headscope.core.settings_table import SettingsTable, documented, keywords, settings_of
from headscope.corpus import CorpusLike, corpus_of, demo_corpus
from headscope.corpus.document import Example
from headscope.errors import InputError
from headscope.experiments.circuits import head_scores
from headscope.experiments.circuits.direct_logits import direct_logits, prompt_set
from headscope.experiments.circuits.head_scores import PatternScores
from headscope.experiments.circuits.made_inputs import (
    FEWEST,
    Ordinals,
    Repeats,
    check_size,
    ordinals,
    repeats,
)
from headscope.experiments.circuits.patching import patch_heads
from headscope.experiments.circuits.prompt_views import followed_heads, prompt_views
from headscope.experiments.circuits.prompts import PromptSet
from headscope.experiments.circuits.readout import decoder_of
from headscope.experiments.circuits.result import circuits_result
from headscope.experiments.circuits.retrieval import Needles, needles, retrieved, written
from headscope.experiments.circuits.switched_off import (
    SEQUENCES,
    best_heads,
    losses_off,
    off_result,
    refuse_many,
)
from headscope.experiments.circuits.weight_maps import WeightMaps
from headscope.model.batch import to_float64
from headscope.model.instrument import Instrument
from headscope.model.language_model import (
    LanguageModel,
    TokenLoss,
    load_language_model,
)
from headscope.model.linears import linears
from headscope.model.model import Model, evaluating, forward
from headscope.run.atlas import Execution
from headscope.run.control import RANDOM, Control, control_of
from headscope.run.experiment import ExperimentRequest, in_parts, run_experiment
from headscope.run.life_cycle import Meter, RunInProgress
from headscope.run.shard_files import State
from headscope.run.store import Run
from headscope.tasks.task_request import Loading, LoadingFields

PART_TOKENS = 4096  # of the inputs whose numbers are kept together, so that a run can go on
HAYSTACK = 512  # tokens, where the model takes twice as many
WHOLE = 2048  # tokens: longer inputs are read without whole maps
OF_CONTROL = 10  # sequences that each network of the control reads


@dataclass(frozen=True, repr=False)
class CircuitSettings(SettingsTable):
    """Settings of a run of circuits.

    sequences     made inputs of each kind: with a repeat, and without
    length        tokens that come twice
    successors    whether weights are asked for the successors of ordinals
    prompts       a set of `prompts.MADE`, or a table of prompts: which heads write and carry their
                  answers; "": none
    pairs         prompts of a made set at most
    views         prompts that a page shows head by head, at most
    switch_off    how many heads of each kind, those that do it most, are switched off on other
                  sequences, beside as many at random; 0: none
    composition   whether all pairs of heads are looked at: dear in models of thousands of heads
    batch_tokens  tokens of one forward pass, about
    replicates    groups of sequences at most, for intervals
    needles       haystacks with a needle
    haystack      tokens of each; None: 512, or none where the model takes less; 0: none
    steps         tokens that the model may write as an answer, each step of which counts (Wu et al.
                  2024: 50); 0: it writes none
    seed          of all that is made
    """

    sequences: int = 100
    length: int = 50
    needles: int = 20
    haystack: int | None = None
    steps: int = 0
    successors: bool = True
    composition: bool = True
    prompts: str = ""
    pairs: int = 32
    views: int = 4
    switch_off: int = 0
    batch_tokens: int = 1024
    replicates: int = REPLICATES
    seed: int = 0

    def __post_init__(self) -> None:
        check_size(self.sequences, self.length)
        if self.batch_tokens < 1 or min(self.replicates, self.views, self.steps) < 0:
            raise InputError(
                f"found batch_tokens={self.batch_tokens}, replicates={self.replicates}, "
                f"views={self.views} and steps={self.steps}; wanted at least 1, 0, 0 and 0"
            )


class CircuitFields(LoadingFields, total=False):
    """The fields of `CircuitSettings` and `Loading`, as keywords."""

    sequences: int
    length: int
    needles: int
    haystack: int | None
    steps: int
    successors: bool
    composition: bool
    prompts: str
    pairs: int
    views: int
    switch_off: int
    batch_tokens: int
    replicates: int
    seed: int


@documented(CircuitSettings, Loading)
def circuits(
    model: LanguageModel | str | Path,
    corpus: CorpusLike | Needles | None = None,
    *,
    output: str | Path | None = None,
    settings: CircuitSettings | None = None,
    control: str | Path | None = RANDOM,
    execution: Execution | None = None,
    **more: Unpack[CircuitFields],
) -> Run:
    """Computes which heads of a decoder look back, copy, induce, count on, and read which others.

    model     a causal language model with its head: a folder, a hub id, or loaded
    corpus    text for the haystacks: texts, files, …; by default the bundled corpus; or needles
              that are made
    output    run folder; an interrupted run of the same spec there goes on. None: in memory
    settings  whole; or its fields as keywords
    control   networks without training that read some of the inputs, so that nothing is said of a
              head that such a network shows too: "random", the folder of a model, or "none"
    raises    ModelError for an encoder or a model without a language-model head; InputError for
              inputs that cannot be made for it
    """
    fields, loading = keywords(more, CircuitSettings, Loading)
    settings, load = settings_of(CircuitSettings, settings, fields), Loading(**loading)
    if not isinstance(model, LanguageModel):
        model = load_language_model(model, **asdict(load))
    decoder_of(model)
    own = model.model
    refuse_many(settings.switch_off, own.shape)
    made = repeats(own, sequences=settings.sequences, length=settings.length, seed=settings.seed)
    prompts, against = prompts_of(model, settings), control_of(own, control)
    hidden, others = _needles(own, corpus, settings), _held_out(own, settings)
    how = settings, execution or Execution(), against
    work = CircuitRun(own, made, ordinals(own), hidden, *how, prompts, others)
    return run_experiment(work.request, work.compute, output=output, execution=work.execution)


@dataclass
class CircuitRun:
    """The computation behind `circuits`."""

    model: Model
    made: Repeats
    ordinals: Ordinals
    needles: Needles | None
    settings: CircuitSettings
    execution: Execution
    control: Control | None
    asked: PromptSet | None = None
    others: Repeats | None = None

    @property
    def request(self) -> ExperimentRequest:
        """What decides the numbers: the model, all inputs, and the settings."""
        made, prompts, settings = self.made, self.asked, self.settings
        spec: dict[str, Any] = {} if self.control is None else {"control": dict(self.control.spec)}
        shown = [] if self.others is None else self.others.repeated
        if prompts is not None:
            shown = [*shown, *prompts.clean, *prompts.corrupted]
            sides = (prompts.right, prompts.wrong)
            spec["answers"] = [[ids.tolist() for ids in side] for side in sides]
        hidden = self.needles.examples if self.needles else ()
        return ExperimentRequest(
            "circuits",
            self.model,
            corpus={"kind": "made inputs", "files": [], "counted": "inputs"},
            examples=[*made.repeated, *made.fresh, *hidden, *shown],
            settings={**asdict(settings), **spec},
            seed=settings.seed,
            replicates=settings.replicates,
            batch_tokens=settings.batch_tokens,
        )

    def compute(self, run: RunInProgress) -> dict[str, xr.Dataset]:
        """The group `circuits`, and those of the control."""
        places = range(len(self.made.repeated))
        meter = Meter(len(places), self.execution.progress)
        parts: list[State] = []
        with linears(self.model.network, run.linears):
            weights = WeightMaps(self.model)
            for number, some in enumerate(self._parts(places)):
                parts.append(run.part(number, partial(self._part, weights, some)))
                meter.advance(len(some))
            answers = self._answers()
            found = self._of_weights(weights)
            if self.needles is not None:
                found |= run.part(len(parts), partial(self._of_needles, weights, self.needles))
        patterns = {name: np.concatenate([one[name] for one in parts]) for name in parts[0]}
        of_heads = self._result(patterns, found, weights)
        made, settings = self.others, self.settings
        if made is not None and (sets := best_heads(of_heads, settings.switch_off)):
            more = {"seed": settings.seed, "batch_tokens": settings.batch_tokens}
            off = run.part(len(parts) + 1, partial(losses_off, self.model, made, sets, **more))
            told = off_result(off["losses"], made, sets, replicates=settings.replicates)
            of_heads = of_heads.merge(told).assign_attrs(switch_off=settings.switch_off)
        return {"circuits": of_heads, **answers, **self._controls()}

    def _result(
        self, patterns: Mapping[str, Float64], found: Mapping[str, Float64], weights: WeightMaps
    ) -> xr.Dataset:
        inputs = self.made, self.ordinals, self.needles
        replicates, width = self.settings.replicates, weights.embedding.shape[1]
        return circuits_result(patterns, found, *inputs, replicates=replicates, width=width)

    def _answers(self) -> dict[str, xr.Dataset]:
        """The groups `writes`, which heads write and carry the answers, and `prompts`, of some."""
        if self.asked is None:
            return {}
        settings, language = self.settings, LanguageModel(self.model, "causal")
        how: dict[str, Any] = {
            "batch_tokens": 2 * settings.batch_tokens,
            "replicates": settings.replicates,
        }
        found = direct_logits(language, self.asked, **how)
        if self.asked.corrupted:
            found = found.merge(patch_heads(language, self.asked, **how))
        texts = {
            name: ("prompt", [str(getattr(one, name)) for one in self.asked.prompts])
            for name in ("text", "answer", "wrong", "corrupted", "item")
        }
        groups = {"writes": found.assign_coords(texts)}
        if settings.views:
            most = [found[name].values for name in ("direct_share", "effect") if name in found]
            groups["prompts"] = prompt_views(
                language,
                self.asked,
                shown=settings.views,
                followed=followed_heads(*most),
                batch_tokens=how["batch_tokens"],
            )
        return groups

    def _parts(self, places: range) -> Any:
        return in_parts(places, lambda _: 2 * len(self.made.repeated[0]), tokens=PART_TOKENS)

    def _part(self, weights: WeightMaps, places: list[int]) -> State:
        """[sequence of the part, …] by name."""
        kinds = {"repeated": self.made.repeated, "fresh": self.made.fresh}
        found: State = {}
        for kind, examples in kinds.items():
            rows = [examples[at] for at in places]
            some = in_parts(rows, len, tokens=self.settings.batch_tokens)
            answers = [self._batch(weights, batch, kind=kind) for batch in some]
            for name in answers[0]:
                found[f"{kind}_{name}"] = np.concatenate([one[name] for one in answers])
        return found

    def _batch(self, weights: WeightMaps, examples: list[Example], *, kind: str) -> State:
        repeated = kind == "repeated"
        batch, network = self.model.batch(examples), self.model.network
        scores = PatternScores(self.made, weights.unembedding if repeated else None)
        told = second_half(self.made, examples, most=None if repeated else 1)
        rows = range(len(examples))
        with (
            torch.inference_mode(),
            evaluating(network),
            told.asking(network, rows),
            Instrument(network, observers=[lambda view: scores.look(view, batch)]),
        ):
            logits = forward(network, *batch.inputs, keep=False).logits
            right = to_float64(told.answers(logits, rows))
        return {"patterns": scores.whole, "right": right}

    def _of_weights(self, weights: WeightMaps) -> dict[str, Float64]:
        maps = list(weights.layers())
        found = {"weight_copying": head_scores.copying(maps, weights)}
        if self.settings.successors and len(self.ordinals.ids) >= FEWEST:
            right = head_scores.successors(maps, weights, self.ordinals)
            found["successor"] = right.astype(np.float64)
        if self.settings.composition:
            score, above = head_scores.composition(maps)
            found |= {"composition": score, "composition_above": above}
        return found

    def _of_needles(self, weights: WeightMaps, hidden: Needles) -> State:
        """[run, …] by name."""
        runs, steps = range(len(hidden.examples)), self.settings.steps
        found = retrieved(self.model, hidden, runs, weights.unembedding, whole=WHOLE)
        if steps:
            found |= written(self.model, hidden, runs, steps=steps, whole=WHOLE)
        return found

    def _controls(self) -> Mapping[str, xr.Dataset]:
        """The groups of the control: the same of networks that have learned nothing."""
        if self.control is None:
            return {}
        made = replace(
            self.made, repeated=self.made.repeated[:OF_CONTROL], fresh=self.made.fresh[:OF_CONTROL]
        )
        settings = replace(self.settings, composition=False, successors=False, replicates=0)
        hidden = None if self.needles is None else self.needles.first(OF_CONTROL)
        tokens = 2 * OF_CONTROL * len(made.repeated[0])
        counts = {"documents": OF_CONTROL, "examples": 2 * OF_CONTROL, "tokens": tokens}
        groups = {CONTROL: xr.Dataset(attrs={"kind": self.control.kind, "tidy": 0, **counts})}
        with phase("control", len(self.control.networks), "networks") as advance:
            for name, make in self.control.networks.items():
                other = make()
                one = replace(self, model=other, made=made, needles=hidden, settings=settings)
                weights = WeightMaps(other)
                patterns = one._part(weights, list(range(OF_CONTROL)))
                found = one._of_weights(weights)
                if hidden is not None:  # all of its runs count: it answers none
                    found |= one._of_needles(weights, hidden)
                    found |= {name: np.ones(OF_CONTROL) for name in found if "recall" in name}
                about = {"model": name, "layers": other.shape.layers, "heads": other.shape.heads}
                groups[f"{CONTROL}/{name}"] = xr.Dataset(attrs={**about, **counts})
                groups[f"{CONTROL}/{name}/circuits"] = one._result(patterns, found, weights)
                advance(1)
        return groups


def prompts_of(model: LanguageModel, settings: CircuitSettings) -> PromptSet | None:
    """The prompts that are asked for; None for none.

    raises  InputError and CorpusError as `prompt_set`, and for prompts that
            are not as long as their corrupted ones
    """
    if not settings.prompts:
        return None
    made = prompt_set(model, settings.prompts, count=settings.pairs, seed=settings.seed)
    if made.corrupted:
        made.need_pairs()
    return made


def haystack_of(model: Model, settings: CircuitSettings) -> int:
    """Tokens of a haystack; 0 for none."""
    usual = HAYSTACK if model.limit >= 2 * HAYSTACK else 0
    return usual if settings.haystack is None else settings.haystack


def _needles(
    model: Model, corpus: CorpusLike | Needles | None, settings: CircuitSettings
) -> Needles | None:
    """The needles that are asked for; None for none."""
    if isinstance(corpus, Needles):
        return corpus
    haystack = haystack_of(model, settings)
    if not haystack:
        return None
    text = demo_corpus() if corpus is None else corpus_of(corpus)
    runs, seed, room = settings.needles, settings.seed, settings.steps
    return needles(model, text, runs=runs, haystack=haystack, seed=seed, room=room)


def _held_out(model: Model, settings: CircuitSettings) -> Repeats | None:
    """Sequences on which heads are switched off; None for none."""
    if not settings.switch_off:
        return None
    many = min(settings.sequences, SEQUENCES)
    drawn: dict[str, int] = {"length": settings.length, "seed": settings.seed}
    return repeats(model, sequences=many, **drawn, held_out=True)


def second_half(made: Repeats, examples: list[Example], *, most: int | None = None) -> TokenLoss:
    """Asks for the next token of the second half where it can be known, at the first places."""
    at = [made.opening + made.length + made.known(example)[:most] for example in examples]
    right = [example.input_ids[places + 1] for example, places in zip(examples, at, strict=True)]
    return TokenLoss("next token", at, right)
