"""Choose the analyses of a run, and the inputs that each of them reads."""

from collections.abc import Iterable

from headscope.corpus.packing import padded_length
from headscope.errors import InputError
from headscope.model.model import Model
from headscope.run.analysis import LEADING
from headscope.run.known_analyses import CORPUS_NEEDS, MODEL_NEEDS, choose, known_analyses
from headscope.run.plan import Plan
from headscope.run.settings import Settings


def possible_analyses(model: Model, settings: Settings) -> list[str]:
    """The analyses to run; InputError for a requested one that the model does not allow."""
    allowed = model.allows
    known = known_analyses()
    names = []
    for name in sorted(choose(settings.analyses)):  # one order, however they were asked for
        needs = known[name].needs_with(settings.options.get(name, {}))
        missing = (needs & MODEL_NEEDS) - allowed
        if not missing:
            names.append(name)
        elif settings.analyses is not None:
            fault = model.identity_fault if "projection" in missing else ""
            raise InputError(
                f"{name} needs {', '.join(sorted(missing))}, which cannot be read from "
                f"{model.architecture}{fault and f': {fault}'}; leave it out of --analyses"
            )
    return names


def annotated_analyses(names: list[str], plan: Plan, settings: Settings) -> list[str]:
    """The analyses whose annotations the corpus has.

    raises  InputError for an analysis that is asked for and whose annotations are missing. Giving
            options of an analysis asks for it; its `measure` alone may be meant for all
    """
    known, kept = known_analyses(), []
    for name in names:
        needs = known[name].needs & CORPUS_NEEDS
        missing = needs - set(plan.reading_with(needs)[1].annotations.documents)
        if not missing:
            kept.append(name)
        elif settings.analyses is not None or set(settings.options.get(name, ())) - {"measure"}:
            lacks, give = "this one has none", "give"
            if (read := settings.limit) is not None and plan.counts.documents >= read:
                first = "document has" if read == 1 else f"{read:,} documents have"
                lacks, give = f"its first {first} none (--limit)", "give a larger --limit, or"
            raise InputError(
                f"{name} needs a corpus with {', '.join(sorted(missing))}, and {lacks}; {give} "
                "--treebank, --coref or --frames, or text with --annotate"
            )
    return kept


def is_long(model: Model, plan: Plan, settings: Settings) -> bool:
    """Whether some batch is read without whole maps; False outside the attention registry."""
    return _longest(model, plan) > settings.whole_maps and not model.fallback


def _longest(model: Model, plan: Plan) -> int:
    """Tokens of the longest batch."""
    return padded_length(plan.longest, model.limit)


def long_analyses(names: list[str], model: Model, plan: Plan, settings: Settings) -> list[str]:
    """The analyses that can read long inputs, if there are long inputs.

    Whole maps of the first tokens alone are what they are in the whole input only where the future
    is hidden.

    raises  InputError for an analysis that is asked for and needs what is not there
    """
    if not is_long(model, plan, settings) or model.shape.stack == "decoder":
        return names
    known = known_analyses()
    refused = [name for name in names if known[name].whole_maps]
    if refused and settings.analyses is not None:
        raise InputError(
            f"{', '.join(refused)} need whole maps, which are made for inputs of up to "
            f"{settings.whole_maps} tokens; found one of {plan.longest}: leave them out, or give "
            f"--max-length {settings.whole_maps} or --whole-maps {_longest(model, plan)}"
        )
    return [name for name in names if name not in refused]


def long_in_words(
    wanted: list[str], names: list[str], model: Model, plan: Plan, settings: Settings
) -> str:
    """How inputs without whole maps were read, for the report; "" without such inputs."""
    if not is_long(model, plan, settings):
        return ""
    said = [
        f"inputs of more than {settings.whole_maps:,} tokens (up to {plan.longest:,}) were read "
        "without whole maps"
    ]
    known = known_analyses()
    few = [name for name in names if known[name].whole_maps]
    if few:
        said.append(f"{', '.join(few)}: the first {LEADING} tokens of these alone")
    if lost := [name for name in wanted if name not in names]:
        said.append(f"{', '.join(lost)}: left out, as they look at whole maps")
    return "; ".join(said)


def reads_of(names: Iterable[str], plan: Plan) -> dict[str, str]:
    """The kind of inputs for each analysis; analyses that read all inputs are left out."""
    known = known_analyses()
    return {
        name: plan.reading_with(known[name].needs & CORPUS_NEEDS)[0]
        for name in names
        if not known[name].every_reading
    }
