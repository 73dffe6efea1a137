"""Tells what each head of a decoder does on made inputs: `headscope circuits`, `hs.circuits`.

    run = circuits("my-decoder", output="run")
    run["circuits"]["score"].sel(circuit="induction")

Nothing heavy is imported before the request is known to be right; `circuit_run` computes.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, asdict
from pathlib import Path
from typing import TYPE_CHECKING

from headscope.core.options import argument, flag, keyword, option, takes, whole
from headscope.errors import InputError
from headscope.model.request import model_place
from headscope.run.execution import Execution, Intervals, control_option
from headscope.tasks.task_request import Loading

if TYPE_CHECKING:
    from headscope.corpus import CorpusLike
    from headscope.experiments.circuits.retrieval import Needles
    from headscope.model.language_model import LanguageModel
    from headscope.run.store import Run


FEWEST = 10  # inputs, or ordinals: of fewer nothing is said of a head
LEAST_LENGTH = 4  # tokens that come twice


def check_size(sequences: int, length: int) -> None:
    """Raises InputError for too few sequences, or too short a half, to say anything."""
    if sequences < FEWEST or length < LEAST_LENGTH:
        raise InputError(
            f"found {sequences} sequences with halves of {length} tokens; wanted {FEWEST} or more, "
            f"of {LEAST_LENGTH} or more"
        )


class CircuitSettings(Intervals):
    """Settings of a run of circuits."""

    sequences: int = option(
        "Made inputs of random tokens, with a repeat and without.",
        100,
        least=1,
        heading="What to compute",
    )
    length: int = option("Tokens that come twice.", 50, least=1)
    needles: int = option("Haystacks with a needle.", 20, least=1)
    haystack: int | None = option(
        "Tokens of each, 512 by default; 0 for none.",
        least=0,
        python="None where the model takes less.",
    )
    steps: int = option(
        "Also let the model write an answer of so many tokens at most, and count its steps as Wu "
        "et al. do; 50 there, 0 for none.",
        0,
        least=0,
    )
    successors: bool = flag("Which heads count on.", True, off="Leave out which heads count on.")
    composition: bool = flag(
        "Which heads read which: slow in models of thousands of heads.",
        True,
        off="Leave out which heads read which.",
    )
    prompts: str = option(
        "Which heads write and carry the answers of prompts: ioi, greater-than, antonyms, "
        "capitals, or a table with the columns prompt, answer, wrong, corrupted.",
        "",
        metavar="NAME|FILE",
    )
    pairs: int = option("Prompts of a made set at most.", 32, least=1)
    views: int = option("Prompts that a page shows head by head, at most; 0 for none.", 4, least=0)
    switch_off: int = option(
        "Switch so many heads off, the best of each kind, beside as many random ones: what it "
        "costs on random tokens that come again.",
        0,
        least=0,
        metavar="N",
    )
    batch_tokens: int = option(
        "Tokens of a forward pass, about.", 1024, least=1, heading="How to run"
    )
    replicates: int = option("Groups of sequences at most, for intervals.", 200, least=0)
    seed: int = option("Seed of all that is made.", 0, least=0)

    def __post_init__(self) -> None:
        """Raise InputError for numbers that cannot be."""
        super().__post_init__()
        check_size(self.sequences, self.length)


class CircuitsRequest(Loading, CircuitSettings, kw_only=False):
    """Which decoder is asked what."""

    model: LanguageModel | str | Path = argument(
        "A causal language model with its head: a folder, a hub id, or loaded.",
        reads=model_place,
    )
    corpus: CorpusLike | Needles | None = option(
        "Plain text for haystacks; by default the bundled corpus.",
        names="--text",
        reads=Path,
        many=True,
        heading="What to compute",
        before="needles",
        python="In Python also texts, tables, …, or needles that are made.",
    )
    _: KW_ONLY
    output: str | Path | None = option(
        "Run folder; re-running resumes.",
        names="-o --output",
        reads=Path,
        usual="circuits-{model}",
        metavar="RUN",
        heading="How to run",
        python="None: in memory.",
    )
    settings: CircuitSettings | None = whole(CircuitSettings)
    control: str | Path | None = control_option(
        "heads", heading="What to compute", before="batch_tokens"
    )
    execution: Execution | None = keyword("Its progress is called with sequences done, and all.")


@takes(CircuitsRequest)
def circuits(request: CircuitsRequest) -> Run:
    """Computes which heads of a decoder look back, copy, induce, count on, and read which others.

    Raises ModelError for an encoder or a model without a language-model head; InputError for inputs
    that cannot be made for it.
    """
    settings, model = CircuitSettings.of(request), request.model
    if request.output is not None:
        from headscope.run.store import RunFolder

        RunFolder(request.output).check()
    from headscope.experiments.circuits.circuit_run import circuit_run
    from headscope.model.language_model import LanguageModel, load_language_model

    if not isinstance(model, LanguageModel):
        model = load_language_model(model, **asdict(Loading.of(request)))
    return circuit_run(
        model,
        request.corpus,
        settings,
        output=request.output,
        control=request.control,
        execution=request.execution,
    )
