"""Watching a worker: how each kind of end is told apart."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from dispatchkit import QUICK, finish, read_event, run, runs, sh, until, watch_of

from bullswarm.dispatch import find, members, start, supervise
from bullswarm.dispatch.clocks import Clocks
from bullswarm.dispatch.loop import LoopGuard
from bullswarm.dispatch.types import Event, Limits

FINAL = '{"kind":"final","text":"done"}'
TEXT = '{"kind":"text","text":"working"}'
RETRY = '{"kind":"retry","status":503}'


def limits(**more: Any) -> Limits:
    return msgspec.structs.replace(QUICK, **more)


def say(*lines: str) -> str:
    return "".join(f"echo '{line}'\n" for line in lines)


def test_an_exit_with_a_final_word_is_the_answer(tmp_path: Path) -> None:
    ended = run(
        sh(
            tmp_path,
            say('{"kind":"start","session":"s1","model":"m1"}', TEXT, '{"kind":"tool"}', FINAL),
        )
    )
    assert (ended.ended_by, ended.exit_code, ended.answer) == ("exit", 0, "done")
    assert (ended.session, ended.model, ended.tools, ended.lines) == ("s1", "m1", 1, 4)
    assert (ended.notes, ended.bad_lines, ended.last_kind) == ((), 0, "final")
    assert ended.started_at is not None
    assert ended.ended_at is not None
    assert ended.started_at <= ended.ended_at


def test_an_exit_without_a_final_word_has_none(tmp_path: Path) -> None:
    ended = run(sh(tmp_path, say(TEXT)))
    assert (ended.ended_by, ended.exit_code, ended.final) == ("exit", 0, None)


def test_a_last_line_without_a_newline_counts(tmp_path: Path) -> None:
    ended = run(sh(tmp_path, f"printf %s '{FINAL}'; printf %s 'last words' >&2"))
    assert (ended.answer, ended.stderr_tail) == ("done", "last words\n")


def test_a_final_word_without_an_exit_counts_after_the_grace(tmp_path: Path) -> None:
    launch = sh(tmp_path, say(TEXT, FINAL) + "sleep 20")
    worker = start(launch)
    ended = finish(watch_of(worker))
    assert (ended.ended_by, ended.answer) == ("final-grace", "done")
    assert any("final word" in note for note in ended.notes)
    assert members(worker) == ()
    assert ended.wall_s < 3.0


def test_words_after_a_final_word_take_it_back(tmp_path: Path) -> None:
    script = say(FINAL) + "sleep 0.1\n" + say(TEXT) + "sleep 0.4\n" + say(FINAL)
    ended = run(sh(tmp_path, script))
    assert (ended.ended_by, ended.exit_code) == ("exit", 0)


@pytest.mark.parametrize(
    ("script", "word"),
    [
        ("sleep 20", "since it started"),
        ("echo warming up >&2; sleep 20", "since it started"),
        (say('{"kind":"tool"}', '{"kind":"tool-result"}') + "sleep 20", "silent for"),
        (f"while :; do echo '{RETRY}'; sleep 0.05; done", "no progress"),
        ("while :; do echo debug >&2; sleep 0.05; done", "no progress"),
        (say(TEXT) + f"while :; do echo '{RETRY}'; sleep 0.05; done", "no progress"),
    ],
)
def test_silence_and_idle_chatter_are_stalled(tmp_path: Path, script: str, word: str) -> None:
    worker = start(sh(tmp_path, script))
    quiet = limits(startup_silence_s=0.3, silence_s=0.3)
    ended = finish(watch_of(worker, quiet, classifier=Deaf()))
    assert ended.ended_by == "stalled"
    assert any(word in note for note in ended.notes)
    assert members(worker) == ()


class Deaf:
    """No classifier: only the watch's own limits end anything."""

    def feed(self, event: Event) -> None:
        return None

    def feed_stderr(self, line: str) -> None:
        return None

    def finish(self, *, failed: bool) -> None:
        return None


def test_a_silent_workers_log_gives_the_reason(tmp_path: Path) -> None:
    log = tmp_path / "cli.log"
    log.write_text("an older run said: invalid api key\n")
    script = f"echo 'Usage limit reached. Try again in 3 hours.' >> '{log}'; sleep 20"
    launch = sh(tmp_path, "sleep 0.1; " + script, log_file=str(log))
    ended = run(launch, limits(startup_silence_s=0.4))
    assert (ended.ended_by, ended.notes) == ("notice", ("silent for 0 s since it started",))
    assert [notice.kind for notice in ended.notices] == ["quota"]
    assert ended.stderr_tail == "Usage limit reached. Try again in 3 hours.\n"


def test_start_up_and_mid_run_have_limits_of_their_own(tmp_path: Path) -> None:
    patient_later = limits(startup_silence_s=0.2, silence_s=20.0)
    assert run(sh(tmp_path, say(TEXT) + "sleep 0.5"), patient_later).ended_by == "exit"


def test_progress_now_and_then_is_never_stalled(tmp_path: Path) -> None:
    script = "sleep 0.1\n".join(say(f'{{"kind":"text","text":"{n}"}}') for n in range(6))
    assert run(sh(tmp_path, script), limits(silence_s=0.4)).ended_by == "exit"


