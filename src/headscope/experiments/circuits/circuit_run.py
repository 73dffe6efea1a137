"""Computes what each head of a decoder does on made inputs; `circuits` reads the request."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import xarray as xr

from headscope.claims.control import CONTROL
from headscope.core.accumulators import Float64
from headscope.core.progress import phase
from headscope.corpus import CorpusLike, corpus_of, demo_corpus
from headscope.corpus.document import Example
from headscope.experiments.circuits import head_scores
from headscope.experiments.circuits.direct_logits import direct_logits, prompt_set
from headscope.experiments.circuits.discovery.discover import find_circuit
from headscope.experiments.circuits.head_scores import PatternScores
from headscope.experiments.circuits.made_inputs import (
    Repeats,
    WordPairs,
    ordinals,
    repeats,
)
from headscope.experiments.circuits.needles import Needles, needles
from headscope.experiments.circuits.own_relations import Words
from headscope.experiments.circuits.patching import patch_heads
from headscope.experiments.circuits.prompt_views import followed_heads, prompt_views
from headscope.experiments.circuits.prompts import PromptSet
from headscope.experiments.circuits.readout import decoder_of
from headscope.experiments.circuits.relations import refuse_few, related_words
from headscope.experiments.circuits.result import circuits_result
from headscope.experiments.circuits.retrieval import retrieved
from headscope.experiments.circuits.settings import FEWEST, CircuitSettings
from headscope.experiments.circuits.switched_off import (
    SEQUENCES,
    best_heads,
    losses_off,
    off_result,
    refuse_many,
)
from headscope.experiments.circuits.weight_maps import WeightMaps
from headscope.model.batch import Batch, to_float64
from headscope.model.instrument import Instrument
from headscope.model.key_value_cache import cut, going_on, whole_cache
from headscope.model.language_model import LanguageModel, TokenLoss, last_logits
from headscope.model.linears import linears
from headscope.model.model import Model, evaluating, run_network
from headscope.run.control import RANDOM, Control, control_of
from headscope.run.execution import Execution
from headscope.run.experiment import ExperimentRequest, in_parts, run_experiment
from headscope.run.life_cycle import Meter, RunInProgress
from headscope.run.shard_files import State, joined
from headscope.run.store import Run

PART_TOKENS = 4096  # of the inputs whose numbers are kept together, so that a run can go on
HAYSTACK = 512  # tokens, where the model takes twice as many
WHOLE = 2048  # tokens: longer inputs are read without whole maps
OF_CONTROL = FEWEST  # sequences, and needles, that each network of the control reads


def circuit_run(
    model: LanguageModel,
    corpus: CorpusLike | Needles | None,
    settings: CircuitSettings,
    words: Words,
    *,
    output: str | Path | None = None,
    control: str | Path | None = RANDOM,
    execution: Execution | None = None,
) -> Run:
    """Computes what each head does on inputs made for the model; a run of all settings."""
    decoder_of(model)
    own = model.model
    refuse_many(settings.switch_off, own.shape)
    refuse_few(own, words)
    made = repeats(own, sequences=settings.sequences, length=settings.length, seed=settings.seed)
    prompts, against = prompts_of(model, settings), control_of(own, control)
    hidden, others = _needles(own, corpus, settings), _held_out(own, settings)
    how = settings, execution or Execution(), against
    work = CircuitRun(own, made, ordinals(own), hidden, *how, prompts, others, words)
    return run_experiment(work.request, work.compute, output=output, execution=work.execution)


@dataclass
class CircuitRun:
    """The computation behind `circuits`."""

    model: Model
    made: Repeats
    ordinals: WordPairs
    needles: Needles | None
    settings: CircuitSettings
    execution: Execution
    control: Control | None
    asked: PromptSet | None = None
    others: Repeats | None = None
    words: Words = field(default_factory=dict)

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
        if self.words:
            spec["related_words"] = {
                name: [*map(list, pairs)] for name, pairs in self.words.items()
            }
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
            numbers = self._of_weights(weights)
            if self.needles is not None:
                numbers |= run.part(len(parts), partial(self._of_needles, weights, self.needles))
        of_heads = self._result(joined(parts), numbers, weights)
        made, settings = self.others, self.settings
        if settings.relations:
            relations = related_words(self.model, weights, settings, self.words)
            of_heads = of_heads.merge(relations).assign_attrs(relations.attrs)
        if made is not None and (sets := best_heads(of_heads, settings.switch_off)):
            more = {"seed": settings.seed, "batch_tokens": settings.batch_tokens}
            off = run.part(len(parts) + 1, partial(losses_off, self.model, made, sets, **more))
            costs = off_result(off["losses"], made, sets, replicates=settings.replicates)
            of_heads = of_heads.merge(costs).assign_attrs(switch_off=settings.switch_off)
        del weights  # large vocabularies: each network of the control has its own
        return {"circuits": of_heads, **answers, **self._controls()}

    def _result(
        self, patterns: Mapping[str, Float64], numbers: Mapping[str, Float64], weights: WeightMaps
    ) -> xr.Dataset:
        inputs = self.made, self.ordinals, self.needles
        replicates, width = self.settings.replicates, weights.embedding.shape[1]
        return circuits_result(patterns, numbers, *inputs, replicates=replicates, width=width)

    def _answers(self) -> dict[str, xr.Dataset]:
        """The groups `writes`, which heads write and carry the answers, `discovery`, which together
        are the circuit, and `prompts`, of some prompts.
        """
        if self.asked is None:
            return {}
        settings, language = self.settings, LanguageModel(self.model, "causal")
        how: dict[str, Any] = {
            "batch_tokens": 2 * settings.batch_tokens,
            "replicates": settings.replicates,
        }
        numbers = direct_logits(language, self.asked, **how)
        groups: dict[str, xr.Dataset] = {}
        if self.asked.corrupted:
            patched = patch_heads(language, self.asked, **how)
            numbers = numbers.merge(patched, compat="override")  # both have `accuracy`
            if settings.circuit:
                groups["discovery"] = find_circuit(
                    language, self.asked, edges=settings.edges, seed=settings.seed, **how
                )
        texts = {
            name: ("prompt", [str(getattr(one, name)) for one in self.asked.prompts])
            for name in ("text", "answer", "wrong", "corrupted", "item")
        }
        groups["writes"] = numbers.assign_coords(texts)
        if settings.views:
            most = [numbers[name].values for name in ("direct_share", "effect") if name in numbers]
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
        some = in_parts(
            places, lambda _: len(self.made.repeated[0]), tokens=self.settings.batch_tokens
        )
        return joined([self._batch(weights, batch) for batch in some])

    def _batch(self, weights: WeightMaps, places: Sequence[int]) -> State:
        repeated, fresh = (
            [kind[at] for at in places] for kind in (self.made.repeated, self.made.fresh)
        )
        batch, network = self.model.batch(repeated), self.model.network
        scores = PatternScores(self.made, weights.unembedding)
        next_token, rows = second_half(self.made, repeated), range(len(places))
        run = partial(run_network, network, *batch.inputs)
        look = Instrument(network, observers=[lambda view: scores.look(view, batch)])
        with torch.inference_mode(), evaluating(network):
            answer, losses = next_token.read(network, run, rows, seen_by=look)
        right = to_float64(next_token.means(torch.exp(-losses), rows))
        self._read_new(scores, self.model.batch(fresh), whole_cache(answer))
        patterns, null = scores.whole, np.stack(scores.null, 1)
        return {"patterns": patterns, "null": null, "right": right}

    def _read_new(self, scores: PatternScores, batch: Batch, kept: Any) -> None:
        """Read the inputs whose second half is new.

        kept  keys and values of the inputs with the same first half; None: nothing is shared
        """
        network, more, first = self.model.network, dict[str, Any](), 0
        ids, mask, segments = batch.inputs
        if kept is not None:
            first = self.made.opening + self.made.length
            cut(kept, first)
            more = going_on(network, kept)
        with (
            torch.inference_mode(),
            evaluating(network),
            last_logits(network),
            Instrument(network, observers=[partial(scores.look_at_new, batch=batch, first=first)]),
        ):
            run_network(network, ids[:, first:], mask, segments[:, first:], **more)

    def _of_weights(self, weights: WeightMaps) -> dict[str, Float64]:
        maps = list(weights.layers())
        numbers = {"weight_copying": head_scores.copying(maps, weights)}
        if self.settings.successors and len(self.ordinals.ids) >= FEWEST:
            right = head_scores.successors(maps, weights, self.ordinals)
            numbers["successor"] = right.astype(np.float64)
        if self.settings.composition:
            score, above = head_scores.composition(maps)
            numbers |= {"composition": score, "composition_above": above}
            kernel, above = head_scores.projection_kernel(maps)
            numbers |= {"projection_kernel": kernel, "projection_above": above}
        return numbers

    def _of_needles(self, weights: WeightMaps, hidden: Needles) -> State:
        """[run, …] by name."""
        runs, steps = range(len(hidden.examples)), self.settings.steps
        speaks = weights.unembedding
        return retrieved(self.model, hidden, runs, speaks, whole=WHOLE, steps=steps)

    def _controls(self) -> Mapping[str, xr.Dataset]:
        """The groups of the control: the same of networks that have learned nothing."""
        if self.control is None:
            return {}
        made = replace(
            self.made, repeated=self.made.repeated[:OF_CONTROL], fresh=self.made.fresh[:OF_CONTROL]
        )
        settings = replace(self.settings, composition=False, successors=False, replicates=0)
        hidden = None if self.needles is None else self.needles.some(OF_CONTROL)
        tokens = 2 * OF_CONTROL * len(made.repeated[0])
        counts = {"documents": OF_CONTROL, "examples": 2 * OF_CONTROL, "tokens": tokens}
        shape = self.model.shape
        groups = {CONTROL: xr.Dataset(attrs={"kind": self.control.kind, "tidy": 0, **counts})}
        networks = self.control.asked(["circuits"])  # none of those that serve pairs of heads alone
        with phase("control", len(networks), "networks") as advance:
            for name in networks:
                make = self.control.networks[name]
                about = {"model": name, "layers": shape.layers, "heads": shape.heads}
                groups[f"{CONTROL}/{name}"] = xr.Dataset(attrs={**about, **counts})
                more: Any = {"made": made, "needles": hidden, "settings": settings}
                # No name holds a network while the next one is made.
                groups[f"{CONTROL}/{name}/circuits"] = replace(self, model=make(), **more)._alone()
                advance(1)
        return groups

    def _alone(self) -> xr.Dataset:
        """The group `circuits` of a network of the control."""
        weights = WeightMaps(self.model)
        patterns = self._part(weights, list(range(OF_CONTROL)))
        numbers = self._of_weights(weights)
        if self.needles is not None:  # all of its runs count: it answers none
            numbers |= self._of_needles(weights, self.needles)
            numbers |= {name: np.ones(OF_CONTROL) for name in numbers if "recall" in name}
        return self._result(patterns, numbers, weights)


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


def second_half(made: Repeats, examples: list[Example]) -> TokenLoss:
    """Asks for the next token of the second half where it can be known."""
    at = [made.opening + made.length + made.known(example) for example in examples]
    right = [example.input_ids[places + 1] for example, places in zip(examples, at, strict=True)]
    return TokenLoss("next token", at, right)
