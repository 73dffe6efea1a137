"""Vig (2019): what he saw by eye in heads of BERT and in their neurons, as lines with numbers.

He published no number, so that no line has a published value, and the directions are ours. As his,
inputs are pairs: sentences of the bundled corpus, else windows of two segments, or the user's own.
"""

from headscope.claims.bibliography import SOURCES
from headscope.claims.head_attention import NEXT, PREVIOUS
from headscope.claims.terms import VIG
from headscope.corpus import Document, MemoryCorpus, Passage, TreebankCorpus
from headscope.papers import neuron_roles
from headscope.papers.claim_engine import ClaimGroup, Paper, PaperClaim, PaperFigure
from headscope.papers.neuron_roles import BAG, QUARTER
from headscope.papers.own_models import BERT_UNCASED
from headscope.papers.paper_runs import texts
from headscope.papers.quantities import Measured, PaperRun, Unmeasured, reads
from headscope.papers.workspace import Workspace
from headscope.run.store import Run

PAIRS = "sentence_pairs"
PART_1, PART_2, TOOL = "Deconstructing BERT, Part 1", "Deconstructing BERT, Part 2", "ACL 2019, §4"
most = reads(PAIRS)(neuron_roles.most)
over_heads = reads(PAIRS)(neuron_roles.over_heads)
same_everywhere = reads(PAIRS)(neuron_roles.same_everywhere)
few = reads(PAIRS)(neuron_roles.few)
separates = reads(PAIRS)(neuron_roles.separates)
apart = reads(PAIRS)(neuron_roles.apart)
source = reads(PAIRS)(neuron_roles.source)


def sentence_pairs(workspace: Workspace, name: str) -> Run:
    """Where heads look and which neurons make them, on inputs of two sentences or segments."""
    corpus = texts(workspace)
    if isinstance(corpus, TreebankCorpus):  # the bundled one, a sentence each
        corpus = MemoryCorpus(map(_paired, corpus))
    return workspace.atlas(name, corpus, "surface", "neurons")


def _paired(document: Document) -> Document:
    """Neighbouring sentences, two an input; the whole document, with its mentions, is none."""
    sentences = [
        "".join(word.form + " " * word.space_after for word in passage.words)
        for passage in document.passages
        if passage.words and not passage.mentions
    ]
    pairs = enumerate(zip(sentences[::2], sentences[1::2], strict=False))
    passages = (Passage(f"{document.id}#{at}", text=a, text_pair=b) for at, (a, b) in pairs)
    return Document(document.id, tuple(passages))


@reads(PAIRS)
def unmeasured(run: PaperRun, needs: str) -> Measured:
    """Raises Unmeasured: no analysis measures it."""
    raise Unmeasured(f"needs {needs}", "nothing that measures it")


def _pattern(key: str, text: str, target: str) -> PaperClaim:
    direction = "at least one head gives it more than half"
    return PaperClaim(key, PART_1, text, most(target), (), "%", direction)


def _unasked(key: str, place: str, text: str, needs: str) -> PaperClaim:
    return PaperClaim(key, place, text, unmeasured(needs), direction="none can be tested")


def _rank(key: str, text: str, quantity: str, target: str, sign: int) -> PaperClaim:
    side = "above" if sign > 0 else "below"
    words = f"Over all heads, {text}: Spearman’s ρ"
    direction = f"the interval lies {side} 0"
    return PaperClaim(key, PART_2, words, over_heads(quantity, target, sign), (), "1", direction)


