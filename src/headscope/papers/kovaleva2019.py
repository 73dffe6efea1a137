"""Kovaleva et al. (2019): what they published of maps, frames and features, §4.1 to §4.5."""

import json
from importlib import resources

import numpy as np

from headscope.claims.bibliography import SOURCES
from headscope.claims.terms import KOVALEVA
from headscope.claims.verdict import (
    above,
    all_of,
    beyond_chance,
    first_before,
    largest_among,
    within,
)
from headscope.core.results import at, estimate, largest_first
from headscope.core.wording import fixed
from headscope.papers import checkpoints, quantities
from headscope.papers.claim_engine import ClaimGroup, Paper, PaperClaim, PaperFigure
from headscope.papers.kovaleva2019_gallery import GALLERY
from headscope.papers.kovaleva2019_tasks import CHANGE, DISABLING, NAMES, SCORES, TASKS, points
from headscope.papers.own_models import BERT_UNCASED
from headscope.papers.published import Published
from headscope.papers.quantities import Measure, Measured, PaperRun, Unmeasured, percent_text

NEGLIGIBLE = 0.1  # ours: of what [SEP] draws
COST = 0.01  # ours: a loss of a point of the score
OURS = "maps labelled for headscope"
TREES = "sentences of a treebank"
PUNCTUATION_TASKS = ("sts-b", "rte", "qnli")  # there the last [CLS] does not rest on [SEP]


def _card(*path: str) -> float:
    file = resources.files("headscope.analyses.patterns") / "data" / "special.json"
    number = json.loads(file.read_text("utf-8"))
    for key in path:
        number = number[key]
    return float(number)


def _labelled_maps() -> str:
    return f"{int(_card('maps')):,} labelled maps"


def _classifier(_: quantities.PaperRuns) -> Measured:
    """The bundled classifier's macro-F1 on maps that it had not learned from."""
    place = ("scores", "network", "Held-out maps")
    value, low, high = (_card(*place, key) for key in ("macro_f1", "ci_low", "ci_high"))
    detail = "macro-F1; how the paper averaged is not stated"
    return Measured(value, low, high, _labelled_maps(), detail=detail, elsewhere=OURS)


def _vertical(_: quantities.PaperRuns) -> Measured:
    share = _card("maps_by_class", "vertical") / _card("maps")
    return Measured(share, n=_labelled_maps(), elsewhere=OURS)


@quantities.reads("compare:")
def _heterogeneous(run: PaperRun, _: str) -> Measured:
    kinds = run.results("patterns")["pattern"].values
    shares = {str(p): run.stored("patterns", "model_share", pattern=p) for p in kinds}
    words = (f"{p.replace('_', ' + ')} {percent_text(v[0], 0)}" for p, v in shares.items())
    return Measured(*shares["heterogeneous"], run.counted, detail=", ".join(words))


HETEROGENEOUS = {"mrpc": "32", "qqp": "61"}
CLASSES = ClaimGroup(
    "classes",
    "Self-attention patterns (§4.1)",
    "Maps fall into five classes; only heterogeneous ones can depend much on what the words are. "
    "The paper’s labels and network were never released: these are headscope’s own.",
    (
        PaperClaim(
            "classifier",
            "§4.1",
            "F1 of the classifier of maps",
            Measure((), _classifier),
            (Published("0.86"),),
        ),
        PaperClaim(
            "vertical",
            "§4.1",
            "Labelled maps that are vertical",
            Measure((), _vertical),
            (Published("30"),),
            "%",
        ),
        *(
            PaperClaim(
                f"heterogeneous-{task}",
                "Figure 2",
                f"{NAMES[task]}: maps that are heterogeneous",
                _heterogeneous(task),
                (Published(HETEROGENEOUS.get(task, "32–61")),),
                "%",
            )
            for task in TASKS
        ),
    ),
)


@quantities.reads("frames")
def _frame_head(run: PaperRun, rank: int) -> Measured:
    """The score of the best head, or the second; whether it is more than distances would give."""
    scores = run.draws("frames", "score")[0]
    best = largest_first(scores)[:2]
    here = run.results("frames").isel(layer=best[rank][0], head=best[rank][1])
    p, chance = float(here["p_value"]), float(here["chance"])
    rest = np.delete(scores.ravel(), [r * scores.shape[1] + c for r, c in best])
    detail = (
        f"{run.names.head(*best[rank])}; chance {fixed(chance, 3)}, p = {fixed(p, 3)}; the other "
        f"heads: median {fixed(float(np.nanmedian(rest)), 3)}, "
        f"most {fixed(float(np.nanmax(rest)), 3)}"
    )
    number = quantities.stored(here, "score")
    verdict = beyond_chance(above(*number, chance), p)
    return Measured(*number, run.counted, verdict=verdict, detail=detail)


