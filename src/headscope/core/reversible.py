"""A context manager that undoes all its steps when it closes, whatever happens inside."""

from __future__ import annotations

from contextlib import ExitStack
from types import TracebackType
from typing import Self

from headscope.errors import HeadscopeError


class Reversible:
    """A context that is opened in steps; closing it undoes each of them.

    A subclass defines `_open`, which takes the steps, and may define `_forget`, which drops what
    was collected inside.
    """

    _close: ExitStack | None = None

    def _open(self, stack: ExitStack) -> None:
        """Enter contexts of `stack`, and give it callbacks; on an error all are closed at once."""
        raise NotImplementedError

    def _forget(self) -> None:
        """Drop what was collected inside the context."""

    def __enter__(self) -> Self:
        """Open the context; raises HeadscopeError if it is open."""
        if self._close is not None:
            name = type(self).__name__
            raise HeadscopeError(f"this {name} is already open; make a second one to nest")
        with ExitStack() as stack:
            self._open(stack)
            self._close = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the context: whatever happened, everything is as it was."""
        close, self._close = self._close, None
        self._forget()
        if close is not None:
            close.__exit__(kind, error, trace)
