"""Do word, position, segment and bias add up to the first layer's queries and keys?"""

from __future__ import annotations

import pytest
import torch

from headscope.model.families.embeddings import PARTS
from headscope.model.families.sites import find_sites
from headscope.model.layer import LayerView
from model.families.tiny import FAMILIES, inputs, make, seen_by, tiny

KNOWN = (
    "BERT",
    "BERT decoder",
    "RoBERTa",
    "XLM-R",
    "CamemBERT",
    "DistilBERT",
    "ALBERT",
    "ELECTRA",
    "GPT-2",
)


def first_layer(name: str) -> tuple[LayerView, torch.Tensor, torch.Tensor, torch.Tensor]:
    """The first layer in float64; ids, segments and mask as they were given."""
    network = make(name)().double()
    given, mask = inputs(name)
    ids = given["input_ids"]
    if network.config.pad_token_id is not None:
        ids = given["input_ids"] = torch.where(mask, ids, network.config.pad_token_id)
    segments = torch.zeros_like(ids)
    if getattr(network.config, "type_vocab_size", 0) > 1:
        segments = given["token_type_ids"] = (torch.arange(9) > 3).long().expand(3, 9)
    return seen_by(network, given)[0][0], ids, segments, mask


@pytest.mark.parametrize("name", KNOWN)
def test_the_parts_add_up_to_queries_and_keys(name: str) -> None:
    view, ids, segments, mask = first_layer(name)
    assert view.site.embeddings is not None
    parts = view.site.embeddings.queries_and_keys(ids, segments, heads=4)
    for part, whole in zip(parts, (view.queries, view.keys), strict=True):
        total = part.sum(2)[mask]  # [real token, head, dim]
        torch.testing.assert_close(total, whole.transpose(1, 2)[mask], atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize("name", KNOWN)
def test_a_part_moves_only_with_what_it_is_named_after(name: str) -> None:
    """Up to the scale of the norm, which is that of the whole: directions stay."""
    view, ids, segments, _ = first_layer(name)
    other = torch.where(ids == ids[0, 4], ids[0, 5], ids)
    found, changed = (
        view.site.embeddings.queries_and_keys(some, segments, heads=4)[0][0, 4]
        for some in (ids, other)
    )  # [part, head, dim]
    same = torch.cosine_similarity(found.flatten(1), changed.flatten(1), dim=-1)
    for part in ("position", "bias"):
        assert float(same[PARTS.index(part)]) == pytest.approx(1)
    assert float(same[PARTS.index("word")]) < 0.99


@pytest.mark.parametrize("name", FAMILIES)
def test_only_the_first_layer_of_families_that_add_embeddings_has_them(name: str) -> None:
    sites = find_sites(tiny(name))
    assert [site.embeddings is not None for site in sites] == [
        at == 0 and name in (*KNOWN, "ALBERT groups") for at in range(len(sites))
    ]
