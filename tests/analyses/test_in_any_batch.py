"""Do all analyses give the same in any batch for decoders, grouped queries, windows, the fallback?

`check_analysis` asks this of a BERT; here the families differ in what is masked and where it is
read. Spearman's correlations are left out: a value next to the edge of a bin may fall either way.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from analyses.running import run
from headscope.analyses.flow import METHODS
from headscope.model.vocabulary import Vocabulary
from headscope.run.contract_bench import tiny_examples
from model.families.tiny import tiny

FAMILIES = (
    "ALBERT",
    "BERT decoder",
    "DeBERTa v2",
    "DistilBERT",
    "GPT-2",
    "Gemma2",
    "Llama",
    "Mistral",
    "ModernBERT",
    "MPNet",
    "OPT post-norm",
)
ALL = {
    "surface": {},
    "entropy": {},
    "norms": {},
    "mixing": {},
    "divergence": {},
    "flow": {"methods": ",".join(METHODS)},
    "distance": {"windows": "1+2,2+3"},
    "sinks": {"tokens": 5, "least": 2},
}
RANKED = ("spearman", "histogram", "mds")


@pytest.mark.parametrize("family", FAMILIES)
def test_batch_size_changes_nothing_in_any_family(family: str) -> None:
    network = tiny(family)
    pad = network.config.pad_token_id or 0
    vocabulary = Vocabulary(cls=2, sep=3, punctuation=(4, 5), pad=pad)
    examples = [replace(e, segment_ids=np.zeros_like(e.input_ids)) for e in tiny_examples()]
    rank = np.arange(1, network.config.vocab_size + 1)
    alone, together = (
        run(ALL, network=network, examples=examples, size=size, vocabulary=vocabulary, rank=rank)
        for size in (1, 7)
    )
    for name, dataset in alone.items():
        for variable in dataset:
            if not any(word in str(variable) for word in RANKED):
                np.testing.assert_allclose(
                    together[name][variable],
                    dataset[variable],
                    rtol=2e-5,
                    atol=1e-5,
                    err_msg=f"{family}: {name}/{variable}",
                )


@pytest.mark.parametrize("family", ["BERT decoder", "GPT-2", "Llama"])
def test_a_decoder_never_attends_to_what_comes_next(family: str) -> None:
    found = run({"surface": {}, "entropy": {}}, network=tiny(family), rank=None)
    assert (found["surface"].attention.sel(target="next") == 0).all()
    assert (found["entropy"].entropy.sel(query="all") <= found["entropy"].uniform + 1e-6).all()
