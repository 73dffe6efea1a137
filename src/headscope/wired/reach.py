"""How heads look at a fixed distance: log-odds by offset, as sums of waves."""

from collections.abc import Mapping
from functools import cache

import numpy as np
from scipy.optimize import linprog

from headscope.core.accumulators import Float64

ROPE_WAVES = 24  # of a head of Llama, that rotate fast enough to tell near tokens apart
ROPE_RATIO = 0.8  # each wave's speed, of that of the one before; the first turns by 1 per token
LONGEST = 192  # tokens that kernels of waves are fitted to


def wave_kernel(reach: Mapping[int, float], places: int) -> Float64:
    """[number, number] W, so that place(q) W · place(k) is reach[k − q], up to a constant; exact
    for all offsets but the mean of their row (see `stream.PLACE`).
    """
    waves = (places - 1) // 2
    wanted = np.zeros(places)
    for offset, weight in reach.items():
        wanted[-offset % places] += weight  # by q − k
    angle = 2 * np.pi * np.outer(np.arange(1, waves + 1), np.arange(places)) / places
    cosine = 2 / places * np.cos(angle) @ wanted * waves  # places hold waves of norm 1 / √waves
    sine = 2 / places * np.sin(angle) @ wanted * waves
    # cos f(q−k) = cc + ss, sin f(q−k) = sc − cs
    return np.block([[np.diag(cosine), np.diag(-sine)], [np.diag(sine), np.diag(cosine)]])


def rope_rate(size: int) -> float:
    """RoPE's base for which neighbouring waves of a head differ by ROPE_RATIO."""
    return float(ROPE_RATIO ** -(size / 2))


@cache
def rope_kernel(reach: tuple[tuple[int, float], ...]) -> tuple[Float64, Float64]:
    """(cosine, sine) [wave] of q so that constant keys make the wanted log-odds of offsets ≤ 0.

    Wanted offsets have theirs exactly, all others 0 or less: the smallest numbers that do so.
    """
    behind = np.arange(LONGEST)
    angle = np.outer(behind, ROPE_RATIO ** np.arange(ROPE_WAVES))
    # q turned by angle q·f and k by k·f: (a, b)·(1, 0) turned is a cos f(q−k) − b sin f(q−k)… the
    # sign of b is that of `apply_rotary_pos_emb`.
    basis = np.hstack([np.cos(angle), -np.sin(angle)])
    weights = {-offset: weight for offset, weight in reach}
    inside = np.isin(behind, list(weights))
    signed = np.hstack([basis, -basis])
    solution = linprog(
        np.ones(signed.shape[1]),
        A_ub=signed[~inside],
        b_ub=np.zeros((~inside).sum()),
        A_eq=signed[inside],
        b_eq=[weights[at] for at in behind[inside]],
        bounds=(0, None),
    )
    if solution.x is None:
        raise ValueError(f"found no waves for the offsets {list(weights)}: {solution.message}")
    both = solution.x[: basis.shape[1]] - solution.x[basis.shape[1] :]
    return both[:ROPE_WAVES], both[ROPE_WAVES:]
