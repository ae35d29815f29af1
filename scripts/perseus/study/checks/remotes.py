"""Check the key `remote` of servers: addresses, certificates, and headers that must stay secret."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from urllib.parse import urlsplit

from perseus.host.certificates import certificates
from perseus.study.launchers import LAUNCHERS
from perseus.study.problems import Place, Problems
from perseus.study.remote import Remote, one_name
from perseus.study.server import Server

# Headers that a study must not set, because the HTTP or gRPC library sets these headers.
RESERVED = {"connection", "content-length", "content-type", "expect", "host", "te", "upgrade"}
RESERVED |= {"transfer-encoding", "user-agent", "inference-header-content-length"}


def remote_problems(at: Place, server: Server, folder: Path) -> Problems:
    """Yield the problems of the key `remote` of a server."""
    at = (*at, "remote")
    elsewhere = LAUNCHERS[server.launcher].elsewhere
    if elsewhere and server.remote is None:
        yield at, f"is missing: launcher {server.launcher!r} needs the `host:` of the server"
    if not elsewhere and server.remote is not None:
        yield at, f"applies only to `launcher: remote`, but `launcher` is {server.launcher!r}"
    if server.remote is not None:
        yield from _address_problems(at, server.remote)
        yield from _tls_problems((*at, "tls"), server.remote, folder)
        yield from _header_problems((*at, "headers"), server.remote)


def _address_problems(at: Place, remote: Remote) -> Problems:
    for key, address in _given(remote).items():
        if not _can_be_reached(address):
            yield (
                (*at, key),
                f"{address!r} is not a valid address (each part of a host name has 1 to 63"
                " characters, and a port is a number from 1 to 65535)",
            )


def _given(remote: Remote) -> dict[str, str]:
    """Return the addresses that the user has configured for a remote server, by their keys (`host`,
    `grpc`, `http`, `metrics`)."""
    found = {"host": f"[{remote.host}]" if ":" in remote.host else remote.host}
    keys = [key for key in ("grpc", "http", "metrics") if key in remote.model_fields_set]
    return found | {key: getattr(remote, key) for key in keys}


def _can_be_reached(address: str) -> bool:
    """Return whether an address is a valid host name, host:port or URL. The function does not
    connect to the address."""
    try:
        parts = urlsplit(address if "://" in address else f"//{address}")
        host, port = parts.hostname or "", parts.port
        if ":" in host:
            ipaddress.ip_address(host)
        else:
            host.encode("idna")
    except ValueError:  # `encode` raises the subclass UnicodeError
        return False
    return bool(host) and port != 0


def _tls_problems(at: Place, remote: Remote, folder: Path) -> Problems:
    if remote.tls in ("none", "system"):
        return
    try:
        certificates(folder / remote.tls)
    except OSError:
        yield at, f"there is no file {remote.tls!r} (write none, system or the path of a PEM file)"
    except ValueError as error:
        yield at, f"{remote.tls!r} cannot be used: {error}"


def _header_problems(at: Place, remote: Remote) -> Problems:
    if remote.headers and remote.tls == "none":
        for key, address in _given(remote).items():
            if not _on_loopback(host := _host(address)):
                yield (
                    at,
                    f"`tls` is none, so the client would send the secret headers to {host!r}"
                    f" (`{key}:`) without encryption (set `tls:`, or use a tunnel whose local end"
                    " is at 127.0.0.1)",
                )
    names = [header.name for header in remote.headers]
    for i, name in enumerate(names):
        if name in RESERVED or name.startswith("grpc-") or name.endswith("-bin"):
            yield (*at, i, "name"), f"the client itself sets {name!r} (remove this header)"
        if name in names[:i]:
            yield (*at, i, "name"), f"{name!r} is listed twice"


def _host(address: str) -> str | None:
    try:
        return urlsplit(address if "://" in address else f"//{address}").hostname
    except ValueError:
        return None


def _on_loopback(host: str | None) -> bool:
    return host is not None and one_name(host) == "localhost"
