"""What did Clark et al. (2019) find of language in heads, Tables 1 to 3, and how is it read off?"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import xarray as xr

from headscope.core.accumulators import Float64
from headscope.papers.reproduce.data import KEYS
from headscope.papers.reproduce.line import Answer, Line, NotRun, Published, Results
from headscope.papers.reproduce.reading import (
    answer,
    counted,
    drawn,
    ends,
    named,
    percent,
    surely_above,
)

Measure = Callable[[Results], Answer]
OFFSETS = (-3, -2, -1, 1, 2)  # of the baseline, as in the released code
NOTEBOOK = "released notebook"
# Stanford label → its counterpart in Universal Dependencies; a preposition is the head there of
# what UD hangs it on, so `case` is `pobj` the other way round, and `prep` has no counterpart.
UD = {
    "pobj": "case", "nn": "compound", "dobj": "obj", "poss": "nmod:poss", "auxpass": "aux:pass",
    "prt": "compound:prt", "num": "nummod", "nsubjpass": "nsubj:pass", "rcmod": "acl:relcl",
}  # fmt: skip
# relation, head, accuracy, baseline, its offset (Table 1); what the notebook has instead
TABLE_1 = (
    ("all", "7-6", "34.5", "26.3", "1", "34.7", "26.7"),
    ("prep", "7-4", "66.7", "61.8", "−1", "", ""),
    ("pobj", "9-6", "76.3", "34.6", "−2", "", ""),
    ("det", "8-11", "94.3", "51.7", "1", "", ""),
    ("nn", "4-10", "70.4", "70.2", "1", "", ""),
    ("nsubj", "8-2", "58.5", "45.5", "1", "", ""),
    ("amod", "4-10", "75.6", "68.3", "1", "", ""),
    ("dobj", "8-10", "86.8", "40.0", "−2", "", ""),
    ("advmod", "7-6", "48.8", "40.2", "1", "", ""),
    ("aux", "4-10", "81.1", "71.5", "1", "", ""),
    ("poss", "7-6", "80.5", "47.7", "1", "", ""),
    ("auxpass", "4-10", "82.5", "40.5", "1", "94.1", "82.5"),
    ("ccomp", "8-1", "48.8", "12.4", "−2", "", ""),
    ("mark", "8-2", "50.7", "14.5", "2", "", ""),
    ("prt", "6-7", "99.1", "91.4", "−1", "", ""),
)
# Only in the released notebook.
MORE = (
    ("num", "8-11", "67.4"), ("cc", "7-5", "47.8"), ("conj", "7-1", "53.3"), ("cop", "7-6", "72.2"),
    ("nsubjpass", "7-6", "57.5"), ("neg", "4-10", "72.5"), ("possessive", "7-12", "98.8"),
    ("rcmod", "", "40.9"), ("advcl", "", "29.5"),
)  # fmt: skip
COUNTS = (
    ("punct", "4703"), ("prep", "3760"), ("pobj", "3720"), ("det", "3337"), ("nn", "3192"),
    ("nsubj", "2804"), ("amod", "2505"), ("root", "1696"), ("dobj", "1591"), ("advmod", "1241"),
)  # fmt: skip
KINDS = ("all", "pronoun", "proper", "nominal")
# system, its words, All, Pronoun, Proper, Nominal
TABLE_2 = (
    ("nearest", "nearest other mention", ("27", "29", "29", "19")),
    ("head_match", "nearest with the same head word", ("52", "47", "67", "40")),
    ("rule_based", "rule-based sieve", ("69", "70", "77", "60")),
    ("head", "the best head (5-4)", ("65.1", "64", "73", "58")),
)
BELOW = {"head_match": "nearest", "rule_based": "head_match"}


# --- Table 1 ---------------------------------------------------------------------------------


def _at(found: xr.Dataset, relation: str) -> tuple[xr.Dataset, str]:
    """The results of one relation, and by which name the treebank has it."""
    names = [str(name) for name in found["relation"].values]
    for name in (relation, UD.get(relation, relation)):
        if name in names:
            return found.isel(relation=names.index(name)), name
    raise NotRun(f"needs a treebank with the relation {relation}; this one has no counterpart")


def _accuracy(relation: str) -> Measure:
    def measure(results: Results) -> Answer:
        found, name = _at(results.group("dependency", "dependency"), relation)
        value, low, high = ends(found, "best_accuracy")
        if not np.isfinite(value):
            raise NotRun(f"needs words with the relation {name}")
        gain, least, _ = ends(found, "advantage")
        way = int(found["best_direction"])
        arrow = ("dependent → head", "head → dependent")[way]
        shown = f"{named(int(found['best_layer']), int(found['best_head']))}, {arrow}"
        shown += f"; held out {percent(ends(found, 'held_out')[0])}"
        shown += f"; as {name}" if name != relation else ""
        sure = least if np.isfinite(least) else gain
        return Answer(value, low, high, _words(found), holds=bool(sure > 0), shown=shown,
                      elsewhere=results.others.get("treebank", ""))  # fmt: skip

    return measure


def _baseline(relation: str) -> Measure:
    """The best of the paper's offsets, picked on the words that it is scored on, as there."""

    def measure(results: Results) -> Answer:
        run = results.run("dependency")
        found, _ = _at(results.group("dependency", "dependency"), relation)
        draws = drawn(found.sel(offset=list(OFFSETS)), "offset_accuracy")  # [replicate + 1, offset]
        best = int(np.nanargmax(draws[0]))
        shown = f"offset {OFFSETS[best]:+d}".replace("-", "−")
        return answer(draws[:, best], run, n=_words(found), shown=shown,
                      elsewhere=results.others.get("treebank", ""))  # fmt: skip

    return measure


