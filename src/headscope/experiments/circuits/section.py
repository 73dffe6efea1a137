"""What a report says of heads on made inputs: opening, sections, tables."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import xarray as xr

from headscope.core.accumulators import Float64
from headscope.core.head_labels import head_labels, untrained_words
from headscope.core.results import (
    at,
    estimate,
    group,
    head_name,
    needed,
    own_name,
    shape,
)
from headscope.core.wording import fixed, percent
from headscope.experiments.circuits import written_answers
from headscope.experiments.circuits.claims import RULES
from headscope.page.sections import FINDINGS, OpeningPlan, SectionPlan, heading_of, of_group
from headscope.page.tabulate import Cell, Column, Rows, Table, share

NAME = "circuits"
LISTED, NAMED = 12, 4  # heads, or pairs, in a table; heads that a sentence names
SURE = 4.0  # standard deviations: one pair in 30,000 lies higher by chance
SHARES = ("copied", "successor", "retrieval")
KINDS = ("induction", "previous_token", "duplicate_token")


def circuit_findings(tree: xr.DataTree) -> list[str]:
    """All sentences that the run allows."""
    if group(tree, NAME) is None:
        return []
    told = [words for kind in RULES if (words := _kind_finding(tree, kind))]
    told = told or ["No head does what is asked here more surely than chance allows."]
    told += [_path_finding(tree), _repeat_finding(tree), *written_answers.findings(tree)]
    return [one for one in told if one]


def labelled(tree: xr.DataTree, kind: str) -> list[tuple[int, int]]:
    """(layer, head) of the heads with a label of this kind, the largest number first."""
    having = [
        (claim.value, place)
        for place, one in head_labels(tree).items()
        for claim in one.labels
        if claim.kind == kind
    ]
    return [place for _, place in sorted(having, key=lambda pair: (-pair[0], pair[1]))]


def _kind_finding(tree: xr.DataTree, kind: str) -> str:
    places, heads = labelled(tree, kind), shape(tree)[1]
    if not places:
        return ""
    labels = head_labels(tree)
    told = []
    for layer, head in places[:NAMED]:
        claim = next(one for one in labels[layer, head].labels if one.kind == kind)
        words = percent(claim.value, claim.low, claim.high)
        told.append(f"{head_name(layer * heads + head, heads)} {words}")
    rest = len(places) - len(told)
    many = f"{RULES[kind].title}, {len(places)} heads" if len(places) > 1 else RULES[kind].title
    return f"{many[:1].upper()}{many[1:]}: {', '.join(told)}{f' and {rest} more' * bool(rest)}."


def _repeat_finding(tree: xr.DataTree) -> str:
    dataset = needed(tree, NAME)
    words = percent(*at(estimate(dataset, "told_again")))
    return (
        f"Of {int(dataset.attrs['length'])} random tokens that come again, the model gives the "
        f"right next one a probability of {words}."
    )


def _path_finding(tree: xr.DataTree) -> str:
    """Which earlier head the keys of the strongest induction heads read most."""
    dataset, heads = needed(tree, NAME), shape(tree)[1]
    found: dict[int, list[tuple[int, float]]] = {}
    for layer, head in labelled(tree, "induction") if "composition" in dataset else ():
        reader = layer * heads + head
        for writer, score, above in pairs_of(dataset, reader, "key")[:1]:
            if above >= SURE:
                found.setdefault(writer, []).append((reader, score))
    if not found:
        return ""
    induces = dataset["score"].sel(circuit="induction").values.ravel()
    writer = max(found, key=lambda one: sum(induces[reader] for reader, _ in found[one]))
    readers = found[writer]
    named = [head_name(reader, heads) for reader, _ in readers]
    before = at(estimate(dataset, "score", circuit="previous_token"), *divmod(writer, heads))
    least, most = (fixed(end(score for _, score in readers), 2) for end in (min, max))
    told = least if least == most else f"{least} to {most}"
    return (
        f"The keys of {', '.join(named)} read most what {head_name(writer, heads)} writes, which "
        f"gives {percent(*before)} to the previous token: K-composition {told}, where random "
        f"rotations give {fixed(float(dataset.attrs['width']) ** -0.5, 2)}."
    )


def pairs_of(dataset: xr.Dataset, reader: int, way: str) -> list[tuple[int, float, float]]:
    """(writer, composition, standard deviations above random) of a reader, the strongest first."""
    one = dataset.sel(way=way).isel(reader=reader)
    score, above = (one[name].values.astype(float) for name in ("composition", "composition_above"))
    order = np.argsort(-np.nan_to_num(score, nan=-1.0), kind="stable")
    return [(int(w), float(score[w]), float(above[w])) for w in order if np.isfinite(score[w])]


def ordered(dataset: xr.Dataset) -> list[int]:
    """Units by the largest of their numbers."""
    parts = [dataset["score"].sel(circuit=kind).values for kind in KINDS]
    parts += [dataset[name].values for name in SHARES if name in dataset]
    most: Float64 = np.nanmax(np.stack(parts), 0).ravel()
    return [int(unit) for unit in np.argsort(-most, kind="stable")]


def heads_table(dataset: xr.Dataset) -> Table:
    """The heads with the largest numbers."""
    heads = dataset.sizes["head"]
    columns = [(f"score.{kind}", estimate(dataset, "score", circuit=kind)) for kind in KINDS]
    columns += [(one, estimate(dataset, one)) for one in SHARES if one in dataset]
    rows = []
    for unit in ordered(dataset)[:LISTED]:
        place = divmod(unit, heads)
        cells = [share(*at(parts, *place)) for _, parts in columns]
        by_weights = Cell(fixed(float(dataset["weight_copying"].values[place]), 2))
        rows.append([Cell(head_name(unit, heads)), *cells, by_weights])
    named = {"previous_token": "Previous", "duplicate_token": "Duplicate", "copied": "Copying"}
    words = [name.rpartition(".")[2] for name, _ in columns]
    heading = [Column(named.get(one, one.capitalize()), "%", one) for one in words]
    caption = (
        f"The {len(rows)} heads with the largest of these numbers, with 95 % intervals over "
        f"{int(dataset.attrs['sequences'])} inputs (of successors, over ordinals). Chance of "
        f"copying is {percent(float(dataset.attrs['chance']))}. All heads: table of heads, and "
        "tables/circuits."
    )
    last = Column("By weights", "", "weight_copying")
    return Table("Heads", [Column("Head"), *heading, last], [Rows(rows)], caption)


def readers_of(dataset: xr.Dataset) -> list[int]:
    """Units of the heads that induce most, of which pairs are told."""
    found = dataset["score"].sel(circuit="induction").values.ravel()
    return [int(unit) for unit in np.argsort(-found, kind="stable")[:NAMED] if found[unit] > 0]


def tables(tree: xr.DataTree) -> dict[str, pd.DataFrame]:
    """`circuit_pairs`: the pairs of heads whose composition lies SURE or more above random.

    reader and writer (as papers count), way, composition, above (standard deviations)
    """
    dataset = group(tree, NAME)
    if dataset is None or "composition" not in dataset:
        return {}
    heads, rows = dataset.sizes["head"], []
    numbers: Sequence[int] = dataset["layer"].values.tolist()
    above, score = (dataset[name].values for name in ("composition_above", "composition"))
    for way, reader, writer in np.argwhere(np.nan_to_num(above) >= SURE).tolist():
        names = [own_name(numbers[one // heads], one % heads) for one in (reader, writer)]
        place = way, reader, writer
        rows.append((*names, str(dataset["way"].values[way]), score[place], above[place]))
    columns = ["reader", "writer", "way", "composition", "above"]
    return {"circuit_pairs": pd.DataFrame(rows, columns=columns)}


SECTIONS = (
    SectionPlan(
        id="patterns-made", title="Where do heads look when random tokens come again?",
        text="Tokens are random, so that nothing but their places and that they come again can "
        "draw attention. A head that induces looks at what came after the same token before, and "
        "copies it (Olsson et al. 2022).",
        pictures=("circuits",), tables=(of_group(NAME, heads_table),), chapter=FINDINGS,
    ),
    SectionPlan(
        id="pairs-of-heads", title="Which heads read which?",
        text="An induction head needs an earlier one that tells each token what stood before it; "
        "its keys then read what that head wrote (K-composition, Elhage et al. 2021).",
        pictures=("circuit_paths",), chapter=FINDINGS,
    ),
)  # fmt: skip

OPENING = OpeningPlan(
    heading=heading_of("Which heads of ", " do what?"), findings=circuit_findings,
    lede=untrained_words, id="circuits",
)  # fmt: skip
