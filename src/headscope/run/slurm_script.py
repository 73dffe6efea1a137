"""An array script for Slurm, whose tasks fill one run folder together."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from headscope.errors import HeadscopeError, InputError


def array_script(words: Sequence[str], *, tasks: int, folder: Path, **options: Any) -> str:
    """A script for sbatch, whose tasks each give this command of headscope; their logs get a line
    of progress each minute.

    folder  where the tasks start
    options of sbatch; None for those that are left to the cluster
    """
    wanted = {"job-name": "headscope", "array": f"1-{tasks}", **options}
    lines = [
        f"#SBATCH --{name.replace('_', '-')}={value}"
        for name, value in wanted.items()
        if value is not None
    ]
    command = shlex.join([sys.executable, "-m", "headscope", words[0]])
    end = list(words).index("--") if "--" in words else len(words)
    before, after = shlex.join(words[1:end]), shlex.join(words[end:])
    share = f'--shard "$SLURM_ARRAY_TASK_ID/{tasks}"'
    return "\n".join(
        [
            "#!/bin/bash",
            *lines,
            "#SBATCH --requeue",
            "#SBATCH --open-mode=append",
            "set -eu",
            f"cd -- {shlex.quote(str(folder))}",
            # In place of the shell: the requests of Slurm to end reach headscope itself.
            f"exec {command} {before} {share} {after}".rstrip(),
            "",
        ]
    )


def submitted(script: str) -> str:
    """What sbatch says to the script."""
    try:
        done = subprocess.run(["sbatch"], input=script, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise InputError(
            "there is no sbatch on this machine; leave --submit out, and hand the script to "
            "sbatch where there is one"
        ) from error
    if done.returncode:
        raise HeadscopeError(f"sbatch refused the script: {done.stderr.strip()[:500]}")
    return done.stdout.strip()
