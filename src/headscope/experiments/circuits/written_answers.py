"""Report section on the heads that write the answer of a prompt, or carry it."""

from functools import partial

import numpy as np
import xarray as xr

from headscope.claims.claim import Claim
from headscope.claims.plan import LabelRule
from headscope.claims.reading import Reading
from headscope.claims.terms import ELHAGE, NANDA, OURS, WANG, Term
from headscope.core.results import at, estimate, group, head_name, largest_first, needed
from headscope.core.wording import capital, fixed, number, percent
from headscope.draw.head_grid import signed_panel, signed_top
from headscope.draw.panel import Panel, Picture
from headscope.page.sections import FINDINGS, SectionPlan, of_group
from headscope.page.tabulate import Cell, Column, Rows, Table, measured, probability, share

NAME = "writes"
LISTED, NAMED = 12, 4
LEVEL = 0.05  # of the false discovery rate
LEAST = 0.05  # ours: of the logit difference
RULES = {
    "writes_answer": LabelRule(
        "writes the answer",
        number="share of the logit difference that it writes directly",
        least=LEAST,
        asks="patching it moves the answer (q < 0.05)",
        variable="direct_share",
        source=f"{OURS}, after {WANG}",
    ),
    "carries_answer": LabelRule(
        "carries the answer",
        number="share of the logit difference that patching it brings",
        least=LEAST,
        asks="patching it moves the answer (q < 0.05)",
        variable="effect",
        unless=("writes_answer",),
        source=f"{OURS}, after {WANG}",
    ),
}
SHARES = {"effect": "Patching", "attribution": "Attribution", "direct_share": "Written directly"}


def claims(run: Reading) -> list[Claim]:
    """Claims on heads whose patching clearly moves the answer, by what they write and carry."""
    if "effect" not in run.data:
        return []
    moves = run.data["effect_q"].values < LEVEL
    made = []
    for kind, does in (("writes_answer", "writes"), ("carries_answer", "brings")):
        rule = RULES[kind]
        shown = run(rule.variable).map(lambda part: np.where(moves, part, np.nan))

        def say(
            layer: int, head: int, values: object = shown, rule: LabelRule = rule, does: str = does
        ) -> tuple[str, str]:
            words = percent(*at(values, layer, head))  # type: ignore[arg-type]
            return f"{rule.title} {words}", (
                f"{does} {words} of the logit difference of {run.data.attrs['prompts']} prompts"
            )

        made += run.claims(
            shown,
            0.0,
            rule,
            say,
            kind=kind,
            name=rule.title,
            n=int(run.data.attrs["n"]),
        )
    return made


def findings(tree: xr.DataTree) -> list[str]:
    """Sentences on how well the model answers, which heads bring the answer, and whether
    attribution agrees.
    """
    dataset = group(tree, NAME)
    if dataset is None:
        return []
    many = int(dataset.attrs["prompt_count"])
    ahead = number(*at(estimate(dataset, "logit_difference")))
    sentences = [
        f"After {many} prompt{'' if many == 1 else 's'} ({dataset.attrs['prompts']}) the "
        f"answer lies {ahead} logits above the wrong one; its probability is "
        f"{percent(float(dataset['answer_probability'].mean()))}, its median rank "
        f"{float(dataset['answer_rank'].median()):.0f}, its loss "
        f"{fixed(float(dataset['answer_loss'].mean()), 2)} nats."
    ]
    if "effect" in dataset:
        moves = dataset["effect_q"].values < LEVEL
        for name, words in (
            ("effect", "Patching one head brings most of it"),
            ("direct_share", "Most of it is written by"),
        ):
            parts = estimate(dataset, name)
            places = largest_first(np.where(moves & (parts.value > 0), parts.value, np.nan))
            named = [_named(dataset, place, percent(*at(parts, *place))) for place in places]
            sentences += [f"{words}: {', '.join(named[:NAMED])}."] if named else []
        rho = number(*at(estimate(dataset, "rho")))
        sentences.append(
            f"Patching and what attribution estimates of it rank heads alike by ρ = {rho}."
        )
    return sentences + ([f"{capital(dataset.attrs['notes'])}."] if dataset.attrs["notes"] else [])