PATTERNS = ClaimGroup(
    "patterns",
    "Six patterns (Part 1)",
    "Part 1 shows a head for each of six patterns. It says of none how many heads have it, so the "
    "lines ask whether any has. The number is that of the head with most of it, and must be "
    "surely above one half for all heads at once.",
    (
        _pattern("next", "1: a head attends to the next word", NEXT),
        _pattern("previous", "2: a head attends to the previous word", PREVIOUS),
        _pattern("identical", "3: a head attends to the same word elsewhere", "same_token"),
        _unasked(
            "related",
            PART_1,
            "3: … and to related words",
            "a lexicon that says which words are related, which no analysis reads",
        ),
        _pattern("other-sentence", "4: a head attends to the other sentence", "other_segment"),
        _unasked(
            "identical-other",
            PART_1,
            "4: … and there to identical or related words",
            "attention to the same word of the other sentence alone; surface has it of both",
        ),
        _unasked(
            "predictive",
            PART_1,
            "5: a head attends to other words that predict a word",
            "what each word adds to the prediction of another, for every pair of words",
        ),
        _pattern("delimiter", "6: a head attends to the delimiter [SEP]", "sep"),
    ),
    (PaperFigure(PAIRS, "surface_by_layer"),),
)
DELIMITERS = ClaimGroup(
    "delimiters",
    "Delimiters: few, fixed neurons (Part 2)",
    "Keys of [SEP] have a signature of a few large neurons, which the queries of all words match.",
    (
        _rank(
            "delimiter-few",
            "more attention to [SEP] goes with fewer neurons",
            "effective",
            "sep",
            -1,
        ),
        _rank(
            "delimiter-fixed",
            "more attention to [SEP] goes with the same neurons at all positions",
            "position_overlap",
            "sep",
            1,
        ),
        PaperClaim(
            "delimiter-head-few",
            PART_2,
            "Neurons that tell [SEP] from other keys, in the head with most attention to it",
            few("sep"),
            (),
            "1",
            f"surely below {QUARTER:g} of the head’s neurons",
        ),
        PaperClaim(
            "delimiter-head-fixed",
            PART_2,
            "Overlap of that head’s 8 largest neurons between two positions",
            same_everywhere("sep"),
            (),
            "1",
            "surely above one half",
        ),
    ),
    (PaperFigure(PAIRS, "neurons"),),
)
BAGS = ClaimGroup(
    "bags",
    "Bag of words: two to four neurons (Part 2)",
    "Sentence-focused heads spread evenly over the words of their own sentence. Few neurons "
    "dominate, negative where query and key are of different sentences, which a first layer can "
    "know from segment embeddings.",
    (
        PaperClaim(
            "bag",
            PART_2,
            "A head is a bag of words of its own sentence",
            most(BAG),
            (),
            "1",
            "at least one head surely above one half, where 1 is even attention to these words",
        ),
        _rank("bag-few", "more of a bag of words goes with fewer neurons", "effective", BAG, -1),
        _rank(
            "bag-fixed",
            "more of a bag of words goes with the same neurons at all positions",
            "position_overlap",
            BAG,
            1,
        ),
        PaperClaim(
            "bag-head-few",
            PART_2,
            "Neurons that tell the own sentence from the other, in the head that is most a bag",
            few(BAG),
            (),
            "1",
            "surely below 5: two to four",
        ),
        PaperClaim(
            "bag-separates",
            PART_2,
            "In that head, the score of words of the own sentence above those of the other",
            separates(BAG),
            (),
            "1",
            "the interval lies above 0",
        ),
        _unasked(
            "bag-negative",
            PART_2,
            "… and the product of query and key is negative across sentences",
            "the score of words of the other sentence itself; neurons has differences of scores",
        ),
        PaperClaim(
            "bag-source",
            PART_2,
            "In the first layer, what tells the sentences apart: share of segment embeddings",
            source(BAG, "segment"),
            (),
            "%",
            "the interval lies above 50 %",
        ),
    ),
)
NEXT_WORDS = ClaimGroup(
    "next-words",
    "Next word: many, changing neurons (Part 2)",
    "To single out one position of 512 takes many neurons, others at each, fed by position "
    "embeddings.",
    (
        _rank(
            "next-many", "more attention to the next goes with more neurons", "effective", NEXT, 1
        ),
        _rank(
            "next-changing",
            "more attention to the next goes with other neurons at each position",
            "position_overlap",
            NEXT,
            -1,
        ),
        PaperClaim(
            "next-head-many",
            PART_2,
            "Effective neurons of the head with most attention to the next token, less those of "
            "the head with most to [SEP]",
            apart("effective", 1),
            (),
            "1",
            "the interval lies above 0",
        ),
        PaperClaim(
            "next-head-changing",
            PART_2,
            "Overlap between positions of the same two heads, the one less the other",
            apart("position_overlap", -1),
            (),
            "1",
            "the interval lies below 0",
        ),
        _unasked(
            "next-positive",
            PART_2,
            "The product is positive in most neurons for the next word, mixed for others",
            "the share of neurons with a positive product, which no analysis counts",
        ),
        PaperClaim(
            "next-source",
            PART_2,
            "In the first layer, what tells the next token apart: share of position embeddings",
            source(NEXT, "position"),
            (),
            "%",
            "the interval lies above 50 %",
        ),
    ),
    (PaperFigure(PAIRS, "neuron_sources"),),
)
USES = ClaimGroup(
    "uses",
    "Three uses of the tool (ACL 2019)",
    "The paper on the tool shows one or two inputs of GPT-2 for each.",
    (
        _unasked(
            "bias",
            TOOL,
            "Attention of pronouns to occupations shows gender bias",
            "sentence pairs that differ in gender alone, which no analysis reads",
        ),
        _unasked(
            "locating",
            TOOL,
            "Single heads have a recurring pattern, such as coreference",
            "mentions: headscope reproduce clark2019, Table 2, asks it",
        ),
        _unasked(
            "distance",
            TOOL,
            "In a head of GPT-2 some neurons let attention decay with distance",
            "products of query and key by distance, which no analysis sums",
        ),
    ),
)


PAPER = Paper(
    "vig2019",
    "Deconstructing BERT, and A Multiscale Visualization of Attention in the Transformer Model",
    SOURCES[VIG],
    BERT_UNCASED.id,
    (BERT_UNCASED,),
    (PATTERNS, DELIMITERS, BAGS, NEXT_WORDS, USES),
    doubt="no number is published: he describes single heads by eye; directions are ours",
    makers={PAIRS: sentence_pairs},
)
