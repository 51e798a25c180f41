"""Labels, reviews with their rounds, acceptance, revisions."""

from __future__ import annotations

from typing import Any

import pytest
from workflow_rig import Run, command_check, finish, notices, only, reply, review, starts, step

from bullswarm.judge.schema import check_schema
from bullswarm.workflow import events as ev
from bullswarm.workflow.commands import StartAttempt
from bullswarm.workflow.completion import label_of, requirement_states, verified
from bullswarm.workflow.reviews import read_review, review_schema
from bullswarm.workflow.state import find_step

GOAL = "1. one\n2. two"
SCHEMA = {"type": "schema", "schema": {"type": "object"}}


def label(run: Run, name: str) -> str | None:
    return label_of(run.state, find_step(run.state, name))


def standing(run: Run) -> list[str]:
    return [r.standing for r in requirement_states(run.state)]


def reviewed(**more: Any) -> Run:
    run = Run(
        step("w", requirements=["R1", "R2"], deliverable={"type": "files", "paths": ["x"]}),
        review("r", "R1", "R2"),
        goal=GOAL,
        **more,
    )
    run.ended("w", pool="claude")
    return run


def test_a_step_is_proven_by_the_kernels_own_checks() -> None:
    run = Run(
        step("cmd", evidence=[command_check(), SCHEMA]),
        step("sch", evidence=[SCHEMA]),
        step("ans", answerSchema={}),
        step("bare"),
    )
    for name in ("cmd", "sch", "ans", "bare"):
        run.ended(name, answer={})
    run.checked("cmd", True, True, kinds="cs")
    run.checked("sch", True, kinds="s")
    assert [label(run, n) for n in ("cmd", "sch", "ans", "bare")] == [
        "proven by command",
        "proven by schema",
        "answer checked",
        "finished · unproven",
    ]
    assert run.state.phase == "completed" and not verified(run.state)


def test_a_review_proves_what_it_passes() -> None:
    run = reviewed()
    assert label(run, "w") == "review pending" and standing(run) == ["unproven", "unproven"]
    end = finish(run.says("r", R1=True, R2=True))
    assert label(run, "w") == "proven by review" and standing(run) == ["proven", "proven"]
    assert end is not None and end.state == "completed" and end.verified


def test_it_is_recorded_who_reviewed_and_whether_that_provider_also_wrote() -> None:
    for pool, also in (("codex", False), ("claude", True)):
        run = reviewed()
        run.says("r", pool=pool, R1=True, R2=True)
        said = run.state.verdicts["r"][0]
        assert (said.provider, said.also_wrote, said.review) == (pool, also, "r")


def test_a_review_had_better_run_elsewhere() -> None:
    run = reviewed()
    assert only(run.last, StartAttempt).rather_not == ("claude",)


def test_a_failed_review_gets_a_fix_and_a_second_look() -> None:
    run = reviewed()
    fix = only(run.says("r", R1=True, R2=False), StartAttempt)
    assert fix.step == "r-fix-1" and "R2: two" in fix.prompt and "R2 was looked at" in fix.prompt
    assert "R1" not in fix.prompt and fix.lane == "build" and fix.rather_not == ("codex",)
    assert run.status("r") == "fixing" and label(run, "w") == "finished · unproven"
    again = only(run.ended("r-fix-1", pool="gemini"), StartAttempt)
    assert again.step == "r-review-2" and "gemini" in again.rather_not
    end = finish(run.says("r-review-2", pool="gemini", R1=True, R2=True))
    assert end is not None and end.state == "completed" and end.verified
    assert run.status("r") == "done" and run.state.verdicts["r"][1].also_wrote is True


@pytest.mark.parametrize("rounds", [0, 1, 2, 3])
def test_there_are_as_many_rounds_as_asked_for_and_then_the_caller(rounds: int) -> None:
    run = reviewed(options={"verifyRounds": rounds})
    run.says("r", R1=True, R2=False)
    for n in range(1, rounds + 1):
        assert run.status("r") == "fixing"
        run.ended(f"r-fix-{n}")
        run.says(f"r-review-{n + 1}", R1=True, R2=False)
    assert run.status("r") == "needs-caller" and run.state.phase == "partial"
    told = notices(run.last)[0]
    assert "R2" in told.why and told.failure_kind == "review"
    assert any("step accept r1 R2" in c.command for c in told.choices)
    assert any("step rerun r1 w" in c.command for c in told.choices)
    assert standing(run) == ["proven", "failing"]


def test_the_fix_has_to_pass_the_writers_checks_again() -> None:
    run = Run(
        step("w", requirements=["R1"], evidence=[command_check("make t"), SCHEMA]),
        review("r", "R1"),
        goal="1. one",
    )
    run.ended("w")
    run.checked("w", True, True, kinds="cs")
    run.says("r", R1=False)
    evidence = find_step(run.state, "r-fix-1").evidence
    assert [getattr(e, "command", None) for e in evidence] == ["make t"]


