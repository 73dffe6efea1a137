"""What half precision costs: how far numbers of a run were seen to be from those in float32.

Measured on the CPU with the demo model and e5-small, on 160 sentences of English EWT and 48 windows
of WikiText-2 (bfloat16: 1.5e-2 nats there, 1.8e-2 in an earlier run); words on 30 documents of EWT
(10,299 words, `benchmarks.precision`). Another model may err more: compare a short run with
`--dtype float32`.
"""

# dtype -> at most: nats in the mean entropy of a head, and of one token's attention; the share of
# words by which those differ of which a head finds the syntactic head (20 and 103 of 10,299)
HALF = {"bfloat16": (1.8e-2, 1.1e-1, 2e-3), "float16": (1.4e-3, 1.2e-2, 1e-2)}


def precision_of(dtype: str) -> dict[str, float]:
    """The measured errors, for a manifest: entropies of a head and of a token, words whose head is
    found; {} of wide ones.
    """
    names = ("head_entropy_error_nats", "token_entropy_error_nats", "found_words_error")
    return dict(zip(names, HALF[dtype], strict=True)) if dtype in HALF else {}


def precision_in_words(dtype: str) -> str:
    """`bfloat16: a head’s mean entropy was seen to err by …`; "" of float32 and wider."""
    if dtype not in HALF:
        return ""
    head, token, words = HALF[dtype]
    return (
        f"{dtype}: a head’s mean entropy was seen to err by up to {head:g} nats, that of one token "
        f"by {token:g}; of two nearly equal weights the other may be the largest: how many words’ "
        f"syntactic head a head finds was off by up to {100 * words:g} % of them"
    )
