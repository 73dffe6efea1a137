"""The claims that the zoo holds against every model: who made them of BERT, and their bounds.

How the number of a claim is read off a run stands in `measures`.
"""

from dataclasses import dataclass

from headscope.claims.bibliography import SOURCES
from headscope.claims.head_attention import NEXT
from headscope.claims.terms import CLARK, COHEN, KOBAYASHI20, KOBAYASHI21, OURS, VIG, XIAO
from headscope.claims.verdict import SIGNIFICANT
from headscope.papers import published
from headscope.papers.claim_engine import Bound, ClaimGroup, PaperClaim
from headscope.papers.neuron_roles import BAG
from headscope.papers.published import Published
from headscope.papers.zoo import measures

NEGLIGIBLE = 0.1  # Cohen 1988: a correlation below is less than small
MODERATE = 0.3  # Cohen 1988: a medium correlation
REFERENCES = {name: SOURCES[name] for name in (CLARK, KOBAYASHI20, KOBAYASHI21, XIAO, VIG, COHEN)}


@dataclass(frozen=True, slots=True)
class FinderRelation:
    """A relation whose best head is tested.

    name       in plain words
    labels     of it in Universal and in Stanford Dependencies; the first that a treebank has counts
    published  accuracy of the best head and of the best offset, BERT-base on the Penn Treebank
    """

    name: str
    labels: tuple[str, ...]
    published: str


RELATIONS = (
    FinderRelation("determiner", ("det",), "94.3 | 51.7 %"),
    FinderRelation("direct object", ("obj", "dobj"), "86.8 | 40.0 %"),
    FinderRelation("subject", ("nsubj",), "58.5 | 45.5 %"),
    FinderRelation("adjective", ("amod",), "75.6 | 68.3 %"),
    FinderRelation("preposition", ("case", "pobj"), "pobj: 76.3 | 34.6 %"),
    FinderRelation("possessive", ("nmod:poss", "poss"), "80.5 | 47.7 %"),
    FinderRelation("auxiliary", ("aux",), "81.1 | 71.5 %"),
    FinderRelation("clause marker", ("mark",), "50.7 | 14.5 %"),
    FinderRelation("adverb", ("advmod",), "48.8 | 40.2 %"),
)


def quoted(text: str) -> tuple[Published, ...]:
    """What was printed of BERT-base; shown, and compared with nothing."""
    return (Published(text, published.QUOTED),)


def _cancels(category: str, text: str, of: str, printed: str, headline: str = "") -> PaperClaim:
    key = {"sep": "separator", "cls": "opening"}.get(category, category)
    test = ("near", NEGLIGIBLE) if category == "other" else ("below", -NEGLIGIBLE)
    return PaperClaim(
        f"cancel_{key}",
        f"{KOBAYASHI20}, Table 2",
        text,
        measures.cancellation(category),
        quoted(printed),
        "1",
        number=f"ρ of weight α and norm ‖f(x)‖ (Spearman) over pairs whose second token is {of}",
        bound=Bound(*test, COHEN),
        headline=headline,
    )


def _relation(relation: FinderRelation) -> PaperClaim:
    return PaperClaim(
        relation_key(relation),
        f"{CLARK}, Table 1",
        f"{relation.name} ({relation.labels[0]})",
        measures.relation(relation.labels),
        quoted(relation.published),
        "points",
        number="held-out accuracy of the best head less that of the best fixed offset",
        bound=Bound("above", 0.0, f"{OURS}: any advantage"),
    )


def _neurons(
    key: str, text: str, quantity: str, target: str, sign: int, *, headline: str = ""
) -> PaperClaim:
    names = {"effective": "number of neurons", "position_overlap": "overlap between positions"}
    looks = {BAG: "a bag of words of the own sentence", NEXT: "attention to the next token"}
    looking = looks.get(target, "attention to the separator")
    return PaperClaim(
        f"neurons_{key}",
        VIG,
        text,
        measures.over_heads(quantity, target, sign),
        (),
        "1",
        number=f"ρ over heads of {looking} and {names[quantity]} (Spearman)",
        bound=Bound(*(("above", NEGLIGIBLE) if sign > 0 else ("below", -NEGLIGIBLE)), COHEN),
        headline=headline,
    )


