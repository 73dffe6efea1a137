"""What does a page of views cost beside BertViz's for the same input, and how soon does it answer?

python -m benchmarks.views [--model NAME] [--tokens N ...] [--rounds N] [--quick] [--json FILE]

Build time goes from the text to the written file, forward pass included, in one interleaved run.
BertViz is no dependency; where it is missing the table says so. Its drawing scripts come from a CDN
and nothing is fetched here, so that its pages are opened as they would be offline.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import cached_property
from itertools import combinations
from pathlib import Path
from statistics import median
from typing import Any

import torch

import headscope as hs
from benchmarks.inputs import twin
from benchmarks.opening import Opening, chromium, middle, opening
from benchmarks.timing import Row, interleave
from headscope.model.threads import threads_of

PAIR = 15  # tokens of the short pair, special ones included
MISSING = "bertviz: not installed (pip install ipython; pip install --no-deps bertviz)"
HEADS = 12 * 12
LARGEST = {128: 1, 512: 12}  # MB of the file for so many heads, {tokens: MB}
PAINTED, ANSWERED = 1000, 50  # ms: first paint up to 128 tokens, answer to the mouse
SLOW = 200  # tokens from which BertViz is timed once


class Case:
    """One input of one model, and the pages made from it."""

    def __init__(self, model: hs.Model, text: str, pair: str | None = None) -> None:
        self.model, self.text, self.pair = model, text, pair
        self.encoded = model.tokenizer(text, pair, return_tensors="pt")
        self.tokens = int(self.encoded["input_ids"].shape[1])

    @property
    def name(self) -> str:
        """Input and model in a few words."""
        kind = "a short pair" if self.pair else "a text"
        layers, heads = self.model.shape.layers, self.model.shape.heads
        return f"{kind} of {self.tokens} tokens, {layers} × {heads} heads"

    def headscope(self, file: Path) -> None:
        """All views on one page."""
        file.write_bytes(hs.view(self.model, self.text, self.pair).page)

    def bertviz(self, view: Callable[..., Any], file: Path) -> None:
        """One of its views, from the maps of the stock model."""
        tokens = self.model.tokenizer.convert_ids_to_tokens(self.encoded["input_ids"][0])
        start = None
        if self.pair:
            start = self.encoded.sequence_ids(0).index(1)
        with torch.inference_mode():
            maps = self._eager(**self.encoded, output_attentions=True).attentions
        drawn = view(maps, tokens, sentence_b_start=start, html_action="return")
        file.write_text(drawn.data)

    @cached_property
    def _eager(self) -> Any:
        return twin(self.model.network, "eager")

    def verdict(self, size: int, seen: Opening | None) -> str:
        """PASS or miss against each target that holds for this size."""
        found: list[tuple[float | None, float, str]] = []
        most = next((mb for n, mb in LARGEST.items() if self.tokens <= n), None)
        if most is not None and self.model.shape.layers * self.model.shape.heads <= HEADS:
            found.append((size / 1e6, most, f"file ≤ {most} MB"))
        if seen is not None and self.tokens <= min(LARGEST):
            found.append((middle(seen.painted), PAINTED, f"first paint < {PAINTED} ms"))
        if seen is not None:
            found += [
                (middle(times), ANSWERED, f"{which} < {ANSWERED} ms")
                for which, times in (("one head", seen.hover), ("all heads", seen.hover_all))
            ]
        return ", ".join(
            f"{'PASS' if value is not None and value <= limit else 'miss'} ({words})"
            for value, limit, words in found
        )


def pair_of(model: hs.Model) -> Case:
    """Two sentences of a bundled document, in its order, that come nearest to 15 tokens."""
    pairs = [pair for document in _documents() for pair in combinations(document, 2) if all(pair)]
    ids = [model.tokenizer(one, two, verbose=False)["input_ids"] for one, two in pairs]
    best = min(range(len(pairs)), key=lambda place: abs(len(ids[place]) - PAIR))
    return Case(model, *pairs[best])


def text_of(model: hs.Model, tokens: int) -> Case:
    """The beginning of the bundled corpus, cut to so many tokens."""
    text = " ".join(sentence for document in _documents() for sentence in document)
    cut = model.tokenizer(text, truncation=True, max_length=tokens, return_offsets_mapping=True)
    return Case(model, text[: max(end for _, end in cut["offset_mapping"])])


def _documents() -> list[list[str]]:
    """[document][sentence] as running text."""
    return [
        [
            "".join(word.form + " " * word.space_after for word in passage.words or ()).strip()
            for passage in document.passages[:-1]  # the last one is the whole document
        ]
        for document in hs.demo_corpus()
    ]


def rows_of(case: Case, folder: Path, *, rounds: int) -> list[tuple[Row, Path]]:
    """headscope's page and, where it is installed, BertViz's two."""
    file = folder / "headscope.html"
    found = [(Row("headscope, all views", lambda: case.headscope(file), case.tokens), file)]
    if importlib.util.find_spec("bertviz") is None:
        return found
    import bertviz

    for name in ("head_view", "model_view"):
        view, other = getattr(bertviz, name), folder / f"{name}.html"
        once = 1 if case.tokens >= SLOW else rounds
        row = Row(
            f"BertViz, {name.replace('_', ' ')}",
            lambda view=view, other=other: case.bertviz(view, other),
            case.tokens,
            rounds=once,
        )
        found.append((row, other))
    return found


def measured(case: Case, *, rounds: int) -> list[dict[str, Any]]:
    """A record for each page: build times, size, and what the browser said."""
    with tempfile.TemporaryDirectory() as name, chromium() as browser:
        rows = rows_of(case, Path(name), rounds=rounds)
        interleave([row for row, _ in rows], rounds=rounds, clock="wall")
        found = []
        for place, (row, file) in enumerate(rows):
            seen = None
            if browser is not None:
                seen = opening(browser, file, ours=place == 0, rounds=rounds if place == 0 else 1)
            size = file.stat().st_size
            record = {"page": row.name, "build_s": row.seconds, "bytes": size}
            record |= {"target": case.verdict(size, seen) if place == 0 else ""}
            if seen is not None:
                record["browser_ms"] = asdict(seen) | {"asked": sorted(seen.asked)}
            found.append(record)
    return found


def table(records: Sequence[dict[str, Any]]) -> str:
    """Markdown."""
    lines = [
        "| page | build | file | first paint | first maps | all drawn "
        "| answer to the mouse: one head | all heads | target |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---|",
    ]
    for record in records:
        cells = [record["page"], f"{median(record['build_s']):.2f} s", _size(record["bytes"])]
        cells += _seen(record.get("browser_ms"))
        lines.append(f"| {' | '.join([*cells, record['target']])} |")
    return "\n".join(lines)


def _seen(browser: dict[str, Any] | None) -> list[str]:
    if browser is None:
        return ["no chromium", "", "", "", ""]
    if browser["trouble"]:
        return ["", "", "does not open", "", ""]
    if browser["blank"]:
        return ["", "", "blank offline", "", ""]
    times = [_ms(browser[name]) for name in ("painted", "first", "drawn")]
    return times + [_range(browser[name]) for name in ("hover", "hover_all")]


def _ms(values: list[float]) -> str:
    return f"{median(values):.0f} ms" if values else ""


def _range(values: list[float]) -> str:
    return f"{median(values):.0f} ms (at most {max(values):.0f})" if values else ""


def _size(count: int) -> str:
    return f"{count / 1e6:.2f} MB" if count < 1e7 else f"{count / 1e6:,.0f} MB"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print a table for each input, and keep what was found."""
    given = _parse(arguments)
    model = hs.load(given.model)
    if importlib.util.find_spec("bertviz") is None:
        print(MISSING)
    found: dict[str, Any] = {}
    with threads_of(given.threads):
        for case in [pair_of(model), *(text_of(model, n) for n in given.tokens)]:
            records = measured(case, rounds=given.rounds)
            print(f"\n**{case.name}**\n\n{table(records)}{_wanted(records)}", flush=True)
            found[case.name] = records
    if given.json is not None:
        given.json.write_text(json.dumps(found, indent=2))


def _wanted(records: Sequence[dict[str, Any]]) -> str:
    """Which pages asked the network for what."""
    asked = {r["page"]: r["browser_ms"]["asked"] for r in records if "browser_ms" in r}
    lines = [f"{page} asks for {', '.join(urls)}" for page, urls in asked.items() if urls]
    return "\n".join(["", "", *lines]) if lines else ""


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.views",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--model", default="demo", help="hub id, folder or demo (demo)")
    parser.add_argument("--tokens", type=int, nargs="*", default=[128, 512], help="(128 512)")
    parser.add_argument("--rounds", type=int, default=5, help="after one to warm up (5)")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--quick", action="store_true", help="3 rounds, 128 tokens at most")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep all numbers")
    given = parser.parse_args(arguments)
    if given.quick:
        given.rounds, given.tokens = 3, [128]
    return given


if __name__ == "__main__":
    main()
