"""What is tried: labels of a run, as rules of attention that heads are said to follow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import xarray as xr

from headscope.claims.head_labels import head_labels, label_rules
from headscope.claims.plan import CHANGES, OWN, OWN_KEYS
from headscope.core.head_names import Head

NO_PLACE = "no attention rule is behind it"
NO_RULE = "no rule predicts what it says"


@dataclass(frozen=True)
class Hypothesis:
    """That heads look by a rule, and that it matters there.

    name    in words: of a label its name, without numbers
    kind    of the label; "" for a rule of the user's
    rule    name of the rule; "" where there is none
    heads   places of the heads, from 0; several are tried together
    expects what is said to change, as `LabelRule` has it
    why     why it cannot be tried; "" where it can
    """

    name: str
    kind: str
    rule: str
    heads: tuple[Head, ...]
    expects: str = CHANGES
    why: str = ""


def hypotheses_of(tree: xr.DataTree) -> list[Hypothesis]:
    """Every label of every head, and every label of several heads as one of all together."""
    rules, by_name = label_rules(), dict[tuple[str, str, str], list[Hypothesis]]()
    single = list[Hypothesis]()
    for place, one in head_labels(tree).items():
        for claim in one.labels:
            if (rule := rules[claim.kind].predicted_by(claim)) in OWN:
                rule = own_keys(place, rule)
            made = Hypothesis(
                claim.name,
                claim.kind,
                rule,
                (place,),
                rules[claim.kind].expects,
                "" if rule else NO_PLACE,
            )
            single.append(made)
            by_name.setdefault((claim.kind, claim.name, rule), []).append(made)
    return single + [together(some) for some in by_name.values() if len(some) > 1 and some[0].rule]


def together(some: Sequence[Hypothesis]) -> Hypothesis:
    """The same of all heads at once."""
    first = some[0]
    heads = tuple(sorted(head for one in some for head in one.heads))
    return Hypothesis(first.name, first.kind, first.rule, heads, first.expects)


def with_label(hypotheses: Sequence[Hypothesis]) -> Mapping[str, frozenset[Head]]:
    """Rule -> all heads that are said to follow it: they are no comparison for each other."""
    heads = dict[str, frozenset[Head]]()
    for one in hypotheses:
        heads[one.rule] = heads.get(one.rule, frozenset()) | set(one.heads)
    return heads


def own_keys(head: Head, which: str = OWN_KEYS) -> str:
    """The name that stands for a rule where a head's own attention says which tokens are meant.

    which  of them, one of OWN
    """
    return f"{which} {head}"
