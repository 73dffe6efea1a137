"""What did Kovaleva et al. (2019) publish, in which order, and how are §4.1-§4.5 read off runs?"""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import resources

import numpy as np
import xarray as xr

from headscope.core.terms import KOVALEVA
from headscope.core.wording import fixed
from headscope.papers.reproduce import kovaleva_tasks as tasks
from headscope.papers.reproduce.line import (
    Answer,
    Line,
    NotRun,
    Paper,
    Published,
    Results,
    Section,
    Shown,
)
from headscope.papers.reproduce.reading import counted, drawn, ends, named, percent, places_of

Measure = Callable[[Results], Answer]
TASKS = tasks.TASKS
NAMES = tasks.NAMES
SPECIAL = ("cls", "sep")
NEGLIGIBLE = 0.1  # ours: of what [SEP] draws
TREES = "sentences of a treebank"


# --- §4.1: classes of maps -------------------------------------------------------------------


def _card(*path: str) -> float:
    file = resources.files("headscope.analyses.patterns") / "data" / "card.json"
    found = json.loads(file.read_text("utf-8"))
    for key in path:
        found = found[key]
    return float(found)


def _classifier(results: Results) -> Answer:
    """The bundled classifier's macro-F1 on maps that it had not learned from."""
    place = ("scores", "network", "Held-out maps")
    value, low, high = (_card(*place, key) for key in ("macro_f1", "ci_low", "ci_high"))
    return Answer(value, low, high, f"{int(_card('maps')):,} labelled maps",
                  shown="macro-F1; how the paper averaged is not stated",
                  elsewhere="maps labelled for headscope")  # fmt: skip


def _vertical(results: Results) -> Answer:
    share = _card("maps_by_class", "vertical") / _card("maps")
    return Answer(share, n=f"{int(_card('maps')):,} labelled maps",
                  elsewhere="maps labelled for headscope")  # fmt: skip


def _heterogeneous(task: str) -> Measure:
    def measure(results: Results) -> Answer:
        part = f"compare:{task}"
        found = results.group(part, "patterns")
        shares = {p: ends(found, "model_share", pattern=p) for p in found["pattern"].values}
        shown = ", ".join(
            f"{str(p).replace('_', ' + ')} {percent(v[0], 0)}" for p, v in shares.items()
        )
        return Answer(*shares["heterogeneous"], counted(results.run(part)), shown=shown)

    return measure


def _classes() -> tuple[Line, ...]:
    values = {"mrpc": "32", "qqp": "61"}
    lines = [
        Line(f"heterogeneous-{task}", "Figure 2", f"{NAMES[task]}: maps that are heterogeneous",
             (f"compare:{task}",), _heterogeneous(task),
             (Published(values.get(task, "32–61")),), unit="%")
        for task in TASKS
    ]  # fmt: skip
    return (
        Line("classifier", "§4.1", "F1 of the classifier of maps", (), _classifier,
             (Published("0.86"),)),
        Line("vertical", "§4.1", "Labelled maps that are vertical", (), _vertical,
             (Published("30"),), unit="%"),
        *lines,
    )  # fmt: skip


# --- §4.2: frames ----------------------------------------------------------------------------


def _sentences(results: Results) -> Answer:
    run = results.run("frames")
    return Answer(float(run.manifest["counts"]["examples"]), n=counted(run),
                  elsewhere=results.others.get("frames", ""))  # fmt: skip


def _frame_head(rank: int) -> Measure:
    """The score of the best head, or the second; whether it is more than distances would give."""

    def measure(results: Results) -> Answer:
        run, frames = results.run("frames"), results.group("frames", "frames")
        scores = drawn(frames, "score")[0]
        at = places_of(scores)[rank]
        here = frames.isel(layer=at[0], head=at[1])
        p, chance = float(here["p_value"]), float(here["chance"])
        rest = np.delete(
            scores.ravel(), [r * scores.shape[1] + c for r, c in places_of(scores)[:2]]
        )
        shown = (
            f"{named(*at)}; chance {fixed(chance, 3)}, p = {fixed(p, 3)}; the other heads: median "
            f"{fixed(float(np.nanmedian(rest)), 3)}, most {fixed(float(np.nanmax(rest)), 3)}"
        )
        value = ends(frames.isel(layer=at[0], head=at[1]), "score")
        return Answer(*value, counted(run), holds=p < 0.05, shown=shown,
                      elsewhere=results.others.get("frames", ""))  # fmt: skip

    return measure


