"""What does the control add to an atlas, in processor time and in memory?

python -m benchmarks.control [--rounds N] [--only NAME] [--report]

Runs the command line itself, in a process for each run, with and without `--control random`, in
turn. Three shapes: the demo; one input of 16,384 tokens and a decoder of one layer and two heads;
five inputs of 8,192 tokens and a decoder of four layers. Time is that of the processor, of whole
processes; ratios are formed within a round. PYTHONPATH=OTHER/src measures another checkout.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from benchmarks.timing import Row, interleave, options, table

LIMIT = 1.10  # ours: of the time without a control
LIMIT_OF_MEMORY = 1.05
NONE, RANDOM = "none", "random"
SUMS = ("--analyses", "surface,entropy,norms")
# Name -> documents, tokens of each, layers, heads, and what the command has beside them.
LONG = {
    "one input of 16,384 tokens": (1, 16_384, 1, 2, SUMS),
    "five inputs of 8,192 tokens": (5, 8_192, 4, 4, ()),
}
# In a process of its own: a process starts with the peak of its parent.
MAKE_MODEL = """
import sys, torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
folder, layers, heads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
bytes_ = sorted(pre_tokenizers.ByteLevel.alphabet())
tokenizer = Tokenizer(models.BPE({c: n for n, c in enumerate([*bytes_, "<eos>"])}, []))
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
ends = dict(bos_token="<eos>", eos_token="<eos>")
PreTrainedTokenizerFast(tokenizer_object=tokenizer, **ends).save_pretrained(folder)
torch.manual_seed(0)
size = dict(hidden_size=32 * heads, intermediate_size=64 * heads, num_hidden_layers=layers)
size |= dict(num_attention_heads=heads, num_key_value_heads=heads, vocab_size=257)
size |= dict(max_position_embeddings=1 << 17, bos_token_id=256, eos_token_id=256)
LlamaForCausalLM(LlamaConfig(**size)).save_pretrained(folder)
"""


def write_text(file: Path, documents: int, tokens: int) -> None:
    """Documents of made words of seven letters, a token each byte."""
    draw = random.Random(0)
    letters = "etaoinshrdlucmfwypvbgkjqxz"

    def word() -> str:
        return "".join(letters[int(26 * draw.random() ** 2)] for _ in range(7))

    file.write_text(
        "\n\n".join(" ".join(word() for _ in range(tokens // 8)) for _ in range(documents))
    )


def children() -> float:
    """Seconds of the processor that finished processes took."""
    times = os.times()
    return times.children_user + times.children_system


def run(folder: Path, what: Sequence[str], control: str, peaks: dict[str, int]) -> None:
    """One run of the command line; its peak of memory in bytes is kept by its control."""
    shutil.rmtree(folder / control, ignore_errors=True)  # a finished run would not be read again
    command = [sys.executable, "-m", "headscope", "atlas", *what, "-o", str(folder / control)]
    command += ["--control", control, "--quiet", "--linears", "stock"]
    with (folder / "log").open("w+") as log:
        process = subprocess.Popen([*command, "--threads", "1"], stdout=log, stderr=log)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            log.seek(0)
            raise SystemExit(f"{' '.join(command)} failed:\n{log.read()}")
    size = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    peaks[control] = max(peaks.get(control, 0), size)


def shapes(folder: Path) -> dict[str, list[str]]:
    """Name -> arguments of `headscope atlas`; models and texts are made."""
    made = {"demo": ["demo", "--demo"]}
    for number, (name, (documents, tokens, layers, heads, more)) in enumerate(LONG.items()):
        model, text = folder / f"model-{number}", folder / f"{number}.txt"
        write_text(text, documents, tokens)
        shape = (str(model), str(layers), str(heads))
        subprocess.run([sys.executable, "-c", MAKE_MODEL, *shape], check=True, capture_output=True)
        made[name] = [str(model), "--text", str(text), "--max-length", str(tokens), *more]
    return made


def rows(folder: Path, what: Sequence[str], peaks: dict[str, int]) -> list[Row]:
    """The run without a control, and the same with it."""

    def of(control: str) -> Callable[[], None]:
        return partial(run, folder, what, control, peaks)

    return [
        Row(NONE, of(NONE), 1.0, clock=children),
        Row(RANDOM, of(RANDOM), 1.0, {NONE: LIMIT}, clock=children),
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print a table for each shape."""
    parser = options("control", __doc__, examples=None, rounds=3)
    parser.add_argument("--only", help="shapes whose names hold this")
    parser.add_argument("--report", action="store_true", help="write the reports, too")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for shape, what in shapes(folder).items():
            if given.only and given.only not in shape:
                continue
            peaks = dict[str, int]()
            both = rows(folder, [*what, *(["--no-report"] * (not given.report))], peaks)
            interleave(both, rounds=given.rounds, clock="cpu")
            ratio = peaks[RANDOM] / peaks[NONE]
            print(f"{shape}\n\n{table(both, stock=NONE, fast=NONE)}\n")
            memory = ", ".join(f"{size / 2**20:,.0f} MiB" for size in peaks.values())
            verdict = "PASS" if ratio <= LIMIT_OF_MEMORY else "miss"
            print(f"Peak memory: {memory}; × {ratio:.2f} {verdict}\n", flush=True)


if __name__ == "__main__":
    main()
