"""Clark et al. (2019): what they published of language in heads, Tables 1 to 3."""

from collections.abc import Sequence

import numpy as np
import xarray as xr

from headscope.claims.verdict import above
from headscope.core.intervals import SHARE
from headscope.core.results import best_places
from headscope.core.wording import capital
from headscope.papers import quantities
from headscope.papers.claim_engine import ClaimGroup, PaperClaim
from headscope.papers.paper_data import KEYS
from headscope.papers.published import Published
from headscope.papers.quantities import RULE, Measured, PaperRun, Unmeasured

OFFSETS = (-3, -2, -1, 1, 2)  # of the baseline, as in the released code
NOTEBOOK = "released notebook"
# Stanford label → its counterpart in Universal Dependencies; a preposition is the head there of
# what UD hangs it on, so `case` is `pobj` the other way round, and `prep` has no counterpart.
UD = {
    "pobj": "case",
    "nn": "compound",
    "dobj": "obj",
    "poss": "nmod:poss",
    "auxpass": "aux:pass",
    "prt": "compound:prt",
    "num": "nummod",
    "nsubjpass": "nsubj:pass",
    "rcmod": "acl:relcl",
}
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
# probe, its words, UAS, the probes that it stands above, below
TABLE_3: Sequence[tuple[str, str, tuple[Published, ...], str, str]] = (
    ("right_branching", "right-branching", (Published("26"),), "", ""),
    ("distances_words", "distances and word vectors", (Published("58"),), "right_branching", ""),
    (
        "random_words",
        "attention of a random model and word vectors",
        (Published("30"),),
        "",
        "attention_words",
    ),
    ("attention", "attention only", (Published("61"),), "right_branching", ""),
    (
        "attention_words",
        "attention and word vectors",
        (Published("77"), Published("78.0", "code", where=NOTEBOOK)),
        "distances_words",
        "",
    ),
)


def of_relation(run: PaperRun, relation: str) -> tuple[xr.Dataset, str, str]:
    """The results of one relation, its name in the treebank, and a remark where that is another."""
    results = run.results("dependency")
    names = [str(name) for name in results["relation"].values]
    for name in (relation, UD.get(relation, relation)):
        if name in names:
            remark = f"as {name}" if name != relation else ""
            return results.isel(relation=names.index(name)), name, remark
    raise Unmeasured(f"needs a treebank with the relation {relation}; this one has no counterpart")


@quantities.reads("dependency")
def _accuracy(run: PaperRun, relation: str) -> Measured:
    results, name, remark = of_relation(run, relation)
    number = quantities.stored(results, "best_accuracy")
    if not np.isfinite(number[0]):
        raise Unmeasured(f"needs words with the relation {name}")
    arrow = ("dependent → head", "head → dependent")[int(results["best_direction"])]
    head = run.names.own(int(results["best_layer"]), int(results["best_head"]))
    held_out = quantities.percent_text(quantities.stored(results, "held_out")[0])
    detail = "; ".join(filter(None, (f"{head}, {arrow}", f"held out {held_out}", remark)))
    verdict = above(*quantities.stored(results, "advantage"))
    return Measured(*number, _words(results), verdict=verdict, detail=detail)


@quantities.reads("dependency", about=RULE)
def _baseline(run: PaperRun, relation: str) -> Measured:
    """The best of the paper's offsets, picked on the words that it is scored on, as there."""
    results, *_ = of_relation(run, relation)
    draws = quantities.draws_of(results.sel(offset=list(OFFSETS)), "offset_accuracy")
    best = int(np.nanargmax(draws[0]))  # draws [replicate + 1, offset]
    detail = f"offset {OFFSETS[best]:+d}".replace("-", "−")
    return run.measured(draws[:, best], bounds=SHARE, n=_words(results), detail=detail)


@quantities.reads("dependency", about=RULE)
def _count(run: PaperRun, relation: str) -> Measured:
    results, _, remark = of_relation(run, relation)
    return Measured(float(results["count"]), n=run.counted, detail=remark, exact=True)


