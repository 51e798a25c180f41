"""The reducer's rules of starting, retrying, holding and ending, one test a rule."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from workflow_rig import (
    NOW,
    Run,
    command_check,
    dollars,
    finish,
    notices,
    only,
    quota,
    reply,
    review,
    starts,
    step,
)

from bullswarm.dispatch.types import Notice
from bullswarm.workflow import events as ev
from bullswarm.workflow.commands import (
    DropWorkspace,
    Merge,
    RunEvidence,
    SetTimer,
    StartAttempt,
    StopWorker,
)
from bullswarm.workflow.kernel import advance
from bullswarm.workflow.result import result, summary
from bullswarm.workflow.state import find_step

FILE = {"type": "files", "paths": ["x"]}


def test_independent_steps_run_at_once_up_to_the_concurrency() -> None:
    run = Run(*(step(f"s{i}") for i in range(5)), options={"concurrency": 2})
    assert starts(run.commands) == ["s0", "s1"]
    assert starts(run.ended("s1")) == ["s2"]


def test_a_step_waits_for_what_it_depends_on_and_for_nothing_else() -> None:
    run = Run(step("a"), step("b"), step("c", "a"), step("d", "b"))
    assert starts(run.commands) == ["a", "b"]
    assert starts(run.ended("a")) == ["c"]


def test_the_longest_chain_starts_first() -> None:
    run = Run(step("lone"), step("a"), step("b", "a"), step("c", "b"), options={"concurrency": 1})
    assert starts(run.commands) == ["a"]


def test_owners_of_one_path_never_run_at_once() -> None:
    run = Run(
        step("a", deliverable=FILE, requirements=["R1"]),
        review("r", "R1"),
        step("b", "a", deliverable={"type": "files", "paths": ["x/y"]}),
        goal="1. one",
    )
    assert sorted(starts(run.ended("a"))) == ["b", "r"]
    # The fix would write what b is writing.
    assert starts(run.says("r", R1=False)) == [] and run.status("r-fix-1") == "pending"
    assert starts(run.ended("b")) == ["r-fix-1"]


@pytest.mark.parametrize("kind", ["process", "provider", "stalled"])
def test_a_failed_process_is_tried_once_more_on_another_pool(kind: str) -> None:
    run = Run(step("a"))
    again = only(run.fails("a", kind), StartAttempt)
    assert (again.n, again.exclude, again.pool) == (2, ("claude",), None)
    assert again.before.kind == "hand-over" and kind in again.reason
    assert run.status("a") == "running"
    told = notices(run.fails("a", kind, pool="codex"))
    assert run.status("a") == "needs-caller" and len(told) == 1


def test_a_failed_gate_is_tried_once_more_on_the_same_pool_told_why() -> None:
    run = Run(step("a", evidence=[command_check()]))
    check = only(run.ended("a"), RunEvidence)
    assert run.status("a") == "checking" and check.attempt_id == "r1.a.1"
    again = only(run.checked("a", False, tail="2 failed"), StartAttempt)
    assert (again.pool, again.before.kind, again.before.tail) == ("claude", "failure", "2 failed")
    assert "the check exited 1" in again.before.why
    run.ended("a")
    assert run.checked("a", True) and run.state.phase == "completed"


def test_a_step_has_one_automatic_retry_whatever_the_failures_are() -> None:
    run = Run(step("a", evidence=[command_check()]))
    run.fails("a", "process")
    run.ended("a", pool="codex")
    told = notices(run.checked("a", False, tail="still red"))
    assert run.status("a") == "needs-caller" and told[0].tail == "still red"


def test_a_limit_spends_no_retry() -> None:
    run = Run(step("a"))
    for pool in ("p1", "p2", "p3"):
        assert starts(run.fails("a", "quota", pool=pool, notice=quota())) == ["a"]
    assert run.last[0].exclude == ("p1", "p2", "p3")  # type: ignore[union-attr]
    assert starts(run.fails("a", "process", pool="p4")) == ["a"]
    run.fails("a", "process", pool="p5")
    assert run.status("a") == "needs-caller"


def test_a_pool_whose_limit_has_reset_is_no_longer_left_out() -> None:
    run = Run(step("a"))
    run.fails("a", "quota", notice=quota(NOW + timedelta(hours=1)))
    run.make(ev.Held, step="a", attempt_id="r1.a.2", why="full", until=NOW + timedelta(hours=2))
    run.wait(7200)
    again = only(run.make(ev.TimerFired, timer="a:2"), StartAttempt)
    assert again.exclude == () and again.attempt_id == "r1.a.2"
    assert again.held_since == NOW


def test_return_mode_hands_a_limit_to_the_caller_at_once() -> None:
    run = Run(step("a"), mode="return")
    told = notices(run.fails("a", "quota", notice=quota()))
    assert told[0].failure_kind == "quota" and run.state.phase == "partial"


def test_the_programs_on_limit_beats_the_homes_mode() -> None:
    run = Run(step("a"), mode="return", options={"onLimit": "reroute"})
    assert starts(run.fails("a", "quota", notice=quota())) == ["a"]


def test_a_revised_on_limit_counts_for_what_starts_next() -> None:
    run = Run(step("a"), step("b", "a"))
    assert only(run.commands, StartAttempt).limits_mode == "quarantine"
    run.make(ev.PlanRevised, base_revision=1, options={"onLimit": "return"})
    assert only(run.ended("a"), StartAttempt).limits_mode == "return"
    run.fails("b", "quota", notice=quota())
    assert run.status("b") == "needs-caller"


def test_wait_mode_waits_for_the_reset_and_goes_on_with_the_session() -> None:
    run = Run(step("a"), mode="wait")
    run.fails("a", "quota", notice=quota(), session="s9")
    back = NOW + timedelta(hours=3)
    commands = run.fails("a", "unavailable", started=False, retry_at=back)
    timer = only(commands, SetTimer)
    assert timer.at > back and run.status("a") == "pending" and finish(commands) is None
    run.now = timer.at
    again = only(run.make(ev.TimerFired, timer=timer.timer), StartAttempt)
    assert again.resume.pool == "claude" and again.resume.session == "s9"
    assert again.exclude == ()


def test_a_throttle_backs_off_on_the_same_pool_without_holding_a_slot() -> None:
    run = Run(step("a"), step("b"), options={"concurrency": 1})
    notice = Notice(kind="throttle", text="slow down", source="text")
    commands = run.fails("a", "throttle", notice=notice)
    timer = only(commands, SetTimer)
    assert timer.at == NOW + timedelta(seconds=20)
    assert starts(commands) == ["b"]
    run.wait(20)
    run.make(ev.TimerFired, timer=timer.timer)
    again = only(run.ended("b"), StartAttempt)
    assert (again.step, again.pool, again.n) == ("a", "claude", 2)


def test_a_refused_login_keeps_off_its_whole_credential_group() -> None:
    run = Run(step("a"))
    again = only(run.fails("a", "auth", group="g"), StartAttempt)
    assert again.exclude_groups == ("g",)


@pytest.mark.parametrize("kind", ["process", "quota", "throttle", "auth", "not-produced", "lost"])
def test_an_act_step_whose_worker_started_is_never_repeated(kind: str) -> None:
    run = Run(step("a", role="act"))
    run.started("a")
    kind = "process" if kind == "lost" else kind
    notice = Notice(kind="quota", text="x", source="text") if kind == "quota" else None
    commands = run.fails("a", kind, notice=notice, retry_at=NOW)
    assert starts(commands) == [] and run.status("a") == "needs-caller"
    assert any("may have acted" in c.label for c in notices(commands)[0].choices)
    again = only(run.make(ev.StepRerun, step="a", reason="it did not act"), StartAttempt)
    assert again.n == 2 and not again.repeatable


def test_an_act_step_that_started_is_not_put_off_to_a_reset_either() -> None:
    run = Run(step("a", role="act"), mode="wait")
    run.started("a")
    run.fails("a", "unavailable", retry_at=NOW + timedelta(hours=1))
    assert run.status("a") == "needs-caller"


def test_an_act_step_whose_checks_fail_is_not_repeated_either() -> None:
    run = Run(step("a", role="act", evidence=[command_check()]))
    run.started("a")
    run.ended("a")
    assert starts(run.checked("a", False)) == []
    assert run.status("a") == "needs-caller"


def test_an_act_step_whose_worker_never_started_may_be_tried_again() -> None:
    run = Run(step("a", role="act"))
    assert starts(run.fails("a", "process", started=False)) == ["a"]


def test_only_dependents_of_a_failed_step_wait() -> None:
    run = Run(step("a"), step("b", "a"), step("c", "b"), step("d"), options={"concurrency": 1})
    run.fails("a", "cancelled")
    assert [run.status(n) for n in "abcd"] == ["needs-caller", "blocked", "blocked", "running"]
    end = finish(run.ended("d"))
    assert end is not None and end.state == "partial" and "a" in end.why
    counts = result(run.state)["counts"]
    assert (counts["total"], counts["done"], counts["needsCaller"], counts["blocked"]) == (
        4, 1, 1, 2,
    )  # fmt: skip


def test_a_step_that_needs_the_caller_says_why_what_waits_and_what_can_be_done() -> None:
    run = Run(step("a", evidence=[command_check()]), step("b", "a"))
    run.ended("a")
    run.checked("a", False, tail="boom")
    run.ended("a")
    told = notices(run.checked("a", False, tail="boom again"))[0]
    assert told.tail == "boom again" and told.waiting == ("b",)
    assert told.choices[0].command == "bullswarm workflow step rerun r1 a --reason WHY"
    assert any(c.command.startswith("bullswarm workflow step accept r1 a") for c in told.choices)
    assert any("plan revise r1" in c.command and "1" in c.command for c in told.choices)
    lines = "\n".join(summary(run.state))
    assert "boom again" in lines and told.choices[0].command in lines


def test_a_partial_run_opens_again_on_a_rerun() -> None:
    run = Run(step("a"), step("b", "a"))
    run.fails("a", "cancelled")
    assert run.state.phase == "partial"
    commands = run.make(ev.StepRerun, step="a", reason="fixed the cause")
    again = only(commands, StartAttempt)
    assert again.reason == "rerun: fixed the cause" and run.status("b") == "pending"
    assert starts(run.ended("a")) == ["b"]
    end = finish(run.ended("b"))
    assert end is not None and end.state == "completed" and run.state.ended_at == NOW


def test_the_callers_rerun_brings_a_fresh_retry() -> None:
    run = Run(step("a"))
    run.fails("a", "process")
    run.fails("a", "process", pool="codex")
    run.make(ev.StepRerun, step="a", reason="x")
    assert starts(run.fails("a", "process")) == ["a"]


def test_an_event_that_comes_twice_changes_nothing() -> None:
    run = Run(step("a"), step("b", "a"))
    run.ended("a")
    again, commands = advance(run.state, run.events[-1])
    assert again is run.state and commands == ()


def test_an_end_of_an_older_attempt_is_old_news() -> None:
    run = Run(step("a"))
    run.fails("a", "process")
    run.make(ev.AttemptEnded, step="a", attempt_id="r1.a.1", outcome=ev.Outcome(ok=True))
    assert run.status("a") == "running" and run.last == ()


def test_a_held_step_frees_its_slot_and_is_asked_for_again_by_the_same_name() -> None:
    run = Run(step("a"), step("b"), options={"concurrency": 1})
    commands = run.make(ev.Held, step="a", attempt_id="r1.a.1", why="all full")
    assert starts(commands) == ["b"] and only(commands, SetTimer).at > NOW
    assert not starts(run.ended("b"))
    again = only(run.make(ev.Released), StartAttempt)
    assert again.attempt_id == "r1.a.1" and len(run.of("a").attempts) == 1


def test_a_released_hold_is_asked_for_at_once() -> None:
    run = Run(step("a"))
    run.make(ev.Held, step="a", attempt_id="r1.a.1", why="full", until=NOW + timedelta(days=1))
    assert starts(run.make(ev.Released, step="a")) == ["a"]


def test_its_own_worktree_is_merged_after_the_checks_and_a_conflict_is_a_failed_gate() -> None:
    run = Run(step("a", workspace="own", evidence=[command_check()]))
    assert not any(isinstance(c, Merge) for c in run.ended("a"))
    only(run.checked("a", True), Merge)
    commands = run.make(ev.Merged, step="a", attempt_id="r1.a.1", ok=False, why="x", tail="<<<<")
    again = only(commands, StartAttempt)
    assert (again.pool, again.before.kind, again.before.tail) == ("claude", "failure", "<<<<")
    run.ended("a")
    run.checked("a", True)
    commands = run.make(ev.Merged, step="a", attempt_id="r1.a.2", ok=True)
    only(commands, DropWorkspace)
    assert run.state.phase == "completed"


def test_a_worktree_that_was_not_merged_is_never_dropped() -> None:
    run = Run(step("a", workspace="own"))
    run.fails("a", "process")
    run.fails("a", "process", pool="codex")
    assert not any(isinstance(c, DropWorkspace) for c in run.commands)
    commands = run.make(ev.StepAccepted, target="a", reason="good enough")
    only(commands, Merge)
    run.make(ev.Merged, step="a", attempt_id="r1.a.2", ok=True)
    assert run.status("a") == "accepted" and run.state.phase == "completed"


def test_checks_that_were_not_all_run_do_not_pass() -> None:
    run = Run(step("a", evidence=[command_check(), command_check("x")]))
    run.ended("a")
    run.checked("a", True)
    assert run.of("a").attempts[0].failure_kind == "evidence"


def test_the_loop_guard_of_the_run_is_named() -> None:
    run = Run(step("a"), step("b", "a"), step("c", "b"), options={"maxAttempts": 2})
    run.ended("a")
    end = finish(run.ended("b"))
    assert end is not None and (end.state, end.limit) == ("partial", "maxAttempts")
    assert "maxAttempts (2)" in end.why and result(run.state)["limit"] == "maxAttempts"
    assert result(run.state)["counts"]["pending"] == 1


def test_good_steps_up_to_the_guard_complete_the_run() -> None:
    run = Run(step("a"), step("b", "a"), step("c", "b"), options={"maxAttempts": 3})
    run.ended("a")
    run.ended("b")
    end = finish(run.ended("c"))
    assert end is not None and (end.state, end.limit) == ("completed", None)


def test_the_cost_cap_is_another_limit_with_its_own_name() -> None:
    run = Run(step("a"), step("b", "a"), options={"costCapUsd": 1.5, "maxAttempts": 9})
    end = finish(run.ended("a", usage=dollars(1.6)))
    assert end is not None and end.limit == "costCapUsd" and "costCapUsd (1.5)" in end.why
    refused = reply(run.make(ev.StepRerun, step="a", reason="x"))
    assert not refused.ok and "costCapUsd" in refused.why
    commands = run.make(ev.PlanRevised, base_revision=1, options={"costCapUsd": 5})
    assert reply(commands).ok and starts(commands) == ["b"]
    assert run.state.stopped_by is None


def test_the_guard_of_one_step_stops_that_step_alone() -> None:
    run = Run(step("a"), step("b"), options={"maxStepAttempts": 2})
    run.fails("a", "quota", notice=quota())
    run.fails("a", "quota", pool="p2", notice=quota())
    assert run.status("a") == "needs-caller" and "maxStepAttempts (2)" in run.of("a").why
    assert run.status("b") == "running"


def test_pause_starts_nothing_and_lets_workers_end() -> None:
    run = Run(step("a"), step("b", "a"))
    run.make(ev.Paused)
    commands = run.ended("a")
    assert starts(commands) == [] and finish(commands) is None and run.state.phase == "paused"
    assert starts(run.make(ev.Resumed)) == ["b"]


def test_pause_now_ends_workers_that_run_again_without_a_retry_spent() -> None:
    run = Run(step("a"), step("mail", role="act"))
    run.started("a")
    run.started("mail")
    stops = [c for c in run.make(ev.Paused, now=True) if isinstance(c, StopWorker)]
    assert [c.step for c in stops] == ["a"]
    assert starts(run.fails("a", "cancelled", session="s1")) == []
    again = only(run.make(ev.Resumed), StartAttempt)
    assert again.n == 2 and again.resume.session == "s1" and "pause" in again.reason
    assert starts(run.fails("a", "process")) == ["a"]


def test_a_run_that_is_done_while_paused_is_done() -> None:
    run = Run(step("a"))
    run.make(ev.Paused)
    end = finish(run.ended("a"))
    assert end is not None and end.state == "completed"


def test_cancel_ends_the_workers_first_and_then_the_run() -> None:
    run = Run(step("a"), step("b"), step("c", "a"))
    commands = run.make(ev.CancelRequested)
    assert [c.step for c in commands if isinstance(c, StopWorker)] == ["a", "b"]
    assert finish(commands) is None
    assert finish(run.ended("a")) is None and run.status("a") == "done"
    end = finish(run.fails("b", "cancelled"))
    assert end is not None and end.state == "cancelled"
    assert [run.status(n) for n in "abc"] == ["done", "cancelled", "cancelled"]
    assert not reply(run.make(ev.StepRerun, step="b", reason="x")).ok


def test_a_second_cancel_kills_at_once() -> None:
    run = Run(step("a"))
    run.make(ev.CancelRequested)
    assert only(run.make(ev.CancelRequested, level=2), StopWorker).level == 2


def test_a_new_process_asks_again_for_all_that_is_outstanding() -> None:
    run = Run(
        step("seen"),
        step("asked"),
        step("live"),
        step("check", evidence=[command_check()]),
        step("own", workspace="own"),
        step("slow"),
        options={"concurrency": 9},
    )
    run.started("seen")
    run.started("live")
    run.ended("check")
    run.ended("own")
    run.fails("slow", "throttle")
    commands = run.make(ev.KernelRestarted, live=("r1.live.1",))
    found = {c.step: c.reattach for c in commands if isinstance(c, StartAttempt)}
    assert found == {"seen": True, "asked": False}
    assert only(commands, RunEvidence).step == "check"
    assert only(commands, Merge).step == "own"
    assert only(commands, SetTimer).timer == "slow:1"


def test_a_finished_run_says_its_end_again_to_a_new_process() -> None:
    run = Run(step("a"))
    run.ended("a")
    end = finish(run.make(ev.KernelRestarted))
    assert end is not None and end.state == "completed"


def test_a_worker_is_told_what_it_has_to_know() -> None:
    run = Run(
        step("a", purpose="look", deliverable={"type": "report", "paths": ["r.md"]}),
        step("b", "a", requirements=["R1"], deliverable=FILE, evidence=[command_check("make t")]),
        goal="1. it works",
    )
    told = only(run.ended("a", out_file="/o/a.md"), StartAttempt)
    for words in ("do b", "R1: it works", "a (look): r.md", "/o/a.md", "- x", "make t"):
        assert words in told.prompt
    assert told.deliverables == ("x",) and told.lane == "build"


def test_independence_keeps_off_the_providers_that_ran_the_other_step() -> None:
    run = Run(
        step("a"),
        step("b", route={"independentOf": ["a"], "use": ["x"], "avoid": ["y"]}, timeBox=2),
    )
    run.fails("a", "process", pool="codex:2", provider="codex")
    again = only(run.ended("a", pool="claude"), StartAttempt)
    assert again.not_providers == ("codex", "claude")
    assert (again.use, again.avoid, again.time_box_s) == (("x",), ("y",), 120.0)


def test_state_and_step_can_be_looked_up() -> None:
    run = Run(step("a"))
    assert find_step(run.state, "a").id == "a"
    with pytest.raises(KeyError):
        find_step(run.state, "z")


def test_the_result_is_plain_json_with_a_version() -> None:
    run = Run(step("a", answerSchema={"type": "object"}))
    run.ended("a", answer={"x": 1}, usage=dollars(0.5))
    found: dict[str, Any] = result(run.state)
    assert found["resultVersion"] == 1 and found["state"] == "completed"
    assert found["verified"] is False and found["costUsd"] == 0.5
    assert found["steps"][0]["label"] == "answer checked"
    assert found["steps"][0]["answer"] == {"x": 1}
