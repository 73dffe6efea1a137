"""Make `demo-decoder`: a small decoder in whose heads circuits are found.

python demo-decoder/train.py [--seed N] [--output FOLDER]

A Llama of three layers learns sentences that are made here, the sentences that come with headscope,
and rows of random tokens that repeat; of a row only those tokens count that can be known, and of a
gift only the name that is given to. About an hour and a half of one core.
tests/experiments/circuits/test_demo_decoder.py says what the model has to be able to do.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
    Trainer,
    TrainingArguments,
)

import headscope as hs
from headscope.experiments.circuits.prompts import (
    ANTONYM_FORMS,
    ANTONYMS,
    CAPITAL_FORMS,
    CAPITALS,
    CENTURIES,
    EVENTS,
    IOI,
    NAMES,
    OBJECTS,
    PLACES,
)

Rng = np.random.Generator
FOLDER = Path(__file__).parent / "headscope_demo_decoder" / "model"
START = "<s>"
VOCABULARY = 2048
JUMPS = 0.2  # share of steps to any token of a row


class Stage(NamedTuple):
    """A part of the training.

    steps, rate, inputs, tokens  how many steps, the highest rate, inputs of a step, tokens of each
    shares                       of the inputs: sentences, rows that repeat, gifts
    few, many                    half of the rows are made of so few tokens, others of up to so many
    periods                      tokens after which a row repeats
    """

    steps: int
    rate: float
    inputs: int
    tokens: int
    shares: tuple[float, float, float]
    few: int
    many: int
    periods: tuple[int, int]


STAGES = (
    Stage(3000, 3e-3, 32, 128, (0.6, 0.4, 0.0), VOCABULARY, VOCABULARY, (4, 60)),
    Stage(1600, 3e-3, 32, 128, (0.15, 0.5, 0.35), 64, VOCABULARY, (4, 60)),
    Stage(900, 3e-3, 64, 48, (0.0, 1.0, 0.0), 64, 64, (6, 28)),  # here heads learn to induce
    Stage(700, 2e-3, 32, 128, (0.3, 0.4, 0.3), 64, VOCABULARY, (4, 60)),
    Stage(600, 3e-3, 32, 128, (0.1, 0.8, 0.1), 512, VOCABULARY, (4, 60)),  # of all tokens
)
# A word with its space, two digits, other marks: so that a year is two tokens, as of large models.
PIECES = r" ?[A-Za-z]+| ?\d{1,2}| ?[^\sA-Za-z\d]+|\s+"


# --- text ---------------------------------------------------------------------------------------


def _one(rng: Rng, words: Sequence[str]) -> str:
    return words[rng.integers(len(words))]


def _gift(rng: Rng) -> str:
    """Two people, to whom one of them gives something, and who gives thanks."""
    text, receiver, giver = _given(rng)
    return f"{text} {receiver}. {receiver} thanked {giver}."


def _given(rng: Rng) -> tuple[str, str, str]:
    """A sentence without its last word, that word, and who gives."""
    first, second = rng.choice(NAMES.split(), 2, replace=False)
    giver, receiver = (first, second) if rng.integers(2) else (second, first)
    text = _one(rng, IOI).format(
        a=first,
        b=second,
        s=giver,
        place=_one(rng, PLACES.split()),
        object=_one(rng, OBJECTS.split()),
    )
    return text, receiver, giver


def _years(rng: Rng) -> str:
    """When something began and ended."""
    century = rng.integers(CENTURIES.start, CENTURIES.stop)
    start = rng.integers(2, 98)
    end = rng.integers(start + 1, 100)
    event = _one(rng, EVENTS.split())
    return f"The {event} lasted from the year {century}{start:02} to the year {century}{end:02}."


def _fact(forms: Sequence[str], pairs: str) -> Callable[[Rng], str]:
    known = [pair.split() for pair in pairs.split(", ")]

    def write(rng: Rng) -> str:
        word, answer = known[rng.integers(len(known))]
        return f"{_one(rng, forms).format(word)} {answer}."

    return write


def _list(rng: Rng) -> str:
    """A list that is read out twice or more."""
    things = rng.choice(
        [*OBJECTS.split(), *PLACES.split(), *NAMES.split()], rng.integers(3, 9), False
    )
    return f"First, {', '.join(things)}. Again: {', '.join(things)}."


@cache
def bundled() -> list[str]:
    """The sentences that come with headscope."""
    return [
        "".join(word.form + " " * word.space_after for word in passage.words or ()).strip()
        for document in hs.demo_corpus()
        for passage in document.passages
        if "coref" not in passage.id
    ]


def sentences(rng: Rng) -> Iterator[str]:
    """Sentences without end."""
    kinds = (
        _gift, _gift, _gift, _years, _list, _list,
        _fact(ANTONYM_FORMS, ANTONYMS), _fact(CAPITAL_FORMS, CAPITALS),
        lambda rng: _one(rng, bundled()),
    )  # fmt: skip
    while True:
        yield kinds[rng.integers(len(kinds))](rng)


def learned_tokenizer(*, seed: int) -> PreTrainedTokenizerFast:
    """Byte pairs learned from such sentences; every text has its tokens."""
    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PIECES), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    core.decoder = decoders.ByteLevel()
    draw = sentences(np.random.default_rng(seed))
    core.train_from_iterator(
        (next(draw) for _ in range(50_000)),
        trainers.BpeTrainer(
            vocab_size=VOCABULARY,
            special_tokens=[START],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    core.post_processor = processors.TemplateProcessing(
        single=f"{START} $A", pair=f"{START} $A $B", special_tokens=[(START, 0)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=core, bos_token=START, eos_token=START, model_max_length=1024
    )


# --- inputs -------------------------------------------------------------------------------------


def _told(rng: Rng, tokenizer: Any, stage: Stage) -> tuple[np.ndarray, np.ndarray]:
    """Sentences one after the other; all tokens count."""
    ids, draw = list[int](), sentences(rng)
    while len(ids) <= stage.tokens:
        ids += tokenizer((" " if ids else "") + next(draw), add_special_tokens=False)["input_ids"]
    row = np.array([0, *ids[: stage.tokens - 1]])
    return row, row


def _gifts(rng: Rng, tokenizer: Any, stage: Stage) -> tuple[np.ndarray, np.ndarray]:
    """Gifts one after the other; the names count that are given to."""
    ids, known = [0], [False]
    while len(ids) < stage.tokens:
        text, receiver, _ = _given(rng)
        for part in (f" {text}", f" {receiver}", "."):
            own = tokenizer(part, add_special_tokens=False)["input_ids"]
            ids += own
            known += [part == f" {receiver}"] * len(own)
    row = np.array(ids[: stage.tokens])
    return row, np.where(known[: stage.tokens], row, -100)


def _repeated(rng: Rng, tokenizer: Any, stage: Stage) -> tuple[np.ndarray, np.ndarray]:
    """Random tokens that come again and again; those that came after the same token count."""
    period = rng.integers(*stage.periods)
    pool = int(stage.few * (stage.many / stage.few) ** max(0.0, rng.uniform(-1, 1)))
    every = np.random.default_rng(0).permutation(np.arange(1, len(tokenizer)))
    circle = rng.choice(every[:pool], period, replace=False)
    jump = JUMPS * rng.integers(2)
    steps = np.where(
        rng.random(stage.tokens - 1) < jump, rng.integers(period, size=stage.tokens - 1), 1
    )
    row = np.concatenate([[0], circle[np.cumsum(steps) % period]])
    pairs = list(zip(row[:-1].tolist(), row[1:].tolist(), strict=True))
    seen, known = set[tuple[int, int]](), [False]
    for pair in pairs:
        known.append(pair in seen)
        seen.add(pair)
    return row, np.where(known, row, -100)


class Inputs(torch.utils.data.Dataset):
    """The inputs of a stage; each is drawn by its number alone."""

    def __init__(self, stage: Stage, tokenizer: Any, *, seed: Sequence[int]) -> None:
        self.stage, self.tokenizer, self.seed = stage, tokenizer, seed

    def __len__(self) -> int:
        return self.stage.steps * self.stage.inputs

    def __getitem__(self, at: int) -> dict[str, np.ndarray]:
        rng = np.random.default_rng((*self.seed, at))
        make = (_told, _repeated, _gifts)[rng.choice(3, p=self.stage.shares)]
        row, labels = make(rng, self.tokenizer, self.stage)
        return {"input_ids": row, "labels": labels}


def untrained(tokenizer: Any, *, seed: int) -> LlamaForCausalLM:
    """The network at its start."""
    torch.manual_seed(seed)
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=128,
            intermediate_size=256,
            num_hidden_layers=3,
            num_attention_heads=8,
            num_key_value_heads=8,
            max_position_embeddings=1024,
            tie_word_embeddings=True,
            attention_bias=True,  # with biases a head soon learns which token stands before
            bos_token_id=0,
            eos_token_id=0,
            initializer_range=0.06,
        )
    )


def train(network: LlamaForCausalLM, tokenizer: Any, at: int, *, seed: int) -> None:
    """One of STAGES."""
    stage = STAGES[at]
    inputs = Inputs(stage, tokenizer, seed=(seed, at))
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder,
            max_steps=stage.steps,
            per_device_train_batch_size=stage.inputs,
            learning_rate=stage.rate,
            warmup_steps=stage.steps // 20,
            weight_decay=0.1,
            lr_scheduler_type="cosine",
            seed=seed,
            save_strategy="no",
            report_to="none",
            logging_steps=100,
            disable_tqdm=True,
            use_cpu=True,
        )
        Trainer(network, arguments, train_dataset=inputs).train()


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, and write what `hs.load` reads."""
    parser = argparse.ArgumentParser(prog="python demo-decoder/train.py")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=FOLDER)
    given = parser.parse_args(arguments)
    tokenizer = learned_tokenizer(seed=given.seed)
    network = untrained(tokenizer, seed=given.seed)
    for at in range(len(STAGES)):
        train(network, tokenizer, at, seed=given.seed)
    network.eval().to(torch.float16).save_pretrained(given.output)  # half of the bytes
    tokenizer.save_pretrained(given.output)


if __name__ == "__main__":
    main()
