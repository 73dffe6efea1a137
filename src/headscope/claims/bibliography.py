"""The one bibliography: SOURCES, short citations of `terms` → papers."""

from dataclasses import dataclass

from headscope.claims import terms


@dataclass(frozen=True, slots=True)
class Source:
    """One paper; `link` is the address of its page, shown but never loaded.

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


SOURCES = {
    terms.CLARK: Source(
        "Kevin Clark, Urvashi Khandelwal, Omer Levy, Christopher D. Manning",
        2019,
        "What Does BERT Look At? An Analysis of BERT’s Attention",
        "BlackboxNLP",
        "https://aclanthology.org/W19-4828",
    ),
    terms.KOBAYASHI20: Source(
        "Goro Kobayashi, Tatsuki Kuribayashi, Sho Yokoi, Kentaro Inui",
        2020,
        "Attention is Not Only a Weight: Analyzing Transformers with Vector Norms",
        "EMNLP",
        "https://aclanthology.org/2020.emnlp-main.574",
    ),
    terms.KOBAYASHI21: Source(
        "Goro Kobayashi, Tatsuki Kuribayashi, Sho Yokoi, Kentaro Inui",
        2021,
        "Incorporating Residual and Normalization Layers into Analysis of Masked Language Models",
        "EMNLP",
        "https://aclanthology.org/2021.emnlp-main.373",
    ),
    terms.KOVALEVA: Source(
        "Olga Kovaleva, Alexey Romanov, Anna Rogers, Anna Rumshisky",
        2019,
        "Revealing the Dark Secrets of BERT",
        "EMNLP-IJCNLP",
        "https://aclanthology.org/D19-1445",
    ),
    terms.ABNAR: Source(
        "Samira Abnar, Willem Zuidema",
        2020,
        "Quantifying Attention Flow in Transformers",
        "ACL",
        "https://aclanthology.org/2020.acl-main.385",
    ),
    terms.MODARRESSI: Source(
        "Ali Modarressi, Mohsen Fayyaz, Yadollah Yaghoobzadeh, Mohammad Taher Pilehvar",
        2022,
        "GlobEnc: Quantifying Global Token Attribution by Incorporating the "
        "Whole Encoder Layer in Transformers",
        "NAACL",
        "https://aclanthology.org/2022.naacl-main.19",
    ),
    terms.FERRANDO: Source(
        "Javier Ferrando, Gerard I. Gállego, Marta R. Costa-jussà",
        2022,
        "Measuring the Mixing of Contextual Information in the Transformer",
        "EMNLP",
        "https://aclanthology.org/2022.emnlp-main.595",
    ),
    terms.MOHEBBI: Source(
        "Hosein Mohebbi, Willem Zuidema, Grzegorz Chrupała, Afra Alishahi",
        2023,
        "Quantifying Context Mixing in Transformers",
        "EACL",
        "https://aclanthology.org/2023.eacl-main.245",
    ),
    terms.VIG: Source(
        "Jesse Vig",
        2019,
        "A Multiscale Visualization of Attention in the Transformer Model",
        "ACL, System Demonstrations; and the article Deconstructing BERT, Part 2",
        "https://aclanthology.org/P19-3007",
    ),
    terms.ROUSSEEUW: Source(
        "Peter J. Rousseeuw",
        1987,
        "Silhouettes: a graphical aid to the interpretation and validation of cluster analysis",
        "Journal of Computational and Applied Mathematics",
        "https://doi.org/10.1016/0377-0427(87)90125-7",
        "article",
        20,
    ),
    terms.KAUFMAN: Source(
        "Leonard Kaufman, Peter J. Rousseeuw",
        1990,
        "Finding Groups in Data: An Introduction to Cluster Analysis",
        "Wiley",
        "https://doi.org/10.1002/9780470316801",
        "book",
    ),
    terms.HENNIG07: Source(
        "Christian Hennig",
        2007,
        "Cluster-wise assessment of cluster stability",
        "Computational Statistics & Data Analysis",
        "https://doi.org/10.1016/j.csda.2006.11.025",
        "article",
        52,
    ),
    terms.HENNIG15: Source(
        "Christian Hennig, Chien-Ju Lin",
        2015,
        "Flexible parametric bootstrap for testing homogeneity against clustering and assessing "
        "the number of clusters",
        "Statistics and Computing",
        "https://doi.org/10.1007/s11222-015-9566-5",
        "article",
        25,
    ),
    terms.MICHEL: Source(
        "Paul Michel, Omer Levy, Graham Neubig",
        2019,
        "Are Sixteen Heads Really Better than One?",
        "NeurIPS",
        "https://arxiv.org/abs/1905.10650",
    ),
    terms.HEWITT: Source(
        "John Hewitt, Christopher D. Manning",
        2019,
        "A Structural Probe for Finding Syntax in Word Representations",
        "NAACL",
        "https://aclanthology.org/N19-1419",
    ),
    terms.HAO: Source(
        "Yaru Hao, Li Dong, Furu Wei, Ke Xu",
        2021,
        "Self-Attention Attribution: Interpreting Information Interactions Inside Transformer",
        "AAAI",
        "https://arxiv.org/abs/2004.11207",
    ),
    terms.MCNEMAR: Source(
        "Quinn McNemar",
        1947,
        "Note on the sampling error of the difference between correlated proportions or "
        "percentages",
        "Psychometrika",
        "https://doi.org/10.1007/BF02295996",
        "article",
        12,
    ),
    terms.BENJAMINI: Source(
        "Yoav Benjamini, Yosef Hochberg",
        1995,
        "Controlling the False Discovery Rate: A Practical and Powerful Approach to Multiple "
        "Testing",
        "Journal of the Royal Statistical Society B",
        "https://doi.org/10.1111/j.2517-6161.1995.tb02031.x",
        "article",
        57,
    ),
    terms.XIAO: Source(
        "Guangxuan Xiao, Yuandong Tian, Beidi Chen, Song Han, Mike Lewis",
        2024,
        "Efficient Streaming Language Models with Attention Sinks",
        "ICLR",
        "https://arxiv.org/abs/2309.17453",
    ),
    terms.XIAO25: Source(
        "Guangxuan Xiao, Jiaming Tang, Jingwei Zuo, Junxian Guo, Shang Yang, Haotian "
        "Tang, Yao Fu, Song Han",
        2025,
        "DuoAttention: Efficient Long-Context LLM Inference with Retrieval and Streaming Heads",
        "ICLR",
        "https://arxiv.org/abs/2410.10819",
    ),
    terms.GU: Source(
        "Xiangming Gu, Tianyu Pang, Chao Du, Qian Liu, Fengzhuo Zhang, Cunxiao Du, Ye Wang, "
        "Min Lin",
        2025,
        "When Attention Sink Emerges in Language Models: An Empirical View",
        "ICLR",
        "https://arxiv.org/abs/2410.10781",
    ),
    terms.SUN: Source(
        "Mingjie Sun, Xinlei Chen, J. Zico Kolter, Zhuang Liu",
        2024,
        "Massive Activations in Large Language Models",
        "COLM",
        "https://arxiv.org/abs/2402.17762",
    ),
    terms.ELHAGE: Source(
        "Nelson Elhage, Neel Nanda, Catherine Olsson, and others",
        2021,
        "A Mathematical Framework for Transformer Circuits",
        "Transformer Circuits Thread",
        "https://transformer-circuits.pub/2021/framework/index.html",
        "misc",
    ),
    terms.OLSSON: Source(
        "Catherine Olsson, Nelson Elhage, Neel Nanda, and others",
        2022,
        "In-context Learning and Induction Heads",
        "Transformer Circuits Thread",
        "https://arxiv.org/abs/2209.11895",
        "misc",
    ),
    terms.WANG: Source(
        "Kevin Wang, Alexandre Variengien, Arthur Conmy, Buck Shlegeris, Jacob Steinhardt",
        2023,
        "Interpretability in the Wild: a Circuit for Indirect Object Identification in GPT-2 Small",
        "ICLR",
        "https://arxiv.org/abs/2211.00593",
    ),
    terms.NANDA: Source(
        "Neel Nanda",
        2023,
        "Attribution Patching: Activation Patching At Industrial Scale",
        "",
        "https://www.neelnanda.io/mechanistic-interpretability/attribution-patching",
        "misc",
    ),
    terms.HANNA: Source(
        "Michael Hanna, Sandro Pezzelle, Yonatan Belinkov",
        2024,
        "Have Faith in Faithfulness: Going Beyond Circuit Overlap When Finding Model Mechanisms",
        "COLM",
        "https://arxiv.org/abs/2403.17806",
    ),
    terms.MUELLER: Source(
        "Aaron Mueller, Atticus Geiger, Sarah Wiegreffe, and others",
        2025,
        "MIB: A Mechanistic Interpretability Benchmark",
        "ICML",
        "https://arxiv.org/abs/2504.13151",
    ),
    terms.GOULD: Source(
        "Rhys Gould, Euan Ong, George Ogden, Arthur Conmy",
        2024,
        "Successor Heads: Recurring, Interpretable Attention Heads In The Wild",
        "ICLR",
        "https://arxiv.org/abs/2312.09230",
    ),
    terms.ELHELO: Source(
        "Amit Elhelo, Mor Geva",
        2025,
        "Inferring Functionality of Attention Heads from their Parameters",
        "ACL",
        "https://arxiv.org/abs/2412.11965",
    ),
    terms.WU: Source(
        "Wenhao Wu, Yizhong Wang, Guangxuan Xiao, Hao Peng, Yao Fu",
        2024,
        "Retrieval Head Mechanistically Explains Long-Context Factuality",
        "arXiv",
        "https://arxiv.org/abs/2404.15574",
        "misc",
    ),
    terms.ZHANG: Source(
        "Wuwei Zhang, Fangcong Yin, Howard Yen, Danqi Chen, Xi Ye",
        2025,
        "Query-Focused Retrieval Heads Improve Long-Context Reasoning and Re-ranking",
        "EMNLP",
        "https://arxiv.org/abs/2506.09944",
    ),
    terms.GEMA: Source(
        "Aryo Pradipta Gema, Beatrice Alex, Pasquale Minervini",
        2026,
        "Logit-Contribution Scoring Identifies Non-Literal Retrieval Heads",
        "arXiv",
        "https://arxiv.org/abs/2607.01002",
        "misc",
    ),
    terms.YAMAGIWA: Source(
        "Hiroaki Yamagiwa, Yusuke Takase, Hidetoshi Shimodaira",
        2026,
        "Measuring Affinity between Attention-Head Weight Subspaces via the Projection Kernel",
        "arXiv",
        "https://arxiv.org/abs/2601.10266",
        "misc",
    ),
    terms.HAYES: Source(
        "Amiri Hayes, Belinda Li, Jacob Andreas",
        2026,
        "Explaining Attention with Program Synthesis",
        "arXiv",
        "https://arxiv.org/abs/2606.19317",
        "misc",
    ),
    terms.HUBERT: Source(
        "Lawrence Hubert, Phipps Arabie",
        1985,
        "Comparing partitions",
        "Journal of Classification",
        "https://doi.org/10.1007/BF01908075",
        "article",
        2,
    ),
    terms.KRUSKAL: Source(
        "Joseph B. Kruskal",
        1964,
        "Multidimensional scaling by optimizing goodness of fit to a nonmetric hypothesis",
        "Psychometrika",
        "https://doi.org/10.1007/BF02289565",
        "article",
        29,
    ),
    terms.TODD: Source(
        "Eric Todd, Millicent L. Li, Arnab Sen Sharma, Aaron Mueller, Byron C. Wallace, David Bau",
        2024,
        "Function Vectors in Large Language Models",
        "ICLR",
        "https://arxiv.org/abs/2310.15213",
    ),
    terms.COHEN: Source(
        "Jacob Cohen",
        1988,
        "Statistical Power Analysis for the Behavioral Sciences, second edition",
        "Lawrence Erlbaum",
        "https://doi.org/10.4324/9780203771587",
        "book",
    ),
}
