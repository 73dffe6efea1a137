"""Do the pipelines that the benchmark compares give the same answers?"""

from contextlib import ExitStack

import torch
from benchmarks.ablation import MEASURED, classifier, pipelines
from benchmarks.inputs import treebank


def test_every_pipeline_gives_the_same_answers():
    network = classifier(
        num_hidden_layers=2, num_attention_heads=3, hidden_size=48, intermediate_size=64
    )
    inputs = treebank(5, budget=80)
    with ExitStack() as stack:
        found = [row.run() for row in pipelines(network, inputs, "onednn", stack)]
    naive, fast, shared, both = found
    order = torch.tensor([at for rows in inputs.rows for at in rows]).argsort()
    assert len(naive) == MEASURED + 1 < len(shared)
    torch.testing.assert_close(fast, naive, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(both, shared, atol=1e-4, rtol=1e-4)
    # The naive way measures a few of the variants; small batches come shortest first.
    by_length = sorted(range(5), key=lambda at: len(inputs.examples[at]))
    back = torch.tensor(by_length).argsort()
    torch.testing.assert_close(shared[:, back][0], naive[:, order][0], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(shared[:, back][1], naive[:, order][1], atol=1e-5, rtol=1e-5)
