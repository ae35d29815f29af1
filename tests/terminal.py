"""A pseudo-terminal for programs under test, and the text on its screen."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

CONTROL = re.compile(r"\x1b\[([?\d;]*)([A-Za-z])|(\r)|(\n)")
COLOUR = re.compile(r"\x1b\[(?:\d+;)*(?:3\d|9\d)(?:;\d+)*m")


class Terminal:
    """A context manager that runs a program on its own terminal. The size is in characters.

    `output` is all output so far, including control sequences.
    """

    def __init__(
        self,
        command: Sequence[str],
        columns: int = 100,
        cwd: Path | None = None,
        environment: Mapping[str, str] = {},
    ) -> None:
        self._side, other = pty.openpty()
        fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", 30, columns, 0, 0))
        inherited = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES")}

        def own_terminal() -> None:
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        self.process = subprocess.Popen(
            command,
            stdin=other,
            stdout=other,
            stderr=other,
            cwd=cwd,
            env=inherited | {"TERM": "xterm-256color"} | environment,
            preexec_fn=own_terminal,
        )
        os.close(other)
        self.output = ""

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *exc: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._side)

    def until(self, text: str, timeout_s: float = 120.0) -> None:
        """Read until the output contains the text."""
        deadline_s = time.monotonic() + timeout_s
        while text not in self.output:
            assert time.monotonic() < deadline_s, self.output
            assert self._read(), self.output

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        os.write(self._side, b"\x03")

    def end(self) -> list[str]:
        """Read until the program has ended; return the lines on the screen."""
        while self._read():
            pass
        self.process.wait(30)
        return screen(self.output)

    def _read(self) -> bool:
        try:
            new = os.read(self._side, 65536)
        except OSError:  # no process has the terminal open any more
            return False
        self.output += new.decode()
        return bool(new)


def screen(output: str) -> list[str]:
    """Return the lines on a screen that never scrolls, without colours."""
    lines, row, column, done = [""], 0, 0, 0
    for found in CONTROL.finditer(output):
        text = output[done : found.start()]
        lines[row] = lines[row][:column].ljust(column) + text + lines[row][column + len(text) :]
        column, done = column + len(text), found.end()
        number, command, start, down = found.groups()
        if start or command == "G":
            column = 0
        elif down:
            row, column = row + 1, 0
            lines += [""] * (row + 1 - len(lines))
        elif command == "A":
            row -= int(number or 1)
        elif command == "J":
            lines[row + 1 :] = []
            lines[row] = lines[row][:column]
        else:
            assert command in "mlh", found.group(0)  # colours, or the visibility of the cursor
    lines[row] = lines[row][:column] + output[done:]
    while lines and not lines[-1].strip():
        lines.pop()
    return [line.rstrip() for line in lines]
