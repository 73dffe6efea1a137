"""Write a file, or a folder, so that readers and crashes see all of it or nothing; hash a file.

One command writes to a place at a time: it holds the place.
"""

from __future__ import annotations

import errno
import hashlib
import os
import platform
import secrets
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import UTC, datetime
from pathlib import Path

from headscope.errors import HeadscopeError, RunFolderError, UnwrittenError

DRAFT = ".part-"
LOOK = 0.05  # seconds between two looks at a lock
WAIT = "wait until it has finished, or choose another folder with -o"
# Of files that are noted as they are written: the folder they are to lie in, and their digests.
_NOTED: ContextVar[tuple[Path, dict[str, str]] | None] = ContextVar("noted", default=None)


def write_whole(path: Path, write: Callable[[str], object] | bytes, *, anew: bool = False) -> Path:
    """Write a file atomically: `write` fills a draft beside `path`, which is synced and renamed.

    write    gets the draft's path, which has no suffix: nobody takes it for a finished file; or a
             function that writes the content     write no file that is there already, not even if
             it came to be meanwhile
    returns  `path`
    raises   FileExistsError for such a file; UnwrittenError, and what else `write` raises; then no
             draft is left and `path` is as before
    """
    draft = str(path.parent / f"{DRAFT}{secrets.token_hex(8)}")
    name = _name_noted(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Whoever may read the folder's new files may read this one: mkstemp's would be 0600.
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        if isinstance(write, bytes):
            Path(draft).write_bytes(write)
        else:
            write(draft)
        _sync(Path(draft))
        digest = file_sha256(Path(draft)) if name else ""
        _put(draft, path, anew=anew)
        sync_folder(path.parent)
    except BaseException as error:
        with suppress(OSError):
            os.unlink(draft)
        if isinstance(error, OSError) and not (anew and isinstance(error, FileExistsError)):
            raise why_unwritten(error, path) from error
        raise
    if name and (noted := _NOTED.get()) is not None:
        noted[1][name] = digest
    return path


def _name_noted(path: Path) -> str:
    """The name of a file below the folder that is noted; "" where none is, or it lies beside it.

    raises  RunFolderError for one behind a link in the folder: it would be written outside
    """
    noted = _NOTED.get()
    if noted is None or noted[0] not in path.parents:
        return ""
    inner = path.parent.relative_to(noted[0])
    if Path(os.path.realpath(path.parent)) != Path(os.path.realpath(noted[0]), inner):
        raise RunFolderError(
            f"{path.parent} is a link, or lies behind one; nothing outside a run folder is written"
        )
    return (inner / path.name).as_posix()


def _put(draft: str | Path, path: Path, *, anew: bool = False) -> None:
    """Give a draft its name; a file that has it already is replaced, if it may be.

    A server may do so and its answer be lost. Asked again, it finds no draft, or the name there;
    but what has the name is the draft.
    """
    this = os.stat(draft)
    try:
        (os.link if anew else os.replace)(draft, path)
    except (FileExistsError, FileNotFoundError):
        try:
            done = os.path.samestat(this, path.stat())
        except OSError:
            done = False
        if not done:
            raise
    if anew:
        with suppress(FileNotFoundError):
            os.unlink(draft)


def why_unwritten(error: OSError, path: Path) -> UnwrittenError:
    """The error to raise when the system refuses to write to a path."""
    if error.errno not in (errno.ENOSPC, errno.EDQUOT):
        reason = error.strerror or str(error)
        return UnwrittenError(f"cannot write {path}: {reason}; choose another place with -o")
    unwritten = UnwrittenError(
        f"no space left to write {path}\n"
        "free some, then run the same command again: finished parts of a run folder are kept"
    )
    unwritten.exit_code = HeadscopeError.exit_code  # the request was right
    return unwritten


@contextmanager
def held(
    place: Path, *, instead: str = WAIT, shared: bool = False, patience: float = 0
) -> Iterator[None]:
    """Inside the context no other process holds the place: a folder, a checkpoint or a file.

    place     need not exist
    instead   what the second may do
    shared    others may hold it too that share it
    patience  seconds to wait for others
    raises    RunFolderError that says who holds it; UnwrittenError where nothing can be written

    While it is held, `.NAME.lock` stands beside it (in it where the folder around cannot be
    written) and says by whom. The system lets go when the process ends, however it ends: a file
    that a killed process left holds nothing.
    """
    if sys.platform == "win32":  # no such locks there: two in one folder would waste work, no more
        yield
        return
    lock = _lock_file(place)
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        # One that shares it holds it alone for a moment, when it ends.
        handle = _locked(lock, shared, max(patience, 1.0 if shared else 0.0))
    except OSError as error:
        raise why_unwritten(error, place) from error
    if isinstance(handle, str):
        raise RunFolderError(f"another headscope{handle} is writing to {place}\n{instead}")
    try:
        yield
    finally:
        with suppress(OSError):
            if shared:  # its file stays while others hold it
                _lock(handle, shared=False)
            lock.unlink()
        with suppress(OSError):
            os.close(handle)


def holder_of(place: Path) -> str:
    """A description of the process that holds a place; "" without one."""
    if sys.platform == "win32":
        return ""
    try:
        handle = os.open(_lock_file(place), os.O_RDWR | os.O_NOFOLLOW)
    except OSError:
        return ""
    try:
        _lock(handle, shared=True)
    except BlockingIOError:
        return os.read(handle, 200).decode("utf-8", "replace")
    except OSError:
        pass  # a file system without locks
    finally:
        os.close(handle)
    return ""


def _lock_file(place: Path) -> Path:
    real = Path(os.path.realpath(place))  # the same by whatever name
    beside = os.access(real.parent, os.W_OK | os.X_OK) or not real.is_dir()
    return real.parent / f".{real.name}.lock" if beside else real / ".lock"


def _lock(handle: int, *, shared: bool) -> None:
    """Lock a file; BlockingIOError if another process has locked it."""
    import fcntl

    fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)


