"""What half precision costs: how far numbers of a run were seen to be from those in float32.

Measured on the CPU with the demo model and e5-small, on 160 sentences of English EWT and 48 windows
of WikiText-2 (bfloat16: 1.5e-2 nats there, 1.8e-2 in an earlier run). Another model may err more:
compare a short run with `--dtype float32`.
"""

from __future__ import annotations

# dtype -> nats in the mean entropy of a head at most, and of one token's attention at most
HALF = {"bfloat16": (1.8e-2, 1.1e-1), "float16": (1.4e-3, 1.2e-2)}


def precision_of(dtype: str) -> dict[str, float]:
    """The measured errors, for a manifest: entropies of a head and of a token; {} of wide ones."""
    names = ("head_entropy_error_nats", "token_entropy_error_nats")
    return dict(zip(names, HALF[dtype], strict=True)) if dtype in HALF else {}


def precision_in_words(dtype: str) -> str:
    """`bfloat16: a head’s mean entropy was seen to err by …`; "" of float32 and wider."""
    if dtype not in HALF:
        return ""
    head, token = HALF[dtype]
    return (
        f"{dtype}: a head’s mean entropy was seen to err by up to {head:g} nats, that of one token "
        f"by {token:g}; of two nearly equal weights the other may be the largest"
    )
