"""The outcome of a paper: its claims with our numbers, in words and as a page.

The page has the claims in the paper's order, published beside ours; it works offline.
"""

import math
import shlex
import string
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from headscope.claims.control import controls
from headscope.claims.verdict import MEANINGS, Outcome
from headscope.core.display import printable, title_name
from headscope.core.head_names import HeadNames
from headscope.core.results import counted
from headscope.core.wording import fixed, grid_size, how_many
from headscope.draw.figures import pictures
from headscope.draw.panel import PanelStore
from headscope.page.sections import inline_figure
from headscope.page.shell import plain_page
from headscope.page.svg import Styles
from headscope.papers import claim_engine, published
from headscope.papers.claim_engine import ClaimGroup, ClaimOutcome, Paper
from headscope.papers.gallery import DrawnPlate, drawn_plates, page_plate
from headscope.papers.published import Published
from headscope.papers.quantities import Measured, PaperRuns
from headscope.run.store import Run

ALSO = "also in an untrained network"
COUNTS = ("", "heads")  # units of numbers that may be counts
NAMELESS = ("share", "1")  # units that do not stand behind a number
FINEST = 4  # decimals, where fewer show no width of an interval
OFTEN = 3  # a direction that at least this number of claims share is stated once, above them


@dataclass(frozen=True)
class PaperOutcome:
    """A paper whose claims were compared with runs of one model.

    model    name, revision, sha256, architecture, layers, heads; empty where none could be loaded
    own      whether the model is the paper's own
    absent   why other runs are missing, by name
    data     key, name and elsewhere of the data that were read
    seconds  of each run; little where it was opened and not computed
    """

    paper: Paper
    folder: Path
    model: Mapping[str, Any]
    own: bool
    claims: Sequence[ClaimOutcome]
    runs: Mapping[str, Run]
    absent: Mapping[str, str]
    data: Sequence[Mapping[str, str]]
    limit: int | None
    seconds: Mapping[str, float] = field(default_factory=dict)
    command: str = ""

    @property
    def counts(self) -> dict[str, int]:
        """How many claims have each verdict, see `tally`."""
        return claim_engine.tally(self.claims)

    @property
    def failed(self) -> list[ClaimOutcome]:
        """The claims that a fault kept from being asked."""
        return [outcome for outcome in self.claims if outcome.failed]

    @cached_property
    def gallery(self) -> list[DrawnPlate]:
        """The figures and tables of the paper, drawn once."""
        runs = PaperRuns(self.runs, own=self.own, absent=self.absent)
        return drawn_plates(self.paper.plates, runs)

    @property
    def notes(self) -> list[str]:
        """What makes the numbers of its runs doubtful, each once."""
        return list(dict.fromkeys(note for run in self.runs.values() for note in run.notes))

    def of_group(self, group: str) -> list[ClaimOutcome]:
        """The outcomes of the claims of a group, by its id."""
        return [outcome for outcome in self.claims if outcome.group == group]


# --- for readers ----------------------------------------------------------------------------


def short_status(outcome: ClaimOutcome) -> str:
    """The verdict in a line of a terminal; of a need, only what."""
    if outcome.failed:
        return f"failed: {outcome.verdict.needs}"
    needs = outcome.verdict.needs.partition(":")[0].partition(";")[0]
    beside = needs or "; ".join(filter(None, (also_text(outcome), smallest_text(outcome))))
    return f"{outcome.outcome}: {beside}" if beside else outcome.outcome


def smallest_text(outcome: ClaimOutcome) -> str:
    """`could show 4.1 points`: what data that cannot tell could have shown; "" where not known."""
    scale = published.scale_of(outcome.claim.unit)
    smallest = outcome.verdict.smallest * scale
    possible = not (smallest >= scale > 1)  # no two shares are 100 points apart
    known = math.isfinite(smallest) and possible
    unit = " points" * (scale > 1)
    return f"could show {_fixed(smallest, _digits(smallest))}{unit}" if known else ""