def _frame_heads_do_not_matter(results: Results) -> Answer:
    """What disabling the two best frame heads costs on every task there is."""
    scores = drawn(results.group("frames", "frames"), "score")[0]
    told, needed = [], False
    for task in TASKS:
        if f"ablate:{task}" not in results:
            continue
        found = results.group(f"ablate:{task}", "ablation")
        for layer, head in places_of(scores)[:2]:
            change = float(found["difference"].values[layer, head])
            needed |= str(found["verdict"].values[layer, head]) == "helpful"
            told.append(f"{NAMES[task]} {named(layer, head)} {tasks.points(change)}")
    if not told:
        raise NotRun(results.absent.get("ablate:rte", "needs checkpoints"))
    return Answer(n=f"{len(told) // 2} tasks", holds=not needed, shown="; ".join(told))


def _frames() -> tuple[Line, ...]:
    p = "p < 0.05 against links moved to other places of the sentence, corrected for all heads"
    return (
        Line("frames-sentences", "§4.2", "Sentences kept of FrameNet 1.7", ("frames",), _sentences,
             (Published("473"),)),
        Line("frames-best", "§4.2", "Two heads link frame elements to their target (7-6, 1-2): the "
             "best, mean of largest weights", ("frames",), _frame_head(0), (Published("0.209"),),
             direction=p),
        Line("frames-second", "§4.2", "The second best", ("frames",), _frame_head(1),
             (Published("0.201"),), direction=p),
        Line("frames-needed", "§4.2", "Neither head matters for any task when disabled",
             ("frames",), _frame_heads_do_not_matter,
             direction="no task loses by either, q < 0.05"),
    )  # fmt: skip


# --- §4.4: features --------------------------------------------------------------------------


def _layers_of(results: Results, part: str, key: str) -> xr.DataArray:
    """[layer] a quantity of the fine-tuned model, mean over heads."""
    change = results.group(part, "change")
    if key not in change["quantity"].values:
        raise NotRun(f"needs {key}, which does not exist here")
    return change["layer_after"].sel(quantity=key)


def _early_late(task: str) -> Measure:
    def measure(results: Results) -> Answer:
        part = f"compare:{task}"
        peaks = {
            kind: int(np.nanargmax(_layers_of(results, part, f"surface.attention.{kind}").values))
            for kind in SPECIAL
        }
        shown = f"[CLS] most in layer {peaks['cls'] + 1}, [SEP] in layer {peaks['sep'] + 1}"
        return Answer(n=counted(results.run(part)), holds=peaks["cls"] < peaks["sep"], shown=shown)

    return measure


def _sst_sep(results: Results) -> Answer:
    found = {}
    for task in TASKS:
        if f"compare:{task}" in results:
            change = results.group(f"compare:{task}", "change")
            found[task] = ends(change, "model_after", quantity="surface.attention.sep")
    if len(found) < 2 or "sst-2" not in found:
        raise NotRun("needs checkpoints for SST-2 and another task; headscope finetune")
    order = sorted(found, key=lambda task: -found[task][0])
    shown = ", ".join(f"{NAMES[task]} {percent(found[task][0])}" for task in order)
    rest = max(found[task][2] for task in found if task != "sst-2")
    return Answer(*found["sst-2"], counted(results.run("compare:sst-2")),
                  holds=bool(found["sst-2"][1] > rest), shown=shown)  # fmt: skip


def _negligible(task: str, kinds: tuple[str, ...]) -> Measure:
    """The largest change of attention to these kinds of words, of what [SEP] draws."""

    def measure(results: Results) -> Answer:
        part = f"told:{task}"
        change = results.group(part, "change")
        sep = ends(change, "model_after", quantity="features.attention.sep")[0]
        there = [k for k in kinds if f"features.attention.{k}" in change["quantity"].values]
        if not there or not np.isfinite(sep):
            raise NotRun("needs words of these kinds, and [SEP]")
        moved = {k: ends(change, "model_difference", quantity=f"features.attention.{k}")
                 for k in there}  # fmt: skip
        most = max(there, key=lambda k: abs(moved[k][0]))
        value = tuple(x / sep for x in moved[most])
        return Answer(value[0], value[1], value[2], counted(results.run(part)),
                      holds=abs(value[0]) < NEGLIGIBLE, elsewhere=TREES,
                      shown=f"{most} {tasks.points(moved[most][0])}, [SEP] draws "
                      f"{percent(sep)}")  # fmt: skip

    return measure


def _features() -> tuple[Line, ...]:
    kinds = {"mrpc": ("noun", "object"), "rte": ("noun", "object"), "qqp": ("noun", "object"),
             "qnli": ("negation",)}  # fmt: skip
    small = "below a tenth of what [SEP] draws"
    return (
        *(Line(f"early-late-{task}", "§4.4", f"{NAMES[task]}: [CLS] is attended in early layers, "
               "[SEP] in later ones", (f"compare:{task}",), _early_late(task),
               direction="[CLS] draws most in an earlier layer than [SEP]") for task in TASKS),
        Line("sst-sep", "§4.4", "[SEP] draws most on SST-2, whose inputs have one only",
             ("compare:sst-2",), _sst_sep, unit="%", direction="more than on any other task, by "
             "the intervals"),
        *(Line(f"features-{task}", "§4.4", f"{NAMES[task]}: attention to {' and '.join(k)} words "
               "hardly changes: the change, of attention to [SEP]", (f"told:{task}",),
               _negligible(task, k), unit="%", direction=small) for task, k in kinds.items()),
    )  # fmt: skip


