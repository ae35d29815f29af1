"""Certificates in PEM files."""

from __future__ import annotations

import ssl
from pathlib import Path


def pem_text(path: Path) -> str:
    """A PEM file, in ASCII as `ssl` wants it: what else there is can only be a comment. Raises
    OSError."""
    return path.read_text("ascii", errors="ignore")


def certificates(path: Path) -> str:
    """A PEM file. Raises OSError, and ValueError when it holds no certificate that can be used."""
    text = pem_text(path)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=text)
    except (ssl.SSLError, ValueError):
        raise ValueError("it holds no certificates in PEM format") from None
    return text
