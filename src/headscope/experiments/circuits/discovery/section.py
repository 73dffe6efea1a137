"""Report section on the circuit of some prompts: sentences, and its nodes in a table."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from headscope.claims.reading import Reading
from headscope.claims.terms import HANNA, MUELLER, OURS, WANG, Term
from headscope.core.results import at, shape
from headscope.core.wording import MISSING, listed, percent
from headscope.experiments.circuits import section as of_circuits
from headscope.experiments.circuits.discovery.node_names import Nodes
from headscope.experiments.circuits.over_items import knows_answers
from headscope.page.tabulate import Cell, Column, Table, measured, rows_table, share

NAMED, LISTED = 5, 24
SURE = 0.95  # of resampled items
LEVEL = 0.05
REPLACED = {
    "counterfactual": "what it gives in the corrupted prompt",
    "mean": "its mean",
    "zero": "nothing",
}


def first_words(run: Reading) -> str:
    """How much the circuit tells, beside random sets; then what is said of all heads."""
    circuit = (
        _faithful_finding(run)
        if told_apart(run)
        else "Which heads are the circuit, these prompts cannot tell: the network does not surely "
        "know the answers, or tell prompts from corrupted ones by more than chance."
    )
    return f"{circuit} {of_circuits.OPENING.lede(run)}".rstrip()


OPENING = replace(of_circuits.OPENING, lede=first_words)


def findings(run: Reading) -> list[str]:
    """What the circuit holds, and whether it is complete."""
    return [*_members_findings(run), *_complete_finding(run)] if told_apart(run) else []


def told_apart(run: Reading) -> bool:
    """Whether the network surely knows the answers, and not of corrupted prompts."""
    return knows_answers(run("accuracy")).holds and bool(run("gap").low > 0)


def is_circuit(run: Reading) -> bool:
    """Whether hardly a random set of the same size tells as nearly all of the difference."""
    return (as_close(run) + 1) / (run.data.sizes["draw"] + 1) <= LEVEL


def _faithful_finding(run: Reading) -> str:
    data = run.data
    part = percent(*at(run("circuit_faithfulness"), 0))
    close, many = as_close(run), data.sizes["draw"]
    if not is_circuit(run):
        return (
            f"No circuit was found: {counted_nodes(run)} tell {part} of the logit difference of "
            f"{data.attrs['tried']} other items, and {close} of {many} random sets as large come "
            "as close to all of it."
        )
    return (
        f"{counted_nodes(run)} are a circuit: with all others replaced they tell {part} of the "
        f"logit difference between prompts ({data.attrs['prompts']}) and corrupted ones, on "
        f"{data.attrs['tried']} items that did not choose it; of {many} random sets as large "
        f"{close or 'none'} come{'s' * (close < 2)} as close to all of it."
    )


def as_close(run: Reading) -> int:
    """How many random sets tell as nearly all of the difference as the circuit."""
    own = abs(1 - float(run("circuit_faithfulness").value[0]))
    return int((np.abs(1 - run.data["random_faithfulness"].values) <= own).sum())


def counted_nodes(run: Reading) -> str:
    """`12 of 24 heads and 3 of 3 feed-forward layers`."""
    nodes = Nodes(*shape(run.tree))
    kinds, member = nodes.kinds(), run.data["member"].values == 1
    heads, fed = (int((member & (kinds == kind)).sum()) for kind in ("head", "mlp"))
    return (
        f"{heads} of {nodes.layers * nodes.heads} heads and {fed} of {nodes.layers} feed-forward "
        "layers"
    )


def members(run: Reading) -> list[int]:
    """The nodes of the circuit but the input, the most needed first."""
    needed = run.data["needed"].values
    order = np.argsort(-np.nan_to_num(needed, nan=-np.inf), kind="stable")
    return [int(one) for one in order if one and run.data["member"].values[one] == 1]


def _members_findings(run: Reading) -> list[str]:
    names, data = Nodes(*shape(run.tree)).printed(run.names), run.data
    most = [f"{names[one]} {percent(*at(run('needed'), one))}" for one in members(run)[:NAMED]]
    unsure = [names[one] for one in members(run) if data["included"].values[one] < SURE]
    said = [f"The circuit loses most without {listed(most)}."] if most else []
    if unsure:
        many = "one" if len(unsure) == 1 else f"{len(unsure)}"
        said.append(
            f"Of its nodes {many} would not be chosen again in {100 * (1 - SURE):.0f} % of samples "
            f"or more, {drawn_again(run)} drawn anew: "
            f"{listed(unsure[:NAMED])}{', …' * (len(unsure) > NAMED)}."
        )
    return said


def drawn_again(run: Reading) -> str:
    """`4 wordings, 3 kinds of corrupted prompts and items`, or those of which there are several."""
    sizes = {"wordings": "form", "kinds of corrupted prompts": "corruption"}
    many = {words: run.data.sizes.get(dim, 1) for words, dim in sizes.items()}
    return listed([*(f"{count} {words}" for words, count in many.items() if count > 1), "items"])


def _complete_finding(run: Reading) -> list[str]:
    half = run.data["incomplete"].values
    worst = float(half[np.argmax(np.abs(half))])
    way = "more" if worst > 0 else "less"
    return [
        f"Without half of itself the circuit tells at most {percent(abs(worst))} {way} than the "
        "whole network without this half does."
    ]


def members_table(run: Reading) -> Table | None:
    """The nodes of the circuit, the most needed first."""
    if not told_apart(run):
        return None
    names = Nodes(*shape(run.tree)).printed(run.names)
    places, data = members(run), run.data
    several = {  # a column: dimension, variable
        name: (data.sizes[dim], data[f"included_in_{short}"].sum(dim).values)
        for name, dim, short in (("Wordings", "form", "form"), ("Kinds", "corruption", "kind"))
        if data.sizes.get(dim, 1) > 1
    }
    rows = [
        [
            names[one],
            share(*at(run("score"), one)),
            share(*at(run("needed"), one)),
            share(*at(run("included"), one)),
            *(f"{int(among[one])} of {many}" for many, among in several.values()),
        ]
        for one in places[:LISTED]
    ]
    columns = ["Node", Column("Score", "%", "score_of_node"), Column("Needed", "%", "needed")]
    columns += [Column("Chosen again", "%", "included"), *several]
    left = len(places) - len(rows)
    alone = (
        f"; {' and '.join(several).lower()}: of how many, each alone, it is among as many first "
        "nodes"
        if several
        else ""
    )
    more = f" {left} more stand in the results." if left > 0 else ""
    caption = (
        "The nodes of the circuit, beside the input. Scores are shares of the logit difference, by "
        f"integrated gradients, over {int(run.data.attrs['n'])} items; needed: what the circuit "
        f"loses without the node, over {int(run.data.attrs['tried'])} items that did not choose; "
        f"chosen again: where {drawn_again(run)} are drawn anew{alone}; 95 % intervals.{more}"
    )
    return rows_table("Nodes of the circuit", columns, rows, caption)


def areas_table(run: Reading) -> Table | None:
    """Faithfulness and the areas of its curves, by what stands in for nodes."""
    if not told_apart(run):
        return None
    rows = [
        [
            f"{kind}: {REPLACED[kind]}",
            share(*at(run("circuit_faithfulness"), place)),
            measured(*at(run("cpr"), place)),
            measured(*at(run("cmd"), place)),
        ]
        for place, kind in enumerate(REPLACED)
    ]
    if "edge_cpr" in run.data:
        areas = (measured(*at(run(name))) for name in ("edge_cpr", "edge_cmd"))
        rows.append(["edges cut: what is added in the corrupted prompt", Cell(MISSING), *areas])
    columns = [
        "Instead of other nodes",
        Column("The circuit", "%", "circuit_faithfulness"),
        Column("CPR", "", "cpr"),
        Column("CMD", "", "cmd"),
    ]
    caption = (
        "What is told where other nodes give something else. CPR and CMD are areas over the share "
        "of nodes, or edges, that stay, from 0.1 to 100 %: below the curve (more is better), and "
        "between it and 1 (less is better)."
    )
    return rows_table("Faithfulness", columns, rows, caption)


TERMS = {
    "circuit_faithfulness": Term(
        "faithfulness of the circuit",
        "The share of the logit difference between prompts and corrupted ones that the network "
        "tells with all nodes replaced that are not in the circuit.",
        MUELLER,
    ),
    "score_of_node": Term(
        "score of a node",
        "The share of the logit difference that a node moves, estimated along the way from the "
        "corrupted prompt to the clean one (EAP-IG).",
        HANNA,
    ),
    "needed": Term("needed", "What the circuit loses without the node (minimality).", WANG),
    "included": Term(
        "chosen again",
        "How often a node is among as many first ones where other wordings, kinds of corrupted "
        "prompts and items are drawn.",
        OURS,
    ),
    "incomplete": Term(
        "incompleteness",
        "What the circuit without half of itself tells more than the network without that half.",
        WANG,
    ),
    "cpr": Term(
        "CPR",
        "The area below the curve of faithfulness over the share of nodes that stay, the best "
        "scores first (circuit performance ratio).",
        MUELLER,
    ),
    "cmd": Term(
        "CMD",
        "The area between the curve of faithfulness and 1, the largest scores first "
        "(circuit-model distance).",
        MUELLER,
    ),
}
TERMS |= {
    "edge_score": Term(
        "score of an edge",
        "The share of the logit difference that what a node adds moves through one later reader "
        "alone: the queries, keys or values of a head, a feed-forward layer, the logits.",
        HANNA,
    ),
    "edge_cpr": Term("CPR of edges", "CPR over the share of edges that stay.", MUELLER),
    "edge_cmd": Term("CMD of edges", "CMD over the share of edges that stay.", MUELLER),
}
LABELS = {
    "edge_score": "score of an edge",
    "edge_cpr": "CPR of edges",
    "edge_cmd": "CMD of edges",
    "circuit_faithfulness": "faithfulness of the circuit",
    "score": "score of a node",
    "needed": "needed",
    "included": "chosen again",
    "incomplete": "incompleteness",
    "cpr": "CPR",
    "cmd": "CMD",
}
