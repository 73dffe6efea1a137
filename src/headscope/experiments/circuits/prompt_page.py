"""Make the page of prompts: what every head writes to the answer, and what is lost without it.

The numbers are those of the groups `prompts` and `writes` of a run of circuits. What a head writes
by source token, to the answer less the rival, to the answer and to the rival, is on the page as
16-bit codes, value = code / 32767 · scale with a scale for each head and prompt, attention as
code / 65535.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from headscope.claims.claim import Claim
from headscope.claims.head_labels import run_labels
from headscope.claims.reading import Reading
from headscope.claims.verdict import any_of
from headscope.core.display import printable
from headscope.core.head_names import HeadNames, names_of
from headscope.core.results import derived_once, model_name, needed, shape
from headscope.core.wording import capital, fixed, how_many, percent
from headscope.draw.style import RAMP_STEPS
from headscope.errors import InputError
from headscope.experiments.circuits.over_items import FEWEST_ITEMS
from headscope.experiments.circuits.section import labelled
from headscope.experiments.circuits.verdicts import verdicts
from headscope.experiments.circuits.written_answers import LEAST, answers_known
from headscope.page.shell import (
    asset,
    island,
    render_page,
    script_of,
    style_of,
    template,
    write_page,
)
from headscope.run.store import Run, open_run
from headscope.views.packed_arrays import packed
from headscope.views.view_text import frame_of

PACKAGE, FILE, TITLE = "headscope.experiments.circuits", "prompts.html", "Prompts, head by head"
NAMED = 3  # heads that a sentence names
SOURCE_STEPS, SHARE_STEPS = 32767, 65535
FIGURES = 4  # of numbers that stand on the page as they are


@dataclass(frozen=True)
class PromptView:
    """The page of a run's prompts; a notebook displays it."""

    tree: xr.DataTree

    @property
    def page(self) -> bytes:
        """One self-contained offline HTML page."""
        return build_page(self.tree)

    def save(self, path: str | Path) -> Path:
        """Writes the page, whole or not at all; returns its path.

        raises  InputError for the name of a picture
        """
        return write_page(Path(path), self.page)

    def __repr__(self) -> str:
        many = self.tree["prompts"].sizes["prompt"]
        return f"<headscope.PromptView {model_name(self.tree)}: {how_many(many, 'prompt')}>"

    def _repr_html_(self) -> str:
        return frame_of(self.page, f"prompts of {model_name(self.tree)}")


def view_prompts(run: Run | str | Path) -> PromptView:
    """Show what every head does after single prompts, from a run of circuits or its folder.

    raises  InputError for a run without prompts; what `open_run` raises
    """
    finished = run if isinstance(run, Run) else open_run(run)
    if "prompts" not in finished:
        raise InputError(
            f"{finished.path or 'this run'} has no prompts head by head; wanted a run of "
            "circuits with --prompts (prompts=), and --views above 0"
        )
    return PromptView(finished.tree)


def write_prompts(run: Reading, folder: Path) -> list[tuple[str, str]]:
    """Writes the page of a run's prompts into `folder`, where it has some.

    returns  the file's name and the title of a link to it; none without prompts
    """
    if "prompts" not in run.tree.children:
        return []
    PromptView(run.tree).save(folder / FILE)
    return [(FILE, TITLE)]


@derived_once()
def build_page(tree: xr.DataTree) -> bytes:
    """The page of a run with the group `prompts`: one HTML file that asks for nothing.

    returns  UTF-8; tokens stand in it as data only, whatever characters they hold
    """
    dataset, (layers, heads) = needed(tree, "prompts"), shape(tree)
    title, lede, named = opening(tree)
    size = f":root{{--layers:{layers};--heads:{heads}}}"
    styles = style_of("report.css", "card.css"), asset("prompt.css", PACKAGE), size
    page = render_page(
        template("prompt.html.j2", PACKAGE),
        title=title,
        lede=lede,
        layers=layers,
        style="\n".join(styles),
        script="\n".join(
            [
                script_of(("page.js",)),
                asset("prompt_graph.js", PACKAGE),
                asset("prompt.js", PACKAGE),
            ]
        ),
        heads=heads,
        names=names_of(tree),
        model=model_name(tree),
        island=island(payload(tree, dataset, named)),
        paths=dataset.sizes.get("sender", 0),
        after=needed(tree, "writes").attrs["logits"],
    )
    # Half of a surrogate pair is no text; JSON writes it as an escape.
    return page.encode("utf-8", errors="backslashreplace")


