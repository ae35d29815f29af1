"""A headless Chromium from Debian's packages, which opens pages of the report."""

from __future__ import annotations

import atexit
import html
import json
import os
import shutil
import subprocess
import threading
from functools import cache, partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Empty, Queue
from tempfile import TemporaryFile
from typing import Any

import pytest

MAX_S = 100.0
"""The time that a page has to report what it finds."""

CHROMIUM = shutil.which("chromium")
needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="no chromium on the path (Debian's package of that name)"
)

LOOK = """
async function look(view) {
  const page = view.contentDocument;
  const found = { width: page.documentElement.scrollWidth, cut: [], broken: 0, images: 0 };
  for (const part of page.querySelectorAll(".scroll"))
    if (part.scrollWidth > part.clientWidth) found.cut.push(part.getAttribute("aria-label"));
  for (const image of page.images) {
    await image.decode().catch(() => found.broken++);
    found.images++;
  }
  return found;
}
async function everything() {
  const found = {};
  for (const view of document.querySelectorAll("iframe")) found[view.width] = await look(view);
  found.asked = await ask(document.querySelector("iframe").contentDocument);
  return found;
}
async function tell(found) {
  await fetch("/", { method: "POST", body: JSON.stringify(found) });
  location.reload();
}
addEventListener("load", () =>
  everything().then(tell, (error) => tell({ error: error.stack || String(error) })),
);
"""


def look(
    page: str, widths: tuple[int, ...], ask: str = "null", height: int = 900
) -> dict[str, Any]:
    """Return what a browser finds in a page at these widths and this height in pixels.

    The result has one entry for each width (such as "1100"), which contains: `width`, the width of
    the document; `cut`, the names of the tables that are too wide for the page; `images`, the
    number of images; and `broken`, the number of images that do not load. The result also contains
    `asked`, the value of the JavaScript `ask`, and `console`, the console messages. `ask` is an
    expression, or statements with a `return`. `ask` may use `await` and `page`, the document at the
    first width.
    """
    views = "".join(
        f'<iframe width="{width}" height="{height}" srcdoc="{html.escape(page)}"></iframe>'
        for width in widths
    )
    body = ask if "return" in ask else f"return {ask}"
    script = f"async function ask(page) {{ {body} }}{LOOK}"
    return shared().look(f"<!doctype html>{views}<script>{script}</script>")


@cache
def shared() -> Browser:
    """Return the one browser of this process, which opens one page after the other."""
    return Browser()


class Browser:
    """A browser that fetches a page, posts what it finds there, and fetches the next page."""

    def __init__(self) -> None:
        self.pages: Queue[str] = Queue()
        self.told: Queue[str] = Queue()
        listener = ThreadingHTTPServer(("127.0.0.1", 0), partial(Asked, self))
        listener.daemon_threads = True
        threading.Thread(target=listener.serve_forever, daemon=True).start()
        self.console = TemporaryFile("a+", errors="replace")  # noqa: SIM115
        process = subprocess.Popen(
            command(f"http://127.0.0.1:{listener.server_port}/"),
            stdout=subprocess.DEVNULL,
            stderr=self.console,
        )
        atexit.register(process.kill)

    def look(self, page: str) -> dict[str, Any]:
        before = self.console.seek(0, os.SEEK_END)
        self.pages.put(page)
        try:
            found = json.loads(self.told.get(timeout=MAX_S))
        except Empty:
            shared.cache_clear()
            raise AssertionError("the browser told nothing in time") from None
        assert "error" not in found, found["error"]
        self.console.seek(before)
        return found | {"console": [line for line in self.console if "CONSOLE" in line]}


class Asked(BaseHTTPRequestHandler):
    """A request of a Browser: a GET fetches the next page, a POST brings the findings."""

    def __init__(self, browser: Browser, *arguments: Any) -> None:
        self.browser = browser
        super().__init__(*arguments)

    def do_GET(self) -> None:
        if self.path != "/":  # the browser asks for an icon
            self.send_error(404)
            return
        self.answer(self.browser.pages.get())

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        self.browser.told.put(self.rfile.read(length).decode())
        self.answer("")

    def answer(self, page: str) -> None:
        content = page.encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Keep the output of the tests free of access logs."""


def command(*arguments: str) -> list[str]:
    assert CHROMIUM is not None
    return [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
            *arguments]  # fmt: skip


def pdf(page: Path, file: Path) -> None:
    """Print a page into a PDF file."""
    run("--no-pdf-header-footer", f"--print-to-pdf={file}", page.as_uri())


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        command(*arguments), capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr
    return done
