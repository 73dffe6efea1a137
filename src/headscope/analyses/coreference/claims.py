"""Claims about the heads that find antecedents; the label rule.

The number of a claim is the held-out one: the best of many heads is better where it was chosen.
Of noise, one of many heads is ahead of a rule at some kind of mention. So the rule is the best of
all for the kind, and the interval is that of as many tests as there are heads and kinds: its
distance from the value is stretched as that of a normal would be (Bonferroni).
"""

import numpy as np
import xarray as xr

from headscope.analyses.language.held_out import HELD_OUT, best_head_claims, by_norm
from headscope.core.claim import Claim, LabelRule
from headscope.core.dictionary import name as term_name
from headscope.core.intervals import stretch
from headscope.core.results import Floats, estimate, group, printable, shape
from headscope.core.terms import CLARK, OURS
from headscope.core.wording import percent

MENTIONS = {
    "all": "mentions", "pronoun": "pronouns", "proper": "proper names",
    "nominal": "common noun phrases",
}  # fmt: skip
LEAST_MENTIONS = 50  # ours
RULES = {
    "coreference": LabelRule(
        "coreference",
        number="mentions whose antecedent gets the most attention", least=0.0,
        source=f"{OURS}, after {CLARK}, §4.3", words=True,
        asks=HELD_OUT.format(
            what="the kind of mention", rival="the best of the rules", least=LEAST_MENTIONS,
            corrected=", corrected for looking at all heads and kinds,",
        ),
    ),
}  # fmt: skip


def claims(tree: xr.DataTree) -> list[Claim]:
    """One claim per kind of mention at which the best of the rules is beaten."""
    dataset = group(tree, "coreference")
    if dataset is None:
        return []

    systems = [str(system) for system in dataset["system"].values]
    rules = np.stack([estimate(dataset, "baseline", system=one).value for one in systems])
    rival = np.argmax(np.nan_to_num(rules, nan=-1), 0)  # [kind]
    cells = np.flatnonzero(dataset["count"].values >= LEAST_MENTIONS).tolist()
    tests = int(np.prod(shape(tree))) * max(len(cells), 1)
    low = np.stack([_corrected_low(dataset, system, tests) for system in systems])

    def say(at: int, share: str, baseline: str) -> tuple[str, str]:
        kind = str(dataset["mention_type"].values[at])
        words = MENTIONS.get(kind, printable(kind))
        chosen = percent(float(dataset["best_accuracy"][at]))
        return f"coreference of {words}", (
            f"coreference: antecedent found for {share} of {int(dataset['count'][at]):,} {words}"
            f"{by_norm(dataset)} held out ({chosen} where the head was chosen), "
            f"{term_name(systems[rival[at]])} {baseline}"
        )

    kinds = np.arange(rules.shape[1])
    return best_head_claims(
        tree, "coreference", cells, say, about=[*map(str, dataset["mention_type"].values)],
        brief="coreference", baseline=rules[rival, kinds],
        ahead=low[rival, kinds] > 0,
    )  # fmt: skip


def _corrected_low(dataset: xr.Dataset, system: str, tests: int) -> Floats:
    """[kind] the lower end of the advantage over a rule, for the largest of so many tests."""
    advantage = estimate(dataset, "advantage", system=system)
    return np.asarray(advantage.value - stretch(tests) * (advantage.value - advantage.low))
