"""``workflow doctor``: what a crash left behind, cleaned where nothing can be lost."""

from __future__ import annotations

import msgspec

from bullswarm.errors import BullswarmError
from bullswarm.runs.app import App
from bullswarm.workflow.control import carried, goes_down, last_words, leftovers
from bullswarm.workflow.folder import RunFolder
from bullswarm.workflow.state import ENDED
from bullswarm.workflow.workspace import Leftover


class Report(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What was found. ``orphans`` are runs that are not over and that nobody carries; ``kept`` are
    worktrees with work that was not merged."""

    lines: tuple[str, ...]
    orphans: tuple[str, ...]
    kept: tuple[Leftover, ...]
    ended: tuple[str, ...]
    needs_caller: bool


def examine(app: App) -> Report:
    """Look at every run of the home; end what dead processes left."""
    lines: list[str] = []
    orphans: list[str] = []
    kept: list[Leftover] = []
    lost = app.store.reconcile()
    lines += [f"{run}: its process died; marked as lost" for run in lost]
    for record in app.store.runs(None):
        if record.kind != "workflow":
            continue
        folder = RunFolder(app.home.workflows / record.run_id)
        if not folder.meta_file.is_file():
            lines.append(
                f"{record.short_id}: its folder is gone: bullswarm workflow delete "
                f"{record.short_id}"
            )
            orphans.append(record.run_id)
            continue
        try:
            held = carried(folder)
            state = folder.read_state()
            over = state is not None and state.phase in ENDED
            # A kernel whose run is over goes down by itself; what it kept can be told then.
            if held and not (over and goes_down(folder)):
                continue
            left = leftovers(folder) if over else ()
        except BullswarmError as error:
            orphans.append(record.run_id)
            lines.append(f"{record.short_id}: {error}")
            continue
        if state is None or state.phase not in ENDED:
            orphans.append(record.run_id)
            lines.append(
                f"{record.short_id}: nobody carries it ({last_words(folder)}): "
                f"bullswarm workflow resume {record.short_id}"
            )
        for one in left:
            kept.append(one)
            lines.append(f"{record.short_id}: kept {one.path} ({one.branch}): {one.why}")
    return Report(
        lines=tuple(lines),
        orphans=tuple(orphans),
        kept=tuple(kept),
        ended=lost,
        needs_caller=bool(orphans or kept),
    )
