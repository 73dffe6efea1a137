"""What in a checkpoint makes doubtful that it is the network its files say, in words.

Nothing here is refused: tensors that the network does not read, code of its own that was not run,
a vocabulary that does not go with the embeddings, and heads of another number than were trained.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

import numpy as np
from torch import nn
from transformers import PreTrainedModel

from headscope.core.accumulators import Float64, generator
from headscope.errors import ModelError
from headscope.model.layer import LayerView
from headscope.model.placement import plain
from headscope.model.vocabulary import bare

ADAPTERS = ("lora_", "adapter", "ia3_")  # in names of tensors
BUFFERS = ("inv_freq", "masked_bias", "attn.bias", "position_ids")  # of older versions
_NUMBERED = re.compile(r"(?:^|(?<=\.))(.+?)\.\d+\.")

FEWEST_PAIRS = 100  # ours: of tokens that are written alike
MOST_PAIRS = 4000
SURE = 3.0  # ours: standard errors
ALIKE = 0.1  # ours: by so much at least pairs are more alike than others; trained ones by 0.4
LEARNED = 1.3  # ours: rows are so much nearer to others than shuffled ones; trained ones 1.7
LOOKED_AT, NEIGHBOURS = 64, 8192  # ours: rows; where the nearest ones are looked for
LARGE, USED = 1000, 0.9  # ours: rows; the least share of them that tokens have, but for padding
FEWEST_HEADS = 24  # ours: of all layers
ONE, SEVERAL = 0.1, 0.5  # ours: as `_halves`; of trained heads 0.005 to 0.04, of two together 0.7
SHORTEST = 3  # letters of a token; shorter ones are parts of anything


def loading_doubts(
    network: PreTrainedModel, unread: Iterable[str], *, own_code: bool
) -> Iterator[str]:
    """What of a checkpoint was not read.

    unread    names of tensors of the file that the network does not have
    own_code  whether the checkpoint's own code was run
    """
    if left := [name for name in unread if _is_of_network(network, name)]:
        adapters = any(part in name for name in left for part in ADAPTERS)
        why = (
            "an adapter that was not merged (merge_and_unload)"
            if adapters
            else "a configuration with fewer layers than the weights have"
        )
        yield (
            f"{len(left)} of the tensors of the weights are not read by the network (first: "
            f"{min(left)[:100]}): probably {why}"
        )
    if getattr(network.config, "auto_map", None) and not own_code:
        yield (
            "the checkpoint has code of its own (auto_map in config.json), which was not run: it "
            f"is read as {type(network).__name__} of transformers; --trust-remote-code runs it"
        )


def _is_of_network(network: PreTrainedModel, name: str) -> bool:
    """Whether a tensor that is not read would be a part of what is: of a further layer, or of an
    adapter; else it is of another head, say, which a model without it need not have.
    """
    if any(part in name for part in ADAPTERS):
        return True
    numbered = _NUMBERED.search(name)
    if numbered is None or name.endswith(BUFFERS):
        return False
    stack = numbered[1].removeprefix(f"{network.base_model_prefix}.")
    return any(
        path.removeprefix(f"{network.base_model_prefix}.") == stack
        for path, module in network.named_modules()
        if isinstance(module, nn.ModuleList)
    )


def vocabulary_doubt(tokenizer: Any, network: PreTrainedModel) -> str:
    """Why the names of tokens are surely not those of the embeddings' rows, or too few; else "".

    In whatever has learned language, tokens that differ by a capital letter, a space before them
    or an -s lie near each other. Where rows do lie near others, but not these, the tokenizer's ids
    are not those that the network was trained with. Of networks without training, of vocabularies
    with few such pairs, and of quantised embeddings nobody can tell.
    """
    layer, vocabulary = network.get_input_embeddings(), tokenizer.get_vocab()
    weight = getattr(layer, "weight", None)
    if weight is not None and len(weight) > LARGE and max(vocabulary.values()) < USED * len(weight):
        return (
            f"the tokenizer has {len(vocabulary):,} tokens, and the network embeds "
            f"{len(weight):,}: probably it is cut, or not the one that the network was trained with"
        )
    if weight is None or not plain(weight) or weight.is_meta:
        return ""
    pairs = _written_alike(vocabulary, len(weight))
    if len(pairs) < FEWEST_PAIRS:
        return ""
    rng = generator(0, "written alike")
    pairs = pairs[rng.choice(len(pairs), min(len(pairs), MOST_PAIRS), replace=False)]
    mean = weight.detach().float().mean(0).cpu().numpy()

    def rows(ids: Any) -> Any:
        """[row, direction] some rows, of length 1 from the mean of all."""
        some = weight.detach()[ids].float().cpu().numpy() - mean
        return some / np.maximum(np.linalg.norm(some, axis=-1, keepdims=True), 1e-9)

    one, two = rows(pairs[:, 0]), rows(pairs[:, 1])
    beyond = (one * two).sum(-1) - (one * np.roll(two, 1, 0)).sum(-1)  # [pair]
    most = beyond.mean() + SURE * beyond.std() / np.sqrt(len(beyond))
    if not most < ALIKE:
        return ""
    some = rows(rng.choice(len(weight), min(len(weight), NEIGHBOURS), replace=False))
    if not _nearest(some) > LEARNED * _nearest(rng.permuted(some, axis=0)):
        return ""
    return (
        f"the tokenizer's vocabulary does not go with the embeddings: of {len(beyond):,} pairs of "
        f"tokens that are written alike (cat, Cat, cats) the vectors are not more alike than "
        f"others (cosines differ by {beyond.mean():.2f}); its ids are probably not those that the "
        "network was trained with"
    )


def _nearest(rows: Any) -> float:
    """The median cosine of a few rows with the row that is nearest to each."""
    rows = rows / np.maximum(np.linalg.norm(rows, axis=-1, keepdims=True), 1e-9)
    cosines = rows[:LOOKED_AT] @ rows.T  # [row, neighbour]
    np.fill_diagonal(cosines, -1)
    return float(np.median(cosines.max(-1)))


def _written_alike(vocabulary: Mapping[str, int], count: int) -> Any:
    """[pair, 2] ids of tokens that differ by a capital letter, a marker, or an -s."""
    first = dict[str, int]()
    pairs = []
    for name, token in sorted(vocabulary.items(), key=lambda item: item[1]):
        word = bare(name).removeprefix("##").casefold()
        if token >= count or not word.isalpha() or (word.isascii() and len(word) < SHORTEST):
            continue
        if word in first:
            pairs.append((first[word], token))
        elif word.endswith("s") and word[:-1] in first:
            pairs.append((first[word[:-1]], token))
        first.setdefault(word, token)
    return np.array(pairs, np.int64).reshape(-1, 2)


def write_norms(identity: Callable[[], Iterable[tuple[LayerView, float, float]]]) -> Float64:
    """[layer, head, dim] norms of the columns of W_O; without layers where they are not known, or
    of several sizes, or the network gives no numbers, which is refused where it is read.

    identity  runs the network, as `identity.identity_errors`
    """
    norms = []
    with suppress(ModelError):
        for view, _, _ in identity():
            norms.append(view.projection.weight.detach().float().norm(dim=-1).cpu().numpy())
    alike = len({one.shape for one in norms}) == 1
    return np.stack(norms).astype(np.float64) if alike else np.zeros((0, 0, 0))


def heads_doubt(norms: Float64, *, shared: bool) -> str:
    """Why heads are surely not those that were trained, but of another number; "" otherwise.

    Training scales each head as a whole: its two halves are far more alike than heads beside each
    other. Of networks without training, and of few heads, nobody can tell.

    norms   [layer, head, dim] of the vectors that a head writes with, the columns of W_O
    shared  whether several heads share keys and values, so that those may be alike
    """
    layers, heads, dim = norms.shape
    if layers * heads < FEWEST_HEADS or not norms.all():
        return ""
    logs = np.log(norms).reshape(layers, heads * dim)
    own, trained = _halves(logs, dim), 0
    if own > SEVERAL:
        finer = (parts for parts in (2, 4, 8) if not dim % (2 * parts))
        trained = next((heads * n for n in finer if _halves(logs, dim // n) < ONE), 0)
    elif own < ONE and not shared and not heads % 2 and layers * heads >= 2 * FEWEST_HEADS:
        trained = heads // 2 if _halves(logs, 2 * dim) < ONE else 0
    if not trained:
        return ""
    return (
        f"the weights look like those of {trained} heads in each layer, and are read as {heads}: "
        "is num_attention_heads in config.json what it was in training?"
    )


def _halves(logs: Float64, dim: int) -> float:
    """How far the halves of heads of `dim` numbers differ, of that of halves of heads side by side.

    logs  [layer, number of any head]
    """
    halves = logs.reshape(len(logs), -1, 2, dim // 2).mean(-1)  # [layer, head, half]
    within = halves[..., 0] - halves[..., 1]  # [layer, head]
    between = halves[:, :-1, 1] - halves[:, 1:, 0]  # [layer, head but the last]
    return float((within**2).mean() / (between**2).mean()) if between.any() else np.nan
