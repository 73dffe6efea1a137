"""What heads do on random tokens that come twice: drawn again here, and looked at in float64."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from .judging import number
from .network import Array, Network
from .pattern import HEAD, Match, Pattern
from .totals import Quantity, Totals
from .world import places


class MadeWorld:
    """A decoder on inputs [BOS r₁ … rₙ rₖ … rₙ r₁ … ], and on as many whose second half is new."""

    def __init__(
        self,
        folder: str | Path,
        *,
        sequences: int,
        length: int,
        seed: int = 0,
        labels: tuple[tuple[str, str, str], ...] = (),
    ) -> None:
        self.sequences, self.length, self.seed, self.labels = sequences, length, seed, labels
        self.network = Network(folder)
        self.layers, self.heads = self.network.layers, self.network.heads
        whole = AutoModelForCausalLM.from_pretrained(folder).double().eval()
        self.unembedding = whole.get_output_embeddings().weight.detach().numpy()
        self.scale = self.network.network.norm.weight.detach().numpy()
        self.whole = whole
        self.tokenizer = AutoTokenizer.from_pretrained(folder)

    def drawn(self, which: int) -> tuple[Array, Array, int]:
        """Ids of the first half, and of another to follow it; by how much a repeat is turned."""
        tokenizer, size, n = self.tokenizer, len(self.unembedding), self.length
        added = [*tokenizer.all_special_ids, *tokenizer.added_tokens_decoder]
        words = np.setdiff1d(np.arange(min(len(tokenizer), size)), added)
        text = f"{self.seed}\x1frepeats\x1f{which}".encode()
        seed = int.from_bytes(hashlib.blake2b(text, digest_size=16).digest(), "big")
        draw = np.random.default_rng(seed)
        both = draw.choice(words, 2 * n, replace=False)
        return both[:n], both[n:], int(draw.integers(n - 2))

    @property
    def opening(self) -> int:
        t = self.tokenizer
        return next(i for i in (t.bos_token_id, t.cls_token_id, t.eos_token_id) if i is not None)

    @cached_property
    def totals(self) -> Totals:
        totals, n = Totals(), self.length
        again = np.arange(1 + n, 1 + 2 * n)  # queries of the second half
        queries = np.arange(2, 1 + 2 * n)  # whose previous token was drawn
        for which in range(self.sequences):
            name, (half, other, turn) = str(which), self.drawn(which)
            ids = [self.opening, *half.tolist(), *np.roll(half, -turn).tolist()]
            maps = self._maps(ids)
            fresh = self._maps([self.opening, *half.tolist(), *other.tolist()])
            same = 1 + (np.arange(n) + turn) % n  # where the token stood before
            totals.add("induction", name, maps[..., again, same + 1].mean(-1))
            totals.add("duplicate", name, maps[..., again, same].mean(-1))
            totals.add("previous", name, maps[..., queries, queries - 1].mean(-1))
            totals.add("induction, new", name, fresh[..., again, same + 1].mean(-1))
            totals.add("duplicate, new", name, fresh[..., again, same].mean(-1))
            earlier = [maps[..., i, 1 : i - 1].mean(-1) for i in range(3, 1 + 2 * n)]
            totals.add("previous, new", name, np.mean(earlier, axis=0))
            self._copying(totals, name, ids, maps)
            known = np.flatnonzero(same[:-1] < n)  # what came after stands there again
            totals.add("told again", name, self._right(ids, n + 1 + known))
        return totals

    def _maps(self, ids: list[int]) -> Array:
        with torch.no_grad():
            looked = self.network.network(input_ids=torch.tensor([ids]), output_attentions=True)
        return np.stack([one[0].double().numpy() for one in looked.attentions])

    def _right(self, ids: list[int], places: Array) -> float:
        """The mean probability of the right next token."""
        with torch.no_grad():
            logits = self.whole(input_ids=torch.tensor([ids])).logits[0, places]
        right = torch.tensor(ids)[places + 1]
        return float(torch.softmax(logits, -1)[torch.arange(len(right)), right].mean())

    def _copying(self, totals: Totals, name: str, ids: list[int], maps: Array) -> None:
        """What of the attention of the second half goes to tokens that raise themselves most."""
        n, kept = self.length, list[Array]()
        hooks = [
            block.self_attn.v_proj.register_forward_pre_hook(
                lambda _, a: kept.append(a[0][0].numpy())
            )
            for block in self.network.blocks
        ]
        with torch.no_grad():
            self.network.network(input_ids=torch.tensor([ids]))
        for hook in hooks:
            hook.remove()
        tokens = sorted(set(ids[1:]))
        into = (self.unembedding[tokens] - self.unembedding.mean(0)) * self.scale  # [token, d]
        own = np.array([tokens.index(i) for i in ids[1:]])
        share = np.zeros((self.layers, self.heads, 2))
        for layer, (block, x) in enumerate(zip(self.network.blocks, kept, strict=True)):
            for head, (w_v, b_v, w_o) in enumerate(self.network.value_output(block)):
                raised = ((x[1:] @ w_v + b_v) @ w_o) @ into.T  # [source, token]
                most = raised.argmax(-1) == own
                most &= raised[np.arange(2 * n), own] > 0
                given = maps[layer, head, 1 + n :, 1:]  # [query, source]
                share[layer, head] = given[:, most].sum() / n, given.sum() / n
        totals.add("copied", name, share[..., 0])
        totals.add("copied of drawn", name, share[..., 0], share[..., 1])


def _of(name: str) -> Callable[[MadeWorld, Match], Quantity]:
    return lambda w, m: w.totals[name][places(m["head"])]


def _number_of_labels(w: MadeWorld, m: Match) -> list[str]:
    title = m["title"][:1].lower() + m["title"][1:]
    count = len({head for head, name, _ in w.labels if name == title})
    return [] if number(m["n"]) == count else [f"says {m['n']} heads, {count} have the label"]


def _without_label(w: MadeWorld, m: Match) -> list[str]:
    """What the label's own numbers say of each kind is checked where it is said of a head."""
    there = {name for _, name, _ in w.labels} & set(m["kinds"].split("; "))
    return [f"says that no head has {', '.join(there)}, and some have the label"] if there else []


