"""The keys that each query of a long input may attend to, for any block of queries."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from headscope.core.accumulators import Ints
from headscope.errors import ModelError

OPEN = ("causal", "every")  # what needs no mask: all keys up to the query's own, or all
ROWS = 64  # of one block of queries: a block then stays in the cache


@dataclass(frozen=True)
class LongMask:
    """Which keys a query may attend to, told for any block of them.

    function  (example, head, query, key) -> bool, over index tensors that are broadcast
    lengths   [example] real tokens
    kind      "causal" or "every", if it says no more than that; else ""
    queries   number of them, padding included
    keys      likewise
    """

    function: Callable[..., torch.Tensor]
    lengths: tuple[int, ...]
    kind: str
    queries: int
    keys: int
    device: torch.device
    _reach: dict[int, tuple[Ints, Ints]] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of(
        cls,
        batch_size: int,
        q_length: int,
        kv_length: int,
        q_offset: int = 0,
        kv_offset: int = 0,
        *,
        mask_function: Callable[..., torch.Tensor],
        attention_mask: torch.Tensor | None = None,
        allow_is_causal_skip: bool | None = None,
        allow_is_bidirectional_skip: bool = False,
        local_size: int | None = None,
        use_vmap: bool = False,
        device: torch.device | str = "cpu",
        **_other: Any,
    ) -> "LongMask":
        """What transformers asks a mask function for, with the names that it gives."""
        if use_vmap or q_offset or kv_offset:
            what = "a mask of the model's own making" if use_vmap else "a cache of earlier tokens"
            raise ModelError(
                f"{what} cannot be read in blocks; wanted an input that is read by whole maps: "
                f"--whole-maps {max(q_length, kv_length)}"
            )
        kind = "every" if allow_is_bidirectional_skip else "causal" if allow_is_causal_skip else ""
        if local_size is not None and local_size < kv_length:
            kind = ""
        lengths = _lengths(attention_mask, batch_size, kv_length)
        return cls(mask_function, lengths, kind, q_length, kv_length, torch.device(device))

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """[example, 1, query, key], as of a mask that is there."""
        return len(self.lengths), 1, self.queries, self.keys

    def block(self, example: int, query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
        """Which queries may attend to which keys: bool, index against index where broadcast."""
        one = torch.full((1,) * query.ndim, example, device=self.device)
        seen = self.function(one, torch.zeros_like(one), query, key)
        return seen.expand((query + key).shape)

    def reach(self, example: int) -> tuple[Ints, Ints]:
        """[query] the first key that each real query sees, and that behind the last; on the host.

        Found once for all layers, because the host waits for it.
        """
        if example not in self._reach:
            ends, n = [], self.lengths[example]
            keys = torch.arange(n, device=self.device)
            for rows in blocks(n, ROWS):
                seen = self.block(example, keys[rows.start : rows.stop, None], keys).byte()
                last = (n - seen.flip(-1).argmax(-1)) * seen.amax(-1)
                ends.append(torch.stack([seen.argmax(-1), last]))
            self._reach[example] = tuple(torch.cat(ends, 1).cpu().numpy())
        return self._reach[example]

    def __getattr__(self, name: str) -> Any:
        raise ModelError(
            f"this model reads {name!r} of its mask, which a mask in blocks does not have; "
            f"wanted an input that is read by whole maps: --whole-maps {self.keys}"
        )


def _lengths(padding: torch.Tensor | None, examples: int, keys: int) -> tuple[int, ...]:
    if padding is None:
        return (keys,) * examples
    real = padding.bool().cpu()
    lengths = real.sum(-1)
    if not torch.equal(real, torch.arange(real.shape[1]) < lengths[:, None]):
        raise ModelError("found padding before or among the tokens; wanted it after them")
    return tuple(lengths.tolist())


def blocks(count: int, most: int) -> Iterator[range]:
    """Consecutive ranges of limited length that cover 0 … count."""
    return (range(start, min(start + most, count)) for start in range(0, count, most))
