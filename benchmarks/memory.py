"""Does peak memory depend on how long the corpus is? It must not.

python -m benchmarks.memory [--documents N N] [--treebank] [--json FILE]

Runs the command line itself, all analyses and the report included, in a fresh process for each
size, and asks the system for the peak of that process. This process imports nothing large: a
child's peak starts with what its parent held when it was forked.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

LIMIT = 0.05  # growth of the peak that we allow ourselves
MODEL = "a random BERT of 4 layers × 4 heads, width 128, 2,000 word pieces"

# Run in a process of its own, which may import torch.
MAKE_MODEL = """
import sys, torch
from transformers import BertConfig, BertModel, BertTokenizerFast
words = [f"word{n}" for n in range(1993)]
vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", ",", *words]
BertTokenizerFast(vocab={w: n for n, w in enumerate(vocabulary)}).save_pretrained(sys.argv[1])
torch.manual_seed(0)
shape = dict(num_hidden_layers=4, num_attention_heads=4, hidden_size=128, intermediate_size=512)
BertModel(BertConfig(vocab_size=2000, **shape)).save_pretrained(sys.argv[1])
"""


def sentences(documents: int) -> Iterator[list[list[str]]]:
    """For each document one to six sentences of 4 to 25 words, common ones more often."""
    draw = random.Random(0)
    for _ in range(documents):
        yield [
            [f"word{int(1993 * draw.random() ** 3)}" for _ in range(draw.randint(4, 25))]
            for _ in range(draw.randint(1, 6))
        ]


def write_text(file: Path, documents: int) -> None:
    """Paragraphs of plain text."""
    with file.open("w") as out:
        for document in sentences(documents):
            out.writelines(" ".join(words).capitalize() + ".\n" for words in document)
            out.write("\n")


def write_treebank(file: Path, documents: int) -> None:
    """CoNLL-U: the words of a sentence in a chain of 40 relations."""
    with file.open("w") as out:
        for document in sentences(documents):
            out.write("# newdoc\n")
            for words in document:
                for n, word in enumerate(words):
                    relation = f"r{int(word[4:]) % 40}" if n else "root"
                    out.write(f"{n + 1}\t{word}\t_\tNOUN\tNN\t_\t{n}\t{relation}\t_\t_\n")
                out.write("\n")


def peak(folder: Path, documents: int, threads: int, *, kind: str) -> tuple[int, float]:
    """Peak resident memory in bytes and seconds of one run of the command line."""
    corpus, run = folder / f"{documents}.{kind}", folder / f"run-{documents}"
    {"text": write_text, "treebank": write_treebank}[kind](corpus, documents)
    command = [
        sys.executable,
        "-m",
        "headscope",
        "atlas",
        str(folder / "model"),
        f"--{kind}",
        str(corpus),
        "-o",
        str(run),
        "--threads",
        str(threads),
        "--quiet",
    ]
    start = time.perf_counter()
    with (folder / "log").open("w+") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            log.seek(0)
            raise SystemExit(f"{' '.join(command)} failed:\n{log.read()}")
    unit = 1 if sys.platform == "darwin" else 1024  # of ru_maxrss
    return usage.ru_maxrss * unit, time.perf_counter() - start


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure both sizes, print and keep what was found."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory")
    parser.add_argument("--documents", type=int, nargs=2, default=[1_000, 20_000])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--treebank", action="store_true", help="with trees, else plain text")
    parser.add_argument("--json", type=Path, metavar="FILE")
    given = parser.parse_args(arguments)
    kind = "treebank" if given.treebank else "text"
    print(
        f"{MODEL}; {kind}; headscope atlas, all analyses with report, {given.threads} thread(s)\n"
    )
    print("| documents | peak memory | seconds |\n|---:|---:|---:|")
    peaks = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run(
            [sys.executable, "-c", MAKE_MODEL, str(folder / "model")],
            check=True,
            capture_output=True,
        )
        for documents in given.documents:
            found, seconds = peak(folder, documents, given.threads, kind=kind)
            peaks.append(found)
            print(f"| {documents:,} | {found / 2**20:,.0f} MiB | {seconds:.0f} |", flush=True)
    growth = peaks[1] / peaks[0] - 1
    print(f"\ngrowth {growth:+.1%}: {'PASS' if growth <= LIMIT else 'miss'} (≤ {LIMIT:.0%})")
    if given.json is not None:
        numbers = {"documents": given.documents, "peak_bytes": peaks, "growth": growth}
        given.json.write_text(json.dumps(numbers, indent=2))


if __name__ == "__main__":
    main()