def ours_text(outcome: ClaimOutcome) -> tuple[str, str]:
    """Our value and its interval in the unit of the claim, with the published one's digits."""
    measured = outcome.measured
    if measured is None or math.isnan(measured.value):
        return "", ""
    scale, digits = published.scale_of(outcome.claim.unit), digits_of(outcome)
    numbers = [scale * end for end in (measured.value, measured.low, measured.high)]
    if measured.low == measured.high or math.isnan(measured.low):  # what no sample moves has none
        return _fixed(numbers[0], digits), ""
    while len({_fixed(number, digits) for number in numbers}) == 1 and digits < FINEST:
        digits += 1
    value, *ends = (_fixed(number, digits) for number in numbers)
    return value, f"[{', '.join(ends)}]"


def also_text(outcome: ClaimOutcome) -> str:
    """`also in an untrained network: 61.2 %`; "" where that is not so, or unknown."""
    if outcome.beyond.outcome is Outcome.CANNOT_TELL:
        return f"perhaps {ALSO}"
    if not outcome.untrained:
        return ""
    value = published.scale_of(outcome.claim.unit) * outcome.untrained_value
    unit = " %" * (outcome.claim.unit == "%")
    return f"{ALSO}: {_fixed(value, digits_of(outcome))}{unit}" if math.isfinite(value) else ALSO


def difference_texts(outcome: ClaimOutcome) -> list[str]:
    """Ours less each published value, with its sign; "" for ranges and bounds."""
    digits = digits_of(outcome)
    return [
        ("+" if round(x, digits) > 0 else "") + _fixed(x, digits) if math.isfinite(x) else ""
        for x in claim_engine.differences(outcome)
    ]


def digits_of(outcome: ClaimOutcome) -> int:
    """Decimals: of the published value, one more if that has none; three figures without one."""
    texts = [published.text for published in outcome.claim.published]
    printed = [len(text.replace("–", ".").rpartition(".")[2]) for text in texts if "." in text]
    if printed:
        return max(printed)
    measured = outcome.measured or Measured()
    ours = [
        published.scale_of(outcome.claim.unit) * end
        for end in (measured.value, measured.low, measured.high)
    ]
    there = [abs(number) for number in ours if math.isfinite(number)]
    if outcome.claim.unit in COUNTS and all(map(float.is_integer, there)):
        return 0
    if texts and measured.exact:
        return 2
    return 1 if texts or not there or there[0] >= 10 else _digits(there[0])


def _digits(size: float) -> int:
    """Decimals of a number, so that two figures stand there."""
    return 1 if size >= 10 else 2 if size >= 0.1 or not size else 1 - math.floor(math.log10(size))


def _fixed(value: float, digits: int) -> str:
    """As the papers print numbers: counts with commas."""
    return f"{round(value):,}".replace("-", "−") if digits == 0 else fixed(value, digits)


def render(outcome: PaperOutcome) -> str:
    """The page as text."""
    styles = Styles()
    plates = _plates(outcome, styles)
    sections = [_section(outcome, group, styles) for group in outcome.paper.groups]
    return plain_page(
        "reproduce",
        "headscope.papers",
        styles.css(),
        paper=outcome.paper,
        names=HeadNames(()),
        source=outcome.paper.source,
        model=title_name(printable(outcome.model["name"])),
        facts=_facts(outcome),
        own=outcome.own,
        sentence=in_a_sentence(outcome),
        counts=_tally(outcome),
        outcomes=[(o.sign, o.kind, o, MEANINGS[o]) for o in Outcome],
        reproduced=sum(bool(one.reproduced) for one in outcome.claims),
        total=len(outcome.claims),
        sections=sections,
        plates=plates,
        needs=_needs(plates),
        runs=[_run(outcome, name) for name in outcome.paper.runs],
        marks=published.MARKS,
        command=printable(outcome.command),
        controlled=any(controls(run.tree) for run in outcome.runs.values()),
    )


