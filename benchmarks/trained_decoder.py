"""Does a small decoder that was trained on repeats show induction, and which head tells it?

python -m benchmarks.trained_decoder [--steps N] [--seed N]

Two layers of four heads, taught by transformers' Trainer to tell what came after the same token
before. Wanted: a head whose induction score is above 0.9, and whose keys read what the head of the
previous token writes, above the spread of random rotations. About a minute and a half of CPU.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import xarray as xr
from tokenizers import Tokenizer, models, pre_tokenizers
from torch.utils.data import Dataset
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedTokenizerFast,
    Trainer,
    TrainingArguments,
    default_data_collator,
)

import headscope as hs
from headscope.core.head_names import HeadNames
from headscope.core.results import largest_first
from headscope.experiments.circuits.section import SURE
from headscope.model.checkpoint import quietly
from headscope.model.language_model import LanguageModel
from headscope.model.model import load

WORDS, TOKENS = 64, 48
CIRCLES, JUMPS = (8, 33), 0.2  # tokens; share of steps to any of them
BATCH, RATE, STEPS = 64, 3e-3, 2000
LENGTH, WANTED = 16, 0.9


def walks(count: int, *, seed: int | Sequence[int]) -> list[dict[str, Any]]:
    """[BOS x_1 x_2 …]: each token has one successor in an input, but for jumps; so no distance, and
    no place, tells what comes. Asked are the tokens that came after the same token before.
    """
    draw, found = np.random.default_rng(seed), []
    for some in draw.integers(*CIRCLES, count).tolist():
        circle = 1 + draw.permutation(WORDS)[:some]
        steps = np.where(draw.random(TOKENS) < JUMPS, draw.integers(some, size=TOKENS), 1)
        steps[0] = 0
        ids = np.concatenate([[0], circle[np.cumsum(steps) % some]])
        pairs = list(zip(ids[:-1].tolist(), ids[1:].tolist(), strict=True))
        seen = [pair in pairs[:at] for at, pair in enumerate(pairs)]
        found.append({"input_ids": ids, "labels": np.where([False, *seen], ids, -100)})
    return found


def tokenizer() -> PreTrainedTokenizerFast:
    """One token a word."""
    words = {"<s>": 0} | {f"w{at}": at for at in range(1, WORDS + 1)}
    core = Tokenizer(models.WordLevel(words, unk_token="w1"))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(
        tokenizer_object=core, bos_token="<s>", model_max_length=2 * TOKENS
    )


class Walks(Dataset[dict[str, Any]]):
    """Walks for so many steps; each is drawn by its number alone."""

    def __init__(self, steps: int, *, seed: int) -> None:
        self.count, self.seed = steps * BATCH, seed

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, at: int) -> dict[str, Any]:
        return walks(1, seed=(self.seed, at))[0]


def decoder(*, seed: int) -> GPT2LMHeadModel:
    """A GPT-2 of two layers of four heads, before it learns."""
    torch.manual_seed(seed)
    config = GPT2Config(
        vocab_size=WORDS + 1,
        n_positions=2 * TOKENS,
        n_embd=64,
        n_layer=2,
        n_head=4,
        n_inner=64,
        resid_pdrop=0,
        embd_pdrop=0,
        attn_pdrop=0,
        bos_token_id=0,
        eos_token_id=0,
    )
    return GPT2LMHeadModel(config)


def trainer(folder: str | Path, steps: int, *, seed: int, **more: Any) -> Trainer:
    """A Trainer that teaches such a decoder; `more` goes to its arguments."""
    arguments: dict[str, Any] = {
        "max_steps": steps,
        "per_device_train_batch_size": BATCH,
        "learning_rate": RATE,
        "warmup_steps": steps // 20,
        "weight_decay": 0.1,
        "lr_scheduler_type": "cosine",
        "seed": seed,
        "save_strategy": "no",
        "report_to": "none",
        "disable_tqdm": True,
        "logging_strategy": "no",
        "use_cpu": True,
    }
    return Trainer(
        decoder(seed=seed),
        TrainingArguments(str(folder), **(arguments | more)),
        train_dataset=Walks(steps, seed=seed),
        data_collator=default_data_collator,
        processing_class=tokenizer(),
    )


def trained(steps: int, *, seed: int) -> LanguageModel:
    """That decoder after so many steps."""
    with tempfile.TemporaryDirectory() as folder, quietly():
        teacher = trainer(folder, steps, seed=seed)
        teacher.train()
    return LanguageModel(load(teacher.model.eval(), tokenizer=tokenizer()), "causal")


def report(found: xr.Dataset) -> list[str]:
    """What was wanted, and what is there."""
    heads = found.sizes["head"]
    induces, before = (
        found["score"].sel(circuit=kind).values for kind in ("induction", "previous_token")
    )
    reader, writer = largest_first(induces)[0], largest_first(before)[0]
    pair = {
        "way": "key",
        "reader": reader[0] * heads + reader[1],
        "writer": writer[0] * heads + writer[1],
    }
    read, above = (float(found[name].sel(pair)) for name in ("composition", "composition_above"))
    names, chance = HeadNames(()), float(found.attrs["width"]) ** -0.5
    passed = {True: "PASS", False: "miss"}
    return [
        f"told again: {float(found['told_again']):.3f}",
        f"induction, {names.head(*reader)}: {induces[reader]:.3f} "
        f"{passed[bool(induces[reader] > WANTED)]} (> {WANTED})",
        f"previous token, {names.head(*writer)}: {before[writer]:.3f}",
        f"K-composition of the two: {read:.3f}, at random {chance:.3f}, {above:.1f} standard "
        f"deviations above {passed[above > SURE]} (> {SURE:g})",
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, look and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.trained_decoder")
    parser.add_argument("--steps", type=int, default=STEPS, help=f"of {BATCH} inputs ({STEPS})")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    model = trained(given.steps, seed=given.seed)
    asked: dict[str, Any] = {"sequences": 100, "successors": False, "control": "none"}
    found = hs.circuits(model, **asked, length=LENGTH)["circuits"]
    print(
        f"after {given.steps} steps, {LENGTH} random tokens that come twice",
        *report(found),
        sep="\n",
    )


if __name__ == "__main__":
    main()
