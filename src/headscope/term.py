"""What is an entry of the dictionary, and which papers do its entries cite?

SOURCES  the short citation → the full reference
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Term:
    """One entry of the dictionary: `name` in running text, `meaning` in one sentence, `source`."""

    name: str
    meaning: str
    source: str = ""


@dataclass(frozen=True, slots=True)
class Source:
    """One paper: `reference` in words, `link` to its page (shown, never loaded)."""

    reference: str
    link: str


CLARK = "Clark et al. 2019"
KOBAYASHI20 = "Kobayashi et al. 2020"
KOBAYASHI21 = "Kobayashi et al. 2021"
KOVALEVA = "Kovaleva et al. 2019"
VIG = "Vig 2019"
OURS = "headscope"

SOURCES = {
    CLARK: Source(
        "Kevin Clark, Urvashi Khandelwal, Omer Levy, Christopher D. Manning. 2019. What Does BERT "
        "Look At? An Analysis of BERT’s Attention. BlackboxNLP.",
        "https://aclanthology.org/W19-4828",
    ),
    KOBAYASHI20: Source(
        "Goro Kobayashi, Tatsuki Kuribayashi, Sho Yokoi, Kentaro Inui. 2020. Attention is Not Only "
        "a Weight: Analyzing Transformers with Vector Norms. EMNLP.",
        "https://aclanthology.org/2020.emnlp-main.574",
    ),
    KOBAYASHI21: Source(
        "Goro Kobayashi, Tatsuki Kuribayashi, Sho Yokoi, Kentaro Inui. 2021. Incorporating "
        "Residual and Normalization Layers into Analysis of Masked Language Models. EMNLP.",
        "https://aclanthology.org/2021.emnlp-main.373",
    ),
    KOVALEVA: Source(
        "Olga Kovaleva, Alexey Romanov, Anna Rogers, Anna Rumshisky. 2019. Revealing the Dark "
        "Secrets of BERT. EMNLP-IJCNLP.",
        "https://aclanthology.org/D19-1445",
    ),
    VIG: Source(
        "Jesse Vig. 2019. A Multiscale Visualization of Attention in the Transformer Model. ACL, "
        "System Demonstrations; and the article Deconstructing BERT, Part 2.",
        "https://aclanthology.org/P19-3007",
    ),
}
