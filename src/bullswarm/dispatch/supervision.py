"""Watch one worker, or many in one thread, to the end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator

from bullswarm.dispatch.types import Ended
from bullswarm.dispatch.watch import Watch

FAST_S, SLOW_S = 0.02, 0.25
MANY_S = 0.1


def supervise(watch: Watch, *, sleep: Callable[[float], None] = time.sleep) -> Ended:
    """Block until the worker has ended. Looks often while it speaks, seldom while it thinks."""
    pause = FAST_S
    while True:
        ended = watch.poll()
        if ended is not None:
            return ended
        if watch.behind:
            continue
        sleep(pause)
        pause = FAST_S if watch.answering else min(SLOW_S, pause * 1.3)


def supervise_many(
    watches: Iterable[Watch], *, sleep: Callable[[float], None] = time.sleep
) -> Iterator[tuple[Watch, Ended]]:
    """Each worker as it ends, all watched by this one thread."""
    live = list(watches)
    while live:
        began = time.monotonic()
        over = []
        for watch in live:
            ended = watch.poll()
            if ended is not None:
                over.append((watch, ended))
        if over:
            done = {id(watch) for watch, _ in over}
            live = [watch for watch in live if id(watch) not in done]
            yield from over
        elif not any(watch.behind for watch in live):
            sleep(max(0.0, MANY_S - (time.monotonic() - began)))
