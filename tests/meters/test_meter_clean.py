from __future__ import annotations

from meterkit import NOW, after, five, reading, week

from bullswarm.meters import clean, flag_sliding, settle


def test_a_reading_whose_reset_has_passed_is_not_a_reading() -> None:
    read = clean(reading(five(99, after(-1)), at=after(-60)), NOW)
    assert read.windows == ()
    assert read.source == "none"
    assert read.observed_at is None
    assert read.note is not None
    assert "stale" in read.note
    assert "5-hour" in read.note


def test_only_the_window_whose_reset_passed_is_dropped() -> None:
    read = clean(reading(five(99, after(-1)), week(30, after(days=2)), at=after(-60)), NOW)
    assert [w.kind for w in read.windows] == ["weekly"]
    assert read.source == "live"


def test_a_window_without_a_reset_is_over_after_its_own_length() -> None:
    assert clean(reading(five(40), at=after(-299)), NOW).windows
    assert not clean(reading(five(40), at=after(-301)), NOW).windows


def test_a_reading_that_holds_is_left_alone() -> None:
    read = reading(five(40, after(10)), week(3))
    assert clean(read, NOW) is read


def test_a_single_drop_before_the_reset_is_held_as_unconfirmed() -> None:
    accepted = reading(week(53, after(days=3)), at=after(-10))
    settled = settle(reading(week(0, after(days=7))), accepted, [accepted])
    assert settled.windows == accepted.windows
    assert settled.note is not None
    assert "unconfirmed" in settled.note


def test_two_agreeing_readings_with_a_later_reset_are_accepted_whatever_their_value() -> None:
    before = reading(week(53, after(days=3)), at=after(-10))
    for values in ((0, 1), (1, 1), (0, 0), (20, 21)):
        first = reading(week(values[0], after(days=7)), at=after(-5))
        second = reading(week(values[1], after(days=7)))
        held = settle(first, before, [before])
        settled = settle(second, held, [before, first])
        assert settled.windows == second.windows
        assert settled.note is not None
        assert "reset early" in settled.note


def test_two_drops_that_name_different_resets_do_not_agree() -> None:
    before = reading(week(53, after(days=3)), at=after(-10))
    first = reading(week(0, after(days=7)), at=after(-5))
    second = reading(week(0, after(days=5)))
    assert settle(second, before, [before, first]).windows == before.windows


def test_a_flicker_that_comes_back_is_never_shown() -> None:
    before = reading(week(53, after(days=3)), at=after(-10))
    flicker = reading(week(0, after(days=7)), at=after(-5))
    back = reading(week(54, after(days=3)))
    assert settle(back, settle(flicker, before, [before]), [before, flicker]).windows == (
        back.windows
    )


def test_a_drop_after_the_reset_is_the_reset() -> None:
    before = reading(five(90, after(-2)), at=after(-10))
    read = reading(five(1, after(290)))
    assert settle(read, before, [before]) is read or settle(read, before, [before]) == read


def test_another_account_starts_afresh() -> None:
    before = reading(week(53, after(days=3)), at=after(-10), account="old")
    read = reading(week(0, after(days=7)), account="new")
    assert settle(read, before, [before]) == read


def test_a_reset_that_moves_forward_at_each_read_is_flagged_and_gives_no_pace() -> None:
    points = [reading(week(99, after(days=2 + n)), at=after(-40 + 10 * n)) for n in range(4)]
    flagged = flag_sliding(points[-1], points)
    assert flagged.note is not None
    assert "keeps moving" in flagged.note
    assert flagged.windows[0].resets_at is None
    assert flagged.windows[0].used_pct == 99


def test_a_reset_recomputed_as_a_week_from_each_read_is_flagged() -> None:
    points = [reading(week(5, after(days=7, minutes=30 * n)), at=after(30 * n)) for n in range(9)]
    assert flag_sliding(points[-1], points).windows[0].resets_at is None


def test_one_early_reset_is_not_a_sliding_anchor() -> None:
    points = [
        reading(week(50, after(days=2)), at=after(-20)),
        reading(week(1, after(days=7)), at=after(-10)),
        reading(week(1, after(days=7)), at=NOW),
    ]
    assert flag_sliding(points[-1], points) is points[-1]


def test_resets_that_pass_one_after_the_other_are_not_sliding() -> None:
    points = [reading(five(50, after(300 * (n + 1))), at=after(300 * n + 20)) for n in range(6)]
    assert flag_sliding(points[-1], points) is points[-1]


def test_a_window_that_has_not_started_is_not_sliding() -> None:
    points = [reading(week(0, after(days=7, minutes=30 * n)), at=after(30 * n)) for n in range(9)]
    assert flag_sliding(points[-1], points) is points[-1]


def test_the_jitter_of_a_reset_is_not_a_move() -> None:
    points = [reading(week(5, after(days=3, minutes=n % 2)), at=after(n)) for n in range(9)]
    assert flag_sliding(points[-1], points) is points[-1]
