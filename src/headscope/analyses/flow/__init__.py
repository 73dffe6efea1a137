"""The question flow: from which input tokens does a representation come, over all layers?"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from headscope.claims.dictionary import name
from headscope.claims.plan import LayerLines, PanelPlan, PicturePlan
from headscope.claims.question import Option, Question
from headscope.claims.terms import ABNAR, FERRANDO, KOBAYASHI21, MODARRESSI, MOHEBBI, OURS, Term
from headscope.core.wording import capital, percent
from headscope.errors import InputError

if TYPE_CHECKING:
    from headscope.model.layer import LayerView

_ALL = {"attention", "values", "projection", "residual"}
# method → its name, its source, what the model must let be seen (`known_analyses.MODEL_NEEDS`)
_METHODS: dict[str, tuple[str, str, set[str]]] = {
    "rollout": ("attention rollout", "Abnar & Zuidema 2020", {"attention"}),
    "weighted_norm": (
        "weighted-norm rollout, no residual",
        "Kobayashi et al. 2020",
        {"attention", "values", "projection"},
    ),
    "weighted_norm_residual": ("weighted-norm rollout", "Kobayashi et al. 2021", _ALL),
    "globenc": ("GlobEnc rollout", "Modarressi et al. 2022", _ALL),
    "alti": ("ALTI rollout", "Ferrando et al. 2022", _ALL),
    "value_zeroing": ("value-zeroing rollout", "Mohebbi et al. 2023", {"attention", "values"}),
}
METHODS = tuple(_METHODS)
LABELS = {method: label for method, (label, _, _) in _METHODS.items()}
SOURCES = {method: source for method, (_, source, _) in _METHODS.items()}
NEEDS = {method: frozenset(needs) for method, (_, _, needs) in _METHODS.items()}


def check_methods(names: Iterable[str], *, also: Iterable[str] = ()) -> tuple[str, ...]:
    """The methods, each once; raises InputError for one that is not known, or for none."""
    known = (*METHODS, *also)
    methods = tuple(dict.fromkeys(one.strip() for one in names if one.strip()))
    wrong = [repr(one) for one in methods if one not in known] or ["no method"] * (not methods)
    if wrong:
        raise InputError(f"found {wrong[0]}; wanted methods among {', '.join(known)}")
    return methods


def check_named(_: str, value: object) -> None:
    """Raises InputError unless these are names of methods with commas between them."""
    check_methods(str(value).split(","))


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
            (method == "globenc" and None in (layer.site.post_norm, layer.site.closing_norm))
            or (method == "alti" and not pre_norm and layer.site.post_norm is None)
        ),
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


# method → colour and mark, and how its line is dashed
MARKS = {
    "rollout": ("grey", "o"),
    "weighted_norm": ("sky", "s"),
    "weighted_norm_residual": ("orange", "^"),
    "globenc": ("blue", "D"),
    "alti": ("vermillion", "v"),
    "value_zeroing": ("green", "P"),
}
DASHES = dict(zip(MARKS, (0, 1, 2, 0, 3, 4), strict=True))


def measured(run: Any) -> list[str]:
    """The methods that have any number, in the order of MARKS; unknown ones last."""
    names = map(str, run.data["variant"].values)
    there = [name for name in names if run.has("share", variant=name)]
    return sorted(there, key=lambda one: METHODS.index(one) if one in METHODS else len(METHODS))


def title_of(method: str) -> str:
    """What a method is called."""
    return capital(LABELS.get(method, name(method)))


def panels(run: Any) -> list[PanelPlan]:
    """A panel for each method, on one scale, and how many tokens each amounts to."""
    if not (methods := measured(run)):
        return []
    top, most = (float(run.data[number].max()) for number in ("share", "effective_tokens"))
    made = [
        LayerLines(
            title=title_of(method),
            needs="share",
            choice={"variant": method},
            label="share",
            names={"self": "itself"},
            top=min(1.0, 1.05 * top),
            height=0.72,
        )
        for method in methods
    ]
    number = LayerLines(
        title="How many tokens",
        needs="effective_tokens",
        label="tokens",
        names={method: title_of(method).replace(" rollout", "") for method in methods},
        order=METHODS,
        dashes=DASHES,
        top=1.05 * most,
        percent=False,
        height=0.72,
    )
    return [*made, number]


def finding(run: Any) -> str:
    """How much of a token is its own in the last layer, by the last method."""
    for method in measured(run)[-1:]:
        own = run("share", variant=method, target="self").value[-1]
        words = f"{percent(float(own))} of a token in the last layer is its own"
        return f"By {title_of(method)}, {words}; the rest came from other tokens." if own else ""
    return ""


QUESTION = Question(
    name="flow",
    package=__name__,
    slow=True,
    place=50,
    measure="measure:Flow",
    summary="which input tokens a representation comes from, over all layers",
    source="Abnar & Zuidema 2020; Modarressi et al. 2022",
    needs=frozenset({"attention", "whole_rows", "every_layer"}),
    options={"methods": Option("rollout,weighted_norm_residual,globenc", check_value=check_named)},
    figures=(
        PicturePlan(
            name="flow",
            title="Where representations come from",
            panels=panels,
            caption=lambda run: run.words(
                "How much of a token’s representation at the output of each layer comes from which "
                "tokens of the input, each counted once, mean over tokens, then inputs"
                f"{', by each method' * (len(measured(run)) > 1)}; the last panel: the effective "
                "number of input tokens, 1 / Σ share². Bands are {intervals}; {over}. Products of "
                "layers after Abnar and Zuidema (2020)."
            ),
            text="Layer by layer tokens take from each other, so that a vector high up need not "
            "say much about its own word. Following every path back to the input tells what is "
            "left of it; attention alone makes the resting places look like sources, the norms of "
            "what is passed on do not.",
            finding=finding,
        ),
    ),
    terms={
        "flow": Term(
            "information flow",
            "How much of a token’s vector at a layer’s output comes from a kind of input token, "
            "over all paths through the layers below; each input token counts as one kind, the "
            "first of itself, previous, next and so on, so that the shares add up to 1.",
            ABNAR,
        ),
        "rollout": Term(
            "attention rollout",
            "Layers multiplied, each half mean attention over heads and half the token itself, for "
            "the residual connection.",
            ABNAR,
        ),
        "weighted_norm_residual": Term(
            "weighted-norm rollout",
            "Layers multiplied, each with the norm of what a token gives through all heads "
            "together, and of the residual connection’s vector too where it gives to itself.",
            f"{KOBAYASHI21}; {ABNAR}",
        ),
        "globenc": Term(
            "GlobEnc",
            "The weighted-norm rollout with each vector taken through both "
            "normalisations of a layer, the feed-forward left out.",
            MODARRESSI,
        ),
        "alti": Term(
            "ALTI",
            "Layers multiplied, each with how much nearer to 0 (in the L1 norm) a "
            "token’s vector after attention would be without what another token gives.",
            FERRANDO,
        ),
        "value_zeroing": Term(
            "value zeroing",
            "Layers multiplied, each with how far the direction of a token’s vector at the layer’s "
            "output turns when another token’s values are set to 0.",
            MOHEBBI,
        ),
        "max_flow": Term(
            "maximum flow",
            "How much could run from a token to a token of the input at once, if every weight of "
            "every layer were a pipe of that width.",
            ABNAR,
        ),
        "effective_tokens": Term(
            "effective number of tokens",
            "From how many input tokens a representation comes: 1 / Σ share², 1 where all comes "
            "from one, n where n give the same.",
            OURS,
        ),
    },
    labels={"share": "share from {choice}", "cls_share": "share of [CLS] from {choice}"},
    marks=MARKS,
)