@quantities.reads("frames")
def _frame_heads_do_not_matter(run: PaperRun) -> Measured:
    """What disabling the two best frame heads costs on every task there is: nothing is shown to be
    lost only where no loss of COST or more is left possible.
    """
    scores = run.draws("frames", "score")[0]
    costs, verdicts = [], []
    for task in TASKS:
        if f"ablate:{task}" not in run.beside or not checkpoints.tells(run.beside, task):
            continue
        ablation = run.beside.run(f"ablate:{task}").results("ablation")
        for layer, head in largest_first(scores)[:2]:
            change = quantities.stored(ablation.isel(layer=layer, head=head), "difference")
            verdicts.append(above(*change, -COST))
            costs.append(f"{NAMES[task]} {run.names.head(layer, head)} {points(change[0])}")
    if not costs:
        needs = "needs checkpoints that beat chance, of whole tasks"
        raise Unmeasured(run.beside.absent.get("ablate:rte", needs))
    verdict, n = all_of(verdicts), f"{len(costs) // 2} of {len(TASKS)} tasks"
    return Measured(n=n, verdict=verdict, detail="; ".join(costs))


BY_CHANCE = "p < 0.05 against links moved to other places of the sentence, corrected for all heads"
FRAMES = ClaimGroup(
    "frames",
    "Relation-specific heads (§4.2)",
    "Two heads of the pre-trained model look from a frame element to the word that evokes the "
    "frame.",
    (
        PaperClaim(
            "frames-sentences",
            "§4.2",
            "Sentences kept of FrameNet 1.7",
            quantities.example_count("frames"),
            (Published("473"),),
            data="frames",
        ),
        PaperClaim(
            "frames-best",
            "§4.2",
            "Two heads link frame elements to their target (7-6, 1-2): the best, mean of largest "
            "weights",
            _frame_head(0),
            (Published("0.209"),),
            direction=BY_CHANCE,
            data="frames",
        ),
        PaperClaim(
            "frames-second",
            "§4.2",
            "The second best",
            _frame_head(1),
            (Published("0.201"),),
            direction=BY_CHANCE,
            data="frames",
        ),
        PaperClaim(
            "frames-needed",
            "§4.2",
            "Neither head matters for any task when disabled",
            _frame_heads_do_not_matter(),
            direction="no task loses a point or more by either, by the intervals",
        ),
    ),
)


@quantities.reads("compare:")
def _early_late(run: PaperRun, _: str) -> Measured:
    """The layers of the fine-tuned model in which [CLS] and [SEP] draw most, mean over heads."""
    change = run.results("change")
    peaks = []
    for target in ("cls", "sep"):
        key = f"surface.attention.{target}"
        if key not in change["quantity"].values:
            raise Unmeasured(f"needs {key}, which does not exist here")
        peaks.append(estimate(change, "layer_after", quantity=key))
    first, then = (int(np.nanargmax(peak.value)) for peak in peaks)
    detail = f"[CLS] most in layer {first + 1}, [SEP] in layer {then + 1}"
    return Measured(n=run.counted, verdict=first_before(*peaks), detail=detail)


@quantities.reads("compare:sst-2")
def _sst_sep(run: PaperRun) -> Measured:
    shares = {
        task: run.beside.run(f"compare:{task}").stored(
            "change", "model_after", quantity="surface.attention.sep"
        )
        for task in TASKS
        if f"compare:{task}" in run.beside and checkpoints.tells(run.beside, task)
    }
    if len(shares) < 2:
        raise Unmeasured(
            "needs checkpoints for SST-2 and another task that beat chance; headscope finetune"
        )
    order = sorted(shares, key=lambda task: -shares[task][0])
    detail = ", ".join(f"{NAMES[task]} {percent_text(shares[task][0])}" for task in order)
    own = shares.pop("sst-2")
    verdict = all_of(above(*quantities.less(own, share)) for share in shares.values())
    return Measured(*own, run.counted, verdict=verdict, detail=detail)


@quantities.reads("told:")
def _negligible(run: PaperRun, _: str, kinds: tuple[str, ...]) -> Measured:
    """The largest change of attention to these kinds of words, of what [SEP] draws."""
    change = run.results("change")
    sep = run.stored("change", "model_after", quantity="features.attention.sep")[0]
    moved = {
        kind: run.stored("change", "model_difference", quantity=f"features.attention.{kind}")
        for kind in kinds
        if f"features.attention.{kind}" in change["quantity"].values
    }
    if not moved or not np.isfinite(sep):
        raise Unmeasured("needs words of these kinds, and [SEP]")
    most = max(moved, key=lambda kind: abs(moved[kind][0]))
    value, low, high = (x / sep for x in moved[most])
    detail = f"{most} {points(moved[most][0])}, [SEP] draws {percent_text(sep)}"
    verdict = within(value, low, high, NEGLIGIBLE)
    return Measured(value, low, high, run.counted, verdict=verdict, detail=detail, elsewhere=TREES)


