"""`headscope doctor`: check the installation, a model and a corpus, or the folder of a run."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING

import click

from headscope.cli.options import CorpusOptions, json_flag, read_corpus
from headscope.cli.terminal_output import tell
from headscope.cli.typed_command import group, typed_command
from headscope.core.options import Options, argument
from headscope.tasks.task_request import Loading

if TYPE_CHECKING:
    from headscope.run.folder_check import Line

COLUMNS = ("verdict", "check", "found")


class _DoctorOptions(Options):
    model: str = argument(default="demo")
    corpus: CorpusOptions = group()
    loading: Loading = group()
    as_json: bool = json_flag("The findings as JSON.")


@typed_command("doctor", _DoctorOptions)
def doctor_command(options: _DoctorOptions) -> None:
    """Check the installation, a MODEL (default: demo) and, if one is given, a corpus.

    Of the folder of a run: what in it is as it was written, and what cannot be trusted.

    \b
    headscope doctor demo --text wiki.txt
    headscope doctor atlas-demo
    """
    from headscope.run.folder_check import BAD, check_folder
    from headscope.run.manifest_file import holds_run

    run = holds_run(options.model)
    checked = list(check_folder(options.model)) if run else _installation(options)
    lines = (f"{verdict:>4}  {what:<22}{finding}" for verdict, what, finding in checked)
    findings = [dict(zip(COLUMNS, line, strict=True)) for line in checked]
    tell(lines, findings if options.as_json else None, ensure_ascii=False, indent=2)
    if any(verdict == BAD for verdict, *_ in checked):
        raise click.exceptions.Exit(1)


def _installation(options: _DoctorOptions) -> list[Line]:
    try:
        from headscope.model.model import load
        from headscope.run.installation_check import check_installation
    except ImportError as error:
        return [("BAD", "installation", str(error))]
    corpus = partial(read_corpus, options.corpus) if options.corpus.named else None
    return check_installation(partial(load, options.model, **asdict(options.loading)), corpus)