# --- in words ---------------------------------------------------------------------------------


def opening(tree: xr.DataTree) -> tuple[str, str, list[Claim]]:
    """Which heads write the answer, which carry it, and how much; and the heads that write it.

    returns  a title, a sentence or two, and the labels of heads that write the answer; none where
             nothing was patched or items were few
    """
    writes = needed(tree, "writes")
    many, kind = int(writes.attrs["prompt_count"]), printable(writes.attrs["prompts"])
    prompts = f"{how_many(many, 'prompt')} ({kind})"
    notes = printable(writes.attrs["notes"])
    if "effect" not in writes or int(writes.attrs["n"]) < FEWEST_ITEMS:
        return (
            "What heads write to the answer",
            f"{prompts}: nothing is claimed of any head. {capital(notes)}.",
            [],
        )
    writers, carriers = (labelled(tree, f"{does}_answer") for does in ("writes", "carries"))
    if not (writers or carriers):
        either = any_of(verdicts(tree)[f"{does}_answer"] for does in ("writes", "carries"))
        some, rest = ("No", "") if either.fails else ("Whether a", ", these prompts cannot tell")
        none = (
            f"of {np.prod(shape(tree))} heads, none moves the answer by {100 * LEAST:g} % of the "
            "logit difference more surely than chance allows"
        )
        reason = none if answers_known(writes) else notes
        return (
            f"{some} head writes or carries the answer{rest}",
            f"{prompts}: {reason}. What stands below is of single prompts.",
            [],
        )
    title, said, names = [], [], names_of(tree)
    if writers:
        title.append(f"{_names(writers, names)} write{'s' * (len(writers) == 1)} the answer")
        whole, every = sum(one.value for one in writers), float(writes["direct_share"].sum())
        these = f"all {len(writers)} together {percent(whole)}, " if len(writers) > 1 else ""
        said.append(
            f"{_shares(writers, 'writes', names)}; {these}all heads of the model {percent(every)}"
        )
    if carriers:
        verb = f"carr{'ies' if len(carriers) == 1 else 'y'}"
        title.append(f"{_names(carriers, names)} {verb} {'it' if writers else 'the answer'}")
        said.append(f"patched alone, {_shares(carriers, 'brings back', names)}")
    said[0] = f"of the logit difference between {prompts} and their corrupted ones, {said[0]}"
    return ", ".join(title), " ".join(f"{capital(one)}." for one in said), writers


def _names(claims: Sequence[Claim], names: HeadNames) -> str:
    named = [names.head(one.layer, one.head) for one in claims]
    if len(named) > NAMED + 1:
        named[NAMED:] = [f"{len(named) - NAMED} more"]
    return " and ".join(filter(None, [", ".join(named[:-1]), named[-1]]))


def _shares(claims: Sequence[Claim], verb: str, names: HeadNames) -> str:
    """`L24·H4 writes 39 % [30, 45], L30·H2 25 % [23, 27]`, of the verb `writes`."""
    heads = [
        f"{names.head(one.layer, one.head)}{'' if at else f' {verb}'} "
        f"{percent(one.value, one.low, one.high)}"
        for at, one in enumerate(claims[:NAMED])
    ]
    return ", ".join(heads)


def _said(one: xr.Dataset, writers: Sequence[Claim], names: HeadNames) -> str:
    """How far the answer lies ahead after one prompt, and what writes it."""
    answer, wrong = (
        f"“{text.strip()}”" + (f" and {int(many) - 1} more" if many > 1 else "")
        for text, many in zip(one["outcome_text"].values, one["choices"].values, strict=True)
    )
    ahead, direct = float(one["difference"]), one["direct"].values
    side = "below" if ahead < 0 else "above"
    parts = [direct.sum(), *one["rest"].values.tolist()]
    written = ", ".join(
        f"{name} {signed(part)}"
        for name, part in zip(("heads", "MLPs", "the embedding", "biases"), parts, strict=True)
    )
    own = sum(float(direct[label.layer, label.head]) for label in writers)
    named = f" {_names(writers, names)}: {signed(own)}." if writers else ""
    return f"{answer}: {fixed(abs(ahead), 2)} logits {side} {wrong}, written by {written}.{named}"


