"""Which finished runs do tests draw and tell of? Recorded ones, cut or repeated to any size.

`record.py` made them of real models. What a test needs in a cell it sets on its own copy.
"""

from __future__ import annotations

import json
import lzma
from functools import cache
from io import BytesIO
from pathlib import Path

import numpy as np
import xarray as xr

from headscope.claims.claim import Claim
from headscope.claims.question import named
from headscope.claims.reading import Reading, claims_of
from headscope.run.netcdf import FORMER

FILE = Path(__file__).with_name("recorded.npz.xz")
ENCODER, ALONE, DECODER = "encoder", "alone", "decoder"
DOCUMENTS, TOKENS = 14, 3385  # of the encoder's run
GENERAL = (
    "surface",
    "entropy",
    "distance",
    "norms",
    "sinks",
    "mixing",
    "flow",
    "divergence",
    "neurons",
)
LANGUAGE = (
    "dependency",
    "examples",
    "coreference",
    "frames",
    "features",
    "cls_attention",
    "pairs",
)
BOTH = (*GENERAL, *LANGUAGE)
ALL = (*BOTH, "patterns")
FIRST, SECOND = ("[CLS]", "a", "b", "[SEP]"), ("[CLS]", "c", "… 88 tokens …")
KINDS = ("diagonal", "vertical_diagonal")  # of these two
PAIR = (
    "[CLS]",
    "who",
    "wound",
    "it",
    "?",
    "[SEP]",
    "the",
    "keeper",
    ",",
    "at",
    "dawn",
    ".",
    "[SEP]",
)
HOSTILE_WORDS = [
    '<b>&"',
    "</text>",
    "$x^2$",
    "{{7*7}}",
    "שלום",
    "橋を渡る",
    "e\u0301a\u0300",
    "\x07",
]
HOSTILE_RELATIONS = ["<b>&\"'", "../../etc/passwd", "a b:c\\d", "依存", "con", "", "CASE", "nul."]


def recorded(
    layers: int = 6,
    heads: int = 12,
    groups: tuple[str, ...] = GENERAL,
    *,
    kind: str = ENCODER,
    **attrs: object,
) -> xr.DataTree:
    """A copy of a run with these groups, of so many layers and heads; other attributes by name."""
    whole = _runs()[kind]
    tree = sized(whole.filter(lambda node: node is whole or node.name in groups), layers, heads)
    tree.attrs |= attrs
    return tree


def sized(tree: xr.DataTree, layers: int, heads: int) -> xr.DataTree:
    """The first layers and heads, over and over where there are more than in the run."""
    layer = np.arange(layers) % int(tree.attrs["layers"])
    head = np.arange(heads) % int(tree.attrs["heads"])
    unit = (layer[:, None] * int(tree.attrs["heads"]) + head).ravel()
    index = {"layer": layer, "head": head, "unit": unit, "unit_other": unit, "layer_gap": layer}
    same = (layers, heads) == (int(tree.attrs["layers"]), int(tree.attrs["heads"]))

    def cut(dataset: xr.Dataset) -> xr.Dataset:
        here = {dim: at for dim, at in index.items() if dim in dataset.dims}
        made = (dataset if same else dataset.isel(here)).copy(deep=True)
        made = made.assign_coords({dim: np.arange(len(at)) for dim, at in here.items()})
        for name in made.data_vars:
            if name in ("best_layer", "best_head"):
                made[name] = made[name] % (layers if name == "best_layer" else heads)
        return made if same else _clusters_of(made)

    groups = {str(name): cut(child.to_dataset()) for name, child in tree.children.items()}
    made = xr.DataTree.from_dict(groups)
    made.attrs = tree.attrs | {"layers": layers, "heads": heads}
    return made


def _clusters_of(divergence: xr.Dataset) -> xr.Dataset:
    """The clusters that heads of these are in, numbered anew; of fewer than four, none."""
    if "cluster" not in divergence:
        return divergence
    if divergence.sizes["unit"] < 4:
        return divergence.drop_vars(
            [
                name
                for name, values in divergence.data_vars.items()
                if not str(name).startswith(("js", "mds")) or "layer_gap" in values.dims
            ]
        )
    there, first, number = np.unique(
        divergence["cluster"].values, return_index=True, return_inverse=True
    )
    made = divergence.isel(cluster_number=there.astype(int))
    made = made.assign_coords(cluster_number=np.arange(len(there)))
    made["cluster"] = divergence["cluster"].copy(data=number.astype(float))
    made["medoid"] = made["medoid"].copy(data=first.astype(float))
    made["cluster_size"] = made["cluster_size"].copy(data=np.bincount(number).astype(float))
    return made


