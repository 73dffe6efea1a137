"""Claims, words and the table of what heads write of a word by their weights: related words."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from headscope.claims.card_part import CardPart
from headscope.claims.plan import ClaimPlan, LabelRule
from headscope.claims.reading import Reading
from headscope.claims.terms import ELHELO, OURS, Term
from headscope.core.accumulators import Bools
from headscope.core.intervals import Estimate
from headscope.core.results import at
from headscope.page.tabulate import Cell, Column, Table, rows_table, share

LEAST = 0.25  # ours: of the pairs
EMBEDDED = " (from the embedding)"  # ends the name of a relation whose words are read so
SCORES = {"relation_score": "raises", "suppression_score": "lowers"}
NULL = {name: f"{name}_null" for name in SCORES}
ABOVE = {name: f"{name}_above" for name in SCORES}
KINDS = {"relation": "relation_score", "suppression": "suppression_score"}
VARIABLES = {
    name: ("layer head relation", words, "probability", source)
    for score, does in SCORES.items()
    for name, words, source in (
        (score, f"share of words whose related word the head’s weights {does[:-1]} most", ELHELO),
        (NULL[score], "the same of the other related words of the relation", OURS),
        (ABOVE[score], "lower end of the difference, corrected for all heads and relations", OURS),
    )
} | {
    "relation_pairs": ("relation", "pairs of words that are one token each", "1", OURS),
    "most_tokens": ("layer head end rank", "tokens raised and lowered most", "1", OURS),
}
RULES = {
    kind: LabelRule(
        f"{does} a related word by weights",
        number=f"share of words whose related word is among those that the head’s weights "
        f"{does[:-1]} most",
        least=LEAST,
        source=f"{ELHELO}; the threshold is {OURS}’s",
        asks="surely above the other related words of the relation, for all heads and relations "
        "at once",
        variable=score,
    )
    for (kind, score), does in zip(KINDS.items(), SCORES.values(), strict=True)
}


def _above(score: str, run: Reading, _: Estimate, relation: str) -> Bools:
    above = np.logical_not(run(ABOVE[score], relation=relation).value <= 0)
    if relation.endswith(EMBEDDED):
        above[0] = False  # the first layer reads the embedding anyway
    return above


def _relations(score: str, run: Reading) -> list[dict[str, str]]:
    names = run.data["relation"].values.tolist() if score in run.data else []
    return [{"relation": name} for name in names]


CLAIMS = tuple(
    ClaimPlan(
        kind=kind,
        rule=RULES[kind],
        each=partial(_relations, score),
        share=score,
        usual=NULL[score],
        where=partial(_above, score),
        name=f"{SCORES[score]} the {{relation}}",
        about="{relation}",
        label=f"{SCORES[score]} the {{relation}} {{share:%}}",
        sentence=f"{SCORES[score]} the {{relation}} by its weights: it is one of the {{among}} "
        f"tokens {'raised' if kind == 'relation' else 'lowered'} most for {{share:%}} of the "
        "words, those of other words for {usual:%}",
    )
    for kind, score in KINDS.items()
)
TERMS = {
    "relation_score": Term(
        "relation score",
        "The share of words of a relation (big → bigger, France → Paris) whose related word is one "
        "of the few tokens that the head’s weights raise most for the word.",
        ELHELO,
    ),
    "suppression_score": Term(
        "suppression score",
        "The share of words of a relation whose related word is one of the few tokens that the "
        "head’s weights lower most for the word.",
        ELHELO,
    ),
}
LABELS = {"relation_score": "raises the {choice}", "suppression_score": "lowers the {choice}"}


def relations_table(run: Reading) -> Table | None:
    """Each relation with its pairs, and the heads that raise and lower it most."""
    if "relation_pairs" not in run.data:
        return None
    rows = []
    for name, pairs in zip(
        run.data["relation"].values.tolist(), run.data["relation_pairs"].values, strict=True
    ):
        most = [cell for score in SCORES for cell in _most(run, score, name)]
        rows.append([name, str(pairs), *most])
    columns: list[object] = ["Relation", "Pairs"]
    for does in SCORES.values():
        columns += [f"{does.capitalize()} it most", Column("Share", "%"), Column("Shuffled", "%")]
    dropped = run.data.attrs["relations_left_out"]
    left = f" With fewer than {run.data.attrs['relation_fewest']} pairs, left out: {dropped}."
    caption = (
        f"Share of words whose related word is one of the {run.data.attrs['among']} tokens that "
        "the weights of the head raise or lower most. Shuffled: the same of the related words of "
        f"other words. The best of all heads is shown.{left * bool(dropped)}"
    )
    return rows_table("Related words by weights", columns, rows, caption)


def _most(run: Reading, score: str, relation: str) -> list[Cell]:
    parts, null = (run(name, relation=relation) for name in (score, NULL[score]))
    first = np.unravel_index(int(np.nanargmax(parts.value)), parts.value.shape)
    place = int(first[0]), int(first[1])
    return [Cell(run.names.head(*place)), share(*at(parts, *place)), share(null.value[place])]


def _tokens(run: Reading, layer: int, head: int) -> dict[str, list[str]]:
    """The tokens that a head raises and lowers most by its weights, by end; empty if unknown."""
    if not run.there or "most_tokens" not in run.data:
        return {}
    rows = run.data["most_tokens"].values[layer, head]  # [end, rank]
    return {
        end: [text for text in row if text]
        for end, row in zip(run.data["end"].values.tolist(), rows.tolist(), strict=True)
        if any(row)
    }


def _lines(run: Reading, layer: int, head: int) -> Iterator[str]:
    for end, tokens in _tokens(run, layer, head).items():
        yield f"{end} most: {', '.join(f'“{token}”' for token in tokens)}"


CARD = CardPart(
    place=18,
    title="By its weights, for the words of the relations on average",
    lines=_lines,
    data=lambda run, *place: {"most_tokens": rows} if (rows := _tokens(run, *place)) else {},
)
