"""Run a workflow to its end while processes of the workflow are killed at random times.

A Story records the random seed and the kills. `SEED=… KILLS=… make test-kills` draws the same times
of kills again. On a slower or faster machine, these kills interrupt other steps of the workflow.
"""

from __future__ import annotations

import contextlib
import os
import pty
import random
import secrets
import select
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

MARK = "PERSEUS_KILLED"
ENDS_S = 30
"""The time limit for the remaining processes of a killed run."""

WHOLE_S = 1800
"""The time limit for a complete run."""

PLACES = ("results", "model_repository", "logs", ".snakemake/metadata", ".snakemake/incomplete")
KINDS = {
    "server": "/tritonserver --",
    "stub": "triton_python_backend_stub",
    "sender": "sender.main",
}
"""Words in the command line of a process, by kind of process. Any other process is a job."""


def kills(few: int) -> int:
    return int(os.environ.get("KILLS", few))


def seed() -> int:
    return int(os.environ.get("SEED", secrets.randbelow(10**6)))


class Run:
    """A command on its own terminal, with all processes that it starts."""

    def __init__(self, root: Path, command: Sequence[str], output: Path) -> None:
        self._mark = f"{MARK}={secrets.token_hex(8)}"
        self._output = output
        self.status: int | None = None
        environment = os.environ | dict([self._mark.split("=")])
        self.pid, self._terminal = pty.fork()
        if self.pid == 0:
            os.chdir(root)
            os.execvpe(command[0], list(command), environment)
        self._closed = threading.Event()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        with (
            self._output.open("ab") as file,
            contextlib.suppress(OSError),
        ):  # reading fails if no process has the terminal open
            while not self._closed.is_set():
                if select.select([self._terminal], [], [], 0.1)[0]:
                    file.write(os.read(self._terminal, 65536))
        os.close(self._terminal)

    def close_terminal(self) -> None:
        """Close the terminal: the kernel sends SIGHUP to its processes."""
        self._closed.set()
        self._listener.join()

    def lives(self) -> bool:
        if self.status is None and (waited := os.waitpid(self.pid, os.WNOHANG))[0]:
            self.status = os.waitstatus_to_exitcode(waited[1])
        return self.status is None

    def wait(self, seconds: float) -> bool:
        """Return whether the command still runs after this time."""
        deadline = time.monotonic() + seconds
        while self.lives() and time.monotonic() < deadline:
            time.sleep(0.02)
        return self.lives()

    def processes(self) -> dict[int, str]:
        """Return the command and its descendants that still run: their kinds, by id."""
        found = {}
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if self._mark.encode() in (folder / "environ").read_bytes().split(b"\0"):
                    words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                    found[int(folder.name)] = words
        kinds = KINDS.items()
        named = {
            pid: next((kind for kind, sign in kinds if sign in words), "job")
            for pid, words in found.items()
        }
        return {pid: "snakemake" if pid == self.pid else name for pid, name in named.items()}

    def ends(self, within_s: float = ENDS_S) -> None:
        """Wait until no process of the command is left."""
        deadline = time.monotonic() + within_s
        while self.lives() or self.processes():
            assert time.monotonic() < deadline, f"still there: {self.processes()}"
            time.sleep(0.1)
        self.close_terminal()


@dataclass
class Story:
    """The random seed and the events of a test. A failed test prints both."""

    seed: int
    events: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return "\n".join([f"SEED={self.seed}", *self.events])


@dataclass
class Killer:
    """Runs a command in a folder again and again, and kills its processes at random times.

    The time between two kills is at most `longest_s`. After a complete run, `is_whole` raises
    AssertionError if the results are wrong.
    """

    root: Path
    command: Sequence[str]
    longest_s: float
    is_whole: Callable[[], None]
    story: Story

    def __post_init__(self) -> None:
        self._random = random.Random(self.story.seed)
        self._left = 0
        self.output_path = self.root / "output.txt"

    def kill_and_finish(self, kills: int) -> None:
        """Kill processes `kills` times. Then run the command to its end, which must succeed."""
        self._left = kills
        while self._left:
            self._one_run()
        run = Run(self.root, self.command, self.output_path)
        run.ends(WHOLE_S)
        self._tell(f"ends with {run.status}")
        assert run.status == 0, self.explained()
        self.is_whole()

    def _one_run(self) -> None:
        before, run = self._left, Run(self.root, self.command, self.output_path)
        down = False
        while self._left and run.wait(self._random.uniform(0.1, self.longest_s)):
            self._left -= 1
            down = self._kill(run)
        if not self._left and run.lives():
            self._kill_snakemake(run)
        run.ends()
        self._tell(f"ends with {run.status}")
        if down:
            self._cut()
        elif run.status == 0:
            self.is_whole()
            self._begin_anew()
        assert run.status == 0 or self._left < before, self.explained()

    def _kill(self, run: Run) -> bool:
        """Kill in one of several ways, chosen at random; return whether this simulates a crash of
        the machine."""
        ways = (self._kill_snakemake, self._kill_another, self._close, self._go_down)
        way = self._random.choice(ways)
        way(run)
        return way == self._go_down

    def _kill_snakemake(self, run: Run) -> None:
        self._tell("kill -9 of Snakemake")
        _kill(run.pid)

    def _kill_another(self, run: Run) -> None:
        others = sorted((kind, pid) for pid, kind in run.processes().items() if pid != run.pid)
        of_all = others or [("snakemake", run.pid)]
        kind = self._random.choice(sorted({kind for kind, _ in of_all}))
        self._tell(f"kill -9 of {kind}")
        _kill(self._random.choice([pid for of, pid in of_all if of == kind]))

    def _close(self, run: Run) -> None:
        self._tell("terminal closed")
        run.close_terminal()

    def _go_down(self, run: Run) -> None:
        self._tell("power off")
        while left := run.processes():
            for pid in left:
                _kill(pid)
            run.lives()  # reap a killed process, so that it does not stay as a zombie

    def _cut(self) -> None:
        """Truncate the newest files, as if a crash had lost their ends. Their times stay."""
        files = [path for place in PLACES for path in (self.root / place).rglob("*")]
        plain = sorted(
            (path for path in files if path.is_file() and path.stat().st_size),
            key=lambda path: path.stat().st_mtime_ns,
        )
        for path in plain[-self._random.randint(1, 6) :]:
            seen = path.stat()
            keep = self._random.choice((0, self._random.randrange(seen.st_size)))
            os.truncate(path, keep)
            os.utime(path, ns=(seen.st_atime_ns, seen.st_mtime_ns))
            self._tell(f"{path.relative_to(self.root)} keeps {keep} of {seen.st_size} bytes")

    def _begin_anew(self) -> None:
        """Delete the results of a complete run, and at times also the model repositories."""
        places = self._random.choice((("results",), ("results", "model_repository")))
        self._tell(f"all is there; {' and '.join(places)} go")
        for place in places:
            shutil.rmtree(self.root / place)

    def _tell(self, event: str) -> None:
        self.story.events.append(event)
        print(event, flush=True)

    def explained(self) -> str:
        text = self.output_path.read_text(errors="replace")
        return f"{self.story}\n{text[-6000:]}"


@contextlib.contextmanager
def told(seed: int) -> Iterator[Story]:
    """Yield a Story. If the block raises an exception, add the Story to the exception."""
    story = Story(seed)
    print(f"SEED={seed}", flush=True)
    try:
        yield story
    except BaseException as error:
        error.add_note(str(story))
        raise


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