def test_nothing_that_waits_for_a_review_runs_before_it_passes() -> None:
    run = Run(
        step("w", requirements=["R1"]),
        review("r", "R1"),
        step("send", "r", role="act"),
        goal="1. one",
    )
    run.ended("w")
    assert starts(run.says("r", R1=False)) == ["r-fix-1"]
    assert starts(run.ended("r-fix-1")) == ["r-review-2"]
    assert starts(run.says("r-review-2", R1=True)) == ["send"]


def test_a_fix_that_fails_blocks_its_review_and_what_follows() -> None:
    run = reviewed()
    run.says("r", R1=False, R2=True)
    run.fails("r-fix-1", "cancelled")
    assert [run.status(n) for n in ("r-fix-1", "r-review-2", "r")] == [
        "needs-caller",
        "blocked",
        "blocked",
    ]
    assert run.state.phase == "partial"
    assert starts(run.make(ev.StepRerun, step="r-fix-1", reason="x")) == ["r-fix-1"]
    run.ended("r-fix-1")
    run.says("r-review-2", R1=True, R2=True)
    assert run.state.phase == "completed"


def test_outward_work_that_fails_a_review_is_not_fixed_by_itself() -> None:
    run = Run(step("w", role="act"), review("r", "w"))
    run.ended("w")
    commands = run.says("r", w=False)
    assert starts(commands) == [] and run.status("r") == "needs-caller"


@pytest.mark.parametrize(
    "answer",
    [
        None,
        "all good",
        {"requirements": [{"id": "R1", "pass": True, "reason": ""}]},
        {"requirements": [{"id": "R1", "pass": "yes"}, {"id": "R2", "pass": True}]},
    ],
)
def test_a_review_that_does_not_judge_everything_is_a_failed_gate(answer: Any) -> None:
    run = reviewed()
    again = only(run.ended("r", pool="codex", answer=answer), StartAttempt)
    assert (again.step, again.n, again.pool) == ("r", 2, "codex")
    assert again.before.kind == "failure" and run.state.verdicts == {}


def test_of_two_verdicts_on_one_requirement_the_failing_one_counts() -> None:
    items = [{"id": "R1", "pass": p, "reason": str(p)} for p in (True, False, True)]
    said, wrong = read_review({"requirements": [*items, {"id": "R9", "pass": False}]}, ["R1"])
    assert not wrong and [(s.id, s.passed) for s in said] == [("R1", False)]


def test_the_reviews_schema_takes_a_whole_answer_and_no_other() -> None:
    schema = review_schema(["R1", "R2"])
    whole = [{"id": i, "pass": True, "reason": "x"} for i in ("R1", "R2")]
    assert not check_schema({"requirements": whole}, schema)
    assert check_schema({"requirements": whole[:1]}, schema)
    assert check_schema({"requirements": [*whole[:1], *whole[:1]]}, schema)


def test_an_accepted_step_is_a_choice_and_never_proof() -> None:
    run = Run(step("a", requirements=["R1"]), step("b", "a"), goal="1. one")
    assert not reply(run.make(ev.StepAccepted, target="a", reason="x")).ok
    run.fails("a", "cancelled")
    assert not reply(run.make(ev.StepAccepted, target="a", reason=" ")).ok
    assert starts(run.make(ev.StepAccepted, target="a", reason="good enough")) == ["b"]
    assert label(run, "a") == "choice" and standing(run) == ["choice"]
    end = finish(run.ended("b"))
    assert end is not None and end.state == "completed" and not end.verified


def test_an_accepted_requirement_settles_the_review_that_fails_it() -> None:
    run = reviewed(options={"verifyRounds": 0})
    run.says("r", R1=True, R2=False)
    assert not reply(run.make(ev.StepAccepted, target="R1", reason="x")).ok
    end = finish(run.make(ev.StepAccepted, target="R2", reason="next time"))
    assert end is not None and end.state == "completed" and not end.verified
    assert standing(run) == ["proven", "choice"] and run.state.choices == {"R2": "next time"}
    assert label(run, "r") == "choice"


def test_every_failing_requirement_needs_its_own_acceptance() -> None:
    run = reviewed(options={"verifyRounds": 0})
    run.says("r", R1=False, R2=False)
    assert finish(run.make(ev.StepAccepted, target="R2", reason="x")).state == "partial"  # type: ignore[union-attr]
    assert run.status("r") == "needs-caller" and standing(run) == ["failing", "choice"]
    end = finish(run.make(ev.StepAccepted, target="r", reason="all of it"))
    assert end is not None and end.state == "completed" and standing(run) == ["choice", "choice"]


def test_one_review_that_fails_a_requirement_outweighs_one_that_passes_it() -> None:
    run = Run(
        step("w", requirements=["R1"]),
        review("r", "R1"),
        review("q", "R1"),
        goal="1. one",
        options={"verifyRounds": 0},
    )
    run.ended("w")
    run.says("r", R1=True)
    run.says("q", R1=False)
    assert standing(run) == ["failing"] and label(run, "w") == "finished · unproven"


def test_a_writer_that_is_done_again_is_reviewed_again() -> None:
    run = reviewed()
    run.says("r", R1=True, R2=True)
    assert starts(run.make(ev.StepRerun, step="w", reason="new idea")) == ["w"]
    assert run.state.verdicts == {} and run.status("r") == "pending"
    assert starts(run.ended("w")) == ["r"]
    assert not verified(run.state)


