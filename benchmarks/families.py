"""Which families of transformers can be read, and are their maps the stock ones?

python -m benchmarks.families [NAME ...]

Builds a tiny random model of every family from its configuration in transformers, reads it through
`Instrument`, and holds maps and output against the model's own with `output_attentions=True`. What
is printed stands in docs/families.md.
"""

from __future__ import annotations

import argparse
import logging
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import transformers

from benchmarks.family_models import FAMILIES, inputs, made
from headscope.errors import ModelError
from headscope.model.families.sites import other_layers
from headscope.model.instrument import Instrument
from headscope.model.layer import LayerView

READ, REFUSED, WRONG = "read", "refused", "wrong"
TOLERANCE = 1e-5  # of a weight, and of the output's largest number
OUTPUTS = {
    "": "attentions",
    "encoder": "encoder_attentions",
    "decoder": "decoder_attentions",
    "cross": "cross_attentions",
}
TOWERS = {"text": "text_model_output", "vision": "vision_model_output"}  # of CLIP


@dataclass(frozen=True)
class Reading:
    """What came of one family.

    verdict  READ, REFUSED or WRONG
    maps     layers by stack, "2 encoder, 3 decoder"; of what is refused, why
    off      largest difference of a weight from the stock map; None where stock returns no map
    norms    values and output projection are read, and explain the layer's output
    reasons  queries and keys are read, and explain the maps
    """

    name: str
    verdict: str
    maps: str
    off: float | None = None
    norms: bool = False
    reasons: bool = False

    @property
    def row(self) -> str:
        """A line of the table."""
        same = "no stock map" if self.off is None else "equal" if self.off == 0 else "< 0.00001"
        told = [self.maps, "" if self.verdict == REFUSED else same]
        told += ["yes" if given else "" for given in (self.norms, self.reasons)]
        return f"| {self.name} | {self.verdict} | " + " | ".join(told) + " |"


def read(name: str) -> Reading:
    """Reads one family and compares."""
    network = made(name)
    given = inputs(network, name)
    views: list[LayerView] = []
    try:
        with torch.no_grad(), Instrument(network, observers=[views.append]):
            output = network(**given)
    except ModelError as error:
        return Reading(name, REFUSED, _why(str(error)))
    with torch.no_grad():
        stock = network(**given, output_attentions=True)
    off, layers = _off(views, stock), Counter(view.stack for view in views)
    kept = {"values", "projection"}
    norms = all(kept <= view.offers and _adds_up(view) for view in views)
    hidden = "last_hidden_state" in output
    right = not hidden or _near(output.last_hidden_state, stock.last_hidden_state)
    told = ", ".join(f"{n} {stack}" for stack, n in layers.items())
    paths = list(dict.fromkeys(view.site.path for view in views))
    others = Counter(other_layers(network, paths, len(views))[1].values())
    told += "".join(f"; left out: {n} {mixer}" for mixer, n in others.items())
    verdict = READ if right and (off is None or off <= TOLERANCE) else WRONG
    reasons = all("queries_keys" in view.offers for view in views)
    return Reading(name, verdict, told, off, norms, reasons)


def _off(views: Sequence[LayerView], stock: Any) -> float | None:
    """Largest difference of a weight from its stock map; infinite where one of them is missing."""
    worst: float | None = None
    towers = {name: stock[field].attentions for name, field in TOWERS.items() if field in stock}
    for stack, field in (OUTPUTS | TOWERS).items():
        maps = [one for one in towers.get(stack, getattr(stock, field, ())) or () if _is_map(one)]
        seen = [view for view in views if stack in ("", view.stack)]
        if maps and len(maps) != len(seen):
            return float("inf")
        for view, one in zip(seen, maps, strict=False):
            real = one if one.min() >= 0 else one.softmax(-1)  # some return scores
            found = _banded(view.attention, real.shape[-1])
            worst = max(worst or 0.0, float((found - real).abs().max()))
    return worst


def _is_map(one: Any) -> bool:
    """Whether it holds weights or scores: layers that mix otherwise return states, or nothing."""
    if not isinstance(one, torch.Tensor):
        return False
    sums = one.sum(-1)
    return bool(one.min() < -1e30 or (one.min() >= 0 and sums.max() < 1 + 1e-4))


def _banded(attention: torch.Tensor, columns: int) -> torch.Tensor:
    """[example, head, query, column] the window around each query, as Longformer returns it."""
    tokens = attention.shape[-1]
    if columns >= tokens:
        return attention
    half = columns // 2
    wide = torch.nn.functional.pad(attention, (half, half))
    at = torch.arange(tokens)[:, None] + torch.arange(columns)  # [query, column]
    return wide.gather(3, at.expand(*attention.shape[:2], -1, -1))


def _adds_up(view: LayerView) -> bool:
    """Whether Σ_h α v W_O + b_O is what the layer's output projection gave."""
    assert view.values is not None
    if view.output is None:
        return False
    whole = view.project(view.attention @ view.values)
    return whole.shape == view.output.shape and _near(whole, view.output)


def _near(one: torch.Tensor, other: torch.Tensor) -> bool:
    return bool((one - other).abs().max() <= TOLERANCE * other.abs().max().clamp_min(1))


def _why(message: str) -> str:
    """The reason in a refusal, without the names that stand before and the advice after it."""
    first = message.partition("; ")[0].partition("\n")[0]
    return first.partition("): ")[2] or first.partition(": ")[2] or first


def readings(names: Sequence[str]) -> Iterator[Reading]:
    """One after the other; all families if no names are given."""
    for name in names or FAMILIES:
        yield read(name)


def table(found: Sequence[Reading]) -> str:
    """Counts and a row per family, as Markdown."""
    counts = Counter(one.verdict for one in found)
    summary = ", ".join(f"{counts[kind]} {kind}" for kind in (READ, REFUSED, WRONG))
    head = (
        "| family | verdict | layers, or why not | maps beside stock | norms | queries and keys |"
    )
    lines = [one.row for one in found]
    return "\n".join(
        [
            f"{len(found)} families of transformers {transformers.__version__}: {summary}.",
            "",
            head,
            "|---|---|---|---|---|---|",
            *lines,
        ]
    )


def main(arguments: Sequence[str] | None = None) -> str:
    """Read the families, print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="of a family; all by default")
    asked = parser.parse_args(arguments)
    logging.disable(logging.WARNING)
    warnings.filterwarnings("ignore")
    text = table(list(readings(asked.names)))
    print(text)
    return text


if __name__ == "__main__":
    main()
