"""The question surface: how much attention goes to neighbours and special tokens?"""

from collections.abc import Iterator
from typing import Any

from headscope.claims.plan import LayerMarks, PicturePlan
from headscope.claims.question import Option, Question
from headscope.claims.terms import CLARK, VIG, Term, terms_of

NO_TOKEN = "no_token"  # of models with learned sinks: what a row leaves for no token at all
POSITIONS = ("attention.previous", "attention.next")
KEYS = (
    "attention.cls|attention.first",
    "attention.sep",
    "attention.punctuation",
    "attention.no_token",
)
WORDS = ("own_segment", "other_segment", "same_token")
EVERY = (
    *POSITIONS,
    "attention.self",
    *KEYS,
    *(f"word_attention.{kind}" for kind in WORDS),
    "own_evenness",
)


def panels(run: Any) -> Iterator[LayerMarks]:
    """A panel for each kind of target, of those that the run has."""
    opening = {"cls": "{cls}"} if run.has("attention.cls") else {"first": "first token"}
    every = {
        "To neighbours": {"previous": "previous token", "next": "next token"},
        "To special tokens": {**opening, "sep": "{sep}", "punctuation": "punctuation"},
        "To {sep}, by who attends": {
            "sep_from_sep": "{sep} itself",
            "sep_from_other": "all other tokens",
        },
        "To no token": {"no_token": "a learned sink"},
    }
    for title, names in every.items():
        series = {one: name for one, name in names.items() if run.has(f"attention.{one}")}
        if series:
            yield LayerMarks(title=title, needs="attention", series=series, label="attention")


def caption(run: Any) -> str:
    """How to read the panels."""
    sinks = (
        "; to no token: what a row lacks of 100 %, as each head has a learned score of no token at "
        "all, mean over heads {attention.no_token:%}"
    ) * run.has("attention.no_token")
    words: str = run.words(
        "Each mark is one head: the share of its attention that goes to the named tokens, mean "
        f"over tokens, then inputs; punctuation is full stops and commas{sinks}; lines are layer "
        "means over heads; whiskers are {intervals}; {over:attention}. After Clark et al. (2019), "
        "Figure 2."
    )
    return words


QUESTION = Question(
    name="surface",
    package=__name__,
    title="Attention",
    place=10,
    predicts="rules:RULES",
    measure="measure:Surface",
    shares=("attention",),
    summary="attention to self, neighbours, special tokens and punctuation",
    source="Clark et al. 2019, §3.1-3.2",
    needs=frozenset({"attention"}),
    options={"edge_tokens": Option("count", ("count", "leave_out"))},
    figures=(
        PicturePlan(
            name="surface_by_layer",
            title="Where each layer looks",
            columns=3,
            panels=panels,
            caption=caption,
            text="The plainest thing that a head can do is to look at a neighbour or to rest on a "
            "special token. A few heads with high marks do one thing only; a high line means that "
            "the whole layer does it.",
            finding="query_bands:finding",
        ),
    ),
    terms={
        "self": Term("itself", "Attention of a token to itself.", f"{CLARK}, §3.1"),
        "previous": Term(
            "previous token",
            "Attention of a token to the one before it; the first token has none and counts as 0.",
            f"{CLARK}, §3.1",
        ),
        "next": Term(
            "next token",
            "Attention of a token to the one after it; the last token has none and counts as 0.",
            f"{CLARK}, §3.1",
        ),
        "sep_from_sep": Term(
            "[SEP] from [SEP]",
            "The attention that separator tokens themselves give to separators.",
            f"{CLARK}, §3.2",
        ),
        "sep_from_other": Term(
            "[SEP] from other tokens",
            "The attention that all tokens but the separators give to separators.",
            f"{CLARK}, §3.2",
        ),
        **terms_of(
            f"{VIG}; the measure is ours",
            {
                "word_attention": (
                    "attention between words",
                    "What words, tokens that the tokenizer did not add, give to words of a kind: "
                    "the mean over those that see such a word.",
                ),
                "own_segment": (
                    "own sentence",
                    "Words of the query’s own segment, itself among them, in "
                    "inputs of two; special tokens stand between segments.",
                ),
                "other_segment": ("other sentence", "Words of the other segments of the input."),
                "same_token": (
                    "same word elsewhere",
                    "The same token at other places of the input.",
                ),
                "own_evenness": (
                    "evenness over the own sentence",
                    "The entropy of what a word gives to the words of its own segment, of that if "
                    "each got the same: 1 is a bag of words.",
                ),
            },
        ),
    },
    labels={
        "attention": "attention to {choice}",
        ("attention", "no_token"): "what goes to no token, to a learned sink",
        "word_attention": "of words to {choice}",
        "rest_attention": "of what the first token leaves, to {choice}",
    },
    shown={"table": EVERY, "overview": (*POSITIONS, *KEYS), "card": EVERY, "change": EVERY},
    compared="Where heads attend",
    marks={
        "no_token": ("grey", "o"),
        "sep_from_sep": ("vermillion", "^"),
        "sep_from_other": ("grey", "o"),
    },
    claims="claims:claims",
    rules="claims:RULES",
    card="query_bands:CARD",
    common=True,
)
