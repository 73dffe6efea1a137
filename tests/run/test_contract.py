"""Does a run folder hold what other tools may rely on: names, dims, units, intervals, files?"""

import numpy as np
import pandas as pd
import pytest

import headscope as hs
from commands import WHOLE_SHARDS, shard_files
from headscope.analyses.patterns.classes import NAMES
from made_models import HEADS, LAYERS, NEURONS

GRID = ("layer", "head")
CATEGORIES = ["cls", "sep", "punctuation", "other"]
# group: {variable: (dims, units, whether it is an estimate with an interval)}
CONTRACT = {
    "surface": {"attention": ((*GRID, "target"), "probability", True)},
    "entropy": {
        "entropy": ((*GRID, "query"), "nats", True),
        "uniform": ((), "nats", True),
        "relative_entropy": ((*GRID, "query"), "1", True),
    },
    "norms": {
        "attention": ((*GRID, "category"), "probability", True),
        "value_norm": ((*GRID, "category"), "1", True),
        "weighted_norm": ((*GRID, "category"), "1", True),
        "layer_weighted_norm": (("layer", "category"), "1", True),
        "value_norm_mean": (GRID, "1", True),
        "value_norm_sd": (GRID, "1", True),
        "value_norm_cv": (GRID, "1", True),
        "value_norm_max": (GRID, "1", False),
        "value_norm_min": (GRID, "1", False),
        "spearman_attention_value_norm": (("category",), "1", True),
        "spearman_frequency": (("quantity",), "1", True),
    },
    "distance": {
        "profile": ((*GRID, "distance"), "probability", True),
        "nearby": (GRID, "probability", True),
        "mean_distance": (GRID, "tokens", True),
        "distance_quantile": ((*GRID, "quantile"), "tokens", True),
        "uniform_distance": ((), "tokens", True),
        "uniform_profile": (("distance",), "probability", True),
        "before": (GRID, "probability", True),
    },
    "sinks": {
        "sink_share": (GRID, "probability", True),
        "sink_share_of": ((*GRID, "kind"), "probability", True),
        "sink_rate": (("position",), "probability", True),
        "largest": (("layer",), "1", True),
        "median": (("layer",), "1", True),
        "massive_share": (("layer",), "probability", True),
        "massive": (("layer", "rank"), "1", False),
        "massive_times": (("layer", "rank"), "1", False),
    },
    "explained": {
        **dict.fromkeys(["attention", "gathering"], ((*GRID, "prediction"), "probability", True)),
        **dict.fromkeys(["iou", "beyond"], (GRID, "probability", True)),
        "rule_share": ((*GRID, "slot"), "probability", True),
        "role_share": ((*GRID, "slot"), "probability", True),
        **dict.fromkeys(
            ["all_attention", "all_gathering", "all_beyond"], ((), "probability", True)
        ),
        "rule": (("explains", *GRID, "rule_place"), "1", False),
        "weight": (("explains", *GRID, "rule_place"), "1", False),
        "rest": (("explains", *GRID), "1", False),
    },
    "mixing": {
        "ratio": (("layer", "variant"), "1", True),
        "spearman_frequency": (("variant",), "1", True),
    },
    "divergence": {
        "js": (("unit", "unit_other"), "nats", True),
        "mds": (("unit", "axis"), "nats", False),
        "queries": ((), "1", False),
        "mds_stress": ((), "1", False),
        "cluster": (("unit",), "1", False),
        "silhouette": (("unit",), "1", True),
        "stays": (("unit",), "probability", False),
        **dict.fromkeys(["medoid", "cluster_size", "jaccard"], (("cluster_number",), "1", False)),
        "cluster_silhouette": (("cluster_number",), "1", True),
        **dict.fromkeys(["cluster_count", "cluster_p", "method_agreement"], ((), "1", False)),
        "silhouette_by_k": (("variant", "k"), "1", True),
        "reference_silhouette": (("draw", "k"), "1", False),
        "k_share": (("k",), "probability", False),
        "stability": (("variant",), "1", False),
        "layer_js": (("pairs",), "nats", True),
        "layer_js_ratio": ((), "1", True),
        "layer_js_p": ((), "1", False),
        "js_by_layer_gap": (("layer_gap",), "nats", True),
        "nearest_layer": (("where",), "probability", True),
        "nearest_chance": (("where",), "probability", False),
        "nearest_p": (("where",), "1", False),
    },
    "patterns": {
        "share": (("layer", "head", "pattern"), "probability", True),
        "unsure": (("layer", "head"), "probability", True),
        "punctuation": (("layer", "head"), "probability", True),
        "confidence": (("layer", "head"), "probability", True),
        "layer_share": (("layer", "pattern"), "probability", True),
        "model_share": (("pattern",), "probability", True),
        "typical": (("layer", "head", "rank", "query", "key"), "probability", False),
        "typical_score": (("layer", "head", "rank"), "probability", False),
    },
    "flow": {
        **dict.fromkeys(
            ["share", "cls_share"], (("variant", "layer", "target"), "probability", True)
        ),
        "effective_tokens": (("variant", "layer"), "tokens", True),
    },
    "neurons": {
        **dict.fromkeys(["effective", "position_overlap", "relative_score"], (GRID, "1", True)),
        "top_share": ((*GRID, "k"), "1", True),
        "chance_overlap": ((), "1", False),
        "neuron_importance": ((*GRID, "neuron"), "1", True),
        "separation": ((*GRID, "contrast", "neuron"), "1", True),
        "separation_score": ((*GRID, "contrast"), "1", True),
        "separation_effective": ((*GRID, "contrast"), "1", True),
        "rank_correlation": (("quantity", "target"), "1", True),
        "embedding_share": (("head", "part", "part_other"), "1", True),
        "embedding_separation": (("head", "contrast", "part", "part_other"), "1", True),
    },
    "dependency": {
        "accuracy": ((*GRID, "direction", "relation"), "1", True),
        "offset_accuracy": (("offset", "relation"), "1", True),
        "count": (("relation",), "1", False),
        **dict.fromkeys(
            ["best_layer", "best_head", "best_direction", "best_offset"],
            (("relation",), "1", False),
        ),
        **dict.fromkeys(
            ["best_accuracy", "baseline", "held_out", "advantage"], (("relation",), "1", True)
        ),
        "left_out": (("reason",), "1", False),
    },
    "coreference": {
        "accuracy": ((*GRID, "mention_type"), "1", True),
        "accuracy_strict": ((*GRID, "mention_type"), "1", True),
        "baseline": (("system", "mention_type"), "1", True),
        "count": (("mention_type",), "1", False),
        **dict.fromkeys(["best_layer", "best_head"], (("mention_type",), "1", False)),
        **dict.fromkeys(["best_accuracy", "held_out"], (("mention_type",), "1", True)),
        "advantage": (("system", "mention_type"), "1", True),
        "left_out": (("reason",), "1", False),
    },
    "features": {
        "attention": ((*GRID, "feature"), "probability", True),
        "count": (("feature",), "1", False),
    },
    "cls_attention": {
        "attention": (("head", "feature"), "probability", True),
        "count": (("feature",), "1", False),
    },
    "pairs": {
        "attention": ((*GRID, "pair"), "probability", True),
        "count": (("pair",), "1", False),
    },
    "examples": {
        "attention": (("example", *GRID, "word", "word_other"), "probability", False),
        "token_attention": (("input", *GRID, "token", "token_other"), "probability", False),
        "value_norm": (("input", *GRID, "token"), "1", False),
    },
}
FEATURES = [
    "noun",
    "verb",
    "pronoun",
    "subject",
    "object",
    "negation",
    "punctuation",
    "cls",
    "sep",
]
UNTIDY = {"examples"}  # maps to draw, no numbers to tabulate
COORDS = {
    ("surface", "target"): [
        "self",
        "previous",
        "next",
        "first",
        "cls",
        "sep",
        "punctuation",
        "sep_from_sep",
        "sep_from_other",
    ],
    ("entropy", "query"): ["all", "cls"],
    ("norms", "category"): CATEGORIES,
    ("norms", "quantity"): ["value_norm", "attention"],
    ("distance", "distance"): [0, *(2**power for power in range(18))],
    ("distance", "quantile"): [0.5, 0.9],
    ("distance", "window"): ["4+64", "128+256"],
    ("sinks", "kind"): CATEGORIES,
    ("sinks", "position"): list(range(64)),
    ("mixing", "variant"): ["attn_w", "attn_n", "attnres_w", "attnres_n", "attnresln_n"],
    ("divergence", "axis"): ["x", "y"],
    ("divergence", "unit"): list(range(LAYERS * HEADS)),
    ("divergence", "k"): list(range(2, LAYERS * HEADS // 2 + 1)),
    ("divergence", "variant"): ["k_medoids", "average"],
    ("divergence", "pairs"): ["same_layer", "other_layers"],
    ("divergence", "where"): ["same_layer", "neighbouring_layer", "farther_layer"],
    ("divergence", "layer_gap"): list(range(LAYERS)),
    ("patterns", "pattern"): list(NAMES),
    ("flow", "variant"): ["rollout", "weighted_norm_residual", "globenc"],
    ("flow", "target"): ["self", "previous", "next", *CATEGORIES],
    ("neurons", "k"): [1, 4, 16],
    ("neurons", "contrast"): ["sep", "same_segment", "next", "own_segment"],
    ("neurons", "part"): ["word", "position", "segment", "bias"],
    ("neurons", "neuron"): list(range(NEURONS)),
    ("dependency", "direction"): ["dependent_to_head", "head_to_dependent"],
    ("dependency", "offset"): [-5, -4, -3, -2, -1, 1, 2, 3, 4, 5],
    ("coreference", "mention_type"): ["all", "pronoun", "proper", "nominal"],
    ("coreference", "system"): ["nearest", "head_match", "rule_based"],
    ("features", "feature"): FEATURES,
    ("cls_attention", "feature"): [name for name in FEATURES if name != "cls"],
    ("pairs", "pair"): [
        "subject_to_verb",
        "verb_to_subject",
        "noun_to_pronoun",
        "pronoun_to_noun",
    ],
    ("surface", "layer"): list(range(LAYERS)),
    ("surface", "head"): list(range(HEADS)),
}


def test_the_groups_are_those_of_the_contract(whole):
    assert set(whole) == set(CONTRACT)
    assert len(whole) == len(CONTRACT)
    assert "entropy" in whole


@pytest.mark.parametrize("group", CONTRACT)
def test_a_group_has_its_variables_dims_units_and_intervals(whole, group):
    dataset = whole[group]
    for name, (dims, units, interval) in CONTRACT[group].items():
        assert dataset[name].dims == dims
        assert dataset[name].attrs["units"] == units
        ends = [f"{name}_ci_{end}" for end in ("low", "high")]
        assert [end in dataset for end in ends] == [interval, interval], name
        if interval:
            low, high = (dataset[end] for end in ends)
            assert low.dims == high.dims == dims
            assert bool(((low <= high) | low.isnull()).all())
            assert bool((low.isnull() == high.isnull()).all())
            # Over fewer than five heads of a cluster, or ten of a model, there is none.
            if name not in ("cluster_silhouette", "rank_correlation"):
                assert int(low.notnull().sum()) > 0, name


def test_every_variable_says_what_it_is_in_what_unit_from_where(whole):
    for group in whole:
        for name, variable in whole[group].data_vars.items():
            assert {"long_name", "units", "source"} <= set(variable.attrs), (group, name)
            assert all(variable.attrs[key] for key in ("long_name", "units", "source"))


@pytest.mark.parametrize("place", COORDS, ids="/".join)
def test_coordinates_are_words_or_count_from_zero(whole, place):
    group, dim = place
    assert whole[group][dim].values.tolist() == COORDS[place]


def test_values_lie_in_their_ranges(whole):
    for name, low, high in [
        (whole["surface"]["attention"], 0, 1),
        (whole["entropy"]["entropy"], 0, np.log(512)),
        (whole["distance"]["profile"], 0, 1),
        (whole["distance"]["mean_distance"], 0, 512),
        (whole["sinks"]["sink_share"], 0, 1),
        (whole["sinks"]["sink_rate"], 0, 1),
        (whole["mixing"]["ratio"], 0, 1),
        (whole["mixing"]["spearman_frequency"], -1, 1),
        (whole["divergence"]["js"], 0, np.log(2)),
        (whole["norms"]["spearman_frequency"], -1, 1),
        (whole["neurons"]["effective"], 1, NEURONS),
        (whole["neurons"]["position_overlap"], 0, 1),
        (whole["neurons"]["top_share"], 0, 1),
        (whole["dependency"]["accuracy"], 0, 1),
        (whole["dependency"]["advantage"], -1, 1),
        (whole["coreference"]["accuracy"], 0, 1),
        (whole["features"]["attention"], 0, 1),
        (whole["pairs"]["attention"], 0, 1),
        (whole["examples"]["attention"], 0, 1),
        (whole["examples"]["token_attention"], 0, 1),
        (whole["flow"]["share"], 0, 1),
        (whole["flow"]["cls_share"], 0, 1),
        (whole["flow"]["effective_tokens"], 1, 512),
    ]:
        values = name.values[np.isfinite(name.values)]
        assert values.size
        assert low <= values.min() <= values.max() <= high + 1e-12


def test_the_root_says_what_was_run_on_what(whole, tiny):
    attrs = whole.tree.attrs
    expected = {
        "model": tiny.name,
        "architecture": "BertModel",
        "layers": LAYERS,
        "heads": HEADS,
        "documents": 5,
        "examples": 70,
        "skipped": 0,
        "windowed": 0,
        "seed": 0,
        "replicates": 20,
        "headscope_version": hs.__version__,
        "cls_token": "[CLS]",
        "sep_token": "[SEP]",
        "spec_fingerprint": whole.manifest["fingerprint"],
    }
    assert {key: attrs[key] for key in expected} == expected
    assert attrs["model_sha256"] == tiny.sha256
    assert attrs["corpus"].startswith("treebank: ")


def test_the_manifest_says_the_rest(whole):
    manifest = hs.open_run(whole.path).manifest
    assert manifest["versions"].keys() >= {"headscope", "python", "torch", "transformers"}
    assert manifest["counts"]["tokens"] == whole.tree.attrs["tokens"]
    assert manifest["corpus"]["files"][0]["sha256"]
    assert manifest["shards"] == len(shard_files(whole.path)) == WHOLE_SHARDS
    assert manifest["linears"] == "stock"
    assert manifest["model"]["revision"] == ""


@pytest.fixture(scope="module")
def reported(whole):
    """Its folder, with all that a report writes."""
    whole.report()
    return whole.path


def test_tables_are_tidy_in_parquet_and_csv(reported):
    leading = [
        "model",
        "revision",
        "analysis",
        "metric",
        "layer",
        "head",
        "value",
        "n",
        "ci_low",
        "ci_high",
    ]
    for group in CONTRACT.keys() - UNTIDY:
        table = pd.read_parquet(reported / "tables" / f"{group}.parquet")
        assert list(table.columns[: len(leading)]) == leading
        assert set(table["analysis"]) == {group}
        text = pd.read_csv(reported / "tables" / f"{group}.csv")
        assert list(text.columns) == list(table.columns)
        assert len(text) == len(table) > 0


def test_every_figure_is_there_as_svg_and_png(reported):
    folder = reported / "figures"
    names = {p.name for p in folder.iterdir()} - {"dependency"}
    stems = {name.rpartition(".")[0] for name in names}
    assert len(stems) >= 15
    assert names == {f"{stem}.{kind}" for stem in stems for kind in ("svg", "png")}
    drawn = [p.name for p in (folder / "dependency").iterdir()]
    assert {"nsubj.svg", "det.svg"} <= {name.partition("-")[2] for name in drawn}
