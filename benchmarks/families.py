"""Which families of transformers can be read, and are their maps the stock ones?

python -m benchmarks.families [--write] [NAME ...]

Builds a tiny random model of every family from its configuration in transformers, reads it through
`Instrument`, and holds maps and output against the model's own with `output_attentions=True`. What
--write writes is what `headscope models` and docs/families.md show.
"""

from __future__ import annotations

import argparse
import logging
import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
import transformers

from benchmarks.family_models import FAMILIES, inputs, made
from headscope.errors import ModelError
from headscope.model.families import registry
from headscope.model.families.registry import Family, write_families
from headscope.model.families.sites import other_layers
from headscope.model.instrument import Instrument
from headscope.model.layer import LayerView

READ, REFUSED, WRONG = "read", "refused", "wrong"
NEAR = 1e-6  # of a weight
TOLERANCE = 1e-5  # of the output's largest number
OUTPUTS = {
    "": "attentions",
    "encoder": "encoder_attentions",
    "decoder": "decoder_attentions",
    "cross": "cross_attentions",
}
TOWERS = {"text": "text_model_output", "vision": "vision_model_output"}  # of CLIP


def read(name: str) -> Family:
    """Reads one family and compares."""
    network = made(name)
    called = (name, network.config.model_type)
    version = transformers.__version__
    given = inputs(network, name)
    views: list[LayerView] = []
    try:
        with torch.no_grad(), Instrument(network, observers=[views.append]):
            output = network(**given)
    except ModelError as error:
        return Family(*called, REFUSED, _why(str(error)), "", "", "", version)
    with torch.no_grad():
        stock = network(**given, output_attentions=True)
    off = _off(views, stock)
    kept = {"values", "projection"}
    norms = all(kept <= view.offers and _adds_up(view) for view in views)
    hidden = "last_hidden_state" in output
    right = not hidden or _near(output.last_hidden_state, stock.last_hidden_state)
    told = ", ".join(dict.fromkeys(view.stack for view in views))
    paths = list(dict.fromkeys(view.site.path for view in views))
    others = dict.fromkeys(other_layers(network, paths, len(views))[1].values())
    told += "".join(f"; left out: {mixer}" for mixer in others)
    verdict = READ if right and (off is None or off <= NEAR) else WRONG
    reasons = all("queries_keys" in view.offers for view in views)
    same = "" if off is None else "equal" if off == 0 else f"< {NEAR:f}"
    return Family(*called, verdict, told, same, *("yes" * one for one in (norms, reasons)), version)


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


def readings(names: Sequence[str]) -> Iterator[Family]:
    """One after the other; all families if no names are given."""
    for name in names or FAMILIES:
        yield read(name)


def main(arguments: Sequence[str] | None = None) -> list[Family]:
    """Read the families, print the table, or write it into the package."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="of a family; all by default")
    parser.add_argument("--write", action="store_true", help="into the package, all families")
    asked = parser.parse_args(arguments)
    logging.disable(logging.WARNING)
    warnings.filterwarnings("ignore")
    found = list(readings([] if asked.write else asked.names))
    if asked.write:
        with open(Path(registry.__file__).with_name(registry.FILE), "w", encoding="utf-8") as file:
            write_families(found, file)
    else:
        write_families(found, sys.stdout)
    counts = Counter(one.verdict for one in found)
    print(f"{len(found)} families: " + ", ".join(f"{n} {kind}" for kind, n in counts.items()))
    return found


if __name__ == "__main__":
    main()
