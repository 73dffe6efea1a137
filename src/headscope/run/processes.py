"""The processes that fill one run folder together: their records and leases.

    RUN/processes/003-of-064.node7.4242.1f3a9c.json   a process: what it does, its last error
    RUN/processes/00012.lease    the same file by another name: the process that computes shard 12

A lease is made by a hard link, which a file system makes once for all who try; it holds the record
of its owner, whose time of change the owner renews while it lives. No clock is compared with
another's: a process is dead where its own machine says so, or once its record has not changed for
SILENCE seconds of the observer's own clock. One that was only slow does no harm: a shard that two
compute has the same bits, and is put in place whole.
"""

from __future__ import annotations

import json
import os
import platform
import re
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from headscope.core.inside import read_inside
from headscope.core.whole_file import names_in, why_unwritten
from headscope.errors import InputError, RunFolderError, RunStopped, UnwrittenError

PROCESSES, LEASE, RECORD = "processes", ".lease", ".json"
PLAN = "plan-"  # how the folder of what they have planned begins
BEAT, SILENCE = 10.0, 120.0  # seconds; attributes of files are cached for 60 s by NFS
ROOM = 4096  # bytes of a record: rewritten in place, it needs no room on a disk that is full
MOST = 100_000  # processes of one run
# Whose runs they can fill.
DIVIDED = ("atlas", "zoo", "ablate", "importance", "explain", "trial", "probe", "study", "evolve")
LOADING = "loading"  # the state of a process that does not take part yet
LONGEST = 1000  # characters of an error in it
ENDED = ("done", "failed", "refused", "stopped")  # states of a process that computes no more
# Of what kind is what is read of a record.
_KINDS: dict[str, type] = {
    **dict.fromkeys(("name", "shard", "host", "processor", "state", "doing", "error"), str),
    "started": str,
    "machine": str,
    "pid": int,
    "shards": int,
    "parts": int,
    "seconds": float,
    "versions": dict,
}
FINISH = "finish"  # the lease on merging all and writing the results


def check_shard(shard: tuple[int, int] | None, *, workers: int, overwrite: bool) -> None:
    """Raise InputError for an invalid share, or for options that do not go together with one."""
    if shard is None:
        return
    number, of = shard
    if not 1 <= number <= of <= MOST:
        raise InputError(f"found shard {number}/{of}; wanted 1/N to N/N, N at most {MOST}")
    if workers > 1 or overwrite:
        raise InputError(
            "--shard cannot be combined with --workers or --overwrite: start more processes "
            "instead, and delete an old run before the first of them"
        )


