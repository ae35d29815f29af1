"""A headless Chromium, of Debian's packages, that opens pages of the report."""

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
"""A page has so long to tell what it finds."""

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


def look(page: str, widths: tuple[int, ...], ask: str = "null") -> dict[str, Any]:
    """What a browser finds in a page at these widths in pixels, and of the JavaScript `ask`.

    By width as text: `width` that the document takes, `cut` the names of tables that do not fit,
    the number of `images` and of `broken` ones. `ask` is an expression, or statements that return
    something and may await, of `page`, the document of the first width. `console` has what the
    browser said.
    """
    views = "".join(
        f'<iframe width="{width}" height="900" srcdoc="{html.escape(page)}"></iframe>'
        for width in widths
    )
    body = ask if "return" in ask else f"return {ask}"
    script = f"async function ask(page) {{ {body} }}{LOOK}"
    return shared().look(f"<!doctype html>{views}<script>{script}</script>")


@cache
def shared() -> Browser:
    """The browser of this process, which looks at one page after the other."""
    return Browser()


class Browser:
    """A browser that asks for a page, tells what it finds there, and asks for the next."""

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
    """A request of a Browser: for the next page, or with what it found in one."""

    def __init__(self, browser: Browser, *arguments: Any) -> None:
        self.browser = browser
        super().__init__(*arguments)

    def do_GET(self) -> None:
        if self.path != "/":  # an icon
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
        """Tests print nothing."""


def command(*arguments: str) -> list[str]:
    assert CHROMIUM is not None
    return [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
            *arguments]  # fmt: skip


def pdf(page: Path, file: Path) -> None:
    """Print a page."""
    run("--no-pdf-header-footer", f"--print-to-pdf={file}", page.as_uri())


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        command(*arguments), capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr
    return done
