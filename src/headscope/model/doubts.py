"""What in a checkpoint makes doubtful that it is the network its files say, in words.

Nothing here is refused: tensors that the network does not read, code of its own that was not run,
an adapter beside the weights, and a vocabulary that does not go with the embeddings.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn
from transformers import PreTrainedModel

from headscope.core.accumulators import generator
from headscope.model.placement import plain
from headscope.model.vocabulary import bare

ADAPTERS = ("lora_", "adapter", "ia3_")  # in names of tensors
BUFFERS = ("inv_freq", "masked_bias", "attn.bias", "position_ids")  # of older versions
ADAPTER_FILE = "adapter_config.json"
_NUMBERED = re.compile(r"(?:^|(?<=\.))(.+?)\.\d+\.")

FEWEST_PAIRS = 100  # ours: of tokens that are written alike
MOST_PAIRS = 4000
SURE = 3.0  # ours: standard errors
ALIKE = 0.1  # ours: by so much at least pairs are more alike than others; trained ones by 0.4
LEARNED = 1.3  # ours: rows are so much nearer to others than shuffled ones; trained ones 1.7
LOOKED_AT, NEIGHBOURS = 64, 8192  # ours: rows; where the nearest ones are looked for
SHORTEST = 3  # letters of a token; shorter ones are parts of anything


def loading_doubts(
    place: str, network: PreTrainedModel, unread: Iterable[str], *, own_code: bool
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
    applied = any(part in name for name, _ in network.named_parameters() for part in ADAPTERS)
    if Path(place, ADAPTER_FILE).is_file() and not applied:
        yield f"the folder has {ADAPTER_FILE}: this is the model without that adapter"
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
    """Why the names of tokens are surely not those of the embeddings' rows; "" otherwise.

    In whatever has learned language, tokens that differ by a capital letter, a space before them
    or an -s lie near each other. Where rows do lie near others, but not these, the tokenizer's ids
    are not those that the network was trained with. Of networks without training, of vocabularies
    with few such pairs, and of quantised embeddings nobody can tell.
    """
    layer = network.get_input_embeddings()
    weight = getattr(layer, "weight", None)
    if weight is None or not plain(weight) or weight.is_meta:
        return ""
    pairs = _written_alike(tokenizer.get_vocab(), len(weight))
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
