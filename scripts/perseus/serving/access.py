"""How a server is spoken to: over TLS or not, and the headers that every call carries.

A header's secret comes from an environment variable. It is kept out of every repr, travels to
client processes over their pipe, and `Access.hide` takes it out of what a server says before that
is shown.
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

MAX_BYTES = 2**24  # of an answer that is not an inference's
HIDDEN = "<hidden>"
MIN_SECRET_CHARACTERS = 4
"""Characters of a secret: a shorter one is none, and stands in many words."""
CHANNEL_OPTIONS = [
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.enable_retries", 0),
    ("grpc.enable_http_proxy", 0),
]
"""Of every gRPC channel: a message may be large, and what is sent goes out once, and directly."""


@dataclass(frozen=True)
class Header:
    """A header whose value is `prefix` and a secret."""

    name: str
    prefix: str
    secret: str = field(repr=False)

    @property
    def value(self) -> str:
        return self.prefix + self.secret


@dataclass(frozen=True)
class Access:
    """`ca_pem` are the certificates that a server's must be signed by; None: no TLS."""

    ca_pem: str | None = field(default=None, repr=False)
    headers: tuple[Header, ...] = ()

    @property
    def scheme(self) -> str:
        return "http" if self.ca_pem is None else "https"

    def values(self, scheme: str | None = None) -> dict[str, str]:
        """The headers by name. None without TLS (`scheme` http) for a server that has it."""
        if self.ca_pem is not None and scheme == "http":
            return {}
        return {header.name: header.value for header in self.headers}

    def ssl_context(self, *protocols: str) -> ssl.SSLContext | None:
        """For a connection that is to speak one of these (ALPN); None without TLS."""
        return None if self.ca_pem is None else _context(self.ca_pem, protocols)

    def grpc_client(self, address: str) -> triton.InferenceServerClient:
        """Triton's own client, for whatever is not an inference; its calls take `values()`."""
        credentials = self._grpc_credentials()
        return triton.InferenceServerClient(
            address, ssl=credentials is not None, creds=credentials, channel_args=CHANNEL_OPTIONS
        )

    def _grpc_credentials(self) -> grpc.ChannelCredentials | None:
        if self.ca_pem is None:
            return None
        return grpc.ssl_channel_credentials(self.ca_pem.encode())

    def get(self, url: str, timeout_s: float) -> bytes:
        """The body of an HTTP answer. Raises OSError, also for a status that is not 2xx.

        No redirect is followed: it would carry the headers to another server.
        """
        deadline_s = time.monotonic() + timeout_s
        request = urllib.request.Request(url, headers=self.values(urlsplit(url).scheme))
        try:
            with _opener(self.ca_pem).open(request, timeout=timeout_s) as reply:
                return read_within(reply, deadline_s)
        except urllib.error.HTTPError as error:
            with error:
                raise OSError(f"HTTP {error.code} {self.hide(str(error.reason))}") from None
        except http.client.HTTPException as error:
            raise OSError(f"no HTTP answer ({type(error).__name__})") from None

    def hide(self, text: str) -> str:
        """`text` without the secrets that are long enough to be some."""
        for header in self.headers:
            if len(header.secret) >= MIN_SECRET_CHARACTERS:
                text = text.replace(header.secret, HIDDEN)
        return text


PLAIN = Access()
"""Neither TLS nor headers: every server that is started here."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args: Any) -> None:
        return None


@cache
def _opener(ca_pem: str | None) -> urllib.request.OpenerDirector:
    # A proxy of the environment must not come between.
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
    """Bytes to come; None where the server did not say."""

    def read1(self, n: int = -1, /) -> bytes: ...


def read_within(reply: _Readable, deadline_s: float) -> bytes:
    """All of an HTTP answer. Raises OSError when it is longer than MAX_BYTES or cut off, and
    TimeoutError past the deadline: a socket's own time-out begins anew with every byte."""
    parts: list[bytes] = []
    length = reply.length
    while part := reply.read1(2**16):
        parts.append(part)
        if sum(map(len, parts)) > MAX_BYTES:
            raise OSError(f"an answer of more than {MAX_BYTES} bytes")
        if time.monotonic() > deadline_s:
            raise TimeoutError("the answer did not end in time")
    body = b"".join(parts)
    if length is not None and len(body) < length:  # of which read1 says nothing
        raise OSError(f"the answer ended after {len(body)} of {length} bytes")
    return body


# From the configuration


def read_access(remote: Remote, environment: Mapping[str, str]) -> Access:
    """How a server elsewhere is spoken to, with the secrets that the environment holds.

    Raises ServerError with every reason: a variable that is missing or cannot be a header's value,
    a file of certificates that cannot be used.
    """
    problems: list[str] = []
    headers: list[Header] = []
    for each in remote.headers:
        secret = environment.get(each.env, "")
        if not secret:
            problems.append(
                f"the environment variable {each.env} is not set, and the header"
                f" {each.name!r} takes its value from it: export {each.env}=..."
            )
        elif not (secret.isascii() and secret.isprintable()) or secret != secret.strip():
            problems.append(
                f"the environment variable {each.env} holds a character that no header can carry:"
                " a line break, a space at an end, or a character that is not ASCII"
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
    """Raises OSError and ValueError when there are none, or what is there are no certificates."""
    readers: dict[str, Callable[[], str | None]] = {"none": lambda: None, "system": system_cas}
    ca_pem = readers.get(tls, lambda: certificates(Path(tls)))()
    if ca_pem is not None:
        _context(ca_pem)
    return ca_pem


def system_cas() -> str:
    """The certificates that this system trusts. gRPC would take its own otherwise."""
    paths = ssl.get_default_verify_paths()
    files = [Path(paths.cafile)] if paths.cafile else Path(paths.capath or "").glob("*.pem")
    found = "\n".join(map(pem_text, files))
    if not found.strip():
        raise OSError("this system has no certificates; name a PEM file instead")
    return found
