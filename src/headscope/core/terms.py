"""Terms: what a word of the data means; those of attention at large, and the papers they cite.

SOURCES  the short citation → the paper: the one bibliography
"""

from dataclasses import dataclass

from headscope.core.head_names import counted_words, first


@dataclass(frozen=True, slots=True)
class Term:
    """One entry of the dictionary: `name` in running text, `meaning` in one sentence, `source`."""

    name: str
    meaning: str
    source: str = ""


def terms_of(source: str, words: dict[str, tuple[str, str]]) -> dict[str, Term]:
    """Entries of one source, from each word's name and meaning."""
    return {word: Term(*entry, source) for word, entry in words.items()}


@dataclass(frozen=True, slots=True)
class Source:
    """One paper; `link` leads to its page and is shown, never loaded.

    authors  as they sign, commas between
    venue    proceedings, publisher or site; of an `article` the journal, which has a volume
    kind     of its BibTeX entry
    """

    authors: str
    year: int
    title: str
    venue: str
    link: str
    kind: str = "inproceedings"
    volume: int = 0

    @property
    def reference(self) -> str:
        """The full reference, in words."""
        parts = (self.authors, str(self.year), self.title, f"{self.venue} {self.volume or ''}")
        return " ".join(p if p[-1] == "?" else f"{p}." for p in map(str.strip, parts) if p)


CLARK = "Clark et al. 2019"
KOBAYASHI20 = "Kobayashi et al. 2020"
KOBAYASHI21 = "Kobayashi et al. 2021"
KOVALEVA = "Kovaleva et al. 2019"
VIG = "Vig 2019"
ROUSSEEUW = "Rousseeuw 1987"
KAUFMAN = "Kaufman and Rousseeuw 1990"
HENNIG07 = "Hennig 2007"
HENNIG15 = "Hennig and Lin 2015"
HUBERT = "Hubert and Arabie 1985"
KRUSKAL = "Kruskal 1964"
ABNAR = "Abnar & Zuidema 2020"
MODARRESSI = "Modarressi et al. 2022"
FERRANDO = "Ferrando et al. 2022"
MOHEBBI = "Mohebbi et al. 2023"
MICHEL = "Michel et al. 2019"
HAO = "Hao et al. 2021"
MCNEMAR = "McNemar 1947"
HEWITT = "Hewitt and Manning 2019"
BENJAMINI = "Benjamini and Hochberg 1995"
XIAO = "Xiao et al. 2024"
XIAO25 = "Xiao et al. 2025"
GU = "Gu et al. 2025"
SUN = "Sun et al. 2024"
ELHAGE = "Elhage et al. 2021"
OLSSON = "Olsson et al. 2022"
WANG = "Wang et al. 2023"
NANDA = "Nanda 2023"
GOULD = "Gould et al. 2024"
WU = "Wu et al. 2024"
ZHANG = "Zhang et al. 2025"
GEMA = "Gema et al. 2026"
TODD = "Todd et al. 2024"
COHEN = "Cohen 1988"
OURS = "headscope"

