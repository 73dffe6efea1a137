"""The question explained: how much of what a head does do readable rules predict?"""

from headscope.claims.plan import Grid, PicturePlan
from headscope.claims.question import Question
from headscope.claims.terms import HAYES, OURS, terms_of

QUESTION = Question(
    name="explained",
    package=__name__,
    title="Explained by rules",
    place=15,
    predicts="rules:RULES",
    measure="measure:Explained",
    summary="which readable rules predict where a head looks, and how much of it they explain",
    source=f"{OURS}; overlap of maps: {HAYES}",
    needs=frozenset({"attention", "whole_rows"}),
    figures=(
        PicturePlan(
            name="explained",
            title="What rules explain of each head",
            panels=(
                Grid(
                    title="Explained by its rules",
                    needs="gathering.rules",
                    unit="probability",
                    top=1.0,
                ),
                Grid(title="Beyond position and rest", needs="beyond", unit="probability"),
            ),
            caption="sentences:caption",
            finding="sentences:finding",
            tables=("sentences:table",),
            text="For each head at most five readable rules are chosen, such as the previous token "
            "or the syntactic head, and a place where it rests. Other documents say how much of "
            "what the head gathers these predict. Broad attention is easily explained, that of a "
            "network that has learned nothing, too: what content explains, beyond position and "
            "rest, tells of learning.",
        ),
    ),
    lead="sentences:finding",
    card="sentences:CARD",
    tables="rules_as_data:tables",
    shown={
        "first": ("attention.rules", "gathering.rules"),
        "table": ("gathering.rules", "attention.rules", "beyond"),
        "overview": ("gathering.rules", "beyond"),
        "card": ("gathering.rules", "beyond"),
    },
    labels={
        "attention": "attention explained by {choice}",
        "gathering": "gathered, explained by {choice}",
        "iou": "intersection over union with its rules",
        "beyond": "gathered, explained by content",
    },
    terms=terms_of(
        OURS,
        {
            "gathering": (
                "explained gathering",
                "The share of what a head gathers, attention times the norm of what is taken, that "
                "its rules put on the same tokens; on documents that chose no rule.",
            ),
            "beyond": (
                "explained by content",
                "How much more of what a head gathers is explained than by the best rules of "
                "position and rest alone.",
            ),
            "rules": ("its rules", "At most five rules chosen for the head, and its rest."),
            "position_and_rest": (
                "position and rest",
                "The best rules of places, special tokens and marks, for the same head.",
            ),
            "another_head": ("another’s rules", "Those of the next head of the layer."),
            "iou": (
                "intersection over union",
                "Of a query’s attention and its prediction: what both give, over what either "
                "gives, mean over queries.",
            ),
            "rule_share": (
                "share of a rule",
                "The part of what a head gathers that it explains by this rule; parts of all rules "
                "add up to what is explained.",
            ),
        },
    ),
)