def test_text_without_newlines_is_progress_in_text_mode(tmp_path: Path) -> None:
    script = "for n in 1 2 3 4 5 6 7 8; do printf .; sleep 0.1; done"
    quiet = limits(startup_silence_s=0.3, silence_s=0.3)
    ended = run(sh(tmp_path, script), quiet, text_mode=True)
    assert (ended.ended_by, ended.answer) == ("exit", "........")


def test_the_time_limit_ends_it(tmp_path: Path) -> None:
    worker = start(sh(tmp_path, f"while :; do echo '{TEXT}'; sleep 0.05; done"))
    ended = finish(watch_of(worker, limits(timeout_s=0.4)))
    assert (ended.ended_by, ended.exit_code) == ("timeout", -15)
    assert 0.4 <= ended.wall_s < 3.0
    assert members(worker) == ()


def test_the_time_limit_goes_on_for_who_takes_over(tmp_path: Path) -> None:
    launch = sh(tmp_path, "exec sleep 20")
    start(launch)
    time.sleep(0.5)
    worker = find(launch)
    assert worker is not None
    began = time.monotonic()
    ended = finish(watch_of(worker, limits(timeout_s=0.6)))
    assert ended.ended_by == "timeout"
    assert time.monotonic() - began < 0.5
    assert ended.wall_s >= 0.55


@pytest.mark.parametrize(
    ("level", "code"),
    [(1, 3), (2, -9)],
    ids=["first asks and waits", "second kills"],
)
def test_cancelling(tmp_path: Path, level: int, code: int) -> None:
    launch = sh(tmp_path, "trap 'sleep 0.1; exit 3' TERM\necho up\nwhile :; do sleep 0.05; done")
    worker = start(launch)
    until(lambda: Path(launch.stdout).read_text())
    ended = finish(watch_of(worker, limits(kill_grace_s=3.0), cancelled=lambda: level))
    assert (ended.ended_by, ended.exit_code, ended.survivors) == ("cancelled", code, ())
    assert members(worker) == ()


def test_a_second_cancel_ends_the_grace_of_the_first(tmp_path: Path) -> None:
    launch = sh(tmp_path, "trap '' TERM\necho up\nwhile :; do sleep 0.05; done")
    worker = start(launch)
    until(lambda: Path(launch.stdout).read_text())
    asked = iter([1, 1, 1, 1])
    began = time.monotonic()
    watch = watch_of(worker, limits(kill_grace_s=30.0), cancelled=lambda: next(asked, 2))
    ended = finish(watch)
    assert (ended.ended_by, ended.exit_code) == ("cancelled", -9)
    assert time.monotonic() - began < 2.0


@pytest.mark.parametrize(
    "script",
    [
        say('{"kind":"limit","limit_status":"rejected","window":"five_hour"}'),
        say('{"kind":"retry","status":401}', '{"kind":"retry","status":401}'),
        say(FINAL, TEXT, '{"kind":"limit","limit_status":"rejected","window":"weekly"}'),
        "echo 'Usage limit reached. Try again in 3 hours.' >&2\n",
    ],
    ids=["event", "retries", "after an early final word", "stderr"],
)
def test_a_certain_notice_ends_it_at_once(tmp_path: Path, script: str) -> None:
    worker = start(sh(tmp_path, script + "sleep 20"))
    ended = finish(watch_of(worker, limits(final_grace_s=10.0)))
    assert (ended.ended_by, len(ended.notices) > 0) == ("notice", True)
    assert ended.notices[-1].certain
    assert ended.wall_s < 2.0
    assert members(worker) == ()


def test_what_follows_a_notice_at_once_is_still_read(tmp_path: Path) -> None:
    script = (
        say('{"kind":"limit","limit_status":"rejected","window":"five_hour"}')
        + "sleep 0.05\n"
        + say('{"kind":"final","text":"limit","is_error":true}')
        + "sleep 20"
    )
    ended = run(sh(tmp_path, script))
    assert ended.ended_by == "notice"
    assert ended.final is not None
    assert ended.final.is_error


def test_the_same_events_over_and_over_are_a_loop(tmp_path: Path) -> None:
    cycle = say(
        '{"kind":"progress","text":"step 12345678abcd"}',
        '{"kind":"text","text":"Let me"}',
        '{"kind":"progress","text":"cut"}',
    )
    worker = start(sh(tmp_path, f"while :; do {cycle} done"))
    ended = finish(watch_of(worker, limits(loop_repeats=5)))
    assert ended.ended_by == "loop"
    assert any("nothing new" in note for note in ended.notes)
    assert members(worker) == ()


def test_five_hundred_different_events_are_no_loop() -> None:
    guard = LoopGuard(40)
    assert not any(guard.feed(Event(kind="text", text=f"line {n}")) for n in range(500))


def test_counters_alone_make_a_retry_no_new_event() -> None:
    guard = LoopGuard(2)
    events = [Event(kind="error", text=f"try {n} of 999, id {n:08x}ab") for n in range(10)]
    assert [guard.feed(event) for event in events].index(True) == 6


