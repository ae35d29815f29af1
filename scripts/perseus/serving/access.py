"""Define the access to a server: TLS, and the headers of every call to the server.

The value of a header contains a secret from an environment variable. The `repr` of a header or an
access does not show the secret. Perseus sends the secret to each client process over a pipe.
`Access.hide` removes secrets from the server's messages before Perseus shows these messages.
"""

from __future__ import annotations

import http.client
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import grpc
import tritonclient.grpc as triton

from perseus.host.certificates import certificates, pem_text
from perseus.serving.failures import ServerError
from perseus.study.remote import Remote

MAX_BYTES = 2**24  # largest response in bytes, except to inference requests
HIDDEN = "<hidden>"
MIN_SECRET_CHARACTERS = 4
"""Perseus hides a secret in messages only if the secret has at least this number of characters. A
shorter secret may be part of ordinary words, which Perseus would hide, too."""
CHANNEL_OPTIONS = [
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.enable_retries", 0),
    ("grpc.enable_http_proxy", 0),
]
"""Options of every gRPC channel: messages may have any size, gRPC never repeats a call, and gRPC
uses no proxy."""


@dataclass(frozen=True)
class Header:
    """A header whose value consists of `prefix` and a secret."""

    name: str
    prefix: str
    secret: str = field(repr=False)

    @property
    def value(self) -> str:
        return self.prefix + self.secret


@dataclass(frozen=True)
class Access:
    """The certificates and headers for calls to one server.

    `ca_pem` contains the certificates of trusted authorities; it is None without TLS.
    """

    ca_pem: str | None = field(default=None, repr=False)
    headers: tuple[Header, ...] = ()

    @property
    def scheme(self) -> str:
        return "http" if self.ca_pem is None else "https"

    def values(self, scheme: str | None = None) -> dict[str, str]:
        """Return the headers by name.

        If the server uses TLS but `scheme` is http, the result is empty, because a call without TLS
        must not carry secrets.
        """
        if self.ca_pem is not None and scheme == "http":
            return {}
        return {header.name: header.value for header in self.headers}

    def ssl_context(self, *protocols: str) -> ssl.SSLContext | None:
        """Return the TLS context for a connection that offers the application protocols `protocols`
        (ALPN); None without TLS."""
        return None if self.ca_pem is None else _context(self.ca_pem, protocols)

    def grpc_client(self, address: str) -> triton.InferenceServerClient:
        """Return Triton's own gRPC client, which Perseus uses for all calls except inferences.

        Pass the headers from `values()` with each call, because the client does not add headers.
        """
        credentials = self._grpc_credentials()
        return triton.InferenceServerClient(
            address, ssl=credentials is not None, creds=credentials, channel_args=CHANNEL_OPTIONS
        )

    def _grpc_credentials(self) -> grpc.ChannelCredentials | None:
        if self.ca_pem is None:
            return None
        return grpc.ssl_channel_credentials(self.ca_pem.encode())

    def get(self, url: str, timeout_s: float) -> bytes:
        """Read `url` by HTTP, and return the body of the response.

        Raises OSError if there is no response, if the URL is invalid, or if the status is not 2xx.
        The function follows no redirect, because a redirect would send the headers to another
        server.
        """
        deadline_s = time.monotonic() + timeout_s
        try:
            request = urllib.request.Request(url, headers=self.values(urlsplit(url).scheme))
            with _opener(self.ca_pem).open(request, timeout=timeout_s) as reply:
                return read_within(reply, deadline_s)
        except urllib.error.HTTPError as error:
            with error:
                raise OSError(f"HTTP {error.code} {self.hide(str(error.reason))}") from None
        except http.client.HTTPException as error:
            raise OSError(f"no HTTP response ({type(error).__name__})") from None
        except ValueError as error:  # for example, a host name with two dots in a row
            raise OSError(f"no HTTP response ({error})") from None

    def hide(self, text: str) -> str:
        """Return `text` with HIDDEN in place of each secret that has at least
        MIN_SECRET_CHARACTERS."""
        for header in self.headers:
            if len(header.secret) >= MIN_SECRET_CHARACTERS:
                text = text.replace(header.secret, HIDDEN)
        return text


