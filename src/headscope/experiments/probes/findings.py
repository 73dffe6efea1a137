"""Sentences on what the probes find and which heads they rely on, with numbers."""

from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from headscope.claims.dictionary import name as plain_name
from headscope.claims.verdict import differs
from headscope.core.results import at, estimate, group, json_number, layer_name, needed, own_name
from headscope.core.wording import capital, fixed, number, percent

NAMED = 5  # heads that a summary names
COMPARED = (
    ("attention", "right_branching", "Attention alone finds"),
    ("attention_words", "attention", "Weights that depend on the words find"),
    ("attention_words", "distances_words", "Attention with words finds"),
    ("attention_words", "random_words", "The trained model finds"),
)
INTERVALS = "95 % intervals over test sentences"
ARROWS = {"dependent_to_head": "d→h", "head_to_dependent": "h→d"}
HEAD_COLUMNS = ["layer", "head", "name", "direction", "weight", "spread", "influence", "label"]
BESIDE = {
    "uas_with_punctuation": "with punctuation",
    "uuas": "UUAS",
    "uas_of_tree": "as a tree",
}


def probe_names(probes: xr.Dataset) -> list[str]:
    """The probes that were scored; none where only the structural one was run."""
    return [str(name) for name in probes["probe"].values] if "uas" in probes else []


def head_influence_table(tree: xr.DataTree) -> pd.DataFrame:
    """One row per head and direction, the largest influence first; empty without that probe.

    returns  HEAD_COLUMNS; layer and head from 0; label is "" without an atlas
    """
    probes = group(tree, "probes")
    if probes is None or "head_influence" not in probes:
        return pd.DataFrame(columns=HEAD_COLUMNS)
    known = [f"head_{column}" for column in HEAD_COLUMNS if f"head_{column}" in probes]
    table = probes[known].to_dataframe(["layer", "head", "direction"]).reset_index()
    table = table.rename(columns=lambda name: name.removeprefix("head_"))
    table["name"] = [own_name(*place) for place in zip(table["layer"], table["head"], strict=True)]
    if "label" not in table:
        table["label"] = ""
    order = np.argsort(-np.abs(table["influence"].to_numpy()), kind="stable")
    return table.iloc[order].reset_index(drop=True)[HEAD_COLUMNS]


def best_layer(probes: xr.Dataset) -> int | None:
    """The layer whose hidden states give most arcs; None without the structural probe."""
    if "structural_uuas" not in probes or bool(probes["structural_uuas"].isnull().all()):
        return None
    return int(np.nanargmax(probes["structural_uuas"].values))


def sentences_text(probes: xr.Dataset) -> str:
    """`n = 2,077 test sentences, 25,094 words`."""
    about = probes.attrs
    return f"n = {about['test_sentences']:,} test sentences, {about['test_words']:,} words"


def probe_findings(tree: xr.DataTree) -> list[str]:
    """Sentences with numbers: the best probe, what words and the model add, heads and layers."""
    probes = needed(tree, "probes")
    lines = []
    names = probe_names(probes)
    if names:
        best = max(names, key=lambda name: float(probes["uas"].sel(probe=name)))
        lines.append(
            f"The best of {len(names)} probes, {plain_name(best)}, finds the syntactic head of "
            f"{share(probes, 'uas', best)} of the words (UAS)."
        )
    for first, second, says in COMPARED:
        if first in names and second in names:
            parts = at(estimate(probes, "difference", probe=first, probe_other=second))
            value, low, high = (100 * part for part in parts)
            verdict = differs(value, low, high)
            unsure = ""
            if not verdict.holds:
                unsure = ", which these sentences cannot tell from none"
                if np.isfinite(verdict.smallest):
                    unsure += f"; they could tell {fixed(verdict.smallest, 1)}"
            lines.append(
                f"{says}: {fixed(abs(value), 1)} points {'more' if value > 0 else 'less'} than "
                f"{plain_name(second)} [{fixed(low, 1)}, {fixed(high, 1)}]{unsure}."
            )
    if heads := influential_heads(tree):
        lines.append(f"The probe on attention leans most on {heads}; d→h: from a word to its head.")
    if text := structural_text(probes):
        lines.append(f"{capital(text)}.")
    if lacking := str(probes.attrs["lacking"]).split():
        shown = ", ".join(map(plain_name, lacking))
        lines.append(f"Not run, for want of word vectors (--words): {shown}.")
    if note := root_note(probes):
        lines.append(f"{capital(note)}.")
    return lines