@quantities.reads("split", about=RULE)
def _split(run: PaperRun) -> Measured:
    results = run.results("split")
    return Measured(float(results["share"]), n=f"{int(results['words']):,} words", exact=True)


def _words(results: xr.Dataset) -> str:
    return f"{int(results['count']):,} words"


def _notebook(text: str) -> tuple[Published, ...]:
    return (Published(text, "code", where=NOTEBOOK),) if text else ()


def _table_1() -> tuple[PaperClaim, ...]:
    beats = "held out, the best head finds more than the best fixed offset, by the interval"
    claims = []
    for relation, head, accuracy, baseline, offset, other, other_base in TABLE_1:
        name = "all relations" if relation == "all" else relation
        both = (Published(accuracy), *_notebook(other))
        bases = (Published(baseline), *_notebook(other_base))
        claims += [
            PaperClaim(
                f"table1-{relation}",
                "Table 1",
                f"{name}: the best head ({head})",
                _accuracy(relation),
                both,
                "%",
                beats,
                "treebank",
            ),
            PaperClaim(
                f"table1-{relation}-offset",
                "Table 1",
                f"{name}: the best fixed offset ({offset})",
                _baseline(relation),
                bases,
                "%",
                data="treebank",
            ),
        ]
    for relation, head, accuracy in MORE:
        best = f"the best head ({head})" if head else "the best head"
        claims.append(
            PaperClaim(
                f"notebook-{relation}",
                NOTEBOOK,
                f"{relation}: {best}",
                _accuracy(relation),
                (Published(accuracy, "code"),),
                "%",
                beats,
                "treebank",
            )
        )
    return tuple(claims)


TREEBANK = ClaimGroup(
    "treebank",
    "The treebank",
    "Trees of the Penn Treebank’s development part, in Stanford Dependencies. With Universal "
    "Dependencies, relations of the same meaning stand in for them.",
    (
        PaperClaim(
            "treebank-sentences",
            "data",
            "Sentences",
            quantities.example_count("dependency"),
            (Published("1696", "code"),),
            data="treebank",
        ),
        *(
            PaperClaim(
                f"treebank-{relation}",
                "data",
                f"Words with the relation {relation}",
                _count(relation),
                (Published(text, "code"),),
                data="treebank",
            )
            for relation, text in COUNTS
        ),
        PaperClaim(
            "treebank-split",
            "§4.1",
            "Words that are split into several tokens",
            _split(),
            (Published("8"),),
            "%",
            data="treebank",
        ),
    ),
)
SYNTAX = ClaimGroup(
    "dependency",
    "Dependency syntax (§4.2)",
    "Single heads find single relations, far better than fixed offsets do. Head and offset are "
    "both picked on the words that they are scored on, as in the paper.",
    _table_1(),
)


@quantities.reads("coreference", about=RULE)
def _system(run: PaperRun, system: str, kind: str) -> Measured:
    results = run.results("coreference")
    draws = quantities.draws_of(results, "baseline", system=system, mention_type=kind)
    verdict = None
    if system in BELOW:
        less = quantities.draws_of(results, "baseline", system=BELOW[system], mention_type=kind)
        verdict = run.above(draws - less)
    return run.measured(draws, bounds=SHARE, n=_mentions(results, kind), verdict=verdict)


@quantities.reads("coreference")
def _one_head(run: PaperRun, kind: str) -> Measured:
    """The head that is best for all mentions, at each kind, as in the paper."""
    results = run.results("coreference")
    places = [float(best_places(results)[0]), float(results["best_head"].values[0])]
    if not np.isfinite(places).all():
        raise Unmeasured("needs mentions with an antecedent in the same input")
    layer, head = (int(x) for x in places)
    draws = quantities.draws_of(results.isel(layer=layer, head=head), "accuracy", mention_type=kind)
    match = quantities.draws_of(results, "baseline", system="head_match", mention_type=kind)
    return run.measured(
        draws,
        bounds=SHARE,
        n=_mentions(results, kind),
        detail=run.names.head(layer, head),
        verdict=run.above(draws - match),
    )


