"""Servers that run elsewhere: their certificates, and headers that are kept from strangers."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from urllib.parse import urlsplit

from perseus.host.certificates import certificates
from perseus.study.launchers import LAUNCHERS
from perseus.study.problems import Place, Problems
from perseus.study.remote import Remote
from perseus.study.server import Server

# Of HTTP and gRPC themselves: the libraries write these.
RESERVED = {"connection", "content-length", "content-type", "expect", "host", "te", "upgrade"}
RESERVED |= {"transfer-encoding", "user-agent", "inference-header-content-length"}


def remote_problems(at: Place, server: Server, folder: Path) -> Problems:
    """Of the server at a place; `folder` is where paths start from."""
    at = (*at, "remote")
    elsewhere = LAUNCHERS[server.launcher].elsewhere
    if elsewhere and server.remote is None:
        yield at, f"is missing: launcher {server.launcher!r} needs to know its host:"
    if not elsewhere and server.remote is not None:
        yield at, f"is of the launcher remote only, and launcher is {server.launcher!r}"
    if server.remote is not None:
        yield from _tls_problems((*at, "tls"), server.remote, folder)
        yield from _header_problems((*at, "headers"), server.remote)


def _tls_problems(at: Place, remote: Remote, folder: Path) -> Problems:
    if remote.tls in ("none", "system"):
        return
    try:
        certificates(folder / remote.tls)
    except OSError:
        yield at, f"there is no file {remote.tls!r} (none, system, or a PEM file of certificates)"
    except ValueError as error:
        yield at, f"{remote.tls!r} cannot be used: {error}"


def _header_problems(at: Place, remote: Remote) -> Problems:
    if remote.headers and remote.tls == "none":
        given = [key for key in ("grpc", "http", "metrics") if key in remote.model_fields_set]
        hosts = {"host": remote.host} | {key: _host(getattr(remote, key)) for key in given}
        for key, host in hosts.items():
            if not _on_loopback(host):
                yield (
                    at,
                    f"tls is none, and would send their values to {host!r} ({key}:) for all to"
                    " read: set tls:, or measure through a tunnel that ends on 127.0.0.1",
                )
    names = [header.name for header in remote.headers]
    for i, name in enumerate(names):
        if name in RESERVED or name.startswith("grpc-") or name.endswith("-bin"):
            yield (*at, i, "name"), f"{name!r} is not for us to set"
        if name in names[:i]:
            yield (*at, i, "name"), f"{name!r} is listed twice"


def _host(address: str) -> str | None:
    """Of host:port or of a URL; None where there is none."""
    try:
        return urlsplit(address if "://" in address else f"//{address}").hostname
    except ValueError:
        return None


def _on_loopback(host: str | None) -> bool:
    try:
        return ipaddress.ip_address(str(host)).is_loopback
    except ValueError:
        return host == "localhost"
