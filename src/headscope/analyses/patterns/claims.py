"""Claims about the class that most of a head's maps belong to, and the label rules.

Kovaleva et al. (2019), section 4.1, by the classifier behind the group `patterns`. The class that
takes what the others leave tells nothing of a head, and is never claimed; nor is anything of maps
that the classifier is not sure of.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from headscope.core.claim import LEAST_EFFECT, Claim, LabelRule, effects
from headscope.core.results import at, documents, estimate, group, surely
from headscope.core.terms import KOVALEVA, OURS
from headscope.core.wording import percent

CLASS_SHARE = 0.5  # ours: of a head's maps
CLASS_SURE = 0.5  # ours: mean probability that the classifier gives to the class that it says
CLASSES = {
    "block": "block",
    "vertical": "vertical",
    "diagonal": "diagonal",
    "vertical_diagonal": "vertical + diagonal",
}
LOOKS = {
    "block": "squares on the diagonal: attention stays within a part of the input",
    "vertical": "columns: all tokens attend to the same few",
    "diagonal": "a line along the diagonal: attention goes to near tokens",
    "vertical_diagonal": "a line along the diagonal, and columns",
}

RULES = {
    kind: LabelRule(
        name,
        number="maps of the class",
        least=CLASS_SHARE,
        source=f"{OURS}; classes of {KOVALEVA}, §4.1",
        asks="the classifier's mean probability for the class that it tells is above "
        f"{CLASS_SURE:g}",
        last=kind != "block",  # how the maps look says least of a head
    )
    for kind, name in CLASSES.items()
}


def claims(tree: xr.DataTree) -> list[Claim]:
    """One claim per head and class whose share stands out, or passes its rule."""
    dataset = group(tree, "patterns")
    if dataset is None or "share" not in dataset:
        return []
    made = []
    sure = surely(estimate(dataset, "confidence")) > CLASS_SURE  # [layer, head]
    for kind, name in CLASSES.items():
        share = estimate(dataset, "share", pattern=kind)
        if not np.isfinite(share.value).any():
            continue
        reference, n = float(np.nanmean(share.value)), documents(tree, dataset["share"])
        effect = effects(share, reference)
        wanted = (effect > LEAST_EFFECT) | (surely(share) > RULES[kind].least)
        for layer, head in np.argwhere(wanted & sure & np.isfinite(effect)).tolist():
            ends = at(share, layer, head)
            words = percent(*ends)
            made.append(
                Claim(
                    layer, head, kind, float(effect[layer, head]), name,
                    f"{name}: {words} of maps", f"{words} of its maps show {LOOKS[kind]}",
                    *ends, reference, n, "patterns",
                )
            )  # fmt: skip
    return made
