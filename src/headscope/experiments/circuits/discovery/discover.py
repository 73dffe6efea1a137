"""Finds which nodes of a decoder together are the circuit of some prompts, and how faithful it is.

    dataset = hs.prompts.find_circuit("demo-decoder", "ioi")
    dataset["member"]

A third of the items choose: nodes are ranked by integrated gradients (Hanna et al. 2024), and the
circuit is the fewest first nodes that are faithful, less those that can go. The others try it.
"""

from __future__ import annotations

from collections.abc import Sequence

import xarray as xr

from headscope.core.accumulators import REPLICATES
from headscope.errors import InputError
from headscope.experiments.circuits.direct_logits import decoder, prompt_set
from headscope.experiments.circuits.discovery.finding import discovered
from headscope.experiments.circuits.discovery.result import discovery_result
from headscope.experiments.circuits.own_prompts import PromptLike
from headscope.experiments.circuits.prompts import PromptSet
from headscope.model.language_model import ModelLike
from headscope.model.request import BATCH_TOKENS

STEPS = 5  # Hanna et al. 2024


def find_circuit(
    model: ModelLike,
    prompts: str | Sequence[PromptLike] | PromptSet = "ioi",
    *,
    steps: int = STEPS,
    edges: bool = False,
    count: int = 64,
    seed: int = 0,
    batch_tokens: int = BATCH_TOKENS,
    replicates: int = REPLICATES,
) -> xr.Dataset:
    """The nodes that together answer prompts, and how far they do.

    model    a decoder with its language-model head: a folder, a hub id, what `load` gives
    prompts  as `direct_logits`, with corrupted ones of equal length
    steps    of integrated gradients
    edges    also of edges, from a node to the queries, keys or values of a later head, to a
             feed-forward layer or to the logits
    count    of a made set; seed likewise
    returns  a Dataset over `node`: "input", heads "a0.h3" and feed-forward layers "m0", counted
             from 0. score[node] what share of the logit difference between clean and corrupted
             prompts it moves; included[node] how often it is among as many first nodes of
             resampled wordings, kinds of corrupted prompts and items; included_in_form[form, node]
             and included_in_kind[corruption, node] 1 where it is among as many of one wording, or
             of one kind; member[node] 1 in the circuit; needed[node] what the circuit loses
             without it. faithfulness[replacement, order, share] of the first nodes by score, or by
             its size; cpr and cmd[replacement], the areas below these curves and between them and
             1; circuit_faithfulness[replacement]; random_faithfulness[draw] of random sets of as
             many heads and feed-forward layers; incomplete[half] what the circuit without half of
             itself tells more than the network without it. Intervals are over items.
             With edges: edge_score[node, reader], readers as "a3.h0<q>", "m3", "logits"; and of
             circuits of the first edges edge_faithfulness[order, share], edge_cpr, edge_cmd
    raises   InputError and its kinds as `patch_heads`; ModelError for a network whose layers add
             more than attention and a feed-forward layer
    """
    if steps < 1:
        raise InputError(f"found {steps} steps of integrated gradients; wanted 1 or more")
    language = decoder(model)
    encoded = prompt_set(language, prompts, count=count, seed=seed)
    encoded.need_pairs()
    if len(items := set(encoded.items)) < 2:
        raise InputError(
            f"found prompts of {len(items)} item; wanted 2 or more: some choose the circuit, the "
            "others try it"
        )
    how = {"steps": steps, "seed": seed, "batch_tokens": batch_tokens}
    circuit = discovered(language, encoded, **how, edges=edges)
    return discovery_result(circuit, language.model.shape.names, replicates=replicates)
