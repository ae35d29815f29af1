"""Tests of the live view, which appears only in a terminal and disappears when the job ends."""

from __future__ import annotations

import fcntl
import io
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import terminal
from exported import BEGUN, MEASURED
from rich.console import Console

from perseus.measurement.progress.live_view import MAX_PEAKS, rendered
from perseus.measurement.progress.overview import KnownPeaks, Overview

ROOT = Path(__file__).parents[3]
LINE = "[cell    0 s] bracket  a 40.0/s p95 62 ms: fail, about 90 s left"

# A job that reports one window and then runs the code `then`.
JOB = """
import os, sys, time
from pathlib import Path
sys.path[:0] = ["{root}/scripts", "{root}/tests"]
from exported import MEASURED
from perseus.host.job import job
from perseus.host.signals import terminate_as_exit
from perseus.measurement.progress.listeners import listeners

with job("{folder}/logs/s/measure/cell.log", ValueError) as say, listeners(
    "{folder}/logs/s/measure/cell.log", say
) as tell, terminate_as_exit():
    say("starting the server")
    tell(MEASURED.model_copy(update={{"end_s": time.time() + 89.5}}))
    say("{line}")
    {then}
print("the next job", file=sys.stderr)
"""
LINE_SAID = LINE.removeprefix("[cell    0 s] ")


def job(folder, then="time.sleep(0.1)"):
    code = JOB.format(root=ROOT, folder=folder, line=LINE_SAID, then=then)
    return [sys.executable, "-c", code]


def shown(progress, width=100, now_s=1000.0, overview=None, **options):
    """Return the lines of the live view."""
    console = Console(file=io.StringIO(), width=width, **options)
    console.print(rendered(progress, now_s, overview))
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_it_says_what_is_offered_how_it_goes_and_how_long_it_takes():
    cell, heading, a, b = shown(MEASURED, width=120)
    assert cell == (
        "cpu1.a-b.mix-1-1.r1  attempt 2  warm up  4 windows: 3 pass, 1 invalid  about 1:30 min left"
    )
    assert heading == "tenant  offered/s       latency/SLA  verdict  passed  failed"
    assert a == "a            40.0  p99.9 61.5/50 ms  fail       36.0    40.0"
    assert b == "b               –       p95 –/80 ms  –             –       –"  # noqa: RUF001


def test_it_says_how_much_of_the_run_is_left_and_which_peaks_are_known():
    peaks = (
        KnownPeaks("a", "cpu1", (171.2, 168.0), (102.4, 110.0)),
        KnownPeaks("b", "cpu1"),
        KnownPeaks("a", "cpu4", (600.0,), ()),
    )
    cell, _, _, _, heading, a, b = shown(MEASURED, 140, overview=Overview(3, 5, 200.0, peaks))
    assert cell.startswith("cell 3 of 5  cpu1.a-b.mix-1-1.r1  attempt 2")
    assert cell.endswith("about 1:30 min left, 4:50 min for all cells")
    assert heading == "alone on cpu1        peak/s   certified/s"
    assert a == "a              171.2, 168.0  102.4, 110.0"
    assert b == "b                         –             –"  # noqa: RUF001


def test_with_several_hosts_it_counts_the_cells_of_one_host():
    several = Overview(2, 3, 20.0, (), hosts=2, others_end_s=1300.0)
    cell = shown(MEASURED, 140, overview=several)[0]
    assert cell.startswith("cell 2 of 3 on its host  ")
    assert cell.endswith("about 1:30 min left, 5:00 min for all cells")


def test_of_many_peaks_it_shows_the_first():
    peaks = tuple(KnownPeaks(f"m{n}", "cpu1", (100.0,), (90.0,)) for n in range(12))
    lines = shown(MEASURED, 140, overview=Overview(1, 12, 0.0, peaks))
    assert len(lines) == 4 + 1 + MAX_PEAKS + 1 and lines[-1] == "4 more"


def test_before_the_first_window_and_after_the_time_is_over():
    assert shown(BEGUN)[0] == "far.a-b.peak.r1"
    assert shown(MEASURED, now_s=9000.0)[0].endswith("about 0:00 min left")


@pytest.mark.parametrize("width", [20, 40, 60])
def test_a_narrow_terminal_cuts_names_before_figures(width):
    tenants = (MEASURED.tenants[0].model_copy(update={"name": "a-tenant-with-a-long-name"}),)
    lines = shown(MEASURED.model_copy(update={"tenants": tenants}), width=width)
    assert max(map(len, lines)) <= width
    if width >= 60:
        assert "40.0" in lines[-1] and "fail" in lines[-1] and "a-ten" in lines[-1]


