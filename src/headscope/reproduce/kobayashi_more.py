"""What stands around Kobayashi et al. (2020): the data, what is not run, and the sequel of 2021?"""

from __future__ import annotations

from collections.abc import Callable

from headscope.derived.wording import fixed
from headscope.reproduce.line import Answer, Line, NotRun, Published, Results
from headscope.reproduce.reading import answer, drawn, surely_above

NORMS = ("norms",)
Measure = Callable[[Results], Answer]


# --- the sequel ------------------------------------------------------------------------------

RANKED = (("res", "AttnRes-N", "−0.84"), ("resln", "AttnResLn-N", "−0.54"))
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


def _rank_of_mixing(results: Results) -> Answer:
    raise NotRun("needs the mixing ratio of every token beside its rank; a run keeps layers’ means")


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
                 NORMS, _rank_of_mixing, (Published(text),))
            for key, name, text in RANKED
        ),
    )  # fmt: skip


# --- what is not run -------------------------------------------------------------------------


def _no_alignment(results: Results) -> Answer:
    results.run("alignment")
    raise NotRun("needs alignment")


def alignment() -> tuple[Line, ...]:
    """Error rates of word alignment."""
    rows = (
        ("AWO", "weights, layer mean", "68.4"), ("AWO", "weights, best layer", "47.7"),
        ("AWO", "norms, layer mean", "62.9"), ("AWO", "norms, best layer", "41.4"),
        ("AWO", "layer of the highest mean norm", "83.0"),
        ("AWO", "head of the highest mean norm", "87.1"),
        ("AWI", "weights, layer mean", "68.5"), ("AWI", "weights, best layer", "29.8"),
        ("AWI", "norms, layer mean", "60.4"), ("AWI", "norms, best layer", "25.0"),
        ("AWI", "layer of the highest mean norm", "25.0"),
        ("AWI", "head of the highest mean norm", "35.5"),
    )  # fmt: skip
    lines = [
        Line(f"alignment-{at}", "Table 3", f"Alignment error rate, {way}: {what}", ("alignment",),
             _no_alignment, (Published(text, "code", where="five seeds"),), unit="%")
        for at, (way, what, text) in enumerate(rows)
    ]  # fmt: skip
    related = (("AWO", "ρ", "0.56"), ("AWO", "r", "0.55"), ("AWI", "ρ", "−0.44"),
               ("AWI", "r", "−0.52"))  # fmt: skip
    lines += [
        Line(f"alignment-{way}-{sign}", "NMT, heads",
             f"Error rate against mean norm over 24 heads, {way}: {sign}", ("alignment",),
             _no_alignment, (Published(text, "code"),))
        for way, sign, text in related
    ]  # fmt: skip
    return tuple(lines)


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
