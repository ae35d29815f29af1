"""A headless Chromium, of Debian's packages, that opens pages of the report."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

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
  found.asked = ask(document.querySelector("iframe").contentDocument);
  document.getElementById("found").textContent = JSON.stringify(found);
}
addEventListener("load", everything);
"""


def look(page: str, folder: Path, widths: tuple[int, ...], ask: str = "null") -> dict[str, Any]:
    """What a browser finds in a page at these widths in pixels, and of the JavaScript `ask`.

    By width as text: `width` that the document takes, `cut` the names of tables that do not fit,
    the number of `images` and of `broken` ones. `ask` is an expression, or statements that return
    something, of `page`, the document of the first width. `console` has what the browser said.
    """
    views = "".join(
        f'<iframe width="{width}" height="900" srcdoc="{html.escape(page)}"></iframe>'
        for width in widths
    )
    file = folder / "views.html"
    body = ask if "return" in ask else f"return {ask}"
    script = f"function ask(page) {{ {body} }}{LOOK}"
    file.write_text(f'<!doctype html>{views}<pre id="found"></pre><script>{script}</script>')
    done = run("--virtual-time-budget=20000", "--dump-dom", file.as_uri())
    (found,) = re.findall(r'<pre id="found">(.+?)</pre>', done.stdout)
    said = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return json.loads(html.unescape(found)) | {"console": said}


def pdf(page: Path, file: Path) -> None:
    """Print a page."""
    run("--no-pdf-header-footer", f"--print-to-pdf={file}", page.as_uri())


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    assert CHROMIUM is not None
    browser = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"]
    done = subprocess.run(
        [*browser, *arguments], capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr
    return done
