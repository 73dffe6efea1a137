"""Draws what heads do on synthetic inputs, and which earlier heads induction heads read."""

from functools import partial

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from headscope.claims.head_metrics import control_ranges
from headscope.claims.reading import Reading
from headscope.core.wording import number
from headscope.draw.head_grid import control_words, grid_panel, signed_panel
from headscope.draw.head_marks import note_heads, number_texts
from headscope.draw.marks import faint_grid, share_tick
from headscope.draw.panel import Panel
from headscope.draw.style import color, layer_colors
from headscope.experiments.circuits.section import KINDS, SHARES, pairs_of, readers_of

TITLES = {
    "induction": "Induction",
    "previous_token": "Previous token",
    "duplicate_token": "Duplicate token",
    "copied_attention": "Copying",
    "successor": "Successor",
    "retrieval": "Retrieval",
}
PATHS = 3  # heads whose earlier heads are drawn
NAMED = 2  # of these
HEADROOM = 1.15


def panels(run: Reading) -> list[Panel]:
    """A grid for each score."""
    ranges = control_ranges(run.tree)
    keys = [*(f"score.{kind}" for kind in KINDS), *(one for one in SHARES if one in run.data)]
    look = partial(grid_panel, unit="probability", top=1.0)
    copying = run("weight_copying")
    return [
        *(
            look(
                TITLES[key.rpartition(".")[2]],
                run(key).value,
                run.names,
                parts=run(key),
                untrained=ranges.get(f"circuits.{key}"),
            )
            for key in keys
        ),
        signed_panel(
            "Copying by weights",
            copying.value,
            run.names,
            top=1.0,
            text="1",
            parts=copying,
        ),
    ]


def caption(run: Reading) -> str:
    """How to read the scores."""
    dataset = run.data
    n = int(dataset.attrs["length"])
    count = len(str(dataset.attrs["ordinals"]).split(";"))
    successor = (
        f" Successor: the share of {count} ordinals whose successor the weights make the top token."
        if "successor" in dataset
        else ""
    )
    retrieval = (
        " Retrieval: the share of a needle’s tokens that are attended to most as they are told."
        if "retrieval" in dataset
        else ""
    )
    copying = (
        "; and how much of its attention goes to tokens that raise themselves most of all in the "
        f"input (copying, by chance {100 / n:.2g} % or less)"
        if "copied_attention" in dataset
        else ""
    )
    return (
        f"Each cell is one head, on {n} random tokens that come twice: what it gives to the token "
        "after the same one before (induction), to the previous token, to the same token before"
        f"{copying}.{successor}{retrieval} By weights: 1 every token speaks for itself through "
        f"the head, −1 against itself; {run.over()}.{control_words(run.tree)}"
    )


def path_panels(run: Reading) -> list[Panel]:
    """The earlier heads that each of the heads that induce most reads."""
    dataset = run.data
    if "composition" not in dataset:
        return []
    heads = dataset.sizes["head"]
    readers = [unit for unit in readers_of(dataset) if pairs_of(dataset, unit, "key")][:PATHS]
    return [
        Panel(f"{run.names.unit(unit, heads)} reads its keys", partial(_path, run, unit))
        for unit in readers
    ]


def _path(run: Reading, reader: int, axes: Axes) -> None:
    """A mark per earlier head: its attention to the previous token, and its composition."""
    dataset = run.data
    heads, shades = dataset.sizes["head"], layer_colors(dataset.sizes["layer"])
    previous = run("score.previous_token")
    before, texts = previous.value.ravel(), number_texts(previous, "probability")  # [unit]
    pairs = pairs_of(dataset, reader, "key")
    for writer, score, _ in reversed(pairs):
        axes.plot(
            before[writer],
            score,
            "o",
            color=shades[writer // heads],
            ms=4,
            mew=0.4,
            mec=color("page"),
            zorder=3,
        )
    top = pairs[0][1]
    writers = [writer for writer, _, _ in pairs]
    note_heads(
        axes,
        before[writers],
        [score for _, score, _ in pairs],
        [f"K-composition {number(score)}, previous token {texts[one]}" for one, score, _ in pairs],
        units=writers,
    )
    axes.axhline(float(dataset.attrs["width"]) ** -0.5, color=color("rule"), lw=0.8, zorder=1)
    for writer, score, _ in pairs[:NAMED]:
        right = before[writer] > 0.5
        axes.annotate(
            run.names.unit(writer, heads),
            (before[writer], score),
            (-5 if right else 5, 0),
            ha="right" if right else "left",
            va="center",
            textcoords="offset points",
            fontsize=6,
            zorder=4,
        )
    axes.set_ylim(0, HEADROOM * top or 1.0)
    axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.set_xlim(-0.03, 1.03)
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.xaxis.set_major_formatter(FuncFormatter(share_tick))
    axes.set_xlabel("the earlier head: previous token")
    axes.set_ylabel("K-composition")
    faint_grid(axes)


def path_caption(run: Reading) -> str:
    """How to read what heads read."""
    readers = readers_of(run.data)[:PATHS]
    return (
        f"Each mark is one head of an earlier layer, the first layer nearest to the page’s colour: "
        "how much it attends to the previous of random tokens, and how much of what it writes the "
        f"keys of a head that induces read, by the weights alone; line: random rotations. Shown "
        f"are the {len(readers)} heads that induce most; {run.over()}."
    )