class TakingPart:
    """This process, one of those that fill a run folder.

    folder  the run folder
    shard   i and n: it begins with the i-th of n equal shares
    state   what it does first
    leases  what it has claimed
    """

    def __init__(self, folder: Path, shard: tuple[int, int], state: str = "planning") -> None:
        self.shard, self.others, self.leases = shard, Silences(), set[str]()
        number, of = shard
        host = re.sub(r"[^\w-]", "_", platform.node())[:40]
        self.name = f"{number:03d}-of-{of:03d}.{host}.{os.getpid()}.{secrets.token_hex(3)}"
        self.place = folder / PROCESSES
        self.file = self.place / (self.name + RECORD)
        self.told: dict[str, Any] = {
            "name": self.name,
            "shard": f"{number}/{of}",
            "host": platform.node(),
            "processor": processor(),
            "begun": time.strftime("%Y-%m-%d %H:%M:%S"),
            "state": state,
            "shards": 0,
            "seconds": 0.0,
            "error": "",
            **_identity(os.getpid()),
        }
        try:
            self.place.mkdir(parents=True, exist_ok=True)
            handle = os.open(self.file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
            with os.fdopen(handle, "wb") as file:
                file.write(self._content())
            self._check_exclusive()
        except OSError as error:
            raise why_unwritten(error, self.file) from error
        self._ended = threading.Event()
        threading.Thread(target=self._beat, daemon=True).start()

    def _check_exclusive(self) -> None:
        """Raise RunFolderError if the file system allows two links of one name."""
        probe = self.file.with_suffix(".probe")
        try:
            os.link(self.file, probe)
            os.link(self.file, probe)
        except FileExistsError:
            return
        except OSError as error:
            reason = error.strerror
        else:
            reason = "a name was given twice"
        finally:
            with suppress(OSError):
                probe.unlink()
        with suppress(OSError):
            self.file.unlink()
        raise RunFolderError(
            f"{self.place} is on a file system without hard links ({reason}), which processes "
            "need to claim shards\nchoose one that has them (NFS, Lustre, GPFS, a local disk); "
            "or leave --shard out and run one process with --workers"
        )

    def tell(self, **changes: Any) -> None:
        """Write this process's activity into its record; ignored where that is not possible."""
        self.told |= changes
        with suppress(OSError), open(self.file, "r+b") as file:
            file.write(self._content())

    def _content(self) -> bytes:
        for length in (LONGEST, 100):  # a character may take twelve bytes
            self.told["error"] = self.told["error"][:length]
            content = json.dumps(self.told).encode()
            if len(content) < ROOM:
                break
        return content.ljust(ROOM)

    def _beat(self) -> None:
        while not self._ended.wait(BEAT):
            with suppress(OSError):
                os.utime(self.file)

    def claim(self, what: str) -> bool:
        """Try to get a lease; a lease of a dead process is taken over."""
        lease = self.place / (what + LEASE)
        mine = self._link(lease)
        if not mine:
            with suppress(OSError):
                before = lease.stat()
                if self.others.dead(lease) and os.path.samestat(before, lease.stat()):
                    lease.unlink()
                    mine = self._link(lease)
        self.leases |= {what} if mine else set()
        return mine

    def abandoned(self, what: str) -> bool:
        """Whether a lease held by another process may be free by now."""
        try:
            return self.others.dead(self.place / (what + LEASE))
        except OSError:  # given back
            return True

    def _link(self, lease: Path) -> bool:
        try:
            os.link(self.file, lease)
        except FileExistsError:
            with suppress(OSError):  # a server may do it and its answer be lost
                return os.path.samestat(lease.stat(), self.file.stat())
            return False
        except FileNotFoundError:  # the run has ended, or another command has taken it over
            return False
        except OSError as error:
            raise why_unwritten(error, lease) from error
        return True

    def release(self, what: str) -> None:
        """Release a lease, unless another process has taken it over."""
        lease = self.place / (what + LEASE)
        self.leases.discard(what)
        with suppress(OSError):
            if os.path.samestat(lease.stat(), self.file.stat()):
                lease.unlink()

    @contextmanager
    def leased(self, what: str) -> Iterator[bool]:
        """Inside the context this process has the lease, if it got it."""
        mine = self.claim(what)
        try:
            yield mine
        finally:
            if mine:
                self.release(what)

    def end(self, state: str, error: str = "") -> None:
        """Record how this process ended; a successful one leaves no record."""
        self._ended.set()
        for lease in [*self.leases]:
            self.release(lease)
        self.tell(state=state, error=error, doing="")
        if state == "done":
            drop(self.file)


@contextmanager
def taking_part(folder: Path, shard: tuple[int, int] | None) -> Iterator[TakingPart | None]:
    """Inside the context this process has a record; None without a shard.

    What goes wrong inside is written there. It takes the place of the record of `noting_failure`.
    """
    if shard is None:
        yield None
        return
    own = TakingPart(folder, shard)
    drop(*_still_loading(own))
    try:
        yield own
    except (KeyboardInterrupt, RunStopped):
        own.end("stopped")
        raise
    except BaseException as error:
        said = str(error).strip() or type(error).__name__
        refused = isinstance(error, RunFolderError) and not isinstance(error, UnwrittenError)
        own.end("refused" if refused else "failed", said)
        raise
    own.end("done")


@contextmanager
def noting_failure(folder: str | Path | None, shard: tuple[int, int] | None) -> Iterator[None]:
    """Inside the context this process has a record of loading, until it takes part; an error writes
    another, success none.

    What `taking_part` has recorded inside is not recorded again.
    """
    if folder is None or shard is None:
        yield
        return
    place = Path(folder)
    loading: TakingPart | None = None
    with suppress(Exception):  # whatever is wrong with the folder is said by what fills it
        loading = TakingPart(place, shard, LOADING)
    try:
        yield
    except (Exception, KeyboardInterrupt) as error:
        if loading is not None:
            loading.end("done")
        mine = _identity(os.getpid()).items()
        if not any(mine <= one.items() for one in records(place).values()):
            with suppress(Exception, KeyboardInterrupt), taking_part(place, shard):
                raise error
        raise
    if loading is not None:
        loading.end("done")


def _still_loading(own: TakingPart) -> list[Path]:
    """Records of this process from before it took part."""
    number, mine = own.name.partition(".")[0], _identity(os.getpid()).items()
    loading = []
    for file in own.place.glob(f"{number}.*{RECORD}"):
        with suppress(OSError, RunFolderError):
            one = _record(read_inside(own.place.parent, f"{PROCESSES}/{file.name}"))
            if mine <= one.items() and one.get("state") == LOADING:
                loading.append(file)
    return loading


class Silences:
    """Detects dead processes from records and leases that stop changing.

    clock  seconds, of this process alone
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: dict[str, tuple[int, float]] = {}  # when each record was first seen as it is
        self._read: dict[tuple[int, int], tuple[int, dict[str, Any]]] = {}  # by the file itself

    def dead(self, file: Path) -> bool:
        """Whether the process of a record is dead; OSError where the file is gone."""
        status = file.stat()
        changed, this = status.st_mtime_ns, (status.st_dev, status.st_ino)
        before_read, record = self._read.get(this, (0, {}))
        if before_read != changed or not record:  # a lease is the record by another name
            record = read_record(file)
            self._read[this] = changed, record
        if record.get("state") in ENDED or gone(record):
            return True
        name = str(record.get("name", file.name))
        if (before := self._seen.get(name)) is None or before[0] != changed:
            self._seen[name] = changed, self._clock()
            return False
        return self._clock() - before[1] > SILENCE


def read_record(file: Path) -> dict[str, Any]:
    """The content of a record or lease; empty while it is being written."""
    return _record(file.read_bytes())


def _record(content: bytes) -> dict[str, Any]:
    try:
        record = json.loads(content)
        whole = all(isinstance(record.get(name, kind()), kind) for name, kind in _KINDS.items())
    except (ValueError, AttributeError, RecursionError):
        return {}
    return dict(record) if whole else {}


def gone(record: dict[str, Any]) -> bool:
    """Whether the process of a record ran on this machine and has ended."""
    here = _machine(os.getpid())
    if not here or record.get("machine") != here:
        return False
    try:
        return bool(_identity(int(record["pid"]))["started"] != record["started"])
    except (KeyError, ValueError, TypeError):
        return False


def _identity(pid: int) -> dict[str, Any]:
    """Identifies a process uniquely, also in containers and after a restart.

    `machine` is "" where the system does not tell; `started` where there is no such process.
    """
    started = ""
    with suppress(OSError), open(f"/proc/{pid}/stat", "rb") as file:
        state, *fields = file.read().decode("utf-8", "replace").rpartition(")")[2].split()
        started = "" if state in "ZX" else fields[18]  # one that has died may not be waited for yet
    return {"pid": pid, "machine": _machine(os.getpid()), "started": started}


@cache  # asked again and again of this process; a fork may be in another place
def _machine(_pid: int) -> str:
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    return ""


@cache
def processor() -> str:
    """The name of the processor, as its system reports it."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def records(folder: Path) -> dict[Path, dict[str, Any]]:
    """The records of a run folder, by file; nothing behind a link is read."""
    by_file = {}
    for name in sorted(names_in(folder / PROCESSES)):
        with suppress(OSError, RunFolderError):
            if name.endswith(RECORD):
                content = read_inside(folder, f"{PROCESSES}/{name}")
                by_file[folder / PROCESSES / name] = _record(content)
    return by_file


def drop(*files: Path) -> None:
    """Delete records and leases; their folder after the last of them."""
    for file in files:
        with suppress(OSError):
            file.unlink()
        with suppress(OSError):
            file.parent.rmdir()


def drop_all(folder: Path) -> None:
    """Delete all records and leases of a run folder: the run is finished, or starts again."""
    names = [] if (folder / PROCESSES).is_symlink() else names_in(folder / PROCESSES)
    ours = (LEASE, RECORD, ".probe")
    for name in names:
        if name.startswith(PLAN):
            shutil.rmtree(folder / PROCESSES / name, ignore_errors=True)
    drop(*(folder / PROCESSES / name for name in names if name.endswith(ours)))
