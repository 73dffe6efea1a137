"""Captures how the heads of a model attend in a few inputs that a run stores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import xarray as xr

from headscope.analyses.examples.measure import Examples
from headscope.core.results import printable
from headscope.corpus.document import Example
from headscope.model.batch import Batch
from headscope.model.instrument import Instrument
from headscope.model.model import Model, forward
from headscope.run.analysis import Scope

LONGEST = 400  # characters of an input where it is named


def capture_maps(model: Model, few: Sequence[Example], scope: Scope) -> xr.Dataset:
    """The group `examples`: all maps of a few inputs, each read by itself.

    The model must be fit to be read (`model.evaluating`).
    """
    tokens = tuple(model.tokens(example.input_ids) for example in few)
    analysis = Examples(replace(scope, stored_inputs=tuple(few), stored_tokens=tokens))
    for example in few:
        batch = Batch.of([example], model.vocabulary, replicates=0, device=model.device)
        look = partial(analysis.observe, batch=batch)
        with Instrument(model.network, observers=[look], stacks=[model.shape.stack]):
            forward(model.network, batch.input_ids, batch.mask, batch.segment_ids)
    return analysis.result()


def input_text(example: Example, model: Model) -> str:
    """The text of an input without special tokens; / stands where these separate two texts."""
    parts: list[list[str]] = [[]]
    for token, special in zip(model.tokens(example.input_ids), example.special, strict=True):
        if not special:
            parts[-1].append(token)
        elif parts[-1]:
            parts.append([])
    # WordPiece marks the continuation of a word with ##.
    whole = " / ".join(" ".join(part).replace(" ##", "") for part in parts if part)
    return printable(whole)[:LONGEST]
