"""Fused attention kernels of torch that also return the log-sum-exp of each query's scores."""

import torch
from torch.backends.cuda import SDPAParams, can_use_efficient_attention, can_use_flash_attention

Fused = tuple[torch.Tensor, torch.Tensor]


def fused(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *, causal: bool, scaling: float
) -> Fused | None:
    """The attention of one input; None where this device has no kernel for it.

    query       [head, query, dim]
    key, value  [key-value head, key, dim]
    returns     [head, query, dim] and [head, query] float32 or wider
    """
    if query.shape[-1] != value.shape[-1]:
        return None
    if query.device.type == "cpu":
        return _on_host(query, key, value, causal, scaling)
    if query.device.type == "cuda":
        return _on_gpu(query, key, value, causal, scaling)
    return None


def _on_host(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, causal: bool, scaling: float
) -> Fused:
    mixed, log_sums = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
        query[None], key[None], value[None], 0.0, causal, scale=scaling
    )
    if log_sums.shape[1] != len(query):
        log_sums = log_sums.transpose(1, 2)
    wide = torch.promote_types(query.dtype, torch.float32)
    return mixed[0], log_sums[0].to(wide).contiguous()


def _on_gpu(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, causal: bool, scaling: float
) -> Fused | None:
    """Flash attention (float16, bfloat16), or else the memory-efficient one (float32 too).

    The key-value heads stand where examples do, and the query heads of each beside a view of it: no
    copy of keys or values is made. Which sizes, types and processors a kernel takes torch tells.
    """
    grouped = query.view(len(key), -1, *query.shape[1:])  # [shared, group, query, dim]
    size = (-1, grouped.shape[1], -1, -1)
    inputs = grouped, key[:, None].expand(size), value[:, None].expand(size)
    what = SDPAParams(*inputs, None, 0.0, causal, False)
    if can_use_flash_attention(what):
        flash = torch.ops.aten._scaled_dot_product_flash_attention
        mixed, log_sums = flash(*inputs, 0.0, causal, scale=scaling)[:2]
    elif can_use_efficient_attention(what):
        efficient = torch.ops.aten._scaled_dot_product_efficient_attention
        mixed, log_sums = efficient(*inputs, None, True, 0.0, causal, scale=scaling)[:2]
    else:
        return None
    # The efficient kernel rounds the number of queries up.
    return mixed.flatten(0, 1), log_sums[..., : query.shape[1]].flatten(0, 1).contiguous()
