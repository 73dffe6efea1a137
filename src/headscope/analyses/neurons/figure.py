"""Do delimiter heads use few, fixed neurons, and next-word heads many, changing ones?

How many neurons each head uses and how far they stay the same from position to position; from Vig
(2019), what that has to do with where the head attends; and the first layer's scores, split by what
the key's word, position and segment embeddings bring.
"""

from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from headscope.claims.caption_words import INTERVALS, with_interval
from headscope.claims.control import controls
from headscope.claims.head_attention import NEIGHBOURS, TARGETS, attention_to
from headscope.claims.head_labels import with_label
from headscope.claims.head_metrics import control_ranges
from headscope.claims.reading import Reading
from headscope.core.accumulators import Bools
from headscope.core.intervals import Estimate
from headscope.core.results import Floats, at, largest_first
from headscope.core.wording import decimals, fixed, number, percent, plain
from headscope.draw.head_grid import control_words, grid_panel
from headscope.draw.head_marks import note_heads, number_texts, without_ends
from headscope.draw.label_kinds import KIND_COLUMNS, label_kinds, plot_kinds
from headscope.draw.marks import legend
from headscope.draw.panel import Panel
from headscope.draw.style import color, marker

OWN = "own_segment"
# target → (few or many neurons, the same or changing ones): the signs that the article leads to
EXPECTED = {"sep": (-1, 1), **dict.fromkeys(reversed(NEIGHBOURS), (1, -1)), OWN: (-1, 1)}
QUANTITIES = ("effective", "position_overlap")
NAMED = 3  # neurons that a sentence names
LEAST = 0.1  # ours: a correlation below says nothing of a single head
WORDS = {-1: ("few", "changing"), 1: ("many", "fixed")}  # sign → of how many, of the same


def panels(run: Reading) -> list[Panel]:
    """The panels that the run has numbers for."""
    if not run.has("effective"):
        return []
    effective, overlap = map(run, QUANTITIES)
    of_control = control_ranges(run.tree)
    one, other = (of_control.get(f"neurons.{quantity}") for quantity in QUANTITIES)
    made = [
        _grid("Neurons that count", effective, run, one),
        _grid("The same elsewhere", overlap, run, other),
        Panel("By label", partial(_scatter, run), height=0.8, legend=KIND_COLUMNS),
    ]
    if attention_to(run.tree, "sep") is not None:
        made.append(Panel("By where they look", partial(_by_share, run), height=0.8))
    if run.has("bag_of_words"):
        telling, same = run("separation_effective", contrast=OWN), run("own_segment_overlap")
        made += [
            Panel(
                "Neurons of the own sentence",
                partial(_by_bag, run, telling, "effective number"),
                height=0.8,
            ),
            Panel("The same elsewhere", partial(_by_bag, run, same, "overlap"), height=0.8),
        ]
    return made


def caption(run: Reading) -> str:
    """How to read the panels, and what they show."""
    width, chance = run.data.sizes["neuron"], run.mean("chance_overlap")
    looks = attention_to(run.tree, "sep") is not None
    own = " (d) Overlap by the share of a head’s attention that goes to each target." * looks
    if run.has("bag_of_words"):
        places = "e, f" if looks else "d, e"
        own += (
            f" ({places}) Number and overlap of the neurons that tell words of the own sentence "
            "from those of the other, by how far a head is a bag of words: 1, even attention to "
            "the words of the own sentence and nothing else."
        )
    return (
        f"(a) How many of a head’s {width} neurons make it choose the key it attends to most: "
        "(Σ|c′|)² / Σc′², where c′ is what each neuron adds to that key’s score, less the mean "
        f"over the keys seen; mean over tokens, then inputs. (b) Overlap "
        f"of the {run.data.attrs.get('set', 8)} largest |c′| "
        "between two positions of an input: 1 if they are the same, "
        f"{fixed(chance, 2)} by chance (dashed). (c) Both; whiskers are {INTERVALS}.{own} "
        f"{verdict(run)} {run.over()}. After what Vig (2019) saw in single heads."
        f"{control_words(run.tree)}"
    )


