"""Results and a manifest in which all that is said by a model or a corpus is hostile.

They are a real model's, kept for the tests: enough is claimed of its heads for every table of a
report. A random model has no relation that is frequent, and no number that is massive.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import cycle, islice
from pathlib import Path
from typing import Any

LAYERS, HEADS = 2, 3
IN_A_TABLE = 40  # relations of a run
OFTEN = 1000  # words of each, so that a table shows it
LARGE = 10_000.0  # what makes a number of the stream massive
OF_RUN = (  # attributes
    "model",
    "corpus",
    "revision",
    "title",
    "cls_token",
    "sep_token",
    "architecture",
    "headscope_version",
    "spec_fingerprint",
)
OF_INPUTS = ("text", "relation", "token_text", "word_text")  # variables
CODE = "() => [...document.querySelectorAll('code')].map(one => one.textContent).join('\\n')"


def reports(strings: Sequence[str], folder: Path) -> list[Path]:
    """Reports of results with the strings, so many in each as its tables hold."""
    from headscope.report.build import build_report

    made = []
    for begin in range(0, len(strings), IN_A_TABLE):
        some = strings[begin : begin + IN_A_TABLE]
        tree = hostile_results(some)
        made.append(build_report(tree, hostile_manifest(some, tree), folder / f"report-{begin}"))
    return made


def site(strings: Sequence[str], folder: Path) -> list[Path]:
    """The other pages of an export of results with the first of the strings."""
    from headscope.report.site import export_site
    from headscope.run.store import Run

    some = strings[:IN_A_TABLE]
    tree = hostile_results(some)
    made = export_site(Run(tree, hostile_manifest(some, tree)), folder / "site").parent
    return sorted(page for page in made.rglob("*.html") if page.name != "report.html")


def hostile_results(strings: Sequence[str]) -> Any:
    """Results whose relations, tokens and names are the strings."""
    import numpy as np

    from recorded import BOTH, recorded

    tree = recorded(LAYERS, HEADS, groups=BOTH)
    words = cycle(strings)
    tree.attrs |= {name: next(words) for name in OF_RUN}
    relations = tree["dependency"].to_dataset()
    names = relations["relation"].values.astype(object)
    names[-len(strings) :] = strings  # the first are no relations
    counts = relations["count"].copy(data=np.full(relations["count"].shape, OFTEN))
    tree["dependency"].dataset = relations.assign(count=counts).assign_coords(relation=names)
    inputs = tree["examples"].to_dataset()
    for name in OF_INPUTS:
        texts = inputs[name].values.astype(object)
        here = texts != ""
        texts[here] = list(islice(words, int(here.sum())))
        inputs = inputs.assign_coords({name: (inputs[name].dims, texts)})
    tree["examples"].dataset = inputs
    tree["sinks"].dataset = with_massive(tree["sinks"].to_dataset(), words)
    return tree


def with_massive(sinks: Any, words: Iterator[str]) -> Any:
    """The group of sinks, with massive activations at tokens of these words."""
    import numpy as np

    axes, shape = ("layer", "rank"), sinks["massive"].shape
    tokens = np.array(list(islice(words, shape[0] * shape[1])), object).reshape(shape)
    large, whole = np.full(shape, LARGE), np.arange(tokens.size).reshape(shape)
    values = {"massive": large, "massive_times": large, "massive_share": np.ones(shape[0])}
    sinks = sinks.assign({name: sinks[name].copy(data=value) for name, value in values.items()})
    made = dict.fromkeys(("massive_dimension", "massive_position"), (axes, whole))
    return sinks.assign(made).assign_coords(massive_token=(axes, tokens))


def hostile_manifest(strings: Sequence[str], tree: Any) -> dict[str, Any]:
    """A manifest in which all but counts is hostile."""
    from recorded import manifest_of

    words = cycle(strings)
    files = [{"name": next(words), "sha256": next(words)} for _ in range(5)]
    few = lambda: {next(words): next(words) for _ in range(5)}  # noqa: E731
    named = {name: next(words) for name in ("command", "created", "linears", "long")}
    return manifest_of(
        tree,
        model={name: next(words) for name in ("name", "sha256", "revision", "architecture")},
        corpus={"kind": next(words), "files": files},
        spec=few(),
        versions=few(),
        notes=list(islice(words, 5)),
        counts={"reasons": {next(words): 3}, "skipped": 3},
        **named,
    )
