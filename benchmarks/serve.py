"""How long after the last key does the live page show the first maps of a text?

python -m benchmarks.serve [--model NAME] [--rounds N] [--json FILE]

Two cases: 20 tokens on the demo (6 × 12 heads), and 60 tokens on 12 × 12 heads of e5-small's size,
random unless --model names one. Each round types another text, so that nothing was read before. The
server answers over a real connection. `answer` is what it takes to get all maps without a browser;
`maps` goes from the key in a real Chromium to the first frame after they were drawn, `four` until
all views of them were. A pass of the model alone stands beside, and all are interleaved: the
machine may be busy.
"""

from __future__ import annotations

import argparse
import http.client
import json
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

import torch

import headscope as hs
from benchmarks.inputs import bert
from benchmarks.opening import chromium
from headscope.live.app import LiveApp
from headscope.live.live_model import LiveModel
from headscope.live.live_page import LivePage
from headscope.live.open_model import OpenedModel
from headscope.live.server import LiveServer, bound
from headscope.live.waiting import WaitingLine

WORDS = "the cat sat on a mat because it was tired and old dog did not mind at all today"
KINDS = ("pass", "answer", "maps", "four")
GOALS = {20: 150, 60: 600}  # ms from the last key, by tokens
TYPED = """(text) => new Promise((done) => {
  const field = document.getElementById("text");
  let maps = 0;
  const seen = new MutationObserver((changes) => {
    if (!maps) requestAnimationFrame(() => setTimeout(() => (maps = performance.now() - began)));
    if (!changes.some((one) => one.attributeName === "data-shown")) return;
    seen.disconnect();
    requestAnimationFrame(() => setTimeout(() => done([maps, performance.now() - began])));
  });
  const names = ["data-answers", "data-shown"];
  seen.observe(document.body, { attributes: true, attributeFilter: names });
  field.value = text;
  const began = performance.now();
  field.dispatchEvent(new Event("input"));
})"""


def text_of(tokens: int, turn: int) -> str:
    """Words that are one token each, and with two special ones make so many."""
    return " ".join(Random(turn).choices(WORDS.split(), k=tokens - 2))


@contextmanager
def serving(model: LiveModel) -> Iterator[LiveServer]:
    """A server in a thread of its own."""
    app = LiveApp(WaitingLine(4), model, LivePage(model.about, "The cat."))
    with closing(bound("127.0.0.1", 0)) as own, LiveServer(app, own).in_thread() as server:
        yield server


def answer_ms(server: LiveServer, text: str) -> float:
    """Milliseconds until all bytes of the answer are here."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    headers = {"X-Headscope-Page": "benchmark", "Content-Type": "application/json"}
    start = time.perf_counter()
    with closing(connection):
        connection.request(
            "POST", f"/{server.guard.token}/read", json.dumps({"text": text}), headers
        )
        raw = connection.getresponse()
        assert raw.status == 200
        raw.read()
    return 1e3 * (time.perf_counter() - start)


def pass_ms(model: hs.Model, text: str) -> float:
    """Milliseconds of a pass of the model alone."""
    given = model.tokenizer(text, return_tensors="pt")
    with torch.inference_mode():
        start = time.perf_counter()
        model.network(**given)
        return 1e3 * (time.perf_counter() - start)


def measured(model: hs.Model, tokens: int, rounds: int, page: Any) -> dict[str, Any]:
    """Medians and the fastest of each, in milliseconds."""
    live = LiveModel(OpenedModel(model), longest=256)
    times: dict[str, list[float]] = {kind: [] for kind in KINDS}
    with serving(live) as server:
        page.goto(server.address)
        page.wait_for_selector("body[data-answers]")
        for turn in range(-2, rounds):
            maps, four = map(float, page.evaluate(TYPED, text_of(tokens, 2000 + turn)))
            row = {
                "pass": pass_ms(model, text_of(tokens, turn)),
                "answer": answer_ms(server, text_of(tokens, 1000 + turn)),
                "maps": maps,
                "four": four,
            }
            if turn >= 0:  # the first two warm up
                for name, value in row.items():
                    times[name].append(value)
        page.goto("about:blank")
    shape = model.shape
    told = {name: round(median(values), 1) for name, values in times.items()}
    told |= {f"{name} fastest": round(min(values), 1) for name, values in times.items()}
    return {"tokens": tokens, "heads": shape.layers * shape.heads, "goal": GOALS[tokens], **told}


def main() -> None:
    """The two cases, as a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", help="of 12 × 12 heads; by default random weights")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    demo = hs.load("demo")
    size = {"hidden_size": 384, "intermediate_size": 1536, "vocab_size": len(demo.tokenizer)}
    large = hs.load(given.model) if given.model else hs.load(bert(**size), tokenizer=demo.tokenizer)
    with chromium() as browser:
        if browser is None:
            raise SystemExit("needs a Chromium on the path, and playwright")
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        cases = ((demo, 20), (large, 60))
        rows = [measured(model, tokens, given.rounds, page) for model, tokens in cases]
    print("tokens  heads  goal   a pass   answer     maps     four   (fastest), milliseconds")
    for row in rows:
        shown = [f"{row[one]:.0f} ({row[f'{one} fastest']:.0f})" for one in KINDS]
        print(f"{row['tokens']:6}  {row['heads']:5}  {row['goal']:4}", *map("{:>10}".format, shown))
    if given.json:
        given.json.write_text(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
