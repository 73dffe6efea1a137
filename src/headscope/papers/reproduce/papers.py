"""Which papers can be reproduced, and who runs the parts that they ask for?"""

from __future__ import annotations

from headscope.errors import InputError
from headscope.papers.reproduce import clark2019, kobayashi2020, kovaleva2019, parts, task_parts
from headscope.papers.reproduce.desk import Maker
from headscope.papers.reproduce.line import Paper

PAPERS: dict[str, Paper] = {
    paper.name: paper for paper in (clark2019.PAPER, kovaleva2019.PAPER, kobayashi2020.PAPER)
}
MAKERS: dict[str, Maker] = {
    "surface": parts.surface,
    "norms": parts.norms,
    "tokens": parts.tokens,
    "dependency": parts.dependency,
    "coreference": parts.coreference,
    "frames": parts.frames,
    "words": parts.words,
    "split": parts.split,
    "gradients": parts.gradients,
    "probes": parts.probes,
    "tuned": task_parts.tuned,
    "scratch": task_parts.scratch,
    "compare": task_parts.compared,
    "told": task_parts.told,
    "ablate": task_parts.ablated,
    "alignment": parts.alignment,
}


def find_paper(name: str) -> Paper:
    """The paper of that name; raises InputError that lists them."""
    if name not in PAPERS:
        raise InputError(f"no paper called {name!r}; there are {', '.join(PAPERS)}")
    return PAPERS[name]