KINDS = {
    "mrpc": ("noun", "object"),
    "rte": ("noun", "object"),
    "qqp": ("noun", "object"),
    "qnli": ("negation",),
}
FEATURES = ClaimGroup(
    "features",
    "Attention to linguistic features (§4.4)",
    "Words of a kind draw little more after fine-tuning; special tokens draw most.",
    (
        *(
            PaperClaim(
                f"early-late-{task}",
                "§4.4",
                f"{NAMES[task]}: [CLS] is attended in early layers, [SEP] in later ones",
                _early_late(task),
                direction="[CLS] draws most in an earlier layer than [SEP]",
            )
            for task in TASKS
        ),
        PaperClaim(
            "sst-sep",
            "§4.4",
            "[SEP] draws most on SST-2, whose inputs have one only",
            _sst_sep(),
            (),
            "%",
            "more than on any other task, by the intervals",
        ),
        *(
            PaperClaim(
                f"features-{task}",
                "§4.4",
                f"{NAMES[task]}: attention to {' and '.join(kinds)} words hardly changes: the "
                "change, of attention to [SEP]",
                _negligible(task, kinds),
                (),
                "%",
                "below a tenth of what [SEP] draws",
            )
            for task, kinds in KINDS.items()
        ),
    ),
    tuple(PaperFigure(f"told:{task}", "features_by_layer", NAMES[task]) for task in TASKS),
)


@quantities.reads("words")
def _pairs(run: PaperRun) -> Measured:
    """How diagonal the maps of the heads are that link subject and verb most."""
    both = ("subject_to_verb", "verb_to_subject")
    score = np.fmax(*(run.draws("pairs", "attention", pair=pair)[0] for pair in both))
    kinds, patterns = ("diagonal", "vertical_diagonal"), run.results("patterns")
    shares = [estimate(patterns, "share", pattern=kind) for kind in kinds]
    top = largest_first(score)[:5]
    # as if both classes, of all heads, erred in one direction
    of_top = np.sum([at(share, *place) for share in shares for place in top], axis=0) / len(top)
    value, low, high = of_top.clip(max=1.0).tolist()
    every = np.sum([run.stored("patterns", "model_share", pattern=kind) for kind in kinds], axis=0)
    names = ", ".join(run.names.head(*place) for place in top)
    detail = f"{names}; all heads {percent_text(float(every[0]))}"
    verdict = above(*quantities.less((value, low, high), tuple(every.tolist())))
    return Measured(value, low, high, run.counted, verdict=verdict, detail=detail, elsewhere=TREES)


@quantities.reads("told:")
def _last_cls(run: PaperRun, task: str) -> Measured:
    """What the last layer's [CLS] looks at most, mean over heads."""
    results = run.results("cls_attention")
    shares = estimate(results, "attention").map(lambda end: end.mean(0))  # [feature], as if all
    kinds = [str(name) for name in results["feature"].values]  # heads erred in one direction
    order = np.argsort(-np.nan_to_num(shares.value), kind="stable")[:3].tolist()
    detail = ", ".join(f"{kinds[of]} {percent_text(float(shares.value[of]))}" for of in order)
    wanted = "punctuation" if task in PUNCTUATION_TASKS else "sep"
    verdict = largest_among(shares, [kinds.index(wanted)])
    return Measured(n=run.counted, verdict=verdict, detail=detail, elsewhere=TREES)


TOKENS = ClaimGroup(
    "tokens",
    "Token to token, and the last [CLS] (§4.5)",
    "Heads that link subject and verb are diagonal; the last [CLS] rests on [SEP] or punctuation.",
    (
        PaperClaim(
            "pairs-diagonal",
            "§4.5",
            "Heads that link subject and verb are diagonal: diagonal maps of the best five",
            _pairs(),
            (),
            "%",
            "more than of all heads",
        ),
        *(
            PaperClaim(
                f"last-cls-{task}",
                "§4.5",
                f"{NAMES[task]}: the last layer’s [CLS] attends most to "
                f"{'punctuation' if task in PUNCTUATION_TASKS else '[SEP]'}",
                _last_cls(task),
                direction="the largest mean over heads of eight kinds of tokens",
            )
            for task in TASKS
        ),
    ),
    (PaperFigure("words", "pairs"),),
)


PAPER = Paper(
    "kovaleva2019",
    "Revealing the Dark Secrets of BERT",
    SOURCES[KOVALEVA],
    BERT_UNCASED.id,
    (BERT_UNCASED,),
    (CLASSES, FRAMES, SCORES, CHANGE, FEATURES, TOKENS, DISABLING),
    plates=GALLERY,
)