SOURCES = {
    CLARK: Source(
        "Kevin Clark, Urvashi Khandelwal, Omer Levy, Christopher D. Manning",
        2019,
        "What Does BERT Look At? An Analysis of BERT’s Attention",
        "BlackboxNLP",
        "https://aclanthology.org/W19-4828",
    ),
    KOBAYASHI20: Source(
        "Goro Kobayashi, Tatsuki Kuribayashi, Sho Yokoi, Kentaro Inui",
        2020,
        "Attention is Not Only a Weight: Analyzing Transformers with Vector Norms",
        "EMNLP",
        "https://aclanthology.org/2020.emnlp-main.574",
    ),
    KOBAYASHI21: Source(
        "Goro Kobayashi, Tatsuki Kuribayashi, Sho Yokoi, Kentaro Inui",
        2021,
        "Incorporating Residual and Normalization Layers into Analysis of Masked Language Models",
        "EMNLP",
        "https://aclanthology.org/2021.emnlp-main.373",
    ),
    KOVALEVA: Source(
        "Olga Kovaleva, Alexey Romanov, Anna Rogers, Anna Rumshisky",
        2019,
        "Revealing the Dark Secrets of BERT",
        "EMNLP-IJCNLP",
        "https://aclanthology.org/D19-1445",
    ),
    ABNAR: Source(
        "Samira Abnar, Willem Zuidema",
        2020,
        "Quantifying Attention Flow in Transformers",
        "ACL",
        "https://aclanthology.org/2020.acl-main.385",
    ),
    MODARRESSI: Source(
        "Ali Modarressi, Mohsen Fayyaz, Yadollah Yaghoobzadeh, Mohammad Taher Pilehvar",
        2022,
        "GlobEnc: Quantifying Global Token Attribution by Incorporating the "
        "Whole Encoder Layer in Transformers",
        "NAACL",
        "https://aclanthology.org/2022.naacl-main.19",
    ),
    FERRANDO: Source(
        "Javier Ferrando, Gerard I. Gállego, Marta R. Costa-jussà",
        2022,
        "Measuring the Mixing of Contextual Information in the Transformer",
        "EMNLP",
        "https://aclanthology.org/2022.emnlp-main.595",
    ),
    MOHEBBI: Source(
        "Hosein Mohebbi, Willem Zuidema, Grzegorz Chrupała, Afra Alishahi",
        2023,
        "Quantifying Context Mixing in Transformers",
        "EACL",
        "https://aclanthology.org/2023.eacl-main.245",
    ),
    VIG: Source(
        "Jesse Vig",
        2019,
        "A Multiscale Visualization of Attention in the Transformer Model",
        "ACL, System Demonstrations; and the article Deconstructing BERT, Part 2",
        "https://aclanthology.org/P19-3007",
    ),
    ROUSSEEUW: Source(
        "Peter J. Rousseeuw",
        1987,
        "Silhouettes: a graphical aid to the interpretation and validation of cluster analysis",
        "Journal of Computational and Applied Mathematics",
        "https://doi.org/10.1016/0377-0427(87)90125-7",
        "article",
        20,
    ),
    KAUFMAN: Source(
        "Leonard Kaufman, Peter J. Rousseeuw",
        1990,
        "Finding Groups in Data: An Introduction to Cluster Analysis",
        "Wiley",
        "https://doi.org/10.1002/9780470316801",
        "book",
    ),
    HENNIG07: Source(
        "Christian Hennig",
        2007,
        "Cluster-wise assessment of cluster stability",
        "Computational Statistics & Data Analysis",
        "https://doi.org/10.1016/j.csda.2006.11.025",
        "article",
        52,
    ),
    HENNIG15: Source(
        "Christian Hennig, Chien-Ju Lin",
        2015,
        "Flexible parametric bootstrap for "
        "testing homogeneity against clustering and assessing the number of clusters",
        "Statistics and Computing",
        "https://doi.org/10.1007/s11222-015-9566-5",
        "article",
        25,
    ),
    MICHEL: Source(
        "Paul Michel, Omer Levy, Graham Neubig",
        2019,
        "Are Sixteen Heads Really Better than One?",
        "NeurIPS",
        "https://arxiv.org/abs/1905.10650",
    ),
    HEWITT: Source(
        "John Hewitt, Christopher D. Manning",
        2019,
        "A Structural Probe for Finding Syntax in Word Representations",
        "NAACL",
        "https://aclanthology.org/N19-1419",
    ),
    HAO: Source(
        "Yaru Hao, Li Dong, Furu Wei, Ke Xu",
        2021,
        "Self-Attention Attribution: Interpreting Information Interactions Inside Transformer",
        "AAAI",
        "https://arxiv.org/abs/2004.11207",
    ),
    MCNEMAR: Source(
        "Quinn McNemar",
        1947,
        "Note on the sampling error of the difference between "
        "correlated proportions or percentages",
        "Psychometrika",
        "https://doi.org/10.1007/BF02295996",
        "article",
        12,
    ),
    BENJAMINI: Source(
        "Yoav Benjamini, Yosef Hochberg",
        1995,
        "Controlling the False Discovery "
        "Rate: A Practical and Powerful Approach to Multiple Testing",
        "Journal of the Royal Statistical Society B",
        "https://doi.org/10.1111/j.2517-6161.1995.tb02031.x",
        "article",
        57,
    ),
    XIAO: Source(
        "Guangxuan Xiao, Yuandong Tian, Beidi Chen, Song Han, Mike Lewis",
        2024,
        "Efficient Streaming Language Models with Attention Sinks",
        "ICLR",
        "https://arxiv.org/abs/2309.17453",
    ),
    XIAO25: Source(
        "Guangxuan Xiao, Jiaming Tang, Jingwei Zuo, Junxian Guo, Shang Yang, Haotian "
        "Tang, Yao Fu, Song Han",
        2025,
        "DuoAttention: Efficient Long-Context LLM Inference with Retrieval and Streaming Heads",
        "ICLR",
        "https://arxiv.org/abs/2410.10819",
    ),
    GU: Source(
        "Xiangming Gu, Tianyu Pang, Chao Du, Qian Liu, Fengzhuo Zhang, Cunxiao Du, Ye Wang, "
        "Min Lin",
        2025,
        "When Attention Sink Emerges in Language Models: An Empirical View",
        "ICLR",
        "https://arxiv.org/abs/2410.10781",
    ),
    SUN: Source(
        "Mingjie Sun, Xinlei Chen, J. Zico Kolter, Zhuang Liu",
        2024,
        "Massive Activations in Large Language Models",
        "COLM",
        "https://arxiv.org/abs/2402.17762",
    ),
    ELHAGE: Source(
        "Nelson Elhage, Neel Nanda, Catherine Olsson, and others",
        2021,
        "A Mathematical Framework for Transformer Circuits",
        "Transformer Circuits Thread",
        "https://transformer-circuits.pub/2021/framework/index.html",
        "misc",
    ),
    OLSSON: Source(
        "Catherine Olsson, Nelson Elhage, Neel Nanda, and others",
        2022,
        "In-context Learning and Induction Heads",
        "Transformer Circuits Thread",
        "https://arxiv.org/abs/2209.11895",
        "misc",
    ),
    WANG: Source(
        "Kevin Wang, Alexandre Variengien, Arthur Conmy, Buck Shlegeris, Jacob Steinhardt",
        2023,
        "Interpretability in the Wild: a Circuit for Indirect Object Identification in GPT-2 Small",
        "ICLR",
        "https://arxiv.org/abs/2211.00593",
    ),
    NANDA: Source(
        "Neel Nanda",
        2023,
        "Attribution Patching: Activation Patching At Industrial Scale",
        "",
        "https://www.neelnanda.io/mechanistic-interpretability/attribution-patching",
        "misc",
    ),
    GOULD: Source(
        "Rhys Gould, Euan Ong, George Ogden, Arthur Conmy",
        2024,
        "Successor Heads: Recurring, Interpretable Attention Heads In The Wild",
        "ICLR",
        "https://arxiv.org/abs/2312.09230",
    ),
    WU: Source(
        "Wenhao Wu, Yizhong Wang, Guangxuan Xiao, Hao Peng, Yao Fu",
        2024,
        "Retrieval Head Mechanistically Explains Long-Context Factuality",
        "arXiv",
        "https://arxiv.org/abs/2404.15574",
        "misc",
    ),
    ZHANG: Source(
        "Wuwei Zhang, Fangcong Yin, Howard Yen, Danqi Chen, Xi Ye",
        2025,
        "Query-Focused Retrieval Heads Improve Long-Context Reasoning and Re-ranking",
        "EMNLP",
        "https://arxiv.org/abs/2506.09944",
    ),
    GEMA: Source(
        "Aryo Pradipta Gema, Beatrice Alex, Pasquale Minervini",
        2026,
        "Logit-Contribution Scoring Identifies Non-Literal Retrieval Heads",
        "arXiv",
        "https://arxiv.org/abs/2607.01002",
        "misc",
    ),
    HUBERT: Source(
        "Lawrence Hubert, Phipps Arabie",
        1985,
        "Comparing partitions",
        "Journal of Classification",
        "https://doi.org/10.1007/BF01908075",
        "article",
        2,
    ),
    KRUSKAL: Source(
        "Joseph B. Kruskal",
        1964,
        "Multidimensional scaling by optimizing goodness of fit to a nonmetric hypothesis",
        "Psychometrika",
        "https://doi.org/10.1007/BF02289565",
        "article",
        29,
    ),
    TODD: Source(
        "Eric Todd, Millicent L. Li, Arnab Sen Sharma, Aaron Mueller, Byron C. Wallace, David Bau",
        2024,
        "Function Vectors in Large Language Models",
        "ICLR",
        "https://arxiv.org/abs/2310.15213",
    ),
    COHEN: Source(
        "Jacob Cohen",
        1988,
        "Statistical Power Analysis for the Behavioral Sciences, second edition",
        "Lawrence Erlbaum",
        "https://doi.org/10.4324/9780203771587",
        "book",
    ),
}