def in_a_sentence(outcome: PaperOutcome) -> str:
    """How many lines hold of the model, and how many of these of an untrained network, too."""
    counts, total = outcome.counts, len(outcome.claims)
    held = {words: n for words in claim_engine.BEYOND.values() if (n := counts[words])}
    possible, name = total - counts["not asked"], title_name(printable(outcome.model["name"]))
    if not possible:
        return f"None of {total} lines could be asked of {name}."
    how = ", ".join(f"{n} {words.removeprefix('hold').lstrip(', ')}" for words, n in held.items())
    verb = "holds" if sum(held.values()) == 1 else "hold"
    fail = claim_engine.agreeing(counts["do not hold"], "do not hold")
    return (
        f"{sum(held.values())} of the {possible} lines that could be asked of {name} {verb}"
        f"{': ' * bool(held)}{how}. {fail}, and {counts['cannot tell']} cannot be told."
    )


def _plates(outcome: PaperOutcome, styles: Styles) -> list[dict[str, Any]]:
    """The paper's figures and tables, each with the runs that it shows."""
    by_key = {one.claim.key: one for one in outcome.claims}
    return [
        page_plate(one, styles, by_key, lambda claim: ours_text(claim)[0])
        | {"runs": [_run(outcome, name) for name in one.runs]}
        for one in outcome.gallery
    ]


