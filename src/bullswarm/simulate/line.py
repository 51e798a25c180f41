"""The work that waits: who is served next, and since when each has been asking."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection


class Line:
    """Waiting tasks by their index, which is their order of arrival.

    Tasks that want the same stand in one file: where its head has to wait, so have those behind.
    Only so many ask at a time, as a caller's concurrency has it, and a hold's patience counts from
    then; work that its caller keeps back has not been held by anyone.
    """

    def __init__(self) -> None:
        self._files: dict[str, list[int]] = {}
        self._since: dict[int, float] = {}
        self._again: dict[str, float] = {}

    def __len__(self) -> int:
        return sum(map(len, self._files.values()))

    def put(self, index: int, file: str) -> None:
        """Stand in line, before everything that arrived later."""
        insort(self._files.setdefault(file, []), index)

    def take(self, index: int, file: str) -> None:
        """It found its pool."""
        waiting = self._files[file]
        del waiting[bisect_left(waiting, index)]
        if not waiting:
            del self._files[file]
            self._again.pop(file, None)
        self._since.pop(index, None)

    def oldest(self, blocked: Collection[str], deep: int, most: int) -> list[tuple[int, str]]:
        """The oldest ``most`` tasks among the first ``deep`` of each file, with their files."""
        found = [
            (index, file)
            for file, waiting in self._files.items()
            if file not in blocked
            for index in waiting[:deep]
        ]
        found.sort()
        return found[:most]

    def ask(self, now: float, most: int) -> None:
        """The oldest ``most`` of all are asking from now on, if they weren't."""
        if most > 0:
            for index, _ in self.oldest((), most, most):
                self._since.setdefault(index, now)

    def since(self, index: int, file: str, now: float) -> float:
        """Since when it has been asking; now if it is only about to."""
        return max(self._since.get(index, now), self._again.get(file, 0.0))

    def handed_back(self, file: str, again: float) -> None:
        """Its caller hands it in anew at ``again``, and is patient from then."""
        self._again[file] = again
