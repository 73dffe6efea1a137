"""How soon is a wrong request refused? `python -m benchmarks.wrong_requests [COMMAND...]`

Each line is run as a process of its own, in a folder with the small files below. It should be
refused (exit status 2) within ENOUGH seconds of processor time, which leaves no time to import
torch. Of the others it is printed how they end.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

ENOUGH = 0.7  # seconds of processor time
WANTED = 0.95  # share of the requests that should be refused so soon
FILES = {
    "a.txt": "A cat sat on a mat. It slept.\n",
    "empty.txt": "",
    "latin.txt": b"caf\xe9\n",
    "task/train.tsv": "text_a\tlabel\nfine\tgood\nawful\tbad\n",
    "task/dev.tsv": "text_a\tlabel\nfine\tgood\nawful\tbad\n",
    "prompts.tsv": "prompt\tanswer\nIt is a\tcat\n",
    "bad.json": "{",
    "notes": "a file",
    "empty/.keep": "",
    "pickled/config.json": '{"model_type": "bert"}',
    "pickled/pytorch_model.bin": b"\x80\x04",
}
# One request a line, of which each is wrong in one way. A model that has to be there is `demo`.
REQUESTS = """
atls
nosuch
help atls
atlas
atlas demo
atlas demo --demo --limt 3
atlas demo --demo --limit 0
atlas demo --demo --limit three
atlas demo --demo --device cud
atlas demo --demo --device gpu:x
atlas demo --demo --dtype float31
atlas demo --demo --long cut
atlas demo --demo --max-length 513
atlas demo --demo --analyses surfce
atlas demo --demo --set entropy.smoothing=2
atlas demo --demo --set entropy.smoothin=0.1
atlas demo --demo --relations nsbj
atlas demo --demo --workers 0
atlas demo --demo --shard 3/2
atlas demo --demo --frequency missing.txt
atlas demo --text missing.txt
atlas demo --text empty.txt
atlas demo --text latin.txt
atlas demo --treebank missing.conllu
atlas demo --segments missing.jsonl
atlas demo --column text --demo
atlas demo --annotate spacy:en --demo
atlas demo --annotate nosuch:en --text a.txt
atlas demo --demo -o notes
atlas ./missing --demo
atlas a/b/c --demo
atlas https://huggingface.co/datasets/owner/name --demo
atlas weights.gguf --demo
atlas empty --demo
atlas pickled --demo
report missing
report notes
head missing L1H1
status missing
export missing -o page
cite missing
view
view demo
view demo TEXT --heads 3
view demo TEXT --measure looks
view demo TEXT -o missing/a.html
view demo TEXT --open L3
view demo TEXT --detail 3
view demo TEXT --window 7
view demo TEXT --flow rolout
view demo TEXT --atlas missing
view demo a.txt
compare demo
compare demo demo
compare demo demo --task rte --demo
compare demo demo --demo --relations nsbj
ablate demo
ablate demo --task rte --data missing
ablate demo --task mood --data task --columns label
ablate demo --task mood --data task --columns text_a=premise
ablate demo --task mood --data task --labels good
ablate demo --task mood --data task --together 4-
ablate demo --task mood --data task --pairs 1
prune demo --task rte --data missing
prune demo --task mood --data task --orders gredy
prune demo --task mood --data task --importance missing
importance demo
importance demo --task rte --data missing
importance demo --demo --max-length 0
finetune demo
finetune demo --task rte --data missing
finetune demo --task mood --data task --columns label=y
circuits demo --prompts oii
circuits demo --prompts missing.tsv
circuits demo --prompts prompts.tsv
circuits demo --views 3
circuits demo --export duoo
circuits demo --sequences 3
circuits demo --text missing.txt
explain demo --demo --shares 0
explain demo --demo --shares half
explain demo --demo --heads L5
explain demo --demo --rules missing.json
explain demo --demo --rules bad.json
trial missing --demo
trial demo --demo --inputs 3
probe demo
probe demo --train missing --test missing
reproduce clark209
reproduce clark2019 --substitutes missing
reproduce clark2019 --data text=missing.txt
patterns anotate
patterns train --labels missing
patterns apply no/such/model --demo
zoo demo demo --demo
zoo demo --demo --analyses surfce
slurm view demo
slurm atlas demo --demo --shard 1/2
serve --port 99999999
doctor --demoo
analyses --jsn
settings --jsn
"""

# What is wrong with these is in the middle of a file, or of a model, which is read first.
NEED_A_MODEL = ("atlas demo --text latin.txt",)


@dataclass(frozen=True)
class Refusal:
    """How a request ended: seconds of processor time, exit status, and what was said."""

    request: str
    seconds: float
    status: int
    said: str

    @property
    def right(self) -> bool:
        """Whether it is refused as wrong, in words and soon."""
        return self.status == 2 and "Traceback" not in self.said and self.seconds <= ENOUGH


def requests() -> list[str]:
    """All wrong requests."""
    return REQUESTS.strip().splitlines()


def make_files(folder: Path) -> None:
    """Write the files that the requests name."""
    for name, content in FILES.items():
        file = folder / name
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())


def refused(request: str, folder: Path) -> Refusal:
    """Run one request to its end.

    Modules are compiled once and kept, as in an installation, whatever this shell says.
    """
    before = _seconds()
    done = subprocess.run(
        [sys.executable, "-m", "headscope", *request.split()],
        cwd=folder,
        env={
            **os.environ,
            "HF_HUB_OFFLINE": "1",
            "OMP_NUM_THREADS": "1",
            "PYTHONDONTWRITEBYTECODE": "",
            "PYTHONPYCACHEPREFIX": str(folder / "compiled"),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    return Refusal(request, _seconds() - before, done.returncode, done.stderr)


def _seconds() -> float:
    """Processor time of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main(commands: Sequence[str] = ()) -> int:
    """Print a line for each request that is not refused as it should be, and the share that is."""
    with tempfile.TemporaryDirectory() as place:
        make_files(Path(place))
        wanted = [one for one in requests() if not commands or one.split()[0] in commands]
        # The first time compiles.
        every = [[refused(request, Path(place)) for _ in range(2)][1] for request in wanted]
    for one in every:
        if not one.right:
            last = (one.said.strip().splitlines() or [""])[-1]
            print(
                f"{one.seconds:5.2f} s  exit {one.status}  {one.request}: {last[:120]}", flush=True
            )
    share = sum(one.right for one in every) / len(every)
    middle = median(one.seconds for one in every)
    print(
        f"{share:.1%} of {len(every)} wrong requests are refused within {ENOUGH} s of processor "
        f"time (half of them within {middle:.2f} s); wanted {WANTED:.0%}"
    )
    return int(share < WANTED)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