def test_a_step_is_not_done_again_under_a_review_that_is_looking_at_it() -> None:
    run = reviewed()
    refused = reply(run.make(ev.StepRerun, step="w", reason="x"))
    assert not refused.ok and "r builds on w and is running" in refused.why


def test_dependents_follow_a_rerun_only_where_asked_and_act_never() -> None:
    for asked, statuses in ((False, ["done", "done"]), (True, ["pending", "done"])):
        run = Run(step("a"), step("b", "a"), step("act", "a", role="act"))
        run.ended("a")
        run.ended("b")
        run.started("act")
        run.ended("act")
        run.make(ev.StepRerun, step="a", reason="x", dependents=asked)
        assert [run.status(n) for n in ("b", "act")] == statuses


def test_a_revision_on_an_old_plan_is_refused_and_changes_nothing() -> None:
    run = Run(step("a"))
    run.make(ev.PlanRevised, base_revision=1, add=(step("b", "a"),))
    assert run.state.revision == 2
    before = run.state.program
    refused = reply(run.make(ev.PlanRevised, base_revision=1, remove=("b",)))
    assert not refused.ok and refused.revision == 2 and "revision 2" in refused.why
    assert run.state.program is before


def test_a_plan_can_grow_while_it_runs() -> None:
    run = Run(step("a"), step("b", "a"))
    commands = run.make(ev.PlanRevised, base_revision=1, add=(step("c"), step("d", "b", "c")))
    assert reply(commands).ok and starts(commands) == ["c"]
    run.ended("a")
    run.ended("b")
    assert starts(run.ended("c")) == ["d"]
    assert run.state.phase == "running"


def test_work_added_under_a_finished_review_is_reviewed_too() -> None:
    run = reviewed()
    run.says("r", R1=True, R2=True)
    commands = run.make(ev.PlanRevised, base_revision=1, add=(step("more", requirements=["R2"]),))
    assert starts(commands) == ["more"] and run.status("r") == "pending"
    assert starts(run.ended("more")) == ["r"]


@pytest.mark.parametrize(
    ("fields", "path", "words"),
    [
        ({}, "$", "nothing"),
        ({"amend": ({"id": "a", "prompt": "x"},)}, "$.amend[0]", "running"),
        ({"remove": ("a",)}, "$.remove[0]", "running"),
        ({"remove": ("zz",)}, "$.remove[0]", "no step"),
        ({"amend": ({"id": "done", "prompt": "x"},)}, "$.amend[0]", "rerun too"),
        ({"rerun": ("b",)}, "$.rerun[0]", "still to run"),
        ({"remove": ("b",)}, "$.steps[1].dependsOn[0]", "no step 'b'"),
        ({"add": ({"id": "n"},)}, "$.steps[4]", "prompt is missing"),
        ({"add": (step("b"),)}, "$.steps[4].id", "twice"),
        ({"amend": ({"id": "b", "dependsOn": ["c"]},)}, "$.steps[1].dependsOn", "b -> c -> b"),
        ({"options": {"verifyRounds": 7}}, "$.options.verifyRounds", "range"),
    ],
)
def test_a_bad_revision_is_refused_with_its_faults(
    fields: dict[str, Any], path: str, words: str
) -> None:
    run = Run(step("a"), step("b", "a"), step("c", "b"), step("done"))
    run.ended("done")
    before = run.state
    refused = reply(run.make(ev.PlanRevised, base_revision=1, **fields))
    assert not refused.ok
    assert any(f.path == path and words in f.message for f in refused.faults), refused.faults
    assert run.state.program is before.program and run.state.steps == before.steps


def test_amending_a_failed_step_starts_it_anew() -> None:
    run = Run(step("a"))
    run.fails("a", "cancelled")
    commands = run.make(
        ev.PlanRevised, base_revision=1, amend=({"id": "a", "prompt": "smaller"},), reason="less"
    )
    again = only(commands, StartAttempt)
    assert again.prompt.startswith("smaller") and again.reason == "amended: less"


def test_a_finished_step_is_amended_together_with_its_rerun() -> None:
    run = Run(step("a"), step("b", "a"))
    run.ended("a")
    run.fails("b", "cancelled")
    commands = run.make(
        ev.PlanRevised, base_revision=1, amend=({"id": "a", "prompt": "more"},), rerun=("a",)
    )
    assert starts(commands) == ["a"] and run.status("b") == "pending"


def test_removing_what_failed_lets_the_run_complete() -> None:
    run = Run(step("a"), step("b"))
    run.ended("a")
    run.fails("b", "cancelled")
    end = finish(run.make(ev.PlanRevised, base_revision=1, remove=("b",)))
    assert end is not None and end.state == "completed"


def test_an_outward_action_that_may_have_happened_stays_in_the_record() -> None:
    run = Run(step("a", role="act"), step("b"))
    run.started("a")
    run.fails("a", "process")
    refused = reply(run.make(ev.PlanRevised, base_revision=1, remove=("a",)))
    assert not refused.ok and "may have acted" in refused.why