def head_term() -> Term:
    """The entry of the word head, whose example is counted as names are."""
    layer, head = 7 + first(), 9 + first()
    return Term(
        "head",
        f"One of the parallel attention units of a layer; L{layer}·H{head} is head {head} "
        f"of layer {layer}, both counted {counted_words()} (data files count from 0).",
        CLARK,
    )


# What every result speaks of; each question explains its own words beside itself.
TERMS = {
    "attention": Term(
        "attention",
        "The share of a token’s attention that goes to another token: "
        "the weight α after the softmax, so that every row sums to 1.",
        CLARK,
    ),
    "first": Term(
        "first token",
        "Attention to the token at the first position; decoders without a "
        "[CLS] token often rest their attention there.",
        OURS,
    ),
    "cls": Term(
        "[CLS]",
        "Attention to the classification token that opens the input, whatever the "
        "tokenizer calls it.",
        f"{CLARK}, §3.2",
    ),
    "sep": Term(
        "[SEP]",
        "Attention to the separator tokens that end each segment, whatever the "
        "tokenizer calls them, summed over all of them.",
        f"{CLARK}, §3.2",
    ),
    "punctuation": Term(
        "punctuation", "Attention to full stops and commas, summed.", f"{CLARK}, §3.2"
    ),
    "other": Term(
        "other tokens",
        "Every token that is none of [CLS], [SEP], full stop and comma.",
        KOBAYASHI20,
    ),
    "interval": Term(
        "[low, high]",
        "The 95 % interval of an estimate: of 100 corpora like this "
        "one, 95 give an interval that holds the true value. It comes from leaving out one "
        "document after another, or one head where what is said is of heads in general. In a label "
        "of what a head knows of words it is longer, so as to hold for all heads at once. None is "
        "shown where fewer than 5 documents, or heads, have a part in the number.",
        OURS,
    ),
    "role": Term(
        "what a head looks at",
        "What a colour and a sign stand for, by the lower end of "
        "the interval: next or previous token above 0.5; broad when entropy is above 0.9 of "
        "uniform; [CLS], [SEP] or punctuation above 0.6; else other. Labels say more.",
        f"{CLARK}, §6; the relative entropy threshold is ours (theirs: 3.8 nats)",
    ),
    "effect": Term(
        "effect",
        "How far a head stands above what is ordinary, of the way it could "
        "go: (lower end of its interval − reference) / (ceiling − reference), where the reference "
        "is the larger of uniform attention and the mean head; for what a head knows of language, "
        "the baseline, or what chance gives.",
        OURS,
    ),
    "surprise": Term(
        "surprise",
        "How telling a label is, in bits: log2 of all heads over those "
        "with a label of its kind, plus the relative entropy of the lower end of its interval and "
        "its reference, or the highest head without training where that is higher.",
        OURS,
    ),
    "label": Term(
        "label",
        "What a head is, by a rule with a threshold: the lower end of the 95 % "
        "interval must lie above it; the strongest label comes first, by effect, and a head that "
        "passes no rule is unlabelled.",
        OURS,
    ),
    "rank": Term(
        "rank",
        "The place of a head among all heads by one number, 1 for the largest; "
        "equal heads have the same.",
        OURS,
    ),
}
