"""Payloads of the views, made by hand: maps of known values, coded as a page reads them.

Independent of `headscope.views.view_page`: written from the page's side of the contract.
"""

from __future__ import annotations

import base64
import gzip

import numpy as np

FIRST = ("[CLS]", "the", "cat", "sat", "on", "the", "mat", "because", "it", "was", "warm", "[SEP]")
SECOND = ("the", "dog", "looked", "at", "it", "for", "##ever", ".", "[SEP]")
SPECIAL = {"[CLS]", "[SEP]", "<s>", "</s>"}


def make_tokens(n):
    middle = (FIRST + SECOND)[1:-1]
    return [FIRST[0], *(middle[place % len(middle)] for place in range(n - 2)), SECOND[-1]]


def make_side(tokens, *, name="", pair=False):
    """Words are joined by '##'; a second sentence begins right after the middle."""
    special = [token in SPECIAL for token in tokens]
    boundary = len(tokens) // 2 + 1 if pair else None
    word, last = [], -1
    for token, aside in zip(tokens, special, strict=True):
        last += not aside and not (token.startswith("##") and word and word[-1] == last >= 0)
        word.append(-1 if aside else last)
    return {
        "name": name,
        "tokens": list(tokens),
        "special": special,
        "word": word,
        "segment": [int(pair and place >= boundary) for place in range(len(tokens))],
        "boundary": boundary,
    }


def make_maps(queries, keys, layers, heads, *, causal=False, seed=4):
    """Rows sum to one: previous token, next token, first, separator-like, broad, local."""
    rng = np.random.default_rng(seed)
    query, key = np.arange(queries)[:, None], np.arange(keys)[None, :]
    away = query - key  # [query, key]
    maps = np.empty((layers, heads, queries, keys))
    for layer in range(layers):
        for head in range(heads):
            kind = (layer * 5 + head) % 6
            scores = rng.normal(0, 1.2, (queries, keys))
            scores += (
                5.0 * (away == 1),
                5.0 * (away == -1),
                5.0 * (key == 0) + 0 * query,
                5.0 * (key == keys - 1) + 0 * query,
                0 * away,
                -np.abs(away) / 2,
            )[kind]
            if causal:
                scores[away < 0] = -np.inf
            maps[layer, head] = softmax(scores)
    return maps


def softmax(scores):
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


# --- coding -------------------------------------------------------------------------------------


def packed(*arrays):
    raw = b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)
    return base64.b64encode(gzip.compress(raw, mtime=0)).decode()


def unpacked(text, kind):
    return np.frombuffer(gzip.decompress(base64.b64decode(text)), kind)


def coded(maps, *, levels=255, scale=None, signed=False, **names):
    """A stored measure; `scale` one number for all heads, or None for one per head."""
    scale = maps.max(axis=(-2, -1)) if scale is None else scale  # [layer, head]
    share = np.sqrt(maps / np.broadcast_to(scale, maps.shape[:2])[..., None, None])
    codes = np.round(share * levels).astype(np.uint8).swapaxes(-2, -1)  # [layer, head, key, query]
    scale = np.asarray(scale, float)
    return {
        **names,
        "signed": signed,
        "levels": levels,
        "scale": scale.ravel().tolist() if scale.ndim else float(scale),
        "data": [packed(layer) for layer in codes],
    }


def stored(stack, measure, sides):
    """Values of a stored measure as the page has them, decoded apart from it."""
    n, m = (len(sides[stack[axis]]["tokens"]) for axis in ("queries", "keys"))
    shape = (stack["layers"], stack["heads"], m, n)
    codes = np.concatenate([unpacked(text, np.uint8) for text in measure["data"]]).reshape(shape)
    scale = np.broadcast_to(np.reshape(measure["scale"], (-1,)), np.prod(shape[:2]))
    values = np.minimum(codes / measure["levels"], 1) ** 2 * scale.reshape(*shape[:2], 1, 1)
    return values.swapaxes(-2, -1)  # [layer, head, query, key]


def read_back(payload, measure=0, stack=0, *, exact=True):
    """[layer, head, query, key] of any measure; of heads with detail, the exact weights, but not
    within a difference."""
    stack, sides = payload["stacks"][stack], payload["sides"]
    found = stack["measures"][measure]
    if "norm" in found:
        weights = read_back(payload, 0, payload["stacks"].index(stack))
        codes = unpacked(found["norm"], "<u2").reshape(*weights.shape[:2], 1, weights.shape[-1])
        scale = np.reshape(found["norm_scale"], weights.shape[:2])  # [layer, head]
        return weights * codes / 65535 * scale[..., None, None]
    if "minuend" in found:
        places = (found["minuend"], found["subtrahend"])
        number = payload["stacks"].index(stack)
        more, less = (read_back(payload, p, number, exact=False) for p in places)
        return more - less
    values = stored(stack, found, sides)
    if exact and measure == 0 and stack["detail"]:
        for (layer, head), block in zip(
            stack["detail"]["heads"], stack["detail"]["blocks"], strict=True
        ):
            n, m = values.shape[-2:]
            raw = np.frombuffer(gzip.decompress(base64.b64decode(block)), np.uint8)
            high, low = raw.reshape(2, n, m).astype(int)
            values[layer, head] = ((high * 256 + low) / 65535) ** 2
    return values


