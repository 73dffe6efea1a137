"""How far is work whose stages may be found done, or end early?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Meter:
    """Counts items of all stages together.

    total     of all stages
    progress  called as progress(done, total)
    """

    def __init__(self, total: int = 0, progress: Callable[[int, int], None] | None = None) -> None:
        self.total, self.progress = total, progress
        self.done = self._end = 0

    def advance(self, count: int) -> None:
        """So many more items are done; never more than the stage has."""
        self.done = min(self.done + count, self._end)
        if self.progress is not None:
            self.progress(self.done, self.total)

    @contextmanager
    def stage(self, size: int) -> Iterator[None]:
        """Inside the context a stage of so many items runs; afterwards all of them count."""
        start = self.done
        self._end = start + size
        yield
        self.done = start
        self.advance(size)
