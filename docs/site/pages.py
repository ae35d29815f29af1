"""Add pages from elsewhere in the repository to the site, correct links, and typeset formulas.

mkdocs calls `on_files` before it builds, then `on_page_markdown` and `on_page_content` for each
page. A link to a file that is no page of the site becomes text. Formulas become MathML, so that
browsers show them without any script.
"""

from __future__ import annotations

import html
import os
import re
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
PAGES = {
    "index.md": "README.md",
    "reference/configuration.md": "config/README.md",
    "contributing/index.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
}
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#\s]+)(#[^)\s]*)?\)")


def on_files(files: Files, config: Any) -> Files:
    for page, source in PAGES.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: Any, files: Files) -> str:
    uri = page.file.src_uri
    return with_links(markdown, ROOT / PAGES.get(uri, f"docs/{uri}"), ROOT / "docs" / uri)


def on_page_content(content: str, page: Page, config: Any, files: Files) -> str:
    return FORMULA.sub(as_mathml, content)


def as_mathml(found: re.Match[str]) -> str:
    """Return the MathML of a formula that pymdownx.arithmatex marked as a span or a div."""
    display = {"span": "inline", "div": "block"}[found.group(1)]
    return convert(html.unescape(found.group(2)), display=display)


def with_links(text: str, source: Path, page: Path) -> str:
    """Return the Markdown of a repository file, with links that work on the site."""
    pages = {(ROOT / path).resolve(): ROOT / "docs" / name for name, path in PAGES.items()}

    def turned(found: re.Match[str]) -> str:
        image, label, target, anchor = found.groups()
        if "://" in target:
            return found.group(0)
        path = (source.parent / target).resolve()
        inside = path.is_relative_to(ROOT / "docs") and path.is_file()
        linked = path if inside else pages.get(path)
        if linked is None:
            return label
        return f"{image}[{label}]({os.path.relpath(linked, page.parent)}{anchor or ''})"

    return LINK.sub(turned, text)
