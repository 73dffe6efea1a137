"""Report section on the heads that write the answer of a prompt, or carry it."""

from functools import partial

import numpy as np
import xarray as xr

from headscope.claims.claim import Claim
from headscope.claims.plan import LabelRule
from headscope.claims.reading import Reading
from headscope.claims.terms import ELHAGE, NANDA, OURS, WANG, Term
from headscope.core.results import at, estimate, largest_first
from headscope.core.wording import capital, fixed, how_many, percent
from headscope.draw.head_grid import signed_panel, signed_top
from headscope.draw.panel import Panel
from headscope.experiments.circuits.over_items import knows_answers
from headscope.page.tabulate import Column, Table, measured, probability, rows_table, share

NAME = "writes"
LISTED, NAMED = 12, 4
LEVEL = 0.05  # of the false discovery rate
LEAST = 0.05  # ours: of the logit difference
ASKS = "patching it moves the answer (q < 0.05), and the model surely answers above chance"
RULES = {
    "writes_answer": LabelRule(
        "writes the answer",
        number="share of the logit difference that it writes directly",
        least=LEAST,
        asks=ASKS,
        variable="direct_share",
        source=f"{OURS}, after {WANG}",
    ),
    "carries_answer": LabelRule(
        "carries the answer",
        number="share of the logit difference that patching it brings",
        least=LEAST,
        asks=ASKS,
        variable="effect",
        unless=("writes_answer",),
        source=f"{OURS}, after {WANG}",
    ),
}
SHARES = {"effect": "Patching", "attribution": "Attribution", "direct_share": "Written directly"}


def answers_known(dataset: xr.Dataset) -> bool:
    """Whether the model surely answers above chance; True for older runs, which do not say."""
    return "accuracy" not in dataset or knows_answers(estimate(dataset, "accuracy")).holds


LATER = {"later_share": "Later layers add"}


def claims(run: Reading) -> list[Claim]:
    """Claims on heads whose patching clearly moves the answer, by what they write and carry.

    None where the model may not know the answers.
    """
    if "effect" not in run.data or not answers_known(run.data):
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


def findings(run: Reading) -> list[str]:
    """Sentences on how well the model answers, which heads bring the answer, and whether
    attribution agrees. Where the model may not know the answers no head is named.
    """
    dataset = run.data
    sentences = [
        run.text(
            "After {many} ({prompts}) the answer lies {logit_difference} "
            "logits above the wrong one; its probability is {answer_probability:%}, its median "
            "rank {rank:.0f}, its loss {loss} nats.",
            many=how_many(dataset.attrs["prompt_count"], "prompt"),
            rank=float(dataset["answer_rank"].median()),
            loss=fixed(run.mean("answer_loss"), 2),
        )
    ]
    if "accuracy" in dataset and answers_known(dataset):
        sentences.append(run.text("The answer lies above after {accuracy:%} of the prompts."))
    if "effect" in dataset:
        moves = (dataset["effect_q"].values < LEVEL) & answers_known(dataset)
        for name, words in (
            ("effect", "Patching one head brings most of it"),
            ("direct_share", "Most of it is written by"),
        ):
            parts = run(name)
            places = largest_first(np.where(moves & (parts.value > 0), parts.value, np.nan))
            named = [f"{run.names.head(*place)} {percent(*at(parts, *place))}" for place in places]
            sentences += [f"{words}: {', '.join(named[:NAMED])}."] if named else []
        alike = "Patching and what attribution estimates of it rank heads alike by ρ = {rho}."
        sentences.append(run.text(alike))
    return sentences + ([f"{capital(dataset.attrs['notes'])}."] if dataset.attrs["notes"] else [])


def panels(run: Reading) -> list[Panel]:
    """Heads by the shares of the logit difference."""
    dataset = run.data
    shown = SHARES if "effect" in dataset else {"direct": "Written directly, logits"}
    top = signed_top(np.stack([dataset[name].values for name in shown]))
    text = fixed(top, 2) if "effect" not in dataset else percent(top)
    panel = partial(signed_panel, top=top, text=text)
    unit = "probability" if "effect" in dataset else "1"
    return [
        panel(title, run(name).value, run.names, parts=run(name), unit=unit)
        for name, title in shown.items()
    ]


def heads_table(run: Reading) -> Table | None:
    """The heads of the largest effects."""
    if "effect" not in run.data:
        return None
    shown = {name: title for name, title in (SHARES | LATER).items() if name in run.data}
    parts = [run(name) for name in shown]
    rows = [
        [
            run.names.head(*place),
            *(share(*at(part, *place)) for part in parts),
            probability(run("effect_q").value[place]),
            measured(run("direct").value[place]),
        ]
        for place in largest_first(np.abs(parts[0].value))[:LISTED]
    ]
    columns = ["Head", *(Column(title, "%", name) for name, title in shown.items())]
    columns += [Column("q", "", "effect_q"), Column("Written", "logits", "direct")]
    caption = (
        f"The {len(rows)} heads of the largest effects, with 95 % intervals over "
        f"{int(run.data.attrs['n'])} items. Shares of the logit difference; below 0: against the "
        "answer. They need not add up to 100 %: what one head brings another may pass on."
    )
    return rows_table("Heads and the answer", columns, rows, caption)


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
    "accuracy": Term(
        "answered",
        "The share of prompts after which the right answer is likelier than the wrong one; by "
        "chance one half.",
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
    "later_share": Term(
        "later layers add",
        "What patching brings less what the head writes directly: what later layers make of it; "
        "below 0 they undo it.",
        OURS,
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
    "later_share": "later layers add",
    "direct": "written directly",
    "accuracy": "answered",
}