def make_detail(maps, chosen):
    """Heads with exact weights, without vectors; those are made in `made_detail`."""
    blocks = []
    for layer, head in chosen:
        exact = np.round(np.sqrt(maps[layer, head]) * 65535).astype(np.uint16)
        blocks.append(packed((exact >> 8).astype("u1"), (exact & 255).astype("u1")))
    return {
        "heads": [list(head) for head in chosen],
        "dim": 0,
        "vectors": False,
        "bias": False,
        "scaling": [],
        "softcap": None,
        "why": "this family does not show its queries and keys",
        "blocks": blocks,
    }


# --- payloads -----------------------------------------------------------------------------------


def make_stack(
    sides,
    layers,
    heads,
    *,
    name="self",
    queries=0,
    keys=0,
    causal=False,
    measures=("weighted_norm",),
    detail=(),
    seed=4,
):
    n, m = len(sides[queries]["tokens"]), len(sides[keys]["tokens"])
    maps = make_maps(n, m, layers, heads, causal=causal, seed=seed)
    told = make_detail(maps, detail) if detail else None
    found = [coded(maps, scale=1.0, name="attention", label="attention", unit="probability")]
    if "weighted_norm" in measures:
        norm = np.random.default_rng(seed).uniform(0.4, 2.5, (layers, heads, m))
        largest = (maps * norm[:, :, None]).max((2, 3))
        norm_scale = norm.max(-1)  # [layer, head]
        codes = np.round(norm / norm_scale[..., None] * 65535).astype("<u2")
        found.append(
            {
                "name": "weighted_norm",
                "label": "weighted norm",
                "unit": "1",
                "signed": False,
                "scale": largest.ravel().tolist(),
                "norm": packed(codes),
                "norm_scale": norm_scale.ravel().tolist(),
            }
        )
    if "difference" in measures:
        other = 0.7 * maps + 0.3 * make_maps(n, m, layers, heads, causal=causal, seed=seed + 1)
        found.append(
            coded(other, scale=1.0, name="tuned", label="attention, tuned", unit="probability")
        )
        found.append(
            {
                "name": "difference",
                "label": "difference",
                "unit": "probability",
                "signed": True,
                "scale": float(np.abs(other - maps).max()),
                "minuend": len(found) - 1,
                "subtrahend": 0,
            }
        )
    kinds = ("previous token", "next token", "", "to [SEP]", "broad", "")
    return {
        "name": name,
        "label": name.capitalize(),
        "layers": layers,
        "heads": heads,
        "causal": causal,
        "queries": queries,
        "keys": keys,
        "measures": found,
        "detail": told,
        "labels": [
            [kinds[(layer * 5 + head) % 6] for head in range(heads)] for layer in range(layers)
        ],
    }


def make_payload(
    n=22, layers=3, heads=12, *, tokens=None, causal=False, title="The cat sat", left_out="", **of
):
    """One stack; `measures` and `detail` go to `make_stack`."""
    sides = [make_side(tokens or make_tokens(n), pair=not causal)]
    return {
        "version": 2,
        "title": title,
        "model": {"name": "bert-made"},
        "left_out": left_out,
        "precision": "Weights are stored in 255 steps.",
        "sides": sides,
        "stacks": [make_stack(sides, layers, heads, causal=causal, **of)],
    }


ENGLISH = ("<s>", "the", "cat", "sat", "un", "##bel", "##iev", "##ably", "still", ".", "</s>")
GERMAN = ("<s>", "die", "Katze", "saß", "unglaub", "##lich", "still")


def make_three(**of):
    """Encoder, decoder and cross, of different depths and lengths."""
    sides = [make_side(ENGLISH, name="encoder"), make_side(GERMAN, name="decoder")]
    return {
        "version": 2,
        "title": "the cat sat",
        "model": {"name": "t5-made"},
        "left_out": "",
        "precision": "Weights are stored in 255 steps.",
        "sides": sides,
        "stacks": [
            make_stack(sides, 3, 8, name="encoder", **of),
            make_stack(sides, 2, 4, name="decoder", queries=1, keys=1, causal=True, **of),
            make_stack(sides, 2, 4, name="cross", queries=1, keys=0, **of),
        ],
    }
