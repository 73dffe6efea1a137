"""Why a head looks at a token: what wrote the query and what wrote the key of a score.

    dataset = hs.prompts.score_parts("demo-decoder", "Mary and John, Mary", "L2·H1", -1, 2)
    dataset["key_side"].to_series().nlargest(5)

A score before the softmax is q_i · k_j · scaling. The query is made of what embeddings, earlier
heads, feed-forward layers and biases wrote at i, the key of what they wrote at j; norms keep the
scale that they have there, see `residual_parts`. So the score is a sum over pairs of parts (Elhage
et al. 2021). A softmax only sees how a score differs from those of the same query's other keys:
`…_contrast` is the score less their mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
import xarray as xr

from headscope.claims.terms import ELHAGE
from headscope.core.accumulators import REPLICATES, Float64, Ints
from headscope.core.head_names import Head
from headscope.core.results import Variable, labelled
from headscope.core.wording import how_many
from headscope.corpus.document import Example
from headscope.corpus.packing import batches
from headscope.errors import InputError
from headscope.experiments.circuits.made_inputs import Repeats, example_of, repeats
from headscope.experiments.circuits.over_items import FEWEST_ITEMS, share_over
from headscope.experiments.circuits.residual_parts import SplitLayer, split_layer
from headscope.model.batch import to_float64
from headscope.model.language_model import LanguageModel, ModelLike
from headscope.model.model import Model, load
from headscope.model.request import BATCH_TOKENS
from headscope.model.variants import check
from headscope.run.plan import encoded

FROZEN = "norms, at the scale of the whole stream; attention and feed-forward layers before"
SIDES = {
    "query_side": "score, by what wrote the query",
    "key_side": "score, by what wrote the key",
    "query_contrast": "score less the mean over the query's other keys, by what wrote the query",
    "key_contrast": "score less the mean over the query's other keys, by what wrote the keys",
}
Places = Sequence[tuple[int, int]]  # pairs of query and key
Text = str | Sequence[int]  # or the ids of its tokens


def score_parts(model: ModelLike, text: Text, head: str | Head, query: int, key: int) -> xr.Dataset:
    """The score of one query and key of a head, by the parts that wrote the query and the key.

    model       a decoder or an encoder: a folder, a hub id, what `load` gives
    text        a text, or the ids of its tokens, special ones included
    head        its name, `L2·H1` or `1.0`, or (layer, head) from 0
    query, key  positions of tokens from 0; from the end where negative
    returns     parts[query_part, key_part], its sums query_side and key_side[part], and
                query_contrast and key_contrast[part]: the same less the mean over the query's other
                keys, NaN without such; attributes score, contrast, attention and tokens. Scores
                are before the softmax, before a softcap and a position bias
    raises      InputError for a head or token that is not there, a key that the query cannot see,
                or a text without tokens; ModelError where the layers' parts are not known

    Source: Elhage et al. (2021).
    """
    own = _loaded(model)
    example, (layer, number) = _example(own, text, "text"), _head(own, head)
    ((i, j),) = _within(len(example), [(query, key)])
    split = split_layer(own, own.batch([example]), layer)
    target, others = _weights(split, [[(i, j)]])
    values = {name: side[0] for name, side in _sides(split, number, target, others).items()}
    scores = split.scores(number)
    queries = _vectors(split, split.queries[:, number], i)
    keys = _vectors(split, split.keys[:, number], j)
    variables = {
        "parts": Variable(
            queries @ keys.T * split.scaling,
            ("query_part", "key_part"),
            "score, by what wrote the query and what wrote the key",
            "1",
            ELHAGE,
        ),
        **{name: Variable(values[name], ("part",), SIDES[name], "1", ELHAGE) for name in SIDES},
    }
    tokens, names = own.tokens(example.input_ids), own.shape.names
    bias = split.position_bias
    return labelled(
        variables, coords=dict.fromkeys(("part", "query_part", "key_part"), split.parts.names)
    ).assign_attrs(
        head=names.head(layer, number),
        query=i,
        key=j,
        query_token=tokens[i],
        key_token=tokens[j],
        score=float((scores * target)[0, i, j]),
        contrast=float((scores * others)[0, i].sum()),
        attention=float(split.attention[0, number, i, j]),
        frozen=FROZEN,
        softcap=split.softcap or 0.0,
        position_bias=0.0 if bias is None else float(bias[0, number, i, j]),
    )


def mean_score_parts(
    model: ModelLike,
    head: str | Head,
    inputs: str | Sequence[tuple[Text, Places]] = "induction",
    *,
    sequences: int = 20,
    length: int = 50,
    seed: int = 0,
    batch_tokens: int = BATCH_TOKENS,
    replicates: int = REPLICATES,
) -> xr.Dataset:
    """The same, as the mean over many pairs of query and key, with intervals over inputs.

    model, head  as `score_parts`
    inputs       "induction", "duplicate_token" or "previous_token": where such a head looks in the
                 second half of random tokens that come twice; or texts, each with its (query, key)
    sequences, length, seed  of random tokens, see `circuits`
    returns      query_side, key_side, query_contrast and key_contrast[part], score and contrast:
                 means over pairs, with intervals over inputs where they are ten or more
    raises       InputError and ModelError as `score_parts`; also for a query that sees one key only
    """
    own = _loaded(model)
    layer, number = _head(own, head)
    examples, places = _examples(own, inputs, sequences=sequences, length=length, seed=seed)
    rows: list[tuple[int, dict[str, Float64]]] = []
    parts: list[str] = []
    for at in batches(examples, budget=batch_tokens):
        split = split_layer(own, own.batch([examples[one] for one in at]), layer)
        parts = split.parts.names
        target, others = _weights(split, [places[one] for one in at])
        sides = _sides(split, number, target, others)
        rows += [(one, {name: sides[name][row] for name in SIDES}) for row, one in enumerate(at)]
    values = [row for _, row in sorted(rows, key=lambda one: one[0])]
    counts = np.array([float(len(one)) for one in places])
    items = [str(at) for at in range(len(examples))]
    mean = partial(share_over, items, of=counts, replicates=replicates)
    sums = {name: np.stack([one[name] for one in values]) for name in SIDES}  # [example, part]
    if not all(np.isfinite(one).all() for one in sums.values()):
        raise InputError(
            "a query sees no other key than its own target; wanted one with others to compare with"
        )
    variables = {
        name: Variable(mean(values=one), ("part",), SIDES[name], "1", ELHAGE)
        for name, one in sums.items()
    }
    for name, side, words in (
        ("score", "query_side", "score before the softmax"),
        ("contrast", "query_contrast", "score less the mean over the query's other keys"),
    ):
        variables[name] = Variable(mean(values=sums[side].sum(1)), (), words, "1", ELHAGE)
    many = how_many(len(items), "input")
    few = f"{many}: values without intervals; wanted {FEWEST_ITEMS} or more"
    return labelled(variables, coords={"part": parts}).assign_attrs(
        head=own.shape.names.head(layer, number),
        inputs=inputs if isinstance(inputs, str) else "texts",
        n=len(items),
        pairs=int(counts.sum()),
        notes=few if len(items) < FEWEST_ITEMS else "",
        frozen=FROZEN,
    )


def strongest_writers(
    model: Model, example: Example, heads: Sequence[Head], *, count: int
) -> list[tuple[int, list[list[tuple[str, float]]]]]:
    """For each head: the token that the last token attends to most, and what sets its score apart.

    returns  by head its position, and twice, for the query and for the key, the `count` parts of
             largest size with their contrast; fewer where there are fewer parts. Nothing of a query
             that sees one key
    raises   ModelError as `score_parts`
    """
    last = len(example) - 1
    splits = {layer: split_layer(model, model.batch([example]), layer) for layer, _ in set(heads)}
    keys = [int(splits[layer].attention[0, head, last].argmax()) for layer, head in heads]
    return [
        (key, _writers(splits[layer], head, (last, key), count))
        for (layer, head), key in zip(heads, keys, strict=True)
    ]


def writers(
    model: Model, example: Example, place: Head, pair: tuple[int, int], *, count: int
) -> list[list[tuple[str, float]]]:
    """What sets the score of one query and key of a head apart from the query's other keys.

    place    layer and head, from 0
    pair     positions of query and key, from 0
    returns  twice, for the query and for the key, as `strongest_writers`
    raises   InputError for what is not there, and for a key that the query cannot see; ModelError
             as `score_parts`
    """
    layer, head = _head(model, place)
    split = split_layer(model, model.batch([example]), layer)
    return _writers(split, head, _within(len(example), [pair])[0], count)


def _writers(
    split: SplitLayer, head: int, pair: tuple[int, int], count: int
) -> list[list[tuple[str, float]]]:
    sides, ranked = _sides(split, head, *_weights(split, [[pair]])), []
    for side in ("query_contrast", "key_contrast"):
        parts = sorted(zip(split.parts.names, sides[side][0].tolist(), strict=True), key=_size)
        ranked.append([(name, value) for name, value in parts if np.isfinite(value)][:count])
    return ranked


def _size(part: tuple[str, float]) -> float:
    return -abs(part[1])


# --- which scores -----------------------------------------------------------------------------


def _loaded(model: Any) -> Model:
    return model.model if isinstance(model, LanguageModel) else load(model)


def _head(model: Model, head: str | Head) -> Head:
    shape = model.shape
    place = shape.names.read(head)
    check([frozenset([place])], shape.names, layers=shape.layers, heads=shape.heads)
    return place


def _example(model: Model, text: Text, name: str) -> Example:
    if isinstance(text, str):
        return encoded(model, text, None)
    embeddings: Any = model.network.get_input_embeddings()
    ids, most = np.asarray(text), embeddings.num_embeddings
    if ids.ndim != 1 or not len(ids) or ids.dtype.kind not in "iu" or not (ids >= 0).all():
        raise InputError(f"found {text!r:.80} as a text; wanted a text, or the ids of its tokens")
    if ids.max() >= most or len(ids) > model.limit:
        raise InputError(
            f"found {len(ids)} tokens, the largest id {ids.max()}; {model.name!r} takes "
            f"{model.limit} tokens of ids below {most}"
        )
    return example_of(ids.astype(np.int64), name, "ids")


def _within(length: int, places: Places) -> list[tuple[int, int]]:
    """The pairs as positions from 0."""
    for one in (at for pair in places for at in pair):
        if not -length <= one < length:
            raise InputError(
                f"no token {one}: the text has {length} tokens, special ones included; wanted 0 to "
                f"{length - 1}, or negative numbers from its end"
            )
    return [(query % length, key % length) for query, key in places]


def _examples(
    model: Model, inputs: Any, *, sequences: int, length: int, seed: int
) -> tuple[list[Example], list[list[tuple[int, int]]]]:
    if isinstance(inputs, str):
        if inputs not in TARGETS:
            raise InputError(f"no pairs called {inputs!r}; there are {', '.join(TARGETS)}")
        made = repeats(model, sequences=sequences, length=length, seed=seed)
        return made.repeated, [_targets(made, one, inputs) for one in made.repeated]
    examples = [_example(model, text, f"text {at}") for at, (text, _) in enumerate(inputs)]
    pairs = [_within(len(one), own) for one, (_, own) in zip(examples, inputs, strict=True)]
    if not any(pairs):
        raise InputError("found no pairs of query and key; wanted at least one")
    return examples, pairs


TARGETS = ("induction", "duplicate_token", "previous_token")


def _targets(made: Repeats, example: Example, kind: str) -> list[tuple[int, int]]:
    """Where a head of the kind looks from the second half: pairs of query and key."""
    places: Ints = made.known(example)
    queries = made.opening + made.length + places
    copies = made.opening + made.before([example])[0][places]
    keys = {"induction": copies + 1, "duplicate_token": copies, "previous_token": queries - 1}
    return list(zip(queries.tolist(), keys[kind].tolist(), strict=True))


def _weights(split: SplitLayer, pairs: Sequence[Places]) -> tuple[torch.Tensor, torch.Tensor]:
    """[example, query, key] twice: how often each pair is meant; and less its other keys' mean.

    The latter is NaN where a query sees no other key.

    raises  InputError for a key that its query cannot see
    """
    seen = split.seen.expand(len(pairs), -1, -1)
    target = torch.zeros(seen.shape, dtype=split.queries.dtype, device=seen.device)
    for row, own in enumerate(pairs):
        for query, key in own:
            if not seen[row, query, key]:
                raise InputError(
                    f"token {query} cannot see token {key} in this layer; wanted a key that the "
                    "mask leaves to the query, say one before it"
                )
            target[row, query, key] += 1
    many = target.sum(-1, keepdim=True)
    rest = (many - target) / (seen.sum(-1, keepdim=True) - 1)
    return target, torch.where((many > 0) & seen, target - rest, 0)


# --- the parts of them ------------------------------------------------------------------------


def _sides(
    split: SplitLayer, head: int, target: torch.Tensor, others: torch.Tensor
) -> dict[str, Float64]:
    """Each of SIDES, [example, part], for weights [example, query, key] of scores."""
    queries, keys = split.queries[:, head], split.keys[:, head]  # [example, token, dim]
    sides = {}
    for kind, weights in (("side", target), ("contrast", others)):
        scaled, alone = weights.nan_to_num() * split.scaling, weights.isnan().flatten(1).any(1)
        back = scaled @ keys.detach(), scaled.transpose(1, 2) @ queries.detach()
        for side, vectors, weight in zip(("query", "key"), (queries, keys), back, strict=True):
            shares = split.parts.shares(vectors, weight)
            shares[alone.cpu()] = torch.nan
            sides[f"{side}_{kind}"] = to_float64(shares)
    return sides


def _vectors(split: SplitLayer, vectors: torch.Tensor, at: int) -> Float64:
    """[part, dim] what each part adds to the vector at a token, of vectors [1, token, dim]."""
    rows = []
    for dim in range(vectors.shape[-1]):
        weights = torch.zeros_like(vectors)
        weights[0, at, dim] = 1
        rows.append(split.parts.shares(vectors, weights, slice(at, at + 1))[0])
    return to_float64(torch.stack(rows, 1))
