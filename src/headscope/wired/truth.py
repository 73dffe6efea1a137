"""Compares the labels of wired heads with what they were wired to do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
import xarray as xr
from scipy import stats

from headscope.claims.claim import Claim
from headscope.claims.head_labels import head_labels, label_rules
from headscope.claims.relation_names import arrow
from headscope.core.accumulators import Float64
from headscope.corpus.document import Corpus
from headscope.wired.features import SPECIALS
from headscope.wired.heads import Said, WiredHead
from headscope.wired.networks import Wired, value_norms

SLACK = 0.03  # shares of a mean over inputs, however inputs are weighted
NEARBY = 3
LEAST_REST = 0.47
SINK, SINK_TOKENS, SINK_LEAST = 0.3, 64, 16  # of a sink by threshold, as `sinks` has it
WINDOW = (4, 64)  # first and latest tokens, as `distance` has it
CLS, SEP = ("[CLS]", "<s>"), ("[SEP]", "</s>")
WAYS = ("dependent_to_head", "head_to_dependent")


@dataclass(frozen=True)
class Judged:
    """One wired head, and what was said of it.

    right   labels that had to be said, and were
    missed  labels that had to be said, and were not
    false   claims that are not true of it
    """

    layer: int
    head: WiredHead
    right: tuple[Said, ...]
    missed: tuple[Said, ...]
    false: tuple[Claim, ...]
    labels: tuple[Claim, ...]


def judge(
    tree: xr.DataTree,
    wired: Wired,
    shown: Mapping[tuple[int, int], set[str]],
    *,
    strict: bool = False,
) -> list[Judged]:
    """Compare the labels of each head in a run's results with what it was wired to do.

    shown   (layer, head) -> kinds that are plainly true of its maps, as `plain_truths`
    strict  what a head is wired to do is missed though noise has left little of it
    """
    made, rules = list[Judged](), label_rules()
    for (layer, at), one in head_labels(tree).items():
        head = wired.heads[layer][at]
        said = [(claim.kind, about(claim)) for claim in one.labels]
        plain = shown.get((layer, at), set())
        right = tuple(must for must in head.said if any(must.fits(*label) for label in said))
        instead = {kind for kind, _ in said if kind in plain}  # it is said in another way
        missed = tuple(
            must
            for must in head.said
            if must not in right
            and not instead.intersection(rules[must.kind].unless)
            and (strict or f"no {must.kind}" not in plain)
        )
        false = tuple(
            claim
            for claim, label in zip(one.labels, said, strict=True)
            if not any(true.fits(*label) for true in (*head.said, *head.also))
            and not _plainly(claim, head, plain)
        )
        made.append(Judged(layer, head, right, missed, false, one.labels))
    return made


def _plainly(claim: Claim, head: WiredHead, plain: set[str]) -> bool:
    """Whether a label only describes maps, and describes these."""
    if claim.kind in ("cls", "sep", "special", "first") and claim.kind in head.decoy:
        return claim.kind in plain and "no sink" in plain
    decoy = claim.kind in head.decoy and claim.kind != "sink" and not claim.where
    return claim.kind in plain and not decoy


def about(claim: Claim) -> str:
    """What a claim is about; of a relation with its direction, `nsubj dependent_to_head`."""
    if claim.kind == "dependency":
        way = next((way for way in WAYS if arrow(claim.about, way) == claim.name), "")
        return f"{claim.about} {way}"
    return claim.about


def plain_truths(wired: Wired, corpus: Corpus) -> dict[tuple[int, int], set[str]]:
    """(layer, head) -> the kinds of labels that only describe maps and are true of its maps; and
    `no KIND` where the contrary may be true. Near a threshold both are.

    Computed apart from any analysis: maps of all inputs in turn, their plain means.
    """
    rules, total, norms = label_rules(), dict[str, Float64](), value_norms(wired)
    inputs = list(_inputs(wired, corpus))
    for ids, segments in inputs:
        maps = _maps(wired, ids, segments)  # [layer, head, query, key]
        tokens = wired.tokenizer.convert_ids_to_tokens(ids)
        for kind, share in _shares(maps, tokens, segments).items():
            total[kind] = total.get(kind, 0.0) + np.nan_to_num(share)
    mean = {
        kind: sums / np.maximum(total.get(f"{kind}|of", len(inputs)), 1)
        for kind, sums in total.items()
        if "|" not in kind
    }
    mean["narrow"], mean["broad"] = 1 - mean["spread"], mean["spread"]
    mean["rest"] = np.minimum(mean["first"], np.maximum(mean["rest self"], mean["rest previous"]))
    true = {place: set[str]() for place in np.ndindex(mean["self"].shape)}
    for place, kinds in true.items():
        for kind in mean.keys() & rules.keys():
            above = float(mean[kind][place] - rules[kind].least)
            kinds.update([kind] * (above > -SLACK) + [f"no {kind}"] * (above < SLACK))
        sinks, of = (float(total[f"threshold_sink{part}"][place]) for part in ("", "|of"))
        if of == 0 or _lower_end(sinks, of) < rules["threshold_sink"].least:
            kinds.add("no threshold_sink")  # so few inputs cannot tell
        kinds.update(_rest(mean, norms[place], place, wired))
    return true


def _lower_end(successes: float, of: float) -> float:
    return float(stats.binomtest(round(successes), round(of)).proportion_ci(0.95).low)


def _rest(
    mean: Mapping[str, Float64], norms: Float64, place: tuple[int, int], wired: Wired
) -> set[str]:
    """`sink` or `no sink` of a head that gives half of its attention to special tokens."""
    tokens = wired.tokenizer.convert_ids_to_tokens(list(range(len(norms))))
    on = {"cls": CLS, "sep": SEP, "special": (*CLS, *SEP), "first": ()}
    kind = max(on, key=lambda kind: (mean[kind][place], len(on[kind]) < 3))
    share = float(mean[kind][place])
    if share < LEAST_REST:
        return {"no sink"}
    there = np.isin(tokens, on[kind]) if on[kind] else np.ones(len(tokens), bool)
    taken, others = norms[there].max() if kind != "first" else norms.mean(), norms.mean()
    if share * taken > 0.6 * (1 - share) * others and taken > 0.02 * others:
        return {"no sink"}
    clear = share * taken < 0.4 * (1 - share) * others or taken < 0.02 * others
    return {"sink"} if clear else {"sink", "no sink"}


def _inputs(wired: Wired, corpus: Corpus) -> Iterable[tuple[list[int], np.ndarray]]:
    for document in corpus:
        for passage in document.passages:
            text = passage.text or " ".join(word.form for word in passage.words or ())
            read = wired.tokenizer(text, passage.text_pair)
            ids = read["input_ids"]
            segments = np.zeros(len(ids), int)
            if passage.text_pair:
                segments[len(wired.tokenizer(text)["input_ids"]) :] = 1
            yield ids, segments


def _maps(wired: Wired, ids: Sequence[int], segments: np.ndarray) -> Float64:
    network, inputs = wired.network, {"input_ids": torch.tensor([ids])}
    if network.config.model_type == "bert":
        inputs["token_type_ids"] = torch.from_numpy(segments)[None]
    before = network.config._attn_implementation
    network.set_attn_implementation("eager")
    with torch.inference_mode():
        maps = network(**inputs, output_attentions=True).attentions
    network.set_attn_implementation(before)
    return torch.cat(list(maps)).double().numpy()


def _shares(maps: Float64, tokens: Sequence[str], segments: np.ndarray) -> dict[str, Float64]:
    """[layer, head] by kind, of one input; `kind|of` counts what a kind's mean is over."""
    size = len(tokens)
    offset = np.arange(size) - np.arange(size)[:, None]  # [query, key] key − query
    column = maps.mean(-2)  # [layer, head, key]
    texts = np.array(tokens)
    special = np.isin(texts, SPECIALS)
    with np.errstate(divide="ignore", invalid="ignore"):
        nats = -np.nansum(np.where(maps > 0, maps * np.log(maps), 0), -1).mean(-1)
    causal = bool((maps[..., 0, 1:] == 0).all()) if size > 1 else False
    uniform = np.log(np.arange(1, size + 1)).mean() if causal else np.log(size)
    shares = {
        "self": (maps * (offset == 0)).sum((-1, -2)) / size,
        "previous": (maps * (offset == -1)).sum((-1, -2)) / size,
        "next": (maps * (offset == 1)).sum((-1, -2)) / size,
        "nearby": (maps * (abs(offset) <= NEARBY)).sum((-1, -2)) / size,
        "first": column[..., 0],
        "cls": column[..., np.isin(texts, CLS)].sum(-1),
        "sep": column[..., np.isin(texts, SEP)].sum(-1),
        "special": column[..., special].sum(-1),
        "punctuation": column[..., np.isin(texts, [".", ","])].sum(-1),
        "spread": nats / max(uniform, 1e-9),
    }
    left = np.maximum(1 - maps[..., 1:, 0], 1e-9).sum(-1)  # of what the first token leaves
    for kind, back in ("self", 0), ("previous", -1):
        shares[f"rest {kind}"] = (maps * (offset == back))[..., 1:, 1:].sum((-1, -2)) / left
    shares |= _of_length(maps, causal=causal)
    words = ~special
    same = (texts[:, None] == texts) & (offset != 0)
    own = segments[:, None] == segments
    for kind, keys in (("own_segment", own), ("other_segment", ~own), ("same_token", same)):
        between = keys & words & words[:, None]
        shares[kind] = (maps * between).sum((-1, -2))
        shares[f"{kind}|of"] = np.full(shares[kind].shape, between.any(1).sum() * 1.0)
    return shares


def _of_length(maps: Float64, *, causal: bool) -> dict[str, Float64]:
    """The same of kinds that need inputs of some length."""
    size, cell = maps.shape[-1], maps.shape[:2]
    first = min(size, SINK_TOKENS) if causal else size
    seeing = first - np.arange(first) if causal else np.full(first, first)
    received = maps[..., :first, :first].sum(-2) / seeing  # [layer, head, key]
    sink = ((received > SINK) & (2 * seeing >= first)).any(-1)
    shares = {
        "threshold_sink": sink * (size >= SINK_LEAST) * 1.0,
        "threshold_sink|of": np.full(cell, (size >= SINK_LEAST) * 1.0),
    }
    if causal:
        opens, latest = WINDOW
        query, key = np.arange(size)[:, None], np.arange(size)
        far = query[:, 0] + 1 > 2 * (opens + latest)
        near = (key < opens) | (query - key < latest)
        of_far = (maps * near).sum(-1)[..., far].sum(-1) / max(far.sum(), 1)
        shares |= {"streaming": of_far, "streaming|of": np.full(cell, far.any() * 1.0)}
    return shares