def reading(tree: xr.DataTree, name: str) -> Reading:
    """A run as the question of that name reads it."""
    return Reading(tree, named(name))


def claims(tree: xr.DataTree, *names: str) -> list[Claim]:
    """What these questions claim of the heads of a run."""
    return [claim for name in names for claim in claims_of(named(name), tree)]


def manifest_of(tree: xr.DataTree, **more: object) -> dict[str, object]:
    """A manifest that goes with a run."""
    about = tree.attrs
    counts = {name: about[name] for name in ("documents", "examples", "tokens")}
    model = {"name": about["model"], "sha256": about["model_sha256"], "revision": "ffb93f3bd404"}
    return {
        "spec": {"analyses": list(tree.children), "seed": 0, "long": "window", "max_length": 512},
        "fingerprint": about["spec_fingerprint"],
        "versions": {"headscope": about["headscope_version"], "torch": "2.13.0"},
        "model": model | {"architecture": about["architecture"]},
        "corpus": {"kind": "text", "files": [{"name": "valid.txt", "sha256": "49233770f904"}]},
        "counts": counts | {"skipped": 2, "windowed": 1, "reasons": {"empty": 2}},
        "command": "headscope atlas demo --text valid.txt --analyses all --seed 0 -o run",
        "created": "2026-11-20",
        "analyses": list(tree.children),
        "linears": "onednn",
    } | more


def changed(tree: xr.DataTree, group: str, **values: object) -> xr.DataTree:
    """Writes numbers over whole variables of a group: `name=number or array`."""
    dataset = tree[group].to_dataset().copy(deep=True)
    for name, value in values.items():
        dataset[name][...] = value
    tree[group].dataset = dataset
    return tree


def hostile(tree: xr.DataTree, tokens: list[str] | None = None) -> xr.DataTree:
    """A run with relations and words that break markup, file names and fonts.

    tokens  of the last input
    """
    for group in ("dependency", "examples"):
        if group not in tree:
            continue
        dataset = tree[group].to_dataset()
        for name in ("relation", "text", "token_text"):
            if name not in dataset or (group, name) == ("examples", "relation"):
                continue
            words = dataset[name].values.astype(object)
            if name == "relation":
                words[7 : 7 + len(HOSTILE_RELATIONS)] = HOSTILE_RELATIONS
            else:
                for at in np.ndindex(words.shape):
                    if at[1] % 3 == 0 and words[at] not in ("", "[CLS]", "[SEP]"):
                        words[at] = HOSTILE_WORDS[sum(at) % len(HOSTILE_WORDS)]
            dataset = dataset.assign_coords({name: (dataset[name].dims, words)})
        tree[group].dataset = dataset
    return with_pair(tree, tokens) if tokens else tree


def with_pair(tree: xr.DataTree, tokens: tuple[str, ...] = PAIR) -> xr.DataTree:
    """A run whose last input is a pair of texts: tokens with [CLS], two [SEP] and no words."""
    dataset, n = tree["examples"].to_dataset().copy(deep=True), len(tokens)
    dataset["token_text"] = dataset["token_text"].astype(object)
    for name, value in (
        ("token_text", ""),
        ("word_text", ""),
        ("token_word", -1),
        ("token_count", 0),
        ("special", 0),
        ("segment", 0),
    ):
        dataset[name][-1] = value
    dataset["token_text"][-1, :n], dataset["token_count"][-1, :n] = list(tokens), 1
    dataset["special"][-1, :n] = [token in ("[CLS]", "[SEP]") for token in tokens]
    dataset["segment"][-1, tokens.index("[SEP]") + 1 : n] = 1
    rng, grid = np.random.default_rng(0), dataset["value_norm"].shape[1:3]
    dataset["token_attention"][-1], dataset["value_norm"][-1] = np.nan, np.nan
    dataset["token_attention"][-1, :, :, :n, :n] = rng.dirichlet(np.full(n, 0.3), (*grid, n))
    dataset["value_norm"][-1, :, :, :n] = rng.uniform(0.2, 2, (*grid, n))
    tree["examples"].dataset = dataset
    return tree


