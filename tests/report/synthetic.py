"""Which result tree looks like a real run, without a model?

`make_tree` draws plausible numbers: a few previous- and next-token heads, broad first layers, sinks
on [SEP] in the middle layers whose value norms are small, intervals that narrow with n.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from report.synthetic_clusters import add_clusters
from report.synthetic_flow import make_flow

SIMPLE = ["self", "previous", "next", "cls", "sep"]
TARGETS = [*SIMPLE, "first", "punctuation", "sep_from_sep", "sep_from_other"]
CATEGORIES = ["cls", "sep", "punctuation", "other"]
METHODS = ["attn_w", "attn_n", "attnres_w", "attnres_n", "attnresln_n"]
GROUPS = ("surface", "entropy", "norms", "mixing", "flow", "divergence", "neurons")
WEIGHT_BINS = np.concatenate([[0.0], 2.0 ** np.arange(-20, 1)])  # lower edges: octaves
NORM_BINS = np.concatenate([[0.0], np.outer(2.0 ** np.arange(-5, 6), [1, 1.5]).ravel(), [64.0]])
UNIFORM = 4.28  # nats: inputs of about 72 tokens


def make_tree(
    layers: int = 12,
    heads: int = 12,
    *,
    seed: int = 0,
    groups: tuple[str, ...] = GROUPS,
    decoder: bool = False,
    documents: int = 26,
    **attrs: object,
) -> xr.DataTree:
    """A run of `layers` × `heads`; `decoder` has no [CLS] and [SEP]; one document: no intervals."""
    rng = np.random.default_rng(seed)
    shares = _shares(rng, layers, heads, decoder=decoder)
    made = {
        "surface": _surface(rng, shares, documents),
        "entropy": _entropy(rng, shares, documents),
        "norms": _norms(rng, shares, documents),
        "mixing": _mixing(rng, layers, documents),
        "flow": make_flow(layers, documents, decoder=decoder),
        "divergence": add_clusters(_divergence(rng, shares), layers, heads, documents),
        "neurons": _neurons(rng, shares, documents),
    }
    tree = xr.DataTree.from_dict({name: made[name] for name in groups})
    tree.attrs = _attrs(layers, heads, documents, decoder=decoder) | attrs
    return tree


def _attrs(layers, heads, documents, *, decoder):
    return {
        "model": "e5-small",
        "revision": "",
        "model_sha256": "a511cac28311fadc42e8fa8b0db123c3d532b162ea393142bb1f5686007e2319",
        "architecture": "GPT2Model" if decoder else "BertModel",
        "layers": layers,
        "heads": heads,
        "corpus": "wikitext2 valid, text, one file",
        "documents": documents,
        "examples": 60,
        "tokens": 4658,
        "skipped": 2,
        "windowed": 1,
        "seed": 0,
        "replicates": 200,
        "headscope_version": "0.1.0",
        "spec_fingerprint": "9f2c1e77ab",
        "cls_token": "" if decoder else "[CLS]",
        "sep_token": "" if decoder else "[SEP]",
        "created": "2026-11-20",
    }


def _shares(rng, layers, heads, *, decoder):
    """[layer, head, kind] where kinds = self previous next cls sep punctuation rest; sums to 1."""
    depth = np.linspace(0, 1, layers)[:, None]
    rise = 1 / (1 + np.exp(-(depth - 0.35) * 18)) * (1.15 - 0.6 * depth)
    base = np.stack(
        [
            np.full((layers, heads), 0.03),
            0.05 * (1.4 - depth) * np.ones(heads),
            0.06 * (1.4 - depth) * np.ones(heads),
            (0.05 + 0.35 * np.exp(-(((depth - 0.2) / 0.12) ** 2))) * np.ones(heads),
            (0.04 + 0.5 * rise) * np.ones(heads),
            0.09 * (1.2 - depth) * np.ones(heads),
            np.full((layers, heads), 0.45),
        ],
        axis=-1,
    )
    drawn = rng.gamma(2.2 * base + 0.05, 1.0) + 1e-3
    for kind, layer, head in _planted(layers, heads):
        drawn[layer, head] = 0.02
        drawn[layer, head, kind] = rng.uniform(0.8, 3.0)
    if decoder:
        drawn[..., 4] = 1e-9
        drawn[..., 3] *= 4
    return drawn / drawn.sum(-1, keepdims=True)


def _planted(layers, heads):
    """(kind, layer, head): previous, next, sep, punctuation, rest; always the same places."""
    places = [(1, 0, 6), (1, 2, 2), (1, 3, 6), (2, 0, 7), (2, 2, 7), (2, 1, 4)]
    places += [(4, 5, 2), (4, 5, 9), (4, 4, 1), (5, 5, 5), (5, 4, 8), (6, 0, 3), (6, 0, 0)]
    return [place for place in places if place[1] < layers and place[2] < heads]


def _with_ci(rng, name, dims, value, spread, documents, **attrs):
    """The three variables of one estimate, with attributes as in the result contract."""
    half = 1.96 * spread * rng.uniform(0.6, 1.3, value.shape) / np.sqrt(documents)
    if documents < 2:
        half = np.full(value.shape, np.nan)
    attrs = {"source": "synthetic"} | attrs
    return {
        name: (dims, value, attrs),
        f"{name}_ci_low": (dims, value - half, attrs),
        f"{name}_ci_high": (dims, value + half, attrs),
    }


def _surface(rng, shares, documents):
    one = {name: shares[..., i] for i, name in enumerate(SIMPLE)}
    one |= {"first": shares[..., 3] * 1.01, "punctuation": shares[..., 5]}
    one["sep_from_sep"] = np.clip(one["sep"] * 1.75, 0, 0.98)
    one["sep_from_other"] = one["sep"] * 0.97
    missing = ["cls"] if shares[..., 4].max() < 1e-6 else []
    missing += ["sep", "sep_from_sep", "sep_from_other"] if missing else []
    value = np.stack([one[t] * (np.nan if t in missing else 1) for t in TARGETS], axis=-1)
    spread = 0.5 * np.sqrt(np.abs(value * (1 - value))) * 0.25
    made = _with_ci(
        rng, "attention", ("layer", "head", "target"), value, spread, documents,
        long_name="mean attention", units="probability",
    )  # fmt: skip
    return xr.Dataset(made, coords=_coords(shares) | {"target": TARGETS})


def _entropy(rng, shares, documents):
    parts = -(shares * np.log(shares + 1e-12)).sum(-1) + shares[..., 6] * (UNIFORM - 0.1)
    nats = np.clip(parts, 0.05, UNIFORM - 0.06)
    both = np.stack([nats, np.clip(nats * rng.uniform(0.7, 1.05, nats.shape), 0, UNIFORM)], -1)
    made = _with_ci(
        rng, "entropy", ("layer", "head", "query"), both, 0.15 * np.ones(both.shape), documents,
        long_name="entropy", units="nats",
    )  # fmt: skip
    made["uniform"] = ((), UNIFORM, {"long_name": "uniform attention", "units": "nats"})
    return xr.Dataset(made, coords=_coords(shares) | {"query": ["all", "cls"]})


def _norms(rng, shares, documents):
    layers, heads = shares.shape[:2]
    alpha = np.stack([shares[..., 3], shares[..., 4], shares[..., 5]], -1)
    alpha = np.concatenate([alpha, 1 - alpha.sum(-1, keepdims=True)], -1)
    scale = 1.5 + 2.3 * np.sin(np.linspace(0.1, np.pi - 0.2, layers))[:, None] * np.ones(heads)
    small = 0.04 + 1.2 * np.exp(-7 * alpha)
    length = scale[..., None] * np.where([True, True, False, False], small, 1.0)
    length = length * rng.uniform(0.85, 1.15, length.shape)
    dims = ("layer", "head", "category")
    data = {}
    for name, value in (
        ("attention", alpha), ("value_norm", length), ("weighted_norm", alpha * length),
    ):  # fmt: skip
        unit = "probability" if name == "attention" else "1"
        data |= _with_ci(rng, name, dims, value, 0.12 * value, documents, long_name="", units=unit)
    total = (alpha * length).sum(1) * 0.55
    data |= _with_ci(
        rng, "layer_weighted_norm", ("layer", "category"), total, 0.1 * total, documents,
        long_name="norm of the sum over heads", units="1",
    )  # fmt: skip
    data |= _dispersion(rng, scale, documents) | _correlations(rng, documents) | _pictures(rng)
    coords = _coords(shares) | {"category": CATEGORIES, "quantity": ["value_norm", "attention"]}
    coords |= {"attention_bin": WEIGHT_BINS, "rank_bin": 2.0 ** (np.arange(15) + 0.5)}
    return xr.Dataset(data, coords=coords | {"value_norm_bin": NORM_BINS})


def _dispersion(rng, scale, documents):
    cv = rng.uniform(0.1, 0.4, scale.shape)
    made = {}
    for name, value in (
        ("value_norm_mean", scale), ("value_norm_sd", scale * cv), ("value_norm_cv", cv),
    ):  # fmt: skip
        made |= _with_ci(rng, name, ("layer", "head"), value, 0.1 * value, documents,
                         long_name="", units="1")  # fmt: skip
    return made


def _correlations(rng, documents):
    rho = np.array([-0.35, -0.67, 0.07, 0.06])
    made = _with_ci(
        rng, "spearman_attention_value_norm", ("category",), rho, np.full(4, 0.1), documents,
        long_name="Spearman", units="1",
    )  # fmt: skip
    return made | _with_ci(
        rng, "spearman_frequency", ("quantity",), np.array([0.72, 0.2]), np.full(2, 0.1), documents,
        long_name="Spearman", units="1",
    )  # fmt: skip


def _pictures(rng):
    """The binned data behind the cancellation and frequency pictures."""
    log_alpha = np.log(WEIGHT_BINS * 2**0.5 + 1e-7)[:, None]
    norm = (NORM_BINS * 1.2)[None, :]
    table = []
    for centre, slope, size in (
        (-3.5, -0.4, 2e5),
        (-3, -0.6, 5e5),
        (-5, 0.05, 2e6),
        (-5.5, 0.05, 2e7),
    ):
        bell = np.exp(-(((log_alpha - centre) / 1.8) ** 2))
        bell = bell * np.exp(-(((norm - 2.4 - slope * (log_alpha - centre)) / 0.9) ** 2))
        table.append(rng.poisson(size * bell / bell.sum()))
    profile = np.stack([2.0 + 0.09 * np.arange(15), 0.011 - 0.0004 * np.arange(15)])
    profile = profile * rng.uniform(0.97, 1.03, profile.shape)
    made = _with_ci(rng, "frequency_profile", ("quantity", "rank_bin"), profile, 0.1 * profile, 26,
                    long_name="mean by rank bin", units="1")  # fmt: skip
    made["attention_value_norm_histogram"] = (
        ("category", "attention_bin", "value_norm_bin"), np.array(table, dtype=float),
        {"long_name": "pairs", "units": "1"},
    )  # fmt: skip
    return made


def _mixing(rng, layers, documents):
    typical = np.array([0.967, 0.885, 0.482, 0.265, 0.205])
    value = typical + rng.normal(0, 0.012, (layers, 5)) * (1 - typical)
    made = _with_ci(rng, "ratio", ("layer", "method"), value, np.full(value.shape, 0.02), documents,
                    long_name="mixing ratio", units="1")  # fmt: skip
    return xr.Dataset(made, coords={"layer": np.arange(layers), "method": METHODS})


def _divergence(rng, shares):
    flat = shares.reshape(-1, shares.shape[-1])
    middle = (flat[:, None] + flat[None]) / 2
    js = 0.5 * sum((p * np.log(p / middle)).sum(-1) for p in (flat[:, None], flat[None]))
    js = (js + js.T) / 2
    count = len(flat)
    centre = np.eye(count) - 1 / count
    value, vector = np.linalg.eigh(-0.5 * centre @ js**2 @ centre)
    place = vector[:, -2:] * np.sqrt(np.maximum(value[-2:], 0))
    place = np.pad(place, ((0, 0), (0, 2 - place.shape[1])))  # a single head has one axis
    place = place + rng.normal(0, 0.006, place.shape)
    unit = np.arange(count)
    return xr.Dataset(
        {
            "js": (("unit", "unit_other"), np.maximum(js, 0), {"units": "nats", "long_name": "JS"}),
            "mds": (("unit", "axis"), place, {"units": "nats", "long_name": "map"}),
            "mds_stress": ((), 0.13, {"units": "1", "long_name": "stress"}),
        },
        coords={"unit": unit, "unit_other": unit, "axis": ["x", "y"]},
    )


def _neurons(rng, shares, documents):
    layers, heads = shares.shape[:2]
    grid, width = ("layer", "head"), 32
    separators, targets = shares[..., 4], ["sep", "next", "previous"]
    effective = np.clip(14 - 8 * separators + rng.normal(0, 1, (layers, heads)), 1, width)
    overlap = np.clip(0.2 + 0.5 * separators + rng.normal(0, 0.03, (layers, heads)), 0.1, 1)
    rho = np.array([[-0.4, 0.03, 0.02], [0.5, -0.4, -0.35]])
    rho[:, 0] *= np.nan if separators.max() < 1e-6 else 1
    split = rng.normal(0, 1, (heads, 3, 4, 4))
    importance = rng.dirichlet(np.ones(width), (layers, heads))
    made = {"chance_overlap": ((), 0.15, {"units": "1", "long_name": "chance"})}
    for name, dims, value, spread in (
        ("effective", grid, effective, 0.5),
        ("position_overlap", grid, overlap, 0.03),
        ("rank_correlation", ("quantity", "target"), rho, 0.05),
        ("neuron_importance", (*grid, "neuron"), importance, 0.001),
        ("embedding_separation", ("head", "contrast", "part", "part_other"), split, 0.1),
    ):
        made |= _with_ci(
            rng, name, dims, value, np.full(value.shape, spread), documents, units="1",
            long_name=name.replace("_", " "),
        )  # fmt: skip
    parts = ["word", "position", "segment", "bias"]
    coords = {"quantity": ["effective", "position_overlap"], "target": targets, "part": parts}
    coords |= {"contrast": ["sep", "same_segment", "next"], "part_other": parts}
    coords |= {"neuron": np.arange(width)}
    return xr.Dataset(made, coords=_coords(shares) | coords, attrs={"set": 8})


def _coords(shares):
    return {"layer": np.arange(shares.shape[0]), "head": np.arange(shares.shape[1])}


def make_manifest(tree: xr.DataTree, **more: object) -> dict[str, object]:
    """The manifest that goes with a tree of `make_tree`."""
    return {
        "spec": {"analyses": list(tree.children), "seed": 0, "long": "window", "max_length": 512},
        "fingerprint": "9f2c1e77ab",
        "versions": {"headscope": "0.1.0", "torch": "2.13.0", "transformers": "5.23.0"},
        "model": {
            "name": tree.attrs["model"],
            "revision": "ffb93f3bd4047442299a41ebb6fa998a38507c52",
            "sha256": tree.attrs["model_sha256"],
            "architecture": tree.attrs["architecture"],
        },
        "corpus": {
            "kind": "text",
            "files": [{"name": "valid.txt", "sha256": "49233770f904" + 52 * "a"}],
        },
        "counts": {
            "documents": tree.attrs["documents"],
            "examples": 60,
            "tokens": 4658,
            "skipped": 2,
            "windowed": 1,
            "reasons": {"empty": 2},
        },
        "command": "headscope atlas e5-small --text valid.txt --analyses all --seed 0 -o run",
        "created": "2026-11-20",
        "analyses": list(tree.children),
        "linears": "onednn",
    } | more
