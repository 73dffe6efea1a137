"""Tells what each head of a decoder does on made inputs: `headscope circuits`, `hs.circuits`.

    run = circuits("demo-decoder", output="run")
    run["circuits"]["score"].sel(circuit="induction")

Nothing heavy is imported before the request is known to be right; `circuit_run` computes.
"""

from __future__ import annotations

from dataclasses import KW_ONLY
from pathlib import Path
from typing import TYPE_CHECKING

from headscope.core.options import argument, keyword, option, takes, whole
from headscope.errors import InputError
from headscope.experiments.circuits.settings import CircuitSettings
from headscope.model.request import model_place
from headscope.run.execution import Execution, control_option, run_option
from headscope.tasks.task_request import Loading, language_model

if TYPE_CHECKING:
    from headscope.corpus import CorpusLike
    from headscope.experiments.circuits.needles import Needles
    from headscope.model.language_model import LanguageModel
    from headscope.model.model import Model
    from headscope.run.store import Run


class CircuitsRequest(Loading, CircuitSettings, kw_only=False):
    """Which decoder, and what is measured of it."""

    model: LanguageModel | Model | str | Path = argument(
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
    output: str | Path | None = run_option("circuits-{model}")
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
    from headscope.run.store import check_run_folder

    check_run_folder(request.output)
    from headscope.experiments.circuits.own_prompts import check_prompts
    from headscope.experiments.circuits.own_relations import read_relations

    check_prompts(settings.prompts)
    words = read_relations(settings.relation_pairs)
    if words and not settings.relations:
        raise InputError(
            "found a table of related words and relations=0, which leaves them out; wanted "
            "1 or more"
        )
    if isinstance(request.corpus, str | Path | list):
        from headscope.corpus import corpus_of

        corpus_of(request.corpus)  # whose files are there
    from headscope.experiments.circuits.circuit_run import circuit_run

    return circuit_run(
        language_model(model, Loading.of(request)),
        request.corpus,
        settings,
        words,
        output=request.output,
        control=request.control,
        execution=request.execution,
    )