def _named(dataset: xr.Dataset, place: tuple[int, int], words: str) -> str:
    heads = dataset.sizes["head"]
    return f"{head_name(place[0] * heads + place[1], heads)} {words}"


def _panels(tree: xr.DataTree) -> list[Panel]:
    dataset = needed(tree, NAME)
    shown = SHARES if "effect" in dataset else {"direct": "Written directly, logits"}
    top = signed_top(np.stack([dataset[name].values for name in shown]))
    text = fixed(top, 2) if "effect" not in dataset else percent(top)
    panel = partial(signed_panel, top=top, low_text=f"−{text}", high_text=text)
    return [panel(title, dataset[name].values) for name, title in shown.items()]


def _caption(tree: xr.DataTree) -> str:
    dataset = needed(tree, NAME)
    items = int(dataset.attrs["n"])
    return (
        f"Each cell is one head, on {int(dataset.attrs['prompt_count'])} prompts "
        f"({dataset.attrs['prompts']}, {items} independent items): the share of the logit "
        "difference between a prompt and its corrupted one that comes back when the head alone is "
        "patched, what one backward pass estimates of it, and what the head writes to the answer "
        "itself. Blue: for the answer; orange: against it."
    )


def _table(dataset: xr.Dataset) -> Table | None:
    if "effect" not in dataset:
        return None
    parts = {name: estimate(dataset, name) for name in SHARES}
    rows = []
    for place in largest_first(np.abs(parts["effect"].value))[:LISTED]:
        cells = [share(*at(part, *place)) for part in parts.values()]
        q = probability(float(dataset["effect_q"].values[place]))
        logits = measured(float(dataset["direct"].values[place]))
        rows.append([Cell(_named(dataset, place, "").strip()), *cells, q, logits])
    columns = [Column("Head"), *(Column(title, "%", name) for name, title in SHARES.items())]
    columns += [Column("q", "", "effect_q"), Column("Written", "logits", "direct")]
    caption = (
        f"The {len(rows)} heads of the largest effects, with 95 % intervals over "
        f"{int(dataset.attrs['n'])} items. Shares of the logit difference; below 0: against the "
        "answer. They need not add up to 100 %: what one head brings another may pass on."
    )
    return Table("Heads and the answer", columns, [Rows(rows)], caption)


TERMS = {
    "effect": Term(
        "patching",
        "The share of the logit difference between a prompt and its "
        "corrupted one that comes back when one head gives what it gives in the clean prompt.",
        WANG,
    ),
    "effect_q": Term(
        "patching, q",
        "The probability that an effect is none, corrected within the "
        "heads (Benjamini and Hochberg).",
        OURS,
    ),
    "attribution": Term(
        "attribution patching",
        "What one backward pass estimates of the effect: the head’s change times the slope of the "
        "logit difference.",
        NANDA,
    ),
    "direct_share": Term(
        "written directly",
        "The share of the logit difference that a head itself adds to the answer’s logit less the "
        "wrong one’s, the last norm folded in.",
        WANG,
    ),
    "direct": Term(
        "direct logits",
        "What a head adds to the logit of the answer less that of the "
        "wrong one, the last norm folded in at the scale that it has.",
        ELHAGE,
    ),
}
LABELS = {
    "effect": "patching",
    "attribution": "attribution patching",
    "effect_q": "patching, q",
    "direct_share": "written directly, share",
    "direct": "written directly",
}
FIGURES = (Picture("writes", "Heads and the answer", ("writes",), _panels, _caption, columns=3),)
SECTIONS = (
    SectionPlan(
        id="written-answers",
        title="Which heads write the answer, and which carry it?",
        text="Each prompt has a corrupted one of as many tokens, which takes another answer. What "
        "a head does for the answer is what comes back of their difference when it alone is as in "
        "the clean prompt (Wang et al. 2023); some of that it writes itself, the rest later heads "
        "make of it.",
        pictures=("writes",),
        tables=(of_group(NAME, _table),),
        chapter=FINDINGS,
    ),
)
