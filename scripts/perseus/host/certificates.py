"""Read certificates from PEM files."""

from __future__ import annotations

import ssl
from pathlib import Path


def pem_text(path: Path) -> str:
    """Return the text of a PEM file without the characters outside ASCII. Characters outside ASCII
    occur only in comments, but the module `ssl` rejects a text with such characters.

    Raises OSError.
    """
    return path.read_text("ascii", errors="ignore")


def certificates(path: Path) -> str:
    """Return the text of a PEM file. Raises OSError. Raises ValueError if the file contains no
    usable certificate."""
    text = pem_text(path)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=text)
    except (ssl.SSLError, ValueError):
        raise ValueError("the file contains no certificates in PEM format") from None
    return text
