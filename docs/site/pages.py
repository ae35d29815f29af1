"""Pages of the site that lie elsewhere in the repository: mkdocs calls `on_files` before it builds.

Links are turned so that they hold from docs/; what is no page of the site stays as text.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
PAGES = {
    "index.md": "README.md",
    "configuration.md": "config/README.md",
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
}
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#\s]+)(#[^)\s]*)?\)")


def on_files(files: Files, config: Any) -> Files:
    for page, source in PAGES.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=from_docs(text, ROOT / source)))
    return files


def from_docs(text: str, source: Path) -> str:
    """Markdown of a file of the repository with links as from a page of docs/."""
    pages = {(ROOT / path).resolve(): page for page, path in PAGES.items()}

    def turned(found: re.Match[str]) -> str:
        image, label, target, anchor = found.groups()
        if "://" in target:
            return found.group(0)
        path = (source.parent / target).resolve()
        inside = path.is_relative_to(ROOT / "docs") and path.is_file()
        page = str(path.relative_to(ROOT / "docs")) if inside else pages.get(path)
        return f"{image}[{label}]({page}{anchor or ''})" if page else label

    return LINK.sub(turned, text)
