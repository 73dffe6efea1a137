"""`headscope cite`: the sources behind a run as BibTeX, and its methods in one paragraph."""

from pathlib import Path

from headscope.cli.options import json_flag
from headscope.cli.terminal_output import complain, tell
from headscope.cli.typed_command import typed_command
from headscope.core.options import Options, argument, flag
from headscope.errors import InputError
from headscope.run.manifest_file import run_place


class _CiteOptions(Options):
    run: Path = argument(reads=run_place)
    bibtex: bool = flag("The entries alone.")
    text: bool = flag("The paragraph alone.")
    as_json: bool = json_flag()


@typed_command("cite", _CiteOptions)
def cite_command(options: _CiteOptions) -> None:
    """Print how to cite the run folder RUN: a methods paragraph, then BibTeX of its sources.

    The paragraph says what the run's manifest knows, and nothing else.

    \b
    headscope cite atlas-demo
    headscope cite atlas-demo --bibtex > heads.bib
    """
    if options.bibtex and options.text:
        raise InputError("found --bibtex and --text; wanted one of them, or neither for both")
    from headscope.report.cite import cite

    cited = cite(options.run)
    if cited.unknown:
        complain("without an entry, as a plug-in names them: " + "; ".join(cited.unknown))
    shown = cited.bibtex if options.bibtex else cited.text if options.text else str(cited)
    tell([shown], vars(cited) if options.as_json else None)
