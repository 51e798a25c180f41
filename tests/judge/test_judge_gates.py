"""The judgement: gates in order, failure kinds, and what a bad exit leaves usable."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bullswarm.dispatch.types import Ended, Event, Notice
from bullswarm.judge import Changes, Declared, judge

ANSWER = "The index in src/parser.py:14 is off by one."
FINAL = Event(kind="final", text=ANSWER, turns=3)
EDITED = Changes(modified=("src/parser.py",))


def ended(**facts: Any) -> Ended:
    """A good end, but for ``facts``."""
    good: dict[str, Any] = {
        "ended_by": "exit",
        "exit_code": 0,
        "final": FINAL,
        "answer": ANSWER,
        "lines": 5,
        "last_kind": "final",
    }
    return Ended(**(good | facts))


def notice(kind: str, text: str = "no", certain: bool = True) -> Notice:
    return Notice(kind=kind, text=text, source="event", certain=certain)  # type: ignore[arg-type]


def test_a_good_end_is_verified() -> None:
    done = judge(ended(), lane="analyze")
    assert (done.ok, done.why, done.failure_kind) == (True, "verified", None)
    assert [g.name for g in done.gates] == ["exit", "provider", "content"]
    assert not done.content_usable_despite_exit


def test_gates_are_judged_in_order_and_the_first_decides() -> None:
    schema = {"type": "object"}
    done = judge(ended(), lane="build", changes=Changes(), schema=schema)
    assert [(g.name, g.ok) for g in done.gates] == [
        ("exit", True),
        ("provider", True),
        ("content", True),
        ("deliverable", False),
        ("schema", False),
    ]
    assert done.failure_kind == "not-produced"
    assert done.why == done.gates[3].why


@pytest.mark.parametrize("code", [1, 2, 75, 126, 127, 255, -9, -15, None])
def test_a_non_zero_exit_is_never_a_success(code: int | None) -> None:
    done = judge(ended(exit_code=code), lane="analyze")
    assert not done.ok
    assert done.failure_kind == "process"


def test_a_good_result_behind_a_bad_exit_is_kept_and_named() -> None:
    done = judge(ended(exit_code=1), lane="build", changes=EDITED)
    assert (done.ok, done.content_usable_despite_exit, done.why) == (False, True, "exit 1")


@pytest.mark.parametrize(
    "facts",
    [
        {"answer": ""},
        {"answer": "I'll start by looking at the code."},
        {"final": None},
        {"final": Event(kind="final", text=ANSWER, is_error=True)},
        {"ended_by": "spawn-failed", "exit_code": None},
        {"ended_by": "timeout", "exit_code": -15, "final": None},
    ],
)
def test_nothing_usable_is_claimed_where_the_content_did_not_pass(facts: dict[str, Any]) -> None:
    done = judge(ended(**({"exit_code": 1} | facts)), lane="analyze")
    assert (done.ok, done.content_usable_despite_exit) == (False, False)


def test_a_plain_text_worker_with_a_bad_exit_may_be_usable() -> None:
    facts = ended(exit_code=1, final=None, last_kind="text")
    assert judge(facts, lane="analyze", terminal=False).content_usable_despite_exit
    cut = ended(exit_code=-15, ended_by="timeout", final=None)
    assert not judge(cut, lane="analyze", terminal=False).content_usable_despite_exit


def test_a_typed_answer_that_fails_its_schema_is_not_usable() -> None:
    done = judge(ended(exit_code=1), lane="analyze", schema={"type": "object"})
    assert not done.content_usable_despite_exit


def test_a_final_word_without_an_exit_is_the_end_with_a_note() -> None:
    done = judge(ended(ended_by="final-grace", exit_code=-15), lane="analyze")
    assert (done.ok, done.why) == (True, "verified")
    assert any("never exited" in note for note in done.notes)


def test_is_error_beats_the_subtype_even_with_exit_zero() -> None:
    final = Event(kind="final", text="API Error: 500 oops", is_error=True, code="success")
    done = judge(ended(final=final, answer=final.text), lane="analyze")
    assert (done.ok, done.failure_kind) == (False, "provider")
    assert done.gates[1].name == "provider" and not done.gates[1].ok


@pytest.mark.parametrize(
    ("facts", "kind", "words"),
    [
        ({"ended_by": "cancelled", "exit_code": -15}, "cancelled", "cancelled"),
        ({"ended_by": "spawn-failed", "exit_code": None}, "unavailable", "could not be started"),
        (
            {"ended_by": "timeout", "exit_code": -15, "wall_s": 90.2},
            "stalled",
            "timed out after 90s",
        ),
        ({"ended_by": "stalled", "exit_code": -15}, "stalled", "silent"),
        ({"ended_by": "loop", "exit_code": -15}, "provider", "over and over"),
        ({"ended_by": "lost", "exit_code": None}, "process", "no exit status"),
        ({"exit_code": 3, "stderr_tail": "x\nboom\n"}, "process", "exit 3: boom"),
        (
            {
                "exit_code": 2,
                "stderr_tail": "error: invalid value 'plan' for '--sandbox <MODE>'\n"
                "  [possible values: read-only]\n\nFor more information, try '--help'.\n",
            },
            "process",
            "exit 2: error: invalid value 'plan' for '--sandbox <MODE>' "
            "[possible values: read-only]",
        ),
        (
            {"exit_code": 2, "stderr_tail": "no such mode\nTry x --help\n"},
            "process",
            "exit 2: no such mode",
        ),
        (
            {"exit_code": 2, "stderr_tail": "Usage: x [MODE]\n"},
            "process",
            "exit 2: Usage: x [MODE]",
        ),
        ({"exit_code": -11}, "process", "signal 11"),
        (
            {"exit_code": 127, "lines": 0, "final": None, "stderr_tail": "sh: nope: not found"},
            "unavailable",
            "not found",
        ),
    ],
)
def test_each_way_to_end_has_its_failure_kind(facts: dict[str, Any], kind: str, words: str) -> None:
    done = judge(ended(**facts), lane="analyze")
    assert (done.ok, done.failure_kind) == (False, kind)
    assert words in done.why


def test_a_timeout_names_the_limit_it_ran_into() -> None:
    facts = ended(ended_by="timeout", exit_code=-15, wall_s=61.3)
    assert judge(facts, lane="analyze", timeout_s=60).why == "timed out after 60s"


@pytest.mark.parametrize(
    ("kind", "failure"),
    [
        ("quota", "quota"),
        ("throttle", "throttle"),
        ("auth", "auth"),
        ("auth-race", "auth"),
        ("login-damaged", "auth"),
        ("overloaded", "provider"),
    ],
)
@pytest.mark.parametrize(
    "facts",
    [
        {"ended_by": "notice", "exit_code": -15, "final": None},
        {"exit_code": 1, "final": None},
        {"exit_code": 1, "final": Event(kind="final", text="no", is_error=True), "answer": "no"},
        {"exit_code": 0, "final": Event(kind="final", text="no", is_error=True), "answer": "no"},
        {"exit_code": 0, "final": None, "answer": ""},
    ],
)
def test_a_notice_decides_the_failure_kind(kind: str, failure: str, facts: dict[str, Any]) -> None:
    done = judge(ended(notices=(notice(kind, "said so"),), **facts), lane="analyze")
    assert (done.ok, done.failure_kind) == (False, failure)
    assert done.notice is not None and done.notice.kind == kind


def test_a_later_notice_replaces_an_earlier_one() -> None:
    first, second = notice("quota", "3 hours"), notice("quota", "4 days")
    done = judge(ended(ended_by="notice", exit_code=-15, notices=(first, second)), lane="analyze")
    assert done.notice == second
    assert "4 days" in done.why


def test_an_uncertain_notice_counts_only_where_nothing_came_after_it() -> None:
    retry = notice("throttle", "429", certain=False)
    broken = ended(exit_code=1, final=None, last_kind="retry", notices=(retry,), answer="")
    assert judge(broken, lane="analyze").failure_kind == "throttle"
    went_on = ended(exit_code=1, notices=(retry,))
    assert judge(went_on, lane="analyze").failure_kind == "process"
    assert judge(ended(notices=(retry,)), lane="analyze").ok


def test_a_complaint_that_was_overcome_is_a_note() -> None:
    done = judge(ended(notices=(notice("throttle", "slow down"),)), lane="analyze")
    assert done.ok
    assert any("slow down" in note for note in done.notes)


def test_plain_text_with_a_certain_notice_is_a_failure_whatever_the_exit() -> None:
    facts = ended(final=None, notices=(notice("quota", "quota exceeded"),))
    assert judge(facts, lane="analyze", terminal=False).failure_kind == "quota"


def test_an_error_answer_with_exit_zero_never_passes() -> None:
    text = "[API Error: 401 Incorrect API key provided]"
    done = judge(ended(answer=text, final=Event(kind="final", text=text, turns=1)), lane="analyze")
    assert (done.ok, done.failure_kind, done.content_usable_despite_exit) == (False, "auth", False)
    text = "API Error: Rate limit reached"
    facts = ended(answer=text, final=None, last_kind="text")
    assert judge(facts, lane="analyze", terminal=False).failure_kind == "throttle"


def test_the_notice_behind_an_error_answer_is_handed_on() -> None:
    found = notice("quota", "limit")
    text = "You've hit your session limit · resets 9:10pm (UTC)"
    done = judge(ended(answer=text), lane="analyze", notice_of=lambda _: found)
    assert done.notice == found and done.failure_kind == "quota"


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, "auth"),
        (403, "auth"),
        (402, "quota"),
        (429, "throttle"),
        (500, "provider"),
        (None, "provider"),
    ],
)
def test_a_final_error_without_words_is_known_by_its_status(status: int | None, kind: str) -> None:
    final = Event(kind="final", is_error=True, status=status)
    assert judge(ended(final=final, answer=""), lane="analyze").failure_kind == kind


def test_a_worker_that_ran_out_of_turns_did_not_produce() -> None:
    final = Event(kind="final", is_error=True, code="error_max_turns")
    assert judge(ended(final=final, answer=""), lane="analyze").failure_kind == "not-produced"


def test_no_terminal_event_is_never_ok_unless_plain_text_is_declared() -> None:
    facts = ended(final=None, last_kind="text")
    done = judge(facts, lane="analyze")
    assert (done.ok, done.failure_kind) == (False, "not-produced")
    assert "final event" in done.why
    assert judge(facts, lane="analyze", terminal=False).ok


def test_zero_turns_is_a_failure() -> None:
    final = Event(kind="final", text="", turns=0)
    done = judge(ended(final=final, answer="", tools=0), lane="analyze")
    assert (done.ok, done.failure_kind) == (False, "not-produced")


def test_an_empty_end_after_tools_is_incomplete() -> None:
    final = Event(kind="final", text="", turns=2)
    done = judge(ended(final=final, answer="", tools=4), lane="build", changes=EDITED)
    assert not done.ok and done.why.startswith("incomplete")


@pytest.mark.parametrize("lane", ["build", "chore"])
@pytest.mark.parametrize(
    ("changes", "ok"),
    [
        (Changes(created=("a",)), True),
        (Changes(modified=("a",)), True),
        (Changes(deleted=("a",)), True),
        (Changes(commits=("abc done",)), True),
        (Changes(), False),
        (Changes(note="not looked at: node_modules"), False),
        (None, False),
    ],
)
def test_a_changing_lane_must_change_a_file_or_commit(
    lane: str, changes: Changes | None, ok: bool
) -> None:
    done = judge(ended(), lane=lane, changes=changes)
    assert done.ok is ok
    assert done.failure_kind == (None if ok else "not-produced")


def test_reading_lanes_need_change_nothing_and_are_noted_when_they_do() -> None:
    assert judge(ended(), lane="analyze", changes=Changes()).ok
    done = judge(ended(), lane="analyze", changes=EDITED)
    assert done.ok and any("modified 1 file" in note for note in done.notes)


def test_the_caller_may_say_that_nothing_need_change() -> None:
    assert judge(ended(), lane="chore", changes=Changes(), must_change=False).ok
    assert not judge(ended(), lane="analyze", changes=Changes(), must_change=True).ok


@pytest.mark.parametrize(
    ("state", "ok"),
    [("new", True), ("changed", True), ("unchanged", False), ("empty", False), ("missing", False)],
)
def test_a_declared_path_must_be_there_not_empty_and_not_stale(state: Any, ok: bool) -> None:
    changes = Changes(modified=("other",), declared=(Declared(path="report.md", state=state),))
    done = judge(ended(), lane="analyze", changes=changes, deliverables=("report.md",))
    assert done.ok is ok
    if not ok:
        assert done.failure_kind == "not-produced"
        assert f"report.md ({state})" in done.why


def test_only_declared_paths_are_asked_for() -> None:
    changes = Changes(created=("elsewhere/report.md",))
    assert judge(ended(), lane="build", changes=changes).ok
    asked = judge(ended(), lane="build", changes=changes, deliverables=("report.md",))
    assert not asked.ok


def test_declared_paths_are_found_among_the_changes() -> None:
    changes = Changes(created=("a.md",), modified=("b.md",), deleted=("c.md",))
    assert judge(ended(), lane="build", changes=changes, deliverables=("a.md", "./b.md")).ok
    assert (
        "c.md (missing)"
        in judge(ended(), lane="build", changes=changes, deliverables=("c.md",)).why
    )
    assert not judge(ended(), lane="build", changes=None, deliverables=("a.md",)).ok


def test_a_typed_answer_is_handed_over_parsed() -> None:
    text = 'Here it is:\n```json\n{"bugs": 2}\n```\n'
    schema = {"type": "object", "properties": {"bugs": {"type": "integer"}}, "required": ["bugs"]}
    done = judge(ended(answer=text), lane="analyze", schema=schema)
    assert (done.ok, done.answer) == (True, {"bugs": 2})
    wrong = judge(ended(answer='{"bugs": "two"}'), lane="analyze", schema=schema)
    assert (wrong.ok, wrong.failure_kind, wrong.answer) == (False, "schema", None)
    assert "$.bugs" in wrong.why


ENDS = st.builds(
    Ended,
    ended_by=st.sampled_from(
        [
            "exit",
            "final-grace",
            "notice",
            "stalled",
            "loop",
            "timeout",
            "cancelled",
            "lost",
            "spawn-failed",
        ]
    ),
    exit_code=st.sampled_from([0, 1, 127, -9, None]),
    final=st.sampled_from(
        [None, FINAL, Event(kind="final", is_error=True), Event(kind="final", turns=0)]
    ),
    answer=st.sampled_from([ANSWER, "", "I'll look at it.", "[API Error: 401 no]"]),
    notices=st.lists(
        st.sampled_from([notice("quota"), notice("throttle", certain=False), notice("auth")]),
        max_size=2,
    ).map(tuple),
    tools=st.integers(0, 2),
    last_kind=st.sampled_from([None, "text", "retry", "final"]),
)
LOOKS = st.sampled_from([None, Changes(), EDITED])


@given(ENDS, st.sampled_from(["analyze", "build", "chore"]), LOOKS, st.booleans())
@settings(max_examples=200, deadline=None)
def test_every_judgement_is_consistent(
    facts: Ended, lane: str, changes: Changes | None, terminal: bool
) -> None:
    done = judge(facts, lane=lane, changes=changes, terminal=terminal)
    assert done == judge(facts, lane=lane, changes=changes, terminal=terminal)
    assert done.ok == (done.failure_kind is None) == (done.why == "verified")
    assert done.ok == all(g.ok for g in done.gates)
    if done.ok:
        assert facts.answer == ANSWER
        assert facts.exit_code == 0 or facts.ended_by == "final-grace"
        assert facts.final is not None or not terminal
        assert not done.content_usable_despite_exit
    if done.content_usable_despite_exit:
        assert facts.answer == ANSWER and not done.gates[0].ok