def _locked(lock: Path, shared: bool, patience: float) -> int | str:
    """A handle of the locked file, held while it is open; else a description of the holder."""
    tries = 1 + int(patience / LOOK)
    while True:
        handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        try:
            _lock(handle, shared=shared)
        except BlockingIOError:
            tries -= 1
            if tries:
                os.close(handle)
                time.sleep(LOOK)
                continue
            who = os.read(handle, 200).decode("utf-8", "replace")
            os.close(handle)
            return who
        except OSError:
            pass  # a file system without locks
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(handle), lock.stat()):
                break
        os.close(handle)  # who held it removed it meanwhile
    with suppress(OSError):  # on a full disk nobody learns by whom
        os.truncate(handle, 0)
        since = datetime.now(UTC).isoformat(" ", "seconds")
        os.write(handle, f" (process {os.getpid()} on {platform.node()}, since {since})".encode())
    return handle


def clear_drafts(folder: Path) -> None:
    """Delete unfinished files of killed processes, here and one folder below.

    The caller holds the folder.

    raises  UnwrittenError
    """
    try:
        for draft in [*folder.glob(DRAFT + "*"), *folder.glob(f"*/{DRAFT}*")]:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise why_unwritten(error, folder) from error


def user_cache(*names: str) -> Path:
    """A place in the user's cache folder, `$XDG_CACHE_HOME/headscope`, else below `~/.cache`."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base, "headscope", *names)


def names_in(folder: Path) -> list[str]:
    """The names in a folder; empty if it does not exist, or is deleted meanwhile."""
    try:
        return os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []


@contextmanager
def noting_written(folder: Path) -> Iterator[dict[str, str]]:
    """Inside the context the files that `write_whole` writes below a folder are noted.

    returns  the sha256 of each, by its name below the folder
    """
    noted = dict[str, str]()
    token = _NOTED.set((folder, noted))
    try:
        yield noted
    finally:
        _NOTED.reset(token)


def file_sha256(path: Path) -> str:
    """Hex sha256 of a file's content, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def content_sha256(path: Path) -> str:
    """Hex sha256 of a file, or of the files of a folder with their names."""
    files = sorted(one for one in path.iterdir() if one.is_file()) if path.is_dir() else [path]
    return sha256_of(part for one in files for part in (one.name, file_sha256(one)))


