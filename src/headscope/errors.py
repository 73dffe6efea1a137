"""The errors that headscope raises on purpose, and the exit code of each.

Every message gives what was found, what was wanted and what to do, in one to three lines.

    HeadscopeError            exit code 1: the request was right, and failed
    ├── RunStopped            exit code 130: interrupted; finished shards are kept
    └── InputError            exit code 2: the request or the input is at fault
        ├── ModelError        a model that is unknown, unsafe or does not fit its tokenizer
        ├── CorpusError       a corpus that cannot be read as what it was said to be
        └── RunFolderError    a run folder that belongs to another spec, or cannot be written
            └── UnwrittenError    a place that refuses to be written, or has no space left (1)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from traceback import clear_frames

LONGEST = 2000  # characters of a message, whatever it quotes


class HeadscopeError(Exception):
    """Any error that headscope raises on purpose; its text is meant for the user."""

    exit_code = 1

    def __init__(self, message: str = "") -> None:
        super().__init__(shortened(message))


def shortened(message: str) -> str:
    """A message of at most LONGEST characters: what was found stands first, what to do last."""
    half = LONGEST // 2 - 2
    return message if len(message) <= LONGEST else f"{message[:half]} … {message[-half:]}"


class RunStopped(HeadscopeError):
    """The run was interrupted; what is finished stays, and the same command goes on."""

    exit_code = 130  # what shells say of a command that Ctrl-C ended


class InputError(HeadscopeError):
    """The request or the input is at fault."""

    exit_code = 2


class ModelError(InputError):
    """A model that is unknown, unsafe, unsupported, or does not fit its tokenizer."""


class CorpusError(InputError):
    """A corpus that cannot be read as what it was said to be."""


class RunFolderError(InputError):
    """A run folder that belongs to another spec, or cannot be read or written."""


class UnwrittenError(RunFolderError):
    """A file or folder that cannot be written: the place refuses, or has no space left (code 1)."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A suggestion of similar names, as a half sentence; "" without any."""
    from difflib import get_close_matches

    near = get_close_matches(name, list(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def unknown(what: str, name: str, known: Iterable[str]) -> InputError:
    """The error for a name that is none of those known; `what` it should be one of."""
    names = list(known)
    meant = did_you_mean(name, names) or ";"
    return InputError(f"no {what} called {name!r}{meant} there are {', '.join(names)}")


def short_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory ran out, of the host or of an accelerator."""
    full = type(error).__name__ == "OutOfMemoryError" or "allocate memory" in str(error)
    return full or isinstance(error, MemoryError)


@contextmanager
def memory_told(advice: str | Callable[[], str]) -> Iterator[None]:
    """Around work that may run out of memory: the error says so in one line, and what to do.

    advice  what to do, or what gives it, once all that was being computed is let go
    """
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not short_of_memory(error):
            raise
        said = (str(error).strip() or "no memory left").splitlines()[0][:150]
        clear_frames(error.__traceback__)
        remedy = advice if isinstance(advice, str) else advice()
        raise HeadscopeError(f"out of memory ({said}); {remedy}") from error


def one_line(error: Exception) -> str:
    """What an error says, in one line: with its kind in front, if it is none of ours."""
    ours = isinstance(error, HeadscopeError)
    return joined_lines(str(error) if ours else f"{type(error).__name__}: {str(error)[:200]}")


def joined_lines(text: str) -> str:
    """Lines as one; a semicolon stands where one ended without a sign."""
    lines = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
    ends = (line if line[-1] in ".:;,?!" else f"{line};" for line in lines[:-1])
    return " ".join([*ends, *lines[-1:]])


@contextmanager
def told_as(error: Callable[[str], HeadscopeError]) -> Iterator[None]:
    """Around a call of a library that reads a user's file: what it raises is the file's fault.

    Libraries raise whatever their parts do; Rust's panics are not even Exceptions.

    error  gives what to raise, of what was said, in 300 characters at most
    """
    try:
        yield
    except (HeadscopeError, MemoryError):
        raise
    except BaseException as raised:
        if not isinstance(raised, Exception) and type(raised).__name__ != "PanicException":
            raise
        first, *more = (str(raised).strip() or type(raised).__name__).splitlines()
        said = f"{first} {more[0].strip()}" if more and first.endswith(":") else first
        raise error(said[:300]) from raised