def signed(value: float) -> str:
    """`+1.23`, `−0.40`, `0.00`."""
    text = fixed(value, 2)
    return text if text[0] == "−" or float(text) == 0 else f"+{text}"


# --- data -------------------------------------------------------------------------------------


def payload(tree: xr.DataTree, dataset: xr.Dataset, writers: Sequence[Claim]) -> dict[str, Any]:
    """Everything that the page draws, as plain values for JSON; NaN becomes null."""
    (layers, heads), names = shape(tree), names_of(tree)
    prompts = [_prompt(dataset.isel(prompt=at)) for at in range(dataset.sizes["prompt"])]
    for at, made in enumerate(prompts):
        made["said"] = _said(dataset.isel(prompt=at), writers, names)
    most = np.abs(dataset["direct"].values).mean(0)
    first = [one.layer * heads + one.head for one in writers] or [int(most.argmax())]
    return {
        "layers": layers,
        "heads": heads,
        "countsFrom": names.first,
        "rampSteps": RAMP_STEPS,
        "first": first[0],
        "labels": [text for row in run_labels(tree) for text in row],
        "prompts": prompts,
        "followed": dataset["followed"].values.tolist() if "followed" in dataset else [],
        **({"numbers": names.numbers} if names.numbers else {}),
    }


def _prompt(one: xr.Dataset) -> dict[str, Any]:
    tokens = [printable(text) for text in one["token_text"].values.tolist()]
    size = int(np.isfinite(one["attention"].values[0, 0]).sum())
    shares = np.rint(one["attention"].values[..., :size].clip(0, 1) * SHARE_STEPS)
    both = one["source"].values[..., :size].astype(np.float64)  # [layer, head, token]
    source, lost = both[None], {"lost": _plain(one["lost"].values.ravel())}
    if "to_answer" in one:  # runs of headscope before it had it
        answer = one["to_answer"].values[..., :size]
        source = np.stack([both, answer, answer - both])  # [target, layer, head, token]
        lost["mean"] = _plain(one["lost_mean"].values.ravel())
    scale = np.abs(source).max(-1)
    scale = np.where(scale > 0, scale, 1).astype(np.float32)
    codes = np.rint(source / scale[..., None] * SOURCE_STEPS)
    return {
        "tokens": tokens[:size],
        "told": _plain(one["told"].values[:, :size].T),
        "ends": [printable(text) for text in one["outcome_text"].values.tolist()],
        "choices": one["choices"].values.astype(int).tolist(),
        "outcome": _plain(one["outcome"].values.T),
        "difference": _plain(float(one["difference"])),
        "writes": [_plain(some.ravel()) for some in [one["direct"].values, *source.sum(-1)[1:]]],
        **lost,
        "codes": packed(scale, codes.astype(np.int16), shares.astype(np.uint16)),
        **(_paths(one) if "path" in one else {}),
        **({"why": _writers(one)} if "wrote" in one else {}),
    }


def _writers(one: xr.Dataset) -> list[list[Any]]:
    """By followed head: its strongest key, then the parts that wrote the query, and the key."""
    return [
        [
            int(key),
            *(
                [
                    [printable(name), _plain(value)]
                    for name, value in zip(*side, strict=True)
                    if name
                ]
                for side in zip(names, values, strict=True)
            ),
        ]
        for key, names, values in zip(
            one["looked_at"].values, one["writer"].values, one["wrote"].values, strict=True
        )
    ]


def _paths(one: xr.Dataset) -> dict[str, Any]:
    units, via = (one[name].values.tolist() for name in ("followed", "via"))
    path = one["path"].values
    rows = [
        [units[sender], units[receiver], via[way], _plain(path[sender, receiver, way])]
        for sender, receiver, way in np.argwhere(np.isfinite(path)).tolist()
    ]
    return {"gap": _plain(float(one["gap"])), "paths": sorted(rows, key=lambda row: -abs(row[3]))}


def _plain(values: Any) -> Any:
    """An array as lists of numbers of FIGURES figures; None for NaN."""
    if np.ndim(values):
        return [_plain(value) for value in np.asarray(values).tolist()]
    return float(f"{values:.{FIGURES}g}") if np.isfinite(values) else None
