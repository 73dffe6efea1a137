"""What stands around Kobayashi et al. (2020): the data, and the sequel of 2021?"""

from __future__ import annotations

import math
from collections.abc import Callable

from headscope.core.wording import fixed
from headscope.papers.reproduce.line import Answer, Line, NotRun, Published, Results
from headscope.papers.reproduce.reading import answer, counted, drawn, ends, surely_above
from headscope.run.finished_run import Run

NORMS = ("norms",)
Measure = Callable[[Results], Answer]


# --- the sequel ------------------------------------------------------------------------------

RANKED = (
    ("res", "attnres_n", "AttnRes-N", "−0.84"), ("resln", "attnresln_n", "AttnResLn-N", "−0.54"),
)  # fmt: skip
METHODS = ("attn_w", "attn_n", "attnres_w", "attnres_n", "attnresln_n")
METHOD_NAMES = ("Attn-W", "Attn-N", "AttnRes-W", "AttnRes-N", "AttnResLn-N")


def _mixing(method: str) -> Measure:
    def measure(results: Results) -> Answer:
        run = results.run("norms")
        ratios = {m: drawn(results.group("norms", "mixing"), "ratio", method=m).mean(1)
                  for m in METHODS}  # fmt: skip
        at = METHODS.index(method)
        holds = surely_above(ratios[METHODS[at - 1]] - ratios[method], run) if at else None
        return answer(ratios[method], run, holds=holds)

    return measure


def ranked_run(results: Results) -> Run:
    """The run of norms, if its ranks are those of a training corpus; else raises NotRun."""
    run = results.run("norms")
    if not run.manifest.get("spec", {}).get("frequency"):
        raise NotRun(
            "needs frequency: ranks of this model’s own tokens, rank_count_ids.txt for BERT "
            "uncased; git clone https://github.com/gorokoba560/norm-analysis-of-transformer"
        )
    return run


def _rank_of_mixing(method: str) -> Measure:
    def measure(results: Results) -> Answer:
        run, mixing = ranked_run(results), results.group("norms", "mixing")
        value, low, high = ends(mixing, "spearman_frequency", method=method)
        below = high if math.isfinite(high) else value
        return Answer(value, low, high, counted(run), holds=bool(below < 0))

    return measure


def sequel() -> tuple[Line, ...]:
    """Mixing ratios, Kobayashi et al. (2021)."""
    published = (
        (Published("97.1"), Published("96.41", "code", where="released notebook")),
        (Published("85.2"),), (Published("48.6"),), (Published("22.3"),), (Published("18.8"),),
    )  # fmt: skip
    lines = [
        Line(
            f"mixing-{method}", "2021, Wikipedia means", f"Mixing ratio by {name}", NORMS,
            _mixing(method), values, unit="%",
            direction=f"surely below {METHOD_NAMES[at - 1]}" if at else "",
        )
        for at, (method, name, values) in enumerate(
            zip(METHODS, METHOD_NAMES, published, strict=True)
        )
    ]  # fmt: skip
    return (
        *lines,
        *(
            Line(f"mixing-rank-{key}", "2021", f"Rank correlation of {name} with frequency rank",
                 NORMS, _rank_of_mixing(method), (Published(text),),
                 direction="the interval lies below 0: frequent tokens take more from others")
            for key, method, name, text in RANKED
        ),
    )  # fmt: skip


# --- the data --------------------------------------------------------------------------------


def _count(what: str, expected: int) -> Measure:
    def measure(results: Results) -> Answer:
        tokens = results.group("tokens", "tokens")
        value = float(tokens[what])
        n = f"{int(tokens['inputs']):,} inputs"
        shown = "" if value.is_integer() else fixed(value, 4)
        return Answer(value, n=n, holds=value == expected, shown=shown)

    return measure


def data() -> tuple[Line, ...]:
    """Whether the text is the released one: its counts."""
    same = "the same number: then the text is, as far as this shows, the released one"
    rows = (
        ("inputs", "Segments", "992", 992),
        ("tokens", "Tokens of all segments", "121,134", 121_134),
        ("separators", "[SEP] of a segment, mean", "2", 2),
        ("punctuation_pairs", "Pairs of a token and a “.” or “,”, behind Table 2", "1,269,712",
         1_269_712),
        ("other_pairs", "Pairs of a token and another token, behind Table 2", "13,506,446",
         13_506_446),
    )  # fmt: skip
    return tuple(
        Line(f"data-{key}", "data", words, ("tokens",), _count(key, expected),
             (Published(text, "code"),), direction=same)
        for key, words, text, expected in rows
    )  # fmt: skip