def verdict(run: Reading) -> str:
    """What the rank correlations say; computed from the run, whatever it says."""
    sentences = []
    for target, signs in EXPECTED.items():
        both = {quantity: correlation(run, quantity, target) for quantity in QUANTITIES}
        if all(np.isfinite(rho) for rho, _, _ in both.values()):
            few, same = (
                f"{_answer(run, sign, quantity, target)} ({with_interval('ρ', *parts)}"
                f"{_untrained(run, quantity, target)})"
                for sign, (quantity, parts) in zip(signs, both.items(), strict=True)
            )
            sentences.append(
                f"{_goal(run, target)} goes with {WORDS[signs[0]][0]} neurons: {few}; with "
                f"{WORDS[signs[1]][1]} ones: {same}."
            )
    if attention_to(run.tree, "sep") is None:
        return "Where heads look is not part of this run (surface);"
    if not sentences:
        return "No head attends to separators or neighbours, so nothing can be said of them."
    words = " ".join(filter(None, [*sentences, _groups(run), _sentence(run)]))
    return f"{words} ρ: rank correlation over heads;"


def correlation(run: Reading, quantity: str, target: str) -> tuple[float, float, float]:
    """Correlation over heads of a quantity of neurons with the attention to a target, and its
    interval."""
    return at(run("rank_correlation", quantity=quantity, target=target))


def _goal(run: Reading, target: str) -> str:
    if target == OWN:
        return "Even attention to the words of the own sentence"
    goal = run.special("sep") if target == "sep" else f"the {target} token"
    return f"Attention to {goal}"


def _sentence(run: Reading) -> str:
    """Which neurons tell the sentences of a pair apart, in the head that is most a bag of words."""
    if not run.has("bag_of_words"):
        return ""
    bag = run("bag_of_words")
    layer, head = largest_first(bag.value)[0]
    own = run.data.isel(layer=layer, head=head).sel(contrast=OWN)
    size = np.abs(own["separation"].values)  # [neuron]
    most = [int(at) for at in np.argsort(-size, kind="stable")[:NAMED] if size[at] > 0]
    if not most:
        return ""
    shares = size / size.sum()
    named = ", ".join(f"{neuron} ({percent(float(shares[neuron]))})" for neuron in most)
    return (
        f"Most a bag of words of its own sentence is {run.names.head(layer, head)}, "
        f"{number(*at(bag, layer, head))}: {plain(float(own['separation_effective']), '1')} "
        f"neurons tell the sentences apart there, most of all {named}, counted from 0."
    )


def _answer(run: Reading, sign: int, quantity: str, target: str) -> str:
    """Whether the interval lies on the expected side of 0, on the other, or on both or near 0; and
    if so, whether it departs from every network without training.
    """
    value, low, high = correlation(run, quantity, target)
    if not (np.isfinite(low) and np.isfinite(high)):
        return "not decided without an interval"
    if low <= 0 <= high or abs(value) < LEAST:
        return "neither way"
    way, half = np.sign(value), (high - low) / 2
    for other, *ends in _of_control(run, quantity, target):
        if way * (value - other) <= np.hypot(half, (ends[1] - ends[0]) / 2):
            return "no more than without training"
    return "yes" if way == sign else "no, the opposite"


def _of_control(run: Reading, quantity: str, target: str) -> list[tuple[float, float, float]]:
    """The same correlation in each network of the control that has one with an interval."""
    networks = [one for one in controls(run.tree) if run.question.name in one.children]
    readings = (Reading(network, run.question) for network in networks)
    rhos = [correlation(one, quantity, target) for one in readings]
    return [rho for rho in rhos if np.isfinite(rho).all()]


