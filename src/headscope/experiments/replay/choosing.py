"""Choose what stands in for heads, on documents that do not try it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from io import BytesIO
from itertools import islice

import numpy as np
import torch
import xarray as xr

from headscope.analyses.explained.measure import Explained
from headscope.analyses.explained.prediction import HeadRules
from headscope.claims.attention_rule import AttentionRule
from headscope.core.accumulators import Float64, Ints, generator
from headscope.core.progress import phase
from headscope.core.results import with_token_names, without_draws
from headscope.core.wording import how_many
from headscope.corpus import Corpus
from headscope.corpus.contents import label
from headscope.corpus.document import Example
from headscope.corpus.equal_documents import dealt
from headscope.corpus.packing import batches
from headscope.errors import CorpusError
from headscope.experiments.replay.looked_at import LookedAt
from headscope.experiments.replay.replacements import StandIns, replacing
from headscope.experiments.replay.scores import Difference, finite
from headscope.experiments.replay.settings import ALONE, REPLACEMENTS, RULES
from headscope.model.linears import linears as linear_maps
from headscope.model.model import Model, evaluating
from headscope.run.analysis import LEADING, Scope
from headscope.run.compute import ShardJob
from headscope.run.execution import Lengths
from headscope.run.netcdf import tree_as_netcdf, tree_of_netcdf
from headscope.run.plan import encoder_for
from headscope.run.sampled_analyses import BATCH_TOKENS, few_of, read_sample
from headscope.run.settings import Settings
from headscope.run.shard_files import State

LONGEST = 4 * LEADING  # tokens of an input that choose, the first ones
LOOKED_AT = 2**14  # ours: tokens of inputs that order the heads and make the mean maps
FITTED = "fitted"  # begins the names of arrays
FEWEST = 12  # ours: documents, or inputs, of which six choose and six try


@dataclass(frozen=True)
class Halves:
    """The inputs that choose, and those that try, of other documents each.

    units  name of the document of each input that tries
    """

    choosing: list[Example]
    trying: list[Example]
    units: list[str]

    @property
    def all(self) -> list[Example]:
        """All inputs, in an order that decides the numbers."""
        return [*self.choosing, *self.trying]


def read_inputs(
    model: Model, corpus: Corpus, lengths: Lengths, *, enough: int, limit: int | None, seed: int
) -> tuple[list[Example], dict[str, int]]:
    """Inputs of two tokens or more of the first documents, about as many as are enough; and how
    many were read in windows, or left out.

    lengths  how long an input may be
    limit    documents at most
    """
    reading = Settings(
        max_length=lengths.max_length,
        long=lengths.long,
        segment_ids=lengths.segment_ids,
        seed=seed,
    )
    encoder, examples = encoder_for(model, reading), list[Example]()
    for document in islice(corpus, limit):
        examples += [one for one in encoder.encode(document) if len(one) > 1]
        if len(examples) >= enough:
            break
    return examples, {"windowed": encoder.counts.windowed, "skipped": encoder.counts.skipped}


def halves_of(examples: Sequence[Example], *, choosing: int, trying: int, seed: int) -> Halves:
    """Deal documents to two halves and draw inputs of each; of few documents, inputs are dealt.

    raises  CorpusError for fewer than FEWEST inputs
    """
    part, units = dealt(examples, (0, 1), seed=seed, purpose="replay", fewest=FEWEST)
    if len(set(units)) < FEWEST:
        few = how_many(len(set(units)), "input")
        raise CorpusError(
            f"found {few}; wanted at least {FEWEST}: one half chooses the rules of the heads, the "
            "other tries them"
        )
    drawn: list[list[int]] = []
    for number, most in ((0, choosing), (1, trying)):
        there = [at for at, half in enumerate(part) if half == number]
        rank = generator(seed, "inputs", str(number)).permutation(len(there))
        drawn.append(spread_over(there, units, rank)[:most])
    first, second = (sorted(some) for some in drawn)
    return Halves(
        [examples[at] for at in first],
        [examples[at] for at in second],
        [units[at] for at in second],
    )


def spread_over(places: Sequence[int], units: Sequence[str], rank: Ints) -> list[int]:
    """The places in random order, one of each unit before a second of any.

    units  [input] name of its document
    rank   permutation of the places
    """
    met = Counter[str]()
    turns = []
    for at in rank.tolist():
        unit = units[places[at]]
        turns.append((met[unit], places[at]))
        met[unit] += 1
    return [place for _, place in sorted(turns, key=lambda turn: turn[0])]


@dataclass(frozen=True)
class Chosen:
    """What one half of the documents says of every head.

    explained  the results of the question `explained` there
    rest       [layer, head] number of the rest of a head without rules; from an atlas, of its rules
    profile    [layer, head, key − query + n − 1] mean attention by relative position
    error      [layer, head] how far what it adds is off by its rules
    cost       [layer, head] how far the output is from that of the whole model where they stand
               in for this head alone; 0 where that orders nothing
    fitted     what stands in -> its rules, with weights that are fitted to the output
    """

    explained: xr.Dataset
    rest: Float64
    profile: Float64
    error: Float64
    cost: Float64
    fitted: dict[str, HeadRules] = field(default_factory=dict)

    @property
    def rules(self) -> HeadRules:
        """The rules of every head."""
        names = ("rule", "weight", "rest", "key_token_id", "key_factor")
        of_attention = self.explained.sel(explains="attention")
        return HeadRules(*(of_attention[name].values for name in names))

    @property
    def rest_alone(self) -> HeadRules:
        """Its rest, and no rules."""
        rules = self.rules
        none = np.zeros((*self.rest.shape, 0))
        return HeadRules(
            np.full_like(rules.rule, -1),
            np.zeros_like(rules.weight),
            self.rest.astype(np.int64),
            none.astype(np.int64),
            none,
        )

    @property
    def frequent(self) -> tuple[int, ...]:
        """The ids of frequent tokens."""
        return tuple(map(int, json.loads(self.explained.attrs["frequent"])))

    def best(self, by: str) -> Float64:
        """[layer, head] the larger, the sooner a head is replaced.

        by  "output": how little it is off; "alone": how little it costs; "gathering", "attention":
            how much of these is explained. Attention, where the other two cannot be read
        """
        of_rules = self.explained.sel(prediction="rules")
        attention, gathering = (of_rules[name].values for name in ("attention", "gathering"))
        numbers = {"output": -self.error, ALONE: -self.cost, "gathering": gathering}
        number = numbers.get(by, attention)
        return np.asarray(number if np.isfinite(number).all() else attention)

    def state(self) -> State:
        """As arrays, for a file."""
        tree = xr.DataTree.from_dict({"/": xr.Dataset(), "/explained": self.explained})
        content = np.frombuffer(tree_as_netcdf(tree), np.uint8)
        fitted = {
            f"{FITTED} {name} {part}": values
            for name, rules in self.fitted.items()
            for part, values in vars(rules).items()
        }
        return {
            "explained": content,
            "rest": self.rest,
            "profile": self.profile,
            "error": self.error,
            "cost": self.cost,
            **fitted,
        }

    @classmethod
    def of_state(cls, state: State) -> Chosen:
        """From its `state`."""
        tree = tree_of_netcdf(BytesIO(state["explained"].tobytes()))
        rest, profile, error, cost = (state[name] for name in ("rest", "profile", "error", "cost"))
        parts = [part.name for part in fields(HeadRules)]
        fitted = {
            name: HeadRules(*(state[f"{FITTED} {name} {part}"] for part in parts))
            for name in REPLACEMENTS
            if f"{FITTED} {name} {parts[0]}" in state
        }
        return cls(tree["explained"].to_dataset(), rest, profile, error, cost, fitted)


def scope_of_inputs(
    model: Model, examples: Sequence[Example], *, replicates: int, seed: int
) -> Scope:
    """What `explained` knows of the inputs that choose."""
    shape, documents = model.shape, list(dict.fromkeys(one.document for one in examples))
    counts = Counter(label(e, at) for e in examples for at in range(len(e.words or ())))
    few = len(documents) <= replicates
    return Scope(
        layers=shape.layers,
        heads=shape.heads,
        documents=len(documents),
        special_tokens=model.special_tokens,
        relations=tuple(name for name, _ in counts.most_common()),
        replicates=len(documents) if few else replicates,
        listed={name: at for at, name in enumerate(documents)} if few else {},
        seed=seed,
        neurons=shape.neurons,
        sinks=shape.sinks,
        first_token=shape.stack == "decoder" and "cls" not in model.special_tokens,
    )


def choose_stand_ins(
    model: Model,
    corpus: Corpus,
    examples: Sequence[Example],
    scope: Scope,
    rules: Sequence[AttentionRule],
    *,
    explained: xr.Dataset | None,
    linears: str,
) -> Chosen:
    """Read the inputs that choose, in a few passes.

    model      its body: no language-model head is run
    rules      those that every head may have
    explained  which of them each has, from an atlas; None: the inputs choose them
    """
    job = ShardJob(
        corpus,
        Settings(seed=scope.seed),
        scope,
        (),
        model.shape.stack,
        linears=linears,
        threads=torch.get_num_threads(),
    )
    read = [one.leading(LONGEST) for one in examples]
    few = few_of(read, LOOKED_AT)
    count = len(few) + (explained is None) * len(examples)
    with phase("rules", count, "inputs") as advance, evaluating(model.network):
        if explained is None:
            analysis = read_sample("explained", model, job, read, advance)
            assert isinstance(analysis, Explained)
            explained = without_draws(with_token_names(analysis.result(), model.tokens))
            rest = analysis.heads["rest"].rest.astype(np.float64)
        else:
            rest = explained["rest"].sel(explains="attention").values.astype(np.float64)
        chosen = Chosen(explained, rest, np.zeros(0), np.zeros(0), np.zeros(rest.shape))
        made = StandIns(model, rules, {RULES: chosen.rules}, np.zeros(0), chosen.frequent)
        looked = LookedAt(made, max(map(len, few)))
        looked.read(few, advance)
    return replace(chosen, profile=looked.profile, error=looked.error)


def costs_alone(stand_ins: StandIns, difference: Difference, kind: str) -> Float64:
    """[layer, head] how far the output is from that of the whole model with the rules of one head
    in its place, mean over the inputs that are compared.

    kind  of linear maps, "onednn" or "stock"
    """
    model, examples = stand_ins.model, difference.examples
    heads = list(np.ndindex(model.shape.layers, model.shape.heads))
    total, count = np.zeros(len(heads)), 0
    rows = list(batches(examples, budget=BATCH_TOKENS))
    with (
        phase("heads alone", len(examples), "inputs") as advance,
        linear_maps(model.network, kind),
        replacing(model.network) as change,
    ):
        for places in rows:
            batch = model.batch([examples[at] for at in places])
            own = stand_ins.of(batch).rows(RULES)
            change.use(frozenset(), None)
            whole = difference.output(model, batch, places)
            for at, head in enumerate(heads):
                change.use(frozenset({head}), own)
                output = difference.output(model, batch, places)
                far = finite(difference.difference(output, whole, batch))
                total[at] += float(far.sum())
            count += len(far)
            advance(len(places))
    return np.asarray((total / count).reshape(model.shape.layers, model.shape.heads))
