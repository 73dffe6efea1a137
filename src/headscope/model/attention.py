"""The attention function registered with transformers, which reads and changes attention.

Inside `listening(model, listener)` the model's attention runs through `_attention`. It computes
exactly what transformers' eager functions do, operation by operation, so that the maps are equal to
the last bits; but without copies of the [example, head, query, key] tensor where no gradient is
recorded, and refusing what it does not know. Every listener is shown the call before the values are
mixed, and may change it, mix them by itself, or ask to see what comes of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
import transformers
from torch import nn

from headscope.errors import ModelError
from headscope.model.families.sites import Site, configurations
from headscope.model.long_attention import LongAttention
from headscope.model.long_mask import LongMask

if TYPE_CHECKING:
    from transformers import PreTrainedModel

NAME = "headscope"
# What transformers hands to an attention function beside q, k, v and the mask.
_USED = frozenset({"softcap", "position_bias", "s_aux"})
_SHORT = 16  # ours: tokens; see `_products`
# Changes nothing here: the mask already holds causality and windows.
_WITHOUT_EFFECT = frozenset({
    "is_causal", "sliding_window", "position_ids", "output_attentions", "output_hidden_states",
    "use_cache", "cache_position", "encoder_hidden_states", "encoder_attention_mask",
    "past_key_values", "cache", "return_dict", "position_embeddings", "cu_seq_lens_q",
    "cu_seq_lens_k", "max_length_q", "max_length_k", "num_items_in_batch", "deterministic",
    "token_type_ids", "labels", "output_router_logits",
})  # fmt: skip


class AttentionCall:
    """One call of the attention function by a module of the network.

    A listener may replace `attention`, `values` or `mixed` by new tensors; where gradients are
    recorded it must not write into them. The first two are computed when they are first asked for.

    site, layer  which attention calls, and its number; set by the Instrument
    module       the module that calls
    query        [example, head, query, dim]
    key, value   [example, key-value head, key, dim]
    mask         [example or 1, head or 1, query, key]  0 where a key may be attended to, very
                 negative where not; None: everywhere
    scaling      what q·k is multiplied by
    options      "softcap", "position_bias" and "s_aux", if the module gives them; see
                 `probabilities`
    mixed        [example, head, query, dim]  Σ_j α_ij v_j, if a listener has it ready
    then         called with this, and with what was mixed: [example, query, head, dim]
    long         the attention of an input that is read without its whole maps, see
                 `listening`; None: there is `attention`
    """

    site: Site
    layer: int

    def __init__(
        self,
        module: nn.Module,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        mask: torch.Tensor | LongMask | None,
        *,
        scaling: float | None,
        dropout: float,
        options: dict[str, Any],
    ) -> None:
        self.module, self.query, self.key, self.value = module, query, key, value
        self.scaling = query.shape[-1] ** -0.5 if scaling is None else scaling
        self.dropout, self.options = dropout, options
        self.long: LongAttention | None = None
        if isinstance(mask, LongMask):
            self.long = LongAttention(query, key, value, mask, scaling=self.scaling, **options)
            mask = None
        self.mask, self.position_bias = (
            None if bias is None else bias.detach()[..., : key.shape[2]]
            for bias in (mask, options.get("position_bias"))
        )
        self.mixed: torch.Tensor | None = None
        self.then: list[Callable[[AttentionCall, torch.Tensor], object]] = []

    @cached_property
    def keys(self) -> torch.Tensor:
        """[example, head, key, dim] the keys, repeated for the query heads that share them."""
        return for_each_head(self.key, self.query)

    @cached_property
    def values(self) -> torch.Tensor:
        """[example, head, key, dim] the values, likewise."""
        return for_each_head(self.value, self.query)

    @cached_property
    def attention(self) -> torch.Tensor:
        """[example, head, query, key] the probabilities, before dropout."""
        if self.long is not None:
            raise refused_whole(self.long.shape[3])
        return probabilities(self.query, self.keys, self.mask, scaling=self.scaling, **self.options)

    def mix(self) -> torch.Tensor:
        """[example, head, query, dim] Σ_j α_ij v_j."""
        if self.long is not None:
            return self.long.mix()
        kept = nn.functional.dropout(self.attention, p=self.dropout, training=self.module.training)
        return kept @ self.values


Listener = Callable[[AttentionCall], object]

# Who listens, and the most tokens of which a whole map is made: None, any.
Listening = tuple[tuple[Listener, ...], int | None]
_LISTENING: ContextVar[Listening] = ContextVar("headscope_listening", default=((), None))


@contextmanager
def listening(
    model: PreTrainedModel, listener: Listener, *, alone: bool = False, whole: int | None = None
) -> Iterator[None]:
    """Inside the context the model's attention is computed here and reported to the listener.

    The attention implementation of the model and of all models inside it is set past the public
    setter, which also sets sub-configurations: each one gets back exactly what it had.

    alone  the listeners of outer contexts hear nothing meanwhile; else they come first
    whole  inputs of more tokens are read without their whole maps; None: no input is
    """
    transformers.AttentionInterface.register(NAME, _attention)
    transformers.AttentionMaskInterface.register(NAME, _mask)  # else padding would be attended
    before = [(c, c._attn_implementation_internal) for c in configurations(model)]
    others = () if alone else _LISTENING.get()[0]
    token = _LISTENING.set(((*others, listener), whole))
    try:
        for config, _ in before:
            config._attn_implementation_internal = NAME
        yield
    finally:
        _LISTENING.reset(token)
        for config, implementation in before:
            config._attn_implementation_internal = implementation


def _attention(
    module: nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | LongMask | None,
    *,
    scaling: float | None = None,
    dropout: float = 0.0,
    **other: Any,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """What transformers calls: [example, query, head, dim], and the probabilities if computed."""
    call = AttentionCall(
        module,
        query,
        key,
        value,
        attention_mask,
        scaling=scaling,
        dropout=dropout,
        options=known_options(module, other),
    )
    listeners, _ = _LISTENING.get()
    for listener in listeners:
        listener(call)
    mixed = call.mix() if call.mixed is None else call.mixed
    mixed = mixed.transpose(1, 2).contiguous()  # [example, query, head, dim]
    for shown in call.then:
        shown(call, mixed)
    return mixed, vars(call).get("attention")


def _mask(batch_size: int, q_length: int, kv_length: int, **options: Any) -> Any:
    """What transformers asks for a mask: a tensor, or of a long input a `LongMask`."""
    _, whole = _LISTENING.get()
    if whole is None or max(q_length, kv_length) <= whole:
        from transformers.masking_utils import eager_mask

        return eager_mask(batch_size, q_length, kv_length, **options)
    return LongMask.of(batch_size, q_length, kv_length, **options)


def refused_whole(tokens: int) -> ModelError:
    """What asks for the whole map of an input that is read without."""
    _, whole = _LISTENING.get()
    return ModelError(
        f"an input of {tokens} tokens is read without whole maps; wanted one that has them: "
        f"--max-length {whole} for shorter inputs, or --whole-maps {tokens}"
    )


def probabilities(
    query: torch.Tensor,
    key: torch.Tensor,
    mask: torch.Tensor | None,
    *,
    scaling: float | None,
    softcap: float | None = None,
    position_bias: torch.Tensor | None = None,
    s_aux: torch.Tensor | None = None,
) -> torch.Tensor:
    """[example, head, query, key] softmax(cap(scaling · q·k) + position bias + mask).

    query, key            [example, head, query or key, dim]
    mask, position_bias   broadcast to the scores; 0 where attended, very negative where not
    scaling               1/√dim if None
    s_aux                 [head] a learned score of no token at all, whose weight is left out: rows
                          sum to less than 1
    """
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    biases = [b[..., : key.shape[2]] for b in (position_bias, mask) if b is not None]
    if torch.is_grad_enabled() and any(
        t.requires_grad for t in (query, key, *biases, *([] if s_aux is None else [s_aux]))
    ):
        scores = query @ key.transpose(2, 3) * scale  # [example, head, query, key]
        if softcap is not None:
            scores = torch.tanh(scores / softcap) * softcap
        for bias in biases:
            scores = scores + bias
        if s_aux is not None:
            return _beside_no_token(scores, s_aux)
        wide = torch.promote_types(scores.dtype, torch.float32)
        return scores.softmax(-1, dtype=wide).to(query.dtype)
    return _in_place(_products(query, key), biases, scale, softcap, s_aux)


def _products(query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
    """[example, head, query, key] q·k; on the host by example, as all at once copies q and k.

    Of few tokens the copies cost nothing; and the last bits would differ on some processors.
    """
    short = min(query.shape[2], key.shape[2]) < _SHORT
    if short or query.device.type != "cpu" or query.shape[:2] != key.shape[:2]:
        return query @ key.transpose(2, 3)
    products = query.new_empty(*query.shape[:3], key.shape[2])
    for queries, keys, out in zip(query, key, products, strict=True):
        torch.bmm(queries, keys.transpose(1, 2), out=out)
    return products


def _beside_no_token(scores: torch.Tensor, s_aux: torch.Tensor) -> torch.Tensor:
    """As transformers does it: one more column, its weight left out; in the scores' own type."""
    column = s_aux.reshape(1, -1, 1, 1).expand(len(scores), -1, scores.shape[2], 1)
    whole = torch.cat([scores, column.to(scores.dtype)], -1)  # [example, head, query, key + 1]
    whole = whole - whole.max(-1, keepdim=True).values
    return whole.softmax(-1)[..., :-1]


