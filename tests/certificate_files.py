"""A TLS certificate for the server of a test."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest


def make_certificate(folder: Path, host: str = "IP:127.0.0.1") -> tuple[Path, Path]:
    """Return the paths (key, certificate) of a new self-signed certificate for a host."""
    if not shutil.which("openssl"):
        pytest.skip("needs openssl")
    key, pem = folder / "key.pem", folder / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    command += ["-subj", "/CN=perseus-test", "-addext", f"subjectAltName={host}"]
    command += ["-keyout", str(key), "-out", str(pem)]
    subprocess.run(command, check=True, capture_output=True)
    return key, pem