def _mentions(results: xr.Dataset, kind: str) -> str:
    return f"{int(results['count'].sel(mention_type=kind)):,} mentions"


@quantities.reads("coreference")
def _neural(run: PaperRun) -> Measured:
    needs = "needs another system (Wiseman et al. 2015), which the paper calls not comparable"
    raise Unmeasured(needs)


def _table_2() -> tuple[PaperClaim, ...]:
    names = {"nearest": "the nearest mention’s", "head_match": "the same head word’s"}
    claims = []
    for system, words, values in TABLE_2:
        for kind, text in zip(KINDS, values, strict=True):
            of = "all mentions" if kind == "all" else f"{kind} mentions"
            if system == "head":
                measure, direction = _one_head(kind), "surely above the same head word’s"
            else:
                measure = _system(system, kind)
                direction = f"surely above {names[BELOW[system]]}" if system in BELOW else ""
            claims.append(
                PaperClaim(
                    f"table2-{system}-{kind}",
                    "Table 2",
                    f"{capital(words)}, {of}",
                    measure,
                    (Published(text),),
                    "%",
                    direction,
                    "coref",
                )
            )
    return (
        *claims,
        PaperClaim(
            "table2-neural",
            "Table 2",
            "A neural coreference system, all mentions",
            _neural(),
            (Published("83"),),
            "%",
        ),
    )


COREFERENCE = ClaimGroup(
    "coreference",
    "Coreference (§4.3)",
    "One head finds antecedents nearly as often as a rule-based system. Inputs are cut to 128 "
    "tokens.",
    _table_2(),
)


@quantities.reads("probes")
def _probe(run: PaperRun, name: str, lower: str, upper: str) -> Measured:
    results = run.results("probes")
    number = quantities.stored(results, "uas", probe=name)
    if not np.isfinite(number[0]):
        raise Unmeasured(f"needs words: {KEYS['words'].what}; {KEYS['words'].where}")
    pair = (name, lower) if lower else (upper, name)  # the first ought to find more
    verdict = None
    if all(pair):
        gain = quantities.stored(results, "difference", probe=pair[0], probe_other=pair[1])
        verdict = above(*gain)
    return Measured(*number, _tested(results), verdict=verdict)


@quantities.reads("probes")
def _structural(run: PaperRun) -> Measured:
    """The structural probe on the layer that it was trained on; of several, the best."""
    results = run.results("probes")
    values = quantities.draws_of(results, "structural_uuas")[0]  # [layer]
    if not np.isfinite(values).any():
        raise Unmeasured("needs more sentences to train and score on")
    layer = int(np.nanargmax(values))
    number = quantities.stored(results.isel(layer=layer), "structural_uuas")
    return Measured(*number, _tested(results), detail=f"layer {run.names.number(layer) + 1}")


def _tested(results: xr.Dataset) -> str:
    return f"{int(results.attrs['test_sentences']):,} test sentences"


def _table_3() -> tuple[PaperClaim, ...]:
    names = {name: words for name, words, *_ in TABLE_3}
    claims = []
    for name, words, published, lower, upper in TABLE_3:
        direction = f"surely above {names[lower]}" if lower else ""
        direction = f"surely below {names[upper]}" if upper else direction
        claims.append(
            PaperClaim(
                f"table3-{name}",
                "Table 3",
                f"UAS: {words}",
                _probe(name, lower, upper),
                published,
                "%",
                direction,
                "probe_test",
            )
        )
    structural = "UUAS: structural probe on hidden states (not comparable)"
    return (
        *claims,
        PaperClaim(
            "table3-structural",
            "Table 3",
            structural,
            _structural(),
            (Published("80"),),
            "%",
            data="probe_test",
        ),
    )


PROBES = ClaimGroup(
    "probes",
    "Heads in combination (§5)",
    "Probes that weigh all heads find most of the tree.",
    _table_3(),
)
