"""How much of what each head attends to, and gathers, do readable rules explain?

A sample of the inputs is read once. On part of its documents each head's rules are chosen, others
say when to stop, and the rest, which chose nothing, says how much of the attention they explain: of
each query Σ_k min(A, P), one less the total variation between attention and prediction. The same of
what is gathered, α‖f(x)‖ with rows of sum 1 (Kobayashi et al. 2020), where rest on a sink counts
for little.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import numpy as np
import torch
import xarray as xr

from headscope.analyses.explained import QUESTION
from headscope.analyses.explained.drawn_queries import DrawnQueries
from headscope.analyses.explained.fitting import MOST_RULES
from headscope.analyses.explained.long_inputs import LayersOfInput, queries_of
from headscope.analyses.explained.prediction import TINY, HeadRules, RuleMaps
from headscope.analyses.explained.rule_sums import GROUPS, RuleSums, chosen, no_rules
from headscope.analyses.explained.rules import RESTS, STAND_IN, rules_of_run
from headscope.analyses.explained.token_mass import KEY_TOKENS, TokenMass, with_key_tokens
from headscope.analyses.explained.unexplained import Unexplained
from headscope.claims.attention_rule import POSITION, REST
from headscope.claims.control import COMPARED
from headscope.claims.terms import OURS
from headscope.core.accumulators import Ints, Sums, ratio
from headscope.core.intervals import DIFFERENCE, SHARE
from headscope.core.results import Variable, labelled
from headscope.corpus.document import Example
from headscope.corpus.equal_documents import dealt, input_name
from headscope.model.batch import Batch, to_float64
from headscope.model.layer import LayerView
from headscope.model.model import Model
from headscope.model.rule_inputs import rule_input
from headscope.run.analysis import SampledAnalysis, Scope

FREQUENT = 64  # ours: the most frequent tokens of the inputs that choose
CHOOSE, STOP, SCORE = range(3)
DEALT = (CHOOSE, SCORE, STOP, CHOOSE, SCORE)  # documents in turn
KEPT_BYTES = 2**28  # ours: of rows that inputs keep until the rules are chosen
FEW_HEADS = 24  # ours: of a network without training, those whose rules are chosen at least
FEWEST = 6  # documents; of fewer, inputs are dealt
EXPLAINS = ("attention", "gathering")
OF_CONTROL = ("rule", "rest", "rule_share")  # the fingerprints of heads without training
# What predicts: all rules, those of position and rest, the rest alone, the rules of another head.
BY = ("rules", "position_and_rest", "rest", "another_head")


class Explained(SampledAnalysis, question=QUESTION):
    """The rules of every head, and how much they explain of inputs that did not choose them."""

    def __init__(self, scope: Scope) -> None:
        super().__init__(scope)
        self.rules = rules_of_run(scope)
        cell = self.cell = (scope.layers, scope.heads)
        self.attention, self.gathering = (self.sums(*cell, len(BY)) for _ in range(2))
        self.iou, self.valued, self.beyond = (self.sums(*cell) for _ in range(3))
        self.by_rule = self.sums(*cell, MOST_RULES + 1)
        # A query at rest on a token of which hardly anything is taken counts for little in a role.
        self.roles, self.amount = self.sums(*cell, MOST_RULES + 1), self.sums(*cell)
        self.queries, self.everywhere = self.sums(), self.sums(4)
        self.applied = self.sums(len(self.rules))
        self.products = np.full(2 * [len(self.rules)], np.nan, np.float32)
        # What predicts -> the rules of all heads: of their attention, and of what they gather.
        self.heads: dict[str, HeadRules] = {}
        self.of_gathering: dict[str, HeadRules] = {}
        self.frequent: tuple[int, ...] = ()
        self.counts = dict.fromkeys(("chosen_on", "scored_on"), 0)
        self._shows([])

    def _shows(self, scored: Sequence[Example]) -> None:
        self.unexplained = Unexplained(*self.cell, scored)
        self.drawn = DrawnQueries(*self.cell, MOST_RULES, scored, seed=self.scope.seed)

    def passes(self, model: Model, examples: Sequence[Example]) -> Iterator[Sequence[Example]]:
        """The inputs that choose, then those that score."""
        part, units = dealt(
            examples, DEALT, seed=self.scope.seed, purpose=QUESTION.name, fewest=FEWEST
        )
        of = [[one for one, at in zip(examples, part, strict=True) if at == p] for p in range(3)]
        self._shows(of[SCORE])
        self._scoring = False
        if not all(of):
            return
        self.frequent = frequent_ids(of[CHOOSE])

        def maps_of(example: Example) -> RuleMaps:
            if (maps := self.made.get(name := input_name(example))) is None:
                read = rule_input(example, model, frequent=self.frequent)
                maps = RuleMaps.of(self.rules, read, queries_of(example, seed=self.scope.seed))
                self._room -= maps.rows.nbytes
                if self._room > 0:
                    self.made[name] = maps
            return maps

        self._maps_of, self._room = maps_of, 0 if self.made else KEPT_BYTES  # others have kept
        choosing = [*of[CHOOSE], *of[STOP]]
        places = {unit: at for at, unit in enumerate(dict.fromkeys(units))}
        self._place = {
            input_name(one): (at, places[unit] % GROUPS if at == STOP else 0)
            for one, at, unit in zip(examples, part, units, strict=True)
        }
        self._norms = {"values", "projection"} <= model.allows
        # A control is compared by the mean of what its heads gather: no more is computed of it.
        (layers, heads), few = self.cell, self._norms and self.scope.control
        self._both = self._norms and not few
        step = max(1, layers * heads // FEW_HEADS) if few else 1
        self._layers = range(layers)[step // 2 :: step] or range(1)
        cell = (layers, heads * (1 + self._both))
        size = (len(self.rules), *cell)
        self._sums = {CHOOSE: RuleSums(*size), STOP: RuleSums(*size, groups=GROUPS)}
        self._received = TokenMass(*cell, choosing)
        self._views = dict[str, LayersOfInput]()
        yield choosing
        self._choose(choosing)
        self.made, self._room, self._views = {}, 0, {}
        self._scoring = True
        self.counts = {"chosen_on": len(choosing), "scored_on": len(of[SCORE])}
        yield of[SCORE]

    def _choose(self, examples: Sequence[Example]) -> None:
        own = np.array([rule.name != STAND_IN for rule in self.rules])  # that is a rest alone
        plain = np.array([rule.kind in (POSITION, REST) for rule in self.rules]) & own
        sums = self._sums[CHOOSE], self._sums[STOP]
        queries = sum(len(queries_of(one, seed=self.scope.seed)) for one in examples)
        products = sum(part.of_all_layers("rule_rule") for part in sums)
        self.products = np.asarray(products / (queries * len(self._layers)), np.float32)
        allowed = {"rules": own, "position_and_rest": plain, "rest": plain & False}
        made = chosen(*sums, self._layers, allowed=allowed)
        made["rules"] = with_key_tokens(made["rules"], self._received, examples, self._by_layer)
        itself = RESTS.index("the token itself")  # one weight a query: both triggers are there
        self._together = made["rules"].overlap(
            {at: sums[0].of_rules("rest_rest", at)[:, itself].sum(0) for at in self._layers}
        )
        heads = self.cell[1]
        if not self._norms or self._both:
            self.heads = {name: rules.of_heads(slice(heads)) for name, rules in made.items()}
        if self._norms:
            self.of_gathering = {n: r.of_heads(slice(-heads, None)) for n, r in made.items()}
        del self._sums, self._received

    def _by_layer(self, example: Example) -> Iterator[tuple[int, RuleMaps]]:
        """A layer, and the rules in it, for each that was looked at."""
        whole, view = self._maps_of(example), self._views[input_name(example)]
        yield from ((layer, view.maps(layer, whole)) for layer in self._layers)
        view.forget()

    def observe(self, layer: LayerView, batch: Batch) -> None:
        """Add to the sums that choose, or to what is explained."""
        if layer.index == 0:
            self._maps = [(self._maps_of(one), LayersOfInput()) for one in batch.examples]
        if layer.index not in self._layers:
            return
        norms = layer.value_norm.float().cpu() if self._norms else None
        for row, (example, (whole, view)) in enumerate(
            zip(batch.examples, self._maps, strict=True)
        ):
            n, maps = len(example), view.look(layer, row, whole)
            rows = layer.attention[row, :, maps.queries, :n].float().cpu()  # [head, query, key]
            at, here = layer.index, batch.groups[[row]]
            length = None if norms is None else norms[row, :, :n]
            attention, own = view.counted(at, rows, length)
            if self._scoring:
                if self.heads:
                    self._score(at, attention, maps, example, here)
                if own is not None and length is not None:
                    amount = torch.einsum("hqk,hk->hq", rows, length)
                    self._score_gathering(at, own, amount, maps, example, group=here)
                if not self.scope.control:
                    self._draw(at, attention if own is None else own, maps, example)
                continue
            part, group = self._place[input_name(example)]
            both = attention if own is None else torch.cat([attention, own][not self._both :])
            self._sums[part].add_attention(maps, both, at, group)
            self._received.add(at, example.input_ids, both.sum(1))
            if at == self._layers[-1]:
                self._add_rules(example, whole, view)

    def _add_rules(self, example: Example, whole: RuleMaps, view: LayersOfInput) -> None:
        part, group = self._place[input_name(example)]
        for layers in view.alike():
            self._sums[part].add_rules(view.maps(layers[0], whole), group, layers)
        view.forget()
        self._views[input_name(example)] = view

    def _draw(self, index: int, rows: torch.Tensor, maps: RuleMaps, example: Example) -> None:
        heads = self.of_gathering or self.heads
        self.drawn.add(index, heads["rules"].layer(index), rows, maps, example)

    def _score(
        self, index: int, attention: torch.Tensor, maps: RuleMaps, example: Example, group: Ints
    ) -> None:
        if index == self._layers[0]:
            self.queries.add(np.array([float(len(maps.queries))]), group)
            self.applied.add(to_float64(maps.applies.sum(-1))[None], group)
        predicted = predictions(self.heads, index, maps, example)
        overlap = overlaps(attention, predicted)  # [head, prediction]
        either = torch.maximum(attention, predicted[0]).sum(-1)
        iou = (torch.minimum(attention, predicted[0]).sum(-1) / either).sum(-1)
        for sums, values in ((self.attention, overlap), (self.iou, iou)):
            sums.add(to_float64(values)[None], group, at=(index,))
        self.everywhere.add(to_float64(overlap[:, :1].sum(0))[None], group, at=(0,))

    def _score_gathering(
        self,
        index: int,
        own: torch.Tensor,
        amount: torch.Tensor,
        maps: RuleMaps,
        example: Example,
        *,
        group: Ints,
    ) -> None:
        """Add one input; amount [head, query]: how much the query gathers."""
        predicted = predictions(self.of_gathering, index, maps, example)
        overlap, valued = overlaps(own, predicted), own.sum((1, 2))
        beyond = overlap[:, 0] - overlap[:, 1]
        by_rule = shares_of_rules(self.of_gathering["rules"].layer(index), maps, own, predicted[0])
        for sums, values in (
            (self.gathering, overlap),
            (self.valued, valued),
            (self.beyond, beyond),
            (self.by_rule, by_rule.sum(-1)),
            (self.roles, torch.einsum("hsq,hq->hs", by_rule, amount)),
            (self.amount, amount.sum(-1)),
        ):
            sums.add(to_float64(values)[None], group, at=(index,))
        for at, values in enumerate((overlap[:, 0], beyond, valued), start=1):
            self.everywhere.add(to_float64(values.sum())[None], group, at=(at,))
        if not self.scope.control:
            self.unexplained.add(index, own, predicted[0], example, maps.queries)

    def result(self) -> xr.Dataset:
        """attention, gathering[layer, head, prediction], and what `explained` says they are made
        of; NaN where the sample cannot be divided, or the norms cannot be read.
        """
        dataset = labelled(
            self._explained() | self._everywhere() | self._chosen(),
            coords={"prediction": BY, "explains": EXPLAINS},
        )
        for name in OF_CONTROL if self.scope.control else ():
            dataset[name].attrs[COMPARED] = 1
        names = [rule.name for rule in self.rules]
        ids = [str(name) for name in dataset.data_vars if str(name).endswith("_token_id")]
        return dataset.set_coords(ids).assign_attrs(
            rules=json.dumps(names),
            rule_kinds=json.dumps([rule.kind for rule in self.rules]),
            frequent=json.dumps(self.frequent),
            relations=json.dumps(self.scope.relations),
            **self.counts,
        )

    def _explained(self) -> dict[str, Variable]:
        cell, by = ("layer", "head"), ("layer", "head", "prediction")
        share = "share of what is gathered"
        estimates = {
            "attention": (
                self.mean(self.attention, self.queries, bounds=SHARE),
                by,
                "attention that is explained",
            ),
            "gathering": (
                self.mean(self.gathering, self._with(self.valued, len(BY)), bounds=SHARE),
                by,
                f"{share} that is explained",
            ),
            "iou": (
                self.mean(self.iou, self.queries, bounds=SHARE),
                cell,
                "attention and prediction: intersection over union",
            ),
            "beyond": (
                self.mean(self.beyond, self.valued, bounds=DIFFERENCE),
                cell,
                f"{share} that rules of content explain, beyond position and rest",
            ),
            "rule_share": (
                self.mean(self.by_rule, self._with(self.valued, MOST_RULES + 1), bounds=SHARE),
                (*cell, "slot"),
                f"{share} that is explained, by rule; the rest last",
            ),
            "role_share": (
                self.mean(self.roles, self._with(self.amount, MOST_RULES + 1), bounds=SHARE),
                (*cell, "slot"),
                f"{share}, queries by how much they do, that is explained by rule; the rest last",
            ),
        }
        return {  # which rule is in a slot differs from head to head: that number ranks no heads
            name: Variable(value, dims, words, "probability", OURS, tidy="slot" not in dims)
            for name, (value, dims, words) in estimates.items()
        }

    def _everywhere(self) -> dict[str, Variable]:
        queries = Sums(self.queries.by_group * (self.cell[0] * self.cell[1]))
        of_queries = self.mean(self.everywhere, queries, bounds=SHARE)
        valued = Sums(self.everywhere.by_group[:, 3])
        of_valued = self.mean(self.everywhere, valued, bounds=DIFFERENCE)
        words = {
            "all_attention": (of_queries, 0, "attention that is explained"),
            "all_gathering": (of_valued, 1, "share of what is gathered that is explained"),
            "all_beyond": (of_valued, 2, "share of what is gathered that content explains"),
        }
        return {
            name: Variable(
                every.map(partial(np.take, indices=at, axis=-1)),
                (),
                f"{said}, mean over heads",
                "probability",
                OURS,
            )
            for name, (every, at, said) in words.items()
        }

    @staticmethod
    def _with(count: Sums, size: int) -> Sums:
        return Sums(np.repeat(count.by_group[..., None], size, -1))

    def _chosen(self) -> dict[str, Variable]:
        """The rules of all heads as numbers, and what is explained least."""
        none = no_rules(*self.cell)
        both = [
            some.get("rules", none).filled(KEY_TOKENS) for some in (self.heads, self.of_gathering)
        ]
        cell = ("explains", "layer", "head")
        words = {
            "rule": ("rule_place", "number of the rule; -1: none"),
            "weight": ("rule_place", "weight of the rule"),
            "rest": ("", f"number of the rest, of {', '.join(RESTS)}; -1: no rules"),
            "key_token_id": ("key_place", "id of a key token; -1: none"),
            "key_factor": ("key_place", "by what the prediction for a key token is multiplied"),
        }
        made = {
            name: Variable(
                np.stack([getattr(one, name.removesuffix("_id")) for one in both]),
                (*cell, dim) if dim else cell,
                said,
                "1",
                OURS,
                tidy=False,
            )
            for name, (dim, said) in words.items()
        }
        together = np.full((*self.cell, MOST_RULES, MOST_RULES), np.nan)
        if self.heads:
            together[...] = self._together[:, -self.cell[1] :]
        made["trigger_overlap"] = Variable(
            together,
            ("layer", "head", "rule_place", "rule_place_other"),
            "share of the queries of the rarer of two rules of a head that have both triggers",
            "probability",
            OURS,
            tidy=False,
        )
        applies = ratio(self.applied.total, self.queries.total[..., None])
        said = "share of queries that the rule applies to"
        made["applies"] = Variable(applies, ("rule_number",), said, "1", OURS, tidy=False)
        of = ("rule_number", "rule_number_other")
        said = "product of the rows of two rules, mean over queries and layers"
        made["rule_product"] = Variable(self.products, of, said, "1", OURS, tidy=False)
        for part in (self.unexplained, self.drawn):
            made |= part.variables()
        return made


def predictions(
    heads: Mapping[str, HeadRules], index: int, maps: RuleMaps, example: Example
) -> list[torch.Tensor]:
    """The rows [head, query, key] that each of BY predicts of a layer."""
    made = [heads[name].layer(index).attention(maps, example.input_ids) for name in BY[:-1]]
    return [*made, made[0].roll(1, 0)]


def overlaps(attention: torch.Tensor, rows: Sequence[torch.Tensor]) -> torch.Tensor:
    """[head, prediction] Σ min(attention, prediction) over queries and keys."""
    return torch.stack([torch.minimum(attention, one).sum((1, 2)) for one in rows], -1)


def shares_of_rules(
    rules: HeadRules, maps: RuleMaps, own: torch.Tensor, predicted: torch.Tensor
) -> torch.Tensor:
    """[head, slot + 1, query] the overlap of what is gathered and predicted; the rest last."""
    parts = rules.parts(maps)  # [head, slot, query, key]
    share = torch.minimum(own, predicted) / parts.sum(1).clamp_min(TINY)
    return torch.einsum("hsqk,hqk->hsq", parts, share)


def frequent_ids(examples: Sequence[Example]) -> tuple[int, ...]:
    """The FREQUENT most frequent token ids that the tokenizer did not add; ties by id."""
    counts = Counter[int]()
    for example in examples:
        counts.update(example.input_ids[~example.special].tolist())
    return tuple(sorted(counts, key=lambda token: (-counts[token], token))[:FREQUENT])
