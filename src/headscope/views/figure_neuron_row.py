"""Work out the scores behind one token's attention weights, and check them against the weights."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headscope.core.accumulators import Bools
from headscope.draw.token_axes import Floats, Sides, check_weights
from headscope.errors import InputError
from headscope.views.figure_page import check_one_map

MOST_KEYS, MOST_NEURONS = 40, 256  # that a page holds
MASKED = 1e-6  # of the largest weight: a key whose score gives more but that has none was masked
CLOSE = 0.02  # weights may be from half precision


@dataclass(frozen=True, slots=True)
class NeuronRow:
    """One token that looks, and the keys that it sees.

    token     that looks; query [neuron] its vector
    keys      [key] tokens; special [key]
    vectors   [key, neuron]; products [key, neuron] query times key
    parts     what is added up, column by column: dot, capped, + bias, score
    score     [key]; weight [key]
    """

    token: str
    query: Floats
    keys: list[str]
    special: Bools
    vectors: Floats
    products: Floats
    parts: dict[str, Floats]
    score: Floats
    weight: Floats
    scaling: float


def neuron_row(
    sides: Sides,
    queries: Floats,
    keys: Floats,
    weights: Floats,
    *,
    query: int,
    scaling: float,
    softcap: float | None,
    bias: Floats | None,
) -> NeuronRow:
    """See `attention_neurons`, whose options these are; raises InputError as it says."""
    check_one_map(weights)
    check_weights(sides, weights, unit="probability")
    _check_vectors(queries, keys, weights.shape, bias)
    if not 0 <= query < len(weights):
        raise InputError(f"query is {query}; wanted the place of a token, 0 to {len(weights) - 1}")
    q = np.asarray(queries[query], dtype=np.float64)  # [neuron]
    products = q * np.asarray(keys, dtype=np.float64)  # [key, neuron]
    parts = _parts(products, scaling=scaling, softcap=softcap, bias=bias, query=query)
    score = list(parts.values())[-1]
    weight = np.asarray(weights[query], dtype=np.float64)
    seen = _seen(score, weight)
    _check_softmax(score[seen], weight[seen])
    if len(seen) > MOST_KEYS:
        raise InputError(
            f"found {len(seen)} keys that token {query} sees; a page holds {MOST_KEYS}: shorten "
            "the text, or draw a map of the head"
        )
    return NeuronRow(
        token=sides.queries[query],
        query=q,
        keys=[sides.keys[key] for key in seen.tolist()],
        special=sides.key_special[seen],
        vectors=np.asarray(keys, dtype=np.float64)[seen],
        products=products[seen],
        parts={part: values[seen] for part, values in parts.items()},
        score=score[seen],
        weight=weight[seen],
        scaling=scaling,
    )


def scaling_words(scaling: float) -> str:
    """` ÷ √64`, ` ÷ 8`, ` × 0.3`, or nothing for 1."""
    if scaling == 1:
        return ""
    whole, square = round(1 / scaling), round(1 / scaling**2)
    if abs(whole * scaling - 1) < 1e-6:
        return f" ÷ {whole}"
    return f" ÷ √{square}" if abs(square * scaling**2 - 1) < 1e-5 else f" × {scaling:.3g}"


def _parts(
    products: Floats, *, scaling: float, softcap: float | None, bias: Floats | None, query: int
) -> dict[str, Floats]:
    """The columns from q·k to the score, which is the last one."""
    score = scaling * products.sum(axis=1)  # [key]
    columns = {"dot": score}
    if softcap is not None:
        columns["capped"] = score = softcap * np.tanh(score / softcap)
    if bias is not None:
        added = np.asarray(bias[query], dtype=np.float64)
        columns["+ bias"] = added
        columns["= score"] = score + added
    return columns


def _seen(score: Floats, weight: Floats) -> npt.NDArray[np.intp]:
    """[place] the keys that were not masked."""
    positive = weight > 0
    if not positive.any():
        raise InputError("the weights of this token are all 0; wanted a softmax over its keys")
    share = np.exp(np.minimum(score - score[positive].max(), 0))
    return np.flatnonzero(positive | (share < MASKED))


def _check_softmax(score: Floats, weight: Floats) -> None:
    share = np.exp(score - score.max())
    off = float(np.abs(share / share.sum() * weight.sum() - weight).max())
    if off > CLOSE:
        raise InputError(
            f"the weights are not the softmax of these scores (largest difference {off:.2g}); "
            "wanted the vectors, scaling, softcap and bias that the model used"
        )


def _check_vectors(
    queries: Floats, keys: Floats, shape: tuple[int, ...], bias: Floats | None
) -> None:
    both = queries.ndim == keys.ndim == 2
    if not both or (len(queries), len(keys)) != shape or queries.shape[1] != keys.shape[1]:
        raise InputError(
            f"queries and keys have the shapes {queries.shape} and {keys.shape}; wanted "
            f"({shape[0]}, neurons) and ({shape[1]}, neurons)"
        )
    if not 0 < queries.shape[1] <= MOST_NEURONS:
        raise InputError(f"found {queries.shape[1]} neurons; wanted 1 to {MOST_NEURONS}")
    if bias is not None and bias.shape != shape:
        raise InputError(f"bias has the shape {bias.shape}; wanted {shape}")
    if not all(np.isfinite(one).all() for one in (queries, keys)):
        raise InputError("queries or keys hold NaN or infinite numbers")
