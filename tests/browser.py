"""A headless Chromium, of Debian's packages, that opens pages of the report."""

from __future__ import annotations

import html
import json
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
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
function tell(found) {
  fetch(TO, { method: "POST", mode: "no-cors", body: JSON.stringify(found) });
}
addEventListener("load", () =>
  everything().then(tell, (error) => tell({ error: error.stack || String(error) })),
);
"""


def look(page: str, folder: Path, widths: tuple[int, ...], ask: str = "null") -> dict[str, Any]:
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
    file = folder / "views.html"
    body = ask if "return" in ask else f"return {ask}"
    with Listener(("127.0.0.1", 0), Told) as listener:
        to = f"const TO = 'http://127.0.0.1:{listener.server_port}/';"
        script = f"{to}async function ask(page) {{ {body} }}{LOOK}"
        file.write_text(f"<!doctype html>{views}<script>{script}</script>", encoding="utf-8")
        console_path = folder / "console.txt"
        with console_path.open("w") as console, started(file.as_uri(), stderr=console):
            threading.Thread(target=listener.serve_forever, daemon=True).start()
            listener.told.wait(MAX_S)
            listener.shutdown()
    assert listener.found, "the browser told nothing in time"
    found = json.loads(listener.found)
    assert "error" not in found, found["error"]
    lines = console_path.read_text(errors="replace").splitlines()
    return found | {"console": [line for line in lines if "CONSOLE" in line]}


class Listener(ThreadingHTTPServer):
    """Takes what one page tells; a browser may open connections that it does not use."""

    daemon_threads = True
    block_on_close = False
    found = ""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.told = threading.Event()


class Told(BaseHTTPRequestHandler):
    """The body of a request to a Listener."""

    server: Listener

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        self.server.found = self.rfile.read(length).decode()
        self.send_response(204)
        self.end_headers()
        self.server.told.set()

    def log_message(self, format: str, *args: Any) -> None:
        """Tests print nothing."""


@contextmanager
def started(*arguments: str, **streams: Any) -> Iterator[None]:
    """A browser that runs until the block ends."""
    with subprocess.Popen(command(*arguments), stdout=subprocess.DEVNULL, **streams) as browser:
        try:
            yield
        finally:
            browser.kill()


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
