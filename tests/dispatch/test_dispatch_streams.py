"""Streams of any shape: bounded memory, nothing lost, never fatal."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest
from dispatchkit import python, run, sh

from bullswarm.dispatch.tail import Tail

FINAL = '{"kind":"final","text":"done"}'

HEAVY = """
import sys
piece = b"x" * (1 << 20)
for _ in range(int(sys.argv[1])):
    sys.stdout.buffer.write(piece)
sys.stdout.buffer.write(b'"}\\n' + sys.argv[2].encode() + b"\\n")
"""

CUT = """
import sys, time
for stream in (sys.stdout.buffer, sys.stderr.buffer):
    for byte in sys.argv[1].encode() + b"\\n":
        stream.write(bytes([byte]))
        stream.flush()
        time.sleep(0.002)
"""


def resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def test_a_line_of_70_kb_is_read_whole(tmp_path: Path) -> None:
    text = "y" * 70_000
    ended = run(sh(tmp_path, "cat", stdin=f'{{"kind":"final","text":"{text}"}}\n'))
    assert (ended.answer, ended.notes, ended.truncated_lines) == (text, (), 0)


@pytest.mark.parametrize("megabytes", [17, 200])
def test_an_endless_line_is_dropped_and_the_result_is_found(tmp_path: Path, megabytes: int) -> None:
    launch = python(tmp_path, HEAVY, str(megabytes), FINAL)
    before = resident_mb()
    highest = [before]

    def look() -> int:
        highest[0] = max(highest[0], resident_mb())
        return 0

    ended = run(launch, cancelled=look)
    assert max(highest[0], resident_mb()) - before < 64
    assert (ended.ended_by, ended.answer, ended.truncated_lines) == ("exit", "done", 1)
    assert any("too long" in note for note in ended.notes)
    # The capture that people are promised holds all of it.
    assert Path(launch.stdout).stat().st_size > megabytes << 20
    os.truncate(launch.stdout, 0)


def test_a_long_line_on_stderr_is_dropped(tmp_path: Path) -> None:
    ended = run(python(tmp_path, HEAVY.replace("stdout", "stderr"), "5", "the end"))
    assert (ended.stderr_tail, ended.truncated_lines) == ("the end\n", 1)


def test_text_that_is_too_long_is_cut_and_said(tmp_path: Path) -> None:
    ended = run(python(tmp_path, HEAVY, "5", "the end"), text_mode=True)
    assert len(ended.answer) == 4 * 1024 * 1024
    assert "its output was too long and was cut" in ended.notes


def test_characters_written_byte_by_byte_stay_whole(tmp_path: Path) -> None:
    ended = run(python(tmp_path, CUT, '{"kind":"final","text":"麺 é 🍜"}'))
    assert ended.answer == "麺 é 🍜"
    assert "麺 é 🍜" in ended.stderr_tail


@pytest.mark.parametrize(
    ("stdin", "bad"),
    [
        (f'{{"kind":"text"}}{FINAL}\n', 0),
        ('{"kind":"final",\n"text":"done"}\n', 0),
        (f"\0\0{FINAL}\0\n", 0),
        (f"oops\n[1]\n{FINAL}\n", 2),
        (f"\n\n  \r\n{FINAL}\r\n", 0),
        (f'{{"kind":"te\n{FINAL}\n', 1),
    ],
    ids=["two on a line", "one over two lines", "NUL", "no JSON", "blank", "broken off"],
)
def test_odd_lines_are_counted_and_the_result_is_found(
    tmp_path: Path, stdin: str, bad: int
) -> None:
    ended = run(sh(tmp_path, "cat", stdin=stdin))
    assert (ended.ended_by, ended.answer, ended.bad_lines) == ("exit", "done", bad)
    assert any("no JSON object" in note for note in ended.notes) is (bad > 0)


def test_broken_utf8_is_replaced(tmp_path: Path) -> None:
    script = r"""printf '{"kind":"final","text":"a\377b"}\n'; printf 'e\377\n' >&2"""
    ended = run(sh(tmp_path, script))
    assert (ended.answer, ended.stderr_tail) == ("a\ufffdb", "e\ufffd\n")


def test_the_tails_are_bounded(tmp_path: Path) -> None:
    script = "i=0; while [ $i -lt 300 ]; do i=$((i+1)); printf '%0100d\\n' $i >&2; done"
    ended = run(sh(tmp_path, script))
    assert len(ended.stderr_tail) == 8000
    assert ended.stderr_tail.endswith("300\n")


def test_a_file_is_followed_from_before_it_is_there_to_where_it_is_told_to_stop(
    tmp_path: Path,
) -> None:
    path = tmp_path / "stream"
    tail = Tail(str(path))
    assert tail.read() == b""
    path.write_bytes(b"one")
    assert (tail.read(), tail.read()) == (b"one", b"")
    with path.open("ab") as file:
        file.write(b"two")
    tail.stop()
    with path.open("ab") as file:
        file.write(b"three")
    assert (tail.read(), tail.read()) == (b"two", b"")
    tail.close()
