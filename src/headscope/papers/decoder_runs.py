"""Runs behind papers on decoders: heads on repeated random tokens, on prompts, on needles."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from typing import Any

import xarray as xr
from transformers import GPT2LMHeadModel

from headscope.corpus import demo_corpus
from headscope.errors import InputError
from headscope.experiments.circuits.circuits import circuits
from headscope.experiments.circuits.direct_logits import direct_logits
from headscope.experiments.circuits.made_inputs import plain_tokens
from headscope.experiments.circuits.needles import Needles, Wording, needles
from headscope.experiments.circuits.prompts import Prompt
from headscope.experiments.circuits.settings import FEWEST, CircuitSettings
from headscope.model.language_model import LanguageModel
from headscope.model.model import Model
from headscope.papers.paper_runs import texts
from headscope.papers.quantities import Unmeasured
from headscope.papers.workspace import Workspace
from headscope.run.store import Run

SEQUENCES, LENGTH, PAIRS = 100, 50, 64
STEPS = 50  # tokens that a model may write, as the code of Wu et al.
HAYSTACK, NEEDLES = 4000, 30  # ours; there 1,000 to 50,000 tokens, 600 runs
ROOM = 256  # tokens of a model's limit for needle, question and answer
BAG = "When John and Mary went to the shops, John gave the bag to"
BOOK = "\nBased on the content of the book, Question: {}\nAnswer:"
# Of the code of Wu et al.: haystack_for_detect/needles.jsonl.
ASKED = (
    Wording(
        " A new report from the WMO shows that",
        BOOK.format("What does a new report from WMO shows ?"),
        " records were once again broken, and in some cases smashed, for greenhouse "
        "gas levels, surface temperatures, ocean heat and acidification",
    ),
    Wording(
        " The best thing to do in Beijing is to",
        BOOK.format("What is the best thing to do in Beijing ?"),
        " take a walk in Chaoyang Park and have a cup of Espresso in the evening",
    ),
    Wording(
        " Mr Green is disliked by everyone",
        BOOK.format("Why does everyone dislikes Mr Green ?"),
        " because he is a mean person and also he can't ride a horse or dive a car",
    ),
)


def repeated(workspace: Workspace, name: str) -> Run:
    """Heads on random tokens that come twice (Olsson et al. 2022)."""
    return _circuits(workspace, name, haystack=0)


def ioi(workspace: Workspace, name: str) -> Run:
    """The same, and who writes and carries the name of IOI prompts (Wang et al. 2023)."""
    return _circuits(workspace, name, haystack=0, prompts="ioi", pairs=_few(workspace, PAIRS))


def bag(workspace: Workspace, name: str) -> Run:
    """What heads write for “ Mary” after one prompt, as TransformerLens; in memory.

    It puts the first token before, and takes value biases out of heads, into W_O's bias.
    """
    model = workspace.language.model
    first = model.tokenizer.bos_token or ""
    prompt = Prompt(f"{first}{BAG}", " Mary", " John")
    with _unfit():
        network = _without_value_biases(model.network)
        alone = Model(network, model.tokenizer, model.name, model.revision, model.sha256)
        writes = direct_logits(LanguageModel(alone, "causal"), [prompt])
    return Run(xr.DataTree.from_dict({"writes": writes}), {})


def needle(workspace: Workspace, name: str) -> Run:
    """Which heads find the needles of Wu et al. (2024), in the user's text or the bundled one."""
    model = workspace.language.model
    haystack = min(HAYSTACK, model.limit - ROOM)
    if haystack < ROOM:
        raise Unmeasured(
            f"needs a model that takes {2 * ROOM} tokens; this one takes {model.limit}"
        )
    own_texts = {"text", "segments"} & set(workspace.data.sources)
    with _unfit():
        made = needles(
            model,
            texts(workspace) if own_texts else demo_corpus(),
            runs=_few(workspace, NEEDLES),
            haystack=haystack,
            seed=workspace.seed,
            room=STEPS,
            wordings=ASKED,
        )
    return _circuits(workspace, name, made, haystack=haystack, steps=STEPS)


def _circuits(workspace: Workspace, name: str, made: Needles | None = None, **settings: Any) -> Run:
    model = workspace.language.model
    length = min(LENGTH, (model.limit - FEWEST) // 2, len(plain_tokens(model)) // 2)
    circuit_settings = CircuitSettings(
        sequences=_few(workspace, SEQUENCES),
        length=length,
        successors=False,
        relations=0,
        composition=False,
        **workspace.chance,
        **settings,
    )
    with _unfit():
        return circuits(
            workspace.language,
            made,
            output=workspace.place(name),
            settings=circuit_settings,
            control=workspace.control,
            execution=replace(workspace.execution, keep_draws=True),
        )


def _few(workspace: Workspace, most: int) -> int:
    return max(FEWEST, min(most, workspace.limit or most))


@contextmanager
def _unfit() -> Iterator[None]:
    """Inputs that cannot be made for a model are no fault of the line."""
    try:
        yield
    except InputError as error:
        raise Unmeasured(f"needs a model for which its inputs can be made: {error}") from error


def _without_value_biases(network: Any) -> Any:
    """The same function where the family is GPT-2's, with value biases in the output's bias."""
    if not isinstance(network, GPT2LMHeadModel):
        return network
    network = deepcopy(network)
    for attention in (block.attn for block in network.transformer.h):
        values = attention.c_attn.bias.data[-attention.embed_dim :]
        attention.c_proj.bias.data += values @ attention.c_proj.weight.data
        values.zero_()
    return network
