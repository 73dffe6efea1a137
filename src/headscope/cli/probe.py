"""`headscope probe`: how much syntax small trained probes find in attention."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from headscope.cli import options as shared
from headscope.cli.terminal_output import ProgressBar, complain, size_of
from headscope.cli.typed_command import group, run_command
from headscope.experiments.probes.probe import ProbeRequest, probe
from headscope.experiments.probes.settings import FeaturePlace
from headscope.run.processes import noting_failure

if TYPE_CHECKING:
    from headscope.run.store import Run


class _ProbeOptions(shared.SharedRunOptions, ProbeRequest):
    features: FeaturePlace = group("Features")


@run_command("probe", _ProbeOptions)
def probe_command(options: _ProbeOptions) -> None:
    """Train small probes to find every word's syntactic head in the attention maps of MODEL.

    Beside them: a rule, probes without the model's attention, and the structural probe on its
    hidden states.

    \b
    headscope probe demo --train train.conllu --test dev.conllu -o probed
    headscope probe demo --train train.conllu --test dev.conllu --words glove.6B.100d.txt -o words
    headscope probe demo --train train.conllu --test dev.conllu --curve 100,300 -o curve
    """
    own: dict[str, Any] = {"place": options.features}
    if not options.quiet:
        own["tell"] = complain
    with (
        noting_failure(options.output, options.shard),
        ProgressBar(quiet=options.quiet, unit="sentences") as bar,
    ):
        how = shared.execution_of(bar, options)
        run = probe(**vars(ProbeRequest.of(options, execution=how, **own)))
    shared.conclude(run, options, lines=_lines(run), summary=_summary)


def _lines(run: Run) -> Iterator[str]:
    from headscope.claims.reading import Reading
    from headscope.experiments.probes import PROBES, findings

    reading, counts = Reading(run.tree, PROBES), run.manifest["counts"]
    yield size_of(run.manifest["model"])
    yield from findings.data_text(reading)
    if counts["windowed"]:
        yield f"{counts['windowed']} sentences were longer and read in windows"
    for reason, entry in counts["reasons"].items():
        yield f"{entry['total']} sentences were skipped: {reason}"
    if lacking := str(reading.data.attrs["lacking"]).split():
        yield f"not run, as they need --words: {', '.join(lacking)}"
    yield from findings.probe_lines(reading)
    yield from filter(None, (findings.structural_text(reading), findings.root_note(reading)))
    if heads := findings.influential_heads(reading):
        yield f"the probe on attention leans most on {heads}"


def _summary(run: Run) -> dict[str, Any]:
    from headscope.claims.reading import Reading
    from headscope.experiments.probes import PROBES
    from headscope.experiments.probes.findings import scores

    lacking = str(run["probes"].attrs["lacking"]).split()
    return {"not_run": lacking, **scores(Reading(run.tree, PROBES))}
