"""Do TransformerLens and we say the same of the same tiny decoders? To 1e-4.

`make_transformer_lens.py` wrote its numbers once, with the versions that stand in the file.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from experiments.circuits.decoders import decoder, pairs
from headscope.experiments.circuits.direct_logits import direct_logits
from headscope.experiments.circuits.patching import patch_heads

THEIRS = json.loads(Path(__file__).with_name("transformer_lens.json").read_text("utf-8"))


@pytest.mark.parametrize("name", THEIRS["models"])
def test_what_heads_write_and_what_patching_brings_is_what_transformer_lens_says(name):
    theirs = THEIRS["models"][name]
    prompts = pairs(*THEIRS["lengths"], seed=THEIRS["seed"])
    direct = direct_logits(decoder(name), prompts)["direct_of_prompt"].values
    np.testing.assert_allclose(direct, theirs["direct"], atol=1e-4)
    for prompt, one in zip(prompts, theirs["patching"], strict=True):
        found = patch_heads(decoder(name), [prompt])
        gap = one["clean"] - one["corrupted"]
        wanted = (np.array(one["patched"]) - one["corrupted"]) / gap
        np.testing.assert_allclose(found["effect"] * gap, wanted * gap, atol=1e-4)
        assert float(found["into"]) == pytest.approx(one["corrupted"], abs=1e-4)
