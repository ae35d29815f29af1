"""Show a live view of the running cell in the last lines of a terminal.

The cursor stays on an empty line above the view. Other programs may print to the same terminal, for
example Snakemake after Ctrl-C. Their output appears on the empty line and remains. To erase the
view, Perseus erases everything below the cursor, so Perseus need not know the size of the view.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from threading import Event, Thread
from typing import Final, TextIO, cast

from rich.console import (
    Console,
    ConsoleOptions,
    ConsoleRenderable,
    Group,
    RenderableType,
    RenderHook,
    RenderResult,
)
from rich.control import Control
from rich.file_proxy import FileProxy
from rich.segment import ControlType, Segment
from rich.table import Table
from rich.text import Text

from perseus.host.signals import signals_deferred
from perseus.measurement.progress.overview import KnownPeaks, Overview
from perseus.measurement.progress.state import OnProgress, Progress, TenantProgress

REFRESH_S: Final = 1.0
STYLES: Final = {"pass": "green", "fail": "red", "undecided": "yellow", "invalid": "magenta"}
MAX_PEAKS: Final = 8
UNKNOWN: Final = "\N{EN DASH}"
ERASE_BELOW: Final = "\x1b[J"
"""Control sequence that erases everything after the cursor. Text before the cursor remains, because
it may be an unfinished line of another program."""


@contextmanager
def live_view(
    stream: TextIO, overview: Overview | None = None, *, is_first: bool = True
) -> Iterator[OnProgress | None]:
    """Show the progress below all printed lines while the context is open.

    Yields the function that shows new progress. Yields None if `stream` is not a terminal, or a
    terminal that cannot move its cursor. Also yields None if another job already shows its view
    there (`is_first` is false).
    """
    console = Console(file=stream)
    if not (stream.isatty() and console.is_interactive):
        yield None
        return
    with redirect_stderr(cast(TextIO, FileProxy(console, sys.stderr))):
        if not is_first:
            console.push_render_hook(_AboveAnother())
            yield None
            return
        view = _View(console, overview)
        try:
            yield view.show
        finally:
            with signals_deferred():  # an interruption here would leave a partly erased view
                view.end()


class _AboveAnother(RenderHook):
    """Erases the view of another job before each printed line. Otherwise the line would overwrite
    only a part of the view. The other job shows its view again within REFRESH_S seconds."""

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_Sequence(ERASE_BELOW), *renderables]


class _View(RenderHook):
    """A live view. The console prints the view again after each printed line, and once a second."""

    def __init__(self, console: Console, overview: Overview | None) -> None:
        self._console, self._over, self._overview = console, Event(), overview
        self._progress: Progress | None = None
        self._thread = Thread(target=self._refresh, name="view", daemon=True)

    def show(self, progress: Progress) -> None:
        """Show the progress.

        The first call starts the thread that refreshes the view. This thread runs on the CPUs that
        the job uses at the time of the first call.
        """
        is_first, self._progress = self._progress is None, progress
        if is_first:
            self._console.push_render_hook(self)
            self._thread.start()
        self._console.print(Control())

    def end(self) -> None:
        if self._progress is not None:
            self._over.set()
            self._thread.join()
            self._console.pop_render_hook()
            self._console.control(_Sequence(ERASE_BELOW))

    def _refresh(self) -> None:
        while not self._over.wait(REFRESH_S):
            self._console.print(Control())

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_Sequence(ERASE_BELOW), *renderables, self]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        assert self._progress is not None
        view = rendered(self._progress, time.time(), self._overview)
        lines = console.render_lines(view, options, pad=False)[: max(console.height - 2, 0)]
        for line in lines:
            yield Segment.line()
            yield from line
        if lines:
            yield _Sequence(f"\r\x1b[{len(lines)}A")


class _Sequence(Control):
    """A control sequence for the terminal."""

    def __init__(self, text: str) -> None:
        self.segment = Segment(text, None, [(ControlType.CARRIAGE_RETURN,)])


def rendered(progress: Progress, now_s: float, overview: Overview | None = None) -> RenderableType:
    """Return the lines of the view: the cell, its tenants, and the dedicated peaks found so far.

    `now_s` is the time on the Unix clock in seconds.
    """
    cell = Text("  ").join(_of_cell(progress, now_s, overview))
    peaks = [each for each in overview.peaks if each.server == progress.server] if overview else []
    return Group(cell, _of_tenants(progress.tenants), *([_of_peaks(peaks)] if peaks else []))


def _of_cell(progress: Progress, now_s: float, overview: Overview | None) -> Iterator[Text]:
    if overview is not None:
        where = " on its host" if overview.hosts > 1 else ""
        yield Text(f"cell {overview.number} of {overview.total}{where}")
    yield Text(progress.cell, style="bold")
    if progress.attempt > 1:
        yield Text(f"attempt {progress.attempt}")
    if progress.phase is not None:
        yield Text(progress.phase.replace("_", " "))
    if count := sum(progress.windows.values()):
        verdicts = [
            Text(f"{progress.windows[verdict]} {verdict}", style)
            for verdict, style in STYLES.items()
            if verdict in progress.windows
        ]
        yield Text(f"{count} windows: ").append_text(Text(", ").join(verdicts))
    if progress.end_s is not None:
        left_s = max(progress.end_s - now_s, 0)
        in_all = f", {_minutes(overview.left_s(left_s, now_s))} for all cells" if overview else ""
        yield Text(f"about {_minutes(left_s)} left{in_all}")


def _minutes(seconds: float) -> str:
    return "{}:{:02} min".format(*divmod(round(seconds), 60))


def _of_tenants(tenants: tuple[TenantProgress, ...]) -> Table:
    table = _table("tenant", "offered/s", "latency/SLA")
    table.add_column("verdict", no_wrap=True)
    for heading in ("passed", "failed"):
        table.add_column(heading, justify="right", no_wrap=True)
    for each in tenants:
        table.add_row(
            each.name,
            _number(each.offered_rps),
            f"p{each.percentile:g} {_number(each.latency_ms)}/{each.sla_ms:g} ms",
            Text(each.verdict or UNKNOWN, style=STYLES.get(each.verdict or "", "")),
            _number(each.passed_rps),
            _number(each.failed_rps),
        )
    return table


def _of_peaks(peaks: Sequence[KnownPeaks]) -> Table:
    """Return a table of the dedicated peaks found so far, for the first MAX_PEAKS tenants."""
    table = _table(f"alone on {peaks[0].server}", "peak/s", "certified/s")
    for each in peaks[:MAX_PEAKS]:
        table.add_row(each.tenant, _numbers(each.estimates_rps), _numbers(each.certified_rps))
    if len(peaks) > MAX_PEAKS:
        table.add_row(f"{len(peaks) - MAX_PEAKS} more", "", "")
    return table


def _table(first: str, *numbers: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column(first, overflow="ellipsis")  # on a narrow terminal, only this column shrinks
    for heading in numbers:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _number(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.1f}"


def _numbers(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.1f}" for value in values) or UNKNOWN
