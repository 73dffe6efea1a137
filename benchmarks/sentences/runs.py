"""The runs whose sentences are read: made by headscope's own commands, on small inputs."""

from __future__ import annotations

import csv
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from .corpus import Sentence

ANALYSES = (
    "surface,entropy,distance,norms,sinks,dependency,coreference,features,cls_attention,pairs"
)
TASK = "question"
SEQUENCES, LENGTH = 20, 40
FEW = 6  # documents of a decoder: float64 is slow


@dataclass(frozen=True)
class Folder:
    """Of a run: its report, and the labels of its heads."""

    path: Path

    @property
    def page(self) -> Path:
        return self.path / "report.html"

    @property
    def table(self) -> Path:
        return self.path / "tables" / "head_labels.csv"

    @property
    def labels(self) -> tuple[tuple[str, str, str], ...]:
        """(head, name, sentence) of every label."""
        if not self.table.exists():
            return ()
        with self.table.open(encoding="utf-8", newline="") as file:
            return tuple(
                (f"L{int(r['layer']) + 1}·H{int(r['head']) + 1}", r["label"], r["sentence"])
                for r in csv.DictReader(file)
                if r["kind"]
            )


def headscope(*arguments: object) -> str:
    """What a command prints."""
    command = [sys.executable, "-m", "headscope", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def atlas(model: str, output: Path, *, documents: int | None = None) -> Folder:
    """All that the report says of where heads look, and of language; of the bundled corpus."""
    few = () if documents is None else ("--limit", documents)
    headscope("atlas", model, "--demo", "--analyses", ANALYSES, *few, "-o", output)
    return Folder(output)


def circuits(model: str, output: Path) -> Folder:
    """What a decoder's heads do on random tokens that come twice."""
    sizes = ("--sequences", SEQUENCES, "--length", LENGTH, "--needles", 10, "--haystack", 128)
    headscope("circuits", model, *sizes, "-o", output)
    return Folder(output)


def write_task(sentences: list[Sentence], folder: Path) -> None:
    """Is it a question? Of every second sentence to learn, of the others to be scored on."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for one in sentences:
        text = "".join(word.form + " " * (not word.glued) for word in one.words).strip()
        rows.append((text, "question" if "?" in text else "statement"))
    for name, part in (("train", rows[::2]), ("dev", rows[1::2])):
        with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([("text", "label"), *part])


def tuned(model: str, data: Path, output: Path) -> Path:
    """A checkpoint of a short training."""
    if not (output / "finetuned.json").exists():
        how = ("--epochs", 2, "--rate", 1e-4, "--batch", 16)
        headscope("finetune", model, "--task", TASK, "--data", data, *how, "-o", output)
    return output


def compare(model: str, checkpoint: Path, output: Path) -> Folder:
    """The checkpoint beside the model that it was trained from, on the bundled corpus."""
    analyses = "surface,entropy,distance,norms,sinks,features"
    headscope("compare", model, checkpoint, "--demo", "--analyses", analyses, "-o", output)
    return Folder(output)


def ablate(checkpoint: Path, data: Path, output: Path) -> Folder:
    """The checkpoint with each of its heads attending evenly in turn."""
    headscope("ablate", checkpoint, "--task", TASK, "--data", data, "-o", output)
    return Folder(output)
