"""Which heads find a needle in a haystack and hand it on, token by token (Wu et al. 2024)?

A run is [BOS, text, “The secret code of Lisbon is” w_1 … w_k “.”, text, “The secret code of Lisbon
is” w_1 … w_k], the w random tokens, each once. At the step that should tell w_t a head hits if the
token that it attends to most is w_t in the needle. A head's score is the share of the needle's
tokens that it hits, the mean over runs that the model answers.

The authors let the model write an answer, count its steps and keep runs of ROUGE-1 recall above
0.5. Here the right answer is read, distinct tokens are counted, and runs are kept where more than
half of the tokens are what the model holds most likely: where it answers rightly both are the same.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from headscope.core.accumulators import Float64, Ints, generator
from headscope.corpus import Corpus
from headscope.corpus.document import Example
from headscope.corpus.packing import padded_length
from headscope.errors import InputError
from headscope.experiments.circuits.made_inputs import (
    FEWEST,
    example_of,
    opening_token,
    plain_tokens,
)
from headscope.experiments.importance.objectives import TokenLoss
from headscope.model.batch import to_float64
from headscope.model.instrument import Instrument
from headscope.model.layer import LayerView
from headscope.model.model import Model, evaluating, run_network
from headscope.run.plan import encoder_for
from headscope.run.settings import Settings
from headscope.run.shard_files import State

PLACES = ["Lisbon", "Cairo", "Oslo", "Lima", "Kyoto", "Accra", "Quito", "Riga", "Hanoi", "Sofia"]
SAID = " The secret code of {place} is"
STEPS = 8  # tokens of a needle
ANSWERED = 0.5  # Wu et al.: of the needle's tokens


@dataclass(frozen=True)
class Needles:
    """Haystacks with a needle each, and its question and answer at the end.

    examples  what the model reads, the answer but for its last token
    right     [run, step] the needle's tokens
    places    [run, step] where they stand in the haystack
    depth     [run] share of the haystack before the needle
    """

    examples: list[Example]
    right: Ints
    places: Ints
    depth: Float64

    def first(self, count: int) -> "Needles":
        """The first runs alone."""
        one, few = self, slice(count)
        return Needles(one.examples[few], one.right[few], one.places[few], one.depth[few])


def needles(model: Model, corpus: Corpus, *, runs: int, haystack: int, seed: int) -> Needles:
    """Needles at even depths of a haystack of so many tokens, from the corpus's documents in turn.

    raises  InputError for fewer than FEWEST runs, a text that is shorter than the haystack, or
            inputs that are longer than the model takes
    """
    if runs < FEWEST:
        raise InputError(f"found {runs} needles; wanted {FEWEST} or more, or --haystack 0")
    text, first = _tokens(model, corpus, haystack * 2), opening_token(model)
    if len(text) < haystack:
        raise InputError(
            f"the text has {len(text)} tokens, and the haystack {haystack}; wanted a longer text, "
            f"or --haystack {len(text)} or less"
        )
    # So that a needle stands nowhere else.
    asking = [one for place in PLACES for one in _ids(model, SAID.format(place=place))]
    words = np.setdiff1d(plain_tokens(model), [*text, *asking, *_ids(model, ".")])
    if len(words) < STEPS:
        raise InputError(
            f"of the tokens of {model.name!r} {len(words)} are not in the text, and a needle wants "
            f"{STEPS}; give a shorter text, or --haystack 0"
        )
    start = [] if first is None else [first]
    found = Needles([], np.zeros((runs, STEPS), np.int64), np.zeros((runs, STEPS), np.int64),
                    np.arange(runs) / max(runs - 1, 1))  # fmt: skip
    for run in range(runs):
        draw = generator(seed, "needle", str(run))
        code = draw.choice(words, STEPS, replace=False)
        said = _ids(model, SAID.format(place=PLACES[run % len(PLACES)]))
        begin = int(draw.integers(len(text) - haystack + 1))
        hay = text[begin : begin + haystack]
        cut = round(float(found.depth[run]) * haystack)
        before = [*start, *hay[:cut], *said]
        ids = [*before, *code, *_ids(model, "."), *hay[cut:], *said, *code[:-1]]
        found.right[run], found.places[run] = code, len(before) + np.arange(STEPS)
        found.examples.append(
            example_of(np.array(ids, np.int64), f"needle {run}", "haystack", special=len(start))
        )
    longest = padded_length(max(map(len, found.examples)))
    if longest > model.limit:
        raise InputError(
            f"a haystack of {haystack} tokens makes inputs of {longest}, and {model.name!r} takes "
            f"{model.limit}: give --haystack {max(model.limit - longest + haystack, 0)} or less"
        )
    return found


def _ids(model: Model, text: str) -> list[int]:
    return list(model.tokenizer(text, add_special_tokens=False)["input_ids"])


def _tokens(model: Model, corpus: Corpus, wanted: int) -> Ints:
    """The first tokens of a corpus, document after document, without special ones."""
    encoder = encoder_for(model, Settings())

    def parts() -> Iterator[Ints]:
        count = 0
        for document in corpus:
            for example in encoder.encode(document):
                yield example.input_ids[~example.special]
                count += len(example)
            if count > wanted:
                return

    return np.concatenate([np.zeros(0, np.int64), *parts()])


def retrieved(model: Model, made: Needles, rows: Sequence[int], *, whole: int) -> State:
    """[run, …] of some runs: `hits` [run, layer, head] the share of steps that each head hits, and
    `recall` [run] that of the tokens that the model holds most likely.

    whole  inputs of more tokens are read without whole maps
    """
    network, found = model.network, list[State]()
    for row in rows:
        example, right = made.examples[row], made.right[row]
        at = len(example) - STEPS + np.arange(STEPS)
        told, batch = TokenLoss("needle", [at], [right]), model.batch([example])
        hits: list[Float64] = []
        queries = torch.from_numpy(at)[None].to(model.device)
        places = torch.from_numpy(made.places[row]).to(model.device)

        def look(
            view: LayerView, queries: torch.Tensor = queries, places: torch.Tensor = places,
            hits: list[Float64] = hits,
        ) -> None:  # fmt: skip
            most = view.rows(queries).argmax(-1)[0]  # [head, step]
            hits.append(to_float64((most == places).double().mean(-1)))

        with (
            torch.inference_mode(), evaluating(network), told.asking(network, [0]),
            Instrument(network, observers=[look], whole=whole),
        ):  # fmt: skip
            best = run_network(network, *batch.inputs).logits.argmax(-1).cpu().numpy()
        found.append({"hits": np.stack(hits), "recall": np.mean(best.ravel() == right)})
    return {name: np.stack([one[name] for one in found]) for name in ("hits", "recall")}