def _needs(plates: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """What figures and tables lack, each once, and where: `Figure 5, Figure 6`."""
    places: dict[str, list[str]] = {}
    for one in plates:
        for reason in one["needs"]:
            places.setdefault(reason, []).append(one["plate"].place or one["plate"].title)
    return [(reason, ", ".join(where)) for reason, where in places.items()]


def _tally(outcome: PaperOutcome) -> list[tuple[str, str, int, str]]:
    """Sign, words, number and class of every verdict that there is."""
    held = any(one.verdict.holds for one in outcome.claims)
    rows = ((claim_engine.TALLY[words], words, n) for words, n in outcome.counts.items())
    first = claim_engine.BEYOND[Outcome.HOLDS]  # stands there, be it none
    shown = ((of, words, n) for of, words, n in rows if n or (held and words == first))
    return [
        (of.sign, claim_engine.agreeing(n, words).partition(" ")[2], n, of.kind)
        for of, words, n in shown
    ]


def _section(outcome: PaperOutcome, group: ClaimGroup, styles: Styles) -> dict[str, Any]:
    outcomes = outcome.of_group(group.id)
    numbers = [one.measured for one in outcomes if one.measured]
    shared = {
        "direction": _common(one.claim.direction for one in outcomes),
        "n": _common(number.n for number in numbers),
        "elsewhere": _common(number.elsewhere for number in numbers),
    }
    reasons = list(dict.fromkeys(one.verdict.needs for one in outcomes if one.verdict.needs))
    letters = dict(zip(reasons, string.ascii_lowercase, strict=False))
    failed = {one.verdict.needs for one in outcomes if one.failed}
    return {
        "group": group,
        "shared": shared,
        "rows": [_row(one, letters.get(one.verdict.needs, "*"), shared) for one in outcomes],
        "notes": [(letters.get(r, "*"), printable(r), r in failed) for r in reasons],
        "figures": _figures(outcome, group, styles),
        "absent": bool(outcomes) and all(one.outcome is Outcome.NOT_ASKED for one in outcomes),
        "folded": bool(outcome.paper.plates),
        "summary": _summary(outcomes),
    }


def _summary(outcomes: Sequence[ClaimOutcome]) -> str:
    """`7 lines: 1 holds, 2 do not hold, 4 not asked`: what stands on a folded table."""
    counts = Counter(one.outcome for one in outcomes)
    plural = {Outcome.HOLDS: "hold", Outcome.FAILS: "do not hold"}
    parts = (
        claim_engine.agreeing(n, plural.get(kind, kind)) for kind in Outcome if (n := counts[kind])
    )
    return f"{how_many(len(outcomes), 'line')}: {', '.join(parts)}"


def _common(words: Iterable[str]) -> str:
    """What most of the claims that have such words share, and at least OFTEN; "" for nothing."""
    often = Counter(filter(None, words))
    least = max(OFTEN, often.total() / 2)
    return next((word for word, count in often.most_common(1) if count >= least), "")


def _row(outcome: ClaimOutcome, letter: str, shared: Mapping[str, str]) -> dict[str, Any]:
    """A claim without what its section shares; letter: of the note on why it has no number."""
    claim, measured, verdict = outcome.claim, outcome.measured or Measured(), outcome.outcome
    ours, interval = ours_text(outcome)
    apart = difference_texts(outcome) or [""] * len(claim.published)
    own = {"direction": claim.direction, "n": measured.n, "elsewhere": measured.elsewhere}
    own = {key: "" if text == shared[key] else text for key, text in own.items()}
    number = "its published number, too" if outcome.reproduced and measured.verdict else ""
    words = (
        number,
        printable(measured.detail),
        own["n"],
        own["elsewhere"],
        also_text(outcome),
        smallest_text(outcome),
    )
    return {
        "claim": claim,
        "unit": "" if claim.unit in NAMELESS else claim.unit,
        "verdict": verdict,
        "sign": verdict.sign,
        "kind": verdict.kind,
        "ours": ours,
        "interval": interval,
        "direction": own["direction"],
        "published": [
            (p.text, _where(p, claim.place), difference)
            for p, difference in zip(claim.published, apart, strict=True)
        ],
        "words": [part for part in words if part],
        "note": letter if outcome.verdict.needs else "",
        "aside": bool(measured.elsewhere),  # the published values are of other data
    }


def _where(published: Published, place: str) -> str:
    """Where a value stands, and how it is known if it is not printed there."""
    where = published.where or place
    if published.mark == "text" or (published.mark == "code" and published.where):
        return where
    slack = f" ± {published.tolerance:g}" if published.tolerance else ""
    return f"{where}, {published.mark}{slack}"


def _figures(outcome: PaperOutcome, group: ClaimGroup, styles: Styles) -> list[dict[str, Any]]:
    figures = []
    for at, shown in enumerate(group.figures):
        if run := outcome.runs.get(shown.run):
            picture, prefix = pictures()[shown.figure], f"{group.id}-{at}-"
            drawn = inline_figure(picture, PanelStore(run.tree), styles, prefix=prefix)
            of_paper = shown.counterpart.startswith(("Figure", "Table"))
            words = f"the paper’s {shown.counterpart}" if of_paper else shown.counterpart
            if drawn is not None:
                figures.append({"figure": drawn, "counterpart": words, **_page_of(run)})
    return figures


def _page_of(run: Run | None) -> dict[str, str]:
    """Where a run's own page is, as seen from ours; else the command that makes it."""
    page = {"link": "", "command": ""}
    if run is not None and run.path is not None:
        if run.has_report:
            page["link"] = f"runs/{run.path.name}/report.html"
        else:
            page["command"] = printable(shlex.join(["headscope", "report", str(run.path)]))
    return page


def _facts(outcome: PaperOutcome) -> list[tuple[str, str]]:
    model, limit = outcome.model, "none: all documents and examples"
    if outcome.limit is not None:
        limit = f"at most {outcome.limit:,} documents or examples of each part (--limit)"
    data = [
        f"{d['key']}: {printable(d['name'])}" + (f" ({d['elsewhere']})" if d["elsewhere"] else "")
        for d in outcome.data
    ]
    rows = [
        ("Model", printable(model["name"])),
        ("Revision", printable(model["revision"])),
        ("Weights, sha256", printable(model["sha256"])),
        (
            "Architecture",
            f"{model['architecture']}, {grid_size(model['layers'], model['heads'])}"
            if model["architecture"]
            else "",
        ),
        ("The paper’s own", "; ".join(filter(None, (outcome.paper.model, outcome.paper.doubt)))),
        ("Data", "; ".join(data) or "none"),
        ("Limit", limit),
    ]
    return [(name, value) for name, value in rows if value]


def _run(outcome: PaperOutcome, name: str) -> dict[str, str]:
    run, read = outcome.runs.get(name), ""
    if run is not None:
        attrs = run.tree.attrs
        read = "counted for this page; no folder of its own"
        if "documents" in attrs:
            tokens = int(attrs.get("tokens", 0))
            read = f"{int(attrs['documents']):,} {counted(run.tree)}"
            read += f", {tokens:,} tokens" if tokens else ""
    reason = printable(outcome.absent.get(name, ""))
    return {"part": name, "read": read, "reason": reason, **_page_of(run)}
