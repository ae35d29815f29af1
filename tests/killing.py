"""Runs a workflow to its end while something kills its processes at random times.

What is killed stands in a story, and its seed: SEED=… KILLS=… make test-kills does the same again,
as far as time allows.
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
"""How long what is left of a run that was killed may take to end."""

WHOLE_S = 1800
"""How long a whole run may take."""

PLACES = ("results", "model_repository", "logs", ".snakemake/metadata", ".snakemake/incomplete")
KINDS = {
    "server": "/tritonserver --",
    "stub": "triton_python_backend_stub",
    "sender": "sender.main",
}
"""By words of its command line, what a process is that is not a job."""


def kills(few: int) -> int:
    """How often to kill: so often, unless KILLS says otherwise."""
    return int(os.environ.get("KILLS", few))


def seed() -> int:
    return int(os.environ.get("SEED", secrets.randbelow(10**6)))


class Run:
    """A command on a terminal of its own, with all that it starts."""

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
        ):  # none writes any more
            while not self._closed.is_set():
                if select.select([self._terminal], [], [], 0.1)[0]:
                    file.write(os.read(self._terminal, 65536))
        os.close(self._terminal)

    def close_terminal(self) -> None:
        """The kernel sends SIGHUP to what runs on it."""
        self._closed.set()
        self._listener.join()

    def lives(self) -> bool:
        if self.status is None and (waited := os.waitpid(self.pid, os.WNOHANG))[0]:
            self.status = os.waitstatus_to_exitcode(waited[1])
        return self.status is None

    def wait(self, seconds: float) -> bool:
        """Whether it still lives after so long."""
        deadline = time.monotonic() + seconds
        while self.lives() and time.monotonic() < deadline:
            time.sleep(0.02)
        return self.lives()

    def processes(self) -> dict[int, str]:
        """All that it has started, and itself, with what they are; not those that have ended."""
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
        """Wait until nothing is left of it."""
        deadline = time.monotonic() + within_s
        while self.lives() or self.processes():
            assert time.monotonic() < deadline, f"still there: {self.processes()}"
            time.sleep(0.1)
        self.close_terminal()


@dataclass
class Story:
    """What happened, to be told where it went wrong."""

    seed: int
    events: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return "\n".join([f"SEED={self.seed}", *self.events])


@dataclass
class Killer:
    """Kills the runs of a command in a folder, each after `longest_s` at most, until `is_whole`.

    `is_whole` raises AssertionError where a run that has ended left something amiss.
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
        """At last the command runs to its end, as any run does of which nothing was killed."""
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
        """Whether the machine has gone down."""
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
            run.lives()  # so that it is no zombie

    def _cut(self) -> None:
        """Of the newest files the end has not reached the disk; their times are as they were."""
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
        """All is there: results go, which is the end of it all, and at times what leads there."""
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
    """The story of the kills; what goes wrong in the block has it as a note."""
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
