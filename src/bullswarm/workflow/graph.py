"""The order of steps: what waits for what, cycles, and who owns which path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from posixpath import normpath

from bullswarm.workflow.defaults import paths_of
from bullswarm.workflow.program import Step

Deps = Mapping[str, Sequence[str]]


def named_deps(step: Step, ids: Mapping[str, Step] | set[str]) -> tuple[str, ...]:
    """The steps that a step names: to depend on, to be independent of, and to judge."""
    named = (*step.depends_on, *step.route.independent_of, *step.evidence_for)
    return tuple(dict.fromkeys(n for n in named if n in ids))


def dependencies(steps: Sequence[Step]) -> dict[str, tuple[str, ...]]:
    """What every step waits for.

    Beside what it names, a review of a requirement waits for the steps that affect it, but for
    those that wait for the review themselves.
    """
    ids = {s.id: s for s in steps}
    deps = {s.id: named_deps(s, ids) for s in steps}
    for review in steps:
        wanted = set(review.evidence_for) - ids.keys()
        if not wanted:
            continue
        after = dependents(deps, review.id)
        extra = [
            s.id
            for s in steps
            if s.id != review.id
            and not s.evidence_for
            and wanted & set(s.requirements)
            and s.id not in after
        ]
        deps[review.id] = tuple(dict.fromkeys((*deps[review.id], *extra)))
    return deps


def dependents(deps: Deps, step: str) -> tuple[str, ...]:
    """Every step that waits for ``step``, directly or not, nearest first."""
    direct: dict[str, list[str]] = {}
    for name, needs in deps.items():
        for need in needs:
            direct.setdefault(need, []).append(name)
    return _reach(direct, step)


def ancestors(deps: Deps, step: str) -> tuple[str, ...]:
    """Every step that ``step`` waits for, directly or not, nearest first."""
    return _reach(deps, step)


def _reach(edges: Mapping[str, Sequence[str]], start: str) -> tuple[str, ...]:
    found: dict[str, None] = {}
    todo = list(edges.get(start, ()))
    for name in todo:
        if name not in found and name != start:
            found[name] = None
            todo.extend(edges.get(name, ()))
    return tuple(found)


def cycles(deps: Deps) -> tuple[tuple[str, ...], ...]:
    """One cycle for each knot, as ``(a, b, a)``; a step that names itself is ``(a, a)``."""
    done: set[str] = set()
    found: list[tuple[str, ...]] = []
    for root in deps:
        if root in done:
            continue
        path: list[str] = []
        on_path: dict[str, int] = {}
        stack: list[tuple[str, int]] = [(root, 0)]
        while stack:
            name, at = stack.pop()
            if at == 0:
                on_path[name] = len(path)
                path.append(name)
            needs = deps.get(name, ())
            if at < len(needs):
                stack.append((name, at + 1))
                need = needs[at]
                if need in on_path:
                    found.append((*path[on_path[need] :], need))
                elif need not in done:
                    stack.append((need, 0))
            else:
                done.add(name)
                path.pop()
                del on_path[name]
    return _distinct(found)


def _distinct(found: list[tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
    seen: set[frozenset[str]] = set()
    kept = []
    for cycle in found:
        key = frozenset(cycle)
        if not any(key & other for other in seen):
            seen.add(key)
            kept.append(cycle)
    return tuple(kept)


def heights(deps: Deps) -> dict[str, int]:
    """The longest chain that still waits for each step: who has the highest starts first."""
    above: dict[str, int] = dict.fromkeys(deps, 0)
    for name in reversed(order(deps)):
        for need in deps[name]:
            above[need] = max(above[need], above[name] + 1)
    return above


def order(deps: Deps) -> tuple[str, ...]:
    """The steps with every one after what it waits for; the given order where that is free. Ends
    even where the graph has a cycle."""
    done: dict[str, None] = {}
    open_: set[str] = set()
    for root in deps:
        stack = [(root, 0)]
        while stack:
            name, at = stack.pop()
            needs = deps[name]
            if name in done or (at == 0 and name in open_):
                continue
            open_.add(name)
            if at < len(needs):
                stack.append((name, at + 1))
                if needs[at] not in done:
                    stack.append((needs[at], 0))
            else:
                done[name] = None
    return tuple(done)


def overlap(one: Sequence[str], other: Sequence[str]) -> str | None:
    """A path that both own: the same one, or one inside the other's folder."""
    for a in map(normpath, one):
        for b in map(normpath, other):
            if a == b or b.startswith(a + "/"):
                return b
            if a.startswith(b + "/"):
                return a
    return None


def shared_paths(steps: Sequence[Step], deps: Deps) -> tuple[tuple[str, str, str], ...]:
    """Pairs of steps that own the same path though neither waits for the other: (step, step,
    path)."""
    owners = [(s, paths_of(s)) for s in steps if paths_of(s)]
    found = []
    before = {s.id: set(ancestors(deps, s.id)) for s, _ in owners}
    for i, (one, mine) in enumerate(owners):
        for other, theirs in owners[i + 1 :]:
            path = overlap(mine, theirs)
            if path is None or other.id in before[one.id] or one.id in before[other.id]:
                continue
            found.append((one.id, other.id, path))
    return tuple(found)


def judged(step: Step, steps: Mapping[str, Step]) -> tuple[str, ...]:
    """What a review judges: requirement ids. A step that it names stands for the requirements that
    the step affects, or for itself where it affects none."""
    found: dict[str, None] = {}
    for name in step.evidence_for:
        if name in steps:
            for item in steps[name].requirements or (name,):
                found[item] = None
        else:
            found[name] = None
    return tuple(found)
