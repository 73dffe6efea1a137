"""Where heads look, how widely, how far, and what they gather: from the maps of each input.

Each number is a mean over the queries of an input, then over inputs. The words for the tokens that
attention goes to are those of the sentences.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import numpy as np

from .corpus import Input
from .network import Array, Look, Network
from .totals import Totals

MARKS = (".", ",")
SINK, SINK_TOKENS, LEAST_TOKENS = 0.3, 64, 16
WINDOW = (4, 64)  # the first and the latest tokens
BANDS = (16, 32, 64, 128, 512, 2048)


def kinds_of_tokens(one: Input, network: Network) -> dict[str, np.ndarray]:
    """Kind -> [token] whether it is one; each token is of one kind."""
    tokenizer = network.tokenizer
    plain = [tokenizer.decode([i]).strip() for i in one.ids]
    kinds = {"punctuation": np.array([text in MARKS for text in plain])}
    if tokenizer.cls_token_id is not None:
        kinds["cls"] = np.array(one.ids) == tokenizer.cls_token_id
        kinds["sep"] = np.array(one.ids) == tokenizer.sep_token_id
    else:
        kinds["first"] = np.arange(len(one)) == 0
        kinds["punctuation"] &= ~kinds["first"]
    kinds["other"] = ~np.any(list(kinds.values()), axis=0)
    return kinds


def add_all(totals: Totals, inputs: Iterable[Input], network: Network) -> None:
    """Adds every number of this file, of every input."""
    for one in inputs:
        look, kinds = network.look(one.ids, one.segments), kinds_of_tokens(one, network)
        _where(totals, one, look.maps, kinds)
        _words(totals, one, look.maps, causal=network.causal)
        _how_widely(totals, one, look.maps, causal=network.causal)
        _how_far(totals, one, look.maps, causal=network.causal)
        _norms(totals, one, look, kinds)
        _sinks(totals, one, look.maps, kinds, causal=network.causal)


def band_of(tokens: int) -> str:
    """The length band of an input, as reports write it: `≤ 16`, `17-32`, …"""
    if tokens <= BANDS[0]:
        return f"≤ {BANDS[0]}"
    ends = (f"{low + 1}-{high}" for low, high in pairwise(BANDS) if low < tokens <= high)
    return next(ends, f"> {BANDS[-1]}")


def _where(totals: Totals, one: Input, maps: Array, kinds: dict[str, np.ndarray]) -> None:
    n, document = len(one), one.document
    shares = {
        "self": np.trace(maps, axis1=-2, axis2=-1) / n,
        "previous": np.trace(maps, -1, -2, -1) / n,
        "next": np.trace(maps, 1, -2, -1) / n,
        "first": maps[..., 0].mean(-1),
    }
    columns = maps.mean(-2)  # [layer, head, key]
    shares |= {kind: columns[..., at].sum(-1) for kind, at in kinds.items() if kind != "first"}
    for name, share in shares.items():
        totals.add(f"to {name}", document, share)
        totals.add(f"to {name} in {band_of(n)}", document, share)
    if "sep" in kinds:
        received = maps[..., kinds["sep"]].sum(-1)  # [layer, head, query]
        totals.add("sep from sep", document, received[..., kinds["sep"]].mean(-1))
        totals.add("sep from other", document, received[..., ~kinds["sep"]].mean(-1))
    else:
        left = 1 - maps[..., 0].mean(-1)
        mark = maps[..., kinds["punctuation"]].sum(-1).mean(-1)
        rest = {
            "self": shares["self"] - maps[..., 0, 0] / n,
            "punctuation": mark,
            "previous": shares["previous"] - (maps[..., 1, 0] / n if n > 1 else 0),
        }
        for name, share in rest.items():
            totals.add(f"of the rest to {name}", document, share, left)
    totals.add("tokens", document, n)
    totals.add("one token", document, 1 / n)


def _words(totals: Totals, one: Input, maps: Array, *, causal: bool) -> None:
    """What words give to the same token at other places; mean over words that see one."""
    ids, word = np.array(one.ids), ~one.special
    same = (ids[:, None] == ids) & word & word[:, None] & ~np.eye(len(one), dtype=bool)
    seen = np.tril(np.ones_like(same)) if causal else np.ones_like(same)
    same &= seen
    asked = same.any(-1)
    if asked.any():
        to_same = (maps * same).sum(-1)  # [layer, head, query]
        totals.add("of words to the same word", one.document, to_same[..., asked].mean(-1))
        even = (same.sum(-1) / seen.sum(-1))[asked].mean()
        totals.add("of words to the same word, uniform", one.document, even)


def _how_widely(totals: Totals, one: Input, maps: Array, *, causal: bool) -> None:
    logs = np.log(maps, out=np.zeros_like(maps), where=maps > 0)
    nats = -(maps * logs).sum(-1)  # [layer, head, query]
    seen = np.arange(1, len(one) + 1) if causal else np.full(len(one), len(one))
    totals.add("entropy", one.document, nats.mean(-1))
    totals.add("entropy of cls", one.document, nats[..., 0])
    totals.add("uniform entropy", one.document, np.log(seen).mean())
    totals.add("relative entropy", one.document, nats.mean(-1), np.log(seen).mean())


def _how_far(totals: Totals, one: Input, maps: Array, *, causal: bool) -> None:
    n, document = len(one), one.document
    distance = np.abs(np.arange(n)[:, None] - np.arange(n))
    lines = {by: np.trace(maps, by, -2, -1) for by in range(1 - n, n)}
    by = np.stack([lines[0], *(lines[d] + lines[-d] for d in range(1, n))], -1) / n
    totals.add("nearby", document, by[..., :4].sum(-1))
    totals.add("mean distance", document, by @ np.arange(n))
    for share in (0.5, 0.9):
        within = np.cumsum(by, -1) >= share - 1e-7
        totals.add(f"reach of {share}", document, within.argmax(-1))
    uniform = np.tril(np.ones((n, n))) if causal else np.ones((n, n))
    uniform /= uniform.sum(-1, keepdims=True)
    totals.add("uniform distance", document, (uniform * distance).sum() / n)
    first, last = WINDOW
    if causal and n > first + last:
        queries = np.arange(first + last, n)
        kept = (np.arange(n) < first) | (distance < last)
        totals.add("streaming", document, (maps * kept)[..., queries, :].sum(-1).mean(-1))
        totals.add("uniform streaming", document, (uniform * kept)[queries].sum(-1).mean())


def _norms(totals: Totals, one: Input, look: Look, kinds: dict[str, np.ndarray]) -> None:
    received = look.maps.mean(-2) * look.norms  # [layer, head, key] mean over queries of ‖αf(x)‖
    for kind, at in kinds.items():
        totals.add(f"norm of {kind}", one.document, received[..., at].sum(-1))
        if at.any():
            totals.add(f"value norm of {kind}", one.document, look.norms[..., at].mean(-1))
    totals.add("value norm", one.document, look.norms.sum(-1), len(one))
    totals.add("value norm squared", one.document, (look.norms**2).sum(-1), len(one))
    for kind in kinds:
        own = received[..., kinds[kind]].sum(-1)
        totals.add(f"norm share of {kind}", one.document, own, received.sum(-1))


def _sinks(
    totals: Totals, one: Input, maps: Array, kinds: dict[str, np.ndarray], *, causal: bool
) -> None:
    n = min(len(one), SINK_TOKENS) if causal else len(one)
    maps = maps[..., :n, :n]
    seen_by = np.arange(n, 0, -1) if causal else np.full(n, n)
    received = maps.sum(-2) / seen_by
    sink = (received > SINK) & (seen_by >= n / 2)
    ends = ["in any input", *[""] * (len(one) >= LEAST_TOKENS)]
    for end in ends:
        totals.add(f"sink {end}".strip(), one.document, sink.any(-1))
        for kind, at in kinds.items():
            name = f"sink on {kind} {end}".strip()
            totals.add(name, one.document, sink[..., at[:n]].any(-1))