def relation_key(relation: FinderRelation) -> str:
    """The key of the claim that some head finds the relation."""
    return f"relation_{relation.labels[0]}"


_HALF = Bound("above", 0.5, f"{OURS}, as for the separator")
_MORE = Bound("above", 0.0, f"{OURS}: any difference")
_SOME_HEAD = Bound("above", 0.0, f"{CLARK}, §3.1: more than 50 %")

GROUPS = (
    ClaimGroup(
        "rest",
        "Where attention rests",
        "",
        (
            PaperClaim(
                "separator_middle",
                f"{CLARK}, §3.2",
                "the middle layers rest on the separator",
                measures.middle_attention("sep", kind="sep"),
                quoted("> 50 %"),
                "share",
                number="attention to the separator, mean over the heads of the middle layers",
                bound=Bound("above", 0.5, f"{CLARK}, §3.2"),
                headline="more than half of the "
                "attention of the middle layers rests on the separator",
            ),
            PaperClaim(
                "first_middle",
                f"{XIAO}, of decoders",
                "the middle layers rest on the first token",
                measures.middle_attention("first"),
                quoted("≈ 0 %"),
                "share",
                number="attention to the first token, mean over the heads of the middle layers",
                bound=_HALF,
                headline="more than half of the attention of the middle layers "
                "rests on the first token",
            ),
            PaperClaim(
                "both_middle",
                f"{CLARK}, §3.2, of [SEP] alone",
                "the middle layers rest on the first token or the separator",
                measures.first_and_separator(),
                quoted("> 50 %"),
                "share",
                number="attention to the first token and the separator together, mean "
                "over the heads of the middle layers",
                bound=_HALF,
                headline="more than half of "
                "the attention of the middle layers rests on the first token and the separator "
                "together",
            ),
            PaperClaim(
                "separator_itself",
                f"{CLARK}, §3.2",
                "the separator attends to separators",
                measures.middle_attention("sep_from_sep", kind="sep"),
                quoted("> 90 %"),
                "share",
                number="attention of separators to separators, mean over the heads of the "
                "middle layers",
                bound=Bound("above", 0.9, f"{CLARK}, §3.2"),
            ),
        ),
    ),
    ClaimGroup(
        "position",
        "Position",
        "",
        (
            PaperClaim(
                "previous_heads",
                f"{CLARK}, §3.1",
                "some heads look at the previous token",
                measures.position_heads(-1),
                quoted("4 of 144"),
                "heads",
                number="heads with more than half of their attention on the previous token",
                bound=_SOME_HEAD,
                headline="some head gives more than half of its attention to the previous token",
            ),
            PaperClaim(
                "next_heads",
                f"{CLARK}, §3.1",
                "some heads look at the next token",
                measures.position_heads(1),
                quoted("5 of 144"),
                "heads",
                number="heads with more than half of their attention on the next token",
                bound=_SOME_HEAD,
                headline="some head gives more than half of its attention to the next token",
            ),
            PaperClaim(
                "position_early",
                f"{CLARK}, §3.1",
                "neighbours matter most in early layers",
                measures.neighbours_early(),
                (),
                "points",
                number="attention to both "
                "neighbours, mean over the first half of the layers less the second",
                bound=_MORE,
            ),
        ),
    ),
    ClaimGroup(
        "breadth",
        "Breadth",
        "",
        (
            PaperClaim(
                "broad_early",
                f"{CLARK}, §3.3",
                "early layers attend more broadly",
                measures.broad_early(),
                (),
                "points",
                number="mean entropy as a share of "
                "uniform attention’s, first half of the layers less the second",
                bound=_MORE,
                headline="the first half of the layers attends more broadly than the second",
            ),
            PaperClaim(
                "opening_last",
                f"{CLARK}, §3.3",
                "in the last layer [CLS] attends broadly",
                measures.opening_last(),
                quoted("[CLS]: 3.89 nats"),
                "nats",
                number="entropy of [CLS] less that of all tokens, last layer",
                bound=_MORE,
                headline="[CLS], or what stands for it, attends more broadly in the last layer "
                "than other tokens do",
            ),
        ),
    ),
    ClaimGroup(
        "norms",
        "Weight against norm",
        "",
        (
            PaperClaim(
                "separator_empty",
                KOBAYASHI20,
                "what comes from the separator is small for its weight",
                measures.separator_empty(),
                (),
                "1",
                number="the separator’s share of "
                "the norm ‖αf(x)‖ divided by its share of the weight α, middle layers",
                bound=Bound("below", 0.5, f"{OURS}: less than half of its weight"),
                headline="the separator counts for less than half of its weight once norms are "
                "taken",
            ),
            _cancels(
                "sep",
                "separator: large weights meet small vectors",
                "a separator",
                "−0.69",
                "large weights of the separator meet small vectors, ρ < −0.1",
            ),
            _cancels("cls", "[CLS]: large weights meet small vectors", "the opening one", "−0.34"),
            _cancels(
                "punctuation",
                "punctuation: large weights meet small vectors",
                "a full stop or comma",
                "−0.25",
            ),
            _cancels("other", "other tokens: no such relation", "any other", "−0.06"),
            PaperClaim(
                "frequency_norm",
                KOBAYASHI20,
                "frequent tokens have small vectors",
                measures.frequency("value_norm"),
                quoted("0.75"),
                "1",
                number="ρ of a token’s frequency rank and its mean norm ‖f(x)‖ (Spearman)",
                bound=Bound("above", MODERATE, COHEN),
                headline="frequent tokens have smaller vectors, ρ > 0.3 with the frequency rank",
            ),
            PaperClaim(
                "frequency_weight",
                KOBAYASHI20,
                "but get as much attention as others",
                measures.frequency("attention"),
                quoted("0.06"),
                "1",
                number="ρ of a token’s "
                "frequency rank and the attention that it receives (Spearman)",
                bound=Bound("near", NEGLIGIBLE, COHEN),
            ),
            PaperClaim(
                "mixing",
                KOBAYASHI21,
                "a token’s output is mostly itself",
                measures.mixing(),
                quoted("18.8 %"),
                "share",
                number="mixing ratio with residual and LayerNorm "
                "(AttnResLn-N), mean over layers; where a model normalises first, without "
                "(AttnRes-N)",
                bound=Bound("below", 0.5, f"{OURS}: less than half"),
                headline="most of what leaves a layer’s attention block is the token itself",
            ),
        ),
    ),
    ClaimGroup(
        "neurons",
        "Neurons of query and key",
        "",
        (
            _neurons("sep_few", "heads on the separator use few neurons", "effective", "sep", -1),
            _neurons(
                "sep_fixed",
                "the same at every position",
                "position_overlap",
                "sep",
                1,
                headline="heads on the separator use the same neurons at every position, ρ > 0.1",
            ),
            _neurons("bag_few", "bags of words use few neurons", "effective", BAG, -1),
            _neurons("bag_fixed", "the same at every position", "position_overlap", BAG, 1),
            _neurons("next_many", "heads on the next token use many", "effective", NEXT, 1),
            _neurons(
                "next_changing",
                "others at each position",
                "position_overlap",
                NEXT,
                -1,
                headline="heads on the next token use other neurons at each position, ρ < −0.1",
            ),
        ),
    ),
    ClaimGroup(
        "language",
        "Language: best heads beside the best fixed offset",
        "",
        (
            *map(_relation, RELATIONS),
            PaperClaim(
                "overall_syntax",
                f"{CLARK}, §4.2",
                "no head does syntax as a whole",
                measures.overall_syntax(),
                quoted("34.5 %"),
                "share",
                number="held-out accuracy of the best single head over all words",
                bound=Bound("below", 0.5, f"{OURS}: less than half"),
                headline="no single head finds half of all syntactic heads",
            ),
        ),
    ),
    ClaimGroup(
        "layers",
        "Layers",
        "",
        (
            PaperClaim(
                "layers_alike",
                f"{CLARK}, §6",
                "heads of one layer are alike",
                measures.layers_alike(),
                (),
                "share",
                number="by how much heads of a layer "
                "differ less (Jensen-Shannon divergence) than heads of different layers; with p "
                "against layers dealt out anew",
                bound=Bound("above", 0.0, f"{OURS}: any difference, p ≤ {SIGNIFICANT:g}"),
                headline="heads of one layer are more alike than heads of different layers",
            ),
        ),
    ),
)
CLAIMS = tuple(claim for group in GROUPS for claim in group.claims)
