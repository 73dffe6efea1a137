"""What do rules of heads cost: in an atlas, in replay, and in a trial of labels?

python -m benchmarks.explanations [--model M] [--text FILE] [--rounds N] [--threads N] [--clock cpu]

Whole runs in memory, one after the other, see `benchmarks.timing`: an atlas with all other default
analyses and no control, the same with `explained`, each also with the control; then replay as
`headscope explain` does it by default, one share of heads alone, the same with fitted weights, and
with the rules of an atlas;
and a trial of the labels of the atlas, if it has some.
Ratios are times of whole runs; × the atlas without rules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import headscope as hs
from benchmarks.timing import Row, interleave, options, table
from headscope.experiments.replay.replay import replay
from headscope.experiments.trial.hypotheses import hypotheses_of
from headscope.experiments.trial.trial import trial
from headscope.model.threads import threads_of
from headscope.run.execution import Execution
from headscope.run.memory import keep_few_products, keep_freed_memory

EXPLAINED, ATLAS = "explained", "atlas without rules"
ONE_SHARE = {"shares": (0.25,), "draws": 0, "replacements": ("rules",)}


def pipelines(
    model: Any,
    corpus: Any,
    *,
    analyses: Sequence[str] | None = None,
    limit: int | None = None,
    **few: Any,
) -> list[Row]:
    """The runs.

    analyses  of the atlas, `explained` among them; None: all that it has by default
    limit     documents
    few       settings of replay that make it shorter
    """
    how = Execution(linears="stock")

    def atlas(names: Sequence[str] | None, control: str) -> Callable[[], hs.Run]:
        more = {"control": control, "limit": limit, "execution": how}
        return partial(hs.atlas, model, corpus, analyses=names, **more)

    def tried(source: Any, **settings: Any) -> Callable[[], hs.Run]:
        more = {"limit": limit, "execution": how, **few, **settings}
        return partial(replay, source, corpus=corpus, **more)

    whole = atlas(analyses, "none")()
    every = list(whole.manifest["analyses"])
    others = [name for name in every if name != EXPLAINED]
    runs = {
        ATLAS: atlas(others, "none"),
        "… + explained": atlas(every, "none"),
        "atlas with control, without rules": atlas(others, "random"),
        "… + explained, in the control, too": atlas(every, "random"),
        "replay": tried(model),
        "replay, rules at 25 % alone": tried(model, **ONE_SHARE),
        "… with weights that are fitted": tried(model, weights="output", **ONE_SHARE),
        "replay of an atlas, rules at 25 % alone": tried(whole, **ONE_SHARE),
    }
    if hypotheses_of(whole.tree):
        asks = {"corpus": corpus, "model": model, "limit": limit, "execution": how}
        runs["trial of the labels of an atlas"] = partial(trial, whole, **asks)
    tokens = float(whole.tree.attrs["tokens"])
    return [Row(name, run, tokens) for name, run in runs.items()]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print the table."""
    parser = options("explanations", __doc__, examples=None, rounds=3)
    parser.add_argument("--model", default="demo", help="a folder, or demo (demo)")
    parser.add_argument("--text", type=Path, help="a text file; by default the bundled treebank")
    parser.add_argument("--limit", type=int, help="documents; by default all")
    given = parser.parse_args(arguments)
    keep_freed_memory()
    keep_few_products()
    corpus = (
        hs.corpus.TextCorpus(given.text, documents="heading") if given.text else hs.demo_corpus()
    )
    with threads_of(given.threads):
        rows = pipelines(given.model, corpus, limit=given.limit)
        interleave(rows, rounds=given.rounds, clock=given.clock)
    print(f"{given.model}, {rows[0].tokens:,.0f} tokens, {given.threads} threads\n")
    print(table(rows, stock=ATLAS, fast=ATLAS))


if __name__ == "__main__":
    main()