# --- for the terminal -----------------------------------------------------------------------


def data_text(probes: xr.Dataset) -> list[str]:
    """The amount of training and test data, and the share of words with a vector."""
    about = probes.attrs
    dev = f", {about['dev_sentences']:,} chosen by" if about["dev_sentences"] else ""
    lines = [
        f"{about['train_sentences']:,} sentences trained on{dev}, {about['test_sentences']:,} "
        f"tested on ({about['test_words']:,} words)"
    ]
    if about["not_asked"]:
        lines.append(
            f"{about['not_asked']:,} words were not asked for: their heads are in another window, "
            "or have no token"
        )
    if "words" in about:
        unknown = percent(float(about["words_unknown"]))
        twice = f"; {about['words_duplicates']} words stand twice" * bool(about["words_duplicates"])
        lines.append(
            f"word vectors: {about['words']}, {about['words_dim']} numbers; {unknown} of the test "
            f"words have none{twice}"
        )
    return lines


def probe_lines(probes: xr.Dataset) -> list[str]:
    """A line per probe: UAS with its interval, with punctuation, UUAS."""
    names = {name: plain_name(name) for name in probe_names(probes)}
    width = max(map(len, names.values()), default=0)
    lines = []
    for name, shown in names.items():
        scores_beside = [
            f"{text} {100 * float(probes[x].sel(probe=name)):.1f}"
            for x, text in BESIDE.items()
            if x in probes
        ]
        lines.append(
            f"  {shown:<{width}}  UAS {share(probes, 'uas', name)}; {', '.join(scores_beside)}"
        )
    return lines


def share(probes: xr.Dataset, variable: str, name: str) -> str:
    """The score of a probe as `61.4 % [60.3, 62.4]`."""
    value, low, high = (100 * part for part in at(estimate(probes, variable, probe=name)))
    ends = f" [{fixed(low, 1)}, {fixed(high, 1)}]" if np.isfinite(low) else ""
    return f"{fixed(value, 1)} %{ends}"


def structural_text(probes: xr.Dataset) -> str:
    """The scores of the best layer; "" without the structural probe."""
    layer = best_layer(probes)
    if layer is None:
        return ""
    uuas, root, distance, depth = (
        float(probes[f"structural_{part}"][layer]) for part in ("uuas", "root", "distance", "depth")
    )
    return (
        f"structural probe, best of the layers by UUAS: layer {layer_name(layer)}, UUAS "
        f"{100 * uuas:.1f} %, root {100 * root:.1f} %, ρ of distances {number(distance)}, "
        f"of depths {number(depth)}"
    )


def root_note(probes: xr.Dataset) -> str:
    """How ROOT is scored, if not by special tokens."""
    if probes.attrs["root"] != "a learned constant":
        return ""
    return "this tokenizer adds no special token: ROOT's score is one learned number"


def influential_heads(tree: xr.DataTree) -> str:
    """Heads with most influence on scores, as `L3·H9 d→h, L4·H12 d→h (against), …`; "" without that
    probe.
    """
    heads = []
    for row in head_influence_table(tree).head(NAMED).to_dict("records"):
        notes = ["against"] * (row["influence"] < 0) + [row["label"]] * bool(row["label"])
        text = f"{row['name']} {ARROWS[str(row['direction'])]}"
        heads.append(f"{text} ({'; '.join(notes)})" if notes else text)
    return ", ".join(heads)


def scores(probes: xr.Dataset) -> dict[str, Any]:
    """UAS with its interval, UUAS and more by probe, as JSON values."""
    by_probe: dict[str, Any] = {}
    for name in probe_names(probes):
        value, low, high = at(estimate(probes, "uas", probe=name))
        by_probe[name] = {"uas": value, "ci": [json_number(low), json_number(high)]}
        by_probe[name] |= {x: float(probes[x].sel(probe=name)) for x in BESIDE if x in probes}
    uuas = probes["structural_uuas"].values.tolist() if "structural_uuas" in probes else []
    return {"probes": by_probe, "structural_uuas": [json_number(value) for value in uuas]}


def tables(tree: xr.DataTree) -> dict[str, pd.DataFrame]:
    """The table of the heads with most influence on a probe."""
    return {"probe_heads": head_influence_table(tree)}