def _untrained(run: Reading, quantity: str, target: str) -> str:
    """`; without training −0.21 to 0.04`; '' where the run has no control."""
    rhos = [rho for rho, *_ in _of_control(run, quantity, target)]
    if not rhos:
        return ""
    digits = decimals(2, *rhos)
    ends = dict.fromkeys(fixed(rho, digits) for rho in (min(rhos), max(rhos)))
    return f"; without training {' to '.join(ends)}"


def _groups(run: Reading) -> str:
    tree = run.tree
    effective, overlap = (run(quantity).value for quantity in QUANTITIES)
    wanted = [
        (f"attend mainly to {run.special('sep')}", with_label(tree, "sep")),
        ("attend mainly to a neighbour", with_label(tree, *NEIGHBOURS)),
        ("are left", ~with_label(tree, *EXPECTED)),
    ]
    medians = [
        f"{plain(float(np.median(effective[here])), '1')} neurons, overlap "
        f"{fixed(float(np.median(overlap[here])), 2)}, in the {here.sum()} that {words}"
        for words, kind in wanted
        if (here := kind & np.isfinite(effective) & np.isfinite(overlap)).any()
    ]
    return f"Median heads: {'; '.join(medians)}." if len(medians) > 1 else ""


def _grid(title: str, parts: Estimate, run: Reading, control: tuple[float, float] | None) -> Panel:
    return grid_panel(title, parts.value, run.names, untrained=control, parts=parts)


def _scatter(run: Reading, axes: Axes) -> None:
    x, y = map(run, QUANTITIES)
    for kind in label_kinds(run.tree):
        here = np.isin(np.arange(x.value.size), kind.units).reshape(x.value.shape)
        axes.plot(*_whiskers(x, y, here), color=color(kind.hue), lw=0.6, alpha=0.35)
    pairs = zip(number_texts(x, "1"), number_texts(y, "1"), strict=True)
    texts = [f"{neurons} neurons, the same elsewhere {same}" for neurons, same in pairs]
    plot_kinds(axes, run.tree, x.value.ravel(), y.value.ravel(), texts=texts)
    _overlap_axis(run, axes)
    axes.set_xlabel("effective number of neurons")


def _whiskers(x: Estimate, y: Estimate, here: Bools) -> tuple[Floats, Floats]:
    """Both intervals of every head as one broken line: a path each would fill the page."""
    gap = np.full(x.value.shape, np.nan)

    def broken(*ends: Floats) -> Floats:
        return np.stack([*ends, gap], -1)[here].ravel()  # [head · point]

    across = broken(x.low, x.high), broken(x.value, x.value)
    upward = broken(y.value, y.value), broken(y.low, y.high)
    return np.concatenate(across), np.concatenate(upward)


def _by_share(run: Reading, axes: Axes) -> None:
    overlap = run("position_overlap").value
    read = {target: attention_to(run.tree, target) for target in EXPECTED if target in TARGETS}
    parts = {target: part for target, part in read.items() if part is not None}
    shares = {target: part.value for target, part in parts.items()}
    there = [target for target, share in shares.items() if np.nan_to_num(share).any()]
    for target in there:
        axes.plot(
            shares[target].ravel(),
            overlap.ravel(),
            marker(target),
            color=color(target),
            ms=3.6,
            mew=0,
            alpha=0.6,
            zorder=3,
        )
        texts = number_texts(parts[target], "probability")
        note_heads(axes, shares[target], overlap, texts, series=TARGETS[target].name)
    _overlap_axis(run, axes)
    axes.set_xlim(0)
    axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=" %"))
    axes.set_xlabel("attention to the target")
    names = {target: TARGETS[target].name for target in there} | {"sep": run.special("sep")}
    legend(axes, [(target, names[target]) for target in there], line=False)


