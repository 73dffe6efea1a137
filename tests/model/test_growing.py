"""Do copies that begin in later layers end as the whole input does, in every family?"""

from __future__ import annotations

import pytest
import torch

from headscope.errors import ModelError
from headscope.model.attention import AttentionCall
from headscope.model.growing import growing
from headscope.model.instrument import Instrument
from model.families.tiny import FAMILIES, inputs, tiny

GROWN = [name for name, one in FAMILIES.items() if one.on_registry and not one.encoder_decoder]


def rows(name: str, layers: list[int], *interventions) -> torch.Tensor:
    """[row, token, model] of one input and its copies."""
    network = tiny(name)
    one = {key: value[:1] for key, value in inputs(name)[0].items()}
    with (
        torch.inference_mode(),
        growing(network, layers),
        Instrument(network, interventions=interventions),
    ):
        return network(**one).last_hidden_state


@pytest.mark.parametrize("name", GROWN)
def test_a_copy_that_nothing_changes_ends_as_the_input(name: str) -> None:
    whole = rows(name, [])
    assert len(whole) == 1
    grown = rows(name, [0, 1, 1])
    assert len(grown) == 4
    assert torch.allclose(grown, whole.expand_as(grown), atol=1e-5)


@pytest.mark.parametrize("name", ["BERT", "Llama"])
def test_a_change_of_a_copy_stays_in_it(name: str) -> None:
    def change(call: AttentionCall) -> None:
        if call.layer == 1:
            changed = call.attention.clone()
            changed[1] = changed[1].flip(0)  # heads of the copy
            call.attention = changed

    one, copy = rows(name, [1], change)
    assert torch.equal(one, rows(name, [1])[0])
    assert not torch.allclose(one, copy, atol=1e-3)


def test_a_layer_that_does_not_run_is_told() -> None:
    with pytest.raises(ModelError, match="2 modules of whole layers ran; wanted 4 or more"):
        rows("BERT", [3])