def by_norm(tree: xr.DataTree) -> xr.DataTree:
    """A run whose heads were judged by the weighted norm: what was a share goes beyond 1."""
    for name, child in tree.children.items():
        dataset = child.to_dataset()
        dataset.attrs["measure"] = "weighted_norm"
        for key, values in dataset.data_vars.items():
            share = str(key).startswith(("attention", "score", "chance"))
            if share and name not in ("dependency", "coreference"):
                dataset[key] = (values * 3.5).assign_attrs(values.attrs | {"units": "1"})
        child.dataset = dataset
    return tree


def with_maps(
    tree: xr.DataTree, tokens: tuple[str, ...] = FIRST, shares: dict | None = None
) -> xr.DataTree:
    """A run of which every head has all classes of maps alike, and two typical maps.

    tokens  of the first map, a diagonal one; those of the second are `SECOND`
    shares  {(layer, head): {class: (value, low, high)}} that differ from 0.2 [0.18, 0.22]
    """
    made = recorded(int(tree.attrs["layers"]), int(tree.attrs["heads"]), ("patterns",))["patterns"]
    patterns, n = made.to_dataset(), len(tokens)
    for name, value in (("share", 0.2), ("confidence", 0.9)):
        for end, apart in (("", 0.0), ("_ci_low", -0.02), ("_ci_high", 0.02)):
            patterns[name + end][...] = value + apart
    for (layer, head), given in (shares or {}).items():
        for kind, values in given.items():
            for end, value in zip(("", "_ci_low", "_ci_high"), values, strict=True):
                patterns["share" + end].loc[{"layer": layer, "head": head, "pattern": kind}] = value
    patterns["typical"][...] = np.nan
    patterns["typical"][:, :, 0, :n, :n] = 0.6 * np.eye(n) + 0.4 / n
    patterns["typical"][:, :, 1, :3, :3] = [[1, 0, 0], [0.25, 0.5, 0.25], [0, 0.75, 0.25]]
    patterns["typical_score"][...] = [0.9, 0.6]
    rows = np.full((2, patterns.sizes["query"]), "", object)
    counts = np.zeros(rows.shape, int)
    rows[0, :n], rows[1, :3], counts[0, :n], counts[1, :3] = tokens, SECOND, 1, (1, 1, 88)
    for name, values in (("token", rows), ("token_count", counts), ("class", KINDS)):
        old = patterns[f"typical_{name}"]
        new = (old.dims, np.broadcast_to(np.array(values).tolist(), old.shape).copy())
        patterns = patterns.assign_coords({f"typical_{name}": new})
    tree["patterns"] = xr.DataTree(patterns)
    return tree


def schema(dataset: xr.Dataset) -> dict[str, object]:
    """Name → dimensions and attributes, of all that a group holds."""
    about = {name: dict(values.attrs) for name, values in dataset.variables.items()}
    for one in about.values():
        one.pop("n", None)
        one.pop("tokens", None)
    return {str(name): (dataset[name].dims, one) for name, one in about.items()}


@cache
def _runs() -> dict[str, xr.DataTree]:
    with np.load(BytesIO(lzma.decompress(FILE.read_bytes()))) as arrays:
        told = json.loads(str(arrays["told"]))
        runs = {}
        for kind, (attrs, groups) in told.items():
            made = {name: _filled(arrays, f"{kind}.{name}.", plan) for name, plan in groups.items()}
            runs[kind] = xr.DataTree.from_dict(made)
            runs[kind].attrs = attrs
    return runs


def _filled(arrays, start, plan):
    for part in ("coords", "data_vars"):
        for name, one in plan[part].items():
            one["data"] = arrays[start + name]
    dataset = xr.Dataset.from_dict(plan)
    return dataset.rename({old: new for old, new in FORMER.items() if old in dataset.dims})


def write(runs: dict[str, xr.DataTree]) -> None:
    """Writes the runs to the file."""
    told, arrays = {}, {}
    for kind, tree in runs.items():
        groups = {}
        for name, child in tree.children.items():
            dataset = child.to_dataset()
            groups[name] = dataset.to_dict(data=False)
            for key, values in dataset.variables.items():
                plain = values.values.astype(str) if values.dtype.kind in "OT" else values.values
                arrays[f"{kind}.{name}.{key}"] = plain
        told[kind] = (tree.attrs, groups)
    file = BytesIO()
    np.savez(file, told=json.dumps(told, default=lambda number: number.item()), **arrays)
    FILE.write_bytes(lzma.compress(file.getvalue(), preset=9 | lzma.PRESET_EXTREME))
