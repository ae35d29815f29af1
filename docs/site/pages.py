"""Pages of the site that lie elsewhere in the repository, and links to and from them.

mkdocs calls `on_files` before it builds, and `on_page_markdown` for each page. A link to what is no
page of the site stays as text.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
PAGES = {
    "index.md": "README.md",
    "reference/configuration.md": "config/README.md",
    "contributing/index.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
}
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#\s]+)(#[^)\s]*)?\)")


def on_files(files: Files, config: Any) -> Files:
    for page, source in PAGES.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: Any, files: Files) -> str:
    uri = page.file.src_uri
    return with_links(markdown, ROOT / PAGES.get(uri, f"docs/{uri}"), ROOT / "docs" / uri)


def with_links(text: str, source: Path, page: Path) -> str:
    """Markdown of a file of the repository, with links as they hold from its page in docs/."""
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
