"""Certificates in PEM files."""

from __future__ import annotations

import ssl
from pathlib import Path


def certificates(path: Path) -> str:
    """A PEM file. Raises OSError, and ValueError when it holds no certificate that can be used."""
    text = path.read_text()
    try:
        ssl.create_default_context(cadata=text)
    except (ssl.SSLError, ValueError):
        raise ValueError("it holds no certificates in PEM format") from None
    return text