def sha256_of(parts: Iterable[str | bytes]) -> str:
    """Hex sha256 of texts and bytes, one after the other."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part)
    return digest.hexdigest()


def _sync(file: Path) -> None:
    with file.open("rb") as opened:
        os.fsync(opened.fileno())


def sync_folder(folder: Path) -> None:
    """Flush the folder to disk after a rename, so that the new name survives a power loss."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    except OSError:
        pass  # a file system that does not sync folders
    finally:
        os.close(handle)


def put_folder(folder: Path, write: Callable[[Path], object], *, marks: tuple[str, ...]) -> None:
    """Replace a folder atomically: `write` fills a new one beside it, which is synced and renamed.

    The caller holds the folder.

    marks   as for `replaceable`: what came there meanwhile is not replaced
    raises  HeadscopeError if it cannot be written; then the old one is as it was, without a draft
    """
    draft, aside = folder.with_name(f".{folder.name}.part"), _set_aside(folder)
    with told(folder):
        shutil.rmtree(draft, ignore_errors=True)
        try:
            draft.mkdir(parents=True)
            write(draft)
            readable = draft.stat().st_mode & 0o666  # by the umask; safetensors' files are 0600
            for file in filter(Path.is_file, draft.rglob("*")):
                file.chmod(readable)
                _sync(file)
            replaceable(folder, marks=marks)
            shutil.rmtree(aside, ignore_errors=True)
            if folder.exists():
                _put(folder, aside)
            _put(draft, folder)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            _restore(folder)
            raise
        sync_folder(folder.parent)
        shutil.rmtree(aside, ignore_errors=True)


def replaceable(folder: Path, *, marks: tuple[str, ...]) -> None:
    """Raises RunFolderError if the folder holds anything but a checkpoint written by headscope.

    marks  files of which one must be in a folder that may be replaced
    """
    _restore(folder)
    if not folder.exists():
        return
    if not folder.is_dir():
        raise RunFolderError(f"{folder} is a file; wanted a new folder, or an old checkpoint's")
    if any(folder.iterdir()) and not any((folder / mark).is_file() for mark in marks):
        raise RunFolderError(
            f"{folder} is not empty and has no {' or '.join(marks)}; it is not replaced: "
            "choose another folder with -o"
        )


def _set_aside(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.old")


def _restore(folder: Path) -> None:
    """Undo the first rename of `put_folder` if the second one fails."""
    if _set_aside(folder).is_dir() and not folder.exists():
        os.replace(_set_aside(folder), folder)


@contextmanager
def told(folder: Path) -> Iterator[None]:
    """Inside the context a failing write (disk full, no permission) raises HeadscopeError, which
    says what is safe.

    Each library has its own name for it: Python OSError, safetensors SafetensorError, torch
    RuntimeError of its PytorchStreamWriter, tokenizers Exception with "(os error".
    """
    from safetensors import SafetensorError

    try:
        yield
    except Exception as error:
        why = error.__cause__ if isinstance(error, UnwrittenError) else error
        signs = ("PytorchStreamWriter", "inline_container", "No space", "(os error ")
        of_writing = isinstance(why, OSError | SafetensorError) or (
            type(why) in (RuntimeError, Exception) and any(sign in str(why) for sign in signs)
        )
        if not of_writing:
            raise
        reason = getattr(why, "strerror", None) or str(why).strip().splitlines()[0]
        raise HeadscopeError(
            f"cannot write {folder}: {reason[:200]}\n"
            "the old files are unchanged; free some space and run the same command again: it "
            "continues from its last state"
        ) from error