def _by_bag(run: Reading, y: Estimate, label: str, axes: Axes) -> None:
    x = run("bag_of_words")
    every = np.ones(x.value.shape, bool)
    axes.axvline(0, color=color("rule"), lw=0.8, zorder=1)
    axes.plot(*_whiskers(x, y, every), color=color("blue"), lw=0.6, alpha=0.35)
    axes.plot(x.value.ravel(), y.value.ravel(), "o", color=color("blue"), ms=3.6, mew=0, zorder=3)
    pairs = zip(number_texts(x, "1"), number_texts(y, "1"), strict=True)
    texts = [f"bag of words {of_words}, {label} {other}" for of_words, other in pairs]
    note_heads(axes, x.value, y.value, texts)
    axes.set_ylim(0)
    axes.set_ylabel(label)
    axes.set_xlabel("bag of words of the own sentence")


def _overlap_axis(run: Reading, axes: Axes) -> None:
    axes.axhline(run.mean("chance_overlap"), color=color("muted"), ls=(0, (4, 2)), lw=0.8)
    axes.set_ylim(0, min(1.0, 1.1 * axes.get_ylim()[1]))
    axes.set_ylabel("overlap between positions")


SOURCES = ("word", "position", "segment")
_SPREAD = 0.28  # of a row: heads side by side, so that all show


def source_panels(run: Reading) -> list[Panel]:
    """A panel for each kind of keys."""
    return [
        Panel(_title(run, contrast), partial(_draw_sources, values), height=0.62)
        for contrast, values in _by_key(run).items()
    ]


def source_caption(run: Reading) -> str:
    """How to read them, and the shares of all heads."""
    parts = []
    for contrast, values in _by_key(run).items():
        size = np.abs(values).sum(axis=0)
        if size.sum() > 0:
            shares = zip(SOURCES, 100 * (size / size.sum()), strict=True)
            words = ", ".join(f"{name} {fixed(share, 0)} %" for name, share in shares)
            parts.append(f"{_title(run, contrast)}: {words}")
    return (
        "First layer, a mark per head: how much more score keys of the kind get than the other "
        "keys of the input, split by the part of the key’s embedding that it comes from (the three "
        "add up exactly; the biases are the same for every key). Shares of all heads’ absolute "
        f"contributions: {'; '.join(parts)}. {run.over()}. After Vig (2019)."
    )


def _by_key(run: Reading) -> dict[str, Floats]:
    """Contrast → [head, source], summed over the parts of the query."""
    whole = run.data["embedding_separation"].sum("part", skipna=False)
    whole = whole.sel(part_other=list(SOURCES)).transpose("contrast", "head", "part_other")
    return {
        str(contrast.item()): values.values
        for contrast, values in zip(whole["contrast"], whole, strict=True)
        if np.isfinite(values).all()
    }


def _title(run: Reading, contrast: str) -> str:
    return {
        "sep": f"{run.special('sep')} from the rest",
        "same_segment": "Same segment from the other",
        "next": "Next token from the rest",
        OWN: "Own sentence from the other",
    }[contrast]


def _draw_sources(values: Floats, axes: Axes) -> None:
    heads = len(values)
    shifts = np.linspace(-_SPREAD, _SPREAD, heads) if heads > 1 else np.zeros(1)
    axes.axvline(0, color=color("rule"), lw=0.8, zorder=1)
    for place in range(len(SOURCES)):
        texts = number_texts(without_ends(values[:, place]), "1")
        note_heads(axes, values[:, place], place + shifts, texts, series=SOURCES[place])
        axes.plot(
            values[:, place],
            place + shifts,
            "o",
            color=color("blue"),
            ms=3.4,
            mew=0,
            alpha=0.75,
            zorder=3,
        )
    axes.set_yticks(range(len(SOURCES)), SOURCES)
    axes.set_ylim(len(SOURCES) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("difference of scores")


def finding(run: Reading) -> str:
    """On how many neurons a score rests."""
    median = plain(float(np.nanmedian(run("effective").value)), "1")
    return f"A score of the median head rests on {median} of {run.data.sizes['neuron']} neurons."