PLAIN = Access()
"""Access without TLS and headers, for every server that Perseus starts."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args: Any) -> None:
        return None


@cache
def _opener(ca_pem: str | None) -> urllib.request.OpenerDirector:
    # An empty ProxyHandler ignores the proxies of the environment.
    handlers: list[urllib.request.BaseHandler] = [urllib.request.ProxyHandler({}), _NoRedirect()]
    if ca_pem is not None:
        handlers.append(urllib.request.HTTPSHandler(context=_context(ca_pem)))
    return urllib.request.build_opener(*handlers)


@cache
def _context(ca_pem: str, protocols: tuple[str, ...] = ()) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=ca_pem)
    if protocols:
        context.set_alpn_protocols(protocols)
    return context


class _Readable(Protocol):
    length: int | None
    """Number of remaining bytes; None if the server did not state the length."""

    def read1(self, n: int = -1, /) -> bytes: ...


def read_within(reply: _Readable, deadline_s: float) -> bytes:
    """Return the whole body of an HTTP response.

    Raises OSError if the body is truncated, or longer than MAX_BYTES bytes. Raises TimeoutError if
    the body is incomplete at the time `deadline_s` on the monotonic clock. The timeout of the
    socket alone would not limit the total time, because this timeout begins again with every byte.
    """
    parts: list[bytes] = []
    length = reply.length
    while part := reply.read1(2**16):
        parts.append(part)
        if sum(map(len, parts)) > MAX_BYTES:
            raise OSError(f"the response has more than {MAX_BYTES} bytes")
        if time.monotonic() > deadline_s:
            raise TimeoutError("the response did not end in time")
    body = b"".join(parts)
    if length is not None and len(body) < length:  # read1 does not report a truncated body
        raise OSError(f"the response ended after {len(body)} of {length} bytes")
    return body


# Access from the configuration


def read_access(remote: Remote, environment: Mapping[str, str]) -> Access:
    """Return the access to a remote server.

    The secrets of the headers come from the environment variables in `environment`. Raises
    ServerError if a variable is missing or cannot be the value of a header, or if the file of
    certificates is unusable. The message names all these problems.
    """
    problems: list[str] = []
    headers: list[Header] = []
    for each in remote.headers:
        secret = environment.get(each.env, "")
        if not secret:
            problems.append(
                f"the header {each.name!r} takes its value from the environment variable"
                f" {each.env}, which is not set: export {each.env}=..."
            )
        elif not (secret.isascii() and secret.isprintable()) or secret != secret.strip():
            problems.append(
                f"the environment variable {each.env} contains a character that no header may"
                " contain: a line break, a space at the start or at the end, or a character that is"
                " not ASCII"
            )
        headers.append(Header(each.name, each.prefix, secret))
    try:
        ca_pem = _read_cas(remote.tls)
    except (OSError, ValueError) as error:
        problems.append(f"tls: {remote.tls} cannot be used: {error}")
    if problems:
        raise ServerError("\n".join(problems))
    return Access(ca_pem, tuple(headers))


def _read_cas(tls: str) -> str | None:
    readers: dict[str, Callable[[], str | None]] = {"none": lambda: None, "system": system_cas}
    ca_pem = readers.get(tls, lambda: certificates(Path(tls)))()
    if ca_pem is not None:
        _context(ca_pem)
    return ca_pem


def system_cas() -> str:
    """Return the certificates of the authorities that this system trusts.

    Without these certificates, gRPC would trust its own list of authorities.
    """
    paths = ssl.get_default_verify_paths()
    files = [Path(paths.cafile)] if paths.cafile else Path(paths.capath or "").glob("*.pem")
    found = "\n".join(map(pem_text, files))
    if not found.strip():
        raise OSError("this system has no certificates; set tls to the path of a PEM file instead")
    return found
