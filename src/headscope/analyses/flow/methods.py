"""The ways to say how much of a token's output comes from each token of the input.

Every method gives a layer matrix [query, key] of rows that sum to 1; see `measure_matrices` for
how, and `measure_one_text` for what happens from layer to layer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from headscope.errors import InputError, ModelError

if TYPE_CHECKING:
    from headscope.model.layer import LayerView

# method → what the model must let be seen, as in `analysis.MODEL_NEEDS`
NEEDS = {
    "rollout": frozenset({"attention"}),
    "weighted_norm": frozenset({"attention", "values", "projection"}),
    "weighted_norm_residual": frozenset({"attention", "values", "projection", "residual"}),
    "globenc": frozenset({"attention", "values", "projection", "residual"}),
    "alti": frozenset({"attention", "values", "projection", "residual"}),
    "value_zeroing": frozenset({"attention", "values"}),
}
METHODS = tuple(NEEDS)
LABELS = {
    "rollout": "attention rollout",
    "weighted_norm": "weighted-norm rollout, no residual",
    "weighted_norm_residual": "weighted-norm rollout",
    "globenc": "GlobEnc rollout",
    "alti": "ALTI rollout",
    "value_zeroing": "value-zeroing rollout",
}
SOURCES = {
    "rollout": "Abnar & Zuidema 2020",
    "weighted_norm": "Kobayashi et al. 2020",
    "weighted_norm_residual": "Kobayashi et al. 2021",
    "globenc": "Modarressi et al. 2022",
    "alti": "Ferrando et al. 2022",
    "value_zeroing": "Mohebbi et al. 2023",
}


def check_methods(given: Iterable[str], *, also: Iterable[str] = ()) -> tuple[str, ...]:
    """The methods, each once; raises InputError for one that is not known, or for none."""
    known = (*METHODS, *also)
    names = tuple(dict.fromkeys(name.strip() for name in given if name.strip()))
    if wrong := [name for name in names if name not in known] or not names:
        told = repr(wrong[0]) if isinstance(wrong, list) else "no method"
        raise InputError(f"found {told}; wanted methods among {', '.join(known)}")
    return names


def why_not(layer: LayerView, method: str) -> str:
    """Why a layer has no matrix by this method, as the end of a sentence; "" if it has one."""
    missing = sorted(NEEDS[method] - layer.offers)
    pre_norm = layer.site.norm is None
    reasons = {
        f"this family does not show its {', '.join(missing)}": bool(missing),
        "its queries and keys are not of the same tokens": (
            layer.attention.shape[2] != layer.attention.shape[3]
        ),
        "its layers cannot be run again outside transformers' attention registry": (
            method == "value_zeroing" and layer.given is None
        ),
        "its layers normalise before attention and no norm follows the sum, where it would be "
        "weighted_norm_residual: ask for that, or for alti": method == "globenc" and pre_norm,
        "the LayerNorms of its layers are not known": (
            (method == "globenc" and (layer.norm is None or layer.final_norm is None))
            or (method == "alti" and not pre_norm and layer.norm is None)
        ),
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def require(layer: LayerView, method: str) -> None:
    """Raises ModelError where a layer has no matrix by this method."""
    if why := why_not(layer, method):
        raise ModelError(f"{method} is not there for {type(layer.site.attention).__name__}: {why}")
