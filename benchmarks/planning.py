"""What does the plan of a run cost: time against computing, memory against documents?

python -m benchmarks.planning [--documents N N …] [--texts N] [--json FILE]

Time: the same text is planned (read, cut into sentences, made tokens, hashed) and computed by a
random network of BERT-base's shape, in one thread each, CPU time. Memory: a fresh process plans
each number of short documents; the system tells its peak. The tokenizer is the demo model's.
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
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.memory import write_text

FASTER = 20.0  # times, that we ask of ourselves
GROWTH = 0.05  # of the peak, from the first size on
ROUNDS = 3  # of planning before computing; one more after each kind of it
DOCUMENTS = (10_000, 100_000, 1_000_000)

# In a process of its own, without torch; the tokenizer is all that planning asks of a model.
PLAN = """
import sys
from types import SimpleNamespace
from transformers import BertTokenizerFast
from headscope.corpus import TextCorpus
from headscope.model.request import place_of
from headscope.run.plan import make_plan
from headscope.run.settings import Settings
tokenizer = BertTokenizerFast.from_pretrained(place_of("demo"))
model = SimpleNamespace(tokenizer=tokenizer, positions=(512, ""), has_segments=True)
plan = make_plan(model, TextCorpus(sys.argv[1]), Settings())
assert plan.counts.documents == int(sys.argv[2]) and "torch" not in sys.modules
print(len({shard.partition for shard in plan.shards}))
"""


def write_documents(file: Path, documents: int) -> None:
    """Documents of one line with 3 to 20 common words."""
    draw = random.Random(0)
    words = [
        "the",
        "of",
        "and",
        "a",
        "cat",
        "dog",
        "sat",
        "was",
        "mat",
        "by",
        "on",
        "house",
        "river",
        "it",
        "slept",
        "they",
    ]
    with file.open("w") as out:
        for _ in range(documents):
            out.write(" ".join(draw.choices(words, k=draw.randint(3, 20))) + ".\n\n")


def peak(folder: Path, documents: int) -> dict[str, Any]:
    """Peak resident memory in bytes, partitions, and seconds by the clock and of CPU time."""
    corpus = folder / "corpus.txt"
    write_documents(corpus, documents)
    start = time.perf_counter()
    with (folder / "log").open("w+") as log:
        command = [sys.executable, "-c", PLAN, str(corpus), str(documents)]
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - start
        log.seek(0)
        told = log.read()
    if process.returncode:
        raise SystemExit(f"{documents} documents: {told}")
    return {
        "documents": documents,
        "bytes": corpus.stat().st_size,
        "peak": usage.ru_maxrss * 1024,
        "partitions": int(told.split()[-1]),
        "seconds": seconds,
        "cpu": usage.ru_utime + usage.ru_stime,
    }


def speeds(folder: Path, texts: int, **shape: Any) -> dict[str, float]:
    """Tokens a second of planning, and of computing with all analyses and with none.

    shape  of the network; BERT-base unless told otherwise
    """
    from transformers import AutoTokenizer

    from benchmarks.inputs import bert
    from headscope import Settings, load
    from headscope.corpus import TextCorpus
    from headscope.model.model import forward
    from headscope.model.request import place_of
    from headscope.model.threads import threads_of
    from headscope.run import chosen_analyses, corpus_run
    from headscope.run.compute import Computer, ShardJob
    from headscope.run.plan import make_plan
    from headscope.run.sampled_analyses import streamed

    write_text(folder / "texts.txt", texts)
    corpus, settings = TextCorpus(folder / "texts.txt"), Settings(shard_tokens=4096)
    model = load(bert(**shape), tokenizer=AutoTokenizer.from_pretrained(place_of("demo")))
    names = streamed(chosen_analyses.possible_analyses(model, settings))
    with threads_of(1):
        plan = make_plan(model, corpus, settings)
        kept = chosen_analyses.annotated_analyses(names, plan, settings)
        scope = corpus_run.scope_of(
            model, plan, settings, corpus_run.frequency_ranks(plan, None, model)
        )
        seconds = {}
        planning = [_seconds(lambda: make_plan(model, corpus, settings))[0] for _ in range(ROUNDS)]
        for what, chosen in {"everything": kept, "nothing": []}.items():
            job = ShardJob(
                corpus, settings, scope, tuple(chosen), model.shape.stack, "stock", threads=1
            )
            computer = Computer(model, job)
            examples = computer.reader.examples(plan.shards[0])
            computer.read(examples[:2])  # compiles
            if chosen:
                seconds[what], _ = _seconds(lambda: computer.read(examples))  # noqa: B023
            else:
                batches = [model.batch([e]) for e in examples]
                seconds[what], _ = _seconds(
                    lambda: [forward(model.network, *b.inputs) for b in batches]  # noqa: B023
                )
            planning += [_seconds(lambda: make_plan(model, corpus, settings))[0]]
    tokens = sum(map(len, examples))
    computed = {what: tokens / each for what, each in seconds.items()}
    return {"planned": plan.counts.tokens / median(planning), **computed}


def _seconds(run: Any) -> tuple[float, Any]:
    start = time.process_time()
    result = run()
    return time.process_time() - start, result


def main(arguments: Sequence[str] | None = None) -> int:
    """Print both tables; 1 where a limit is missed."""
    parser = argparse.ArgumentParser("python -m benchmarks.planning", description=__doc__)
    parser.add_argument("--documents", type=int, nargs="*", default=DOCUMENTS)
    parser.add_argument("--texts", type=int, default=300)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args(arguments)
    sizes, speed = [], {}
    with tempfile.TemporaryDirectory() as name:
        for documents in given.documents:
            sizes.append(peak(Path(name), documents))
            print(
                "{documents:>12,} documents {partitions:>5} partitions {seconds:8.1f} s "
                "{cpu:7.1f} of CPU  peak {mebibytes:7.1f} MiB".format(
                    **sizes[-1], mebibytes=sizes[-1]["peak"] / 2**20
                ),
                flush=True,
            )
        if given.texts:
            speed = speeds(Path(name), given.texts)
    for what, each in speed.items():
        more = f", planning is {speed['planned'] / each:.0f} × as fast" * (what != "planned")
        print(f"{what:>12} {each:12,.0f} tokens a second{more}")
    missed = bool(speed) and speed["planned"] < FASTER * speed["nothing"]
    peaks = [size["peak"] for size in sizes]
    missed |= bool(peaks) and max(peaks) > (1 + GROWTH) * peaks[0]
    if given.json:
        given.json.write_text(json.dumps({"memory": sizes, "speed": speed}, indent=1))
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
