"""The question neurons: which neurons of query and key make a head's scores?"""

from headscope.claims.plan import PicturePlan
from headscope.claims.question import Question
from headscope.claims.terms import OURS, VIG, Term

QUESTION = Question(
    name="neurons",
    package=__name__,
    slow=True,
    title="Neurons",
    place=60,
    summary="how many neurons of queries and keys make the scores, and which",
    source="Vig 2019",
    needs=frozenset({"attention", "queries_keys"}),
    measure="measure:Neurons",
    figures=(
        PicturePlan(
            name="neurons",
            title="How many neurons make a score",
            panels="figure:panels",
            caption="figure:caption",
            text="A score is a sum over the neurons of query and key. Looking at single heads, Vig "
            "(2019) found that heads for [SEP] use few neurons, the same at every position, and "
            "next-word heads many, others at each. If that holds for all heads, the former stand "
            "high and left in (c), and the latter low and right.",
            finding="figure:finding",
        ),
        PicturePlan(
            id="neuron-sources",
            name="neuron_sources",
            title="Where first-layer scores come from",
            columns=3,
            panels="figure:source_panels",
            caption="figure:source_caption",
            text="Before any layer has mixed them, a token’s vector is the sum of its word, its "
            "position and its segment. A head that finds the next word must read positions; one "
            "that keeps to a segment may read segments, or positions too.",
        ),
    ),
    terms={
        "neuron": Term(
            "neuron",
            "One of the numbers of a head’s query and key vectors; with its "
            "partner it adds s · q · k to the score, s being the model’s scaling.",
            VIG,
        ),
        "effective": Term(
            "effective number of neurons",
            "How many neurons make a head choose the key that it attends to most: (Σ|c|)² / Σc² "
            "over what each adds to that key’s score, less the mean over the keys seen; 1 for a "
            "single neuron, all of them when they add the same.",
            f"{VIG}; the measure is ours",
        ),
        "top_share": Term(
            "share of the largest neurons",
            "How much of Σ|c| the 1, 4 or 16 neurons with the largest |c| make at each position.",
            f"{VIG}; the measure is ours",
        ),
        "position_overlap": Term(
            "overlap between positions",
            "Whether the same neurons matter everywhere: the Jaccard overlap of the 8 largest at "
            "two positions of an input, mean over all pairs; 1 when they are the same.",
            f"{VIG}; the measure is ours",
        ),
        "chance_overlap": Term(
            "chance overlap",
            "The overlap of two sets of 8 neurons drawn at random, the reference for the overlap "
            "between positions.",
            OURS,
        ),
        "neuron_importance": Term(
            "importance of a neuron",
            "Its mean share of Σ|c|; the shares of a head’s neurons add up to 1.",
            f"{VIG}; the measure is ours",
        ),
        "separation": Term(
            "separation",
            "How much more a neuron adds to the scores of keys of a kind ([SEP], the same segment, "
            "the next token, words of the own sentence) than to those of the other keys; for words "
            "of the own sentence, to those of the words of other sentences.",
            f"{VIG}; the measure is ours",
        ),
        "same_segment": Term(
            "same segment",
            "Keys of the segment that the query itself is in, special tokens included.",
            VIG,
        ),
        "bag_of_words": Term(
            "bag of words",
            "What the attention of a word has in common with even attention over the words of its "
            "own sentence, Σ min(α, 1/n) over its n words, less the same of the other sentence, "
            "both sentences counting the same: 1 if it goes evenly to all of them and nowhere "
            "else, 0 if it goes everywhere alike, near 0 if to one token; pairs of sentences only.",
            f"{VIG}; the measure is ours",
        ),
        "own_segment_overlap": Term(
            "overlap of the neurons of the own sentence",
            "Whether the same neurons tell words of the own sentence from those of the other "
            "everywhere: the Jaccard overlap of the 8 largest at two positions of an input.",
            f"{VIG}; the measure is ours",
        ),
        "embedding_separation": Term(
            "sources of first-layer scores",
            "What word, position and segment embeddings bring to a first-layer score: exact, "
            "because layer normalisation is linear once its scale is given.",
            OURS,
        ),
    },
    labels={
        "effective": "effective number of neurons",
        "top_share": "share of the {choice} largest neurons",
        "position_overlap": "overlap of neurons between positions",
        "relative_score": "score of the attended key above the mean key",
        "bag_of_words": "bag of words of the own sentence",
        "own_segment_overlap": "overlap of neurons of the own sentence",
        "separation_score": "score above other keys, {choice}",
        "separation_effective": "neurons that tell from other keys, {choice}",
    },
    controlled=True,
)
