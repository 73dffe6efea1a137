"""Retrieval heads: which heads copy a needle out of a haystack (Wu et al. 2024).

At the step that should tell w_t of a needle w_1 … w_k (`needles`) a head hits if the token that it
attends to most is w_t in the needle. A head's score is the share of the needle's tokens that it
hits, the mean over runs that the model answers.

The authors let the model write an answer, count its steps and keep runs of ROUGE-1 recall above
0.5: see `retrieved`. Here the right answer is read, distinct tokens are counted, and runs are kept
where more than half of the tokens are what the model holds most likely: where it answers rightly
both are the same. The same rows tell QRHead's score, LOCOS and the streaming share.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from headscope.core.accumulators import Float64, Ints
from headscope.experiments.circuits.needles import Needles, ids_of
from headscope.model.batch import to_float64
from headscope.model.checkpoint import quietly
from headscope.model.instrument import Instrument
from headscope.model.key_value_cache import cut, going_on, whole_cache
from headscope.model.language_model import TokenLoss
from headscope.model.layer import LayerView
from headscope.model.model import Model, evaluating, run_network
from headscope.run.shard_files import State

NOTHING = " N/A"  # Zhang et al.: the query that asks for nothing
ANSWERED = 0.5  # Wu et al.: of the needle's tokens
WINDOWS = ((4, 64), (128, 256))  # first and latest tokens; Xiao et al. 2025: the second
Looking = Callable[[LayerView, torch.Tensor], None]


def retrieved(
    model: Model,
    made: Needles,
    runs: Sequence[int],
    unembedding: torch.Tensor,
    *,
    whole: int | None,
    steps: int = 0,
) -> State:
    """Scores of attention at the question and the answer of some runs, [run, layer, head].

    hits        share of the needle's tokens that get the most attention when they are predicted
    attention to each of the needle's tokens when it is predicted, mean over them
    qr_score    attention from the question to the needle's sentence, mean over the question's rows,
                less that from the query “N/A” (Zhang et al. 2025)
    locos       Σ_j α_tj u·f_h(x_j) for the token u to predict, over the needle, less as
                many other tokens' mean share of it; mean over steps (Gema et al. 2026)
    streaming   [.., window] attention from the answer to first and latest tokens; NaN where a step
                sees no others
    recall      [run] share of the tokens that the model holds most likely

    With steps, the model also writes an answer of its own, as Wu et al. count it:

    step_hits    steps that attend most to a token of the needle, and write it, by the needle's
                 tokens: may pass 1, as a token copied twice counts twice
    step_recall  [run] of the needle's tokens, those written (ROUGE-1)

    unembedding  [token, model] see `WeightMaps`
    whole        inputs of more tokens are read without whole maps; None: none are
    steps        tokens of a written answer at most; it ends with the line; 0: none is written
    """
    reader, by_run = _Reader(model, whole), dict[int, State]()
    for run in sorted(runs, key=lambda run: (made.haystack[run], -made.depth[run])):
        by_run[run] = _Reading(reader, made, run).all(unembedding, steps)
    return _stacked([by_run[run] for run in runs])


class _Reader:
    """Reads one input after another; the tokens that it shares with the start of the input before
    are not read again, where the network keeps all of its keys and values.

    So the deepest needle of a haystack comes first: the next one shares all that is before it.
    """

    def __init__(self, model: Model, whole: int | None) -> None:
        self.model, self.whole = model, whole
        self._ids, self._kept = np.zeros(0, np.int64), None  # what was read last, and its keys

    def read(self, look: Looking, ids: Ints, first: int, right: Ints) -> torch.Tensor:
        """[token, vocabulary] logits at the last places, one for each of the right tokens.

        look   (layer, its attention [head, row, key] from the first row on)
        first  before which no row is looked at
        """
        kept, more = self.after(ids, first)
        network, device = self.model.network, self.model.device
        some = torch.from_numpy(ids[kept:])[None].to(device)
        rows = torch.arange(first - kept, len(ids) - kept, device=device)[None]
        last = np.arange(len(ids) - kept - len(right), len(ids) - kept)
        objective = TokenLoss("last", [last], [right])
        observers = [lambda view: look(view, view.rows(rows)[0])]
        with (
            torch.inference_mode(),
            evaluating(network),
            objective.asking(network, [0]),
            Instrument(network, observers=observers, whole=None if kept else self.whole),
        ):
            seen = torch.ones((1, len(ids)), device=device)
            answer = run_network(network, some, seen, use_cache=True, **more)
        if (cache := whole_cache(answer)) is not None:
            self._ids, self._kept = ids, cache
        logits: torch.Tensor = answer.logits.flatten(0, -2)
        return logits

    def after(self, ids: Ints, first: int) -> tuple[int, dict[str, Any]]:
        """How many of the tokens before the first row need not be read again, and the argument of
        a pass that goes on after them.
        """
        size = min(len(self._ids), first)
        alike = int(np.cumprod(self._ids[:size] == ids[:size]).sum())
        if self._kept is None or alike < 2:  # the opening token alone
            return 0, {}
        cut(self._kept, alike)
        self._ids = ids[:alike]
        return alike, going_on(self.model.network, self._kept)


class _Reading:
    """Reads one run."""

    def __init__(self, reader: _Reader, made: Needles, run: int) -> None:
        self.reader, self.model = reader, reader.model
        device = self.model.device
        self.ids, self.right = made.examples[run].input_ids, made.right[run]
        self.asked = made.asked(run)
        self.hay = self.asked[: len(self.asked) - made.question[run]]
        self.at = len(self.asked) - 1 + torch.arange(len(self.right), device=device)[:, None]
        self.places = torch.from_numpy(made.places[run]).to(device)
        ends = int(self.places[0]) - made.sentence[run], int(self.places[-1]) + 2  # a full stop
        self.sentence = slice(*ends)

    def all(self, unembedding: torch.Tensor, steps: int) -> State:
        """The numbers of `retrieved`."""
        numbers = self._of_right_answer(unembedding)
        numbers["qr_score"] -= self._of_nothing()
        return numbers | (self._of_own_answer(steps) if steps else {})

    def _of_right_answer(self, unembedding: torch.Tensor) -> State:
        speaks, by_layer = unembedding[self.right].to(self.model.device), list[State]()

        def look(view: LayerView, rows: torch.Tensor) -> None:
            answer = rows[:, -len(speaks) :]  # [head, step, key]
            question = rows[:, : rows.shape[1] + 1 - len(speaks)]  # its last row tells w_1
            parts = {
                "hits": (answer.argmax(-1) == self.places).double().mean(-1),
                "attention": answer[..., self.places].diagonal(0, -2, -1).mean(-1),
                "qr_score": question[..., self.sentence].sum(-1).mean(-1),
                "locos": self._locos(view, answer, speaks),
                "streaming": self._streaming(answer),
            }
            by_layer.append({name: to_float64(part) for name, part in parts.items()})

        logits = self.reader.read(look, self.ids, len(self.hay), self.right)
        best = logits.argmax(-1).cpu().numpy()
        return _stacked(by_layer) | {"recall": np.mean(best == self.right)}

    def _locos(
        self, view: LayerView, answer: torch.Tensor, speaks: torch.Tensor
    ) -> torch.Tensor:  # [head]
        assert view.values is not None
        reads = torch.einsum("hdm,tm->htd", view.projection.weight.to(speaks), speaks)
        worth = answer * (reads @ view.values[0].to(reads).mT)  # [head, step, key]
        needle, size = worth[..., self.places].sum(-1), len(self.places)
        others = self.at[:, 0] + 1 - size  # that a step sees
        return (needle - (worth.sum(-1) - needle) * size / others).mean(-1)

    def _streaming(self, answer: torch.Tensor) -> torch.Tensor:  # [head, window]
        key, shares = torch.arange(answer.shape[-1], device=answer.device), []
        for first, last in WINDOWS:
            near = (key < first) | (key > self.at - last)  # [step, key]
            seen = self.at[:, 0] >= first + last
            shares.append((answer * near).sum(-1)[:, seen].mean(-1))
        return torch.stack(shares, -1)

    def _of_nothing(self) -> Float64:
        """[layer, head] attention from the query “N/A” in place of the question."""
        nothing = ids_of(self.model, NOTHING)
        every = self._last_rows(np.array([*self.hay, *nothing]), len(nothing))
        return np.stack([to_float64(rows[..., self.sentence].sum(-1).mean(-1)) for rows in every])

    def _of_own_answer(self, steps: int) -> State:
        network: Any = self.model.network
        ids = torch.from_numpy(self.asked)[None].to(self.model.device)
        with torch.inference_mode(), evaluating(network), quietly():
            answer = network.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                max_new_tokens=steps,
                do_sample=False,
                num_beams=1,
                pad_token_id=0,
                **self.reader.after(self.asked, len(self.hay))[1],
            )[0, len(self.asked) :].tolist()
        decode = self.model.tokenizer.decode
        ends = [at for at, one in enumerate(answer) if "\n" in decode([one])]
        answer = answer[: ends[0] + 1 if ends else None]  # the line's end is a step, as theirs
        every = np.array([*self.asked, *answer[:-1]])
        copied = []
        for rows in self._last_rows(every, len(answer)):
            most = rows.argmax(-1).cpu().numpy()  # [head, step]
            hits = np.isin(most, self.places.cpu().numpy()) & (every[most] == answer)
            copied.append(hits.sum(-1) / len(self.right))
        there = Counter(self.right.tolist()) & Counter(answer)
        recall = there.total() / len(self.right)
        return {"step_hits": np.stack(copied), "step_recall": np.array(recall)}

    def _last_rows(self, ids: Ints, count: int) -> list[torch.Tensor]:
        """By layer [head, row, key] attention of the last tokens of an input."""
        by_layer = list[torch.Tensor]()
        first, none = len(ids) - count, np.zeros(1, np.int64)
        self.reader.read(lambda _, rows: by_layer.append(rows), ids, first, none)
        return by_layer


def _stacked(parts: Sequence[State]) -> State:
    return {name: np.stack([one[name] for one in parts]) for name in parts[0]}
