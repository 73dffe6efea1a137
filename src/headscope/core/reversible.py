"""How does a context that hooks into a network take everything back, whatever happens inside?"""

from __future__ import annotations

from contextlib import ExitStack
from types import TracebackType
from typing import Self

from headscope.errors import HeadscopeError


class Reversible:
    """A context that is opened in steps, each with what undoes it.

    A subclass has `_open`, which takes the steps, and perhaps `_forget`, for what it collected.
    """

    _close: ExitStack | None = None

    def _open(self, stack: ExitStack) -> None:
        """Enter contexts of `stack`, and give it callbacks; on an error all are closed at once."""
        raise NotImplementedError

    def _forget(self) -> None:
        """Let go of what was collected inside the context."""

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
