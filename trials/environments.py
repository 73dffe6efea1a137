"""Odd environments: every command does its work there, or ends in words that say why not.

An environment is what a shell does before it becomes the command, variables, and options of Python.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import click

from trials.forked import Ended
from trials.outcomes import Tally

PATIENCE = 300.0
LONG = "d/" * 2500 + "x"
BYTES = os.fsdecode(b"caf\xe9")
ATLAS = (
    *("atlas", "demo", "--demo", "--limit", "1", "--analyses", "entropy,surface"),
    *("--replicates", "2", "--linears", "stock"),
)
COMMANDS = {
    "help": ("--help",),
    "analyses": ("analyses",),
    "head": ("head", "{run}", "L1H1"),
    "report": ("report", "{run}"),
    "view": ("view", "demo", "the cat", "-o", "{new}.html"),
    "doctor": ("doctor", "demo"),
    "atlas": (*ATLAS, "-o", "{new}"),
    "workers": (*ATLAS, "--workers", "2", "--no-report", "--shard-tokens", "64", "-o", "{new}"),
    "long path": ("head", LONG, "L1H1"),
    "long page": ("view", "demo", "the cat", "-o", f"{LONG}.html"),
    "long output": (*ATLAS, "-o", LONG),
    "bytes": ("head", BYTES, "L1H1"),
    "bytes page": ("view", "demo", "the cat", "-o", f"{{new}}{BYTES}.html"),
    "bytes output": (*ATLAS, "-o", f"{{new}}{BYTES}"),
    "bytes model": ("doctor", BYTES),
}
CHEAP = ("help", "analyses", "head")
USUAL = (*CHEAP, "report", "view", "doctor", "atlas")
BECOME = 'exec "$@"'


@dataclass(frozen=True)
class Environment:
    """Where a command runs.

    shell      what happens first; the last word is the command
    variables  set, or unset where None
    python     its options
    deaf       what it says on stderr cannot be heard
    mute       what it says on stdout cannot be heard; where it says anything, that is told
    commands   those that are tried
    needs      a file of the system without which it cannot be made
    """

    shell: str = BECOME
    variables: Mapping[str, str | None] = field(default_factory=dict)
    python: tuple[str, ...] = ()
    deaf: bool = False
    mute: bool = False
    commands: tuple[str, ...] = USUAL
    needs: str = "/"


def _with(**variables: str | None) -> Environment:
    return Environment(variables=variables)


def _mounted(*lines: str, **more: tuple[str, ...]) -> Environment:
    return Environment(shell=" && ".join([*lines, BECOME]), **more)  # type: ignore[arg-type]


READ_ONLY = "mount --bind -o ro {0} {0}"
HOMELESS = "setpriv --reuid 54321 --regid 54321 --clear-groups"
PATHS = tuple(name for name in COMMANDS if name.startswith(("long", "bytes")))
ENVIRONMENTS = {
    "usual": Environment(commands=(*USUAL, *PATHS)),
    "folder deleted": Environment('mkdir gone && cd gone && rmdir ../gone && exec "$@"'),
    "stderr closed": Environment('exec "$@" 2>&-', deaf=True),
    "stderr full": Environment('exec "$@" 2>/dev/full', deaf=True),
    "stdout closed": Environment('exec "$@" >&-', mute=True),
    "stdout full": Environment('exec "$@" >/dev/full', mute=True),
    "stdin closed": Environment('exec "$@" <&-'),
    "all closed": Environment('exec "$@" <&- >&- 2>&-', deaf=True, mute=True),
    "no asserts": Environment(python=("-OO",), commands=(*USUAL, "workers")),
    "ascii": _with(LC_ALL="C", PYTHONCOERCECLOCALE="0", PYTHONUTF8="0"),
    "locale unknown": _with(LC_ALL="xx_YY.none", LANG="none"),
    "output ascii": _with(PYTHONIOENCODING="ascii"),
    "output latin": _with(PYTHONIOENCODING="latin-1", LC_ALL="C"),
    "backend unknown": _with(MPLBACKEND="nonsense"),
    "backend of a desktop": _with(MPLBACKEND="TkAgg", DISPLAY=None),
    "settings of matplotlib nowhere": _with(MPLCONFIGDIR="/dev/null/x"),
    "no terminal": _with(TERM=None, COLUMNS=None, LINES=None),
    "no columns": _with(TERM="", COLUMNS="0", LINES="0"),
    "columns odd": _with(COLUMNS="-5", LINES="many"),
    "no home": _with(HOME=None, XDG_CACHE_HOME=None),
    "home empty": _with(HOME="", XDG_CACHE_HOME=""),
    "home nowhere": _with(HOME="/proc/nowhere", XDG_CACHE_HOME="/proc/nowhere/cache"),
    "home a file": _with(HOME="/dev/null", XDG_CACHE_HOME="/dev/null"),
    "home read-only": _mounted(
        "mkdir -p home", READ_ONLY.format("home"), "export HOME=$PWD/home XDG_CACHE_HOME="
    ),
    "user unknown": _mounted("chmod 777 .", f"unset HOME USER LOGNAME; exec {HOMELESS} \"$@\""),
    "temporary folder missing": _with(TMPDIR="/proc/nowhere"),
    "temporary folder full": _mounted(
        "mkdir -p tmp",
        "mount -t tmpfs -o size=4k tmpfs tmp",
        "{ head -c 9999 /dev/zero >tmp/full; export TMPDIR=$PWD/tmp; }",
        commands=(*USUAL, "workers"),
    ),
    "nowhere temporary": _mounted(
        *(READ_ONLY.format(place) for place in ("/tmp", "/var/tmp", "/dev/shm", ".")),
        "cd .",
        commands=(*USUAL, "workers"),
    ),
    "shared memory small": _mounted(
        "mount -t tmpfs -o size=16k tmpfs /dev/shm", commands=("atlas", "workers")
    ),
    "shared memory read-only": _mounted(
        READ_ONLY.format("/dev/shm"), commands=("atlas", "workers")
    ),
    "no shared memory": _mounted("umount -l /dev/shm", commands=("workers",)),
    "few handles": Environment('ulimit -n 24; exec "$@"'),
    "no path": _with(PATH=""),
    "threads odd": _with(OMP_NUM_THREADS="many", MKL_NUM_THREADS="0"),
    "time zone unknown": _with(TZ="Nowhere/Land", SOURCE_DATE_EPOCH="soon"),
    "cache of loops nowhere": _with(NUMBA_CACHE_DIR="/dev/null/x", PYTHONPYCACHEPREFIX="/dev/null"),
    "loops not compiled": _with(NUMBA_DISABLE_JIT="1"),
    "threads of loops none": _with(NUMBA_NUM_THREADS="0"),
    "no docstrings": _with(PYTHONOPTIMIZE="2"),
    "development": _with(PYTHONDEVMODE="1"),
    "warnings are errors": _with(PYTHONWARNINGS="error::UserWarning"),
    "no bytecode": _with(PYTHONDONTWRITEBYTECODE="1", PYTHONUNBUFFERED="1"),
    "safe path": Environment(python=("-P", "-s")),
    "hub nowhere": _with(HF_HOME="/dev/null", HF_HUB_CACHE="/dev/null/x"),
    "hub online": _with(HF_HUB_OFFLINE="0", HF_ENDPOINT="http://127.0.0.1:9"),
    "hub badly said": _with(HF_HUB_OFFLINE="perhaps", TRANSFORMERS_VERBOSITY="loud"),
    "proxy nowhere": _with(https_proxy="http://127.0.0.1:9", HTTPS_PROXY="http://127.0.0.1:9"),
    "no such GPU": _with(CUDA_VISIBLE_DEVICES="99"),
    "temporary folder unnamed": _with(TMPDIR="", TEMP="", TMP=""),
    "temporary folder long": Environment(
        "mkdir -p " + "t" * 200 + " && export TMPDIR=$PWD/" + "t" * 200 + ' && exec "$@"'
    ),
    "folder odd": Environment("mkdir ' a\n%s{}\\' && cd ' a\n%s{}\\' && exec \"$@\""),
    "folder unreadable": Environment('mkdir shut && cd shut && chmod 0 . && exec "$@"'),
    "nobody may read": Environment('umask 777; exec "$@"'),
    "files small": Environment('ulimit -f 8; exec "$@"'),
    "stack small": Environment('ulimit -s 512; exec "$@"'),
    "no core files": Environment('ulimit -c 0; exec "$@"'),
    "colours forced": _with(FORCE_COLOR="1", CLICOLOR_FORCE="1", TERM="xterm-256color"),
    "times odd": _with(SOURCE_DATE_EPOCH="99999999999999999999"),
    "Turkish": Environment(
        'localedef -i tr_TR -f UTF-8 ./tr_TR.UTF-8 && export LOCPATH=$PWD'
        ' && test "$(locale charmap)" = UTF-8 && exec "$@"',
        {"LC_ALL": "tr_TR.UTF-8", "LANG": "tr_TR.UTF-8"},
        needs="/usr/share/i18n/locales/tr_TR",
    ),
    "threads too many": _with(OMP_NUM_THREADS="999999", OPENBLAS_NUM_THREADS="999999"),
}  # fmt: skip


def attempt(where: Environment, command: str, desk: Path) -> Ended:
    """How a command ended in an environment, in a new folder on the desk."""
    with tempfile.TemporaryDirectory(dir=desk) as place:
        os.chmod(place, 0o755)
        folder = Path(place)
        if (desk / "run").is_dir():
            shutil.copytree(desk / "run", folder / "run")
        words = (
            word.format(run=folder / "run", new=folder / "new") if "{" in word else word
            for word in COMMANDS[command]
        )
        variables = {**os.environ, **where.variables}
        apart = (shutil.which("unshare") or "unshare", "-m") if "mount" in where.shell else ()
        done = subprocess.run(
            [
                *(*apart, "/bin/sh", "-c", where.shell, "sh"),
                *(sys.executable, *where.python, "-m", "headscope", *words),
            ],
            cwd=folder,
            env={key: value for key, value in variables.items() if value is not None},
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PATIENCE,
            check=False,
        )
    return Ended(done.returncode, *(s.replace(place, ".") for s in (done.stdout, done.stderr)))


def outcome(where: Environment, ended: Ended) -> str:
    """What came of an attempt, as a Tally counts it."""
    if any(sign in ended.err for sign in ("Traceback", "failed with", "Exception ignored")):
        return "unclear error"
    if ended.code == 0:
        return "wrong" if where.mute else "done"
    if where.deaf and ended.code in (1, 2):
        return "unheard"
    told = ended.clear or (ended.code == 1 and " BAD " in ended.out)
    return "told" if told else "unclear error"


def attempt_all(names: Iterable[str], commands: Iterable[str], tally: Tally, desk: Path) -> None:
    """Try the commands in the environments; what is done there is what is done elsewhere."""
    chosen = set(commands)
    for name in names:
        where = ENVIRONMENTS[name]
        if not Path(where.needs).exists():
            print(f"{name}: skipped, there is no {where.needs}", flush=True)
            continue
        for command in (one for one in where.commands if one in chosen):
            ended = attempt(where, command, desk)
            came = outcome(where, ended)
            what = f"{command}: code {ended.code}\n{ended.out[-500:]}\n{ended.err[-1500:]}"
            tally.add(name, came, what)
            print(f"{name} | {command} | {came} | {ended.err.strip()[-300:]!r}", flush=True)


def made_desk(folder: Path) -> Path:
    """A folder with a finished run in it."""
    with_run = [sys.executable, "-m", "headscope", *ATLAS, "-o", str(folder / "run"), "--quiet"]
    subprocess.run(with_run, check=True, capture_output=True)
    return folder


@click.command("environments")
@click.option("--only", multiple=True, type=click.Choice(list(ENVIRONMENTS)), help="Of these.")
@click.option("--commands", default=",".join(COMMANDS), help="Those to try.")
@click.option("--keep", default="trials-failed", show_default=True, type=click.Path(path_type=Path))
def command(only: tuple[str, ...], commands: str, keep: Path) -> None:
    """Every command in every odd environment."""
    with (
        Tally(keep.absolute()).told() as tally,
        tempfile.TemporaryDirectory(dir="/var/tmp") as place,
    ):
        os.chmod(place, 0o755)
        attempt_all(only or ENVIRONMENTS, commands.split(","), tally, made_desk(Path(place)))
