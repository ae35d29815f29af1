"""What is wrong with the remote servers of a configuration."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from perseus.host.certificates import certificates

Json = Any
# Of HTTP and gRPC themselves: the libraries write these.
RESERVED = {"connection", "content-length", "content-type", "expect", "host", "te", "upgrade"}
RESERVED |= {"transfer-encoding", "user-agent", "inference-header-content-length"}


def remote_problems(servers: Sequence[tuple[str, dict[str, Json]]], root: Path) -> Iterator[str]:
    """Works on whatever is well-formed; `servers` are (place, server), `root` that of paths."""
    for at, server in servers:
        launcher, remote = server.get("launcher"), server.get("remote")
        if launcher == "remote" and remote is None:
            yield f"{at}.remote: is missing: launcher 'remote' needs to know its host:"
        if launcher != "remote" and remote is not None:
            yield f"{at}.remote: is of the launcher remote only, and launcher is {launcher!r}"
        if isinstance(remote, Mapping):
            yield from _tls_problems(f"{at}.remote", remote, root)
            yield from _header_problems(f"{at}.remote", remote)


def priority_problems(
    place: str, tenant: Mapping[str, Json], server: Mapping[str, Json]
) -> Iterator[str]:
    """A tenant at `place` with a priority on a server whose rate limiter we do not set up."""
    if server.get("launcher") == "remote" and tenant.get("priority") is not None:
        yield (
            f"{place}.priority: server {server['name']!r} is remote, and priorities need a server"
            " that is started here"
        )


def _tls_problems(at: str, remote: Mapping[str, Json], root: Path) -> Iterator[str]:
    tls = remote.get("tls")
    if not isinstance(tls, str) or tls in ("none", "system"):
        return
    try:
        certificates(root / tls)
    except OSError:
        yield f"{at}.tls: there is no file {tls!r} (none, system, or a PEM file of certificates)"
    except ValueError as error:
        yield f"{at}.tls: {tls!r} cannot be used: {error}"


def _header_problems(at: str, remote: Mapping[str, Json]) -> Iterator[str]:
    headers, seen = remote.get("headers"), set[str]()
    if headers and remote.get("tls") == "none":
        hosts = {key: _host(remote[key]) for key in ("grpc", "http", "metrics") if key in remote}
        hosts = {"host": remote.get("host")} | hosts
        for key in (key for key, host in hosts.items() if not _on_loopback(host)):
            yield (
                f"{at}.headers: tls is none, and would send their values to {hosts[key]!r} ({key}:)"
                " for all to read: set tls:, or measure through a tunnel that ends on 127.0.0.1"
            )
    for i, header in enumerate(headers if isinstance(headers, list) else []):
        name = header.get("name") if isinstance(header, Mapping) else None
        if not isinstance(name, str):
            continue
        if name in RESERVED or name.startswith("grpc-") or name.endswith("-bin"):
            yield f"{at}.headers[{i}].name: {name!r} is not for us to set"
        if name in seen:
            yield f"{at}.headers[{i}].name: {name!r} is listed twice"
        seen.add(name)


def _host(address: Json) -> Json:
    """Of host:port or of a URL."""
    text = str(address)
    return urlsplit(text if "://" in text else f"//{text}").hostname


def _on_loopback(host: Json) -> bool:
    try:
        return ipaddress.ip_address(str(host)).is_loopback
    except ValueError:
        return host == "localhost"
