"""`headscope export`: a finished run as a folder of pages that any web host serves."""

from pathlib import Path

from headscope.cli.options import json_flag
from headscope.cli.terminal_output import tell
from headscope.cli.typed_command import typed_command
from headscope.core.options import Options, argument, flag, required
from headscope.run.manifest_file import run_place


class _ExportOptions(Options):
    run: Path = argument(reads=run_place)
    output: Path = required("The folder: a new one, or an empty one.", names="-o --output")
    overwrite: bool = flag("Replace an earlier export in the folder.")
    as_json: bool = json_flag()


@typed_command("export", _ExportOptions)
def export_command(options: _ExportOptions) -> None:
    """Write the run folder RUN as a static site: report, cards of heads, views, figures, tables.

    All links are relative: the folder opens from the disk, and any web host serves it. It holds the
    texts that the views show, and the names of model and files as they were given.

    \b
    headscope export atlas-demo -o site
    """
    from headscope.report.site import export_site

    page = export_site(options.run, options.output, overwrite=options.overwrite)
    summary = {"run": str(options.run), "site": str(options.output), "page": str(page)}
    tell([f"site: {page}"], summary if options.as_json else None)