# --- §4.5: token to token --------------------------------------------------------------------


def _pairs(results: Results) -> Answer:
    """How diagonal the maps of the heads are that link subject and verb most."""
    run, pairs = results.run("words"), results.group("words", "pairs")
    score = np.fmax(*(drawn(pairs, "attention", pair=p)[0]
                      for p in ("subject_to_verb", "verb_to_subject")))  # fmt: skip
    found = results.group("words", "patterns")["share"]
    diagonal = found.sel(pattern=["diagonal", "vertical_diagonal"]).sum("pattern").values
    top = places_of(score)[:5]
    value = float(np.mean([diagonal[at] for at in top]))
    every = float(np.nanmean(diagonal))
    shown = f"{', '.join(named(*at) for at in top)}; all heads {percent(every)}"
    return Answer(value, n=counted(run), holds=value > every, shown=shown, elsewhere=TREES)


def _last_cls(task: str) -> Measure:
    """What the last layer's [CLS] looks at most, mean over heads."""

    def measure(results: Results) -> Answer:
        part = f"told:{task}"
        found = results.group(part, "cls_attention")["attention"].mean("head")
        order = found.sortby(-found)
        top = [str(name) for name in order["feature"].values[:3]]
        shown = ", ".join(f"{name} {percent(float(order.sel(feature=name)))}" for name in top)
        wanted = "punctuation" if task in ("sts-b", "rte", "qnli") else "sep"
        n = counted(results.run(part))
        return Answer(n=n, holds=top[0] == wanted, shown=shown, elsewhere=TREES)

    return measure


def _token_to_token() -> tuple[Line, ...]:
    exceptions = {"sts-b", "rte", "qnli"}
    return (
        Line("pairs-diagonal", "§4.5", "Heads that link subject and verb are diagonal: diagonal "
             "maps of the best five", ("words",), _pairs, unit="%",
             direction="more than of all heads"),
        *(Line(f"last-cls-{task}", "§4.5", f"{NAMES[task]}: the last layer’s [CLS] "
               f"attends most to {'punctuation' if task in exceptions else '[SEP]'}",
               (f"told:{task}",), _last_cls(task),
               direction="the largest mean over heads of eight kinds of tokens") for task in TASKS),
    )  # fmt: skip


PAPER = Paper(
    "kovaleva2019",
    "Revealing the Dark Secrets of BERT",
    KOVALEVA,
    "google-bert/bert-base-uncased",
    ("bert-base-uncased",),
    (
        Section("classes", "Self-attention patterns (§4.1)", "Maps fall into five classes; only "
                "heterogeneous ones can depend much on what the words are. The paper’s labels and "
                "network were never released: these are headscope’s own.", _classes(),
                tuple(Shown(f"compare:{task}", "patterns", f"Figure 2, {NAMES[task]}")
                      for task in TASKS)),
        Section("frames", "Relation-specific heads (§4.2)", "Two heads of the pre-trained model "
                "look from a frame element to the word that evokes the frame.", _frames(),
                (Shown("frames", "frames"),)),
        Section("tasks", "Tasks, before and after fine-tuning (Table 1)", "Fine-tuning helps on "
                "every task, and what was learned in pre-training is needed for it.",
                tasks.table_1()),
        Section("change", "Change by fine-tuning (§4.3)", "The last two layers change most, on all "
                "tasks but QQP.", tasks.last_layers(),
                tuple(Shown(f"compare:{task}", "similarity", f"Figure 5, {NAMES[task]}")
                      for task in TASKS)),
        Section("features", "Attention to linguistic features (§4.4)", "Words of a kind draw "
                "little more after fine-tuning; special tokens draw most.", _features(),
                tuple(Shown(f"told:{task}", "features_by_layer", NAMES[task]) for task in TASKS)),
        Section("tokens", "Token to token, and the last [CLS] (§4.5)", "Heads that link subject "
                "and verb are diagonal; the last [CLS] rests on [SEP] or punctuation.",
                _token_to_token(), (Shown("words", "pairs"),)),
        Section("disabling", "Disabling heads and layers (§4.6)", "A head, or all heads of a "
                "layer, attends evenly instead. On some tasks that helps.", tasks.disabling(),
                tuple(Shown(f"ablate:{task}", "ablation", NAMES[task]) for task in TASKS)),
    ),
)  # fmt: skip