def _count(relation: str) -> Measure:
    def measure(results: Results) -> Answer:
        found, name = _at(results.group("dependency", "dependency"), relation)
        shown = f"as {name}" if name != relation else ""
        return Answer(float(found["count"]), n=counted(results.run("dependency")), shown=shown,
                      elsewhere=results.others.get("treebank", ""))  # fmt: skip

    return measure


def _sentences(results: Results) -> Answer:
    run = results.run("dependency")
    return Answer(float(run.manifest["counts"]["examples"]), n=counted(run),
                  elsewhere=results.others.get("treebank", ""))  # fmt: skip


def _split(results: Results) -> Answer:
    found = results.group("split", "split")
    return Answer(float(found["share"]), n=f"{int(found['words']):,} words",
                  elsewhere=results.others.get("treebank", ""))  # fmt: skip


def _words(found: xr.Dataset) -> str:
    return f"{int(found['count']):,} words"


def table_1() -> tuple[Line, ...]:
    """§4.2: the best head of every relation, and the best fixed offset."""
    beats = "held out, the best head finds more than the best fixed offset, by the interval"
    lines = []
    for relation, head, accuracy, baseline, offset, other, other_base in TABLE_1:
        name = "all relations" if relation == "all" else relation
        both = (Published(accuracy), *_notebook(other))
        bases = (Published(baseline), *_notebook(other_base))
        lines += [
            Line(f"table1-{relation}", "Table 1", f"{name}: the best head ({head})",
                 ("dependency",), _accuracy(relation), both, unit="%", direction=beats),
            Line(f"table1-{relation}-offset", "Table 1", f"{name}: the best fixed offset "
                 f"({offset})", ("dependency",), _baseline(relation), bases, unit="%"),
        ]  # fmt: skip
    for relation, head, accuracy in MORE:
        best = f"the best head ({head})" if head else "the best head"
        lines.append(
            Line(f"notebook-{relation}", NOTEBOOK, f"{relation}: {best}", ("dependency",),
                 _accuracy(relation), (Published(accuracy, "code"),), unit="%", direction=beats)
        )  # fmt: skip
    return tuple(lines)


def _notebook(text: str) -> tuple[Published, ...]:
    return (Published(text, "code", where=NOTEBOOK),) if text else ()


def treebank() -> tuple[Line, ...]:
    """What the trees are."""
    return (
        Line("treebank-sentences", "data", "Sentences", ("dependency",), _sentences,
             (Published("1696", "code"),)),
        *(Line(f"treebank-{relation}", "data", f"Words with the relation {relation}",
               ("dependency",), _count(relation), (Published(text, "code"),))
          for relation, text in COUNTS),
        Line("treebank-split", "§4.1", "Words that are split into several tokens", ("split",),
             _split, (Published("8"),), unit="%"),
    )  # fmt: skip


# --- Table 2 ---------------------------------------------------------------------------------


def _system(system: str, kind: str) -> Measure:
    def measure(results: Results) -> Answer:
        run, found = results.run("coreference"), results.group("coreference", "coreference")
        draws = drawn(found, "baseline", system=system, mention_type=kind)
        holds = None
        if system in BELOW:
            less = drawn(found, "baseline", system=BELOW[system], mention_type=kind)
            holds = surely_above(draws - less, run)
        return answer(draws, run, n=_mentions(found, kind), holds=holds,
                      elsewhere=results.others.get("coref", ""))  # fmt: skip

    return measure