def test_a_text_in_pieces_is_judged_as_a_whole() -> None:
    guard = LoopGuard(3)
    tokens = [Event(kind="text", text=str(n % 2), delta=True) for n in range(1000)]
    assert not any(guard.feed(token) for token in tokens)
    cycle = [*tokens[:7], Event(kind="progress", text="cut")]
    assert any(guard.feed(event) for _ in range(20) for event in cycle)


def test_a_jump_of_the_clock_is_no_silence_and_is_noted(tmp_path: Path) -> None:
    awake, wall = [100.0], [1000.0]
    clocks = Clocks(awake=lambda: awake[0], wall=lambda: wall[0])
    worker = start(sh(tmp_path, "exec sleep 20"))
    watch = watch_of(worker, limits(startup_silence_s=50.0, silence_s=50.0), clocks=clocks)
    assert watch.poll() is None
    wall[0] += 36_000.0
    awake[0] += 0.1
    assert watch.poll() is None
    awake[0] += 36_000.0
    wall[0] += 36_000.0
    assert watch.poll() is None
    wall[0] -= 7_200.0
    assert watch.poll() is None
    for _ in range(4):
        awake[0] += 15.0
        wall[0] += 15.0
        watch.poll()
    ended = finish(watch)
    assert ended.ended_by == "stalled"
    assert any("slept" in note for note in ended.notes)


@pytest.mark.parametrize(
    ("awake", "wall", "jumped", "counted"),
    [
        (1.0, 1.0, False, 1.0),
        (59.0, 59.0, False, 59.0),
        (0.1, 3600.0, True, 0.1),
        (3600.0, 3600.0, True, 1.0),
        (0.1, -3600.0, True, 0.1),
        (1.0, 30.0, False, 1.0),
    ],
)
def test_both_clocks_are_compared(awake: float, wall: float, jumped: bool, counted: float) -> None:
    times = [0.0, 0.0]
    clocks = Clocks(awake=lambda: times[0], wall=lambda: times[1])
    times[:] = [awake, wall]
    assert clocks.look() is jumped
    assert clocks.now == pytest.approx(counted)


def broken(raw: dict[str, Any]) -> tuple[Event, ...]:
    raise ValueError("odd event")


@pytest.mark.parametrize(
    "reader",
    [broken, lambda raw: None, lambda raw: (1,)],
    ids=["raises", "gives none", "gives no event"],
)
def test_a_reader_that_fails_is_noted_and_never_fatal(tmp_path: Path, reader: Any) -> None:
    def sometimes(raw: dict[str, Any]) -> tuple[Event, ...]:
        events: tuple[Event, ...] = reader(raw) if raw["kind"] == "text" else read_event(raw)
        return events

    ended = run(sh(tmp_path, say(TEXT, TEXT, FINAL)), read_event=sometimes)
    assert (ended.ended_by, ended.answer, ended.bad_lines) == ("exit", "done", 2)
    assert len([note for note in ended.notes if "could not be read" in note]) == 1


def test_a_classifier_that_fails_is_noted_and_never_fatal(tmp_path: Path) -> None:
    class Broken(Deaf):
        def feed(self, event: Event) -> None:
            raise RuntimeError("bad phrase")

        def finish(self, *, failed: bool) -> None:
            raise RuntimeError("bad end")

    ended = run(sh(tmp_path, say(TEXT, FINAL)), classifier=Broken())
    assert (ended.ended_by, ended.answer) == ("exit", "done")
    assert any("bad phrase" in note for note in ended.notes)


def test_plain_text_is_the_answer_in_text_mode(tmp_path: Path) -> None:
    heard: list[Event] = []
    script = 'echo \'{"kind":"final"}\'; echo two; printf three'
    ended = run(sh(tmp_path, script), text_mode=True, on_event=heard.append)
    assert ended.answer == '{"kind":"final"}\ntwo\nthree'
    assert (ended.final, ended.bad_lines, ended.lines) == (None, 0, 3)
    assert [event.text for event in heard] == ['{"kind":"final"}', "two", "three"]


def test_every_event_is_handed_on_in_order(tmp_path: Path) -> None:
    heard: list[Event] = []
    lines = [json.dumps({"kind": "text", "text": str(n)}) for n in range(50)]
    launch = sh(tmp_path, "cat", stdin="\n".join(lines))
    run(launch, on_event=heard.append)
    assert [event.text for event in heard] == [str(n) for n in range(50)]


def test_blocking_supervision_sees_the_end_soon(tmp_path: Path) -> None:
    launch = sh(tmp_path, say(TEXT) + "sleep 0.3\n" + say(FINAL))
    ended = supervise(watch_of(start(launch)))
    assert (ended.ended_by, ended.answer) == ("exit", "done")
    assert ended.wall_s < 1.5


def test_a_poll_after_the_end_gives_the_same(tmp_path: Path) -> None:
    watch = watch_of(start(sh(tmp_path, say(FINAL))))
    ended = finish(watch)
    assert watch.poll() is ended
    assert not watch.behind
    assert not runs(watch.worker.pid)
