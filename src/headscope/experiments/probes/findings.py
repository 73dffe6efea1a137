"""Sentences on what the probes find and which heads they rely on, with numbers."""

from typing import Any

import numpy as np
import pandas as pd

from headscope.claims.dictionary import name as plain_name
from headscope.claims.reading import Reading
from headscope.claims.verdict import differs
from headscope.core.results import at, json_number
from headscope.core.wording import capital, fixed, number, percent
from headscope.page.tabulate import records

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


def probe_names(run: Reading) -> list[str]:
    """The probes that were scored; none where only the structural one was run."""
    return [str(name) for name in run.data["probe"].values] if "uas" in run.data else []


def head_influence_table(run: Reading) -> pd.DataFrame:
    """One row per head and direction, the largest influence first; empty without that probe.

    returns  HEAD_COLUMNS; layer and head from 0; label is "" without an atlas
    """
    probes = run.data
    if "head_influence" not in probes:
        return pd.DataFrame(columns=HEAD_COLUMNS)
    known = [f"head_{column}" for column in HEAD_COLUMNS if f"head_{column}" in probes]
    table = probes[known].to_dataframe(["layer", "head", "direction"]).reset_index()
    table = table.rename(columns=lambda name: name.removeprefix("head_"))
    table["name"] = [
        run.names.own(*place) for place in zip(table["layer"], table["head"], strict=True)
    ]
    if "label" not in table:
        table["label"] = ""
    order = np.argsort(-np.abs(table["influence"].to_numpy()), kind="stable")
    return table.iloc[order].reset_index(drop=True)[HEAD_COLUMNS]


def best_layer(run: Reading) -> int | None:
    """The layer whose hidden states give most arcs; None without the structural probe."""
    has = run.has("structural_uuas")
    return int(np.nanargmax(run("structural_uuas").value)) if has else None


def sentences_text(run: Reading) -> str:
    """`n = 2,077 test sentences, 25,094 words`."""
    return run.text("n = {test_sentences:,} test sentences, {test_words:,} words")


def probe_findings(run: Reading) -> list[str]:
    """Sentences with numbers: the best probe, what words and the model add, heads and layers."""
    lines = []
    names = probe_names(run)
    if names:
        best = max(names, key=lambda name: run.mean("uas", probe=name))
        lines.append(
            f"The best of {len(names)} probes, {plain_name(best)}, finds the syntactic head of "
            f"{share(run, 'uas', best)} of the words (UAS)."
        )
    for first, second, says in COMPARED:
        if first in names and second in names:
            parts = at(run("difference", probe=first, probe_other=second))
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
    if heads := influential_heads(run):
        lines.append(f"The probe on attention leans most on {heads}; d→h: from a word to its head.")
    if text := structural_text(run):
        lines.append(f"{capital(text)}.")
    if lacking := str(run.data.attrs["lacking"]).split():
        shown = ", ".join(map(plain_name, lacking))
        lines.append(f"Not run, for want of word vectors (--words): {shown}.")
    if note := root_note(run):
        lines.append(f"{capital(note)}.")
    return lines


# --- for the terminal -----------------------------------------------------------------------


def data_text(run: Reading) -> list[str]:
    """The amount of training and test data, and the share of words with a vector."""
    about = run.data.attrs
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


def probe_lines(run: Reading) -> list[str]:
    """A line per probe: UAS with its interval, with punctuation, UUAS."""
    names = {name: plain_name(name) for name in probe_names(run)}
    width = max(map(len, names.values()), default=0)
    lines = []
    for name, shown in names.items():
        scores_beside = [
            f"{text} {100 * run.mean(x, probe=name):.1f}"
            for x, text in BESIDE.items()
            if x in run.data
        ]
        lines.append(
            f"  {shown:<{width}}  UAS {share(run, 'uas', name)}; {', '.join(scores_beside)}"
        )
    return lines


def share(run: Reading, variable: str, name: str) -> str:
    """The score of a probe as `61.4 % [60.3, 62.4]`."""
    value, low, high = (100 * part for part in at(run(variable, probe=name)))
    ends = f" [{fixed(low, 1)}, {fixed(high, 1)}]" if np.isfinite(low) else ""
    return f"{fixed(value, 1)} %{ends}"


def structural_text(run: Reading) -> str:
    """The scores of the best layer; "" without the structural probe."""
    layer = best_layer(run)
    if layer is None:
        return ""
    uuas, root, distance, depth = (
        float(run(f"structural_{part}").value[layer])
        for part in ("uuas", "root", "distance", "depth")
    )
    return (
        f"structural probe, best of the layers by UUAS: layer {run.names.layer(layer)}, UUAS "
        f"{100 * uuas:.1f} %, root {100 * root:.1f} %, ρ of distances {number(distance)}, "
        f"of depths {number(depth)}"
    )


def root_note(run: Reading) -> str:
    """How ROOT is scored, if not by special tokens."""
    if run.data.attrs["root"] != "a learned constant":
        return ""
    return "this tokenizer adds no special token: ROOT's score is one learned number"


def influential(run: Reading, count: int) -> list[dict[str, Any]]:
    """The heads with most influence, as rows of `head_influence_table`."""
    return records(head_influence_table(run).head(count))


def influential_heads(run: Reading) -> str:
    """Heads with most influence on scores, as `L3·H9 d→h, L4·H12 d→h (against), …`; "" without that
    probe.
    """
    heads = []
    for row in influential(run, NAMED):
        notes = ["against"] * (row["influence"] < 0) + [row["label"]] * bool(row["label"])
        text = f"{row['name']} {ARROWS[str(row['direction'])]}"
        heads.append(f"{text} ({'; '.join(notes)})" if notes else text)
    return ", ".join(heads)


def scores(run: Reading) -> dict[str, Any]:
    """UAS with its interval, UUAS and more by probe, as JSON values."""
    by_probe: dict[str, Any] = {}
    for name in probe_names(run):
        value, low, high = at(run("uas", probe=name))
        by_probe[name] = {"uas": value, "ci": [json_number(low), json_number(high)]}
        by_probe[name] |= {x: run.mean(x, probe=name) for x in BESIDE if x in run.data}
    uuas = run("structural_uuas").value.tolist() if "structural_uuas" in run.data else []
    return {"probes": by_probe, "structural_uuas": [json_number(value) for value in uuas]}


def tables(run: Reading) -> dict[str, pd.DataFrame]:
    """The table of the heads with most influence on a probe."""
    return {"probe_heads": head_influence_table(run)}
