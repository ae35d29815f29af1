"""Load the templates of the pages, and embed libraries and figures."""

from __future__ import annotations

import base64
import re
from functools import cache
from pathlib import Path
from typing import Final
from urllib.parse import quote

import jinja2
from markupsafe import Markup, escape

from perseus.report.links import anchor
from perseus.report.numbers import significant
from perseus.report.shown_tables import plain_words

TEMPLATES: Final = Path(__file__).parent / "templates"
VENDORED: Final = Path(__file__).parent / "vendored"


@cache
def environment() -> jinja2.Environment:
    """Return the environment that renders the templates. It escapes all text except Markup."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        significant=significant, words=plain_words, breakable=breakable, anchor=anchor
    )
    made.globals.update(vendored=_vendored, packed=_packed)
    return made


def breakable(text: str) -> Markup:
    """Return the text as HTML in which a line never breaks before a percent sign. If the text is a
    single name, a line may break after the dots and underscores of the name."""
    escaped = str(escape(text)).replace(" %", "\N{NO-BREAK SPACE}%")
    if " " in text:
        return Markup(escaped)
    return Markup(re.sub(r"(?<=\w)([._])(?=[a-zA-Z])", r"\1<wbr>", escaped))


def data_url(svg: bytes) -> str:
    """Return an SVG file as a data URL, the source of an image. The URL is not in base64, because
    base64 would be longer."""
    return "data:image/svg+xml," + quote(svg.decode(), safe=" !$&'()*+,-./:;<=>?@[]^_`{|}~\"")


def _vendored(name: str) -> Markup:
    """Return the text of a JavaScript library or a style sheet for the page, with its licence."""
    licence = VENDORED / f"{name.partition('.')[0]}.LICENSE"
    texts = (path.read_text(encoding="utf-8").strip() for path in (licence, VENDORED / name))
    return Markup("/*\n{}\n*/\n{}".format(*texts))


def _packed(name: str) -> str:
    """Return a binary file in base64."""
    return base64.b64encode((VENDORED / name).read_bytes()).decode()