def _in_place(
    scores: torch.Tensor,
    biases: list[torch.Tensor],
    scale: float,
    softcap: float | None,
    s_aux: torch.Tensor | None,
) -> torch.Tensor:
    """The same, in one buffer: half the time of the above on long inputs."""
    scores.mul_(scale)
    if softcap is not None:
        scores.div_(softcap).tanh_().mul_(softcap)
    for bias in biases:
        scores.add_(bias)
    if s_aux is not None:
        return _beside_no_token(scores, s_aux)
    if scores.dtype in (torch.float16, torch.bfloat16):
        return scores.softmax(-1, dtype=torch.float32).to(scores.dtype)
    if scores.device.type != "cpu":  # only there is writing into its own input known to be right
        return scores.softmax(-1)
    return torch.softmax(scores, -1, out=scores)


def for_each_head(of_keys: torch.Tensor, query: torch.Tensor) -> torch.Tensor:
    """[example, head, key, dim] keys or values, each for the query heads that share it."""
    groups = query.shape[1] // of_keys.shape[1]
    return of_keys if groups == 1 else of_keys.repeat_interleave(groups, dim=1)


def visible(mask: torch.Tensor | None, scores: torch.Tensor) -> torch.Tensor:
    """[example or 1, 1, query, key] True where a query may attend to a key.

    mask    as the attention function is given it; None: everywhere
    scores  [example, head, query, key] anything of that size
    """
    queries, keys = scores.shape[2:]
    if mask is None:
        return scores.new_ones((1, 1, queries, keys), dtype=torch.bool)
    seen = mask if mask.dtype == torch.bool else mask > torch.finfo(mask.dtype).min / 2
    return seen.expand(len(seen), 1, queries, keys)


def known_options(module: nn.Module, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that matter among those that a module passes; ModelError for unknown ones."""
    passed = {name: value for name, value in options.items() if value is not None}
    if unknown := [name for name in passed if name not in _WITHOUT_EFFECT | _USED]:
        raise ModelError(
            f"{type(module).__name__} passes {', '.join(unknown)} to its attention, which "
            "headscope does not know: its numbers could be wrong; please report this model"
        )
    return {name: passed[name] for name in _USED if name in passed}