def _one_head(kind: str) -> Measure:
    """The head that is best for all mentions, at each kind, as in the paper."""

    def measure(results: Results) -> Answer:
        run, found = results.run("coreference"), results.group("coreference", "coreference")
        places = [float(found[name].values[0]) for name in ("best_layer", "best_head")]
        if not np.isfinite(places).all():
            raise NotRun("needs mentions with an antecedent in the same input")
        layer, head = (int(x) for x in places)
        draws = drawn(found.isel(layer=layer, head=head), "accuracy", mention_type=kind)
        match: Float64 = drawn(found, "baseline", system="head_match", mention_type=kind)
        return answer(draws, run, n=_mentions(found, kind), holds=surely_above(draws - match, run),
                      shown=named(layer, head),
                      elsewhere=results.others.get("coref", ""))  # fmt: skip

    return measure


def _mentions(found: xr.Dataset, kind: str) -> str:
    return f"{int(found['count'].sel(mention_type=kind)):,} mentions"


def _neural(results: Results) -> Answer:
    raise NotRun("needs another system (Wiseman et al. 2015), which the paper calls not comparable")


def table_2() -> tuple[Line, ...]:
    """§4.3."""
    lines = []
    for system, words, values in TABLE_2:
        for kind, text in zip(KINDS, values, strict=True):
            of = "all mentions" if kind == "all" else f"{kind} mentions"
            if system == "head":
                measure, direction = _one_head(kind), "surely above the same head word’s"
            else:
                measure = _system(system, kind)
                names = {"nearest": "the nearest mention’s", "head_match": "the same head word’s"}
                direction = f"surely above {names[BELOW[system]]}" if system in BELOW else ""
            lines.append(
                Line(f"table2-{system}-{kind}", "Table 2", f"{words[0].upper()}{words[1:]}, {of}",
                     ("coreference",), measure, (Published(text),), unit="%", direction=direction)
            )  # fmt: skip
    neural = "A neural coreference system, all mentions"
    return (*lines, Line("table2-neural", "Table 2", neural, ("coreference",), _neural,
                         (Published("83"),), unit="%"))  # fmt: skip


# --- Table 3 ---------------------------------------------------------------------------------

# probe, its words, UAS, the probes that it stands above, below
TABLE_3: Sequence[tuple[str, str, tuple[Published, ...], str, str]] = (
    ("right_branching", "right-branching", (Published("26"),), "", ""),
    ("distances_words", "distances and word vectors", (Published("58"),), "right_branching", ""),
    ("random_words", "attention of a random model and word vectors", (Published("30"),), "",
     "attention_words"),
    ("attention", "attention only", (Published("61"),), "right_branching", ""),
    ("attention_words", "attention and word vectors",
     (Published("77"), Published("78.0", "code", where=NOTEBOOK)), "distances_words", ""),
)  # fmt: skip


def _probe(name: str, above: str, below: str) -> Measure:
    def measure(results: Results) -> Answer:
        found = results.group("probes", "probes")
        value, low, high = ends(found, "uas", probe=name)
        if not np.isfinite(value):
            raise NotRun(f"needs words: {KEYS['words'].what}; {KEYS['words'].where}")
        pair = (name, above) if above else (below, name)  # the first ought to find more
        holds = None
        if all(pair):
            gain, least, _ = ends(found, "difference", probe=pair[0], probe_other=pair[1])
            holds = bool((least if np.isfinite(least) else gain) > 0)
        return Answer(value, low, high, _tested(found), holds=holds,
                      elsewhere=results.others.get("probe_test", ""))  # fmt: skip

    return measure


def _tested(found: xr.Dataset) -> str:
    return f"{int(found.attrs['test_sentences']):,} test sentences"


def _structural(results: Results) -> Answer:
    """The structural probe on the layer that it was trained on; of several, the best."""
    found = results.group("probes", "probes")
    values = drawn(found, "structural_uuas")[0]  # [layer]
    if not np.isfinite(values).any():
        raise NotRun("needs more sentences to train and score on")
    layer = int(np.nanargmax(values))
    return Answer(*ends(found.isel(layer=layer), "structural_uuas"), _tested(found),
                  shown=f"layer {layer + 1}",
                  elsewhere=results.others.get("probe_test", ""))  # fmt: skip


def table_3() -> tuple[Line, ...]:
    """§5."""
    names = {name: words for name, words, *_ in TABLE_3}
    lines = []
    for name, words, published, above, below in TABLE_3:
        claim = f"UAS: {words}"
        direction = f"surely above {names[above]}" if above else ""
        direction = f"surely below {names[below]}" if below else direction
        lines.append(
            Line(f"table3-{name}", "Table 3", claim, ("probes",), _probe(name, above, below),
                 published, unit="%", direction=direction)
        )  # fmt: skip
    structural = "UUAS: structural probe on hidden states (not comparable)"
    return (*lines, Line("table3-structural", "Table 3", structural, ("probes",), _structural,
                         (Published("80"),), unit="%"))  # fmt: skip
