"""Read certificates from PEM files."""

from __future__ import annotations

import ssl
from pathlib import Path


def pem_text(path: Path) -> str:
    """Return the text of a PEM file, without the characters outside ASCII.

    Such characters occur only in comments, but the module `ssl` would reject the text because of
    them. Raises OSError if the file cannot be read.
    """
    return path.read_text("ascii", errors="ignore")


def certificates(path: Path) -> str:
    """Return the text of a PEM file with certificates (see `pem_text`).

    Raises OSError if the file cannot be read, and ValueError if it contains no usable certificate.
    """
    text = pem_text(path)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=text)
    except (ssl.SSLError, ValueError):
        raise ValueError("the file contains no certificates in PEM format") from None
    return text