RULES: Mapping[str, str] = {
    "Induction": "induction",
    "Duplicate token": "duplicate",
    "Previous token, made inputs": "previous",
    "Copying": "copied",
}
PATTERNS = (
    Pattern(
        "induction",
        HEAD + "attends to what came after the same token before, {share%}; to the "
        "same places without a repeat {usual%}$",
        {"share": _of("induction"), "usual": _of("induction, new")},
    ),
    Pattern(
        "duplicate token",
        HEAD + "attends to the same token before, {share%}; to the same places "
        "without a repeat {usual%}$",
        {"share": _of("duplicate"), "usual": _of("duplicate, new")},
    ),
    Pattern(
        "previous token",
        HEAD + "attends to the previous of random tokens, {share%}; to an "
        "earlier token at random {usual%}$",
        {"share": _of("previous"), "usual": _of("previous, new")},
    ),
    Pattern(
        "copying",
        HEAD + "gives {share%} of its attention to tokens that raise themselves most "
        "through it, {part%} of what random tokens get$",
        {"share": _of("copied"), "part": _of("copied of drawn")},
    ),
    Pattern(
        "copying, said of all attention",
        HEAD + "speaks for what it attends to: {share%} of its "
        "attention goes to tokens that raise themselves most$",
        {"share": _of("copied")},
    ),
    Pattern(
        "right again",
        r"^Where random tokens come again so that the next can be known, the model "
        r"gives it a probability of {share%}\.?$",
        {
            "share": lambda w, m: Quantity(
                w.totals["told again"].above, w.totals["told again"].below
            ),
        },
    ),
    *(
        Pattern(
            f"{title}, on the first screen",
            r"(?P<head>L\d+·H\d+) {share%}",
            {"share": _of(name)},
            within=rf"^{title}, \d+ heads?: ",
        )
        for title, name in RULES.items()
    ),
    Pattern(
        "number of heads",
        rf"^(?P<title>{'|'.join(RULES)}), (?P<n>\d+) heads?: ",
        {},
        also=_number_of_labels,
    ),
    Pattern(
        "of no head",
        r"^Does not hold of any head: (?P<kinds>[^.]+)\.$",
        {},
        also=_without_label,
    ),
)
