"""What training changed, and what a task loses without a head: two models; one with heads off."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from .judging import number
from .network import Array
from .pattern import HEAD, Match, Pattern
from .totals import Quantity, Totals
from .world import World, places


class Change:
    """A model before and after training, on the same inputs; `after` is what labels are of."""

    def __init__(self, before: World, after: World) -> None:
        self.before, self.after = before, after
        self.layers, self.heads = after.layers, after.heads

    @cached_property
    def totals(self) -> Totals:
        """1 − the cosine of the flattened maps of each input."""
        totals = Totals()
        for one in self.before.inputs:
            maps = [w.network.look(one.ids, one.segments).maps for w in (self.before, self.after)]
            first, second = (m.reshape(*m.shape[:2], -1) for m in maps)
            lengths = np.linalg.norm(first, axis=-1) * np.linalg.norm(second, axis=-1)
            totals.add("change", one.document, 1 - (first * second).sum(-1) / lengths)
        return totals

    @property
    def by_layer(self) -> Array:
        return np.asarray(self.totals["change"].value.mean(-1))

    def part(self, layers: slice) -> Quantity:
        """The mean over heads of some layers."""
        whole = self.totals["change"]
        return Quantity(whole.above[:, layers].mean((1, 2)), whole.below.reshape(-1))


def _layers(w: Change, m: Match) -> list[str]:
    order = (np.argsort(-w.by_layer) + 1)[:2].tolist()
    said = [int(m["one"]), int(m["two"])]
    return [] if said == order else [f"says layers {said}, they are {order}"]


def _most_changed(w: Change, m: Match) -> list[str]:
    values = w.totals["change"].value
    wrong = [] if values[places(m["head"])] == values.max() else ["is not the head of most change"]
    middle = float(np.median(values))
    if middle > number(m["half"]) + 0.0051:
        wrong.append(f"half change by {middle:.3f} or less")
    return wrong


COMPARED = (
    Pattern(
        "changed most",
        HEAD + r"changed most of {all=} heads, 1 − cosine of its maps {most#}; "
        r"half of them by (?P<half>[\d.]+) or less\.?$",
        {
            "all": lambda w, m: w.layers * w.heads,
            "most": lambda w, m: w.totals["change"][places(m["head"])],
        },
        also=_most_changed,
    ),
    Pattern(
        "layers changed",
        r"Attention changed most in layer (?P<one>\d+) \({first#}\), then layer "
        r"(?P<two>\d+) \({second#}\)",
        {
            "first": lambda w, m: w.by_layer[int(m["one"]) - 1],
            "second": lambda w, m: w.by_layer[int(m["two"]) - 1],
        },
        also=_layers,
    ),
    Pattern(
        "last layers",
        r"1 − cosine is {last#} in the last two, {before#} in those before; "
        "difference {more#}",
        {
            "last": lambda w, m: w.part(slice(-2, None)),
            "before": lambda w, m: w.part(slice(None, -2)),
            "more": lambda w, m: float(
                w.part(slice(-2, None)).value - w.part(slice(None, -2)).value
            ),
        },
    ),
)
MEANS = {
    "Attention to itself": "to self", "Attention to previous token": "to previous",
    "Attention to next token": "to next", "Attention to [CLS]": "to cls",
    "Attention to [SEP]": "to sep", "Attention to punctuation": "to punctuation",
    "Attention to [SEP] from [SEP]": "sep from sep",
    "Attention to [SEP] from other tokens": "sep from other",
    "Of words to same word elsewhere": "of words to the same word",
    "Attention within 3 tokens": "nearby", "Entropy, all tokens (nats)": "entropy",
    "Entropy, [CLS] only (nats)": "entropy of cls",
    "Mean distance of attention (tokens)": "mean distance",
    "Value norm of [CLS]": "value norm of cls", "Value norm of [SEP]": "value norm of sep",
    "Value norm of other tokens": "value norm of other", "Value norm, mean": "value norm",
    "Weighted norm of [CLS]": "norm of cls", "Weighted norm of [SEP]": "norm of sep",
    "Weighted norm of other tokens": "norm of other",
}  # fmt: skip


def _mean(w: Change, m: Match, *signs: int) -> float:
    name = MEANS[m["name"]]
    times = 100 if m["name"].startswith(("Attention", "Of words")) else 1
    each = (w.before.of_mean_head(name), w.after.of_mean_head(name))
    return times * sum(sign * one for sign, one in zip(signs, each, strict=True))


P = r" \| "
NAMES = "|".join(
    name.replace("[", r"\[").replace("(", r"\(").replace(")", r"\)")
    for name in sorted(MEANS, key=len, reverse=True)
)
COMPARED += (
    Pattern(
        "row of a change",
        rf"^(?P<name>{NAMES}){P}{{before#}}{P}{{after#}}{P}{{more#}}{P}",
        {
            "before": lambda w, m: _mean(w, m, 1, 0),
            "after": lambda w, m: _mean(w, m, 0, 1),
            "more": lambda w, m: _mean(w, m, -1, 1),
        },
    ),
)


# --- heads switched off -----------------------------------------------------------------------


class Switched:
    """A classifier on the rows of a file, with every head in turn attending evenly."""

    def __init__(self, folder: Path, rows: Sequence[tuple[str, str]]) -> None:
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.network = (
            AutoModelForSequenceClassification.from_pretrained(folder, attn_implementation="eager")
            .double()
            .eval()
        )
        config = self.network.config
        self.layers, self.heads = config.num_hidden_layers, config.num_attention_heads
        self.rows = rows
        self.ids = [self.tokenizer(text)["input_ids"] for text, _ in rows]
        self.gold = np.array([config.label2id[label] for _, label in rows])
        self.labels = [label for _, label in rows]

    def _logits(self, off: tuple[int, slice] | None = None) -> Array:
        """[example, class]; off: a layer, and the heads of it that attend to all tokens alike."""
        hooks = []
        if off is not None:
            block = self.network.bert.encoder.layer[off[0]].attention
            size = block.self.attention_head_size
            own, kept = slice(off[1].start * size, off[1].stop * size), list[torch.Tensor]()
            hooks.append(block.self.value.register_forward_hook(lambda *a: kept.append(a[2])))

            def even(_module: object, given: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
                mixed = given[0].clone()
                mixed[..., own] = kept.pop().mean(1, keepdim=True)[..., own]
                return (mixed, *given[1:])

            hooks.append(block.output.register_forward_pre_hook(even))
        with torch.no_grad():
            rows = [self.network(input_ids=torch.tensor([ids])).logits[0] for ids in self.ids]
        for hook in hooks:
            hook.remove()
        return torch.stack(rows).numpy()

    @cached_property
    def whole(self) -> Array:
        return self._logits()

    @cached_property
    def off(self) -> dict[tuple[int, int], Array]:
        places_of = np.ndindex(self.layers, self.heads)
        return {at: self._logits((at[0], slice(at[1], at[1] + 1))) for at in places_of}

    def layer_off(self, layer: int) -> Array:
        return self._logits((layer, slice(0, self.heads)))

    def accuracy(self, logits: Array) -> float:
        return float((logits.argmax(-1) == self.gold).mean())

    def loss(self, logits: Array) -> float:
        least = logits - logits.max(-1, keepdims=True)
        logs = least - np.log(np.exp(least).sum(-1, keepdims=True))
        return float(-logs[np.arange(len(logs)), self.gold].mean())


def read_rows(path: Path) -> list[tuple[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return [(row["text"], row["label"]) for row in csv.DictReader(file)]


def _loss_without(w: Switched, m: Match) -> float:
    return w.loss(w.off[places(m["head"])]) - w.loss(w.whole)


def _same(w: Switched) -> int:
    answers = np.stack([one.argmax(-1) for one in w.off.values()])
    return int((answers == w.whole.argmax(-1)).all(0).sum())


def _flips(w: Switched, *, right: bool) -> float:
    was = w.whole.argmax(-1) == w.gold
    now = np.stack([one.argmax(-1) == w.gold for one in w.off.values()])
    return float(((was == right) & (now != was)).sum(-1).mean())


ABLATED = (
    Pattern(
        "accuracy",
        r"^Accuracy of the whole model on \S+ is {right%}, over {n=} examples; to say "
        r"always “(?P<label>.+?)” gives {always%}\.?$",
        {
            "right": lambda w, m: w.accuracy(w.whole),
            "n": lambda w, m: len(w.rows),
            "always": lambda w, m: w.labels.count(m["label"]) / len(w.rows),
        },
    ),
    Pattern(
        "loss without a head",
        r"(?P<head>L\d+·H\d+) \(loss {more#}\)",
        {"more": _loss_without},
        unbounded=("more",),
    ),
    Pattern(
        "row of a head",
        HEAD.replace(" ", "") + rf"{P}.*?{P}[\d.]+{P}\d+{P}\d+{P}{{more#}}{P}"
        r"[\d.]+$",
        {"more": _loss_without},
        unbounded=("more",),
    ),
    Pattern(
        "row of a layer",
        rf"^layer (?P<layer>\d+){P}{{points#}}{P}[\d.]+{P}\d+{P}\d+{P}{{more#}}"
        rf"{P}[\d.]+$",
        {
            "points": lambda w, m: (
                100 * (w.accuracy(w.layer_off(int(m["layer"]) - 1)) - w.accuracy(w.whole))
            ),
            "more": lambda w, m: w.loss(w.layer_off(int(m["layer"]) - 1)) - w.loss(w.whole),
        },
    ),
    Pattern(
        "largest of layers",
        r"the largest, without layer (?P<layer>\d+) \({points#}(?: points)?",
        {
            "points": lambda w, m: (
                100 * (w.accuracy(w.layer_off(int(m["layer"]) - 1)) - w.accuracy(w.whole))
            ),
        },
    ),
    Pattern(
        "answers that stay",
        r"{same=} of {n=} answers \({share%}\) are the same whichever head is "
        "off",
        {
            "same": lambda w, m: _same(w),
            "n": lambda w, m: len(w.rows),
            "share": lambda w, m: _same(w) / len(w.rows),
        },
    ),
    Pattern(
        "answers that change",
        r"^A head switched off makes {wrong#} right answers? wrong and "
        "{right#} wrong ones? right, mean over heads",
        {
            "wrong": lambda w, m: _flips(w, right=True),
            "right": lambda w, m: _flips(w, right=False),
        },
    ),
    Pattern("loss", r"Whole model {loss#};", {"loss": lambda w, m: w.loss(w.whole)}),
)