def test_lines_stand_above_the_view_which_is_gone_at_the_end(tmp_path):
    with terminal.Terminal(job(tmp_path, "time.sleep(1.3)")) as on:
        on.until("1:28 min left")
        standing = terminal.screen(on.output)
        assert standing[1:3] == [LINE, ""] and standing[3].startswith(MEASURED.cell)
        assert len(standing) == 3 + 4
        left = on.end()
    assert left == ["[cell    0 s] starting the server", LINE, "the next job"]
    assert (
        "\x1b[?25l" not in on.output
    )  # the view never hides the cursor, so a killed job need not restore it
    assert terminal.COLOUR.search(on.output)
    assert (tmp_path / "logs/s/measure/cell.log").read_text().splitlines() == left[:2]


def test_time_goes_on_between_windows(tmp_path):
    with terminal.Terminal(job(tmp_path, "time.sleep(3.3)")) as on:
        on.until("1:27 min left")
        on.end()
    drawn = on.output.count("p99.9 61.5")
    assert drawn <= 7  # drawn at the start and end, with each line, and once a second


@pytest.mark.parametrize(
    ("then", "says"),
    [
        ("raise ValueError('it serves nothing')", "cell: it serves nothing"),
        ("raise RuntimeError('a fault of ours')", "RuntimeError: a fault of ours"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", None),
    ],
)
def test_whatever_ends_the_job_ends_the_view(tmp_path, then, says):
    with terminal.Terminal(job(tmp_path, f"time.sleep(0.2); {then}")) as on:
        left = on.end()
    assert on.process.returncode != 0
    assert left[:2] == ["[cell    0 s] starting the server", LINE]
    assert (left[-1] == says) if says else (len(left) == 2)
    assert not any("61.5" in line for line in left)


def test_a_ctrl_c_ends_it_without_a_word(tmp_path):
    with terminal.Terminal(job(tmp_path, "time.sleep(60)")) as on:
        on.until("1:28 min left")
        on.interrupt()
        left = on.end()
    # the terminal itself writes ^C
    assert left == ["[cell    0 s] starting the server", LINE, "^C"]
    assert on.process.returncode == 128 + signal.SIGINT
    assert (tmp_path / "logs/s/measure/cell.log").read_text().endswith("[cell] interrupted\n")


def test_without_colours_figures_stay(tmp_path):
    with terminal.Terminal(job(tmp_path), environment={"NO_COLOR": "1"}) as on:
        left = on.end()
    assert "p99.9 61.5" in on.output and not terminal.COLOUR.search(on.output)
    assert left[-1] == "the next job"


@pytest.mark.parametrize("environment", [{"TERM": "dumb"}, {"TTY_INTERACTIVE": "0"}])
def test_a_terminal_that_cannot_move_its_cursor_has_plain_lines(tmp_path, environment):
    with terminal.Terminal(job(tmp_path), environment=environment) as on:
        left = on.end()
    assert left == ["[cell    0 s] starting the server", LINE, "the next job"]
    assert "\x1b" not in on.output


def test_only_one_job_of_a_run_has_a_view(tmp_path):
    plan = tmp_path / "logs/s/run.json"
    plan.parent.mkdir(parents=True)
    with plan.open("w") as of_another_job:
        fcntl.flock(of_another_job, fcntl.LOCK_EX)
        with terminal.Terminal(job(tmp_path)) as on:
            left = on.end()
    assert left == ["[cell    0 s] starting the server", LINE, "the next job"]
    assert "p99.9 61.5" not in on.output
    with terminal.Terminal(job(tmp_path)) as on:
        on.end()
    assert "p99.9 61.5" in on.output


def test_lines_of_a_job_stand_above_the_view_of_another_job(tmp_path):
    plan = tmp_path / "logs/s/run.json"
    plan.parent.mkdir(parents=True)
    plan.touch()
    beside = shlex.join(job(tmp_path, "pass"))
    with terminal.Terminal(job(tmp_path, f"os.system({beside!r}); time.sleep(2.3)")) as on:
        on.until("1:27 min left")
        during = terminal.screen(on.output)
        left = on.end()
    lines = ["[cell    0 s] starting the server", LINE]
    assert during[:6] == [*lines, *lines, "the next job", ""] and len(during) == 6 + 4
    assert left == [*lines, *lines, "the next job", "the next job"]


@pytest.mark.parametrize("environment", [{}, {"FORCE_COLOR": "1", "TTY_COMPATIBLE": "1"}])
def test_where_there_is_no_terminal_there_are_plain_lines(tmp_path, monkeypatch, environment):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    done = subprocess.run(job(tmp_path), capture_output=True, text=True)
    lines = ["[cell    0 s] starting the server", LINE, "the next job"]
    assert done.stderr.splitlines() == lines and done.stdout == ""


def test_on_a_narrow_terminal_nothing_stays_behind(tmp_path):
    with terminal.Terminal(job(tmp_path), columns=44) as on:
        left = on.end()
    text = " ".join(" ".join(left).split())
    assert text == " ".join(f"[cell 0 s] starting the server {LINE} the next job".split())
