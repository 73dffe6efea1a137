"""Split the first layer's queries and keys into parts from word, position and segment.

Where a family adds learned embeddings of words, positions and segments and normalises the sum, a
query of the first layer is linear in the three once the scale of the normalisation is given:

    q = Σ_part W (γ ⊙ (e_part - mean(e_part)) / s) + (W β + b),    s = sd of the whole sum

so it splits exactly into PARTS, of which "bias" (β of the norm and all biases) is the same for
every token. To add a family, add a row to LAYOUTS: `tests/model/families/test_embeddings.py` has
a tiny model of each family check that the parts add up.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import torch
from torch import nn
from transformers.pytorch_utils import Conv1D

from headscope.model.linears import used_matrix
from headscope.model.placement import held

PARTS = ("word", "position", "segment", "bias")


@dataclass(frozen=True)
class EmbeddingLayout:
    """Where a family keeps its embeddings; paths from the model of these class names.

    norm        the LayerNorm that the sum passes through before the first layer's queries
    projection  a linear map between norm and first layer (factorised embeddings)
    query, key  in the attention module; the same name twice where one map gives q, k and v
    """

    model: tuple[str, ...]
    word: str
    position: str
    segment: str | None
    norm: str
    projection: str | None = None
    query: str = "query"
    key: str = "key"


_BERT = (
    "embeddings.word_embeddings",
    "embeddings.position_embeddings",
    "embeddings.token_type_embeddings",
    "embeddings.LayerNorm",
)
LAYOUTS: tuple[EmbeddingLayout, ...] = (
    EmbeddingLayout(("BertModel", "RobertaModel", "XLMRobertaModel", "CamembertModel"), *_BERT),
    EmbeddingLayout(("ElectraModel",), *_BERT, projection="embeddings_project"),
    EmbeddingLayout(("AlbertModel",), *_BERT, projection="encoder.embedding_hidden_mapping_in"),
    EmbeddingLayout(("DistilBertModel",), *_BERT[:2], None, _BERT[3], query="q_lin", key="k_lin"),
    EmbeddingLayout(("GPT2Model",), "wte", "wpe", None, "h.0.ln_1", query="c_attn", key="c_attn"),
)


@dataclass(frozen=True, eq=False)
class Embeddings:
    """The embeddings of a model and the maps from them to the first layer's queries and keys.

    gain        γ and β of `norm`, [embedding] each
    projection  (weight [embedding, model], bias [model] or None), or None
    query, key  (weight [model, head·dim], bias [head·dim] or None)
    """

    word: nn.Embedding
    position: nn.Embedding
    segment: nn.Embedding | None
    norm: nn.LayerNorm
    gain: tuple[torch.Tensor, torch.Tensor]
    projection: tuple[torch.Tensor, torch.Tensor | None] | None
    query: tuple[torch.Tensor, torch.Tensor | None]
    key: tuple[torch.Tensor, torch.Tensor | None]

    def queries_and_keys(
        self, ids: torch.Tensor, segments: torch.Tensor, *, heads: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """[example, token, part, head, dim] each, not scaled; the sum over parts is q or k.

        ids, segments  [example, token]
        """
        parts, bias = self._normed(ids, segments)
        if self.projection is not None:
            weight, shift = self.projection
            parts, bias = _mapped(parts, weight), _mapped(bias, weight, shift)
        both = []
        for weight, shift in (self.query, self.key):
            same = _mapped(bias, weight, shift).expand(*ids.shape, 1, -1)
            both.append(torch.cat([_mapped(parts, weight), same], 2))
        shape = (*ids.shape, len(PARTS), heads, -1)  # [example, token, part, head, dim]
        return both[0].view(shape), both[1].view(shape)

    def _normed(
        self, ids: torch.Tensor, segments: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """After the LayerNorm: [example, token, part, model] without the bias, and its [model]."""
        vectors = [self.word(ids), self.position(self._places(ids)).expand(*ids.shape, -1)]
        if self.segment is None:
            vectors.append(torch.zeros_like(vectors[0]))
        else:
            kinds = segments if self.segment.num_embeddings > 1 else torch.zeros_like(segments)
            vectors.append(self.segment(kinds))
        wide = torch.promote_types(vectors[0].dtype, torch.float32)
        parts = torch.stack(vectors, 2).detach().to(wide)  # [example, token, part, model]
        parts = parts - parts.mean(-1, keepdim=True)
        variance = parts.sum(2, keepdim=True).square().mean(-1, keepdim=True)
        scaled = parts / (variance + self.norm.eps).sqrt() * self.gain[0].to(wide)
        return scaled, self.gain[1].to(wide)

    def _places(self, ids: torch.Tensor) -> torch.Tensor:
        padding = self.position.padding_idx
        if padding is None:
            return torch.arange(ids.shape[1], device=ids.device)[None]
        real = (ids != padding).long()  # models like RoBERTa count real tokens, from padding + 1
        return real.cumsum(1) * real + padding


def find_embeddings(
    modules: Mapping[str, nn.Module], attentions: Sequence[str]
) -> dict[str, Embeddings]:
    """Path of an attention module that is the first of its model → the embeddings before it.

    modules     all modules by path
    attentions  paths of the attention modules, in order of definition
    """
    by_path = {}
    for root, module in modules.items():
        if (layout := _layout(type(module).__mro__)) is None:
            continue
        first = next((path for path in attentions if path.startswith(_under(root, ""))), None)
        if first is not None:
            embeddings = _embeddings(layout, root, first, modules)
            if embeddings is not None:
                by_path[first] = embeddings
    return by_path


@cache
def _layout(bases: tuple[type, ...]) -> EmbeddingLayout | None:
    names = {base.__name__ for base in bases}
    return next((row for row in LAYOUTS if not names.isdisjoint(row.model)), None)


def _embeddings(
    layout: EmbeddingLayout, root: str, attention: str, modules: Mapping[str, nn.Module]
) -> Embeddings | None:
    """None where something is not where the layout says: another arrangement of the family."""

    paths = (layout.word, layout.position, layout.segment, layout.norm, layout.projection)
    word, position, segment, norm, projection = (
        None if path is None else modules.get(_under(root, path)) for path in paths
    )
    query, key = (modules.get(_under(attention, name)) for name in (layout.query, layout.key))
    if not (
        isinstance(word, nn.Embedding)
        and isinstance(position, nn.Embedding)
        and isinstance(segment, nn.Embedding | None)
        and isinstance(norm, nn.LayerNorm)
        and isinstance(projection, nn.Linear | None)
        and isinstance(query, nn.Linear | Conv1D)
        and isinstance(key, nn.Linear | Conv1D)
    ):
        return None
    to_query, to_key = used_matrix(query), used_matrix(key)
    between = None if projection is None else used_matrix(projection)
    if to_query is None or to_key is None or (projection is not None and between is None):
        return None
    if query is key:
        to_query, to_key = _third(to_query, 0), _third(to_key, 1)
    scale, shift = held(norm, "weight"), held(norm, "bias")
    assert scale is not None
    assert shift is not None
    gain = (scale, shift)
    return Embeddings(word, position, segment, norm, gain, between, to_query, to_key)


def _under(root: str, path: str) -> str:
    return f"{root}.{path}" if root else path


def _third(
    linear: tuple[torch.Tensor, torch.Tensor | None], at: int
) -> tuple[torch.Tensor, torch.Tensor | None]:
    weight, bias = linear
    return weight.chunk(3, -1)[at], None if bias is None else bias.chunk(3, -1)[at]


def _mapped(
    vectors: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None
) -> torch.Tensor:
    """[…, out] of vectors […, in]."""
    out = vectors @ weight.to(vectors.dtype)
    return out if bias is None else out + bias.to(vectors.dtype)


def learned_positions(network: nn.Module) -> int | None:
    """How many positions a network has vectors for; None where it learns none."""
    for name, module in network.named_modules():
        if name.endswith("position_embeddings") and isinstance(module, nn.Embedding):
            # Models like RoBERTa count from padding_idx + 1: the rows before it cannot be used.
            before = 0 if module.padding_idx is None else module.padding_idx + 1
            return module.num_embeddings - before
    return None
